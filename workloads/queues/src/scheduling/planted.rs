//! Planted bugs: class scheduling implemented or used wrongly, as the tutorial is printed, as in a published
//! example, or as is easily done by mistake.

use super::{
    Answer, Op, Signups,
    client::{page, scheduling},
    operations::student,
};
use crate::shared::in_order;
use parking_lot::Mutex;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, Specimen, ran, told},
    workload::Outcome,
};
use shaketable_layers::scheduling::{
    Change, Error, MAX_CLASSES, Refusal,
    keys::{check_name, pack_seats, unpack_seats},
};
use shaketable_tx::{
    Database, Env,
    Isolation::{self, Serializable, Snapshot},
    KeyValue, RangeOption, RetryError, Transaction, TransactionOption,
    once::{self, Session},
    strinc,
};
use std::future::Future;

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two sign-ups that run side by side in one transaction count the same seats", "two futures in one transaction";
    AddClassAsPrinted = "add-class-as-printed", "add_class sets the seats of a class that students have signed up for", "the tutorial's add_class";
    InitAsPrinted = "init-as-printed", "init clears everything before it adds the classes", "the tutorial's init";
    NoOpRecord = "no-op-record", "signup, drop and switch are retried without an operation record", "the tutorial's \"all of the transactions are idempotent\"";
    SnapshotReads = "snapshot-reads", "sign-ups and seats are read at snapshot", "foundationdb-rs examples/class-scheduling.rs";
    SwitchAsPrinted = "switch-as-printed", "switch does not check whether the student takes the old class", "the tutorial's switch";
    SwitchKeepsHalf = "switch-keeps-half", "switch ignores the refusal of the new class after dropping the old one", "an error swallowed in a composed call";
    RefusedSwitchDrops = "refused-switch-drops", "a refused switch drops the old class for a caller that continues", "a refusal that leaves half of its work";
    SixthAtSnapshot = "sixth-class-at-snapshot", "a student's classes are counted at snapshot", "foundationdb-rs examples/class-scheduling.rs, write skew";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole range", "a range that is longer than a batch";
    NestedDatabase = "nested-database", "switch drops the old class in a separate transaction", "addClass of the older guide of the data modeling guide";
    OwnWritesUnseen = "own-writes-unseen", "switch runs with read-your-writes disabled", "a transaction that cannot see itself";
    LookBeside = "look-beside", "a list in a transaction is read in another transaction", "a look-up that is given the database";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is repeated as a new one", "a timeout taken for a failure";
    SeatsKept = "seats-kept", "the seats read in the first attempt are kept for the retries", "state that survives a retry";
    InitRefills = "init-refills", "init gives a class without seats all its seats again", "absent and zero treated alike";
    PageSkips = "page-skips", "a page begins after all keys with the previous class's key as a prefix", "a cursor that is a prefix";
    FullIsListed = "full-is-listed", "a class without seats is listed as available", "a list of all classes";
    BareStudent = "bare-student", "the classes of a student include those of all students with this prefix", "a prefix without its end";
    SeatsCutOff = "seats-cut-off", "seats are stored in 16 bits", "a number that outgrows its field";
    SeatFirst = "seat-first", "an attendance is written before a seat is found", "a refusal that comes too late";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    signup: &Signups,
    tx: &T,
    op: &Op,
) -> Result<Answer, Error> {
    let (scheduling, kept) = (scheduling(), Mutex::new(None));
    let (keys, wrong) = (scheduling.keys(), Wrong { planted, kept: &kept });
    Ok(match (planted, op) {
        (Planted::AddClassAsPrinted, Op::AddClass(class, seats)) => {
            let class = signup.class(*class);
            check_name(&class)?;
            tx.set(&keys.course(&class), &pack_seats(*seats));
            Answer::Change(Change::Made)
        }
        (Planted::InitAsPrinted, Op::Init) => {
            clear(tx, keys.courses());
            clear(tx, keys.attendances());
            let classes = signup.initial();
            for class in &classes {
                tx.set(&keys.course(class), &pack_seats(signup.seats()));
            }
            Answer::Added(classes.len())
        }
        (Planted::InitRefills, Op::Init) => {
            let mut added = 0;
            for class in signup.initial() {
                if scheduling.seats_left(tx, &class).await?.unwrap_or(0) == 0 {
                    tx.set(&keys.course(&class), &pack_seats(signup.seats()));
                    added += 1;
                }
            }
            Answer::Added(added)
        }
        (Planted::FirstBatch, Op::Available(None, usize::MAX)) => {
            let rows = tx.get_range(&keys.courses(), 1, Serializable).await?.rows;
            available(&rows, usize::MAX, false)?
        }
        (Planted::PageSkips, Op::Available(Some(after), most)) => {
            let mut range = keys.courses().limit((*most).max(1));
            let bare = keys.course(&signup.class(*after));
            range.begin.key = strinc(&bare[..bare.len() - 1]).unwrap_or_default();
            available(&tx.get_range_all(range, Serializable).await?, *most, false)?
        }
        (Planted::FullIsListed, Op::Available(None, most)) => {
            let range = keys.courses().limit((*most).max(1));
            available(&tx.get_range_all(range, Serializable).await?, *most, true)?
        }
        (Planted::SeatFirst, Op::Signup(s, class)) => {
            let (student, class) = (student(*s), signup.class(*class));
            match scheduling.signup(tx, &student, &class).await {
                Err(Error::Refused(refusal)) => {
                    tx.set(&keys.attendance(&student, &class), b"");
                    return Err(refusal.into());
                }
                signed => Answer::Change(signed?),
            }
        }
        (Planted::SeatsCutOff, Op::AddClass(class, seats)) => {
            let added = scheduling.add_class(tx, &signup.class(*class), *seats & 0xffff).await?;
            Answer::Change(added)
        }
        (Planted::BareStudent, Op::ClassesOf(s)) => {
            let whole = keys.attendances_of(&student(*s)).begin.key;
            // Without the byte that ends the name, and the one with which a range begins.
            let bare = &whole[..whole.len() - 2];
            let range = RangeOption::new(bare.to_vec(), strinc(bare).unwrap_or_default());
            let rows = tx.get_range_all(range, Serializable).await?;
            let class = |row: &KeyValue| Ok(specimen::Content::from(&keys.student_and_class(&row.key)?.1));
            Answer::Classes(rows.iter().map(class).collect::<Result<_, Error>>()?)
        }
        (
            Planted::SnapshotReads
            | Planted::SixthAtSnapshot
            | Planted::FirstBatch
            | Planted::SwitchAsPrinted
            | Planted::SwitchKeepsHalf
            | Planted::RefusedSwitchDrops,
            Op::Signup(..) | Op::Drop(..) | Op::Switch(..),
        ) => wrong.call(signup, tx, op).await?,
        _ => signup.call(tx, op).await?,
    })
}

