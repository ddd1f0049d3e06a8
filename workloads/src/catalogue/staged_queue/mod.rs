//! `staged_queue`: many dequeues at a time, served in order, while clients die, leave and never come back.
//!
//! A dequeue is several transactions, some of which serve others. The model therefore follows what each
//! transaction wrote: every one must be a step that the queue allows (an item appended, taken, parked,
//! collected, brought back, a request registered, left), in the order promised, and each answer must be what
//! the operation's own steps came to. Some clients walk away from their request as if they had died. A dequeue
//! that was dropped while its client lives owes what it was given to the client's next one. A request is also
//! looked at, served, collected and left in one transaction, which sees what it has done itself.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    judges::{Keyspace, waiting::Wait},
    looks,
    sessions::{self, known, slots},
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    once::{self, Session},
    queue::{Item, ItemId, Position},
    staged_queue::{Error, MAX_VALUE_BYTES, Request, Row, Served, StagedQueue, Taken, Turn},
    tx::{self, Database, Env, Isolation::Serializable, KeyValue, RangeOption, RetryError, Transaction},
};
use shaketable_sim::{
    proto::{Mutation, Version},
    seed::Stream,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

shaketable::planted_bugs! {
    AsksAgain = "asks-again", "any failure of the first attempt, an unknown result too, registers a new request", "the high-contention example's pop";
    RemovesBlindly = "removes-blindly", "a collection is retried without a record, and what is gone counts as nothing", "the high-contention example's removal of a result";
    ParkedForEver = "parked-for-ever", "nobody takes back what is parked for the dead", "the high-contention example, where a client dies";
    Overtakes = "overtakes", "a dequeue takes the first item although others wait", "a queue without a queue of requests";
    FulfilsBlindly = "fulfils-blindly", "requests and items are paired at snapshot, with nothing in the conflict ranges", "a fulfilment without isolation";
    ConflictsTooLate = "conflicts-too-late", "the conflict ranges are added behind the writes, and leave out what was written", "a transaction that sees itself";
    EmptyAtSnapshot = "empty-at-snapshot", "that no item is left is read at snapshot", "the last item taken for the end";
    ReclaimsBlindly = "reclaims-blindly", "what is parked is read in one transaction and brought back in another", "a watcher that does not look again";
    ComesBackLast = "comes-back-last", "what is brought back is enqueued anew", "a retry at the end of the line";
    PageForEnd = "page-for-end", "where a read of items stopped is taken for the end of the queue", "a bound on bytes, forgotten by what comes after it";
    ServesLastFirst = "serves-last-first", "the last request is served first", "a range read in reverse";
    LargestRefused = "largest-refused", "a value as large as can be is refused", "a limit that is off by one";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, however it is asked for", "a dropped conflict range";
    TurnBeside = "turn-beside", "how it stands with a request is asked in another transaction beside the one that ends it", "a look-up that is given the database";
    ForgetsDropped = "forgets-dropped", "a dequeue begins anew although a dropped one had taken an item", "a request time-out around a dequeue";
    AsksBeside = "asks-beside", "a dequeue leaves the request of a dropped one standing and registers another", "a request time-out around a dequeue";
    Stays = "gives-up-and-stays", "a dequeue that gives up leaves its request where it stands", "a time-out around a wait";
    Impatient = "impatient", "a dequeue gives up after half of its patience", "a time-out in another unit";
    SleepsInLine = "sleeps-in-line", "a dequeue that has registered looks for its item only after a long sleep", "a wake-up that was lost";
    LeavesBlindly = "leaves-blindly", "a dequeue that gives up removes its request without a look at what it was given", "a time-out around a wait";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Staged {
    clients: usize,
    operations: Range<usize>,
    /// How often an operation puts in, takes out, walks away, brings back, looks, does several things at once.
    mix: [u32; 6],
    /// How long what is parked is watched before it is brought back, milliseconds.
    patience: u64,
    /// Values are padded with up to so many bytes.
    padding: u16,
    /// Whether more may wait, and lie there, than one transaction serves and moves.
    crowded: bool,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues so many items in one transaction.
    Enqueue(Batch),
    /// Dequeues an item.
    Dequeue,
    /// Dequeues an item, or gives up after so many tenths of a millisecond.
    Within(u16),
    /// Dequeues an item, unless that still waits after so many polls: its future is dropped then.
    Cut(u8),
    /// Asks for an item and does not wait: leaves the request.
    Leave,
    /// Asks for an item and is never heard of again.
    Vanish,
    /// Registers a request in a transaction without a record, and gives it up if that is known to have
    /// committed.
    Enlist,
    /// Registers a request in a transaction without a record; when that is known to have committed, does these
    /// with it in one transaction, and leaves it as it is then.
    Deal(Vec<Deal>),
    /// Brings back what nobody has collected.
    Reclaim,
    /// Looks at the first item.
    Peek,
    /// Counts the items.
    Count,
    /// Reads everything, row by row.
    Survey,
    /// Several things in one transaction.
    Together(Vec<Part>),
    /// Tries to enqueue a value of so many bytes more than fit.
    Oversized(u16),
}

/// One of several things in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Enqueues items.
    Put(Batch),
    /// Takes an item, or registers a request that nobody will collect for.
    Take,
    /// Looks at the first item.
    Peek,
    /// Counts the items.
    Count,
    /// Counts what is parked.
    Parked,
    /// Registers so many requests that nobody will collect for. Alone in its transaction.
    Crowd(u16),
}

/// One of several calls about a request in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deal {
    /// How it stands with the request.
    Turn,
    /// Takes what it was given.
    Collect,
    /// Ends it.
    Leave,
    /// Serves up to so many requests.
    Serve(usize),
    /// Takes back what was parked for it.
    TakeBack,
    /// Enqueues items.
    Put(Batch),
}

