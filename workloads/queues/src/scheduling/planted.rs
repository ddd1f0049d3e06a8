//! Planted bugs: class scheduling implemented or used wrongly, as the tutorial is printed, as in a published
//! example, or as is easily done by mistake.

use super::{Anyway, Signups, SignupsAnswer, SignupsOp, contents, continued, layer, student_name};
use crate::shared::in_order;
use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, Recorded, concluded, ran},
    weakened::{only, weakened},
};
use shaketable_layers::scheduling::{Change, Error, Refusal, keys as layout};
use shaketable_tx::{TransactionOption, strinc};

/// How a transaction ended; `None` if the bug does not change it.
type Ended = Option<Outcome<Answer<SignupsAnswer>>>;

#[shaketable::planted]
#[flaw(
    snapshot_reads,
    signup | drop | switch,
    AtSnapshot,
    "sign-ups and seats are read at snapshot",
    "foundationdb-rs examples/class-scheduling.rs"
)]
#[flaw(
    first_batch,
    available | signup | drop | switch,
    FirstBatch,
    "the first batch of a range read is taken for the whole range",
    "a range that is longer than a batch"
)]
impl Signups {
    /// Add_class sets the seats of a class that students have signed up for.
    #[bug(add_class, "the tutorial's add_class")]
    async fn add_class_as_printed(&self, tx: &Tx, class: u16, seats: u32) -> Result<Change, Error> {
        let class = self.class_name(class);
        layout::check_name(&class)?;
        tx.set(&layer().keys().course(&class), &layout::pack_seats(seats));
        Ok(Change::Made)
    }

    /// Init clears everything before it adds the classes.
    #[bug(init, "the tutorial's init")]
    async fn init_as_printed(&self, tx: &Tx) -> Result<usize, Error> {
        let scheduling = layer();
        for all in [scheduling.keys().courses(), scheduling.keys().attendances()] {
            tx.clear_range(&all.begin.key, &all.end.key);
        }
        self.init(tx).await
    }

    /// Signup, drop and switch are retried without an operation record.
    #[bug(*, "the tutorial's \"all of the transactions are idempotent\"")]
    async fn no_op_record(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        use SignupsOp::{drop, signup, switch};
        if !ops.iter().any(|op| matches!(op, signup { .. } | drop { .. } | switch { .. })) {
            return None;
        }
        let db = &session.database().clone();
        Some(ran(db.run(|tx, _| async move { self.all(&tx, db.env(), ops).await }).await))
    }

    /// Switch does not check whether the student takes the old class.
    #[bug(switch, "the tutorial's switch")]
    async fn switch_as_printed(
        &self,
        tx: &Tx,
        student: u8,
        old: u16,
        new: u16,
        anyway: bool,
    ) -> Result<Anyway<()>, Error> {
        match self.switch(tx, student, old, new, true).await? {
            Err(refusal) if is_unchecked(refusal) => {
                self.drop(tx, student, old).await?;
                Ok(self.signup(tx, student, new, anyway).await?.map(|_| ()))
            }
            switched => continued(switched.map_err(Error::from), anyway),
        }
    }

    /// Switch ignores the refusal of the new class after dropping the old one.
    #[bug(switch, "an error swallowed in a composed call")]
    async fn switch_keeps_half(
        &self,
        tx: &Tx,
        student: u8,
        old: u16,
        new: u16,
        anyway: bool,
    ) -> Result<Anyway<()>, Error> {
        match self.switch(tx, student, old, new, true).await? {
            Err(refusal) if !is_unchecked(refusal) => {
                self.drop(tx, student, old).await?;
                Ok(Ok(()))
            }
            switched => continued(switched.map_err(Error::from), anyway),
        }
    }

    /// A student's classes are counted at snapshot.
    #[bug(signup, "foundationdb-rs examples/class-scheduling.rs, write skew")]
    async fn sixth_class_at_snapshot(
        &self,
        tx: &Tx,
        student: u8,
        class: u16,
        anyway: bool,
    ) -> Result<Anyway<Change>, Error> {
        self.signup(&counted_at_snapshot(tx, student), student, class, anyway).await
    }

