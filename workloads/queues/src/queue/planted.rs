//! Planted bugs: queues implemented or used wrongly, as the recipe is printed, as in published examples, or
//! as is easily done by mistake.

use super::{
    Answer, Batch, Look, Op, Queue, Spot,
    operations::{spot, told},
};
use crate::shared::{in_order, isolation, item_id, key_below, seen_before};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp};
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::queue::{Error, Item, ItemId, MAX_VALUE_BYTES, Order};
use shaketable_sim::proto::Mutation;
use shaketable_tx::{
    ConflictRangeType, Database, Env,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, RetryError, RunError, Transaction,
    limits::TooLarge,
    once::Session,
};

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
    TiesInside = "ties-inside", "the last index is read once for several items of a call", "several items in one transaction";
    SerializableLastIndex = "serializable-last-index", "the last index is read serializably, so that enqueues conflict", "a fix gone too far";
    SameRank = "same-rank", "items of one transaction are ordered only by the versionstamp", "several items in one transaction in commit order";
    EmptyIsNothing = "empty-is-nothing", "an empty value is dequeued as if there were no item", "absent and empty treated alike";
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is performed at snapshot", "a snapshot read in a composed look-up";
    LookApart = "look-apart", "a look is performed in a separate transaction, before the writes that it follows", "a look-up that does not compose";
    WideRange = "wide-range", "the queue's range includes all keys with its prefix", "prefix confusion";
    ItemAlone = "item-alone", "a dequeue conflicts with another dequeue of the item, but not with an item inserted before it", "a conflict range dropped";
    LimitIncluded = "limit-included", "a value of exactly the limit is refused", "a limit off by one";
    LimitBeyond = "limit-beyond", "a value one byte beyond the limit is accepted", "a limit off by one";
    NoIndexLeft = "no-index-left", "after the largest index comes the smallest", "a counter that wraps around";
    LengthEnds = "length-ends", "a queue of more than 24 items is as long as 24", "a limit that tests never reach";
    LastOfBatch = "last-of-batch", "of more than six items that are enqueued at once the last one is lost", "a loop that ends one too early";
}

impl Planted {
    /// The order that the bug needs, if it needs one.
    pub(super) fn order(self) -> Option<Order> {
        use Planted::*;
        match self {
            EnqueueAsPrinted
            | DequeueAsPrinted
            | CountIsIndex
            | ShortSuffix
            | TiesInside
            | SerializableLastIndex
            | ItemAlone
            | NoIndexLeft => Some(Order::Index),
            SameRank => Some(Order::Commit),
            _ => None,
        }
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Queue,
    tx: &T,
    env: &Env,
    op: &Op,
) -> Result<Option<Answer>, Error> {
    let queue = workload.queue();
    Ok(Some(match (planted, op) {
        (
            Planted::CountIsIndex
            | Planted::ShortSuffix
            | Planted::TiesInside
            | Planted::SerializableLastIndex
            | Planted::SameRank
            | Planted::NoIndexLeft,
            Op::Enqueue(batch),
        ) => enqueue(planted, workload, tx, env, batch).await?,
        (Planted::LimitIncluded, Op::Enqueue(batch)) => {
            let longest = batch.items().map(|(_, value)| value.len()).max();
            let Some(bytes @ MAX_VALUE_BYTES) = longest else { return Ok(None) };
            return Err(TooLarge::Value { key: String::new(), bytes, limit: MAX_VALUE_BYTES }.into());
        }
        (Planted::LimitBeyond, Op::Enqueue(batch)) => {
            let beyond = batch.items().find(|(_, value)| value.len() == MAX_VALUE_BYTES + 1);
            let Some((name, value)) = beyond else { return Ok(None) };
            let at = queue.enqueue(tx, workload.id(env, name), b"").await?;
            if workload.order == Order::Index {
                tx.set(&key_below(queue.subspace(), &at), &value);
            }
            Answer::Enqueued(vec![spot(&at)])
        }
        (Planted::LengthEnds, Op::Look(Look::Len, snapshot)) => {
            Answer::Len(queue.len(tx, isolation(*snapshot)).await?.min(24))
        }
        (Planted::LastOfBatch, Op::Enqueue(batch)) if batch.items > 6 => {
            let mut spots = Vec::new();
            for (name, value) in batch.items() {
                let is_last = usize::from(batch.items) == spots.len() + 1;
                spots.push(match spots.last() {
                    Some(Spot::Index(index)) if is_last => Spot::Index(index + 1),
                    Some(last) if is_last => *last,
                    _ => spot(&queue.enqueue(tx, workload.id(env, name), &value).await?),
                });
            }
            Answer::Enqueued(spots)
        }
        (Planted::SnapshotDequeue, Op::Dequeue)
        | (Planted::PeekAtSnapshot, Op::Look(Look::First | Look::IsEmpty, _)) => {
            workload.right(&weakened(tx.clone(), everything()), env, op).await?
        }
        (Planted::ItemAlone, Op::Dequeue) => {
            let first = queue.peek(tx, Snapshot).await?;
            if let Some(first) = &first {
                let key = key_below(queue.subspace(), &first.position);
                tx.add_conflict_key(&key, ConflictRangeType::Read)?;
                tx.clear(&key);
            }
            Answer::First(first.as_ref().map(told))
        }
        (Planted::EmptyIsNothing, Op::Dequeue) => {
            let item = queue.dequeue(tx).await?;
            Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told))
        }
        (Planted::FirstBatch, Op::Look(Look::Len, _)) => {
            workload.right(&flawed(tx, Flaw::FirstBatch, everything()), env, op).await?
        }
        (Planted::WideRange, Op::Look(Look::Len, snapshot)) => {
            let (begin, mut end) = queue.subspace().range();
            end.push(0xff);
            let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation(*snapshot)).await;
            Answer::Len(rows.map_err(|_| Error::OwnItemsUnreadable)?.len())
        }
        _ => return Ok(None),
    }))
}

