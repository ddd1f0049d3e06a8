//! Planted bugs: queues implemented or used wrongly, as the recipe is printed, as in published examples, or
//! as is easily done by mistake.

use super::{Batch, Item, Queue, QueueAnswer, QueueOp, Spot, shown_item, spot};
use crate::shared::{in_order, key_below, one_call, seen_before};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp};
use serde::de::DeserializeOwned;
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded},
};
use shaketable_layers::queue::{self as layer, Error, ItemId, MAX_VALUE_BYTES, Order};
use shaketable_tx::{ConflictRangeType, RunError, limits::TooLarge};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How a transaction ended; `None` if the bug does not change it.
type Ended = Option<Outcome<Answer<QueueAnswer>>>;

/// The order that the bug of this name needs, if it needs one.
pub(super) fn order(bug: &str) -> Option<Order> {
    match bug {
        "enqueue-as-printed" | "dequeue-as-printed" | "count-is-index" | "short-suffix" | "item-alone" => {
            Some(Order::Index)
        }
        "same-rank" => Some(Order::Commit),
        _ => None,
    }
}

#[shaketable::planted]
#[flaw(
    snapshot_dequeue,
    dequeue,
    AtSnapshot,
    "the first item is read at snapshot and cleared blindly",
    "a blind clear"
)]
#[flaw(
    first_batch,
    len,
    FirstBatch,
    "the first batch of a range read is taken for the whole queue",
    "a range that is longer than a batch"
)]
#[flaw(
    peek_at_snapshot,
    peek | is_empty,
    AtSnapshot,
    "a look at the first item before a write is performed at snapshot",
    "a snapshot read in a composed look-up"
)]
impl Queue {
    /// The random part of the key is drawn in the transaction function, and nothing is recorded.
    #[bug(enqueue | enqueue_some, "the recipe's enqueue")]
    async fn enqueue_as_printed(&self, db: &Db, batch: &Batch) -> Result<Vec<Spot>, RunError<Error>> {
        let env = db.env();
        db.run(|tx, _| async move {
            let suffixed = |mut id: ItemId| {
                id.0[15] = env.random_u64() as u8;
                id
            };
            self.enqueue_under(&tx, env, batch, suffixed).await
        })
        .await
    }

    /// An item whose removal had an unknown result is lost to a retry.
    #[bug(dequeue, "the recipe's dequeue")]
    async fn dequeue_as_printed(&self, db: &Db) -> Result<Option<Item>, RunError<Error>> {
        db.run(|tx, _| async move { self.dequeue(&tx).await }).await
    }

    /// The record is consulted only if the last failure may have committed.
    #[bug(dequeue, "foundationdb-rs 0.11 MaybeCommitted")]
    async fn overwritten_flag(&self, db: &Db) -> Result<Option<Item>, RunError<Error>> {
        let (record, known) = (&record(db.env()), &AtomicBool::new(false));
        db.run(|tx, attempt| async move {
            // An attempt that fails for another reason sets the flag back.
            if !attempt.maybe_committed || known.swap(true, Relaxed) {
                tx.clear(record);
            }
            // It reads the queue first, and removes its record in the commit, which therefore can conflict.
            self.peek(&tx, Serializable).await?;
            let is_recorded = tx.get(record, Serializable).await?.is_some();
            let first = recorded(&tx, record, Serializable, self.dequeue(&tx)).await?;
            if is_recorded {
                tx.clear(record);
            }
            Ok(first)
        })
        .await
    }

    /// The record is kept under an id that each attempt draws anew.
    #[bug(enqueue | enqueue_some, "an id made where it is used")]
    async fn id_inside(&self, db: &Db, batch: &Batch) -> Result<Vec<Spot>, RunError<Error>> {
        let env = db.env();
        db.run(|tx, _| async move {
            recorded(&tx, &record(env), Serializable, self.enqueue_some(&tx, env, batch)).await
        })
        .await
    }

    /// A retry that finds its record returns what it sees itself.
    #[bug(dequeue, "the answer of the last attempt")]
    async fn answer_of_retry(&self, db: &Db) -> Result<Option<Item>, RunError<Error>> {
        let record = &record(db.env());
        db.run(|tx, _| async move {
            let seen = self.peek(&tx, Serializable).await?;
            let is_recorded = tx.get(record, Serializable).await?.is_some();
            let first = recorded(&tx, record, Serializable, self.dequeue(&tx)).await?;
            Ok(if is_recorded { seen } else { first })
        })
        .await
    }

    /// The record is read at snapshot, so that a late attempt does not conflict.
    #[bug(enqueue | enqueue_some, "a record read without isolation")]
    async fn record_at_snapshot(&self, db: &Db, batch: &Batch) -> Result<Vec<Spot>, RunError<Error>> {
        let (env, record) = (db.env(), &record(db.env()));
        loop {
            let run = db.run(|tx, _| async move {
                recorded(&tx, record, Snapshot, self.enqueue_some(&tx, env, batch)).await
            });
            match run.await {
                // It is retried with the same record, which is correct.
                Err(e) if e.maybe_committed => {}
                run => return run,
            }
        }
    }

