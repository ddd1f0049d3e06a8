//! `priority_queue`: items are pushed, popped at both ends and moved to other priorities.
//!
//! There are few priorities, including negative ones and the extremes, so that many items share one; then the
//! order of the pushes decides, at both ends. The count that a push computes follows from what its
//! transaction read, and the item ids are drawn with the operations. The sequential model therefore knows
//! every place exactly.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;

use crate::shared::{
    self, ItemName as Name, came_back, item_id, item_name, one_call, page_sizes, paged, prefix_before, turned,
};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use model::Model;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, Recorded, concluded},
    strategies,
};
use shaketable_layers::{
    priority_queue::{self as layer, End, Error, Place, PriorityQueue},
    queue::ItemId,
};
use shaketable_tx::once::{Fate, OpId};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// The first of [`PRIORITIES`] that is used, and how many from there on.
    priorities: (usize, usize),
    /// The count of the item that exists from the beginning, if there is one.
    start: Option<i64>,
    /// The usual maximum length of values, in bytes; a few are longer.
    usual: usize,
    /// The weights of pushes, pops, changes of priority, and looks.
    mix: [u32; 4],
    /// The bits of priorities that are stored flipped: none, unless a planted bug does so.
    flipped: i64,
    /// Whether the last byte of an id may be any: only where a planted bug draws it.
    any_suffix: bool,
}

/// An item as answers contain it: priority, name, value.
type Item = (i64, Name, Content);

/// The number of items, and a digest of them in their order.
type Digest = (usize, u64);