/// Enqueues, with a bug in how the key is made.
async fn enqueue<T: Transaction>(
    planted: Planted,
    workload: &Queue,
    tx: &T,
    env: &Env,
    batch: &Batch,
) -> Result<Answer, Error> {
    let queue = workload.queue();
    if planted == Planted::SameRank {
        tx.get_read_version().await?;
    }
    let last = RangeOption::from(queue.subspace().range()).reversed().limit(1);
    let index_of = |key: &[u8]| queue.subspace().unpack::<(i64, TupleBytes<'_>)>(key).map_or(0, |(n, _)| n);
    let mut spots: Vec<Spot> = Vec::new();
    for (name, value) in batch.items() {
        let id = workload.id(env, name);
        let place_at = |index: i64| {
            tx.set(&queue.subspace().pack(&(index, TupleBytes::from(&id.0[..]))), &value);
            Spot::Index(index)
        };
        spots.push(match planted {
            Planted::CountIsIndex => place_at(queue.len(tx, Snapshot).await? as i64),
            Planted::NoIndexLeft => {
                let rows = tx.get_range_all(last.clone(), Snapshot).await?;
                place_at(rows.first().map_or(0, |row| index_of(&row.key)).wrapping_add(1))
            }
            Planted::TiesInside => match spots.first() {
                Some(Spot::Index(index)) => place_at(*index),
                _ => spot(&queue.enqueue(tx, id, &value).await?),
            },
            Planted::SameRank => {
                let key = (Versionstamp::incomplete(0), 0, TupleBytes::from(&id.0[..]));
                let key = queue.subspace().pack_with_versionstamp(&key);
                tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
                Spot::Commit(None)
            }
            Planted::SerializableLastIndex => {
                tx.get_range_all(last.clone(), Serializable).await?;
                spot(&queue.enqueue(tx, id, &value).await?)
            }
            Planted::ShortSuffix => spot(&queue.enqueue(tx, ItemId([id.0[0] & 1; 16]), &value).await?),
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
pub async fn apply_planted<D: Database>(
    planted: Planted,
    workload: &Queue,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let (db, env) = (&db, db.env());
    let enqueues = ops.iter().all(|op| matches!(op, Op::Enqueue(_)));
    let dequeues = ops.iter().all(|op| *op == Op::Dequeue);
    match planted {
        Planted::TimeoutIsRefusal | Planted::RetryAsNew
            if !ops.iter().all(|op| matches!(op, Op::Look(..))) =>
        {
            let outcome = right(workload, session, ops).await;
            Some(match (planted, outcome) {
                (Planted::TimeoutIsRefusal, Outcome::Unknown(e)) => Outcome::Failed(e),
                (Planted::RetryAsNew, Outcome::Unknown(_)) => right(workload, session, ops).await,
                (_, known) => known,
            })
        }
        Planted::EnqueueAsPrinted if enqueues => {
            let run = db.run(|tx, attempt| async move {
                let mut answers = Vec::new();
                for op in ops {
                    let Op::Enqueue(batch) = op else { continue };
                    let mut spots = Vec::new();
                    for (name, value) in batch.items() {
                        let mut id = item_id(name);
                        id.0[15] = attempt.number as u8;
                        spots.push(spot(&workload.queue().enqueue(&tx, id, &value).await?));
                    }
                    answers.push(Answer::Enqueued(spots));
                }
                Ok::<_, Error>(answers)
            });
            Some(ran(run.await))
        }
        Planted::IdInside if enqueues => {
            let run = db.run(|tx, _| async move {
                let record = done().pack(&TupleBytes::from(&ItemId::draw(env).0[..]));
                recorded(workload, &tx, env, &record, Serializable, ops).await
            });
            Some(ran(run.await))
        }
        Planted::RecordAtSnapshot if enqueues => {
            let number = ops.iter().find_map(|op| match op {
                Op::Enqueue(batch) => Some(batch.number()),
                _ => None,
            })?;
            let record = &done().pack(&number);
            loop {
                let run =
                    db.run(|tx, _| async move { recorded(workload, &tx, env, record, Snapshot, ops).await });
                // An unknown outcome is retried with the same record, which is correct.
                match run.await {
                    Err(e) if e.maybe_committed => continue,
                    run => break Some(ran(run)),
                }
            }
        }
        Planted::DequeueAsPrinted if dequeues => Some(ran(db
            .run(|tx, _| async move { in_order(ops, |op| workload.right(&tx, env, op)).await })
            .await)),
        Planted::OverwrittenFlag | Planted::AnswerOfRetry | Planted::RecordCleanedUp if dequeues => {
            let record = done().pack(&TupleBytes::from(&ItemId::draw(env).0[..]));
            Some(ran(dequeue_recorded(planted, workload, db, &record, ops).await))
        }
        Planted::TwoTransactions if *ops == [Op::Dequeue] => {
            let look = |tx| async move { workload.queue().peek(&tx, Serializable).await };
            let act = |tx: D::Transaction, seen: Option<Item>| async move {
                if let Some(item) = &seen {
                    tx.clear(&key_below(workload.queue().subspace(), &item.position));
                }
                Ok(vec![Answer::First(seen.as_ref().map(told))])
            };
            Some(seen_before(session, look, act).await)
        }
        Planted::LookApart => {
            let [before @ .., look @ Op::Look(..)] = ops else { return None };
            if before.is_empty() {
                return None;
            }
            let look = |tx| async move { workload.right(&tx, env, look).await };
            let act = |tx, seen| async move {
                let answers = in_order(before, |op| workload.right(&tx, env, op)).await?;
                Ok([answers, vec![seen]].concat())
            };
            Some(seen_before(session, look, act).await)
        }
        _ => None,
    }
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

/// Performs the calls exactly once.
async fn right<D: Database>(
    workload: &Queue,
    session: &mut Session<D>,
    ops: &[Op],
) -> Outcome<specimen::Answer<Answer>> {
    let db = session.database().clone();
    let env = db.env();
    let applied = session
        .apply(|tx| async move { in_order(ops, |op| workload.right(&tx, env, op)).await.map(Recorded) });
    specimen::told(applied.await)
}

/// Performs the calls unless there is a record of them. The record contains their answers.
async fn recorded<T: Transaction>(
    workload: &Queue,
    tx: &T,
    env: &Env,
    record: &[u8],
    isolation: Isolation,
    ops: &[Op],
) -> Result<Vec<Answer>, Error> {
    if let Some(answers) = tx.get(record, isolation).await? {
        return read(record, &answers);
    }
    let answers = in_order(ops, |op| workload.right(tx, env, op)).await?;
    tx.set(record, &write(&answers));
    Ok(answers)
}

fn write(answers: &[Answer]) -> Vec<u8> {
    // Plain data: serializing it cannot fail.
    serde_json::to_vec(answers).unwrap_or_default()
}

fn read(record: &[u8], answers: &[u8]) -> Result<Vec<Answer>, Error> {
    serde_json::from_slice(answers).map_err(|_| Error::Foreign(Bytes::copy_from_slice(record)))
}

/// Dequeues with a record and a retry loop of its own.
async fn dequeue_recorded<D: Database>(
    planted: Planted,
    workload: &Queue,
    db: &D,
    record: &[u8],
    ops: &[Op],
) -> Result<Vec<Answer>, RunError<Error>> {
    let fail = |error: Error, maybe_committed| RunError { error, maybe_committed, attempts: 0 };
    let queue = workload.queue();
    let tx = db.create_transaction().map_err(|e| fail(e.into(), false))?;
    let (mut last_failure, mut ever) = (false, false);
    loop {
        let attempt = async {
            if planted == Planted::RecordCleanedUp && last_failure {
                tx.clear(record);
            }
            let consult = planted != Planted::OverwrittenFlag || last_failure;
            // The bug that overwrites the flag reads the queue first, and removes its record in the commit,
            // which therefore can conflict.
            if planted == Planted::OverwrittenFlag {
                queue.peek(&tx, Serializable).await?;
            }
            if consult && let Some(answers) = tx.get(record, Serializable).await? {
                if planted == Planted::OverwrittenFlag {
                    tx.clear(record);
                    tx.commit().await?;
                }
                return match planted {
                    Planted::AnswerOfRetry => {
                        let first = queue.peek(&tx, Serializable).await?;
                        Ok(ops.iter().map(|_| Answer::First(first.as_ref().map(told))).collect())
                    }
                    _ => read(record, &answers),
                };
            }
            let answers = in_order(ops, |op| workload.right(&tx, db.env(), op)).await?;
            tx.set(record, &write(&answers));
            tx.commit().await?;
            Ok(answers)
        };
        let error: Error = match attempt.await {
            Ok(answers) => return Ok(answers),
            Err(e) => e,
        };
        let Some(fdb) = error.fdb() else { return Err(fail(error, ever)) };
        last_failure = fdb.leaves_commit_unknown();
        ever |= last_failure;
        if let Err(e) = tx.on_error(fdb).await {
            return Err(fail(e.into(), ever));
        }
    }
}
