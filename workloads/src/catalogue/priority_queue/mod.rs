//! `priority_queue`: items are pushed, popped at both ends and moved to other priorities.
//!
//! A few priorities, negative ones and the extremes among them, so that many items share one: then the order
//! of pushes decides, at both ends. Which count a push computes follows from what its transaction read, and
//! the item ids are drawn with the operations; the sequential model therefore knows every place exactly.

mod planted;

use crate::beside;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    models::timeline::Timeline,
    specimen::{self, At, Content, Recorded, Specimen, UNRECORDED},
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    limits,
    once::{self, Fate, OpId, Session},
    priority_queue::{self as layer, End, Error, Place, PriorityQueue},
    queue::ItemId,
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, Transaction,
    },
};
use shaketable_sim::{seed::Stream, trace::hash_bytes};
use std::collections::{BTreeMap, BTreeSet};

shaketable::planted_bugs! {
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
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is done at snapshot", "a snapshot read in a composed look-up";
    NothingAbove = "nothing-above", "pop_max does not conflict with a push of a higher priority", "a conflict range dropped";
    WideRange = "wide-range", "the queue's range ends where no key with its prefix is left", "prefix confusion";
    ChangeKeepsCount = "change-keeps-count", "an item keeps its count at its new priority", "an order that is taken along";
    ChangeForgets = "change-forgets", "an item that goes to a lower priority stays at the higher one as well", "a clear forgotten on one path";
    StaleIsFine = "stale-is-fine", "changing an item that is no longer at its place answers the place", "a refusal forgotten";
    LimitBeyond = "limit-beyond", "a value one byte beyond the limit is taken", "a limit off by one";
    CountWraps = "count-wraps", "after the largest count comes the smallest", "a counter that wraps around";
}

/// The priorities that are drawn: around zero, where another byte begins, and the extremes.
const PRIORITIES: [i64; 12] = [0, -1, 1, -300, 256, i64::MIN, i64::MAX, 255, -255, -256, 65_536, -65_536];

/// So many items are listed at a time.
const PAGE: usize = 3;

/// The longest value that a queue takes.
pub(crate) const LONGEST: usize = 99_900;

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// From where on and how many of [`PRIORITIES`] are used.
    priorities: (usize, usize),
    /// The count of the item that is there from the beginning, if one is.
    start: Option<i64>,
    /// Values have mostly up to so many bytes.
    usual: usize,
    /// How often an operation pushes, pops, changes a priority, looks.
    mix: [u32; 4],
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Pushes items.
    Push(Batch),
    /// Removes the first item at an end; the second time by the function that has the end in its name.
    Pop(End, bool),
    /// Looks at the first item at an end; at snapshot if asked to.
    Peek(End, bool),
    /// Whether there is no item; at snapshot if asked to.
    IsEmpty(bool),
    /// Counts the items; at snapshot if asked to.
    Len(bool),
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
    /// Lists the items; at snapshot if asked to.
    Items(bool),
    /// Lists them a few at a time.
    Pages(bool),
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
    /// Whether there is none.
    IsEmpty(bool),
    /// How many there are.
    Len(usize),
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
        Op::Pop(end, named) => Answer::First(
            match (end, named) {
                (End::Min, true) => queue.pop_min(tx).await?,
                (End::Max, true) => queue.pop_max(tx).await?,
                (end, false) => queue.pop(tx, *end).await?,
            }
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
            Answer::Changed(Some((name(place.id), place.priority)))
        }
        Op::Items(snapshot) => digest(queue.items(tx, isolation(*snapshot)).await?.iter().map(told)),
        Op::Pages(snapshot) => {
            let mut items: Vec<layer::Item> = Vec::new();
            loop {
                let after = items.last().map(|item| item.place);
                let page = queue.items_page(tx, after, PAGE, isolation(*snapshot)).await?;
                let ends = page.len() < PAGE;
                items.extend(page);
                if ends {
                    break digest(items.iter().map(told));
                }
            }
        }
    })
}

pub(crate) fn isolation(snapshot: bool) -> Isolation {
    if snapshot { Snapshot } else { Serializable }
}

/// The items, each at its place.
pub type Items = BTreeMap<Place, Content>;

/// The first item at an end.
fn first(items: &Items, end: End) -> Option<(Place, Content)> {
    let priority = match end {
        End::Min => items.first_key_value()?.0.priority,
        End::Max => items.last_key_value()?.0.priority,
    };
    let (place, value) = items.iter().find(|(place, _)| place.priority == priority)?;
    Some((*place, value.clone()))
}

