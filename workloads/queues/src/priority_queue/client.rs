//! How one call is performed in a transaction.

use super::{
    Answer, Op,
    operations::{digest, told},
    queue,
};
use crate::shared::{came_back, isolation, item_id, item_name, one_call, paged, prefix_before, turned};
use foundationdb_tuple::Subspace;
use shaketable_layers::{
    priority_queue::{self as layer, End, Error, Place, PriorityQueue},
    queue::ItemId,
};
use shaketable_tx::{Isolation::Snapshot, Tx};

/// The length of the key of an item with priority 0, count 0 and an id without zeros, below the prefix.
pub(super) const DEEP_BYTES: usize = 20;

/// Performs one call correctly.
pub(super) async fn perform(tx: &Tx, op: &Op) -> Result<Answer, Error> {
    let queue = queue();
    let tx = &match op {
        Op::Push(batch) if batch.names().nth(1).is_some() => one_call(tx, false).await,
        Op::Change { .. } | Op::Deep(_) => one_call(tx, false).await,
        Op::Pages(..) => one_call(tx, true).await,
        _ => tx.clone(),
    };
    Ok(match op {
        Op::Push(batch) => {
            let mut counts = Vec::new();
            for name in batch.names() {
                let place = queue.push(tx, item_id(name), batch.priority, &batch.value()).await?;
                counts.push(came_back(place).count);
            }
            Answer::Pushed(counts)
        }
        Op::Pop(end, named) => Answer::First(
            came_back(match (end, named) {
                (End::Min, true) => queue.pop_min(tx).await?,
                (End::Max, true) => queue.pop_max(tx).await?,
                (end, false) => queue.pop(tx, *end).await?,
            })
            .as_ref()
            .map(told),
        ),
        Op::Peek(End::Min, snapshot) => {
            Answer::First(queue.peek_min(tx, isolation(*snapshot)).await?.as_ref().map(told))
        }
        Op::Peek(End::Max, snapshot) => {
            Answer::First(queue.peek_max(tx, isolation(*snapshot)).await?.as_ref().map(told))
        }
        Op::IsEmpty(snapshot) => Answer::IsEmpty(queue.is_empty(tx, isolation(*snapshot)).await?),
        Op::Len(snapshot) => Answer::Len(queue.len(tx, isolation(*snapshot)).await?),
        Op::Change { nth, to, stale } => {
            let items = queue.items(tx, Snapshot).await?;
            let Some(nth) = nth.checked_rem(items.len()) else { return Ok(Answer::Changed(None)) };
            let place = items[nth].place;
            queue.change(&turned(tx), place, *to).await?;
            if *stale {
                queue.change(&turned(tx), place, *to).await?;
            }
            Answer::Changed(Some((item_name(place.id), place.priority)))
        }
        Op::Items(snapshot) => digest(queue.items(tx, isolation(*snapshot)).await?.iter().map(told)),
        Op::Pages(snapshot, most) => {
            let tx = &turned(tx);
            let page = |last: Option<&layer::Item>| {
                queue.items_page(tx, last.map(|item| item.place), *most, isolation(*snapshot))
            };
            digest(paged(*most, page).await?.iter().map(told))
        }
        Op::Deep(beyond) => {
            let deep = PriorityQueue::new(Subspace::from_bytes(deep(*beyond)));
            let count = deep.push(tx, DEEP, 0, b"").await?.count;
            deep.pop_min(tx).await?;
            Answer::Pushed(vec![count])
        }
    })
}

/// The id of the item that is pushed to a queue with a long prefix.
const DEEP: ItemId = ItemId([1; 16]);

/// The longest prefix of a queue that takes an item of priority 0, and this many bytes more.
pub(super) fn deep(beyond: usize) -> Vec<u8> {
    prefix_before(DEEP_BYTES, beyond)
}

pub(super) fn pushed(place: Place) -> Answer {
    Answer::Pushed(vec![place.count])
}

pub(super) fn popped(item: Option<layer::Item>) -> Answer {
    Answer::First(item.as_ref().map(told))
}
