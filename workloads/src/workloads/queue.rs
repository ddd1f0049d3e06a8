//! `queue`: clients put items into a queue and take them out, exactly once, in either order.
//!
//! A seed runs the queue in index order or in commit order. Items are named by who enqueued them and
//! when, so that a lost, doubled or displaced one shows. Besides single enqueues and dequeues there are
//! several of them in one transaction, an enqueue and a dequeue in one, looks that change nothing, and
//! values that do not fit. The sequential model knows which items may leave first: in commit order one,
//! in index order those that share the smallest index, which follows from what their transactions read.

use crate::{
    models,
    sabotage::queue as sabotage,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    once::{self, Session},
    queue::{Error, Item, ItemId, MAX_VALUE_BYTES, Order, Position},
    tx::{
        self, Database,
        Isolation::{self, Serializable},
        RangeOption, RetryError, RunError, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{collections::BTreeMap, ops::Range};

flaws! {
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
    TiesInside = "ties-inside", "the last index does not see the transaction's own items", "several items in one transaction";
    SerializableLastIndex = "serializable-last-index", "the last index is read serializably, so that enqueues conflict", "a fix gone too far";
    SameRank = "same-rank", "items of one transaction have nothing but the versionstamp to order them", "several items in one transaction in commit order";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    order: Order,
    clients: usize,
    operations: Range<usize>,
    /// How often an operation puts in, takes out, does both, looks.
    mix: [u32; 4],
    /// Values are padded with up to so many bytes.
    padding: u16,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    flaw: Option<Flaw>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues so many items in one transaction.
    Enqueue(Batch),
    /// Dequeues up to so many items in one transaction.
    Dequeue(u8),
    /// Enqueues, then dequeues one item, in one transaction.
    Pass(Batch),
    /// Looks at the first item.
    Peek,
    /// Counts the items.
    Count,
    /// Tries to enqueue a value of so many bytes more than fit.
    Oversized(u16),
}

/// What an operation enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    client: u16,
    number: u16,
    items: u8,
    padding: u16,
}

/// Names an item: its client, its operation's number, its place in the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name(u16, u16, u16);

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued; a single item tells its place.
    Enqueued(Option<Position>),
    /// Dequeued these.
    Taken(Vec<Name>),
    /// This is the first item.
    First(Option<Name>),
    /// There are so many items.
    Count(usize),
    /// Refused: the value is too large.
    TooLarge,
    /// Refused: the transaction came to items of its own.
    OwnItems,
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    pub(crate) queue: shaketable_layers::queue::Queue,
}

impl Batch {
    /// The values to enqueue.
    pub(crate) fn values(&self) -> Vec<Bytes> {
        let padding = vec![0u8; self.padding.into()];
        let value = |part| pack(&(self.client, self.number, part, &padding[..])).into();
        (0..u16::from(self.items)).map(value).collect()
    }

    fn names(&self) -> impl Iterator<Item = Name> {
        let (client, number) = (self.client, self.number);
        (0..u16::from(self.items)).map(move |part| Name(client, number, part))
    }

    /// What names this operation among all of its run.
    pub(crate) fn number(&self) -> (u16, u16) {
        (self.client, self.number)
    }
}