/// What such a call answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dealt {
    /// It waits.
    Waiting,
    /// It was given this, or told that there was nothing.
    Given(Option<Name>),
    /// There is no such request.
    Gone,
    /// So many were served.
    Served(usize),
    /// Whether something was parked for it.
    Back(bool),
    /// Enqueued.
    Put,
}

/// What a part answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartAnswer {
    /// Enqueued.
    Put,
    /// Took this, or there was nothing.
    Took(Option<Name>),
    /// Registered a request.
    Registered,
    /// This is the first item.
    First(Option<Name>),
    /// There are so many.
    Count(usize),
}

/// More requests than one transaction serves.
const CROWD: u16 = 160;

/// The padding that makes a value as large as values may be.
const FULL: u16 = u16::MAX;

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
    /// Dequeued this, or there was nothing. So many operations before this one the session's first dequeue
    /// began that has not ended.
    Taken(Option<Name>, usize),
    /// Left without an item, and so did the dequeues that had not ended.
    Left(usize),
    /// Walks away, with no item so far.
    Away,
    /// The database did not let it: it has no item, and no request stands.
    Failed(i32),
    /// Brought back whatever there was.
    Reclaimed,
    /// This is the first item.
    First(Option<Name>),
    /// There are so many items.
    Count(usize),
    /// There are so many items, requests and parked rows.
    Rows([usize; 3]),
    /// What the parts answered.
    Parts(Vec<PartAnswer>),
    /// What the calls about a request answered.
    Dealt(Vec<Dealt>),
    /// Refused, in these words.
    Refused(String),
}

impl Batch {
    pub(crate) fn values(&self) -> Vec<Bytes> {
        let value = |(client, number, part): Name| {
            // A zero takes two bytes in a tuple.
            let of = |padding: usize| pack(&(client, number, part, &vec![1u8; padding][..]));
            let padding = match self.padding {
                FULL => MAX_VALUE_BYTES - of(0).len(),
                padding => padding.into(),
            };
            of(padding).into()
        };
        self.names().map(value).collect()
    }

    /// What it enqueues, under ids that are drawn here.
    fn draw(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        self.values().into_iter().map(|value| (ItemId::draw(env), value)).collect()
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

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    /// How many operations this session has begun.
    calls: usize,
    /// The first dequeue that has not ended.
    open: Option<usize>,
}

impl<D: Database> Client<D> {
    fn begins(&mut self, op: &Op) {
        self.calls += 1;
        if op.dequeues() {
            self.open.get_or_insert(self.calls);
        }
    }

