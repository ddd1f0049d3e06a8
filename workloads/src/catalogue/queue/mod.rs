//! `queue`: clients put items into a queue and take them out, exactly once, in either order.
//!
//! A seed runs the queue in index order or in commit order. Every call composes with others in one
//! transaction, looks of either isolation among them; single ones are recorded in the layer's own answers.
//! Items are named by who enqueued them and when, and in index order their ids follow from their names, so
//! that the sequential model knows every place exactly: which index is the last follows from what a
//! transaction read. In commit order the model learns the stamp where the transaction committed.

mod planted;

use crate::beside;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    models::timeline::Timeline,
    specimen::{self, At, Content, Recorded, Specimen},
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    limits,
    once::{self, Fate, OpId, Session},
    queue::{self as layer, Error, ItemId, Order, Position},
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream, trace::hash_bytes};
use std::collections::{BTreeMap, BTreeSet};

shaketable::planted_bugs! {
    EnqueueAsPrinted = "enqueue-as-printed", "the random part of the key is drawn in the transaction function, and nothing is recorded", "the recipe's enqueue";
    DequeueAsPrinted = "dequeue-as-printed", "an item whose removal committed unseen is lost to a retry", "the recipe's dequeue";
    SnapshotDequeue = "snapshot-dequeue", "the first item is read at snapshot and cleared blindly", "a blind clear";
    OverwrittenFlag = "overwritten-flag", "the record is consulted only if the last failure may have committed", "foundationdb-rs 0.11 MaybeCommitted";
    IdInside = "id-inside", "the record is kept under an id that each attempt draws anew", "an id made where it is used";
    AnswerOfRetry = "answer-of-retry", "a retry that finds its record answers with what it sees itself", "the answer of the last attempt";
    RecordAtSnapshot = "record-at-snapshot", "the record is read at snapshot, so that a late attempt does not conflict", "a record read without isolation";
    RecordCleanedUp = "record-cleaned-up", "the record is removed as soon as the result is unknown", "a record cleaned up too soon";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is done again as a new one", "a timeout taken for a failure";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole queue", "a range that is longer than a batch";
    TwoTransactions = "two-transactions", "the item is read in one transaction and cleared in another", "foundationdb-rs examples/micro-queue.rs";
    CountIsIndex = "count-is-index", "the index of a new item is the number of items", "foundationdb-rs examples/micro-queue.rs";
    ShortSuffix = "short-suffix", "the random part of the key has one of two values", "a suffix that is not random enough";
    TiesInside = "ties-inside", "the last index is read once for several items of a call", "several items in one transaction";
    SerializableLastIndex = "serializable-last-index", "the last index is read serializably, so that enqueues conflict", "a fix gone too far";
    SameRank = "same-rank", "items of one transaction have nothing but the versionstamp to order them", "several items in one transaction in commit order";
    EmptyIsNothing = "empty-is-nothing", "an empty value is taken out as if there were no item", "absent and empty taken for one";
    PeekAtSnapshot = "peek-at-snapshot", "a look at the first item before a write is done at snapshot", "a snapshot read in a composed look-up";
    LookApart = "look-apart", "a look is done in a transaction of its own, before the writes it was called after", "a look-up that does not compose";
    WideRange = "wide-range", "the queue's range ends where no key with its prefix is left", "prefix confusion";
    ItemAlone = "item-alone", "a dequeue conflicts with who takes the item, not with who comes before it", "a conflict range dropped";
    LimitIncluded = "limit-included", "a value of exactly the limit is refused", "a limit off by one";
    LimitBeyond = "limit-beyond", "a value one byte beyond the limit is taken", "a limit off by one";
    NoIndexLeft = "no-index-left", "after the largest index comes the smallest", "a counter that wraps around";
}

/// The longest value that a queue takes.
const LONGEST: usize = 99_900;

/// So many items are listed at a time.
const PAGE: usize = 3;

