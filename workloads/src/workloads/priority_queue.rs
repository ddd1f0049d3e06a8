//! `priority_queue`: items are pushed, popped at both ends and moved to other priorities.
//!
//! A few priorities, negative ones and the extremes among them, so that many items share one: then the order
//! of pushes decides, at both ends. Which count a push computes follows from what its transaction read, and
//! the item ids are drawn with the operations; the sequential model therefore knows every place exactly.

use crate::{
    sabotage::priority_queue as sabotage,
    specimen::{self, At, Content, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    limits,
    once::Session,
    priority_queue::{self as layer, End, Error, MAX_VALUE_BYTES, Place, PriorityQueue},
    queue::ItemId,
    tx::{
        self, Database, Env,
        Isolation::{Serializable, Snapshot},
        Transaction,
    },
};
use shaketable_sim::{proto::Version, seed::Stream, trace::hash_bytes};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

flaws! {
    Unrecorded = UNRECORDED, "what was popped by an attempt that committed unseen is lost, and what was pushed is pushed again", "the recipe's push and pop";
    PushAsPrinted = "push-as-printed", "the random part of the key is drawn in the transaction function, and nothing is recorded", "the recipe's push";
    PopMaxAsPrinted = "pop-max-as-printed", "pop_max takes the last item of the highest priority, which was pushed last", "the recipe's pop(max=True)";
    SnapshotPop = "snapshot-pop", "the first item is read at snapshot and cleared blindly", "a blind clear";
    PeekThenPop = "peek-then-pop", "the item is peeked at in one transaction and removed in another", "a peek that is acted upon later";
    SerializableCount = "serializable-count", "the next count is read serializably, so that pushes conflict", "a fix gone too far";
    CachedCount = "cached-count", "the next count is read once for several pushes of a transaction", "several items in one transaction";
    UnsignedPriority = "unsigned-priority", "a priority is encoded as the eight bytes of its two's complement, which sorts -1 above all", "an encoding made by hand";
    ChangeInTwo = "change-in-two", "a change removes the item in one transaction and pushes it again in another", "an operation cut in two";
    EmptyIsNothing = "empty-is-nothing", "an empty value is popped as if there were no item", "absent and empty taken for one";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole queue", "a range that is longer than a batch";
}

/// The priorities that are drawn: around zero, where one byte ends, and the extremes.
const PRIORITIES: [i64; 7] = [0, -1, 1, -300, 256, i64::MIN, i64::MAX];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// Of [`PRIORITIES`], how many are used.
    priorities: usize,
    /// Values have up to so many bytes.
    longest: usize,
    /// How often an operation pushes, pops, changes a priority, looks.
    mix: [u32; 4],
    flaw: Option<Flaw>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Pushes items.
    Push(Batch),
    /// Removes the first item at an end.
    Pop(End),
    /// Looks at the first item at an end.
    Peek(End),
    /// Gives the item that stands at `nth`, as a snapshot shows them, another priority; with `stale` it
    /// then does the same once more, with the place where the item no longer is.
    Change {
        /// Which item, counted from the lowest priority, modulo their number.
        nth: usize,
        /// The new priority.
        to: i64,
        /// Whether to use the old place again.
        stale: bool,
    },
    /// Lists the items.
    Items,
    /// Tries to push a value that does not fit.
    Oversized(i64),
}

/// What is pushed by one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub(crate) client: u16,
    pub(crate) number: u16,
    pub(crate) items: u16,
    pub(crate) priority: i64,
    pub(crate) length: usize,
}

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Pushed, at these counts.
    Pushed(Vec<i64>),
    /// The first item, or none.
    First(Option<Item>),
    /// The item has this priority now and had another before, or there was no item.
    Changed(Option<(Name, i64)>),
    /// So many items, and a digest of them in their order.
    Items(usize, u64),
}

/// An item, as answers tell it: priority, name, value.
pub type Item = (i64, Name, Content);

/// Names an item: its client, its call's number, its place in the call.
pub type Name = (u16, u16, u16);

impl Batch {
    pub(crate) fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let (client, number) = (self.client, self.number);
        (0..self.items).map(move |part| (client, number, part))
    }

    /// What every item of the call holds.
    pub(crate) fn value(&self) -> Vec<u8> {
        vec![self.number as u8; self.length]
    }
}

/// The id of an item. Ids sort by chance; the name inside makes them readable and different.
pub(crate) fn id(name: Name) -> ItemId {
    let mut id = [0; 16];
    let parts = [name.0.to_be_bytes(), name.1.to_be_bytes(), name.2.to_be_bytes()].concat();
    id[8..14].copy_from_slice(&parts);
    id[..8].copy_from_slice(&hash_bytes(0, &parts).to_be_bytes());
    ItemId(id)
}

/// The name in an id.
fn name(id: ItemId) -> Name {
    let part = |at: usize| u16::from_be_bytes([id.0[at], id.0[at + 1]]);
    (part(8), part(10), part(12))
}

pub(crate) fn queue() -> PriorityQueue {
    PriorityQueue::new(Subspace::from("priorities"))
}