    #[bug(switch, part_of = "sixth-class-at-snapshot")]
    async fn switched_at_snapshot(
        &self,
        tx: &Tx,
        student: u8,
        old: u16,
        new: u16,
        anyway: bool,
    ) -> Result<Anyway<()>, Error> {
        self.switch(&counted_at_snapshot(tx, student), student, old, new, anyway).await
    }

    /// Switch drops the old class in a separate transaction.
    #[bug(*, "addClass of the older guide of the data modeling guide")]
    async fn nested_database(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        let db = &session.database().clone();
        let perform = |tx: Tx, op| {
            async move {
                let &SignupsOp::switch { student, old, new, anyway } = op else {
                    return self.perform(&tx, db.env(), op, Serializable).await;
                };
                let switched = self.dropped_apart(db, &tx, student, old, new).await;
                Ok(SignupsAnswer::switch(continued(switched, anyway)?))
            }
            .boxed()
        };
        self.applied(session, ops, perform).await
    }

    /// Switch runs with read-your-writes disabled.
    #[bug(*, "a transaction that cannot see itself")]
    async fn own_writes_unseen(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        if !ops.iter().any(|op| matches!(op, SignupsOp::switch { .. })) {
            return None;
        }
        // If it cannot begin here, it cannot begin correctly either.
        let op = session.begin().await.ok()?;
        let (db, slots) = (&session.database().clone(), &session.slots().clone());
        let ran = db.run(|tx, _| async move {
            // The option must be set before any operation, so that the session's own loop cannot set it.
            tx.set_option(TransactionOption::ReadYourWritesDisable)?;
            Ok::<_, Error>(match once::check(&tx, slots, op).await? {
                once::Check::Done(answer) => once::PendingAnswer::ready(answer),
                once::Check::New(permit) => {
                    let answers = self.all(&tx, db.env(), ops).await?;
                    once::record(&tx, permit, Recorded(answers))?
                }
            })
        });
        let ran = ran.await;
        Some(concluded(session.conclude(op, ran).await))
    }

    /// A list in a transaction is read in another transaction.
    #[bug(*, "a look-up that is given the database")]
    async fn look_beside(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        let db = &session.database().clone();
        let perform = |tx: Tx, op| {
            async move {
                if !Signups::is_read_only(op) {
                    return self.perform(&tx, db.env(), op, Serializable).await;
                }
                let read =
                    db.run(|own, _| async move { self.perform(&own, db.env(), op, Serializable).await });
                read.await.map_err(|e| e.error)
            }
            .boxed()
        };
        self.applied(session, ops, perform).await
    }

    /// An unknown outcome is reported as a failure.
    #[bug(*, "a timeout reported as a failure")]
    async fn timeout_is_refusal(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        Some(match self.rightly_applied(session, ops).await? {
            Outcome::Unknown(e) => Outcome::Failed(e),
            known => known,
        })
    }

    /// An operation whose outcome is unknown is repeated as a new one.
    #[bug(*, "a timeout taken for a failure")]
    async fn retry_as_new(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        match self.rightly_applied(session, ops).await? {
            Outcome::Unknown(_) => self.rightly_applied(session, ops).await,
            known => Some(known),
        }
    }

    /// The seats read in the first attempt are kept for the retries.
    #[bug(*, "state that survives a retry")]
    async fn seats_kept(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        let [SignupsOp::signup { class, anyway: false, .. } | SignupsOp::drop { class, .. }] = ops else {
            return None;
        };
        let (kept, course) = (&Mutex::new(None), &layer().keys().course(&self.class_name(*class)));
        let db = &session.database().clone();
        let done = session.apply(|tx| async move {
            let known: Option<Bytes> = kept.lock().clone();
            let seats = if known.is_some() { known } else { tx.get(course, Serializable).await? };
            seats.iter().for_each(|seats| tx.set(course, seats));
            *kept.lock() = seats;
            self.all(&tx, db.env(), ops).await.map(Recorded)
        });
        Some(concluded(done.await))
    }

