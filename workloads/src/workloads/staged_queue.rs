//! `staged_queue`: many dequeues at a time, served in order, while clients die, leave and never come back.
//!
//! A dequeue is several transactions, some of which serve others. The model therefore follows what each
//! transaction wrote: every one must be a step that the queue allows (an item appended, taken, parked,
//! collected, brought back, a request registered, left), in the order promised, and each answer must be what
//! the operation's own steps came to. Some clients walk away from their request as if they had died.

use crate::{
    judges::Keyspace,
    sabotage::staged_queue as sabotage,
    sessions::{self, known, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    once::{self, Session},
    queue::{Item, ItemId, Position},
    staged_queue::{Error, MAX_VALUE_BYTES, Row, StagedQueue, Taken, Turn},
    tx::{self, Database, Isolation::Serializable, KeyValue, RangeOption, RetryError, Transaction},
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

flaws! {
    AsksAgain = "asks-again", "any failure of the first attempt, an unknown result too, registers a new request", "the high-contention example's pop";
    RemovesBlindly = "removes-blindly", "a collection is retried without a record, and what is gone counts as nothing", "the high-contention example's removal of a result";
    ParkedForEver = "parked-for-ever", "nobody takes back what is parked for the dead", "the high-contention example, where a client dies";
    Overtakes = "overtakes", "a dequeue takes the first item although others wait", "a queue without a queue of requests";
    FulfilsBlindly = "fulfils-blindly", "requests and items are paired at snapshot, with nothing in the conflict ranges", "a fulfilment without isolation";
    ConflictsTooLate = "conflicts-too-late", "the conflict ranges are added behind the writes, and leave out what was written", "a transaction that sees itself";
    EmptyAtSnapshot = "empty-at-snapshot", "that no item is left is read at snapshot", "the last item taken for the end";
    ReclaimsBlindly = "reclaims-blindly", "what is parked is read in one transaction and brought back in another", "a watcher that does not look again";
    ComesBackLast = "comes-back-last", "what is brought back is enqueued anew", "a retry at the end of the line";
    ServesLastFirst = "serves-last-first", "the last request is served first", "a range read in reverse";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Staged {
    clients: usize,
    operations: Range<usize>,
    /// How often an operation puts in, takes out, walks away, brings back, looks.
    mix: [u32; 5],
    /// How long what is parked is watched before it is brought back, milliseconds.
    patience: u64,
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
    /// Dequeues an item.
    Dequeue,
    /// Asks for an item and does not wait: leaves the request.
    Leave,
    /// Asks for an item and is never heard of again.
    Vanish,
    /// Brings back what nobody has collected.
    Reclaim,
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
    items: u16,
    padding: u16,
}

/// Names an item: its client, its operation's number, its place in the operation.
pub type Name = (u16, u16, u16);

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued.
    Enqueued,
    /// Dequeued this, or there was nothing.
    Taken(Option<Name>),
    /// Left without an item.
    Left,
    /// Brought back whatever there was.
    Reclaimed,
    /// This is the first item.
    First(Option<Name>),
    /// There are so many items.
    Count(usize),
    /// Refused, in these words.
    Refused(String),
}

impl Batch {
    fn values(&self) -> Vec<Bytes> {
        let padding = vec![0u8; self.padding.into()];
        self.names()
            .map(|(client, number, part)| pack(&(client, number, part, &padding[..])).into())
            .collect()
    }

    fn names(&self) -> impl Iterator<Item = Name> + use<> {
        let (client, number) = (self.client, self.number);
        (0..self.items).map(move |part| (client, number, part))
    }
}

/// The name in a value.
fn name(item: &Item) -> Result<Name, String> {
    let unpacked = unpack::<(u16, u16, u16, TupleBytes<'_>)>(&item.value);
    let parts = unpacked.map_err(|_| format!("nobody enqueued \"{}\"", item.value.escape_ascii()))?;
    Ok((parts.0, parts.1, parts.2))
}

pub(crate) fn staged() -> StagedQueue {
    StagedQueue::new(Subspace::from("staged"))
}

/// An answer of what was taken.
pub(crate) fn taken(item: Option<Item>) -> Outcome<Answer> {
    match item.as_ref().map(name).transpose() {
        Ok(name) => Outcome::Answered(Answer::Taken(name)),
        Err(why) => Outcome::Violated(why),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error.fdb() {
        Some(e) => Outcome::GaveUp(e),
        None => Outcome::Answered(Answer::Refused(error.to_string())),
    }
}

impl Staged {
    /// Does something that ends when the database lets it: no timeouts strike.
    pub(crate) async fn patiently<D: Database>(
        &self,
        db: &D,
        work: impl Future<Output = Outcome<Answer>>,
    ) -> Outcome<Answer> {
        let done = sessions::patiently(db, self.timeout, work).await;
        done.unwrap_or_else(|e| Outcome::Violated(format!("a timeout was refused: {e}")))
    }

    /// Asks for an item until it is certain what came of it.
    async fn ask<D: Database>(&self, session: &mut Session<D>) -> Result<Taken, Outcome<Answer>> {
        match staged().ask(session).await {
            once::Outcome::Applied(taken) => Ok(taken),
            once::Outcome::Refused(e) => Err(refused(e)),
            once::Outcome::Unknown(_) => self.settle_ask(session).await,
        }
    }

    async fn settle_ask<D: Database>(&self, session: &mut Session<D>) -> Result<Taken, Outcome<Answer>> {
        let unknown = tx::Error::COMMIT_UNKNOWN_RESULT;
        let resolve = async |session: &mut Session<D>, op| {
            Ok(session.resolve::<Taken>(op).await?.map(Outcome::Answered))
        };
        match sessions::settle(session, self.timeout, unknown, resolve).await {
            Outcome::Answered(taken) => Ok(taken),
            Outcome::GaveUp(e) | Outcome::Unknown(e) => Err(Outcome::GaveUp(e)),
            Outcome::Violated(why) => Err(Outcome::Violated(why)),
        }
    }

    async fn dequeue<D: Database>(&self, session: &mut Session<D>) -> Outcome<Answer> {
        let asked = match self.timeout {
            Some(_) => self.ask(session).await,
            // Nothing strikes while it waits: the layer's own way through.
            None => match staged().dequeue(session).await {
                once::Outcome::Applied(item) => return taken(item),
                once::Outcome::Refused(e) => return refused(e),
                once::Outcome::Unknown(_) => self.settle_ask(session).await,
            },
        };
        match asked {
            Ok(Taken::Now(item)) => taken(item),
            Ok(Taken::Waiting(request)) => {
                let db = session.database().clone();
                self.patiently(&db, wait(session, request)).await
            }
            Err(outcome) => outcome,
        }
    }

    async fn leave<D: Database>(&self, session: &mut Session<D>) -> Outcome<Answer> {
        let request = match self.ask(session).await {
            Ok(Taken::Now(item)) => return taken(item),
            Ok(Taken::Waiting(request)) => request,
            Err(outcome) => return outcome,
        };
        let db = session.database().clone();
        let leave = async {
            loop {
                let left = staged().leave_once(session, request).await;
                match known(session, left).await {
                    Ok(Some(Turn::Given(item))) => return taken(item),
                    Ok(Some(Turn::Gone)) => return Outcome::Answered(Answer::Left),
                    Ok(Some(Turn::Waiting)) => return Outcome::Violated("left, and waits".to_owned()),
                    Ok(None) => db.env().sleep(Duration::from_millis(10)).await,
                    Err(e) => return Outcome::Violated(e.to_string()),
                }
            }
        };
        self.patiently(&db, leave).await
    }

    /// Brings back what nobody collects.
    async fn reclaim<D: Database>(&self, db: &D) -> Result<(), Error> {
        let patience = Duration::from_millis(self.patience);
        let reclaimed = match self.flaw {
            Some(flaw) => sabotage::reclaim(flaw, db, patience).await,
            None => staged().reclaim_unchanged(db, patience).await,
        };
        reclaimed.map(drop).map_err(|e| e.error)
    }

    async fn enqueue<D: Database>(&self, session: &mut Session<D>, values: &[Bytes]) -> Outcome<Answer> {
        let enqueued = match values {
            [value] => staged().enqueue_once(session, value).await.map(|_| ()),
            values => {
                let env = session.database().env();
                let items: Vec<_> = values.iter().map(|value| (ItemId::draw(env), value)).collect();
                let (items, queue) = (&items, &staged());
                let all = session.apply(|tx| async move {
                    for (id, value) in items {
                        queue.enqueue(&tx, *id, value).await?;
                    }
                    Ok::<(), Error>(())
                });
                all.await
            }
        };
        match enqueued {
            once::Outcome::Applied(()) => Outcome::Answered(Answer::Enqueued),
            once::Outcome::Refused(e) => refused(e),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
        }
    }
}

/// Waits for a request's turn; when its item was brought back in between, asks anew.
pub(crate) async fn wait<D: Database>(session: &mut Session<D>, mut request: Position) -> Outcome<Answer> {
    loop {
        match staged().take_turn(session, request).await {
            Ok(Turn::Given(item)) => return taken(item),
            Ok(_) => {}
            Err(e) => return Outcome::Violated(e.to_string()),
        }
        request = loop {
            let asked = staged().ask(session).await;
            match known(session, asked).await {
                Ok(Some(Taken::Now(item))) => return taken(item),
                Ok(Some(Taken::Waiting(request))) => break request,
                Ok(None) => session.database().env().sleep(Duration::from_millis(10)).await,
                Err(e) => return Outcome::Violated(e.to_string()),
            }
        };
    }
}

/// What is stored, as its rows say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stage {
    items: BTreeMap<Position, Name>,
    requests: BTreeSet<Position>,
    parked: BTreeMap<ItemId, Option<(Position, Name)>>,
}

impl Stage {
    fn of(rows: impl Iterator<Item = KeyValue>) -> Result<Stage, String> {
        let (queue, mut stage) = (staged(), Stage::default());
        for row in rows {
            match queue.row(&row).map_err(|e| e.to_string())? {
                Row::Item(item) => drop(stage.items.insert(item.position, name(&item)?)),
                Row::Request(request) => drop(stage.requests.insert(request)),
                Row::Parked(ticket, given) => {
                    let given = given.map(|item| Ok::<_, String>((item.position, name(&item)?)));
                    stage.parked.insert(ticket, given.transpose()?);
                }
            }
        }
        Ok(stage)
    }

    /// What must hold at every version: each item is in one place, and so is each ticket.
    fn check(&self) -> Result<(), String> {
        let mut names: BTreeSet<Name> = BTreeSet::new();
        let parked = self.parked.values().flatten();
        let twice = self.items.iter().chain(parked.map(|(p, n)| (p, n))).find(|(_, n)| !names.insert(**n));
        if let Some((position, name)) = twice {
            return Err(format!("the item {name:?} at {position:?} is there twice"));
        }
        let served = self.requests.iter().find(|request| self.parked.contains_key(&ticket(request)));
        served.map_or(Ok(()), |request| Err(format!("the request {request:?} waits and is served")))
    }

    /// The items that are still to leave, where they would stand if all were brought back.
    fn remaining(&self) -> BTreeMap<Position, Name> {
        self.items.iter().map(|(p, n)| (*p, *n)).chain(self.parked.values().flatten().copied()).collect()
    }
}

fn ticket(request: &Position) -> ItemId {
    let (Position::Index { id, .. } | Position::Commit { id, .. }) = request;
    *id
}

fn stamp(position: &Position) -> Option<[u8; 10]> {
    match position {
        Position::Commit { stamp, .. } => Some(*stamp),
        Position::Index { .. } => None,
    }
}

/// Names an operation: its client, its place in the client's list.
type Call = (usize, usize);

/// The model: what is stored, and what became of the dequeues.
#[derive(Clone, Default)]
pub struct Model {
    rows: Keyspace,
    stage: Stage,
    /// What operations got.
    given: BTreeMap<Call, Option<Name>>,
    /// Operations that found neither items nor requests.
    found_empty: BTreeSet<Call>,
    /// What operations say.
    told: BTreeMap<Call, Answer>,
}

impl Model {
    /// Does what a transaction wrote, and says whether it may.
    fn commit(&mut self, step: &Step<'_, Staged>) -> Result<(), String> {
        let space = staged();
        for mutation in step.mutations {
            let key = match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key,
                Mutation::ClearRange(range) => &range.begin,
            };
            if space.subspace().is_start_of(key) {
                self.rows.apply(mutation, None);
            }
        }
        let rows = self.rows.0.iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone()));
        let after = Stage::of(rows)?;
        let before = std::mem::replace(&mut self.stage, after.clone());
        let call = (step.client, step.index);

        let new = |map: &BTreeMap<Position, Name>, old: &BTreeMap<Position, Name>| -> Vec<(Position, Name)> {
            map.iter().filter(|(p, n)| old.get(p) != Some(n)).map(|(p, n)| (*p, *n)).collect()
        };
        let (put, removed) = (new(&after.items, &before.items), new(&before.items, &after.items));
        let registered: Vec<_> = after.requests.difference(&before.requests).copied().collect();
        let served: Vec<_> = before.requests.difference(&after.requests).copied().collect();
        let parked: Vec<_> = after.parked.iter().filter(|(t, g)| before.parked.get(t) != Some(g)).collect();
        let fetched: Vec<_> =
            before.parked.iter().filter(|(t, _)| !after.parked.contains_key(t)).map(|(_, g)| *g).collect();
        let counts = [put.len(), removed.len(), registered.len(), served.len(), parked.len(), fetched.len()];
        match (step.op, counts) {
            (Op::Enqueue(batch), [n, 0, 0, 0, 0, 0]) => {
                let names: Vec<Name> = put.iter().map(|(_, name)| *name).collect();
                if n != usize::from(batch.items) || names != batch.names().collect::<Vec<_>>() {
                    return Err(format!("enqueued {names:?}"));
                }
                stamped(step, put.iter().map(|(p, _)| p))
            }
            (Op::Reclaim, [0, 0, 0, 0, 0, 0]) => Ok(()),
            (Op::Reclaim, [_, 0, 0, 0, 0, _]) => {
                let back: Vec<_> = fetched.into_iter().flatten().collect();
                match put == back {
                    true => Ok(()),
                    false => Err(format!("brought back {put:?}, of {back:?} that were parked")),
                }
            }
            (Op::Dequeue | Op::Leave | Op::Vanish, [0, 0, 0, 0, 0, 0]) => {
                if before.items.is_empty() && before.requests.is_empty() {
                    self.found_empty.insert(call);
                }
                Ok(())
            }
            (Op::Dequeue | Op::Leave | Op::Vanish, [0, 0, 1, 0, 0, 0]) => stamped(step, registered.iter()),
            (Op::Dequeue | Op::Leave | Op::Vanish, [0, 1, 0, 0, 0, 0]) => {
                if let Some(request) = before.requests.first() {
                    return Err(format!("took {:?} although {request:?} waits", removed[0]));
                }
                if before.items.first_key_value().map(|(p, n)| (*p, *n)) != Some(removed[0]) {
                    return Err(format!("took {:?} out of turn: {:?}", removed[0], before.items));
                }
                self.give(call, Some(removed[0].1))
            }
            (Op::Dequeue | Op::Leave | Op::Vanish, [0, 0, 0, 0, 0, 1]) => {
                self.give(call, fetched[0].map(|(_, name)| name))
            }
            (Op::Leave, [0, 0, 0, 1, 0, 0]) => Ok(()),
            (Op::Dequeue, [0, _, 0, n, _, 0]) if n > 0 => {
                let first: Vec<_> = before.requests.iter().take(n).copied().collect();
                if served != first {
                    return Err(format!("served {served:?} where {first:?} stand first"));
                }
                let items: Vec<_> = before.items.iter().take(n).map(|(p, n)| (*p, *n)).collect();
                let pairs = served.iter().enumerate().map(|(at, r)| (ticket(r), items.get(at).copied()));
                let pairs: BTreeMap<_, _> = pairs.collect();
                match parked.iter().map(|(t, g)| (**t, **g)).collect::<BTreeMap<_, _>>() == pairs
                    && removed == items
                {
                    true => Ok(()),
                    false => Err(format!("gave {parked:?} where the turn is {pairs:?}")),
                }
            }
            _ => Err(format!(
                "no step of the queue: put {put:?}, removed {removed:?}, registered {registered:?}, served \
                 {served:?}, parked {parked:?}, fetched {fetched:?}"
            )),
        }
    }

    fn give(&mut self, call: Call, item: Option<Name>) -> Result<(), String> {
        match self.given.insert(call, item) {
            Some(before) => Err(format!("got {item:?} and {before:?}")),
            None => Ok(()),
        }
    }
}