/// Puts an item behind all others of its priority that a snapshot shows.
fn insert(model: &mut Timeline<Items>, id: ItemId, priority: i64, value: Content) -> Result<Place, Error> {
    let least = Place { priority, count: i64::MIN, id: ItemId([0; 16]) };
    let most = Place { priority, count: i64::MAX, id: ItemId([255; 16]) };
    let count = match model.snapshot().range(least..=most).next_back() {
        None => 0,
        Some((last, _)) => last.count.checked_add(1).ok_or(Error::CountsExhausted(priority))?,
    };
    let place = Place { priority, count, id };
    model.write(|items| drop(items.insert(place, value.clone())));
    Ok(place)
}

fn change(model: &mut Timeline<Items>, place: Place, to: i64) -> Result<(), Error> {
    let value = model.now().get(&place).ok_or(Error::Gone(place))?.clone();
    if to != place.priority {
        insert(model, place.id, to, value)?;
        model.write(|items| drop(items.remove(&place)));
    }
    Ok(())
}

fn pushed(place: Place) -> Answer {
    Answer::Pushed(vec![place.count])
}

fn popped(item: Option<layer::Item>) -> Answer {
    Answer::First(item.as_ref().map(told))
}

impl Queue {
    fn priorities(&self) -> Vec<i64> {
        let (from, count) = self.priorities;
        PRIORITIES.into_iter().cycle().skip(from).take(count).collect()
    }

    fn first_items(&self) -> Items {
        let place = |count| Place { priority: self.priorities()[0], count, id: id((u16::MAX, 0, 0)) };
        self.start.map(|count| (place(count), Content::from(b"first"))).into_iter().collect()
    }

    /// Whether single calls are recorded in the layer's own answers.
    fn records_alone(&self, ops: &[Op]) -> bool {
        self.planted.is_none()
            && match ops {
                [Op::Push(batch)] => batch.items == 1,
                [Op::Pop(..)] => true,
                _ => false,
            }
    }
}

