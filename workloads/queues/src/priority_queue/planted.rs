//! Planted bugs: a priority queue implemented or used wrongly.

use super::{
    Answer, Batch, Op,
    client::perform as right,
    operations::{LONGEST, digest, told},
    queue,
};
use crate::shared::{isolation, item_id, seen_before};
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::{
    priority_queue::{End, Error, Item, Place},
    queue::ItemId,
};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    KeyValue, RangeOption, Transaction,
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

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Result<Answer, Error> {
    let last = RangeOption::from(queue().subspace().range()).reversed().limit(1);
    match (planted, op) {
        (Planted::PopMaxAsPrinted, Op::Pop(End::Max, _)) => {
            let last = tx.get_range_all(last, Serializable).await?.pop();
            last.iter().for_each(|row| tx.clear(&row.key));
            Ok(Answer::First(last.and_then(item).as_ref().map(told)))
        }
        (Planted::SnapshotPop, Op::Pop(..)) | (Planted::PeekAtSnapshot, Op::Peek(..)) => {
            right(&weakened(tx.clone(), everything()), op).await
        }
        (Planted::SixOfHighest, Op::Pop(End::Max, _)) => {
            let items = queue().items(tx, Serializable).await?;
            let six = &items[items.len().saturating_sub(6)..];
            let highest = six.last().map(|item| item.place.priority);
            let popped = six.iter().find(|item| Some(item.place.priority) == highest);
            popped.iter().for_each(|item| tx.clear(&key(&item.place)));
            Ok(Answer::First(popped.map(told)))
        }
        (Planted::SerializableCount, Op::Push(batch)) => {
            let range = RangeOption::from(queue().subspace().subspace(&batch.priority).range());
            tx.get_range_all(range.reversed().limit(1), Serializable).await?;
            right(tx, op).await
        }
        (Planted::CachedCount, Op::Push(batch)) => push_cached(tx, batch).await,
        (Planted::UnsignedPriority, Op::Items(snapshot)) => {
            let items = queue().items(tx, isolation(*snapshot)).await?;
            Ok(digest(items.iter().map(told).map(|(at, name, value)| (unsigned(at), name, value))))
        }
        (Planted::UnsignedPriority, Op::Push(batch)) if batch.length > LONGEST => right(tx, op).await,
        (Planted::UnsignedPriority, op) => Ok(match right(tx, &coded(op)).await? {
            Answer::First(Some((priority, name, value))) => {
                Answer::First(Some((unsigned(priority), name, value)))
            }
            Answer::Changed(Some((name, priority))) => Answer::Changed(Some((name, unsigned(priority)))),
            other => other,
        }),
        (Planted::EmptyIsNothing, Op::Pop(end, _)) => {
            let item = queue().pop(tx, *end).await?;
            Ok(Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told)))
        }
        (Planted::FirstBatch, Op::Items(_)) => right(&flawed(tx, Flaw::FirstBatch, everything()), op).await,
        (Planted::NothingAbove, Op::Pop(End::Max, _)) => {
            let highest = queue().peek(tx, End::Max, Snapshot).await?.map(|first| first.place.priority);
            let end = queue().subspace().range().1;
            let above = highest.map(|priority| (queue().subspace().subspace(&priority).range().1, end));
            right(&weakened(tx.clone(), above.as_slice()), op).await
        }
        (Planted::WideRange, Op::Len(snapshot)) => {
            let (begin, mut end) = queue().subspace().range();
            end.push(0xff);
            let rows = tx.get_range_all(RangeOption::from((begin, end)), isolation(*snapshot)).await?;
            Ok(Answer::Len(rows.len()))
        }
        (
            Planted::ChangeKeepsCount | Planted::ChangeForgets | Planted::StaleIsFine,
            Op::Change { nth, to, stale },
        ) => change(planted, tx, *nth, *to, *stale).await,
        (Planted::LimitBeyond, Op::Push(batch)) if batch.value().len() == LONGEST + 1 => {
            let first = next_count(tx, batch.priority).await?.unwrap_or(0);
            Ok(push_unchecked(tx, batch, first))
        }
        (Planted::CountWraps, Op::Push(batch)) => match next_count(tx, batch.priority).await? {
            Some(i64::MIN) => Ok(push_unchecked(tx, batch, i64::MIN)),
            _ => right(tx, op).await,
        },
        _ => right(tx, op).await,
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

/// The count after the last one, which wraps around; `None` if the priority has no item.
async fn next_count<T: Transaction>(tx: &T, priority: i64) -> Result<Option<i64>, Error> {
    let range = RangeOption::from(queue().subspace().subspace(&priority).range());
    let last = tx.get_range_all(range.reversed().limit(1), Snapshot).await?.pop();
    Ok(last.and_then(item).map(|last| last.place.count.wrapping_add(1)))
}

/// Pushes without a check, from this count on.
fn push_unchecked<T: Transaction>(tx: &T, batch: &Batch, first: i64) -> Answer {
    let (value, priority) = (batch.value(), batch.priority);
    let mut counts = Vec::new();
    for (nth, name) in (0..).zip(batch.names()) {
        let count = first.wrapping_add(nth);
        tx.set(&key(&Place { priority, count, id: item_id(name) }), &value);
        counts.push(count);
    }
    Answer::Pushed(counts)
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
            let look = |tx| async move { queue().peek(&tx, *end, Serializable).await };
            let act = |tx: D::Transaction, first: Option<Item>| async move {
                first.iter().for_each(|first| tx.clear(&key(&first.place)));
                Ok(vec![Answer::First(first.as_ref().map(told))])
            };
            Some(seen_before(session, look, act).await)
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