/// Performs the calls of one transaction with the bug, if the bug affects more than one transaction.
pub async fn apply_planted<D: Database>(
    planted: Planted,
    signup: &Signups,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let (db, env) = (&db, db.env());
    let named = |op: &Op| match op {
        Op::Anyway(op) => (**op).clone(),
        op => op.clone(),
    };
    let changes = |op: &Op| matches!(named(op), Op::Signup(..) | Op::Drop(..) | Op::Switch(..));
    let switches = ops.iter().any(|op| matches!(named(op), Op::Switch(..)));
    Some(match planted {
        Planted::NoOpRecord if ops.iter().any(changes) => {
            ran(db.run(|tx, _| async move { all(signup, &tx, env, ops).await }).await)
        }
        Planted::TimeoutIsRefusal => match right(signup, session, ops).await {
            Outcome::Unknown(e) => Outcome::Failed(e),
            known => known,
        },
        Planted::RetryAsNew => match right(signup, session, ops).await {
            Outcome::Unknown(_) => right(signup, session, ops).await,
            known => known,
        },
        Planted::OwnWritesUnseen if switches => {
            let op = match session.begin().await {
                Ok(op) => op,
                Err(e) => return Some(specimen::refused(&Error::from(e))),
            };
            let slots = session.slots().clone();
            let slots = &slots;
            let ran = db.run(|tx, _| async move {
                // The option must be set before any operation, so that the session's own loop cannot set it.
                tx.set_option(TransactionOption::ReadYourWritesDisable)?;
                match once::check(&tx, slots, op).await.map_err(lift)? {
                    once::Check::Done(answer) => Ok(once::PendingAnswer::ready(answer)),
                    once::Check::New(permit) => {
                        let answers = all(signup, &tx, env, ops).await?;
                        once::record(&tx, permit, Recorded(answers)).map_err(lift)
                    }
                }
            });
            let ran = ran.await;
            told(session.conclude(op, ran).await)
        }
        Planted::NestedDatabase if switches => told(
            session.apply(|tx| async move { nested(signup, db, tx, env, ops).await.map(Recorded) }).await,
        ),
        Planted::LookBeside if !ops.iter().all(Signups::is_read_only) => told(
            session.apply(|tx| async move { beside(signup, db, tx, env, ops).await.map(Recorded) }).await,
        ),
        Planted::SeatsKept => {
            let [op @ (Op::Signup(..) | Op::Drop(..))] = ops else { return None };
            let kept = Mutex::new(None);
            let wrong = &Wrong { planted, kept: &kept };
            let done = session.apply(|tx| async move {
                wrong.call(signup, &tx, op).await.map(|answer| Recorded(vec![answer]))
            });
            told(done.await)
        }
        _ => return None,
    })
}

