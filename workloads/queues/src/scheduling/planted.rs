//! Planted bugs: class scheduling implemented or used wrongly, as the tutorial is printed, as in a published
//! example, or as is easily done by mistake.

use super::{
    Answer, Op, Signups,
    client::{page, scheduling},
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
use shaketable_layers::scheduling::{
    Change, Error, Page, Refusal,
    keys::{check_name, pack_seats},
};
use shaketable_tx::{
    Database, Env,
    Isolation::Serializable,
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
    let scheduling = scheduling();
    let keys = scheduling.keys();
    Ok(match (planted, op) {
        (Planted::AddClassAsPrinted, Op::AddClass(class, seats)) => {
            let class = signup.class(*class);
            check_name(&class)?;
            tx.set(&keys.course(&class), &pack_seats(*seats));
            Answer::Change(Change::Made)
        }
        (Planted::InitAsPrinted, Op::Init) => {
            for all in [keys.courses(), keys.attendances()] {
                tx.clear_range(&all.begin.key, &all.end.key);
            }
            signup.call(tx, op).await?
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
        (Planted::PageSkips, Op::Available(Some(after), most)) => {
            let behind = signup.class(*after) + "\u{10ffff}";
            let Page { classes, next } = scheduling.available_classes(tx, Some(&behind), *most).await?;
            page(&classes, next.as_ref())
        }
        (Planted::FullIsListed, Op::Available(None, most)) => {
            let rows = tx.get_range_all(keys.courses().limit((*most).max(1)), Serializable).await?;
            let classes = rows.iter().map(|row| keys.class_of_course(&row.key));
            let classes = classes.collect::<Result<Vec<_>, _>>()?;
            page(&classes, classes.last().filter(|_| classes.len() == (*most).max(1)))
        }
        (Planted::SeatFirst, Op::Signup(s, class)) => {
            let signed = signup.call(tx, op).await;
            if let Err(Error::Refused(_)) = signed {
                tx.set(&keys.attendance(&student(*s), &signup.class(*class)), b"");
            }
            signed?
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
            let class = |row: &KeyValue| Ok(specimen::Content::from(&keys.student_and_class(&row.key)?.1));
            Answer::Classes(rows.iter().map(class).collect::<Result<_, Error>>()?)
        }
        (Planted::SwitchAsPrinted, Op::Switch(s, old, new)) => match signup.call(tx, op).await {
            Err(Error::Refused(refusal)) if is_odd(&refusal) => {
                signup.call(tx, &Op::Drop(*s, *old)).await?;
                signup.call(tx, &Op::Signup(*s, *new)).await?;
                Answer::Switched
            }
            switched => switched?,
        },
        (Planted::SwitchKeepsHalf | Planted::RefusedSwitchDrops, Op::Switch(s, old, _)) => {
            let switched = signup.call(tx, op).await;
            match &switched {
                Err(Error::Refused(refusal)) if !is_odd(refusal) => {
                    signup.call(tx, &Op::Drop(*s, *old)).await?;
                }
                _ => return switched,
            }
            if planted == Planted::RefusedSwitchDrops {
                return switched;
            }
            Answer::Switched
        }
        _ => signup.call(tx, op).await?,
    })
}

/// Whether a switch is refused for a reason that the tutorial does not check.
fn is_odd(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::SameClass | Refusal::NotTakingOld | Refusal::AlreadyTakingNew)
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
            let [op @ (Op::Signup(_, class) | Op::Drop(_, class))] = ops else { return None };
            let (kept, course) = (&Mutex::new(None), &scheduling().keys().course(&signup.class(*class)));
            let done = session.apply(|tx| async move {
                let known: Option<Option<Bytes>> = kept.lock().clone();
                let seats = match known {
                    Some(seats) => seats,
                    None => tx.get(course, Serializable).await?,
                };
                *kept.lock() = Some(seats.clone());
                seats.iter().for_each(|seats| tx.set(course, seats));
                signup.call(&tx, op).await.map(|answer| Recorded(vec![answer]))
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
        let scheduling = &scheduling();
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            let Op::Switch(s, old, new) = op else {
                answers.push(signup.perform(&tx, env, op, Serializable).await?);
                continue;
            };
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

/// Converts FoundationDB's errors, so that the retry loop recognizes them.
fn lift(error: once::Error) -> Error {
    error.fdb().map_or(Error::Once(error), Error::Fdb)
}
