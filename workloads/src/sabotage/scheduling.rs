//! Class scheduling done wrong, one bug at a time: as the tutorial prints it, as a published example
//! has it, or as one would write it in haste.

use crate::{
    workload::{Outcome, Workload},
    workloads::signup::{Answer, Client, Flaw, Op, Signup, applied, listed, refused, student},
};
use parking_lot::Mutex;
use shaketable_layers::{
    once,
    scheduling::{
        Change, Error, MAX_CLASSES, Refusal, Scheduling,
        keys::{pack_seats, unpack_seats},
    },
    tx::{
        self, Database,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction, TransactionOption,
    },
};
use std::future::Future;

/// Does an operation that the bug touches; `None` when it leaves this one as it is.
pub async fn apply<D: Database>(
    flaw: Flaw,
    signup: &Signup,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let Client { session, scheduling, names } = client;
    let name = |class: u16| names[usize::from(class)].as_str();
    let db = session.database().clone();
    let (db, scheduling) = (&db, &*scheduling);
    let flawed = &Flawed { scheduling, flaw, kept: Mutex::new(None) };
    Some(match (flaw, op) {
        (Flaw::AddClassAsPrinted, Op::AddClass(class)) => {
            let key = &scheduling.keys().course(name(*class));
            let ran = db.run(|tx, _| async move {
                tx.set(key, &pack_seats(signup.seats()));
                Ok(Change::Made)
            });
            bare(ran.await, Answer::Change)
        }
        (Flaw::InitAsPrinted, Op::Init) => {
            let classes = &signup.initial();
            let ran = db.run(|tx, _| async move {
                clear(&tx, scheduling.keys().courses());
                clear(&tx, scheduling.keys().attendances());
                for class in classes {
                    tx.set(&scheduling.keys().course(class), &pack_seats(signup.seats()));
                }
                Ok(classes.len() as u64)
            });
            bare(ran.await, Answer::Added)
        }
        (Flaw::OwnWritesUnseen, Op::Switch(s, old, new)) => {
            let (s, old, new) = (&student(*s), name(*old), name(*new));
            let ran = async {
                let op = session.begin().await.map_err(Error::from).map_err(once::Outcome::Refused)?;
                let slots = session.slots().clone();
                let slots = &slots;
                let ran = db.run(|tx, _| async move {
                    // Must precede any operation, so the session's own loop cannot set it.
                    tx.set_option(TransactionOption::ReadYourWritesDisable)?;
                    match once::check(&tx, slots, op).await.map_err(lift)? {
                        once::Check::Done(answer) => Ok(once::Landing::ready(answer)),
                        once::Check::New(permit) => {
                            flawed.switch(db, &tx, s, old, new).await?;
                            once::record(&tx, permit, ()).map_err(lift)
                        }
                    }
                });
                Ok(session.conclude(op, ran.await).await)
            };
            applied(ran.await.unwrap_or_else(|refused| refused), |()| Answer::Switched)
        }
        (Flaw::NoOpRecord, Op::Signup(s, class)) => {
            let (s, class) = (&student(*s), name(*class));
            bare(db.run(|tx, _| async move { scheduling.signup(&tx, s, class).await }).await, Answer::Change)
        }
        (Flaw::NoOpRecord, Op::Drop(s, class)) => {
            let (s, class) = (&student(*s), name(*class));
            bare(db.run(|tx, _| async move { scheduling.drop(&tx, s, class).await }).await, Answer::Change)
        }
        (Flaw::NoOpRecord, Op::Switch(s, old, new)) => {
            let (s, old, new) = (&student(*s), name(*old), name(*new));
            let ran = db.run(|tx, _| async move { scheduling.switch(&tx, s, old, new).await });
            bare(ran.await, |()| Answer::Switched)
        }
        (Flaw::FirstBatch, Op::Available(limit)) => {
            let mut range = scheduling.keys().courses();
            let limit = if *limit == 0 { usize::MAX } else { (*limit).into() };
            range.limit = None;
            let range = &range;
            let ran = db.run(|tx, _| async move {
                let mut available = Vec::new();
                for row in tx.get_range(range, 1, Serializable).await?.rows {
                    if available.len() < limit && unpack_seats(&row.key, &row.value)? > 0 {
                        available.push(scheduling.keys().class_of_course(&row.key)?);
                    }
                }
                Ok(available)
            });
            listed(ran.await)
        }
        (Flaw::TimeoutIsRefusal, _) => match signup.apply(client, op).await {
            Outcome::Unknown(e) => Outcome::GaveUp(e),
            known => known,
        },
        (Flaw::RetryAsNew, _) => match signup.apply(client, op).await {
            Outcome::Unknown(_) => signup.apply(client, op).await,
            known => known,
        },
        (_, Op::Signup(s, class)) => {
            let (s, class) = (&student(*s), name(*class));
            let signup = session.apply(|tx| async move { flawed.signup(&tx, s, class).await });
            applied(signup.await, Answer::Change)
        }
        (_, Op::Drop(s, class)) => {
            let (s, class) = (&student(*s), name(*class));
            let dropped = session.apply(|tx| async move { flawed.drop(&tx, s, class).await });
            applied(dropped.await, Answer::Change)
        }
        (_, Op::Switch(s, old, new)) => {
            let (s, old, new) = (&student(*s), name(*old), name(*new));
            let switched = session.apply(|tx| async move { flawed.switch(db, &tx, s, old, new).await });
            applied(switched.await, |()| Answer::Switched)
        }
        _ => return None,
    })
}