pub(crate) fn told(item: &layer::Item) -> Item {
    (item.place.priority, name(item.place.id), Content::from(&item.value))
}

/// The digest of items in their order.
pub(crate) fn digest(items: impl Iterator<Item = Item>) -> Answer {
    let (mut count, mut hash) = (0, 0);
    for item in items {
        count += 1;
        hash = hash_bytes(hash, format!("{item:?}").as_bytes());
    }
    Answer::Items(count, hash)
}

/// One call, done right.
pub(crate) async fn perform<T: Transaction>(tx: &T, op: &Op) -> Result<Answer, Error> {
    let queue = queue();
    Ok(match op {
        Op::Push(batch) => {
            let mut counts = Vec::new();
            for name in batch.names() {
                counts.push(queue.push(tx, id(name), batch.priority, &batch.value()).await?.count);
            }
            Answer::Pushed(counts)
        }
        Op::Pop(end) => Answer::First(queue.pop(tx, *end).await?.as_ref().map(told)),
        Op::Peek(end) => Answer::First(queue.peek(tx, *end, Serializable).await?.as_ref().map(told)),
        Op::Change { nth, to, stale } => {
            let items = queue.items(tx, Snapshot).await?;
            let Some(nth) = nth.checked_rem(items.len()) else { return Ok(Answer::Changed(None)) };
            let place = items[nth].place;
            queue.change(tx, place, *to).await?;
            if *stale {
                queue.change(tx, place, *to).await?;
            }
            Answer::Changed(Some((name(place.id), place.priority)))
        }
        Op::Items => digest(queue.items(tx, Serializable).await?.iter().map(told)),
        Op::Oversized(priority) => {
            let place = queue.push(tx, ItemId([0; 16]), *priority, &vec![0; MAX_VALUE_BYTES + 1]).await?;
            Answer::Pushed(vec![place.count])
        }
    })
}

/// The sequential model: the items, and what past versions held, from which counts follow.
#[derive(Clone)]
pub struct Model {
    items: BTreeMap<Place, Content>,
    past: Vec<(Version, Arc<BTreeSet<Place>>)>,
    /// The transaction under way: its stamp, and what it sees at snapshot.
    open: Option<([u8; 10], BTreeSet<Place>)>,
}

/// Only what is stored.
impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.items == other.items
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.items
            .iter()
            .map(|(at, value)| (at.priority, at.count, name(at.id), value))
            .collect::<Vec<_>>()
            .fmt(f)
    }
}

impl Model {
    fn new(items: BTreeMap<Place, Content>) -> Model {
        Model { items, past: Vec::new(), open: None }
    }

    /// Begins a transaction, unless it is the one under way.
    fn begin(&mut self, at: &At) {
        if let Some((stamp, _)) = &self.open
            && at.stamp != Some(*stamp)
        {
            let [a, b, c, d, e, f, g, h, ..] = *stamp;
            let version = Version::from_be_bytes([a, b, c, d, e, f, g, h]);
            self.past.push((version, Arc::new(self.items.keys().copied().collect())));
            self.open = None;
        }
        if let (None, Some(stamp)) = (&self.open, at.stamp) {
            let read = at.read_version.unwrap_or(0);
            let known = self.past.partition_point(|(version, _)| *version <= read);
            let seen = known.checked_sub(1).map(|i| (*self.past[i].1).clone());
            self.open = Some((stamp, seen.unwrap_or_default()));
        }
    }

    /// The places that the transaction sees at snapshot.
    fn seen(&self) -> BTreeSet<Place> {
        self.open.as_ref().map_or_else(|| self.items.keys().copied().collect(), |(_, seen)| seen.clone())
    }

    fn insert(&mut self, id: ItemId, priority: i64, value: Content) -> i64 {
        let least = Place { priority, count: i64::MIN, id: ItemId([0; 16]) };
        let most = Place { priority, count: i64::MAX, id: ItemId([255; 16]) };
        let count = self.seen().range(least..=most).next_back().map_or(0, |last| last.count + 1);
        let place = Place { priority, count, id };
        self.items.insert(place, value);
        if let Some((_, seen)) = &mut self.open {
            seen.insert(place);
        }
        count
    }

    fn remove(&mut self, place: Place) -> Option<Content> {
        if let Some((_, seen)) = &mut self.open {
            seen.remove(&place);
        }
        self.items.remove(&place)
    }

    fn first(&self, end: End) -> Option<(Place, Content)> {
        let priority = match end {
            End::Min => self.items.first_key_value()?.0.priority,
            End::Max => self.items.last_key_value()?.0.priority,
        };
        let (place, value) = self.items.iter().find(|(place, _)| place.priority == priority)?;
        Some((*place, value.clone()))
    }

    fn change(&mut self, place: Place, to: i64) -> Result<(), Error> {
        let value = self.items.get(&place).ok_or(Error::Gone(place))?.clone();
        if to != place.priority {
            self.insert(place.id, to, value);
            self.remove(place);
        }
        Ok(())
    }
}