    /// The record is removed as soon as the result is unknown.
    #[bug(dequeue, "a record cleaned up too soon")]
    async fn record_cleaned_up(&self, db: &Db) -> Result<Option<Item>, RunError<Error>> {
        let record = &record(db.env());
        db.run(|tx, attempt| async move {
            if attempt.maybe_committed {
                tx.clear(record);
            }
            recorded(&tx, record, Serializable, self.dequeue(&tx)).await
        })
        .await
    }

    /// An unknown outcome is reported as a failure.
    #[bug(*, "a timeout reported as a failure")]
    async fn timeout_is_refusal(&self, session: &mut Session<Db>, ops: &[QueueOp]) -> Ended {
        Some(match self.rightly_applied(session, ops).await? {
            Outcome::Unknown(e) => Outcome::Failed(e),
            known => known,
        })
    }

    /// An operation whose outcome is unknown is repeated as a new one.
    #[bug(*, "a timeout taken for a failure")]
    async fn retry_as_new(&self, session: &mut Session<Db>, ops: &[QueueOp]) -> Ended {
        match self.rightly_applied(session, ops).await? {
            Outcome::Unknown(_) => self.rightly_applied(session, ops).await,
            known => Some(known),
        }
    }

    /// The item is read in one transaction and cleared in another.
    #[bug(dequeue, "foundationdb-rs examples/micro-queue.rs")]
    async fn two_transactions(&self, session: &mut Session<Db>) -> Outcome<Answer<Option<Item>>> {
        let queue = &self.layer();
        let look = |tx| async move { queue.peek(&tx, Serializable).await };
        let act = |tx: Tx, seen: Option<layer::Item>| async move {
            seen.iter().for_each(|item| tx.clear(&key_below(queue.subspace(), &item.position)));
            Ok(vec![seen.as_ref().map(shown_item)])
        };
        seen_before(session, look, act).await
    }

    /// The index of a new item is the number of items.
    #[bug(enqueue | enqueue_some, "foundationdb-rs examples/micro-queue.rs")]
    async fn count_is_index(&self, tx: &Tx, env: &Env, batch: &Batch) -> Result<Vec<Spot>, Error> {
        let (queue, tx) = (self.layer(), one_call(tx, false).await);
        let mut spots = Vec::new();
        for (name, value) in batch.items() {
            let index = queue.len(&tx, Snapshot).await? as i64;
            let id = self.id(env, name);
            tx.set(&queue.subspace().pack(&(index, TupleBytes::from(&id.0[..]))), &value);
            spots.push(Spot::Index(index));
        }
        Ok(spots)
    }

    /// The random part of the key has one of two values.
    #[bug(enqueue | enqueue_some, "a suffix that is not random enough")]
    async fn short_suffix(&self, tx: &Tx, env: &Env, batch: &Batch) -> Result<Vec<Spot>, Error> {
        self.enqueue_under(tx, env, batch, |id| ItemId([id.0[0] & 1; 16])).await
    }

    /// Items of one transaction are ordered only by the versionstamp.
    #[bug(enqueue | enqueue_some, "several items in one transaction in commit order")]
    async fn same_rank(&self, tx: &Tx, env: &Env, batch: &Batch) -> Result<Vec<Spot>, Error> {
        let tx = one_call(tx, false).await;
        tx.get_read_version().await?;
        let mut spots = Vec::new();
        for (name, value) in batch.items() {
            let id = self.id(env, name);
            let key = (Versionstamp::incomplete(0), 0, TupleBytes::from(&id.0[..]));
            let key = self.space().pack_with_versionstamp(&key);
            tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
            spots.push(Spot::Commit(None));
        }
        Ok(spots)
    }

    /// An empty value is dequeued as if there were no item.
    #[bug(dequeue, "absent and empty treated alike")]
    async fn empty_is_nothing(&self, tx: &Tx) -> Result<Option<Item>, Error> {
        let first = self.layer().dequeue(tx).await?;
        Ok(first.as_ref().filter(|item| !item.value.is_empty()).map(shown_item))
    }

    /// A look is performed in a separate transaction, before the writes that it follows.
    #[bug(*, "a look-up that does not compose")]
    async fn look_apart(&self, session: &mut Session<Db>, ops: &[QueueOp]) -> Ended {
        let [before @ .., last] = ops else { return None };
        if before.is_empty() || !Queue::is_read_only(last) {
            return None;
        }
        let env = &session.database().env().clone();
        let look = |tx| async move { self.done(&tx, env, last).await };
        let act = |tx, seen| async move {
            let answers = in_order(before, |op| self.done(&tx, env, op)).await?;
            Ok([answers, vec![seen]].concat())
        };
        Some(seen_before(session, look, act).await)
    }