/// Whether the stamps are those of the transaction.
fn stamped<'a>(
    step: &Step<'_, Staged>,
    mut positions: impl Iterator<Item = &'a Position>,
) -> Result<(), String> {
    match positions.find(|position| stamp(position) != step.stamp) {
        None => Ok(()),
        Some(wrong) => Err(format!("appended {wrong:?}, but committed as {:02x?}", step.stamp)),
    }
}

impl Workload for Staged {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Session<D>;
    type Model = Model;

    const NAME: &'static str = "staged_queue";
    const ABOUT: &'static str =
        "dequeues that register and serve each other, in order, whoever dies meanwhile";
    const ONE_EFFECT: bool = false;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "staged_queue: a dequeue finds others waiting",
            "staged_queue: several requests are served at once",
            "staged_queue: a request is told that there is no item",
            "staged_queue: a client leaves while it waits",
            "staged_queue: an item comes back",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Staged {
        let most = rng.range(8..30) as usize;
        let mix = [rng.range(3..9), rng.range(3..9), rng.range(0..3), rng.range(0..3), rng.range(0..3)];
        Staged {
            clients: rng.range(2..10) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            patience: *rng.pick(&[1, 5, 30, 200]),
            padding: *rng.pick(&[0, 100, 3_000]),
            timeout: sessions::draw_timeout(rng),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let stamp = |n: u8| Versionstamp::complete([0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0], 0);
        let rows = (0..2)
            .flat_map(|part| (1..6).map(move |n| staged().subspace().subspace(&part).pack(&stamp(n)).into()));
        let parked = |n: u8| staged().subspace().subspace(&2).pack(&TupleBytes::from(&[n][..])).into();
        slots.chain(rows).chain([64, 128, 192].map(parked)).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let batch = |items: Range<u16>| {
            let padding = 0..=self.padding;
            (items, padding).prop_map(|(items, padding)| Batch { client: 0, number: 0, items, padding })
        };
        let [put, take, walk, back, look] = self.mix;
        let op = prop_oneof![
            4 * put => batch(1..2).prop_map(Op::Enqueue),
            put => batch(2..5).prop_map(Op::Enqueue),
            6 * take => Just(Op::Dequeue),
            walk => Just(Op::Leave),
            walk => Just(Op::Vanish),
            back => Just(Op::Reclaim),
            look => Just(Op::Peek),
            look => Just(Op::Count),
            1 => (1u16..500).prop_map(Op::Oversized),
        ];
        let named = move |mut ops: Vec<Op>| {
            for (number, op) in (0..).zip(&mut ops) {
                if let Op::Enqueue(batch) = op {
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

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Session<D>> {
        sessions::open(db, client, self.timeout).await
    }

    async fn divert<D: Database>(&self, session: &mut Session<D>, op: &Op) -> Option<Outcome<Answer>> {
        sabotage::apply(self.flaw?, self, session, op).await
    }

    async fn apply<D: Database>(&self, session: &mut Session<D>, op: &Op) -> Outcome<Answer> {
        let db = session.database().clone();
        match op {
            Op::Enqueue(batch) => self.enqueue(session, &batch.values()).await,
            Op::Dequeue => self.dequeue(session).await,
            Op::Leave => self.leave(session).await,
            Op::Vanish => match self.ask(session).await {
                Ok(Taken::Now(item)) => taken(item),
                Ok(Taken::Waiting(_)) => Outcome::Answered(Answer::Left),
                Err(outcome) => outcome,
            },
            Op::Reclaim => match self.reclaim(&db).await {
                Ok(()) => Outcome::Answered(Answer::Reclaimed),
                // Some may have happened although others have not, or may still: nothing depends on it.
                Err(e) => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::Unknown),
            },
            Op::Peek => {
                let peeked = db.run(|tx, _| async move { staged().peek(&tx, Serializable).await }).await;
                match peeked.map(|item| item.as_ref().map(name).transpose()) {
                    Ok(Ok(name)) => Outcome::Answered(Answer::First(name)),
                    Ok(Err(why)) => Outcome::Violated(why),
                    Err(e) => refused(e.error),
                }
            }
            Op::Count => {
                let counted = db.run(|tx, _| async move { staged().len(&tx, Serializable).await }).await;
                counted.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n)))
            }
            Op::Oversized(beyond) => {
                let value = vec![0; MAX_VALUE_BYTES + usize::from(*beyond)].into();
                self.enqueue(session, &[value]).await
            }
        }
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        sessions::settle(session, self.timeout, error, async |session, pending| {
            let enqueued = || Outcome::Answered(Answer::Enqueued);
            Ok(match op {
                Op::Enqueue(Batch { items: 1, .. }) => {
                    session.resolve(pending).await?.map(|_: Position| enqueued())
                }
                _ => session.resolve(pending).await?.map(|()| enqueued()),
            })
        })
        .await
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        if let Some(answer @ (Answer::Taken(_) | Answer::Left)) = step.answer {
            model.told.insert((step.client, step.index), answer.clone());
        }
        if step.committed {
            return model.commit(step);
        }
        // What changes nothing may commit nothing.
        let is_empty = model.stage.items.is_empty() && model.stage.requests.is_empty();
        if is_empty && step.answer == Some(&Answer::Taken(None)) {
            model.found_empty.insert((step.client, step.index));
            return Ok(());
        }
        let first = || model.stage.items.first_key_value().map(|(_, name)| *name);
        let fits = match (step.op, step.answer) {
            (_, None) | (Op::Reclaim, Some(Answer::Reclaimed)) => true,
            (Op::Peek, Some(Answer::First(name))) => *name == first(),
            (Op::Count, Some(Answer::Count(n))) => *n == model.stage.items.len(),
            (Op::Oversized(_), Some(Answer::Refused(why))) => why.contains("exceeds the limit"),
            _ => return Err(format!("answered {:?}, but nothing was committed", step.answer)),
        };
        match fits {
            true => Ok(()),
            false => Err(format!("answered {:?} where the queue is {:?}", step.answer, model.stage)),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(stored(tx).await?.and_then(|stage| stage.check()))
    }

    /// Whoever is dead stays so: what was parked for them comes back, and everything is there that nobody got.
    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        let call = |(client, index): &Call| format!("operation {index} of client {client}");
        for (at, told) in &model.told {
            let given = model.given.get(at);
            let fits = match (told, given) {
                (Answer::Taken(told), Some(given)) => told == given,
                (Answer::Taken(None), None) => model.found_empty.contains(at),
                (told, given) => *told == Answer::Left && given.is_none(),
            };
            if !fits {
                return Ok(Err(format!("{} says {told:?}, and was given {given:?}", call(at))));
            }
        }
        if let Err(e) = self.reclaim(db).await {
            return e.fdb().map_or_else(|| Ok(Err(e.to_string())), Err);
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let expected = Stage {
            items: model.stage.remaining(),
            requests: model.stage.requests.clone(),
            parked: BTreeMap::new(),
        };
        Ok(read.and_then(|stage| match stage == expected {
            true => Ok(()),
            false => Err(format!("the database holds {stage:?}, should hold {expected:?}")),
        }))
    }
}

/// Everything stored.
async fn stored<T: Transaction>(tx: &T) -> tx::Result<Result<Stage, String>> {
    let range = RangeOption::from(staged().subspace().range());
    Ok(Stage::of(tx.get_range_all(range, Serializable).await?.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_carry_their_names() {
        let batch = Batch { client: 3, number: 9, items: 2, padding: 300 };
        let position = Position::Commit { stamp: [0; 10], rank: 0, id: ItemId([0; 16]) };
        let item = |value: Bytes| Item { position, value };
        let names: Result<Vec<_>, _> = batch.values().into_iter().map(|v| name(&item(v))).collect();
        assert_eq!(names, Ok(batch.names().collect()));
        assert!(name(&item(Bytes::from_static(b"else"))).is_err());
    }

    #[test]
    fn a_stage_tells_what_is_broken() {
        let at = |n: u8| Position::Commit { stamp: [n; 10], rank: 0, id: ItemId([n; 16]) };
        let mut stage = Stage::default();
        stage.items.insert(at(1), (0, 0, 0));
        stage.requests.insert(at(5));
        stage.parked.insert(ItemId([6; 16]), Some((at(2), (0, 1, 0))));
        assert_eq!(stage.check(), Ok(()));
        assert_eq!(stage.remaining().len(), 2);
        stage.parked.insert(ItemId([5; 16]), None);
        assert!(stage.check().unwrap_err().contains("waits and is served"));
        stage.parked.insert(ItemId([5; 16]), Some((at(1), (0, 0, 0))));
        assert!(stage.check().unwrap_err().contains("twice"));
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Flaw::named(bug.name).is_some());
        }
    }
}
