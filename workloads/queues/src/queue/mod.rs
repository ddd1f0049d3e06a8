//! `queue`: clients enqueue items and dequeue them, exactly once, in index order or in commit order.
//!
//! Each seed uses one of the two orders. Every call is composed with others in one transaction, including
//! looks of either isolation; a call that is alone in its transaction is recorded with the layer's own
//! answer. Items are named by their client and call. In index order their ids follow from their names, so
//! that the sequential model knows every place exactly: the last index follows from what the transaction
//! read. In commit order the model learns the stamp from the transaction's commit.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;

use crate::{
    beside,
    shared::{
        self, ItemName as Name, came_back, item_id, item_name, one_call, page_sizes, paged, prefix_before,
        turned,
    },
};
use foundationdb_tuple::{Bytes as TupleBytes, Element, Subspace};
use model::{Model, Place, UNSTAMPED};
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, Recorded, concluded},
    strategies,
};
use shaketable_layers::queue::{self as layer, Error, ItemId, Order, Position};
use shaketable_tx::{
    nesting,
    once::{Fate, OpId},
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    order: Order,
    /// The queue's prefix.
    prefix: Vec<u8>,
    /// In index order, the index of the item that exists from the beginning, if there is one.
    start: Option<i64>,
    /// The usual maximum length of values, in bytes; a few are longer.
    usual: usize,
    /// The weights of enqueues, dequeues, and looks.
    mix: [u32; 3],
    /// Whether the byte of an id that its name leaves over may be any: only where a planted bug draws it.
    any_suffix: bool,
}

/// An item as answers contain it: its position, its name unless its id was drawn, its value.
type Item = (Spot, Option<Name>, Content);

/// The number of items, and a digest of them in their order.
type Digest = (usize, u64);

