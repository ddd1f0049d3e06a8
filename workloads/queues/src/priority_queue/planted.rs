//! Planted bugs: a priority queue implemented or used wrongly.

use super::{
    Answer, Batch, Op,
    client::perform as right,
    operations::{LONGEST, digest, told},
    queue,
};
use crate::shared::{isolation, item_id};
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, UNRECORDED, ran},
    workload::Outcome,
};
use shaketable_layers::{
    priority_queue::{End, Error, Item, Place},
    queue::ItemId,
};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    KeyValue, RangeOption, RetryError, Transaction,
    once::{self, Session},
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two pops that run side by side in one transaction return one item", "two futures in one transaction";
    Unrecorded = UNRECORDED, "the items that an attempt with an unknown result popped are lost, and those that it pushed are pushed again", "the recipe's push and pop";
    PushAsPrinted = "push-as-printed", "the random part of the key is drawn in the transaction function, and nothing is recorded", "the recipe's push";
    PopMaxAsPrinted = "pop-max-as-printed", "pop_max takes the last item of the highest priority, which was pushed last", "the recipe's pop(max=True)";
    SnapshotPop = "snapshot-pop", "the first item is read at snapshot and cleared blindly", "a blind clear";
    PeekThenPop = "peek-then-pop", "the item is read in one transaction and removed in another", "a peek that is acted upon later";
    SerializableCount = "serializable-count", "the next count is read serializably, so that pushes conflict", "a fix gone too far";
    CachedCount = "cached-count", "the next count is read once for several pushes of a transaction", "several items in one transaction";
    UnsignedPriority = "unsigned-priority", "a priority is encoded as the eight bytes of its two's complement, which sorts -1 above all", "an encoding made by hand";
    ChangeInTwo = "change-in-two", "a change removes the item in one transaction and pushes it again in another", "an operation cut in two";
    EmptyIsNothing = "empty-is-nothing", "an empty value is popped as if there were no item", "absent and empty treated alike";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole queue", "a range that is longer than a batch";
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is performed at snapshot", "a snapshot read in a composed look-up";
    NothingAbove = "nothing-above", "pop_max does not conflict with a push of a higher priority", "a conflict range dropped";
    WideRange = "wide-range", "the queue's range includes all keys with its prefix", "prefix confusion";
    ChangeKeepsCount = "change-keeps-count", "an item keeps its count at its new priority", "an order that is taken along";
    ChangeForgets = "change-forgets", "an item that moves to a lower priority also stays at the higher one", "a clear forgotten on one path";
    StaleIsFine = "stale-is-fine", "changing an item that is no longer at its place returns the place", "a refusal forgotten";
    LimitBeyond = "limit-beyond", "a value one byte beyond the limit is accepted", "a limit off by one";
    CountWraps = "count-wraps", "after the largest count comes the smallest", "a counter that wraps around";
    SixOfHighest = "six-of-highest", "the first item of the highest priority is searched among the last six", "a limit that tests never reach";
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    match (planted, op) {
        (Planted::PopMaxAsPrinted, Op::Pop(End::Max, _)) => Some(pop_last(tx).await),
        (Planted::SnapshotPop, Op::Pop(end, _)) => Some(snapshot_pop(tx, *end).await),
        (Planted::SixOfHighest, Op::Pop(End::Max, _)) => {
            let range = RangeOption::from(queue().subspace().range()).reversed().limit(6);
            let popped = async {
                let rows = tx.get_range_all(range, Serializable).await?;
                let items = queue().items(tx, Serializable).await?;
                let last: Vec<_> = items[items.len() - rows.len()..].to_vec();
                let highest = last.last().map(|item| item.place.priority);
                let at = last.iter().position(|item| Some(item.place.priority) == highest);
                let Some(at) = at else { return Ok(Answer::First(None)) };
                tx.clear(&rows[rows.len() - 1 - at].key);
                Ok(Answer::First(Some(told(&last[at]))))
            };
            Some(popped.await)
        }
        (Planted::SerializableCount, Op::Push(batch)) => {
            let range = RangeOption::from(queue().subspace().subspace(&batch.priority).range());
            match tx.get_range_all(range.reversed().limit(1), Serializable).await {
                Ok(_) => None,
                Err(e) => Some(Err(e.into())),
            }
        }
        (Planted::CachedCount, Op::Push(batch)) => Some(push_cached(tx, batch).await),
        (Planted::UnsignedPriority, Op::Items(snapshot)) => {
            let items = queue().items(tx, isolation(*snapshot)).await;
            Some(items.map(|items| {
                digest(items.iter().map(told).map(|(at, name, value)| (unsigned(at), name, value)))
            }))
        }
        (Planted::UnsignedPriority, Op::Push(batch)) if batch.length > LONGEST => None,
        (Planted::UnsignedPriority, op) => {
            let answer = right(tx, &coded(op)).await;
            Some(answer.map(|answer| match answer {
                Answer::First(Some((priority, name, value))) => {
                    Answer::First(Some((unsigned(priority), name, value)))
                }
                Answer::Changed(Some((name, priority))) => Answer::Changed(Some((name, unsigned(priority)))),
                other => other,
            }))
        }
        (Planted::EmptyIsNothing, Op::Pop(end, _)) => Some(
            queue()
                .pop(tx, *end)
                .await
                .map(|item| Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told))),
        ),
        (Planted::FirstBatch, Op::Items(snapshot)) => {
            let range = RangeOption::from(queue().subspace().range());
            let batch = tx.get_range(&range, 1, isolation(*snapshot)).await;
            Some(
                batch
                    .map_err(Error::Fdb)
                    .map(|batch| digest(batch.rows.into_iter().filter_map(item).map(|item| told(&item)))),
            )
        }
        (Planted::PeekAtSnapshot, Op::Peek(end, false)) => Some(right(tx, &Op::Peek(*end, true)).await),
        (Planted::NothingAbove, Op::Pop(End::Max, _)) => Some(pop_max_alone(tx).await),
        (Planted::WideRange, Op::Len(snapshot)) => {
            let (begin, mut end) = queue().subspace().range();
            end.push(0xff);
            let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation(*snapshot)).await;
            Some(rows.map(|rows| Answer::Len(rows.len())).map_err(Error::Fdb))
        }
        (
            Planted::ChangeKeepsCount | Planted::ChangeForgets | Planted::StaleIsFine,
            Op::Change { nth, to, stale },
        ) => Some(change(planted, tx, *nth, *to, *stale).await),
        (Planted::LimitBeyond | Planted::CountWraps, Op::Push(batch)) => {
            push_unchecked(planted, tx, batch).await
        }
        _ => None,
    }
}

