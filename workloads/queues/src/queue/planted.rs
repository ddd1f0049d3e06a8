//! Planted bugs: queues implemented or used wrongly, as the recipe is printed, as in published examples, or
//! as is easily done by mistake.

use super::{
    Answer, Batch, Look, Op, Queue, Spot,
    operations::{spot, told},
};
use crate::shared::{in_order, isolation, key_below, one_call, seen_before};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp};
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, Specimen, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::queue::{Error, Item, ItemId, MAX_VALUE_BYTES, Order};
use shaketable_sim::proto::Mutation;
use shaketable_tx::{
    ConflictRangeType, Database, Db, Env,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, Transaction, Tx,
    limits::TooLarge,
    once::Session,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two dequeues that run side by side in one transaction return one item", "two futures in one transaction";
    EnqueueAsPrinted = "enqueue-as-printed", "the random part of the key is drawn in the transaction function, and nothing is recorded", "the recipe's enqueue";
    DequeueAsPrinted = "dequeue-as-printed", "an item whose removal had an unknown result is lost to a retry", "the recipe's dequeue";
    SnapshotDequeue = "snapshot-dequeue", "the first item is read at snapshot and cleared blindly", "a blind clear";
    OverwrittenFlag = "overwritten-flag", "the record is consulted only if the last failure may have committed", "foundationdb-rs 0.11 MaybeCommitted";
    IdInside = "id-inside", "the record is kept under an id that each attempt draws anew", "an id made where it is used";
    AnswerOfRetry = "answer-of-retry", "a retry that finds its record returns what it sees itself", "the answer of the last attempt";
    RecordAtSnapshot = "record-at-snapshot", "the record is read at snapshot, so that a late attempt does not conflict", "a record read without isolation";
    RecordCleanedUp = "record-cleaned-up", "the record is removed as soon as the result is unknown", "a record cleaned up too soon";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is repeated as a new one", "a timeout taken for a failure";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole queue", "a range that is longer than a batch";
    TwoTransactions = "two-transactions", "the item is read in one transaction and cleared in another", "foundationdb-rs examples/micro-queue.rs";
    CountIsIndex = "count-is-index", "the index of a new item is the number of items", "foundationdb-rs examples/micro-queue.rs";
    ShortSuffix = "short-suffix", "the random part of the key has one of two values", "a suffix that is not random enough";
    SameRank = "same-rank", "items of one transaction are ordered only by the versionstamp", "several items in one transaction in commit order";
    EmptyIsNothing = "empty-is-nothing", "an empty value is dequeued as if there were no item", "absent and empty treated alike";
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is performed at snapshot", "a snapshot read in a composed look-up";
    LookApart = "look-apart", "a look is performed in a separate transaction, before the writes that it follows", "a look-up that does not compose";
    WideRange = "wide-range", "the queue's range includes all keys with its prefix", "prefix confusion";
    ItemAlone = "item-alone", "a dequeue conflicts with another dequeue of the item, but not with an item inserted before it", "a conflict range dropped";
    LimitIncluded = "limit-included", "a value of exactly the limit is refused", "a limit off by one";
    LastOfBatch = "last-of-batch", "of more than six items that are enqueued at once the last one is lost", "a loop that ends one too early";
}