fn clear<T: Transaction>(tx: &T, range: RangeOption) {
    tx.clear_range(&range.begin.key, &range.end.key);
}

/// FoundationDB's errors as themselves, so that the retry loop sees them.
fn lift(error: once::Error) -> Error {
    error.fdb().map_or(Error::Once(error), Error::Fdb)
}

/// The answer of a retry loop without an operation record.
fn bare<A>(ran: Result<A, RunError<Error>>, answer: impl FnOnce(A) -> Answer) -> Outcome<Answer> {
    match ran {
        Ok(a) => Outcome::Answered(answer(a)),
        Err(e) if e.maybe_committed && e.error.fdb().is_some() => {
            Outcome::Unknown(e.error.fdb().unwrap_or(tx::Error::COMMIT_UNKNOWN_RESULT))
        }
        Err(e) => refused(e.error),
    }
}

/// The functions inside a transaction, with one bug.
struct Flawed<'a> {
    scheduling: &'a Scheduling,
    flaw: Flaw,
    /// Outlives the attempts of one operation.
    kept: Mutex<Option<Option<u32>>>,
}

impl Flawed<'_> {
    fn reading(&self) -> Isolation {
        if self.flaw == Flaw::SnapshotReads { Snapshot } else { Serializable }
    }

    async fn seats_left<T: Transaction>(&self, tx: &T, class: &str) -> Result<Option<u32>, Error> {
        if self.flaw == Flaw::SeatsKept
            && let Some(kept) = *self.kept.lock()
        {
            return Ok(kept);
        }
        let key = self.scheduling.keys().course(class);
        let value = tx.get(&key, self.reading()).await?;
        let seats = value.map(|v| unpack_seats(&key, &v)).transpose()?;
        if self.flaw == Flaw::SeatsKept {
            *self.kept.lock() = Some(seats);
        }
        Ok(seats)
    }

    async fn count<T: Transaction>(&self, tx: &T, student: &str) -> Result<usize, Error> {
        let range = self.scheduling.keys().attendances_of(student);
        Ok(match self.flaw {
            Flaw::FirstBatch => tx.get_range(&range, 1, Serializable).await?.rows.len(),
            Flaw::SixthAtSnapshot => tx.get_range_all(range, Snapshot).await?.len(),
            _ => tx.get_range_all(range, self.reading()).await?.len(),
        })
    }

    async fn signup<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        let keys = self.scheduling.keys();
        let attendance = keys.attendance(student, class);
        if tx.get(&attendance, self.reading()).await?.is_some() {
            return Ok(Change::Unneeded);
        }
        let left = self.seats_left(tx, class).await?.ok_or(Refusal::UnknownClass)?;
        let left = left.checked_sub(1).ok_or(Refusal::NoRemainingSeats)?;
        if self.count(tx, student).await? >= MAX_CLASSES {
            return Err(Refusal::TooManyClasses.into());
        }
        tx.set(&keys.course(class), &pack_seats(left));
        tx.set(&attendance, b"");
        Ok(Change::Made)
    }

    async fn drop<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        let keys = self.scheduling.keys();
        let attendance = keys.attendance(student, class);
        if tx.get(&attendance, self.reading()).await?.is_none() {
            return Ok(Change::Unneeded);
        }
        let seats = self.seats_left(tx, class).await?.ok_or(Refusal::UnknownClass)?;
        tx.set(&keys.course(class), &pack_seats(seats + 1));
        tx.clear(&attendance);
        Ok(Change::Made)
    }

    #[allow(
        clippy::manual_async_fn,
        reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)"
    )]
    fn switch<D: Database>(
        &self,
        db: &D,
        tx: &D::Transaction,
        student: &str,
        old: &str,
        new: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        async move {
            match self.flaw {
                Flaw::SwitchAsPrinted => {
                    self.drop(tx, student, old).await?;
                    self.signup(tx, student, new).await?;
                }
                Flaw::SwitchKeepsHalf => {
                    self.refuse_odd(tx, student, old, new).await?;
                    self.drop(tx, student, old).await?;
                    match self.signup(tx, student, new).await {
                        Ok(_) | Err(Error::Refused(_)) => {}
                        Err(failure) => return Err(failure),
                    }
                }
                Flaw::NestedDatabase => {
                    self.refuse_odd(tx, student, old, new).await?;
                    let dropped = db.run(|tx, _| async move { self.drop(&tx, student, old).await });
                    dropped.await.map_err(|e| e.error)?;
                    self.signup(tx, student, new).await?;
                }
                // The seats kept would be those of the other class: too easy to notice.
                Flaw::SeatsKept => self.scheduling.switch(tx, student, old, new).await?,
                _ => {
                    self.refuse_odd(tx, student, old, new).await?;
                    self.drop(tx, student, old).await?;
                    self.signup(tx, student, new).await?;
                }
            }
            Ok(())
        }
    }

    /// The refusals that the tutorial's switch lacks.
    async fn refuse_odd<T: Transaction>(
        &self,
        tx: &T,
        student: &str,
        old: &str,
        new: &str,
    ) -> Result<(), Error> {
        let keys = self.scheduling.keys();
        if old == new {
            return Err(Refusal::SameClass.into());
        }
        if tx.get(&keys.attendance(student, old), self.reading()).await?.is_none() {
            return Err(Refusal::NotTakingOld.into());
        }
        if tx.get(&keys.attendance(student, new), self.reading()).await?.is_some() {
            return Err(Refusal::AlreadyTakingNew.into());
        }
        Ok(())
    }
}