    fn ends(&mut self, op: &Op, mut outcome: Outcome<Answer>) -> Outcome<Answer> {
        if let Outcome::Answered(Answer::Failed(_)) = outcome {
            // One that was dropped before may still stand.
            self.open = self.open.filter(|since| *since != self.calls);
        } else if let (true, Outcome::Answered(answer)) = (op.dequeues(), &mut outcome) {
            let since = self.open.take().unwrap_or(self.calls);
            if let Answer::Taken(_, ago) | Answer::Left(ago) = answer {
                *ago = self.calls - since;
            }
        }
        outcome
    }
}

impl Op {
    /// Whether it goes on with a dequeue of its session that was dropped.
    fn dequeues(&self) -> bool {
        matches!(self, Op::Dequeue | Op::Within(_) | Op::Cut(_) | Op::Leave | Op::Vanish)
    }
}

/// The patience of an [`Op::Within`].
pub(crate) fn patience(units: u16) -> Duration {
    Duration::from_micros(100 * u64::from(units))
}

/// An answer of what was taken.
pub(crate) fn taken(item: Option<Item>) -> Outcome<Answer> {
    match item.as_ref().map(name).transpose() {
        Ok(name) => Outcome::Answered(Answer::Taken(name, 0)),
        Err(why) => Outcome::Violated(why),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error.fdb() {
        Some(e) => Outcome::GaveUp(e),
        None => Outcome::Answered(Answer::Refused(error.to_string())),
    }
}

/// What is said of a dequeue that was refused: it may have served others.
pub(crate) fn failed(error: Error) -> Outcome<Answer> {
    Outcome::Answered(match error.fdb() {
        Some(e) => Answer::Failed(e.code()),
        None => Answer::Refused(error.to_string()),
    })
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
    async fn ask<D: Database>(&self, session: &mut Session<D>) -> Result<Turn, Outcome<Answer>> {
        let db = session.database().clone();
        loop {
            match staged().ask(session).await {
                once::Outcome::Applied(turn) => return Ok(turn),
                once::Outcome::Refused(e) => return Err(failed(e)),
                // The next one begins with what this one came to.
                once::Outcome::Unknown(_) => db.env().sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn dequeue<D: Database>(&self, session: &mut Session<D>) -> Outcome<Answer> {
        let db = session.database().clone();
        for _ in 0..20 {
            match staged().dequeue(session).await {
                once::Outcome::Applied(item) => return taken(item),
                once::Outcome::Refused(e) => return failed(e),
                once::Outcome::Unknown(_) => db.env().sleep(Duration::from_millis(5)).await,
            }
        }
        // A timeout that no commit meets would have it ask for ever.
        let asked = async {
            match staged().dequeue(session).await {
                once::Outcome::Applied(item) => taken(item),
                once::Outcome::Refused(e) => failed(e),
                once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
            }
        };
        self.patiently(&db, asked).await
    }

    pub(crate) async fn within<D: Database>(
        &self,
        session: &mut Session<D>,
        patience: Duration,
    ) -> Outcome<Answer> {
        loop {
            match staged().dequeue_within(session, patience).await {
                once::Outcome::Applied(Served::Item(item)) => return taken(Some(item)),
                once::Outcome::Applied(Served::Empty) => return taken(None),
                once::Outcome::Applied(Served::Late) => return Outcome::Answered(Answer::Left(0)),
                once::Outcome::Refused(e) => return failed(e),
                once::Outcome::Unknown(_) => {}
            }
        }
    }

    async fn leave<D: Database>(&self, session: &mut Session<D>) -> Outcome<Answer> {
        let request = match self.ask(session).await {
            Ok(Turn::Given(item)) => return taken(item),
            Ok(Turn::Waiting(request)) => request,
            Ok(Turn::Gone) => return Outcome::Violated("asked, and is gone".to_owned()),
            Err(outcome) => return outcome,
        };
        give_up(session, request).await
    }

    /// Registers a request without a record, so that only an acknowledged one can be found again.
    async fn register<D: Database>(&self, db: &D) -> Result<Request, Outcome<Answer>> {
        let ticket = ItemId::draw(db.env());
        let registered = async {
            let tx = db.create_transaction()?;
            let registered = staged().register(&tx, ticket).await?;
            let stamp = tx.get_versionstamp();
            tx.commit().await?;
            Ok::<_, Error>(registered.committed(stamp.await?))
        };
        match registered.await {
            Ok(Some(request)) => Ok(request),
            Ok(None) => Err(Outcome::Violated("a request without a place".to_owned())),
            Err(_) => Err(Outcome::Answered(Answer::Away)),
        }
    }

    async fn enlist<D: Database>(&self, session: &mut Session<D>) -> Outcome<Answer> {
        match self.register(&session.database().clone()).await {
            Ok(request) => give_up(session, request).await,
            Err(outcome) => outcome,
        }
    }

    async fn deal<D: Database>(&self, session: &mut Session<D>, deals: &[Deal]) -> Outcome<Answer> {
        let db = session.database().clone();
        let request = match self.register(&db).await {
            Ok(request) => request,
            Err(outcome) => return outcome,
        };
        let values: Vec<Vec<(ItemId, Bytes)>> = deals.iter().map(|deal| deal.values(db.env())).collect();
        let done = async {
            let (db, values) = (&db, &values);
            let dealt = session.apply(|tx| async move {
                let mut dealt = Vec::new();
                for (deal, values) in deals.iter().zip(values) {
                    dealt.push(match self.planted {
                        Some(planted) => planted::deal(planted, db, &tx, deal, request, values).await?,
                        None => deal.perform(&tx, request, values).await?,
                    });
                }
                Ok::<_, Error>(Recorded(dealt))
            });
            let dealt = dealt.await;
            match known(session, dealt).await {
                Ok(Some(Recorded(dealt))) => Outcome::Answered(Answer::Dealt(dealt)),
                // Refused, or not done: the request stands.
                Ok(None) | Err(Error::OwnUnreadable) => Outcome::Answered(Answer::Away),
                Err(e) => Outcome::Violated(e.to_string()),
            }
        };
        self.patiently(&db, done).await
    }

    async fn together<D: Database>(&self, session: &mut Session<D>, parts: &[Part]) -> Outcome<Answer> {
        let env = session.database().env();
        let values: Vec<Vec<(ItemId, Bytes)>> = parts.iter().map(|part| part.values(env)).collect();
        let tickets: Vec<ItemId> = parts.iter().map(|_| ItemId::draw(env)).collect();
        let (values, tickets) = (&values, &tickets);
        let done = session.apply(|tx| async move {
            let mut answers = Vec::new();
            for ((part, values), ticket) in parts.iter().zip(values).zip(tickets) {
                answers.push(part.perform(&tx, values, *ticket).await?);
            }
            Ok::<_, Error>(Recorded(answers))
        });
        match done.await {
            once::Outcome::Applied(Recorded(answers)) => Outcome::Answered(Answer::Parts(answers)),
            once::Outcome::Refused(e) => refused(e),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
        }
    }

    /// Brings back what nobody collects.
    async fn reclaim<D: Database>(&self, db: &D) -> Result<(), Error> {
        let patience = Duration::from_millis(self.patience);
        let reclaimed = match self.planted {
            Some(planted) => planted::reclaim(planted, db, patience).await,
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

/// Gives a request up, however long that takes.
pub(crate) async fn give_up<D: Database>(session: &mut Session<D>, request: Request) -> Outcome<Answer> {
    match staged().give_up(session, request).await {
        Ok(Turn::Given(item)) => taken(item),
        Ok(Turn::Gone) => Outcome::Answered(Answer::Left(0)),
        Ok(Turn::Waiting(_)) => Outcome::Violated("left, and waits".to_owned()),
        Err(e) => Outcome::Violated(e.to_string()),
    }
}

/// Waits for a request's turn; when its item was brought back in between, asks anew.
pub(crate) async fn wait<D: Database>(session: &mut Session<D>, mut request: Request) -> Outcome<Answer> {
    loop {
        match staged().take_turn(session, request).await {
            Ok(Turn::Given(item)) => return taken(item),
            Ok(_) => {}
            Err(e) => return Outcome::Violated(e.to_string()),
        }
        request = loop {
            match staged().ask(session).await {
                once::Outcome::Applied(Turn::Given(item)) => return taken(item),
                once::Outcome::Applied(Turn::Waiting(request)) => break request,
                _ => session.database().env().sleep(Duration::from_millis(10)).await,
            }
        };
    }
}

/// The name of an item in a transaction's body.
fn named(item: Option<Item>) -> Result<Option<Name>, Error> {
    let foreign = |item: &Item| Error::Foreign(item.value.clone());
    item.map(|item| name(&item).map_err(|_| foreign(&item))).transpose()
}

async fn put<T: Transaction>(tx: &T, values: &[(ItemId, Bytes)]) -> Result<(), Error> {
    for (id, value) in values {
        staged().enqueue(tx, *id, value).await?;
    }
    Ok(())
}

impl Dealt {
    pub(crate) fn of(turn: Turn) -> Result<Dealt, Error> {
        Ok(match turn {
            Turn::Waiting(_) => Dealt::Waiting,
            Turn::Given(item) => Dealt::Given(named(item)?),
            Turn::Gone => Dealt::Gone,
        })
    }
}

impl Deal {
    fn values(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        match self {
            Deal::Put(batch) => batch.draw(env),
            _ => Vec::new(),
        }
    }

    pub(crate) async fn perform<T: Transaction>(
        &self,
        tx: &T,
        request: Request,
        values: &[(ItemId, Bytes)],
    ) -> Result<Dealt, Error> {
        let queue = staged();
        match self {
            Deal::Turn => {
                let look = |tx, isolation| async move { staged().turn(&tx, request, isolation).await };
                Dealt::of(looks::twice(tx, self, look).await?)
            }
            Deal::Collect => Dealt::of(queue.collect(tx, request).await?),
            Deal::Leave => Dealt::of(queue.leave(tx, request).await?),
            Deal::Serve(most) => Ok(Dealt::Served(queue.fulfil(tx, *most).await?)),
            Deal::TakeBack => Ok(Dealt::Back(queue.reclaim(tx, request.ticket()).await?)),
            Deal::Put(_) => put(tx, values).await.map(|()| Dealt::Put),
        }
    }
}

impl Part {
    fn values(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        match self {
            Part::Put(batch) => batch.draw(env),
            Part::Crowd(requests) => (0..*requests).map(|_| (ItemId::draw(env), Bytes::new())).collect(),
            _ => Vec::new(),
        }
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        values: &[(ItemId, Bytes)],
        ticket: ItemId,
    ) -> Result<PartAnswer, Error> {
        Ok(match self {
            Part::Put(_) => {
                put(tx, values).await?;
                PartAnswer::Put
            }
            Part::Take => match staged().take(tx, ticket).await? {
                Taken::Now(item) => PartAnswer::Took(named(item)?),
                Taken::Waiting(_) => PartAnswer::Registered,
            },
            Part::Crowd(_) => {
                for (ticket, _) in values {
                    staged().register(tx, *ticket).await?;
                }
                PartAnswer::Registered
            }
            Part::Peek => {
                let look = |tx, isolation| async move { staged().peek(&tx, isolation).await };
                PartAnswer::First(named(looks::twice(tx, self, look).await?)?)
            }
            Part::Count => {
                let look = |tx, isolation| async move { staged().len(&tx, isolation).await };
                PartAnswer::Count(looks::twice(tx, self, look).await?)
            }
            Part::Parked => {
                let look = |tx, isolation| async move { staged().parked(&tx, isolation).await };
                PartAnswer::Count(looks::twice(tx, self, look).await?.len())
            }
        })
    }
}

/// What several things in one transaction should come to.
#[derive(Default)]
struct Expected {
    answers: Vec<PartAnswer>,
    put: Vec<Name>,
    taken: Vec<(Position, Name)>,
    registered: usize,
}

/// What is stored, as its rows say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stage {
    items: BTreeMap<Position, Name>,
    requests: BTreeSet<Request>,
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
        let served = self.requests.iter().find(|request| self.parked.contains_key(&request.ticket()));
        served.map_or(Ok(()), |request| Err(format!("the request {request:?} waits and is served")))
    }

    /// What a transaction of these parts comes to here, `Err` when it is refused: it cannot read what it has
    /// appended itself.
    fn together(&self, parts: &[Part]) -> Result<Expected, Error> {
        let (mut items, mut expected) = (self.items.clone(), Expected::default());
        for part in parts {
            let readable = |found: bool| match found || expected.put.is_empty() {
                true => Ok(()),
                false => Err(Error::OwnUnreadable),
            };
            let answer = match part {
                Part::Put(batch) => {
                    expected.put.extend(batch.names());
                    PartAnswer::Put
                }
                Part::Take if !self.requests.is_empty() => {
                    expected.registered += 1;
                    PartAnswer::Registered
                }
                Part::Take => {
                    readable(!items.is_empty())?;
                    let first = items.pop_first();
                    expected.taken.extend(first);
                    PartAnswer::Took(first.map(|(_, name)| name))
                }
                Part::Peek => {
                    readable(!items.is_empty())?;
                    PartAnswer::First(items.first_key_value().map(|(_, name)| *name))
                }
                Part::Count => {
                    readable(false)?;
                    PartAnswer::Count(items.len())
                }
                Part::Parked => PartAnswer::Count(self.parked.len()),
                Part::Crowd(requests) => {
                    expected.registered += usize::from(*requests);
                    PartAnswer::Registered
                }
            };
            expected.answers.push(answer);
        }
        Ok(expected)
    }

    /// What a transaction of these calls about a request comes to here, `None` when it is refused: it cannot
    /// read what it has appended itself. Those that it enqueues are left out of the items. Only requests that
    /// stood at its read version are served: others that follow do not conflict.
    fn deal(
        &self,
        deals: &[Deal],
        request: &Request,
        read: Version,
    ) -> Option<(Stage, Vec<Name>, Vec<Dealt>)> {
        let (mut stage, mut put, mut dealt) = (self.clone(), Vec::new(), Vec::new());
        let ticket = request.ticket();
        for deal in deals {
            let stands = match (stage.parked.get(&ticket), stage.requests.contains(request)) {
                (Some(given), _) => Dealt::Given(given.map(|(_, name)| name)),
                (None, true) => Dealt::Waiting,
                (None, false) => Dealt::Gone,
            };
            dealt.push(match (deal, stands) {
                (Deal::Put(batch), _) => {
                    put.extend(batch.names());
                    Dealt::Put
                }
                (Deal::Serve(most), _) => {
                    let seen = stage.requests.iter().take_while(|request| version(&request.stamp()) <= read);
                    let first: Vec<_> = seen.take((*most).max(1)).copied().collect();
                    // Without a request it looks at an item all the same, and does not conflict by it.
                    if stage.items.len() < first.len() && !put.is_empty() {
                        return None;
                    }
                    for request in &first {
                        let item = stage.items.pop_first();
                        stage.requests.remove(request);
                        stage.parked.insert(request.ticket(), item);
                    }
                    Dealt::Served(first.len())
                }
                (Deal::TakeBack, stands) => {
                    let parked = stage.parked.remove(&ticket);
                    stage.items.extend(parked.flatten());
                    Dealt::Back(matches!(stands, Dealt::Given(_)))
                }
                (Deal::Collect | Deal::Leave, Dealt::Given(_)) => {
                    stage.parked.remove(&ticket);
                    stands
                }
                (Deal::Leave, Dealt::Waiting) => {
                    stage.requests.remove(request);
                    Dealt::Gone
                }
                (Deal::Turn | Deal::Collect | Deal::Leave, stands) => stands,
            });
        }
        Some((stage, put, dealt))
    }

    /// The items that are still to leave, where they would stand if all were brought back.
    fn remaining(&self) -> BTreeMap<Position, Name> {
        self.items.iter().map(|(p, n)| (*p, *n)).chain(self.parked.values().flatten().copied()).collect()
    }
}

fn stamp(position: &Position) -> Option<[u8; 10]> {
    match position {
        Position::Commit { stamp, .. } => Some(*stamp),
        Position::Index { .. } => None,
    }
}

/// The commit version in a stamp.
fn version([version @ .., _, _]: &[u8; 10]) -> Version {
    Version::from_be_bytes(*version)
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
    /// What operations registered.
    registered: BTreeMap<Call, Vec<Request>>,
    /// Operations whose request is nothing that a later dequeue of their session goes on with.
    aside: BTreeSet<Call>,
    /// The version at which something was parked for each ticket.
    parked_since: BTreeMap<ItemId, Version>,
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
        let gone = || before.parked.iter().filter(|(t, _)| !after.parked.contains_key(t));
        let fetched: Vec<_> = gone().map(|(_, g)| *g).collect();
        let since = gone().filter_map(|(t, _)| self.parked_since.get(t).copied()).min();
        if let Some(version) = step.stamp.as_ref().map(version) {
            self.parked_since.extend(parked.iter().map(|(ticket, _)| (**ticket, version)));
        }
        let counts = [put.len(), removed.len(), registered.len(), served.len(), parked.len(), fetched.len()];
        let own = self.registered.get(&call).and_then(|requests| requests.first()).copied();
        match (step.op, counts) {
            (Op::Deal(deals), _) if let (Some(request), Some(read)) = (own, step.read_version) => {
                let Some((mut expected, names, dealt)) = before.deal(deals, &request, read) else {
                    return Err("committed where the queue refuses".to_owned());
                };
                // What it enqueues has its place from the commit.
                let new = after.items.iter().filter(|(_, name)| names.contains(name));
                let new: Vec<_> = new.map(|(p, n)| (*p, *n)).collect();
                expected.items.extend(new.iter().copied());
                if after != expected || new.iter().map(|(_, name)| *name).collect::<Vec<_>>() != names {
                    return Err(format!("led from {before:?} to {after:?}, should lead to {expected:?}"));
                }
                match step.answer {
                    Some(answer) if *answer != Answer::Dealt(dealt.clone()) => {
                        Err(format!("answered {answer:?}, should answer {dealt:?}"))
                    }
                    _ => stamped(step, new.iter().map(|(p, _)| stamp(p))),
                }
            }
            (Op::Enqueue(batch), [n, 0, 0, 0, 0, 0]) => {
                let names: Vec<Name> = put.iter().map(|(_, name)| *name).collect();
                if n != usize::from(batch.items) || names != batch.names().collect::<Vec<_>>() {
                    return Err(format!("enqueued {names:?}"));
                }
                stamped(step, put.iter().map(|(p, _)| stamp(p)))
            }
            (Op::Reclaim, [0, 0, 0, 0, 0, 0]) => Ok(()),
            (Op::Reclaim, [_, 0, 0, 0, 0, _]) => {
                let back: Vec<_> = fetched.into_iter().flatten().collect();
                match put == back {
                    true => Ok(()),
                    false => Err(format!("brought back {put:?}, of {back:?} that were parked")),
                }
            }
            (Op::Together(parts), [_, _, _, 0, 0, 0]) => {
                let expected = match before.together(parts) {
                    Ok(expected) => expected,
                    Err(e) => return Err(format!("committed where the queue refuses: {e}")),
                };
                let names: Vec<Name> = put.iter().map(|(_, name)| *name).collect();
                let fits = names == expected.put
                    && removed == expected.taken
                    && registered.len() == expected.registered;
                if !fits {
                    return Err(format!("put {names:?}, removed {removed:?}, registered {registered:?}"));
                }
                match step.answer {
                    Some(answer) if *answer != Answer::Parts(expected.answers.clone()) => {
                        return Err(format!("answered {answer:?}, should answer {:?}", expected.answers));
                    }
                    _ => {}
                }
                stamped(
                    step,
                    put.iter().map(|(p, _)| stamp(p)).chain(registered.iter().map(|r| Some(r.stamp()))),
                )
            }
            (op, [0, 0, 0, 0, 0, 0]) if op.dequeues() || *op == Op::Enlist => {
                if before.items.is_empty() && before.requests.is_empty() {
                    self.found_empty.insert(call);
                }
                Ok(())
            }
            (op, [0, 0, 1, 0, 0, 0]) if op.dequeues() || matches!(op, Op::Enlist | Op::Deal(_)) => {
                self.registered.entry(call).or_default().extend(&registered);
                if !op.dequeues() {
                    self.aside.insert(call);
                }
                stamped(step, registered.iter().map(|request| Some(request.stamp())))
            }
            (op, [0, 1, 0, 0, 0, 0]) if op.dequeues() => {
                if let Some(request) = before.requests.first() {
                    return Err(format!("took {:?} although {request:?} waits", removed[0]));
                }
                if before.items.first_key_value().map(|(p, n)| (*p, *n)) != Some(removed[0]) {
                    return Err(format!("took {:?} out of turn: {:?}", removed[0], before.items));
                }
                self.give(call, Some(removed[0].1))
            }
            (op, [0, 0, 0, 0, 0, 1]) if op.dequeues() || *op == Op::Enlist => {
                if let (Op::Dequeue | Op::Within(_), Some(Answer::Taken(..))) = (op, step.answer) {
                    step.waited(Wait { patience: 0, found: since })?;
                }
                self.give(call, fetched[0].map(|(_, name)| name))
            }
            (Op::Leave | Op::Within(_) | Op::Enlist, [0, 0, 0, 1, 0, 0]) => Ok(()),
            (Op::Dequeue | Op::Within(_) | Op::Cut(_), [0, _, 0, n, _, 0]) if n > 0 => {
                let first: Vec<_> = before.requests.iter().take(n).copied().collect();
                if served != first {
                    return Err(format!("served {served:?} where {first:?} stand first"));
                }
                let items: Vec<_> = before.items.iter().take(n).map(|(p, n)| (*p, *n)).collect();
                let pairs = served.iter().enumerate().map(|(at, r)| (r.ticket(), items.get(at).copied()));
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
            // A dequeue that goes on with another's request may be told that there was none before it asks anew.
            Some(None) | None => Ok(()),
            Some(before) => Err(format!("got {item:?} and {before:?}")),
        }
    }

    /// Whether a request stands, or something is parked for it.
    fn holds(&self, request: &Request) -> bool {
        self.stage.requests.contains(request) || self.stage.parked.contains_key(&request.ticket())
    }

    /// What is wrong with a dequeue's answer. Those that had not ended when it began, in its session, owe it
    /// what they were given.
    fn misled(&self, at: &Call, told: &Answer) -> Option<String> {
        let (client, index) = *at;
        let (told, ago) = match told {
            Answer::Taken(name, ago) => (*name, *ago),
            Answer::Left(ago) => (None, *ago),
            Answer::Failed(_) => {
                let own = self.registered.get(at).into_iter().flatten().find(|request| self.holds(request));
                let given = self.given.get(at).copied().flatten();
                let fits = own.is_none() && given.is_none();
                return (!fits).then(|| format!("failed, and was given {given:?}, and its {own:?} stands"));
            }
            _ => return None,
        };
        let open = (client, index.saturating_sub(ago))..*at;
        let untold = |(at, _): &(&Call, &Option<Name>)| !self.told.contains_key(*at);
        let owed = self.given.range(open.clone()).filter(untold).filter_map(|(_, name)| *name).next();
        let given = self.given.get(at).copied();
        let fits = match (owed, told, given) {
            (Some(owed), told, given) => told == Some(owed) && given.is_none(),
            (None, Some(told), given) => given == Some(Some(told)),
            (None, None, Some(given)) => given.is_none(),
            (None, None, None) => {
                matches!(self.told.get(at), Some(Answer::Left(_))) || self.found_empty.contains(at)
            }
        };
        if !fits {
            return Some(format!("says {told:?}, was given {given:?}, and is owed {owed:?}"));
        }
        let requests = self
            .registered
            .range(open.start..=*at)
            .filter(|(call, _)| *call == at || !self.told.contains_key(*call) && !self.aside.contains(*call));
        let stands = requests.flat_map(|(_, requests)| requests).find(|request| self.holds(request));
        stands.map(|request| format!("has ended, and its {request:?} stands or is served"))
    }
}

/// Whether the stamps are those of the transaction.
fn stamped(
    step: &Step<'_, Staged>,
    mut stamps: impl Iterator<Item = Option<[u8; 10]>>,
) -> Result<(), String> {
    match stamps.find(|stamp| *stamp != step.stamp) {
        None => Ok(()),
        Some(wrong) => Err(format!("appended at {wrong:02x?}, but committed as {:02x?}", step.stamp)),
    }
}

impl Workload for Staged {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "staged_queue";
    const ABOUT: &'static str =
        "dequeues that register and serve each other, in order, whoever dies meanwhile";
    const ONE_EFFECT: bool = false;

    /// A client that went away leaves its request to whatever becomes of it, and one that failed may have served
    /// others.
    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Away | Answer::Failed(_))
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "staged_queue: a dequeue finds others waiting",
            "staged_queue: several requests are served at once",
            "staged_queue: more wait than one transaction moves items for",
            "staged_queue: a request is told that there is no item",
            "staged_queue: a client leaves while it waits",
            "staged_queue: an item comes back",
            "staged_queue: a dequeue finds what a dropped one was given",
            "staged_queue: a dequeue gives up and finds what it was given",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Staged {
        let most = rng.range(8..30) as usize;
        let rare = [(); 4].map(|()| rng.range(1..4));
        let mix = [rng.range(4..12), rng.range(4..12), rare[0], rare[1], rare[2], rare[3]];
        let mut drawn = Staged {
            clients: rng.range(2..10) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            patience: *rng.pick(&[1, 5, 30, 200]),
            padding: *rng.pick(&[0, 100, 3_000]),
            crowded: rng.chance(0.1),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        };
        if drawn.crowded {
            // A transaction that moves a megabyte takes longer than a short timeout: it would be tried for ever.
            drawn.timeout = drawn.timeout.filter(|milliseconds| *milliseconds >= 1_000);
        }
        drawn
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
        let [put, take, walk, back, look, both] = self.mix;
        let largest = if self.crowded { 15u16 } else { 3 };
        let part = prop_oneof![
            3 => batch(1..3).prop_map(Part::Put),
            2 => Just(Part::Take),
            2 => Just(Part::Peek),
            1 => Just(Part::Count),
            1 => Just(Part::Parked),
        ];
        let deal = prop_oneof![
            4 => Just(Deal::Turn),
            2 => Just(Deal::Collect),
            1 => Just(Deal::Leave),
            3 => (1..4usize).prop_map(Deal::Serve),
            1 => Just(Deal::TakeBack),
            1 => batch(1..3).prop_map(Deal::Put),
        ];
        let op = prop_oneof![
            4 * put => batch(1..2).prop_map(Op::Enqueue),
            put => batch(2..5).prop_map(Op::Enqueue),
            1 => (1..largest).prop_map(|items| Op::Enqueue(Batch { client: 0, number: 0, items, padding: FULL })),
            4 * take => Just(Op::Dequeue),
            2 * take => select(&[0, 1, 10, 50, 100, 300, 1_000, 5_000][..]).prop_map(Op::Within),
            take => (1u8..60).prop_map(Op::Cut),
            walk => Just(Op::Leave),
            walk => Just(Op::Vanish),
            walk => Just(Op::Enlist),
            back => Just(Op::Reclaim),
            look => Just(Op::Peek),
            look => Just(Op::Count),
            look => Just(Op::Survey),
            2 * both => vec(part, 1..6).prop_map(Op::Together),
            both => vec(deal, 1..7).prop_map(Op::Deal),
            1 => prop_oneof![Just(1u16), 1..500u16].prop_map(Op::Oversized),
        ];
        let op = match self.crowded {
            true => prop_oneof![
                40 => op,
                1 => (1..CROWD).prop_map(|requests| Op::Together(vec![Part::Crowd(requests)])),
            ]
            .boxed(),
            false => op.boxed(),
        };
        let named = move |mut ops: Vec<Op>| {
            let batches = ops.iter_mut().flat_map(|op| match op {
                Op::Enqueue(batch) => vec![batch],
                Op::Deal(deals) => {
                    let puts = deals.iter_mut().filter_map(|deal| match deal {
                        Deal::Put(batch) => Some(batch),
                        _ => None,
                    });
                    puts.collect()
                }
                Op::Together(parts) => {
                    let puts = parts.iter_mut().filter_map(|part| match part {
                        Part::Put(batch) => Some(batch),
                        _ => None,
                    });
                    puts.collect()
                }
                _ => Vec::new(),
            });
            for (number, batch) in (0..).zip(batches) {
                (batch.client, batch.number) = (client as u16, number);
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
        Ok(Client { session, calls: 0, open: None })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        client.begins(op);
        let wrong = planted::apply(self.planted?, self, &mut client.session, op);
        let outcome = match op {
            Op::Cut(polls) => match sessions::polled(u64::from(*polls), wrong).await {
                Some(outcome) => outcome?,
                None => return Some(Outcome::Unknown(tx::Error::OPERATION_CANCELLED)),
            },
            _ => wrong.await?,
        };
        Some(client.ends(op, outcome))
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let session = &mut client.session;
        let db = session.database().clone();
        let outcome = match op {
            Op::Enqueue(batch) => self.enqueue(session, &batch.values()).await,
            Op::Dequeue => self.dequeue(session).await,
            Op::Within(patience) => self.within(session, self::patience(*patience)).await,
            Op::Cut(polls) => match sessions::polled(u64::from(*polls), self.dequeue(session)).await {
                Some(outcome) => outcome,
                None => return Outcome::Unknown(tx::Error::OPERATION_CANCELLED),
            },
            Op::Leave => self.leave(session).await,
            Op::Vanish => match self.ask(session).await {
                Ok(Turn::Given(item)) => taken(item),
                Ok(_) => Outcome::Answered(Answer::Away),
                Err(outcome) => outcome,
            },
            Op::Enlist => self.enlist(session).await,
            Op::Deal(deals) => self.deal(session, deals).await,
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
                let count = |tx, isolation| async move { staged().len(&tx, isolation).await };
                let counted = db.run(|tx, _| async move { looks::twice(&tx, op, count).await }).await;
                counted.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n)))
            }
            Op::Survey => match db.run(|tx, _| async move { stored(&tx).await }).await {
                Ok(Ok(stage)) => Outcome::Answered(Answer::Rows([
                    stage.items.len(),
                    stage.requests.len(),
                    stage.parked.len(),
                ])),
                Ok(Err(why)) => Outcome::Violated(why),
                Err(e) => Outcome::GaveUp(e.error),
            },
            Op::Together(parts) => self.together(session, parts).await,
            Op::Oversized(beyond) => {
                let value = vec![0; MAX_VALUE_BYTES + usize::from(*beyond)].into();
                self.enqueue(session, &[value]).await
            }
        };
        client.ends(op, outcome)
    }

    async fn recall<D: Database>(&self, client: &mut Client<D>) {
        sessions::read_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        if op.dequeues() {
            // It may have asked, and the next dequeue of the session goes on from there.
            return Outcome::Unknown(error);
        }
        sessions::settle(&mut client.session, self.timeout, error, async |session, pending| {
            let enqueued = || Outcome::Answered(Answer::Enqueued);
            Ok(match op {
                Op::Enqueue(Batch { items: 1, .. }) => {
                    session.resolve(pending).await?.map(|_: Position| enqueued())
                }
                Op::Together(_) => {
                    let parts = session.resolve(pending).await?;
                    parts.map(|Recorded(answers)| Outcome::Answered(Answer::Parts(answers)))
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
        if let Some(answer @ (Answer::Taken(..) | Answer::Left(_) | Answer::Away | Answer::Failed(_))) =
            step.answer
        {
            model.told.insert((step.client, step.index), answer.clone());
        }
        if let (Op::Within(patience), Some(Answer::Left(_))) = (step.op, step.answer) {
            // Whether something was there shows in what becomes of its request.
            let over = step.called + self::patience(*patience).as_nanos() as u64;
            if step.returned < over {
                return Err(format!("gave up {} ns before its patience had run out", over - step.returned));
            }
        }
        if step.committed {
            return model.commit(step);
        }
        // What changes nothing may commit nothing.
        let is_empty = model.stage.items.is_empty() && model.stage.requests.is_empty();
        if is_empty && matches!(step.answer, Some(Answer::Taken(None, _))) {
            model.found_empty.insert((step.client, step.index));
            return Ok(());
        }
        let first = || model.stage.items.first_key_value().map(|(_, name)| *name);
        let fits = match (step.op, step.answer) {
            (_, None) | (Op::Reclaim, Some(Answer::Reclaimed)) => true,
            // What it came to others have done; the check compares.
            (op, Some(Answer::Taken(..) | Answer::Left(_) | Answer::Away | Answer::Failed(_)))
                if op.dequeues() =>
            {
                true
            }
            (Op::Enlist | Op::Deal(_), Some(Answer::Away)) => true,
            (Op::Survey, Some(Answer::Rows(rows))) => {
                let Stage { items, requests, parked } = &model.stage;
                *rows == [items.len(), requests.len(), parked.len()]
            }
            (Op::Together(parts), Some(Answer::Refused(why))) => {
                model.stage.together(parts).is_err_and(|e| e.to_string() == *why)
            }
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
        let misled = model.told.iter().find_map(|(at, told)| model.misled(at, told).map(|why| (at, why)));
        if let Some(((client, index), why)) = misled {
            return Ok(Err(format!("operation {index} of client {client} {why}")));
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
        let request = |n: u8| {
            let key = staged().subspace().subspace(&1).pack(&(
                Versionstamp::complete([n; 10], 0),
                0,
                TupleBytes::from(&[n; 16][..]),
            ));
            match staged().row(&KeyValue::new(key, "")) {
                Ok(Row::Request(request)) => request,
                other => panic!("{other:?}"),
            }
        };
        let at = |n: u8| Position::Commit { stamp: [n; 10], rank: 0, id: ItemId([n; 16]) };
        let mut stage = Stage::default();
        stage.items.insert(at(1), (0, 0, 0));
        stage.requests.insert(request(5));
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
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