impl Planted {
    /// The order that the bug needs, if it needs one.
    pub(super) fn order(self) -> Option<Order> {
        use Planted::*;
        match self {
            EnqueueAsPrinted | DequeueAsPrinted | CountIsIndex | ShortSuffix | ItemAlone => {
                Some(Order::Index)
            }
            SameRank => Some(Order::Commit),
            _ => None,
        }
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform(
    planted: Planted,
    workload: &Queue,
    tx: &Tx,
    env: &Env,
    op: &Op,
) -> Result<Option<Answer>, Error> {
    use Planted::*;
    let queue = workload.queue();
    Ok(Some(match (planted, op) {
        (EnqueueAsPrinted | CountIsIndex | ShortSuffix | SameRank, Op::Enqueue(batch)) => {
            enqueue(planted, workload, tx, env, batch).await?
        }
        (LimitIncluded, Op::Enqueue(batch)) => {
            let longest = batch.items().map(|(_, value)| value.len()).max();
            let Some(bytes @ MAX_VALUE_BYTES) = longest else { return Ok(None) };
            return Err(TooLarge::Value { key: String::new(), bytes, limit: MAX_VALUE_BYTES }.into());
        }
        (LastOfBatch, Op::Enqueue(batch)) if batch.items > 6 => {
            let fewer = Op::Enqueue(Batch { items: batch.items - 1, ..*batch });
            let mut answer = workload.right(tx, env, &fewer).await?;
            if let Answer::Enqueued(spots) = &mut answer
                && let Some(last) = spots.last().copied()
            {
                spots.push(if let Spot::Index(index) = last { Spot::Index(index + 1) } else { last });
            }
            answer
        }
        (SnapshotDequeue, Op::Dequeue) | (PeekAtSnapshot, Op::Look(Look::First | Look::IsEmpty, _)) => {
            workload.right(&weakened(tx.clone(), everything()), env, op).await?
        }
        (ItemAlone, Op::Dequeue) => {
            let first = queue.peek(tx, Snapshot).await?;
            if let Some(first) = &first {
                let key = key_below(queue.subspace(), &first.position);
                tx.add_conflict_key(&key, ConflictRangeType::Read)?;
                tx.clear(&key);
            }
            Answer::First(first.as_ref().map(told))
        }
        (EmptyIsNothing, Op::Dequeue) => {
            let item = queue.dequeue(tx).await?;
            Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told))
        }
        (FirstBatch, Op::Look(Look::Len, _)) => {
            workload.right(&flawed(tx, Flaw::FirstBatch, everything()), env, op).await?
        }
        (WideRange, Op::Look(Look::Len, snapshot)) => {
            let (begin, mut end) = queue.subspace().range();
            end.push(0xff);
            let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation(*snapshot)).await;
            Answer::Len(rows.map_err(|_| Error::OwnItemsUnreadable)?.len())
        }
        _ => return Ok(None),
    }))
}

/// Enqueues, with a bug in how the key is made.
async fn enqueue(
    planted: Planted,
    workload: &Queue,
    tx: &Tx,
    env: &Env,
    batch: &Batch,
) -> Result<Answer, Error> {
    let (queue, tx) = (workload.queue(), &one_call(tx, false).await);
    tx.get_read_version().await?;
    let mut spots = Vec::new();
    for (name, value) in batch.items() {
        let mut id = workload.id(env, name);
        match planted {
            Planted::ShortSuffix => id.0 = [id.0[0] & 1; 16],
            Planted::EnqueueAsPrinted => id.0[15] = env.random_u64() as u8,
            _ => {}
        }
        spots.push(match planted {
            Planted::CountIsIndex => {
                let index = queue.len(tx, Snapshot).await? as i64;
                tx.set(&queue.subspace().pack(&(index, TupleBytes::from(&id.0[..]))), &value);
                Spot::Index(index)
            }
            Planted::SameRank => {
                let key = (Versionstamp::incomplete(0), 0, TupleBytes::from(&id.0[..]));
                let key = queue.subspace().pack_with_versionstamp(&key);
                tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
                Spot::Commit(None)
            }
            _ => spot(&queue.enqueue(tx, id, &value).await?),
        });
    }
    Ok(Answer::Enqueued(spots))
}

/// The id that the model expects, of an item that the bug may have stored elsewhere.
pub fn known(planted: Option<Planted>, mut id: ItemId) -> ItemId {
    // That an id belongs to another attempt is not the point; a second item with the same name is.
    if planted == Some(Planted::EnqueueAsPrinted) {
        id.0[15] = 0;
    }
    id
}