/// How long a key may get below the queue's prefix.
const MOST_KEY_BYTES: usize = 64;

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    pub(crate) order: Order,
    /// The queue's prefix.
    prefix: Vec<u8>,
    /// In index order, the index of the item that is there from the beginning, if one is.
    start: Option<i64>,
    /// Values have mostly up to so many bytes.
    usual: usize,
    /// How often an operation puts in, takes out, looks.
    mix: [u32; 3],
    pub(crate) planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues items.
    Enqueue(Batch),
    /// Dequeues an item.
    Dequeue,
    /// Looks, at snapshot if asked to.
    Look(Look, bool),
    /// Tries to enqueue into a queue whose prefix leaves no room for its keys.
    Deep,
}

/// What to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// The first item.
    First,
    /// Whether there is none.
    IsEmpty,
    /// How many there are.
    Len,
    /// All of them.
    Items,
    /// All of them, a few at a time.
    Pages,
}

/// What a call enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    client: u16,
    number: u16,
    items: u16,
    length: usize,
}

/// Names an item: its client, its call's number, its place in the call.
pub type Name = (u16, u16, u16);

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued at these places.
    Enqueued(Vec<Spot>),
    /// The first item, or none.
    First(Option<Item>),
    /// Whether there is none.
    IsEmpty(bool),
    /// How many there are.
    Len(usize),
    /// So many items, and a digest of them in their order.
    Items(usize, u64),
}

/// A place as an answer tells it.
#[derive(Clone, Copy, Debug, Eq, Serialize, Deserialize)]
pub enum Spot {
    /// In index order.
    Index(i64),
    /// In commit order; not known to the transaction that has it from itself.
    Commit(Option<[u8; 10]>),
}

/// A stamp that is not known yet may be any.
impl PartialEq for Spot {
    fn eq(&self, other: &Spot) -> bool {
        match (self, other) {
            (Spot::Index(a), Spot::Index(b)) => a == b,
            (Spot::Commit(a), Spot::Commit(b)) => a.is_none() || b.is_none() || a == b,
            _ => false,
        }
    }
}

/// An item as answers tell it: its place, its name unless its id was drawn, its value.
pub type Item = (Spot, Option<Name>, Content);

/// Where the model has an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// By index and id.
    Index(i64, ItemId),
    /// By stamp and number within its transaction.
    Commit([u8; 10], usize),
}

/// The items in their order, each with its name if its id tells that.
pub type Items = BTreeMap<Place, (Option<Name>, Content)>;

const UNSTAMPED: [u8; 10] = [0xff; 10];

impl Batch {
    /// What is enqueued: names and values. An item's bytes are those of its name, over and over.
    pub(crate) fn items(&self) -> impl Iterator<Item = (Name, Vec<u8>)> + use<> {
        let Batch { client, number, items, length } = *self;
        (0..items).map(move |part| {
            let bytes = [client as u8, number as u8, part as u8];
            ((client, number, part), bytes.into_iter().cycle().take(length).collect())
        })
    }

    /// What names this call among all of its run.
    pub(crate) fn number(&self) -> (u16, u16) {
        (self.client, self.number)
    }
}

/// The id of an item whose id is not drawn. Ids sort by chance; the name inside makes them readable.
pub(crate) fn id(name: Name) -> ItemId {
    let mut id = [0; 16];
    let parts = [name.0.to_be_bytes(), name.1.to_be_bytes(), name.2.to_be_bytes()].concat();
    id[8..14].copy_from_slice(&parts);
    id[..8].copy_from_slice(&hash_bytes(0, &parts).to_be_bytes());
    ItemId(id)
}

/// The name in an id, unless it was drawn.
fn name(drawn: ItemId) -> Option<Name> {
    let part = |at: usize| u16::from_be_bytes([drawn.0[at], drawn.0[at + 1]]);
    let name = (part(8), part(10), part(12));
    (id(name).0[..15] == drawn.0[..15]).then_some(name)
}