impl Specimen for Queue {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Timeline<Items>;

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
        let planted = bug.and_then(Planted::named);
        let start = *rng.pick(&[None, None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 10)]);
        Queue {
            priorities: (rng.range(0..12) as usize, rng.range(1..8) as usize),
            start: match planted {
                Some(Planted::CountWraps) => Some(i64::MAX),
                Some(Planted::UnsignedPriority) => None,
                _ => start,
            },
            usual: *rng.pick(&[1, 100, 3_000]),
            mix: [rng.range(3..8), rng.range(3..8), rng.range(1..4), rng.range(1..3)].map(|w| w as u32),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let key = |priority: i64| queue().subspace().pack(&(priority, 1)).into();
        self.priorities().into_iter().map(key).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let priority = || select(self.priorities());
        let end = || select(vec![End::Min, End::Max]);
        let batch = |items: std::ops::Range<u16>, length: BoxedStrategy<usize>| {
            (priority(), items, length).prop_map(|(priority, items, length)| {
                Op::Push(Batch { client: 0, number: 0, items, priority, length })
            })
        };
        let usual = || (0..=self.usual).boxed();
        let change = (any::<u16>(), priority(), 0..8u8);
        let change = change.prop_map(|(nth, to, odd)| Op::Change { nth: nth.into(), to, stale: odd == 0 });
        let [push, pop, move_, look] = self.mix;
        prop_oneof![
            20 * push => batch(1..2, strategies::lengths(self.usual, LONGEST)),
            20 * push => batch(2..4, usual()),
            1 => batch(30..90, usual()),
            60 * pop => (end(), any::<bool>()).prop_map(|(end, named)| Op::Pop(end, named)),
            30 * move_ => change,
            20 * look => (end(), any::<bool>()).prop_map(|(end, snapshot)| Op::Peek(end, snapshot)),
            4 * look => any::<bool>().prop_map(Op::IsEmpty),
            8 * look => any::<bool>().prop_map(Op::Len),
            8 * look => any::<bool>().prop_map(Op::Items),
            4 * look => any::<bool>().prop_map(Op::Pages),
        ]
        .boxed()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Push(batch) = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Peek(..) | Op::IsEmpty(_) | Op::Len(_) | Op::Items(_) | Op::Pages(_))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(op, Push(_) | Peek(_, true) | IsEmpty(true) | Len(true) | Items(true) | Pages(true))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        beside::plant(db, &beside::of(queue().subspace().bytes())).await?;
        let first = &self.first_items();
        let stored = db.run(|tx, _| async move {
            for Place { priority, count, id } in first.keys() {
                let key = queue().subspace().pack(&(*priority, *count, TupleBytes::from(&id.0[..])));
                tx.set(&key, b"first");
            }
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op).await
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
        if let Some(planted) = self.planted {
            return planted::divert(planted, session, ops).await;
        }
        if !self.records_alone(ops) {
            return None;
        }
        let queue = &queue();
        match &ops[0] {
            Op::Push(batch) => {
                let (id, value) = (id(batch.names().next()?), &batch.value());
                let run = session.apply(|tx| async move { queue.push(&tx, id, batch.priority, value).await });
                Some(specimen::told(run.await.map(|place| Recorded(vec![pushed(place)]))))
            }
            Op::Pop(end, _) => {
                let run = session.apply(|tx| async move { queue.pop(&tx, *end).await });
                Some(specimen::told(run.await.map(|item| Recorded(vec![popped(item)]))))
            }
            _ => None,
        }
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
        pending: OpId,
    ) -> Result<Fate<Vec<Answer>>, once::Error> {
        Ok(match ops {
            [Op::Push(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|place| vec![pushed(place)])
            }
            [Op::Pop(..)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|item| vec![popped(item)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn model(&self) -> Timeline<Items> {
        Timeline::new(self.first_items())
    }

    fn replay(&self, model: &mut Timeline<Items>, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let item = |(at, value): (Place, Content)| (at.priority, name(at.id), value);
        Ok(match op {
            Op::Push(batch) => {
                let under = queue().subspace().subspace(&batch.priority);
                limits::value_up_to(LONGEST, under.bytes(), &batch.value())?;
                let value = Content::from(&batch.value());
                let push = |name| Ok(insert(model, id(name), batch.priority, value.clone())?.count);
                Answer::Pushed(batch.names().map(push).collect::<Result<_, Error>>()?)
            }
            Op::Pop(end, _) => {
                let first = first(model.now(), *end);
                if let Some((place, _)) = &first {
                    model.write(|items| drop(items.remove(place)));
                }
                Answer::First(first.map(item))
            }
            Op::Peek(end, snapshot) => Answer::First(first(model.seen(*snapshot), *end).map(item)),
            Op::IsEmpty(snapshot) => Answer::IsEmpty(model.seen(*snapshot).is_empty()),
            Op::Len(snapshot) => Answer::Len(model.seen(*snapshot).len()),
            Op::Change { nth, to, stale } => {
                let seen = model.snapshot();
                let Some(nth) = nth.checked_rem(seen.len()) else { return Ok(Answer::Changed(None)) };
                let Some(place) = seen.keys().nth(nth).copied() else { return Ok(Answer::Changed(None)) };
                change(model, place, *to)?;
                if *stale {
                    change(model, place, *to)?;
                }
                Answer::Changed(Some((name(place.id), place.priority)))
            }
            Op::Items(snapshot) | Op::Pages(snapshot) => {
                let items = model.seen(*snapshot).iter();
                digest(items.map(|(at, value)| (at.priority, name(at.id), value.clone())))
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Timeline<Items>, String>> {
        let queue = queue();
        if let Err(why) = beside::check(tx, &beside::of(queue.subspace().bytes())).await? {
            return Ok(Err(why));
        }
        let rows = tx.get_range_all(RangeOption::from(queue.subspace().range()), Serializable).await?;
        let mut model = Items::new();
        let mut names = BTreeSet::new();
        for row in rows {
            let Ok((priority, count, id)) = queue.subspace().unpack::<(i64, i64, TupleBytes<'_>)>(&row.key)
            else {
                return Ok(Err(format!("the key \"{}\" is no item's", row.key.escape_ascii())));
            };
            let Ok(id) = (*id).try_into().map(ItemId) else {
                return Ok(Err(format!("the id {id:?} is no item's")));
            };
            let place = Place { priority, count, id };
            if place.count < 0 {
                return Ok(Err(format!("{place} has a negative count")));
            }
            if !names.insert(name(place.id)) {
                return Ok(Err(format!("the item {:?} is there twice", name(place.id))));
            }
            model.insert(planted::known(self.planted, place), Content::from(&row.value));
        }
        Ok(Ok(Timeline::new(model)))
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
            ..At::default()
        };
        let mut model = Timeline::new(Items::new());
        let mut push = |number, at: At| {
            model.begin(&at);
            insert(&mut model, id((0, number, 0)), 7, Content::of(0, 0)).unwrap().count
        };
        assert_eq!(push(1, at(10, 0)), 0);
        assert_eq!(push(2, at(10, 0)), 1);
        assert_eq!(push(3, at(20, 9)), 0);
        assert_eq!(push(4, at(30, 20)), 2);
        let max = first(model.now(), End::Max);
        assert_eq!(max.as_ref().map(|(place, _)| place.count), Some(0));
        assert_eq!(first(model.now(), End::Min), max);
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
