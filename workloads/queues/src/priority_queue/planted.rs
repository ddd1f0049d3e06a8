//! Planted bugs: a priority queue implemented or used wrongly.

use super::{
    Answer, Batch, Op,
    client::perform as right,
    operations::{LONGEST, digest, told},
    queue,
};
use crate::shared::{in_order, isolation, item_id, item_name, one_call, seen_before};
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    specimen::{self, INTERLEAVED, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::priority_queue::{End, Error, Item, Place};
use shaketable_tx::{
    Database, Db, Env, Isolation::Serializable, RangeOption, Transaction, Tx, once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two pops that run side by side in one transaction return one item", "two futures in one transaction";
    Unrecorded = UNRECORDED, "the items that an attempt with an unknown result popped are lost, and those that it pushed are pushed again", "the recipe's push and pop";
    PushAsPrinted = "push-as-printed", "the random part of the key is drawn in the transaction function, and nothing is recorded", "the recipe's push";
    PopMaxAsPrinted = "pop-max-as-printed", "pop_max takes the last item of the highest priority, which was pushed last", "the recipe's pop(max=True)";
    PeekThenPop = "peek-then-pop", "the item is read in one transaction and removed in another", "a peek that is acted upon later";
    UnsignedPriority = "unsigned-priority", "a priority is encoded as the eight bytes of its two's complement, which sorts -1 above all", "an encoding made by hand";
    ChangeInTwo = "change-in-two", "a change removes the item in one transaction and pushes it again in another", "an operation cut in two";
    EmptyIsNothing = "empty-is-nothing", "an empty value is popped as if there were no item", "absent and empty treated alike";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole queue", "a range that is longer than a batch";
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is performed at snapshot", "a snapshot read in a composed look-up";
    WideRange = "wide-range", "the queue's range includes all keys with its prefix", "prefix confusion";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(planted: Planted, tx: &Tx, env: &Env, op: &Op) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::PushAsPrinted, Op::Push(batch)) => {
            let tx = &one_call(tx, false).await;
            let mut counts = Vec::new();
            for name in batch.names() {
                let mut id = item_id(name);
                id.0[15] = env.random_u64() as u8;
                counts.push(queue().push(tx, id, batch.priority, &batch.value()).await?.count);
            }
            Ok(Answer::Pushed(counts))
        }
        (Planted::PopMaxAsPrinted, Op::Pop(End::Max, _)) => {
            let last = queue().items(tx, Serializable).await?.pop();
            last.iter().for_each(|last| tx.clear(&key(&last.place)));
            Ok(Answer::First(last.as_ref().map(told)))
        }
        (Planted::PeekAtSnapshot, Op::Peek(..)) => right(&weakened(tx.clone(), everything()), op).await,
        (Planted::UnsignedPriority, Op::Items(snapshot)) => {
            let items = queue().items(tx, isolation(*snapshot)).await?;
            Ok(digest(items.iter().map(told).map(|(at, name, value)| (unsigned(at), name, value))))
        }
        (Planted::UnsignedPriority, Op::Push(batch)) if batch.length > LONGEST => right(tx, op).await,
        (Planted::UnsignedPriority, op) => {
            let op = match op.clone() {
                Op::Push(batch) => Op::Push(Batch { priority: unsigned(batch.priority), ..batch }),
                Op::Change { nth, to, stale } => Op::Change { nth, to: unsigned(to), stale },
                other => other,
            };
            Ok(match right(tx, &op).await? {
                Answer::First(Some((at, name, value))) => Answer::First(Some((unsigned(at), name, value))),
                Answer::Changed(Some((name, at))) => Answer::Changed(Some((name, unsigned(at)))),
                other => other,
            })
        }
        (Planted::EmptyIsNothing, Op::Pop(end, _)) => {
            let item = queue().pop(tx, *end).await?;
            Ok(Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told)))
        }
        (Planted::FirstBatch, Op::Items(_)) => right(&flawed(tx, Flaw::FirstBatch, everything()), op).await,
        (Planted::WideRange, Op::Len(snapshot)) => {
            let (begin, mut end) = queue().subspace().range();
            end.push(0xff);
            let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation(*snapshot)).await?;
            Ok(Answer::Len(rows.len()))
        }
        _ => right(tx, op).await,
    }
}

/// The place that the model expects, of an item that the bug may have stored elsewhere.
pub fn known(planted: Option<Planted>, mut place: Place) -> Place {
    match planted {
        Some(Planted::UnsignedPriority) => place.priority = unsigned(place.priority),
        // That an id belongs to another attempt is not the point; a second item with the same name is.
        Some(Planted::PushAsPrinted) => place.id.0[15] = 0,
        _ => {}
    }
    place
}

/// Where a priority is sorted if its two's complement is taken for an unsigned number.
fn unsigned(priority: i64) -> i64 {
    priority ^ i64::MIN
}

fn key(place: &Place) -> Vec<u8> {
    queue().subspace().pack(&(place.priority, place.count, TupleBytes::from(&place.id.0[..])))
}

/// Performs the calls of a transaction with the bug.
pub async fn apply_planted(
    planted: Planted,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let env = db.env();
    Some(match (planted, ops) {
        (Planted::PushAsPrinted, ops) if ops.iter().all(|op| matches!(op, Op::Push(_))) => {
            let pushed =
                db.run(|tx, _| async move { in_order(ops, |op| perform(planted, &tx, env, op)).await });
            ran(pushed.await)
        }
        (Planted::PeekThenPop, [Op::Pop(end, _)]) => {
            let look = |tx| async move { queue().peek(&tx, *end, Serializable).await };
            let act = |tx: Tx, first: Option<Item>| async move {
                first.iter().for_each(|first| tx.clear(&key(&first.place)));
                Ok(vec![Answer::First(first.as_ref().map(told))])
            };
            seen_before(session, look, act).await
        }
        (Planted::ChangeInTwo, [Op::Change { nth, to, stale: false }]) => {
            let take = |tx: Tx| async move {
                let items = queue().items(&tx, Serializable).await?;
                let taken = nth.checked_rem(items.len()).map(|nth| items[nth].clone());
                taken.iter().for_each(|item| tx.clear(&key(&item.place)));
                Ok::<_, Error>(taken)
            };
            let push = |tx, taken: Option<Item>| async move {
                let Some(Item { place, value }) = taken else { return Ok(vec![Answer::Changed(None)]) };
                queue().push(&tx, place.id, *to, &value).await?;
                Ok(vec![Answer::Changed(Some((item_name(place.id), place.priority)))])
            };
            seen_before(session, take, push).await
        }
        _ => return None,
    })
}