/// The name in a value.
fn name(value: &[u8]) -> Result<Name, String> {
    let parts: (u16, u16, u16, TupleBytes<'_>) =
        unpack(value).map_err(|_| format!("a value that nobody enqueued: {}", value.escape_ascii()))?;
    Ok(Name(parts.0, parts.1, parts.2))
}

pub(crate) fn queue(order: Order) -> shaketable_layers::queue::Queue {
    shaketable_layers::queue::Queue::new(Subspace::from("queue"), order)
}

impl Workload for Queue {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = models::queue::Queue<Name>;

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
        let flaw = bug.and_then(Flaw::named);
        let (drawn, most) = (*rng.pick(&[Order::Index, Order::Commit]), rng.range(8..40) as usize);
        Queue {
            order: flaw.and_then(Flaw::order).unwrap_or(drawn),
            clients: rng.range(2..9) as usize,
            operations: most / 2..most,
            mix: [rng.range(2..10), rng.range(2..10), rng.range(0..3), rng.range(1..4)].map(|w| w as u32),
            padding: *rng.pick(&[0, 100, 3_000]),
            timeout: (rng.chance(0.5) || flaw.is_some_and(Flaw::needs_timeout))
                .then(|| rng.range(50..1_000) as i32),
            flaw,
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let queue = Subspace::from("queue");
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let items = (1..8u8).map(|n| match self.order {
            Order::Index => queue.pack(&(2 * u16::from(n), "")).into(),
            Order::Commit => {
                queue.pack(&Versionstamp::complete([0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0], 0)).into()
            }
        });
        slots.chain(items).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let batch = |items: Range<u8>| {
            let padding = 0..=self.padding;
            (items, padding).prop_map(|(items, padding)| Batch { client: 0, number: 0, items, padding })
        };
        let [put, take, both, look] = self.mix;
        let op = prop_oneof![
            4 * put => batch(1..2).prop_map(Op::Enqueue),
            put => batch(2..5).prop_map(Op::Enqueue),
            4 * take => Just(Op::Dequeue(1)),
            take => (2u8..5).prop_map(Op::Dequeue),
            4 * both => batch(1..3).prop_map(Op::Pass),
            look => Just(Op::Peek),
            2 * look => Just(Op::Count),
            1 => (1u16..500).prop_map(Op::Oversized),
        ];
        let named = move |mut ops: Vec<Op>| {
            for (number, op) in (0..).zip(&mut ops) {
                if let Op::Enqueue(batch) | Op::Pass(batch) = op {
                    (batch.client, batch.number) = (client as u16, number);
                }
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(named).boxed()
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Enqueue(_))
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, queue: queue(self.order) })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        sabotage::apply(self.flaw?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let Client { session, queue } = client;
        let (db, queue) = (session.database().clone(), &*queue);
        match op {
            Op::Enqueue(batch) => match &batch.values()[..] {
                [value] => {
                    let enqueued = queue.enqueue_once(session, value.clone()).await;
                    applied(enqueued, |position| Ok(Answer::Enqueued(Some(position))))
                }
                values => {
                    let enqueued = queue.enqueue_all_once(session, values.to_vec()).await;
                    applied(enqueued, |_| Ok(Answer::Enqueued(None)))
                }
            },
            Op::Dequeue(1) => applied(queue.dequeue_once(session).await, taken),
            Op::Dequeue(most) => {
                let dequeued = session.apply(|tx| async move {
                    let mut items = Vec::new();
                    while items.len() < (*most).into()
                        && let Some(item) = queue.dequeue(&tx).await?
                    {
                        items.push(item);
                    }
                    Ok::<_, Error>(items)
                });
                applied(dequeued.await, taken)
            }
            Op::Pass(batch) => {
                let ids: Vec<_> = (0..batch.items).map(|_| ItemId::draw(db.env())).collect();
                let (ids, values) = (&ids, &batch.values());
                let passed = session.apply(|tx| async move {
                    for (id, value) in ids.iter().zip(values) {
                        queue.enqueue(&tx, *id, value).await?;
                    }
                    Ok::<Vec<Item>, Error>(queue.dequeue(&tx).await?.into_iter().collect())
                });
                applied(passed.await, taken)
            }
            Op::Peek => {
                let first = db.run(|tx, _| async move { queue.peek(&tx, Serializable).await }).await;
                looked_up(first, |item| Ok(Answer::First(item.map(|item| name(&item.value)).transpose()?)))
            }
            Op::Count => {
                let count = db.run(|tx, _| async move { queue.len(&tx, Serializable).await }).await;
                looked_up(count, |n| Ok(Answer::Count(n)))
            }
            Op::Oversized(beyond) => {
                let value = vec![0; MAX_VALUE_BYTES + usize::from(*beyond)].into();
                let enqueued = queue.enqueue_once(session, value).await;
                applied(enqueued, |position| Ok(Answer::Enqueued(Some(position))))
            }
        }
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        let ask = async |session: &mut Session<D>, pending| {
            Ok(match op {
                Op::Enqueue(Batch { items: 1, .. }) => {
                    session.resolve(pending).await?.map(|p| Outcome::Answered(Answer::Enqueued(Some(p))))
                }
                Op::Enqueue(_) => {
                    session.resolve(pending).await?.map(|_: u64| Outcome::Answered(Answer::Enqueued(None)))
                }
                Op::Dequeue(1) => {
                    session.resolve::<Option<Item>>(pending).await?.map(|item| told(taken(item)))
                }
                _ => session.resolve::<Vec<Item>>(pending).await?.map(|items| told(taken(items))),
            })
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !sessions::is_fence(mutations) && !sabotage::only_tidies_up(mutations)
    }

    fn model(&self) -> Self::Model {
        models::queue::Queue::new(self.order)
    }

    fn step(&self, model: &mut Self::Model, step: &Step<'_, Self>) -> Result<(), String> {
        let Some(stamp) = step.stamp else { return looked(self.order, model, step) };
        let read = step.read_version.unwrap_or(0);
        match step.op {
            Op::Enqueue(batch) => {
                let index = model.enqueue(read, batch.names());
                match step.answer {
                    Some(Answer::Enqueued(Some(Position::Index { index: told, .. }))) if *told != index => {
                        return Err(format!(
                            "got index {told}; the last one it could read was {}",
                            index - 1
                        ));
                    }
                    Some(Answer::Enqueued(Some(Position::Commit { stamp: told, .. }))) if *told != stamp => {
                        return Err(format!("got stamp {told:02x?}, but committed as {stamp:02x?}"));
                    }
                    Some(Answer::Enqueued(_)) | None => {}
                    Some(other) => return Err(format!("answered {other:?}")),
                }
            }
            Op::Dequeue(most) => take(model, (*most).into(), step.answer)?,
            Op::Pass(batch) if self.order == Order::Index => {
                model.enqueue(read, batch.names());
                take(model, 1, step.answer)?;
            }
            Op::Pass(_) if model.is_empty() => {
                return Err("committed, although there was nothing but its own items to take".into());
            }
            Op::Pass(batch) => {
                take(model, 1, step.answer)?;
                model.enqueue(read, batch.names());
            }
            Op::Peek | Op::Count | Op::Oversized(_) => return Err("committed a write".into()),
        }
        let [a, b, c, d, e, f, g, h, ..] = stamp;
        model.commit(i64::from_be_bytes([a, b, c, d, e, f, g, h]));
        Ok(())
    }

    /// Every item was enqueued by somebody and is there once; the items of one client are in the order
    /// in which it enqueued them.
    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        let names = match names(tx, self.order).await? {
            Ok(names) => names,
            Err(foreign) => return Ok(Err(foreign)),
        };
        let mut last: BTreeMap<u16, Name> = BTreeMap::new();
        for name in names {
            if let Some(before) = last.insert(name.0, name).filter(|before| *before >= name) {
                return Ok(Err(format!("{name:?} stands behind {before:?}")));
            }
        }
        Ok(Ok(()))
    }

    async fn check<D: Database>(&self, db: &D, model: &Self::Model) -> tx::Result<Result<(), String>> {
        let order = self.order;
        let read = db.run(|tx, _| async move { names(&tx, order).await }).await;
        Ok(read.map_err(|e| e.error)?.and_then(|names| match model.may_hold(&names) {
            true => Ok(()),
            false => Err(format!(
                "the queue holds {} items: {names:?}; {} should remain: {model:?}",
                names.len(),
                model.len()
            )),
        }))
    }
}

impl Queue {}

impl Flaw {
    /// The order that the bug needs, if it needs one.
    fn order(self) -> Option<Order> {
        use Flaw::*;
        match self {
            EnqueueAsPrinted
            | DequeueAsPrinted
            | CountIsIndex
            | ShortSuffix
            | TiesInside
            | SerializableLastIndex => Some(Order::Index),
            SameRank => Some(Order::Commit),
            _ => None,
        }
    }
}

impl Flaw {
    /// Whether the bug is in what is made of a timeout.
    fn needs_timeout(self) -> bool {
        matches!(self, Flaw::TimeoutIsRefusal | Flaw::RetryAsNew | Flaw::RecordAtSnapshot)
    }
}

/// An operation that committed nothing: its answer must fit the model as it stands.
fn looked(order: Order, model: &models::queue::Queue<Name>, step: &Step<'_, Queue>) -> Result<(), String> {
    let Some(answer) = step.answer else { return Ok(()) };
    let fits = match (step.op, answer) {
        (Op::Peek, Answer::First(None)) => model.is_empty(),
        (Op::Peek, Answer::First(Some(name))) => model.may_be_first(name),
        (Op::Count, Answer::Count(n)) => *n == model.len(),
        (Op::Dequeue(_), Answer::Taken(names)) if names.is_empty() => model.is_empty(),
        (Op::Oversized(_), Answer::TooLarge) => true,
        (Op::Pass(_), Answer::OwnItems) => order == Order::Commit && model.is_empty(),
        _ => return Err(format!("answered {answer:?}, but nothing was committed")),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("answered {answer:?} where the queue is {model:?}")),
    }
}