/// A position as an answer tells it.
pub(crate) fn spot(position: &Position) -> Spot {
    match position {
        Position::Index { index, .. } => Spot::Index(*index),
        Position::Commit { stamp, .. } => Spot::Commit((*stamp != UNSTAMPED).then_some(*stamp)),
    }
}

/// An item as an answer tells it.
pub(crate) fn told(item: &layer::Item) -> Item {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = &item.position;
    (spot(&item.position), name(*id), Content::from(&item.value))
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

pub(crate) fn isolation(snapshot: bool) -> Isolation {
    if snapshot { Snapshot } else { Serializable }
}

impl Queue {
    pub(crate) fn space(&self) -> Subspace {
        Subspace::from_bytes(self.prefix.clone())
    }

    pub(crate) fn queue(&self) -> layer::Queue {
        layer::Queue::new(self.space(), self.order)
    }

    /// An item's id: one that follows from its name in index order, where ids decide between items of one
    /// index, and a drawn one in commit order.
    pub(crate) fn id(&self, env: &Env, name: Name) -> ItemId {
        match self.order {
            Order::Index => id(name),
            Order::Commit => ItemId::draw(env),
        }
    }

    /// One call, done right.
    pub(crate) async fn right<T: Transaction>(&self, tx: &T, env: &Env, op: &Op) -> Result<Answer, Error> {
        let queue = self.queue();
        Ok(match op {
            Op::Enqueue(batch) => {
                let mut spots = Vec::new();
                for (name, value) in batch.items() {
                    spots.push(spot(&queue.enqueue(tx, self.id(env, name), &value).await?));
                }
                Answer::Enqueued(spots)
            }
            Op::Dequeue => Answer::First(queue.dequeue(tx).await?.as_ref().map(told)),
            Op::Look(look, snapshot) => {
                let isolation = isolation(*snapshot);
                match look {
                    Look::First => Answer::First(queue.peek(tx, isolation).await?.as_ref().map(told)),
                    Look::IsEmpty => Answer::IsEmpty(queue.is_empty(tx, isolation).await?),
                    Look::Len => Answer::Len(queue.len(tx, isolation).await?),
                    Look::Items => digest(queue.items(tx, isolation).await?.iter().map(told)),
                    Look::Pages => {
                        let mut items: Vec<layer::Item> = Vec::new();
                        loop {
                            let after = items.last().map(|item| item.position);
                            let page = queue.items_page(tx, after, PAGE, isolation).await?;
                            let ends = page.len() < PAGE;
                            items.extend(page);
                            if ends {
                                break digest(items.iter().map(told));
                            }
                        }
                    }
                }
            }
            Op::Deep => {
                let deep = layer::Queue::new(Subspace::from_bytes(deep()), self.order);
                Answer::Enqueued(vec![spot(&deep.enqueue(tx, ItemId([0; 16]), b"").await?)])
            }
        })
    }

    /// Whether single calls are recorded in the layer's own answers.
    fn records_alone(&self, ops: &[Op]) -> bool {
        self.planted.is_none()
            && match ops {
                [Op::Enqueue(batch)] => batch.items == 1,
                [Op::Dequeue] => true,
                _ => false,
            }
    }

    /// The items that are there from the beginning.
    fn first_items(&self) -> Items {
        let index = self.start.filter(|_| self.order == Order::Index);
        let item = |index| (Place::Index(index, FIRST), (None, Content::from(b"first")));
        index.map(item).into_iter().collect()
    }
}

/// The id of the item that is there from the beginning.
const FIRST: ItemId = ItemId([7; 16]);

/// A prefix that is one byte too long for the keys of a queue.
fn deep() -> Vec<u8> {
    vec![b'q'; tx::KEY_SIZE_LIMIT - MOST_KEY_BYTES + 1]
}

impl Op {
    /// The same look at snapshot; `None` for what is none, or is at snapshot already.
    fn at_snapshot(&self) -> Option<Op> {
        Some(match self.clone() {
            Op::Look(look, false) => Op::Look(look, true),
            _ => return None,
        })
    }
}

impl Specimen for Queue {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Timeline<Items>;

    const NAME: &'static str = "queue";
    const ABOUT: &'static str = "concurrent enqueues and dequeues, exactly once and in the order promised";

    fn bugs() -> &'static [Bug] {
        BUGS
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

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Queue {
        let planted = bug.and_then(Planted::named);
        let drawn = *rng.pick(&[Order::Index, Order::Commit]);
        let prefixes =
            [Subspace::from("queue").into_bytes(), Subspace::from("q\0").into_bytes(), b"\xfe".into()];
        let starts = [None, Some(0), Some(255), Some(i64::MAX - 1), Some(i64::MAX - 30)];
        let start = *rng.pick(&starts);
        Queue {
            order: planted.and_then(Planted::order).unwrap_or(drawn),
            prefix: rng.pick(&prefixes).clone(),
            start: if planted == Some(Planted::NoIndexLeft) { Some(i64::MAX - 1) } else { start },
            usual: *rng.pick(&[0, 100, 3_000]),
            mix: [rng.range(2..10), rng.range(2..10), rng.range(1..4)].map(|w| w as u32),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let item = |n: u8| match self.order {
            Order::Index => self.space().pack(&(2 * u16::from(n), "")),
            Order::Commit => {
                let stamp = [0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0];
                self.space().pack(&Versionstamp::complete(stamp, 0))
            }
        };
        (1..8).map(|n| item(n).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let batch = |items: std::ops::Range<u16>, length: BoxedStrategy<usize>| {
            let batch = |(items, length)| Op::Enqueue(Batch { client: 0, number: 0, items, length });
            (items, length).prop_map(batch)
        };
        let look = prop_oneof![
            2 => Just(Look::First),
            1 => Just(Look::IsEmpty),
            2 => Just(Look::Len),
            2 => Just(Look::Items),
            1 => Just(Look::Pages),
        ];
        let [put, take, see] = self.mix;
        prop_oneof![
            20 * put => batch(1..2, strategies::lengths(self.usual, LONGEST)),
            5 * put => batch(2..5, (0..=self.usual).boxed()),
            1 => batch(30..90, (0..=self.usual).boxed()),
            24 * take => Just(Op::Dequeue),
            12 * see => (look, any::<bool>()).prop_map(|(look, snapshot)| Op::Look(look, snapshot)),
            1 => Just(Op::Deep),
        ]
        .boxed()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Enqueue(batch) = op {
            (batch.client, batch.number) = (client as u16, number as u16);
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Look(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Enqueue(_) | Op::Look(_, true))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
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

    fn takes_isolation(&self, op: &Op) -> bool {
        self.planted.is_none() && op.at_snapshot().is_some()
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, env, op).await
        {
            return answer;
        }
        match op.at_snapshot() {
            Some(op) if isolation == Snapshot => self.right(tx, env, &op).await,
            _ => self.right(tx, env, op).await,
        }
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted {
            return planted::divert(planted, self, session, ops).await;
        }
        if !self.records_alone(ops) {
            return None;
        }
        let queue = &self.queue();
        match &ops[0] {
            Op::Enqueue(batch) => {
                let (name, value) = &batch.items().next()?;
                let id = self.id(session.database().env(), *name);
                let enqueued = session.apply(|tx| async move { queue.enqueue(&tx, id, value).await });
                Some(specimen::told(enqueued.await.map(|at| Recorded(vec![enqueued_at(at)]))))
            }
            _ => {
                let dequeued = session.apply(|tx| async move { queue.dequeue(&tx).await });
                Some(specimen::told(dequeued.await.map(|item| Recorded(vec![dequeued_item(item)]))))
            }
        }
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
        pending: OpId,
    ) -> Result<Fate<Vec<Answer>>, once::Error> {
        Ok(match ops {
            [Op::Enqueue(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|at| vec![enqueued_at(at)])
            }
            [Op::Dequeue] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|item| vec![dequeued_item(item)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !shaketable::sessions::is_fence(mutations) && !planted::only_tidies_up(mutations)
    }

    fn model(&self) -> Timeline<Items> {
        Timeline::new(self.first_items())
    }

    fn replay(&self, model: &mut Timeline<Items>, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let stamp = at.stamp.unwrap_or(UNSTAMPED);
        let is_own = |place: &Place| matches!(place, Place::Commit(s, _) if *s == stamp);
        let first = |items: &Items| match items.first_key_value() {
            Some((place, _)) if is_own(place) => Err(Error::OwnItemsUnreadable),
            first => Ok(first.map(|(place, item)| (*place, item.clone()))),
        };
        Ok(match op {
            Op::Enqueue(batch) => {
                let mut spots = Vec::new();
                for (name, value) in batch.items() {
                    limits::value_up_to(LONGEST, &self.prefix, &value)?;
                    let (place, spot) = match self.order {
                        Order::Index => {
                            let last = match model.snapshot().last_key_value() {
                                Some((Place::Index(index, _), _)) => *index,
                                _ => 0,
                            };
                            let index = last.checked_add(1).ok_or(Error::IndexesExhausted)?;
                            (Place::Index(index, id(name)), Spot::Index(index))
                        }
                        Order::Commit => {
                            (Place::Commit(stamp, nth(model.now(), stamp)), Spot::Commit(Some(stamp)))
                        }
                    };
                    let named = (self.order == Order::Index).then_some(name);
                    let content = Content::from(&value);
                    model.write(|items| drop(items.insert(place, (named, content.clone()))));
                    spots.push(spot);
                }
                Answer::Enqueued(spots)
            }
            Op::Dequeue => {
                let first = first(model.now())?;
                if let Some((place, _)) = &first {
                    model.write(|items| remove(items, *place));
                }
                Answer::First(first.map(item))
            }
            Op::Look(look, snapshot) => {
                let seen = model.seen(*snapshot);
                if matches!(look, Look::Len | Look::Items | Look::Pages) && seen.keys().any(is_own) {
                    return Err(Error::OwnItemsUnreadable);
                }
                match look {
                    Look::First => Answer::First(first(seen)?.map(item)),
                    Look::IsEmpty => Answer::IsEmpty(first(seen)?.is_none()),
                    Look::Len => Answer::Len(seen.len()),
                    Look::Items | Look::Pages => {
                        digest(seen.iter().map(|(place, named)| item((*place, named.clone()))))
                    }
                }
            }
            Op::Deep => {
                limits::key_below(&deep(), MOST_KEY_BYTES)?;
                Answer::Enqueued(Vec::new())
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Timeline<Items>, String>> {
        if let Err(why) = beside::check(tx, &beside::of(&self.prefix)).await? {
            return Ok(Err(why));
        }
        let rows = tx.get_range_all(RangeOption::from(self.space().range()), Serializable).await?;
        let mut items = Items::new();
        let mut ids = BTreeSet::new();
        for row in rows {
            let Some((place, id)) = self.place(&row.key, &items) else {
                return Ok(Err(format!("the key \"{}\" is no item's", row.key.escape_ascii())));
            };
            if !ids.insert(id) {
                return Ok(Err(format!("two items have the id {id:?}")));
            }
            items.insert(place, (name(id), Content::from(&row.value)));
        }
        Ok(Ok(Timeline::new(items)))
    }
}

impl Queue {
    /// Where an item is whose key this is, behind those that are known already.
    fn place(&self, key: &[u8], known: &Items) -> Option<(Place, ItemId)> {
        Some(match self.order {
            Order::Index => {
                let (index, id): (i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let id = ItemId((*id).try_into().ok()?);
                (Place::Index(index, planted::known(self.planted, id)), id)
            }
            Order::Commit => {
                let (stamp, _, id): (Versionstamp, i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let stamp = stamp.transaction_version().try_into().ok()?;
                let id = ItemId((*id).try_into().ok()?);
                (Place::Commit(stamp, nth(known, stamp)), id)
            }
        })
    }
}

/// Removes an item; those of the same stamp after it get new numbers.
fn remove(items: &mut Items, place: Place) {
    items.remove(&place);
    let Place::Commit(stamp, nth) = place else { return };
    let same = items.range(place..=Place::Commit(stamp, usize::MAX)).map(|(place, _)| *place);
    for (nth, place) in (nth..).zip(same.collect::<Vec<_>>()) {
        if let Some(item) = items.remove(&place) {
            items.insert(Place::Commit(stamp, nth), item);
        }
    }
}

/// The number of the next item with this stamp, the largest one.
fn nth(items: &Items, stamp: [u8; 10]) -> usize {
    match items.last_key_value() {
        Some((Place::Commit(last, nth), _)) if *last == stamp => nth + 1,
        _ => 0,
    }
}

/// An item of the model as an answer tells it.
fn item((place, (name, content)): (Place, (Option<Name>, Content))) -> Item {
    let spot = match place {
        Place::Index(index, _) => Spot::Index(index),
        Place::Commit(stamp, _) => Spot::Commit(Some(stamp)),
    };
    (spot, name, content)
}

fn enqueued_at(position: Position) -> Answer {
    // Recorded with its stamp: one that the commit has not filled in fits nothing.
    Answer::Enqueued(vec![match position {
        Position::Index { index, .. } => Spot::Index(index),
        Position::Commit { stamp, .. } => Spot::Commit(Some(stamp)),
    }])
}

fn dequeued_item(item: Option<layer::Item>) -> Answer {
    Answer::First(item.as_ref().map(told))
}

impl Planted {
    /// The order that the bug needs, if it needs one.
    fn order(self) -> Option<Order> {
        use Planted::*;
        match self {
            EnqueueAsPrinted
            | DequeueAsPrinted
            | CountIsIndex
            | ShortSuffix
            | TiesInside
            | SerializableLastIndex
            | ItemAlone
            | NoIndexLeft => Some(Order::Index),
            SameRank => Some(Order::Commit),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::{
        plan::{Demands, Plan},
        specimen::Mounted,
    };
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_both_orders_and_every_kind_of_call() {
        let mut seen = BTreeSet::new();
        for seed in 0..100 {
            let plan = Plan::<Mounted<Queue>>::draw(Seed(seed), &Demands::default());
            for op in plan.operations.iter().flatten().flatten() {
                seen.insert(match op {
                    Op::Enqueue(batch) if batch.length > LONGEST => "oversized".to_owned(),
                    Op::Enqueue(batch) if batch.length == LONGEST => "longest".to_owned(),
                    Op::Enqueue(batch) => format!("{} items", batch.items.min(2)),
                    Op::Look(look, snapshot) => format!("{look:?} {snapshot}"),
                    other => format!("{other:?}"),
                });
            }
        }
        assert_eq!(seen.len(), 4 + 10 + 2, "{seen:?}");
    }

    #[test]
    fn ids_tell_their_names_unless_they_were_drawn() {
        for item in [(0, 0, 0), (8, 300, 3), (u16::MAX, 1, 0)] {
            assert_eq!(name(id(item)), Some(item));
        }
        assert_eq!(name(ItemId([1; 16])), None);
    }

    #[test]
    fn a_stamp_is_learned_from_the_commit() {
        let (known, other) = (Spot::Commit(Some([1; 10])), Spot::Commit(Some([2; 10])));
        assert!(Spot::Commit(None) == known && known != other && known != Spot::Index(1));
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