/// Performs the calls of one transaction correctly.
async fn right<D: Database>(
    signup: &Signups,
    session: &mut Session<D>,
    ops: &[Op],
) -> Outcome<specimen::Answer<Answer>> {
    let db = session.database().clone();
    let env = db.env();
    if ops.iter().all(Signups::is_read_only) {
        return ran(db.run(|tx, _| async move { all(signup, &tx, env, ops).await }).await);
    }
    told(session.apply(|tx| async move { all(signup, &tx, env, ops).await.map(Recorded) }).await)
}

/// All calls in one transaction, performed correctly.
async fn all<T: Transaction>(signup: &Signups, tx: &T, env: &Env, ops: &[Op]) -> Result<Vec<Answer>, Error> {
    in_order(ops, |op| signup.perform(tx, env, op, Serializable)).await
}

/// All calls in one transaction, except that the first half of a switch has a separate one.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
fn nested<'a, D: Database>(
    signup: &'a Signups,
    db: &'a D,
    tx: D::Transaction,
    env: &'a Env,
    ops: &'a [Op],
) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send + 'a {
    async move {
        let (scheduling, kept) = (&scheduling(), Mutex::new(None));
        let wrong = Wrong { planted: Planted::NestedDatabase, kept: &kept };
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            let Op::Switch(s, old, new) = op else {
                answers.push(signup.perform(&tx, env, op, Serializable).await?);
                continue;
            };
            let (s, old, new) = (&student(*s), &signup.class(*old), &signup.class(*new));
            wrong.refuse_odd(&tx, s, old, new).await?;
            let dropped = db.run(|tx, _| async move { scheduling.drop(&tx, s, old).await });
            dropped.await.map_err(|e| e.error)?;
            scheduling.signup(&tx, s, new).await?;
            answers.push(Answer::Switched);
        }
        Ok(answers)
    }
}

/// All calls in one transaction, except that looks have separate ones.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
fn beside<'a, D: Database>(
    signup: &'a Signups,
    db: &'a D,
    tx: D::Transaction,
    env: &'a Env,
    ops: &'a [Op],
) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send + 'a {
    async move {
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            answers.push(match Signups::is_read_only(op) {
                true => {
                    let read =
                        db.run(|own, _| async move { signup.perform(&own, env, op, Serializable).await });
                    read.await.map_err(|e| e.error)?
                }
                false => signup.perform(&tx, env, op, Serializable).await?,
            });
        }
        Ok(answers)
    }
}

/// A page of these classes.
fn available(rows: &[KeyValue], most: usize, full: bool) -> Result<Answer, Error> {
    let scheduling = scheduling();
    let mut classes = Vec::new();
    for row in rows {
        if full || unpack_seats(&row.key, &row.value)? > 0 {
            classes.push(scheduling.keys().class_of_course(&row.key)?);
        }
    }
    let last = rows.last().filter(|_| rows.len() == most.max(1));
    let next = last.map(|row| scheduling.keys().class_of_course(&row.key)).transpose()?;
    Ok(page(&classes, next.as_ref()))
}