/// Takes up to `most` items off the model and compares them with the answer.
fn take(model: &mut models::queue::Queue<Name>, most: usize, answer: Option<&Answer>) -> Result<(), String> {
    match answer {
        None => {
            for _ in 0..most {
                model.dequeue(None);
            }
        }
        Some(Answer::Taken(names)) => {
            for name in names {
                if !model.dequeue(Some(name)) {
                    return Err(format!("took {name:?}, which is not first in {model:?}"));
                }
            }
            if names.len() > most || (names.len() < most && !model.is_empty()) {
                return Err(format!("took {} items and left {model:?}", names.len()));
            }
        }
        Some(other) => return Err(format!("answered {other:?}")),
    }
    Ok(())
}

/// The names of the items, first to last; the inner error is for what is no item.
async fn names<T: Transaction>(tx: &T, order: Order) -> tx::Result<Result<Vec<Name>, String>> {
    let range: RangeOption = queue(order).subspace().range().into();
    let rows = tx.get_range_all(range, Isolation::Serializable).await?;
    Ok(rows.iter().map(|row| name(&row.value)).collect())
}

pub(crate) fn taken(items: impl IntoIterator<Item = Item>) -> Result<Answer, String> {
    Ok(Answer::Taken(items.into_iter().map(|item| name(&item.value)).collect::<Result<_, _>>()?))
}