/// Pushes, pops at both ends and changes of priority, in the order promised.
#[shaketable::workload(name = "priority_queue", model = Model, planted, promises(turns, limits))]
impl Queue {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        let start = *rng.pick(&[None, None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 10)]);
        let is_unsigned = bug == Some("unsigned-priority");
        Queue {
            priorities: (rng.range(0..12) as usize, rng.range(1..8) as usize),
            start: if is_unsigned { None } else { start },
            usual: *rng.pick(&[1, 100, 3_000]),
            mix: [rng.range(3..8), rng.range(3..8), rng.range(1..4), rng.range(1..3)].map(|w| w as u32),
            flipped: if is_unsigned { i64::MIN } else { 0 },
            any_suffix: bug == Some("push-as-printed"),
        }
    }

    fn points() -> &'static [&'static str] {
        &[
            "priority_queue: a pop finds no item",
            "priority_queue: an item changes its priority",
            "priority_queue: the highest priority has several items",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.priorities().into_iter().map(|priority| queue().subspace().pack(&(priority, 1))).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 2] {
        [queue().subspace().range(), Subspace::from_bytes(deep_prefix(0)).range()]
    }

    fn number(op: &mut QueueOp, client: usize, number: usize) {
        if let QueueOp::push { batch } | QueueOp::push_some { batch } = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn is_conflict_free(&self, op: &QueueOp) -> bool {
        use QueueOp::{is_empty, items, len, pages, peek, push, push_some};
        match op {
            push { .. } | push_some { .. } | peek { at_snapshot: true, .. } => true,
            is_empty { isolation } | len { isolation } | items { isolation } | pages { isolation, .. } => {
                *isolation == Snapshot
            }
            _ => false,
        }
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Error> {
        self.first_items().keys().for_each(|place| tx.set(&key(place), b"first"));
        Ok(())
    }

    /// A call that is alone in its transaction is recorded with the layer's own answer.
    async fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[QueueOp],
    ) -> Option<Outcome<Answer<QueueAnswer>>> {
        let queue = &queue();
        match ops {
            _ if bug.is_some() => None,
            [QueueOp::push { batch }] => {
                let (id, value) = (item_id(batch.names().next()?), &batch.value());
                let run = session.apply(|tx| async move { queue.push(&tx, id, batch.priority, value).await });
                Some(concluded(run.await.map(|place| Recorded(vec![pushed(place)]))))
            }
            [QueueOp::pop { end, .. }] => {
                let run = session.apply(|tx| async move { queue.pop(&tx, *end).await });
                Some(concluded(run.await.map(|first| Recorded(vec![popped(first)]))))
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
            [QueueOp::push { .. }] if bug.is_none() => {
                session.resolve(pending).await?.map(|place| vec![pushed(place)])
            }
            [QueueOp::pop { .. }] if bug.is_none() => {
                session.resolve(pending).await?.map(|first| vec![popped(first)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn priorities(&self) -> Vec<i64> {
        let (from, count) = self.priorities;
        PRIORITIES.into_iter().cycle().skip(from).take(count).collect()
    }

    #[draws(to)]
    fn priority(&self) -> BoxedStrategy<i64> {
        strategies::mostly(select(self.priorities()), strategies::integers()).boxed()
    }

    /// So many items of this length.
    fn batch(
        &self,
        items: impl Strategy<Value = u16> + 'static,
        length: impl Strategy<Value = usize> + 'static,
    ) -> BoxedStrategy<Batch> {
        let batch = |(priority, items, length)| Batch { client: 0, number: 0, items, priority, length };
        (self.priority(), items, length).prop_map(batch).boxed()
    }

    #[draws(isolation)]
    fn isolation() -> impl Strategy<Value = Isolation> {
        select(vec![Serializable, Snapshot])
    }

    #[draws(end)]
    fn end() -> impl Strategy<Value = End> {
        select(vec![End::Min, End::Max])
    }

    #[draws(nth)]
    fn nth() -> impl Strategy<Value = u16> {
        any::<u16>()
    }

    #[write(weight = 80 * self.mix[0], at)]
    async fn push(
        &self,
        tx: &Tx,
        #[draw(self.batch(Just(1), strategies::lengths(self.usual, LONGEST)))] batch: &Batch,
    ) -> Result<Vec<i64>, Error> {
        let mut counts = Vec::new();
        for name in batch.names() {
            let place = queue().push(tx, item_id(name), batch.priority, &batch.value()).await?;
            counts.push(came_back(place).count);
        }
        Ok(counts)
    }

    #[write(weight = 80 * self.mix[0] + 4, at, composed)]
    async fn push_some(
        &self,
        tx: &Tx,
        #[draw(self.batch(prop_oneof![20 * self.mix[0] => 2..4u16, 1 => 30..90u16], 0..=self.usual))]
        batch: &Batch,
    ) -> Result<Vec<i64>, Error> {
        self.push(&one_call(tx, false).await, batch).await
    }

    /// Removes the first item at an end, with the function that has the end in its name if `named`.
    #[write(weight = 240 * self.mix[1], at)]
    async fn pop(
        &self,
        tx: &Tx,
        end: End,
        #[draw(any::<bool>())] named: bool,
    ) -> Result<Option<Item>, Error> {
        let first = match (end, named) {
            (End::Min, true) => queue().pop_min(tx).await?,
            (End::Max, true) => queue().pop_max(tx).await?,
            (end, false) => queue().pop(tx, end).await?,
        };
        Ok(came_back(first).as_ref().map(shown))
    }

    /// Changes the priority of the item at `nth`, as a snapshot shows the items, counted from the lowest
    /// priority, modulo their number. Tells the item's name and its previous priority.
    #[write(weight = 105 * self.mix[2], at)]
    async fn change(&self, tx: &Tx, nth: u16, to: i64) -> Result<Option<(Name, i64)>, Error> {
        self.change_times(tx, nth, to, 1).await
    }

    /// Does the same, and then again with the item's previous place.
    #[write(weight = 15 * self.mix[2], at, composed)]
    async fn change_again(&self, tx: &Tx, nth: u16, to: i64) -> Result<Option<(Name, i64)>, Error> {
        self.change_times(tx, nth, to, 2).await
    }

    async fn change_times(
        &self,
        tx: &Tx,
        nth: u16,
        to: i64,
        times: usize,
    ) -> Result<Option<(Name, i64)>, Error> {
        let (queue, tx) = (queue(), &one_call(tx, false).await);
        let items = queue.items(tx, Snapshot).await?;
        let Some(nth) = usize::from(nth).checked_rem(items.len()) else { return Ok(None) };
        let place = items[nth].place;
        for _ in 0..times {
            queue.change(&turned(tx), place, to).await?;
        }
        Ok(Some((item_name(place.id), place.priority)))
    }

    /// Looks at the first item at an end. Its level is not an `Isolation`, so that it is not done at both
    /// levels: a serializable look finds the highest priority at snapshot, and adds what it depends on.
    #[read(weight = 80 * self.mix[3], at)]
    async fn peek(
        &self,
        tx: &Tx,
        end: End,
        #[draw(any::<bool>())] at_snapshot: bool,
    ) -> Result<Option<Item>, Error> {
        let isolation = shared::isolation(at_snapshot);
        let first = match end {
            End::Min => queue().peek_min(tx, isolation).await?,
            End::Max => queue().peek_max(tx, isolation).await?,
        };
        Ok(first.as_ref().map(shown))
    }

    #[read(weight = 16 * self.mix[3], at)]
    async fn is_empty(&self, tx: &Tx, isolation: Isolation) -> Result<bool, Error> {
        queue().is_empty(tx, isolation).await
    }

    #[read(weight = 32 * self.mix[3], at)]
    async fn len(&self, tx: &Tx, isolation: Isolation) -> Result<usize, Error> {
        queue().len(tx, isolation).await
    }

    #[read(weight = 32 * self.mix[3], at)]
    async fn items(&self, tx: &Tx, isolation: Isolation) -> Result<Digest, Error> {
        Ok(shared::digest(queue().items(tx, isolation).await?.iter().map(shown)))
    }

    /// Reads all items, by pages of this many.
    #[read(weight = 16 * self.mix[3], at)]
    async fn pages(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(page_sizes())] most: usize,
    ) -> Result<Digest, Error> {
        let (queue, tx) = (queue(), &turned(&one_call(tx, true).await));
        let page =
            |last: Option<&layer::Item>| queue.items_page(tx, last.map(|item| item.place), most, isolation);
        Ok(shared::digest(paged(most, page).await?.iter().map(shown)))
    }

    /// Pushes to a queue whose prefix is so long that a key has the maximum length, or this many bytes more,
    /// and pops what it has pushed. Tells the count.
    #[write(weight = 8, rare)]
    async fn deep(&self, tx: &Tx, #[draw(0..2usize)] beyond: usize) -> Result<i64, Error> {
        let tx = &one_call(tx, false).await;
        let deep = PriorityQueue::new(Subspace::from_bytes(deep_prefix(beyond)));
        let count = deep.push(tx, ItemId([1; 16]), 0, b"").await?.count;
        deep.pop_min(tx).await?;
        Ok(count)
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        Ok(self.read(&shared::rows(tx, queue().subspace()).await?))
    }

    fn model(&self) -> Model {
        Model::holding(self.first_items())
    }
}

/// The items that one call pushes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Batch {
    client: u16,
    number: u16,
    items: u16,
    priority: i64,
    length: usize,
}

impl Batch {
    fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let (client, number) = (self.client, self.number);
        (0..self.items).map(move |part| (client, number, part))
    }

    /// The value of every item of the call.
    fn value(&self) -> Vec<u8> {
        vec![self.number as u8; self.length]
    }
}

/// The priorities that are drawn: around zero, where another byte is needed, and the extremes.
const PRIORITIES: [i64; 12] = [0, -1, 1, -300, 256, i64::MIN, i64::MAX, 255, -255, -256, 65_536, -65_536];

/// The longest value that a queue takes.
const LONGEST: usize = 99_900;

/// The length of the key of an item with priority 0, count 0 and an id without zeros, below the prefix.
const DEEP_BYTES: usize = 20;

/// The longest prefix of a queue that takes an item of priority 0, and this many bytes more.
fn deep_prefix(beyond: usize) -> Vec<u8> {
    prefix_before(DEEP_BYTES, beyond)
}

fn queue() -> PriorityQueue {
    PriorityQueue::new(Subspace::from("priorities"))
}

fn key(place: &Place) -> Vec<u8> {
    queue().subspace().pack(&(place.priority, place.count, TupleBytes::from(&place.id.0[..])))
}

fn shown(item: &layer::Item) -> Item {
    (item.place.priority, item_name(item.place.id), Content::from(&item.value))
}

fn pushed(place: Place) -> QueueAnswer {
    QueueAnswer::push(vec![place.count])
}

fn popped(first: Option<layer::Item>) -> QueueAnswer {
    QueueAnswer::pop(first.as_ref().map(shown))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Queue>>()
}