impl Specimen for Queue {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "priority_queue";
    const ABOUT: &'static str = "pushes, pops at both ends and changes of priority, in the order promised";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "priority_queue: a pop finds no item",
            "priority_queue: an item changes its priority",
            "priority_queue: the highest priority has several items",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        Queue {
            priorities: rng.range(1..PRIORITIES.len() as u64 + 1) as usize,
            longest: *rng.pick(&[1, 100, 3_000]),
            mix: [rng.range(3..8), rng.range(3..8), rng.range(0..4), rng.range(1..3)].map(|w| w as u32),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let key = |priority: &i64| queue().subspace().pack(&(*priority, 1)).into();
        PRIORITIES[..self.priorities].iter().map(key).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let priority = || select(&PRIORITIES[..self.priorities]);
        let end = || select(vec![End::Min, End::Max]);
        let batch = (priority(), 1u16..4, 0..=self.longest).prop_map(|(priority, items, length)| {
            Op::Push(Batch { client: 0, number: 0, items, priority, length })
        });
        let change = (any::<u16>(), priority(), 0..8u8);
        let change = change.prop_map(|(nth, to, odd)| Op::Change { nth: nth.into(), to, stale: odd == 0 });
        let [push, pop, move_, look] = self.mix;
        prop_oneof![
            4 * push => batch,
            6 * pop => end().prop_map(Op::Pop),
            3 * move_ => change,
            2 * look => end().prop_map(Op::Peek),
            look => Just(Op::Items),
            1 => priority().prop_map(Op::Oversized),
        ]
        .boxed()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Push(batch) = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Peek(_) | Op::Items)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Push(_))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        if let Some(flaw) = self.flaw
            && let Some(answer) = sabotage::perform(flaw, tx, op).await
        {
            return answer;
        }
        perform(tx, op).await
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        sabotage::divert(self.flaw?, session, ops).await
    }

    fn model(&self) -> Model {
        Model::new(BTreeMap::new())
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        Ok(match op {
            Op::Push(batch) => {
                let value = Content::from(&batch.value());
                let push = |name| model.insert(id(name), batch.priority, value.clone());
                Answer::Pushed(batch.names().map(push).collect())
            }
            Op::Pop(end) => {
                let first = model.first(*end);
                first.iter().for_each(|(place, _)| drop(model.remove(*place)));
                Answer::First(first.map(|(at, value)| (at.priority, name(at.id), value)))
            }
            Op::Peek(end) => {
                Answer::First(model.first(*end).map(|(at, value)| (at.priority, name(at.id), value)))
            }
            Op::Change { nth, to, stale } => {
                let seen = model.seen();
                let Some(nth) = nth.checked_rem(seen.len()) else { return Ok(Answer::Changed(None)) };
                let Some(place) = seen.into_iter().nth(nth) else { return Ok(Answer::Changed(None)) };
                model.change(place, *to)?;
                if *stale {
                    model.change(place, *to)?;
                }
                Answer::Changed(Some((name(place.id), place.priority)))
            }
            Op::Items => {
                let items = model.items.iter();
                digest(items.map(|(at, value)| (at.priority, name(at.id), value.clone())))
            }
            Op::Oversized(priority) => {
                let under = queue().subspace().subspace(priority);
                limits::value_up_to(MAX_VALUE_BYTES, under.bytes(), &vec![0; MAX_VALUE_BYTES + 1])?;
                Answer::Pushed(Vec::new())
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let items = match queue().items(tx, Serializable).await {
            Ok(items) => items,
            Err(Error::Fdb(e)) => return Err(e),
            Err(e) => return Ok(Err(e.to_string())),
        };
        let mut model = BTreeMap::new();
        let mut names = BTreeSet::new();
        for layer::Item { mut place, value } in items {
            if place.count < 0 {
                return Ok(Err(format!("{place} has a negative count")));
            }
            if !names.insert(name(place.id)) {
                return Ok(Err(format!("the item {:?} is there twice", name(place.id))));
            }
            place = sabotage::known(self.flaw, place);
            model.insert(place, Content::from(&value));
        }
        Ok(Ok(Model::new(model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_their_names() {
        for item in [(0, 0, 0), (8, 300, 3), (u16::MAX, 1, 0)] {
            assert_eq!(name(id(item)), item);
        }
    }

    /// A push's count follows from what its transaction read, not from what is there by its commit.
    #[test]
    fn counts_go_by_the_read_version() {
        let at = |version: u8, read| At {
            stamp: Some([0, 0, 0, 0, 0, 0, 0, version, 0, 0]),
            read_version: Some(read),
        };
        let mut model = Model::new(BTreeMap::new());
        let mut push = |number, at: At| {
            model.begin(&at);
            model.insert(id((0, number, 0)), 7, Content::of(0, 0))
        };
        assert_eq!(push(1, at(10, 0)), 0);
        assert_eq!(push(2, at(10, 0)), 1);
        assert_eq!(push(3, at(20, 9)), 0);
        assert_eq!(push(4, at(30, 20)), 2);
        let first = model.first(End::Max).map(|(place, _)| place.count);
        assert_eq!(first, Some(0));
        assert_eq!(model.first(End::Min), model.first(End::Max));
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Flaw::named(bug.name).is_some());
        }
    }
}