fn told(answer: Result<Answer, String>) -> Outcome<Answer> {
    answer.map_or_else(Outcome::Violated, Outcome::Answered)
}

pub(crate) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    answer: impl FnOnce(A) -> Result<Answer, String>,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(a) => told(answer(a)),
        once::Outcome::Refused(e) => refused(e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::TooLarge(_) => Outcome::Answered(Answer::TooLarge),
        Error::OwnItemsUnreadable => Outcome::Answered(Answer::OwnItems),
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
}

/// The outcome of a transaction that does not write.
pub(crate) fn looked_up<A>(
    ran: Result<A, RunError<Error>>,
    answer: impl FnOnce(A) -> Result<Answer, String>,
) -> Outcome<Answer> {
    ran.map_or_else(|e| refused(e.error), |a| told(answer(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_both_orders_and_every_kind_of_operation() {
        let plans: Vec<Plan<Queue>> = (0..100).map(|s| Plan::draw(Seed(s), &Demands::default())).collect();
        let ops = || plans.iter().flat_map(|p| p.operations.iter().flatten());
        for order in [Order::Index, Order::Commit] {
            assert!(plans.iter().any(|p| p.configuration.order == order));
        }
        assert!(ops().any(|op| matches!(op, Op::Enqueue(batch) if batch.items > 1)));
        assert!(ops().any(|op| matches!(op, Op::Dequeue(n) if *n > 1)));
        assert!(ops().any(|op| matches!(op, Op::Pass(_))));
        assert!(ops().any(|op| matches!(op, Op::Oversized(_))));
        assert!(ops().any(|op| *op == Op::Peek) && ops().any(|op| *op == Op::Count));
    }

    #[test]
    fn items_carry_their_names() {
        let batch = Batch { client: 3, number: 9, items: 2, padding: 300 };
        let names: Result<Vec<_>, _> = batch.values().iter().map(|v| name(v)).collect();
        assert_eq!(names, Ok(batch.names().collect()));
        assert!(name(b"else").is_err());
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in Queue::bugs() {
            assert!(Flaw::named(bug.name).is_some());
        }
    }
}