fn clear<T: Transaction>(tx: &T, range: RangeOption) {
    tx.clear_range(&range.begin.key, &range.end.key);
}

/// Converts FoundationDB's errors, so that the retry loop recognizes them.
fn lift(error: once::Error) -> Error {
    error.fdb().map_or(Error::Once(error), Error::Fdb)
}

/// The functions that run inside a transaction, with one bug.
struct Wrong<'a> {
    planted: Planted,
    /// Survives the attempts of one operation.
    kept: &'a Mutex<Option<Option<u32>>>,
}

impl Wrong<'_> {
    async fn call<T: Transaction>(&self, signup: &Signups, tx: &T, op: &Op) -> Result<Answer, Error> {
        Ok(match op {
            Op::Signup(s, class) => {
                Answer::Change(self.signup(tx, &student(*s), &signup.class(*class)).await?)
            }
            Op::Drop(s, class) => Answer::Change(self.drop(tx, &student(*s), &signup.class(*class)).await?),
            Op::Switch(s, old, new) => {
                self.switch(tx, &student(*s), &signup.class(*old), &signup.class(*new)).await?;
                Answer::Switched
            }
            op => signup.call(tx, op).await?,
        })
    }

    fn reading(&self) -> Isolation {
        if self.planted == Planted::SnapshotReads { Snapshot } else { Serializable }
    }

    async fn seats_left<T: Transaction>(&self, tx: &T, class: &str) -> Result<Option<u32>, Error> {
        if self.planted == Planted::SeatsKept
            && let Some(kept) = *self.kept.lock()
        {
            return Ok(kept);
        }
        let key = scheduling().keys().course(class);
        let value = tx.get(&key, self.reading()).await?;
        let seats = value.map(|v| unpack_seats(&key, &v)).transpose()?;
        if self.planted == Planted::SeatsKept {
            *self.kept.lock() = Some(seats);
        }
        Ok(seats)
    }

    async fn count<T: Transaction>(&self, tx: &T, student: &str) -> Result<usize, Error> {
        let range = scheduling().keys().attendances_of(student);
        Ok(match self.planted {
            Planted::FirstBatch => tx.get_range(&range, 1, Serializable).await?.rows.len(),
            Planted::SixthAtSnapshot => tx.get_range_all(range, Snapshot).await?.len(),
            _ => tx.get_range_all(range, self.reading()).await?.len(),
        })
    }

    async fn signup<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        let scheduling = scheduling();
        let keys = scheduling.keys();
        check_name(student)?;
        check_name(class)?;
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
        let scheduling = scheduling();
        let keys = scheduling.keys();
        let attendance = keys.attendance(student, class);
        if tx.get(&attendance, self.reading()).await?.is_none() {
            return Ok(Change::Unneeded);
        }
        let seats = self.seats_left(tx, class).await?.ok_or(Refusal::UnknownClass)?;
        tx.set(&keys.course(class), &pack_seats(seats.saturating_add(1)));
        tx.clear(&attendance);
        Ok(Change::Made)
    }

    async fn switch<T: Transaction>(&self, tx: &T, student: &str, old: &str, new: &str) -> Result<(), Error> {
        if self.planted != Planted::SwitchAsPrinted {
            self.refuse_odd(tx, student, old, new).await?;
        }
        if self.planted == Planted::RefusedSwitchDrops {
            scheduling().drop(tx, student, old).await?;
            scheduling().signup(tx, student, new).await?;
            return Ok(());
        }
        self.drop(tx, student, old).await?;
        match self.signup(tx, student, new).await {
            Err(Error::Refused(_)) if self.planted == Planted::SwitchKeepsHalf => Ok(()),
            Err(Error::Refused(refusal)) => {
                // The seat that was given up is free in this transaction.
                self.signup(tx, student, old).await?;
                Err(refusal.into())
            }
            signed => signed.map(drop),
        }
    }

    /// Performs the refusals that the tutorial's switch lacks.
    async fn refuse_odd<T: Transaction>(
        &self,
        tx: &T,
        student: &str,
        old: &str,
        new: &str,
    ) -> Result<(), Error> {
        let scheduling = scheduling();
        let keys = scheduling.keys();
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