    /// The queue's range includes all keys with its prefix.
    #[bug(len, "prefix confusion")]
    async fn wide_range(&self, tx: &Tx, isolation: Isolation) -> Result<usize, Error> {
        let (begin, mut end) = self.space().range();
        end.push(0xff);
        let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation).await;
        Ok(rows.map_err(|_| Error::OwnItemsUnreadable)?.len())
    }

    /// A dequeue conflicts with another dequeue of the item, but not with an item inserted before it.
    #[bug(dequeue, "a conflict range dropped")]
    async fn item_alone(&self, tx: &Tx) -> Result<Option<Item>, Error> {
        let queue = self.layer();
        let first = queue.peek(tx, Snapshot).await?;
        if let Some(first) = &first {
            let key = key_below(queue.subspace(), &first.position);
            tx.add_conflict_key(&key, ConflictRangeType::Read)?;
            tx.clear(&key);
        }
        Ok(first.as_ref().map(shown_item))
    }

    /// A value of exactly the limit is refused.
    #[bug(enqueue, "a limit off by one")]
    async fn limit_included(&self, tx: &Tx, env: &Env, batch: &Batch) -> Result<Vec<Spot>, Error> {
        let bytes @ MAX_VALUE_BYTES = batch.length else { return self.enqueue(tx, env, batch).await };
        Err(TooLarge::Value { key: String::new(), bytes, limit: MAX_VALUE_BYTES }.into())
    }

    /// Of more than six items that are enqueued at once the last one is lost.
    #[bug(enqueue_some, "a loop that ends one too early")]
    async fn last_of_batch(&self, tx: &Tx, env: &Env, batch: &Batch) -> Result<Vec<Spot>, Error> {
        if batch.items <= 6 {
            return self.enqueue_some(tx, env, batch).await;
        }
        let fewer = Batch { items: batch.items - 1, ..*batch };
        let mut spots = self.enqueue_some(tx, env, &fewer).await?;
        spots.extend(spots.last().map(|last| match *last {
            Spot::Index(index) => Spot::Index(index + 1),
            stamped => stamped,
        }));
        Ok(spots)
    }

    /// Enqueues items under other ids.
    async fn enqueue_under(
        &self,
        tx: &Tx,
        env: &Env,
        batch: &Batch,
        other: impl Fn(ItemId) -> ItemId + Send + Sync,
    ) -> Result<Vec<Spot>, Error> {
        let (queue, tx) = (self.layer(), one_call(tx, false).await);
        let mut spots = Vec::new();
        for (name, value) in batch.items() {
            spots.push(spot(&queue.enqueue(&tx, other(self.id(env, name)), &value).await?));
        }
        Ok(spots)
    }

    /// One call, performed correctly, a look at its own level.
    async fn done(&self, tx: &Tx, env: &Env, op: &QueueOp) -> Result<QueueAnswer, Error> {
        self.perform(tx, env, op, Serializable).await
    }

    /// The calls as one operation of the session, performed correctly, if one of them writes.
    async fn rightly_applied(&self, session: &mut Session<Db>, ops: &[QueueOp]) -> Ended {
        if ops.iter().all(Queue::is_read_only) {
            return None;
        }
        let env = &session.database().env().clone();
        let applied = session
            .apply(|tx| async move { in_order(ops, |op| self.done(&tx, env, op)).await.map(Recorded) });
        Some(concluded(applied.await))
    }
}

/// Where the bugs store their records.
fn done() -> Subspace {
    Subspace::from("done")
}

/// The key of a new record.
fn record(env: &Env) -> Vec<u8> {
    done().pack(&TupleBytes::from(&ItemId::draw(env).0[..]))
}

/// Whether a transaction only removes such records.
pub(super) fn only_tidies_up(mutations: &[Mutation]) -> bool {
    let tidies = |m: &Mutation| matches!(m, Mutation::ClearRange(range) if done().is_start_of(&range.begin));
    mutations.iter().all(tidies)
}

/// Performs a call unless there is a record of it. The record contains its answer.
async fn recorded<A: Serialize + DeserializeOwned>(
    tx: &Tx,
    record: &[u8],
    isolation: Isolation,
    call: impl Future<Output = Result<A, Error>>,
) -> Result<A, Error> {
    if let Some(answer) = tx.get(record, isolation).await? {
        return serde_json::from_slice(&answer).map_err(|_| Error::Foreign(Bytes::copy_from_slice(record)));
    }
    let answer = call.await?;
    // Plain data: serializing it cannot fail.
    tx.set(record, &serde_json::to_vec(&answer).unwrap_or_default());
    Ok(answer)
}