    /// The classes of a student include those of all students with this prefix.
    #[bug(classes_of, "a prefix without its end")]
    async fn bare_student(&self, tx: &Tx, student: u8) -> Result<Vec<Content>, Error> {
        let scheduling = layer();
        let whole = scheduling.keys().attendances_of(&student_name(student)).begin.key;
        // Without the byte that ends the name, and the one with which a range begins.
        let bare = &whole[..whole.len() - 2];
        let range = RangeOption::new(bare.to_vec(), strinc(bare).unwrap_or_default());
        let rows = tx.get_range_all(range, Serializable).await?;
        let classes = rows.iter().map(|row| Ok(scheduling.keys().student_and_class(&row.key)?.1));
        Ok(contents(&classes.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Seats are stored in 16 bits.
    #[bug(add_class, "a number that outgrows its field")]
    async fn seats_cut_off(&self, tx: &Tx, class: u16, seats: u32) -> Result<Change, Error> {
        self.add_class(tx, class, seats & 0xffff).await
    }

    /// Drops the old class in a transaction of its own, and signs up for the new one.
    async fn dropped_apart(&self, db: &Db, tx: &Tx, student: u8, old: u16, new: u16) -> Result<(), Error> {
        let (scheduling, student) = (&layer(), &student_name(student));
        let (old, new) = (&self.class_name(old), &self.class_name(new));
        let taken = scheduling.classes_of(tx, student).await?;
        match () {
            () if old == new => return Err(Refusal::SameClass.into()),
            () if !taken.contains(old) => return Err(Refusal::NotTakingOld.into()),
            () if taken.contains(new) => return Err(Refusal::AlreadyTakingNew.into()),
            () => {}
        }
        let dropped = db.run(|tx, _| async move { scheduling.drop(&tx, student, old).await });
        dropped.await.map_err(|e| e.error)?;
        scheduling.signup(tx, student, new).await.map(|_| ())
    }

    /// All calls in one transaction, performed correctly.
    async fn all(&self, tx: &Tx, env: &Env, ops: &[SignupsOp]) -> Result<Vec<SignupsAnswer>, Error> {
        in_order(ops, |op| self.perform(tx, env, op, Serializable)).await
    }

    /// The calls as one operation of the session, performed correctly, if one of them writes.
    async fn rightly_applied(&self, session: &mut Session<Db>, ops: &[SignupsOp]) -> Ended {
        let db = &session.database().clone();
        let perform = |tx: Tx, op| async move { self.perform(&tx, db.env(), op, Serializable).await }.boxed();
        self.applied(session, ops, perform).await
    }

    /// The calls as one operation of the session, if one of them writes.
    async fn applied<'a>(
        &self,
        session: &mut Session<Db>,
        ops: &'a [SignupsOp],
        perform: impl Fn(Tx, &'a SignupsOp) -> BoxFuture<'a, Result<SignupsAnswer, Error>> + Send + Sync,
    ) -> Ended {
        if ops.iter().all(Signups::is_read_only) {
            return None;
        }
        let perform = &perform;
        let applied = session
            .apply(|tx| async move { in_order(ops, |op| perform(tx.clone(), op)).await.map(Recorded) });
        Some(concluded(applied.await))
    }
}

/// What the tutorial's switch does not check.
fn is_unchecked(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::SameClass | Refusal::NotTakingOld | Refusal::AlreadyTakingNew)
}

/// A transaction that reads a student's classes at snapshot.
fn counted_at_snapshot(tx: &Tx, student: u8) -> Tx {
    weakened(tx.clone(), [only(layer().keys().attendances_of(&student_name(student)).begin.key)])
}