/// Performs the calls of a transaction with the bug; `None` if the bug does not change them.
pub async fn apply_planted(
    planted: Planted,
    workload: &Queue,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    use Planted::*;
    let db = &session.database().clone();
    let (env, queue) = (db.env(), &workload.queue());
    let enqueues = ops.iter().all(|op| matches!(op, Op::Enqueue(_)));
    let dequeues = ops.iter().all(|op| *op == Op::Dequeue);
    let looks = ops.iter().all(|op| matches!(op, Op::Look(..)));
    let record = || done().pack(&TupleBytes::from(&ItemId::draw(env).0[..]));
    Some(match (planted, ops) {
        (TimeoutIsRefusal | RetryAsNew, _) if !looks => {
            let mut right = async || {
                let applied = session.apply(|tx| async move {
                    in_order(ops, |op| workload.right(&tx, env, op)).await.map(Recorded)
                });
                specimen::told(applied.await)
            };
            match (planted, right().await) {
                (TimeoutIsRefusal, Outcome::Unknown(e)) => Outcome::Failed(e),
                (_, Outcome::Unknown(_)) => right().await,
                (_, known) => known,
            }
        }
        (EnqueueAsPrinted, [Op::Enqueue(_), ..]) | (DequeueAsPrinted, [Op::Dequeue, ..])
            if enqueues || dequeues =>
        {
            let run = db.run(|tx, _| async move {
                in_order(ops, |op| workload.perform(&tx, env, op, Serializable)).await
            });
            ran(run.await)
        }
        (IdInside, _) if enqueues => {
            let run = db
                .run(|tx, _| async move { recorded(workload, &tx, env, &record(), Serializable, ops).await });
            ran(run.await)
        }
        (RecordAtSnapshot, _) if enqueues => {
            let record = &record();
            loop {
                let run =
                    db.run(|tx, _| async move { recorded(workload, &tx, env, record, Snapshot, ops).await });
                match run.await {
                    // It is retried with the same record, which is correct.
                    Err(e) if e.maybe_committed => {}
                    run => break ran(run),
                }
            }
        }
        (OverwrittenFlag | AnswerOfRetry | RecordCleanedUp, _) if dequeues => {
            let (record, known) = (&record(), &AtomicBool::new(false));
            let run = db.run(|tx, attempt| async move {
                let consults = match planted {
                    RecordCleanedUp => !attempt.maybe_committed,
                    // An attempt that fails for another reason sets the flag back.
                    OverwrittenFlag => attempt.maybe_committed && !known.swap(true, Relaxed),
                    _ => true,
                };
                if !consults {
                    tx.clear(record);
                }
                // The bug that overwrites the flag reads the queue first, and removes its record in the
                // commit, which therefore can conflict.
                let first = queue.peek(&tx, Serializable).await?;
                let is_recorded = tx.get(record, Serializable).await?.is_some();
                let answers = recorded(workload, &tx, env, record, Serializable, ops).await?;
                let seen = Answer::First(first.as_ref().map(told));
                match planted {
                    OverwrittenFlag if is_recorded => tx.clear(record),
                    AnswerOfRetry if is_recorded => return Ok(vec![seen; ops.len()]),
                    _ => {}
                }
                Ok::<_, Error>(answers)
            });
            ran(run.await)
        }
        (TwoTransactions, [Op::Dequeue]) => {
            let look = |tx| async move { queue.peek(&tx, Serializable).await };
            let act = |tx: Tx, seen: Option<Item>| async move {
                seen.iter().for_each(|item| tx.clear(&key_below(queue.subspace(), &item.position)));
                Ok(vec![Answer::First(seen.as_ref().map(told))])
            };
            seen_before(session, look, act).await
        }
        (LookApart, [before @ .., look @ Op::Look(..)]) if !before.is_empty() => {
            let look = |tx| async move { workload.right(&tx, env, look).await };
            let act = |tx, seen| async move {
                let answers = in_order(before, |op| workload.right(&tx, env, op)).await?;
                Ok([answers, vec![seen]].concat())
            };
            seen_before(session, look, act).await
        }
        _ => return None,
    })
}

/// Where the bugs store their records.
fn done() -> Subspace {
    Subspace::from("done")
}

/// Whether a transaction only removes such records.
pub fn only_tidies_up(mutations: &[Mutation]) -> bool {
    let tidies = |m: &Mutation| matches!(m, Mutation::ClearRange(range) if done().is_start_of(&range.begin));
    mutations.iter().all(tidies)
}

/// Performs the calls unless there is a record of them. The record contains their answers.
async fn recorded(
    workload: &Queue,
    tx: &Tx,
    env: &Env,
    record: &[u8],
    isolation: Isolation,
    ops: &[Op],
) -> Result<Vec<Answer>, Error> {
    if let Some(answers) = tx.get(record, isolation).await? {
        return serde_json::from_slice(&answers).map_err(|_| Error::Foreign(Bytes::copy_from_slice(record)));
    }
    let answers = in_order(ops, |op| workload.right(tx, env, op)).await?;
    // Plain data: serializing it cannot fail.
    tx.set(record, &serde_json::to_vec(&answers).unwrap_or_default());
    Ok(answers)
}
