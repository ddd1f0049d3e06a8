//! How one call is performed in a transaction.

use super::{
    Answer, Look, Name, Op, Queue, Spot,
    model::MOST_KEY_BYTES,
    operations::{digest, spot, told},
};
use crate::shared::{came_back, isolation, item_id, one_call, paged, prefix_before, turned};
use foundationdb_tuple::Subspace;
use shaketable_layers::queue::{self as layer, Error, ItemId, Order, Position};
use shaketable_tx::{Env, Tx};

impl Queue {
    /// Performs one call correctly.
    pub(super) async fn right(&self, tx: &Tx, env: &Env, op: &Op) -> Result<Answer, Error> {
        let queue = self.queue();
        Ok(match op {
            Op::Enqueue(batch) => {
                let tx = &match batch.items {
                    1 => tx.clone(),
                    _ => one_call(tx, false).await,
                };
                let mut spots = Vec::new();
                for (name, value) in batch.items() {
                    spots.push(spot(&queue.enqueue(tx, self.id(env, name), &value).await?));
                }
                Answer::Enqueued(spots)
            }
            Op::Dequeue => Answer::First(came_back(queue.dequeue(tx).await?).as_ref().map(told)),
            Op::Look(look, snapshot) => {
                let isolation = isolation(*snapshot);
                match look {
                    Look::First => Answer::First(queue.peek(tx, isolation).await?.as_ref().map(told)),
                    Look::IsEmpty => Answer::IsEmpty(queue.is_empty(tx, isolation).await?),
                    Look::Len => Answer::Len(queue.len(tx, isolation).await?),
                    Look::Items => digest(queue.items(tx, isolation).await?.iter().map(told)),
                    Look::Pages(most) => {
                        let tx = &turned(&one_call(tx, true).await);
                        let page = |last: Option<&layer::Item>| {
                            queue.items_page(tx, last.map(|item| item.position), *most, isolation)
                        };
                        digest(paged(*most, page).await?.iter().map(told))
                    }
                }
            }
            Op::Deep(beyond) => {
                let deep = layer::Queue::new(
                    Subspace::from_bytes(prefix_before(MOST_KEY_BYTES, *beyond)),
                    self.order,
                );
                deep.enqueue(tx, ItemId([0; 16]), b"").await?;
                Answer::Enqueued(Vec::new())
            }
        })
    }

    /// The id of an item. In index order it follows from the item's name, because there ids decide the order
    /// of items with the same index. In commit order it is drawn.
    pub(super) fn id(&self, env: &Env, name: Name) -> ItemId {
        match self.order {
            Order::Index => item_id(name),
            Order::Commit => ItemId::draw(env),
        }
    }
}

pub(super) fn enqueued_at(position: Position) -> Answer {
    // The recorded position has a stamp. If the commit has not filled it in, it equals no expected one.
    Answer::Enqueued(vec![match position {
        Position::Index { index, .. } => Spot::Index(index),
        Position::Commit { stamp, .. } => Spot::Commit(Some(stamp)),
    }])
}

pub(super) fn dequeued_item(item: Option<layer::Item>) -> Answer {
    Answer::First(item.as_ref().map(told))
}