/// A change of priority with the bug.
async fn change<T: Transaction>(
    planted: Planted,
    tx: &T,
    nth: usize,
    to: i64,
    stale: bool,
) -> Result<Answer, Error> {
    let items = queue().items(tx, Snapshot).await?;
    let Some(nth) = nth.checked_rem(items.len()) else { return Ok(Answer::Changed(None)) };
    let place = items[nth].place;
    for _ in 0..=u8::from(stale) {
        let value = tx.get(&key(&place), Serializable).await?;
        match (planted, value) {
            (Planted::StaleIsFine, None) => {}
            (Planted::ChangeKeepsCount, Some(value)) => {
                tx.clear(&key(&place));
                tx.set(&key(&Place { priority: to, ..place }), &value);
            }
            (Planted::ChangeForgets, Some(value)) if to < place.priority => {
                queue().push(tx, place.id, to, &value).await?;
            }
            _ => drop(queue().change(tx, place, to).await?),
        }
    }
    let (_, name, _) = told(&items[nth]);
    Ok(Answer::Changed(Some((name, place.priority))))
}

/// Pops the first item of the highest priority, which is looked up without a conflict range.
async fn pop_max_alone<T: Transaction>(tx: &T) -> Result<Answer, Error> {
    let Some(first) = queue().peek(tx, End::Max, Snapshot).await? else {
        return right(tx, &Op::Pop(End::Max, false)).await;
    };
    let under = queue().subspace().subspace(&first.place.priority).range();
    tx.get_range_all(RangeOption::from(under).limit(1), Serializable).await?;
    tx.clear(&key(&first.place));
    Ok(Answer::First(Some(told(&first))))
}