/// Concurrent enqueues and dequeues, exactly once and in the order promised.
#[shaketable::workload(name = "queue", model = Model, planted, promises(turns, limits))]
impl Queue {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        let drawn = *rng.pick(&[Order::Index, Order::Commit]);
        let prefixes =
            [Subspace::from("queue").into_bytes(), Subspace::from("q\0").into_bytes(), b"\xfe".into()];
        let starts = [None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 30)];
        let start = *rng.pick(&starts);
        Queue {
            order: bug.and_then(planted::order).unwrap_or(drawn),
            prefix: rng.pick(&prefixes).clone(),
            start,
            usual: *rng.pick(&[0, 100, 3_000]),
            mix: [rng.range(2..10), rng.range(2..10), rng.range(1..4)].map(|w| w as u32),
            any_suffix: bug == Some("enqueue-as-printed"),
        }
    }

    fn points() -> &'static [&'static str] {
        &[
            "queue: a dequeue finds no item",
            "queue: a transaction comes to its own items",
            "once: a retry finds its operation recorded",
            "once: an unknown operation turns out applied",
            "once: an unknown operation is ruled out",
            "once: a client comes back",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let item = |n: u8| match self.order {
            Order::Index => self.space().pack(&(2 * u16::from(n), "")),
            Order::Commit => self.space().pack(&shared::stamp(n)),
        };
        (1..8).map(item).collect()
    }

    fn number(op: &mut QueueOp, client: usize, number: usize) {
        if let QueueOp::enqueue { batch } | QueueOp::enqueue_some { batch } = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        let elements: Vec<Element<'_>> = nesting::unpack(key.strip_prefix(&self.prefix[..])?).ok()?;
        match &elements[..] {
            [Element::Int(index), Element::Bytes(id)] => Some(format!("item {index} with id {}", shown(id))),
            [Element::Versionstamp(stamp), Element::Int(rank), Element::Bytes(id)] if stamp.is_complete() => {
                Some(format!("item {}/{rank} with id {}", shown(stamp.transaction_version()), shown(id)))
            }
            _ => None,
        }
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &beside::of(&self.prefix)).await?;
        let first = &self.first_items();
        let stored = db.run(|tx, _| async move {
            for place in first.keys() {
                if let Place::Index(index, id) = place {
                    tx.set(&self.space().pack(&(*index, TupleBytes::from(&id.0[..]))), b"first");
                }
            }
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    /// A call that is alone in its transaction is recorded with the layer's own answer.
    async fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[QueueOp],
    ) -> Option<Outcome<Answer<QueueAnswer>>> {
        let queue = &self.layer();
        match ops {
            _ if bug.is_some() => None,
            [QueueOp::enqueue { batch }] => {
                let (name, value) = &batch.items().next()?;
                let id = self.id(session.database().env(), *name);
                let enqueued = session.apply(|tx| async move { queue.enqueue(&tx, id, value).await });
                Some(concluded(enqueued.await.map(|at| Recorded(vec![enqueued_at(at)]))))
            }
            [QueueOp::dequeue {}] => {
                let dequeued = session.apply(|tx| async move { queue.dequeue(&tx).await });
                Some(concluded(dequeued.await.map(|first| Recorded(vec![dequeued_item(first)]))))
            }
            _ => None,
        }
    }

    async fn resolve(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[QueueOp],
        pending: OpId,
    ) -> Result<Fate<Vec<QueueAnswer>>, once::Error> {
        Ok(match ops {
            [QueueOp::enqueue { .. }] if bug.is_none() => {
                session.resolve(pending).await?.map(|at| vec![enqueued_at(at)])
            }
            [QueueOp::dequeue {}] if bug.is_none() => {
                session.resolve(pending).await?.map(|first| vec![dequeued_item(first)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !sessions::is_fence(mutations) && !planted::only_tidies_up(mutations)
    }

    fn space(&self) -> Subspace {
        Subspace::from_bytes(self.prefix.clone())
    }

    fn layer(&self) -> layer::Queue {
        layer::Queue::new(self.space(), self.order)
    }

    /// The id of an item. In index order it follows from the item's name, because there ids decide the order
    /// of items with the same index. In commit order it is drawn.
    fn id(&self, env: &Env, name: Name) -> ItemId {
        match self.order {
            Order::Index => item_id(name),
            Order::Commit => ItemId::draw(env),
        }
    }

    #[draws(isolation)]
    fn isolation() -> impl Strategy<Value = Isolation> {
        select(vec![Serializable, Snapshot])
    }

    #[write(weight = 40 * self.mix[0], blind, at)]
    async fn enqueue(
        &self,
        tx: &Tx,
        env: &Env,
        #[draw(batch(1..2, strategies::lengths(self.usual, LONGEST)))] batch: &Batch,
    ) -> Result<Vec<Spot>, Error> {
        let queue = self.layer();
        let mut spots = Vec::new();
        for (name, value) in batch.items() {
            spots.push(spot(&queue.enqueue(tx, self.id(env, name), &value).await?));
        }
        Ok(spots)
    }

    #[write(weight = 10 * self.mix[0] + 2, blind, at, composed)]
    async fn enqueue_some(
        &self,
        tx: &Tx,
        env: &Env,
        #[draw(prop_oneof![
            5 * self.mix[0] => batch(2..5, 0..=self.usual),
            1 => batch(30..90, 0..=self.usual),
        ])]
        batch: &Batch,
    ) -> Result<Vec<Spot>, Error> {
        self.enqueue(&one_call(tx, false).await, env, batch).await
    }

    #[write(weight = 48 * self.mix[1], at)]
    async fn dequeue(&self, tx: &Tx) -> Result<Option<Item>, Error> {
        Ok(came_back(self.layer().dequeue(tx).await?).as_ref().map(shown_item))
    }

    /// Looks at the first item.
    #[read(weight = 6 * self.mix[2], at)]
    async fn peek(&self, tx: &Tx, isolation: Isolation) -> Result<Option<Item>, Error> {
        Ok(self.layer().peek(tx, isolation).await?.as_ref().map(shown_item))
    }

    #[read(weight = 3 * self.mix[2], at)]
    async fn is_empty(&self, tx: &Tx, isolation: Isolation) -> Result<bool, Error> {
        self.layer().is_empty(tx, isolation).await
    }

    #[read(weight = 6 * self.mix[2], at)]
    async fn len(&self, tx: &Tx, isolation: Isolation) -> Result<usize, Error> {
        self.layer().len(tx, isolation).await
    }

    #[read(weight = 6 * self.mix[2], at)]
    async fn items(&self, tx: &Tx, isolation: Isolation) -> Result<Digest, Error> {
        Ok(digest(self.layer().items(tx, isolation).await?.iter().map(shown_item)))
    }

    /// Reads all items, by pages of this many.
    #[read(weight = 3 * self.mix[2], at)]
    async fn pages(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(page_sizes())] most: usize,
    ) -> Result<Digest, Error> {
        let (queue, tx) = (self.layer(), &turned(&one_call(tx, true).await));
        let page = |last: Option<&layer::Item>| {
            queue.items_page(tx, last.map(|item| item.position), most, isolation)
        };
        Ok(digest(paged(most, page).await?.iter().map(shown_item)))
    }

    /// Enqueues into a queue whose prefix leaves exactly the room that its keys may need, or this many bytes
    /// less.
    #[write(weight = 2, rare)]
    async fn deep(&self, tx: &Tx, #[draw(0..2usize)] beyond: usize) -> Result<(), Error> {
        let space = Subspace::from_bytes(prefix_before(MOST_KEY_BYTES, beyond));
        layer::Queue::new(space, self.order).enqueue(tx, ItemId([0; 16]), b"").await.map(|_| ())
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        if let Err(why) = beside::check(tx, &beside::of(&self.prefix)).await? {
            return Ok(Err(why));
        }
        Ok(self.read(&shared::rows(tx, &self.space()).await?))
    }

    fn model(&self) -> Model {
        self.holding(self.first_items())
    }
}

/// The items that a call enqueues.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Batch {
    client: u16,
    number: u16,
    items: u16,
    length: usize,
}

impl Batch {
    /// The names and values of the items. An item's bytes repeat those of its name.
    fn items(&self) -> impl Iterator<Item = (Name, Vec<u8>)> + use<> {
        let Batch { client, number, items, length } = *self;
        (0..items).map(move |part| {
            let bytes = [client as u8, number as u8, part as u8];
            let mut value = bytes.repeat(length.div_ceil(bytes.len()));
            value.truncate(length);
            ((client, number, part), value)
        })
    }
}

/// So many items of this length.
fn batch(items: std::ops::Range<u16>, length: impl Strategy<Value = usize>) -> impl Strategy<Value = Batch> {
    (items, length).prop_map(|(items, length)| Batch { client: 0, number: 0, items, length })
}

/// A position as answers contain it.
#[derive(Clone, Copy, Debug, Eq, Serialize, Deserialize)]
enum Spot {
    /// In index order.
    Index(i64),
    /// In commit order. The transaction that appended the item does not know the stamp.
    Commit(Option<[u8; 10]>),
}

/// An unknown stamp equals every stamp.
impl PartialEq for Spot {
    fn eq(&self, other: &Spot) -> bool {
        match (self, other) {
            (Spot::Index(a), Spot::Index(b)) => a == b,
            (Spot::Commit(a), Spot::Commit(b)) => a.is_none() || b.is_none() || a == b,
            _ => false,
        }
    }
}

/// The longest value that a queue takes.
const LONGEST: usize = 99_900;

/// The maximum length of a key below the queue's prefix.
const MOST_KEY_BYTES: usize = 64;

/// The name in an id, unless the id was drawn.
fn name(drawn: ItemId) -> Option<Name> {
    let name = item_name(drawn);
    (item_id(name).0[..15] == drawn.0[..15]).then_some(name)
}

/// A position, as answers contain it.
fn spot(position: &Position) -> Spot {
    match position {
        Position::Index { index, .. } => Spot::Index(*index),
        Position::Commit { stamp, .. } => Spot::Commit((*stamp != UNSTAMPED).then_some(*stamp)),
    }
}

/// The number of items, and a digest of them.
fn digest(items: impl Iterator<Item = Item>) -> Digest {
    shared::digest(items.map(|(spot, name, content)| match spot {
        Spot::Index(index) => (Some(index), None, name, content),
        Spot::Commit(stamp) => (None, stamp, name, content),
    }))
}

/// An item, as answers contain it.
fn shown_item(item: &layer::Item) -> Item {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = &item.position;
    (spot(&item.position), name(*id), Content::from(&item.value))
}

fn enqueued_at(position: Position) -> QueueAnswer {
    // The recorded position has a stamp. If the commit has not filled it in, it equals no expected one.
    QueueAnswer::enqueue(vec![match position {
        Position::Index { index, .. } => Spot::Index(index),
        Position::Commit { stamp, .. } => Spot::Commit(Some(stamp)),
    }])
}

fn dequeued_item(first: Option<layer::Item>) -> QueueAnswer {
    QueueAnswer::dequeue(first.as_ref().map(shown_item))
}

/// The last four bytes in hexadecimal.
fn shown(bytes: &[u8]) -> String {
    bytes[bytes.len().saturating_sub(4)..].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Queue>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use std::collections::BTreeSet;

    #[test]
    fn plans_have_both_orders_and_every_kind_of_call() {
        let mut seen = BTreeSet::new();
        for seed in 0..100 {
            let (_, operations) = drawn::<Mounted<Queue>>(seed);
            for op in operations.iter().flatten().flatten() {
                seen.insert(match op {
                    QueueOp::enqueue { batch } if batch.length > LONGEST => "oversized".to_owned(),
                    QueueOp::enqueue { batch } if batch.length == LONGEST => "longest".to_owned(),
                    QueueOp::enqueue { batch } | QueueOp::enqueue_some { batch } => {
                        format!("{} items", batch.items.min(2))
                    }
                    QueueOp::pages { isolation, .. } => format!("pages {isolation:?}"),
                    other => format!("{other:?}"),
                });
            }
        }
        assert_eq!(seen.len(), 4 + 10 + 3, "{seen:?}");
    }

    #[test]
    fn ids_contain_their_names_unless_they_were_drawn() {
        for item in [(0, 0, 0), (8, 300, 3), (u16::MAX, 1, 0)] {
            assert_eq!(name(item_id(item)), Some(item));
        }
        assert_eq!(name(ItemId([1; 16])), None);
    }

    #[test]
    fn a_stamp_is_learned_from_the_commit() {
        let (known, other) = (Spot::Commit(Some([1; 10])), Spot::Commit(Some([2; 10])));
        assert!(Spot::Commit(None) == known && known != other && known != Spot::Index(1));
    }
}
