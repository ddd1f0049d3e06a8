//! How one call is performed in a transaction.

use super::{
    Answer, Op,
    operations::{digest, told},
    queue,
};
use crate::shared::{came_back, isolation, item_id, item_name, one_call, paged};
use shaketable_layers::priority_queue::{self as layer, End, Error, Place};
use shaketable_tx::{Isolation::Snapshot, Transaction};

/// Performs one call correctly.
pub(super) async fn perform<T: Transaction>(tx: &T, op: &Op) -> Result<Answer, Error> {
    let queue = queue();
    let tx = &match op {
        Op::Push(batch) if batch.names().nth(1).is_some() => one_call(tx, false).await,
        Op::Change { .. } => one_call(tx, false).await,
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
            queue.change(tx, place, *to).await?;
            if *stale {
                queue.change(tx, place, *to).await?;
            }
            Answer::Changed(Some((item_name(place.id), place.priority)))
        }
        Op::Items(snapshot) => digest(queue.items(tx, isolation(*snapshot)).await?.iter().map(told)),
        Op::Pages(snapshot, most) => {
            let page = |last: Option<&layer::Item>| {
                queue.items_page(tx, last.map(|item| item.place), *most, isolation(*snapshot))
            };
            digest(paged(*most, page).await?.iter().map(told))
        }
    })
}

pub(super) fn pushed(place: Place) -> Answer {
    Answer::Pushed(vec![place.count])
}

pub(super) fn popped(item: Option<layer::Item>) -> Answer {
    Answer::First(item.as_ref().map(told))
}
