//! A priority queue done wrong, one bug at a time.

use crate::{
    specimen::{self, Recorded, ran},
    workload::Outcome,
    workloads::priority_queue::{Answer, Batch, Flaw, Op, digest, id, perform as right, queue, told},
};
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable_layers::{
    once::{self, Session},
    priority_queue::{End, Error, Item, Place},
    queue::ItemId,
    tx::{
        Database,
        Isolation::{Serializable, Snapshot},
        KeyValue, RangeOption, RetryError, Transaction,
    },
};

/// Does a call that the bug touches; `None` when it leaves this one as it is.
pub async fn perform<T: Transaction>(flaw: Flaw, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    match (flaw, op) {
        (Flaw::PopMaxAsPrinted, Op::Pop(End::Max)) => Some(pop_last(tx).await),
        (Flaw::SnapshotPop, Op::Pop(end)) => Some(snapshot_pop(tx, *end).await),
        (Flaw::SerializableCount, Op::Push(batch)) => {
            let range = RangeOption::from(queue().subspace().subspace(&batch.priority).range());
            match tx.get_range_all(range.reversed().limit(1), Serializable).await {
                Ok(_) => None,
                Err(e) => Some(Err(e.into())),
            }
        }
        (Flaw::CachedCount, Op::Push(batch)) => Some(push_cached(tx, batch).await),
        (Flaw::UnsignedPriority, Op::Items) => {
            let items = queue().items(tx, Serializable).await;
            Some(items.map(|items| {
                digest(items.iter().map(told).map(|(at, name, value)| (unsigned(at), name, value)))
            }))
        }
        (Flaw::UnsignedPriority, op) => {
            let answer = right(tx, &coded(op)?).await;
            Some(answer.map(|answer| match answer {
                Answer::First(Some((priority, name, value))) => {
                    Answer::First(Some((unsigned(priority), name, value)))
                }
                Answer::Changed(Some((name, priority))) => Answer::Changed(Some((name, unsigned(priority)))),
                other => other,
            }))
        }
        (Flaw::EmptyIsNothing, Op::Pop(end)) => Some(
            queue()
                .pop(tx, *end)
                .await
                .map(|item| Answer::First(item.as_ref().filter(|item| !item.value.is_empty()).map(told))),
        ),
        (Flaw::FirstBatch, Op::Items) => {
            let range = RangeOption::from(queue().subspace().range());
            let batch = tx.get_range(&range, 1, Serializable).await;
            Some(
                batch
                    .map_err(Error::Fdb)
                    .map(|batch| digest(batch.rows.into_iter().filter_map(item).map(|item| told(&item)))),
            )
        }
        _ => None,
    }
}

/// The place that the model knows, of an item that the bug may have put elsewhere.
pub fn known(flaw: Option<Flaw>, mut place: Place) -> Place {
    match flaw {
        Some(Flaw::UnsignedPriority) => place.priority = unsigned(place.priority),
        // Another attempt's id is no fault of its own; a second item under the same name is.
        Some(Flaw::PushAsPrinted) => place.id.0[15] = 0,
        _ => {}
    }
    place
}

/// Where two's complement, taken for an unsigned number, has this priority among all.
fn unsigned(priority: i64) -> i64 {
    priority ^ i64::MIN
}

/// The call with other priorities; `None` for one that is refused whatever they are.
fn coded(op: &Op) -> Option<Op> {
    Some(match op {
        Op::Push(batch) => Op::Push(Batch { priority: unsigned(batch.priority), ..batch.clone() }),
        Op::Change { nth, to, stale } => Op::Change { nth: *nth, to: unsigned(*to), stale: *stale },
        Op::Oversized(_) => return None,
        other => other.clone(),
    })
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
            None => queue().push(tx, id(name), batch.priority, &batch.value()).await?.count,
            Some(count) => {
                let place = Place { priority: batch.priority, count: *count, id: id(name) };
                tx.set(&key(&place), &batch.value());
                *count
            }
        };
        counts.push(count);
    }
    Ok(Answer::Pushed(counts))
}

/// Does the calls of a transaction in the bug's own way.
pub async fn divert<D: Database>(
    flaw: Flaw,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    match (flaw, ops) {
        (Flaw::PushAsPrinted, ops) if ops.iter().all(|op| matches!(op, Op::Push(_))) => {
            // The ids of one attempt are no other attempt's.
            let pushed = db.run(|tx, attempt| async move {
                let mut answers = Vec::new();
                for op in ops {
                    let Op::Push(batch) = op else { continue };
                    let mut counts = Vec::new();
                    for name in batch.names() {
                        let mut id = id(name);
                        id.0[15] = attempt.number as u8;
                        counts.push(queue().push(&tx, id, batch.priority, &batch.value()).await?.count);
                    }
                    answers.push(Answer::Pushed(counts));
                }
                Ok::<_, Error>(answers)
            });
            Some(ran(pushed.await))
        }
        (Flaw::PeekThenPop, [Op::Pop(end)]) => {
            let peeked = db.run(|tx, _| async move { queue().peek(&tx, *end, Serializable).await }).await;
            let first = &match peeked {
                Ok(first) => first,
                Err(e) => return Some(Outcome::GaveUp(e.error.fdb()?)),
            };
            let applied = session.apply(|tx| async move {
                first.iter().for_each(|first| tx.clear(&key(&first.place)));
                Ok::<_, Error>(Recorded(vec![Answer::First(first.as_ref().map(told))]))
            });
            Some(specimen::told(applied.await))
        }
        (Flaw::ChangeInTwo, [Op::Change { nth, to, stale: false }]) => {
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
