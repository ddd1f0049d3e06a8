//! Planted bugs: class scheduling implemented or used wrongly, as the tutorial is printed, as in a published
//! example, or as is easily done by mistake.

use super::{
    Answer, Op, Signups,
    client::{contents, scheduling},
    operations::student,
};
use crate::shared::in_order;
use bytes::Bytes;
use parking_lot::Mutex;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, Specimen, ran, told},
    weakened::{Flaw, everything, flawed, only, weakened},
    workload::Outcome,
};
use shaketable_layers::scheduling::{Change, Error, Refusal, keys as layout};
use shaketable_tx::{
    Database, Db, Env,
    Isolation::Serializable,
    RangeOption, Transaction, TransactionOption, Tx,
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
    SixthAtSnapshot = "sixth-class-at-snapshot", "a student's classes are counted at snapshot", "foundationdb-rs examples/class-scheduling.rs, write skew";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole range", "a range that is longer than a batch";
    NestedDatabase = "nested-database", "switch drops the old class in a separate transaction", "addClass of the older guide of the data modeling guide";
    OwnWritesUnseen = "own-writes-unseen", "switch runs with read-your-writes disabled", "a transaction that cannot see itself";
    LookBeside = "look-beside", "a list in a transaction is read in another transaction", "a look-up that is given the database";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is repeated as a new one", "a timeout taken for a failure";
    SeatsKept = "seats-kept", "the seats read in the first attempt are kept for the retries", "state that survives a retry";
    BareStudent = "bare-student", "the classes of a student include those of all students with this prefix", "a prefix without its end";
    SeatsCutOff = "seats-cut-off", "seats are stored in 16 bits", "a number that outgrows its field";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(planted: Planted, signup: &Signups, tx: &Tx, op: &Op) -> Result<Answer, Error> {
    let scheduling = scheduling();
    let keys = scheduling.keys();
    Ok(match (planted, op) {
        (Planted::AddClassAsPrinted, Op::AddClass(class, seats)) => {
            let class = signup.class(*class);
            layout::check_name(&class)?;
            tx.set(&keys.course(&class), &layout::pack_seats(*seats));
            Answer::Change(Change::Made)
        }
        (Planted::InitAsPrinted, Op::Init) => {
            for all in [keys.courses(), keys.attendances()] {
                tx.clear_range(&all.begin.key, &all.end.key);
            }
            signup.call(tx, op).await?
        }
        (Planted::FirstBatch, Op::Available(..) | Op::Signup(..) | Op::Drop(..) | Op::Switch(..)) => {
            signup.call(&flawed(tx, Flaw::FirstBatch, everything()), op).await?
        }
        (Planted::SnapshotReads, Op::Signup(..) | Op::Drop(..) | Op::Switch(..)) => {
            signup.call(&weakened(tx.clone(), everything()), op).await?
        }
        (Planted::SixthAtSnapshot, Op::Signup(s, _) | Op::Switch(s, ..)) => {
            let counted = only(keys.attendances_of(&student(*s)).begin.key);
            signup.call(&weakened(tx.clone(), [counted]), op).await?
        }
        (Planted::SeatsCutOff, Op::AddClass(class, seats)) => {
            signup.call(tx, &Op::AddClass(*class, *seats & 0xffff)).await?
        }
        (Planted::BareStudent, Op::ClassesOf(s)) => {
            let whole = keys.attendances_of(&student(*s)).begin.key;
            // Without the byte that ends the name, and the one with which a range begins.
            let bare = &whole[..whole.len() - 2];
            let range = RangeOption::new(bare.to_vec(), strinc(bare).unwrap_or_default());
            let rows = tx.get_range_all(range, Serializable).await?;
            let classes = rows.iter().map(|row| Ok(keys.student_and_class(&row.key)?.1));
            contents(&classes.collect::<Result<Vec<_>, Error>>()?)
        }
        (Planted::SwitchAsPrinted | Planted::SwitchKeepsHalf, Op::Switch(s, old, new)) => {
            let switched = signup.call(tx, op).await;
            let Err(Error::Refused(refusal)) = &switched else { return switched };
            // The tutorial does not check these.
            let unchecked =
                matches!(refusal, Refusal::SameClass | Refusal::NotTakingOld | Refusal::AlreadyTakingNew);
            if unchecked != (planted == Planted::SwitchAsPrinted) {
                return switched;
            }
            signup.call(tx, &Op::Drop(*s, *old)).await?;
            if unchecked {
                signup.call(tx, &Op::Signup(*s, *new)).await?;
            }
            Answer::Switched
        }
        _ => signup.call(tx, op).await?,
    })
}

/// Performs the calls of one transaction with the bug, if the bug affects more than one transaction.
pub async fn apply_planted(
    planted: Planted,
    signup: &Signups,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = &session.database().clone();
    let env = db.env();
    let named = |op: &Op| if let Op::Anyway(op) = op { (**op).clone() } else { op.clone() };
    let changes = |op: &Op| matches!(named(op), Op::Signup(..) | Op::Drop(..) | Op::Switch(..));
    let switches = ops.iter().any(|op| matches!(named(op), Op::Switch(..)));
    let reads_only = ops.iter().all(Signups::is_read_only);
    Some(match planted {
        Planted::NoOpRecord if ops.iter().any(changes) => {
            ran(db.run(|tx, _| async move { all(signup, &tx, env, ops).await }).await)
        }
        Planted::TimeoutIsRefusal | Planted::RetryAsNew if !reads_only => {
            let mut right = async || {
                told(session.apply(|tx| async move { all(signup, &tx, env, ops).await.map(Recorded) }).await)
            };
            match (planted, right().await) {
                (Planted::TimeoutIsRefusal, Outcome::Unknown(e)) => Outcome::Failed(e),
                (_, Outcome::Unknown(_)) => right().await,
                (_, known) => known,
            }
        }
        Planted::OwnWritesUnseen if switches => {
            // If it cannot begin here, it cannot begin correctly either.
            let op = session.begin().await.ok()?;
            let slots = &session.slots().clone();
            let ran = db.run(|tx, _| async move {
                // The option must be set before any operation, so that the session's own loop cannot set it.
                tx.set_option(TransactionOption::ReadYourWritesDisable)?;
                Ok::<_, Error>(match once::check(&tx, slots, op).await? {
                    once::Check::Done(answer) => once::PendingAnswer::ready(answer),
                    once::Check::New(permit) => {
                        let answers = all(signup, &tx, env, ops).await?;
                        once::record(&tx, permit, Recorded(answers))?
                    }
                })
            });
            let ran = ran.await;
            told(session.conclude(op, ran).await)
        }
        Planted::NestedDatabase | Planted::LookBeside if !reads_only => {
            let apart =
                session.apply(|tx| async move { apart(planted, signup, db, tx, ops).await.map(Recorded) });
            told(apart.await)
        }
        Planted::SeatsKept => {
            let [op @ (Op::Signup(_, class) | Op::Drop(_, class))] = ops else { return None };
            let (kept, course) = (&Mutex::new(None), &scheduling().keys().course(&signup.class(*class)));
            let done = session.apply(|tx| async move {
                let known: Option<Bytes> = kept.lock().clone();
                let seats = if known.is_some() { known } else { tx.get(course, Serializable).await? };
                seats.iter().for_each(|seats| tx.set(course, seats));
                *kept.lock() = seats;
                signup.call(&tx, op).await.map(|answer| Recorded(vec![answer]))
            });
            told(done.await)
        }
        _ => return None,
    })
}

/// All calls in one transaction, performed correctly.
async fn all(signup: &Signups, tx: &Tx, env: &Env, ops: &[Op]) -> Result<Vec<Answer>, Error> {
    in_order(ops, |op| signup.perform(tx, env, op, Serializable)).await
}

/// All calls in one transaction, except that looks, or the first half of a switch, have separate ones.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
fn apart<'a>(
    planted: Planted,
    signup: &'a Signups,
    db: &'a Db,
    tx: Tx,
    ops: &'a [Op],
) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send + 'a {
    async move {
        let (env, scheduling, mut answers) = (db.env(), &scheduling(), Vec::new());
        for op in ops {
            answers.push(match (planted, op) {
                (Planted::LookBeside, op) if Signups::is_read_only(op) => {
                    let read =
                        db.run(|own, _| async move { signup.perform(&own, env, op, Serializable).await });
                    read.await.map_err(|e| e.error)?
                }
                (Planted::NestedDatabase, Op::Switch(s, old, new)) => {
                    let (s, old, new) = (&student(*s), &signup.class(*old), &signup.class(*new));
                    let taken = scheduling.classes_of(&tx, s).await?;
                    match () {
                        () if old == new => return Err(Refusal::SameClass.into()),
                        () if !taken.contains(old) => return Err(Refusal::NotTakingOld.into()),
                        () if taken.contains(new) => return Err(Refusal::AlreadyTakingNew.into()),
                        () => {}
                    }
                    let dropped = db.run(|tx, _| async move { scheduling.drop(&tx, s, old).await });
                    dropped.await.map_err(|e| e.error)?;
                    scheduling.signup(&tx, s, new).await?;
                    Answer::Switched
                }
                _ => signup.perform(&tx, env, op, Serializable).await?,
            });
        }
        Ok(answers)
    }
}