/// A push without one of the checks; `None` where that check would have passed.
async fn push_unchecked<T: Transaction>(
    planted: Planted,
    tx: &T,
    batch: &Batch,
) -> Option<Result<Answer, Error>> {
    let value = batch.value();
    let priority = batch.priority;
    let range = RangeOption::from(queue().subspace().subspace(&priority).range());
    let last = match tx.get_range_all(range.reversed().limit(1), Snapshot).await {
        Ok(rows) => rows.into_iter().next().and_then(item).map(|item| item.place.count),
        Err(e) => return Some(Err(e.into())),
    };
    let count = match (planted, last) {
        (Planted::LimitBeyond, _) if value.len() != LONGEST + 1 => return None,
        (Planted::CountWraps, last) if last != Some(i64::MAX) => return None,
        (_, last) => last.map_or(0, |last| last.wrapping_add(1)),
    };
    let mut counts = Vec::new();
    for (nth, name) in batch.names().enumerate() {
        let count = count.wrapping_add(nth as i64);
        tx.set(&key(&Place { priority, count, id: item_id(name) }), &value);
        counts.push(count);
    }
    Some(Ok(Answer::Pushed(counts)))
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

/// The call with other priorities.
fn coded(op: &Op) -> Op {
    match op {
        Op::Push(batch) => Op::Push(Batch { priority: unsigned(batch.priority), ..batch.clone() }),
        Op::Change { nth, to, stale } => Op::Change { nth: *nth, to: unsigned(*to), stale: *stale },
        other => other.clone(),
    }
}

fn item(row: KeyValue) -> Option<Item> {
    let (priority, count, id): (_, _, TupleBytes<'_>) = queue().subspace().unpack(&row.key).ok()?;
    let place = Place { priority, count, id: ItemId((*id).try_into().ok()?) };
    Some(Item { place, value: row.value })
}

fn key(place: &Place) -> Vec<u8> {
    queue().subspace().pack(&(place.priority, place.count, TupleBytes::from(&place.id.0[..])))
}

async fn pop_last<T: Transaction>(tx: &T) -> Result<Answer, Error> {
    let range = RangeOption::from(queue().subspace().range()).reversed().limit(1);
    let last = tx.get_range_all(range, Serializable).await?.pop();
    last.iter().for_each(|row| tx.clear(&row.key));
    Ok(Answer::First(last.and_then(item).as_ref().map(told)))
}

async fn snapshot_pop<T: Transaction>(tx: &T, end: End) -> Result<Answer, Error> {
    let first = queue().peek(tx, end, Snapshot).await?;
    first.iter().for_each(|first| tx.clear(&key(&first.place)));
    Ok(Answer::First(first.as_ref().map(told)))
}

async fn push_cached<T: Transaction>(tx: &T, batch: &Batch) -> Result<Answer, Error> {
    let mut counts: Vec<i64> = Vec::new();
    for name in batch.names() {
        let count = match counts.first() {
            None => queue().push(tx, item_id(name), batch.priority, &batch.value()).await?.count,
            Some(count) => {
                let place = Place { priority: batch.priority, count: *count, id: item_id(name) };
                tx.set(&key(&place), &batch.value());
                *count
            }
        };
        counts.push(count);
    }
    Ok(Answer::Pushed(counts))
}

/// Performs the calls of a transaction with the bug.
pub async fn apply_planted<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    match (planted, ops) {
        (Planted::PushAsPrinted, ops) if ops.iter().all(|op| matches!(op, Op::Push(_))) => {
            // The ids of one attempt differ from those of another.
            let pushed = db.run(|tx, attempt| async move {
                let mut answers = Vec::new();
                for op in ops {
                    let Op::Push(batch) = op else { continue };
                    let mut counts = Vec::new();
                    for name in batch.names() {
                        let mut id = item_id(name);
                        id.0[15] = attempt.number as u8;
                        counts.push(queue().push(&tx, id, batch.priority, &batch.value()).await?.count);
                    }
                    answers.push(Answer::Pushed(counts));
                }
                Ok::<_, Error>(answers)
            });
            Some(ran(pushed.await))
        }
        (Planted::PeekThenPop, [Op::Pop(end, _)]) => {
            let peeked = db.run(|tx, _| async move { queue().peek(&tx, *end, Serializable).await }).await;
            let first = &match peeked {
                Ok(first) => first,
                Err(e) => return Some(Outcome::Failed(e.error.fdb()?)),
            };
            let applied = session.apply(|tx| async move {
                first.iter().for_each(|first| tx.clear(&key(&first.place)));
                Ok::<_, Error>(Recorded(vec![Answer::First(first.as_ref().map(told))]))
            });
            Some(specimen::told(applied.await))
        }
        (Planted::ChangeInTwo, [Op::Change { nth, to, stale: false }]) => {
            let taken = session.apply(|tx| async move {
                let items = queue().items(&tx, Snapshot).await?;
                let Some(nth) = nth.checked_rem(items.len()) else { return Ok(None) };
                let place = items[nth].place;
                let value = tx.get(&key(&place), Serializable).await?.ok_or(Error::Gone(place))?;
                tx.clear(&key(&place));
                Ok::<_, Error>(Some(Item { place, value }))
            });
            let item = match taken.await {
                once::Outcome::Applied(Some(item)) => item,
                once::Outcome::Applied(None) => {
                    return Some(Outcome::Answered(specimen::Answer::Done(vec![Answer::Changed(None)])));
                }
                other => return Some(specimen::told(other.map(|_| Recorded(Vec::new())))),
            };
            let item = &item;
            let pushed = session.apply(|tx| async move {
                queue().push(&tx, item.place.id, *to, &item.value).await?;
                let (_, name, _) = told(item);
                Ok::<_, Error>(Recorded(vec![Answer::Changed(Some((name, item.place.priority)))]))
            });
            Some(specimen::told(pushed.await))
        }
        _ => None,
    }
}
