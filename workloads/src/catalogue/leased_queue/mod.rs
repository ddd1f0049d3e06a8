//! `leased_queue`: workers claim, renew, acknowledge, are slow, give up, die.
//!
//! A worker's operation is several transactions, and others take his item back when he is silent for the
//! duration of a lease. The model follows what each transaction wrote: every one must be a step that the
//! queue allows, by who may do it: only the last claim of an item can be renewed, released or acknowledged,
//! and by the operation that made it. Each worker holds a timer beside his lease, so that one which was taken
//! from him before its end shows. Now and then a worker who was believed dead goes on beside his second
//! incarnation. Several calls are composed in one transaction, and answer what the model does one after the
//! other.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    judges::Keyspace,
    looks,
    sessions::{self, known, slots},
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    leased_queue::{Claim, Error, Hold, Lease, LeasedQueue, MAX_VALUE_BYTES, Row},
    once::{self, Session},
    queue::{ItemId, Position},
    tx::{
        self, Database,
        Isolation::{self, Serializable},
        KeyValue, RangeOption, RetryError, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

shaketable::planted_bugs! {
    AcknowledgesUnfenced = "acknowledges-unfenced", "an acknowledgement asks whether the item is claimed, not by whom", "a completion without a fencing token";
    RenewsUnfenced = "renews-unfenced", "a renewal does not compare the token", "a renewal after a takeover";
    ClaimsAtSnapshot = "claims-at-snapshot", "the first item is read at snapshot and claimed blindly", "a blind claim";
    StoredDeadline = "stored-deadline", "the end of a lease is stored by its holder's clock and compared with another's", "an expiry compared with a local clock";
    RevisionIgnored = "revision-ignored", "a lease that was renewed while it was watched ends all the same", "a watcher of the holder alone";
    ExpiresBlindly = "expires-blindly", "a watched lease is ended without a look whether it is still the same", "a watcher that does not look again";
    TokenBeginsAgain = "token-begins-again", "an item that comes back begins with the first token again", "a counter that is cleared with its lease";
    NeverExpires = "never-expires", "nobody ends the leases of the dead", "a claim without an expiry";
    AcknowledgesUnrecorded = "acknowledges-unrecorded", "an acknowledgement that committed unseen is retried, and refused", "an acknowledgement without a record";
    AcknowledgesAtSnapshot = "acknowledges-at-snapshot", "an acknowledgement reads the lease at snapshot", "two incarnations of one worker";
    RenewsUnseen = "renews-unseen", "a renewal changes nothing that a watcher could see", "a heartbeat that is not written";
    ReleaseForgets = "release-forgets", "a release clears the lease, and with it the last token", "a counter that is cleared with its lease";
    FirstPage = "first-page", "only the first page of the leases is watched", "a list that is longer than a page";
    CountBeside = "count-beside", "a count in a transaction is taken in another one beside it", "a look-up that is given the database";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, however it is asked for", "a dropped conflict range";
    ComesBackLast = "comes-back-last", "an item whose lease has ended is enqueued anew", "a retry at the end of the line";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leased {
    clients: usize,
    operations: Range<usize>,
    /// How often an operation puts in, works, ends leases, looks.
    mix: [u32; 4],
    /// How long a lease is, milliseconds.
    lease: u64,
    /// Values are padded with up to so many bytes.
    padding: u32,
    /// How many leases are read in one transaction.
    page: usize,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    pub(crate) planted: Option<Planted>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Enqueues an item.
    Enqueue(Batch),
    /// Claims an item and works at it, in this manner.
    Work(Manner),
    /// Ends the leases that nobody renews.
    Expire,
    /// Counts the items that wait and those that are claimed, each up to so many.
    Count(usize),
    /// Does these in one transaction.
    Together(Vec<Act>),
    /// Tries to enqueue into a queue whose prefix leaves no place for a key.
    Deep,
    /// Tries to enqueue a value of so many bytes more than fit.
    Oversized(u16),
}

/// One of several calls in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Enqueues an item.
    Put(Batch),
    /// Counts, up to so many.
    Count(usize),
    /// Lists the leases, in pages of so many.
    Leases(usize),
    /// Claims an item, and does this with it.
    Take(Hand),
    /// Ends leases that nobody has observed: the first one as it may be after a renewal, and as it may have
    /// been before.
    Stale,
}

/// What is done with an item in the transaction that claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hand {
    /// It is acknowledged.
    Acknowledge,
    /// It is given back.
    Release,
    /// The lease is renewed so often, and held.
    Renew(u8),
}

/// What one of several calls answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Enqueued.
    Put,
    /// So many wait, so many are claimed.
    Count(usize, usize),
    /// Position, token and revision of each lease that is held.
    Leases(Vec<(Position, i64, i64)>),
    /// Claimed this with this token, renewed so often, and lost by what was done with it.
    Taken(Name, i64, i64, bool),
    /// There was nothing to claim.
    Nothing,
    /// How many leases ended.
    Ended(usize),
}

/// How a worker works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manner {
    /// Acknowledges at once.
    Prompt,
    /// Renews so often, in good time, before he acknowledges.
    Renewing(u8),
    /// Acknowledges after so many tenths of the lease's duration, most often too late.
    Slow(u8),
    /// Sleeps so many tenths of the lease's duration, renews, and acknowledges.
    Late(u8),
    /// Gives the item back.
    Releasing,
    /// Is never heard of again.
    Vanishing,
    /// Is believed dead after so many tenths of the lease's duration, and goes on beside a second incarnation,
    /// which holds the same and acknowledges after so many tenths, or gives it back.
    Twice(u8, u8, bool),
}

/// What an operation enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    client: u16,
    number: u16,
    padding: u32,
}

/// The padding that makes a value as long as values may be.
const FULL: u32 = u32::MAX;

/// Names an item: its client, its operation's number.
pub type Name = (u16, u16);

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued.
    Enqueued,
    /// There was no item to claim.
    Nothing,
    /// Claimed this, and came to this end.
    Worked(Name, End),
    /// Ended whatever leases there were to end.
    Expired,
    /// So many wait, so many are claimed.
    Count(usize, usize),
    /// What each of several calls answered.
    Together(Vec<Told>),
    /// Refused, in these words.
    Refused(String),
}

/// How a worker's lease ended for him.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// He acknowledged.
    Acknowledged,
    /// He was told that he has lost it.
    Lost,
    /// He gave it back.
    Released,
    /// He did nothing about it, or nothing that came through.
    Silent,
    /// Both of his incarnations ended it, which must not be.
    Twice,
}

impl Batch {
    fn value(&self) -> Bytes {
        let of = |padding: usize| pack(&(self.client, self.number, &vec![1u8; padding][..]));
        let padding = match self.padding {
            FULL => MAX_VALUE_BYTES - of(0).len(),
            padding => padding as usize,
        };
        of(padding).into()
    }
}

/// The name in a value.
fn name(value: &[u8]) -> Result<Name, String> {
    let parts: (u16, u16, TupleBytes<'_>) =
        unpack(value).map_err(|_| format!("nobody enqueued \"{}\"", value.escape_ascii()))?;
    Ok((parts.0, parts.1))
}

pub(crate) fn leased() -> LeasedQueue {
    LeasedQueue::new(Subspace::from("leased"))
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error.fdb() {
        Some(e) => Outcome::GaveUp(e),
        None => Outcome::Answered(Answer::Refused(error.to_string())),
    }
}

/// A worker's timer for his lease.
pub(crate) struct Timer(BoxFuture<'static, ()>);

impl Timer {
    /// Begins it.
    pub(crate) fn new<D: Database>(db: &D, lease: Duration) -> Timer {
        Timer(db.env().sleep(lease))
    }

    /// Whether the lease may have ended.
    pub(crate) fn is_over(&mut self) -> bool {
        (&mut self.0).now_or_never().is_some()
    }
}

impl Leased {
    /// How many leases are read in one transaction.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// How long a lease is.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease)
    }

    /// Claims an item and works at it.
    async fn work<D: Database>(&self, session: &mut Session<D>, manner: Manner) -> Outcome<Answer> {
        let db = session.database().clone();
        let mut timer = Timer::new(&db, self.lease());
        let claimed = match self.planted {
            Some(planted) => planted::claim(planted, self, session).await,
            None => session.apply(|tx| async move { leased().claim(&tx).await }).await,
        };
        let Claim { hold, value } = match self.settle(session, claimed).await {
            Ok(Some(Some(claim))) => claim,
            Ok(Some(None)) => return Outcome::Answered(Answer::Nothing),
            Ok(None) => return Outcome::GaveUp(tx::Error::COMMIT_UNKNOWN_RESULT),
            Err(e) => return refused(e),
        };
        let name = match name(&value) {
            Ok(name) => name,
            Err(why) => return Outcome::Violated(why),
        };
        let end = match self.go_on(session, &mut timer, hold, manner).await {
            Ok(Some(end)) => end,
            Ok(None) => End::Silent,
            Err(Error::Lost(lost)) if lost != hold => {
                return Outcome::Violated(format!("told that {lost} is lost"));
            }
            Err(Error::Lost(_)) => match timer.is_over() {
                true => End::Lost,
                false => return Outcome::Violated(format!("lost before the lease ended: {hold}")),
            },
            Err(e) => return refused(e),
        };
        Outcome::Answered(Answer::Worked(name, end))
    }

    /// What a worker does with what he holds; `None` if his last step did not come through.
    async fn go_on<D: Database>(
        &self,
        session: &mut Session<D>,
        timer: &mut Timer,
        hold: Hold,
        manner: Manner,
    ) -> Result<Option<End>, Error> {
        let db = session.database().clone();
        let tenths = |n: u8| db.env().sleep(self.lease() * n.into() / 10);
        match manner {
            Manner::Prompt => {}
            Manner::Slow(n) => tenths(n).await,
            Manner::Renewing(times) => {
                for _ in 0..times {
                    tenths(4).await;
                    if !self.renew(session, timer, hold).await? {
                        return Ok(None);
                    }
                }
            }
            Manner::Late(n) => {
                tenths(n).await;
                if !self.renew(session, timer, hold).await? {
                    return Ok(None);
                }
                tenths(3).await;
            }
            Manner::Releasing => return self.finish(session, hold, true).await,
            Manner::Vanishing => return Ok(Some(End::Silent)),
            Manner::Twice(first, second, releases) => {
                let first = async {
                    tenths(first).await;
                    self.finish(session, hold, false).await
                };
                let second = async {
                    tenths(second).await;
                    // A session of its own: nothing but the lease keeps the two apart.
                    let client = db.env().random_u64() as usize;
                    match sessions::open(&db, client, self.timeout).await {
                        Ok(mut session) => self.finish(&mut session, hold, releases).await,
                        // It never came to life.
                        Err(_) => Ok(None),
                    }
                };
                return once_of_two(hold, future::join(first, second).await);
            }
        }
        self.finish(session, hold, false).await
    }

    /// Acknowledges an item, or gives it back; `None` if that did not come through.
    async fn finish<D: Database>(
        &self,
        session: &mut Session<D>,
        hold: Hold,
        releases: bool,
    ) -> Result<Option<End>, Error> {
        let finished = match (self.planted, releases) {
            (Some(planted), true) => planted::release(planted, session, hold).await,
            (Some(planted), false) => planted::acknowledge(planted, self, session, hold).await,
            (None, true) => session.apply(|tx| async move { leased().release(&tx, hold).await }).await,
            (None, false) => session.apply(|tx| async move { leased().acknowledge(&tx, hold).await }).await,
        };
        let known = self.settle(session, finished).await?;
        Ok(known.map(|()| if releases { End::Released } else { End::Acknowledged }))
    }

    /// Renews a lease, and the timer with it. Whether that came through.
    async fn renew<D: Database>(
        &self,
        session: &mut Session<D>,
        timer: &mut Timer,
        hold: Hold,
    ) -> Result<bool, Error> {
        let db = session.database().clone();
        let anew = Timer::new(&db, self.lease());
        let renewed = match self.planted {
            Some(planted) => planted::renew(planted, self, session, hold).await,
            None => session.apply(|tx| async move { leased().renew(&tx, hold).await }).await,
        };
        let renewed = self.settle(session, renewed).await?.is_some();
        if renewed {
            *timer = anew;
        }
        Ok(renewed)
    }

    /// Learns what became of a step, however long that takes.
    async fn settle<D: Database, A: once::Answer>(
        &self,
        session: &mut Session<D>,
        outcome: once::Outcome<A, Error>,
    ) -> Result<Option<A>, Error> {
        let db = session.database().clone();
        sessions::patiently(&db, self.timeout, known(session, outcome)).await?
    }

    /// Ends leases that nobody renews.
    async fn expire<D: Database>(&self, db: &D) -> Result<(), Error> {
        let expired = match self.planted {
            Some(planted) => planted::expire(planted, self, db).await,
            None => leased().expire_unchanged(db, self.lease(), self.page).await,
        };
        expired.map(drop).map_err(|e| e.error)
    }
}

/// How it ended for a worker of whom there are two: one of them at most has ended it.
fn once_of_two(
    hold: Hold,
    ends: (Result<Option<End>, Error>, Result<Option<End>, Error>),
) -> Result<Option<End>, Error> {
    match ends {
        (Ok(Some(_)), Ok(Some(_))) => Ok(Some(End::Twice)),
        (Ok(Some(end)), Ok(None) | Err(Error::Lost(_))) | (Ok(None) | Err(Error::Lost(_)), Ok(Some(end))) => {
            Ok(Some(end))
        }
        (Err(Error::Lost(lost)), _) | (_, Err(Error::Lost(lost))) if lost == hold => Err(Error::Lost(hold)),
        (first, second) => first.and(second),
    }
}

/// Does several calls; `ids` are those of the items that they enqueue.
pub(crate) async fn together<T: Transaction>(
    tx: &T,
    acts: &[Act],
    ids: &[ItemId],
) -> Result<Vec<Told>, Error> {
    let (queue, mut told) = (leased(), Vec::with_capacity(acts.len()));
    for (act, id) in acts.iter().zip(ids) {
        told.push(match act {
            Act::Put(batch) => {
                queue.enqueue(tx, *id, &batch.value()).await?;
                Told::Put
            }
            Act::Count(most) => {
                let look = |tx, isolation| async move { count(&tx, *most, isolation).await };
                looks::twice(tx, act, look).await?
            }
            Act::Leases(most) => {
                let look = |tx, isolation| async move { leases(&tx, *most, isolation).await };
                looks::twice(tx, act, look).await?
            }
            Act::Take(hand) => take(tx, *hand).await?,
            Act::Stale => {
                let mut ended = 0;
                if let Some(Lease { hold, revision }) = first_lease(tx).await? {
                    let elder = Hold { token: hold.token - 1, ..hold };
                    for stale in [
                        Lease { hold, revision: revision + 1 },
                        Lease { hold, revision: revision - 1 },
                        Lease { hold: elder, revision },
                    ] {
                        ended += usize::from(queue.expire(tx, stale).await?);
                    }
                }
                Told::Ended(ended)
            }
        });
    }
    Ok(told)
}

pub(crate) async fn count<T: Transaction>(tx: &T, most: usize, isolation: Isolation) -> Result<Told, Error> {
    let (waiting, claimed) = leased().len(tx, most, isolation).await?;
    Ok(Told::Count(waiting, claimed))
}

async fn leases<T: Transaction>(tx: &T, most: usize, isolation: Isolation) -> Result<Told, Error> {
    let (mut held, mut after) = (Vec::new(), None);
    loop {
        let page = leased().leases(tx, after, most, isolation).await?;
        held.extend(page.held.iter().map(|l| (l.hold.position, l.hold.token, l.revision)));
        after = page.next;
        if after.is_none() {
            return Ok(Told::Leases(held));
        }
    }
}

async fn first_lease<T: Transaction>(tx: &T) -> Result<Option<Lease>, Error> {
    let mut after = None;
    loop {
        let page = leased().leases(tx, after, 2, Serializable).await?;
        after = page.next;
        if !page.held.is_empty() || after.is_none() {
            return Ok(page.held.first().copied());
        }
    }
}

async fn take<T: Transaction>(tx: &T, hand: Hand) -> Result<Told, Error> {
    let queue = leased();
    let Some(Claim { hold, value }) = queue.claim(tx).await? else { return Ok(Told::Nothing) };
    let name = name(&value).map_err(|_| Error::Foreign(value))?;
    let mut revision = 0;
    match hand {
        Hand::Acknowledge => queue.acknowledge(tx, hold).await?,
        Hand::Release => queue.release(tx, hold).await?,
        Hand::Renew(times) => {
            for _ in 0..times {
                revision = queue.renew(tx, hold).await?;
            }
            return Ok(Told::Taken(name, hold.token, revision, false));
        }
    }
    // Nothing more can be done with what is not held.
    let mut lost = true;
    for again in [
        queue.renew(tx, hold).await.map(drop),
        queue.acknowledge(tx, hold).await,
        queue.release(tx, hold).await,
    ] {
        match again {
            Err(Error::Lost(of)) => lost &= of == hold,
            Err(e) => return Err(e),
            Ok(()) => lost = false,
        }
    }
    lost &= !queue.expire(tx, Lease { hold, revision }).await?;
    Ok(Told::Taken(name, hold.token, revision, lost))
}

/// What is stored, as its rows say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stage {
    waiting: BTreeMap<Position, Name>,
    claimed: BTreeMap<Position, Name>,
    /// Token, revision, and whether it is held.
    leases: BTreeMap<Position, (i64, i64, bool)>,
}

impl Stage {
    fn of(rows: impl Iterator<Item = KeyValue>) -> Result<Stage, String> {
        let (queue, mut stage) = (leased(), Stage::default());
        for row in rows {
            match queue.row(&row).map_err(|e| e.to_string())? {
                Row::Waiting(item) => drop(stage.waiting.insert(item.position, name(&item.value)?)),
                Row::Claimed(item) => drop(stage.claimed.insert(item.position, name(&item.value)?)),
                Row::Lease(lease, held) => {
                    let row = (lease.hold.token, lease.revision, held);
                    stage.leases.insert(lease.hold.position, row);
                }
            }
        }
        Ok(stage)
    }

    /// Does several calls of one transaction. Answers what they tell, and what was claimed; nothing when one
    /// of them comes to an item that they enqueue.
    fn together(&mut self, acts: &[Act]) -> Option<(Vec<Told>, Vec<Taken>)> {
        let (mut told, mut taken, mut own) = (Vec::new(), Vec::new(), false);
        for act in acts {
            told.push(match act {
                Act::Put(_) => {
                    own = true;
                    Told::Put
                }
                Act::Count(most) => {
                    let most = (*most).max(1);
                    if own && self.waiting.len() < most {
                        return None;
                    }
                    Told::Count(self.waiting.len().min(most), self.claimed.len().min(most))
                }
                Act::Leases(_) => {
                    let held = self.leases.iter().filter(|(_, (_, _, held))| *held);
                    Told::Leases(held.map(|(at, (token, revision, _))| (*at, *token, *revision)).collect())
                }
                Act::Stale => Told::Ended(0),
                Act::Take(hand) => match self.waiting.pop_first() {
                    None if own => return None,
                    None => Told::Nothing,
                    Some((at, name)) => {
                        let token = self.leases.get(&at).map_or(0, |(token, ..)| *token) + 1;
                        let (revision, lost) = match hand {
                            Hand::Acknowledge => {
                                self.leases.remove(&at);
                                (0, true)
                            }
                            Hand::Release => {
                                self.leases.insert(at, (token, 0, false));
                                self.waiting.insert(at, name);
                                (0, true)
                            }
                            Hand::Renew(times) => {
                                self.leases.insert(at, (token, i64::from(*times), true));
                                self.claimed.insert(at, name);
                                (i64::from(*times), false)
                            }
                        };
                        taken.push((at, name, *hand));
                        Told::Taken(name, token, revision, lost)
                    }
                },
            });
        }
        Some((told, taken))
    }

    /// What must hold at every version: an item is in one place, claimed exactly under a lease that is
    /// held, and no lease is left of an item that is gone.
    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let twice = self.waiting.iter().chain(&self.claimed).find(|(_, name)| !names.insert(**name));
        if let Some((position, name)) = twice {
            return Err(format!("the item {name:?} at {position:?} is there twice"));
        }
        let held = |position: &Position| self.leases.get(position).is_some_and(|(_, _, held)| *held);
        if let Some((position, name)) = self.claimed.iter().find(|(position, _)| !held(position)) {
            return Err(format!("the item {name:?} at {position:?} is claimed under no lease"));
        }
        let orphan = self.leases.keys().find(|position| {
            !if held(position) {
                self.claimed.contains_key(position)
            } else {
                self.waiting.contains_key(position)
            }
        });
        orphan.map_or(Ok(()), |position| Err(format!("the lease at {position:?} is of no item")))
    }
}

/// Names an operation: its client, its place in the client's list.
type Call = (usize, usize);

/// An item that a transaction claimed, and in whose hand it is.
type Taken = (Position, Name, Hand);

/// The model: what is stored, who holds what, and what became of whom.
#[derive(Clone, Default)]
pub struct Model {
    rows: Keyspace,
    stage: Stage,
    /// The operation that made the last claim of an item.
    holders: BTreeMap<Position, Call>,
    claims: BTreeMap<Call, Name>,
    ends: BTreeMap<Call, End>,
    acknowledged: BTreeSet<Name>,
    told: BTreeMap<Call, (Name, End)>,
}

impl Model {
    /// Does what a transaction wrote, and says whether it may.
    fn commit(&mut self, step: &Step<'_, Leased>) -> Result<(), String> {
        let space = leased();
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
        if let Op::Together(acts) = step.op {
            return self.together(acts, before, &after, step);
        }

        let new = |map: &BTreeMap<Position, Name>, old: &BTreeMap<Position, Name>| -> Vec<(Position, Name)> {
            map.iter().filter(|(p, n)| old.get(p) != Some(n)).map(|(p, n)| (*p, *n)).collect()
        };
        let (put, left) = (new(&after.waiting, &before.waiting), new(&before.waiting, &after.waiting));
        let (claimed, ended) = (new(&after.claimed, &before.claimed), new(&before.claimed, &after.claimed));
        let changed: Vec<Position> = before
            .leases
            .keys()
            .chain(after.leases.keys())
            .filter(|p| before.leases.get(p) != after.leases.get(p))
            .copied()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let lease = |stage: &Stage, p: &Position| stage.leases.get(p).copied();
        let mine = |p: &Position| self.holders.get(p) == Some(&call);
        match (step.op, &put[..], &left[..], &claimed[..], &ended[..], &changed[..]) {
            (Op::Work(_) | Op::Expire, [], [], [], [], []) => Ok(()),
            (Op::Enqueue(batch), [(position, name)], [], [], [], []) => {
                let stamp = match position {
                    Position::Commit { stamp, .. } => Some(*stamp),
                    Position::Index { .. } => None,
                };
                match *name == (batch.client, batch.number) && stamp == step.stamp {
                    true => Ok(()),
                    false => Err(format!("enqueued {name:?} at {position:?}")),
                }
            }
            (Op::Work(_), [], [item], [same], [], [at]) if item == same && item.0 == *at => {
                if before.waiting.first_key_value().map(|(p, n)| (*p, *n)) != Some(*item) {
                    return Err(format!("claimed {item:?} out of turn: {:?}", before.waiting));
                }
                let token = lease(&before, at).map_or(0, |(token, ..)| token);
                match lease(&after, at) {
                    Some((next, 0, true)) if next > token => {}
                    other => return Err(format!("the lease {other:?} follows the token {token}")),
                }
                self.holders.insert(*at, call);
                match self.claims.insert(call, item.1) {
                    None => Ok(()),
                    Some(other) => Err(format!("claimed {item:?} beside {other:?}")),
                }
            }
            (Op::Work(_), [], [], [], [], [at]) => {
                let (old, new) = (lease(&before, at), lease(&after, at));
                let renewed = old.map(|(token, revision, held)| (token, revision + 1, held));
                match mine(at) && new == renewed && old.is_some_and(|(_, _, held)| held) {
                    true => Ok(()),
                    false => Err(format!("made {new:?} of the lease {old:?}, and holds it: {}", mine(at))),
                }
            }
            (Op::Work(_), [], [], [], [item], [at]) if item.0 == *at && lease(&after, at).is_none() => {
                if !mine(at) {
                    return Err(format!("acknowledged {item:?}, which {:?} holds", self.holders.get(at)));
                }
                if !self.acknowledged.insert(item.1) {
                    return Err(format!("acknowledged {item:?} again"));
                }
                self.end(call, End::Acknowledged)
            }
            (Op::Work(_) | Op::Expire, [item], [], [], [same], [at]) if item == same && item.0 == *at => {
                let unheld = lease(&before, at).map(|(token, revision, _)| (token, revision, false));
                if lease(&after, at) != unheld {
                    return Err(format!("{item:?} comes back under the lease {:?}", lease(&after, at)));
                }
                match step.op {
                    Op::Work(_) if !mine(at) => Err(format!("released {item:?}, which another holds")),
                    Op::Work(_) => self.end(call, End::Released),
                    _ => Ok(()),
                }
            }
            _ => Err(format!(
                "no step of the queue: put {put:?}, left {left:?}, claimed {claimed:?}, ended {ended:?}, \
                 changed the leases {changed:?} from {:?} to {:?}",
                before.leases, after.leases
            )),
        }
    }

    /// Does several calls one after the other, and compares what they answered and what they led to.
    fn together(
        &mut self,
        acts: &[Act],
        mut stage: Stage,
        after: &Stage,
        step: &Step<'_, Leased>,
    ) -> Result<(), String> {
        let Some((told, ends)) = stage.together(acts) else {
            return Err("committed where the model refuses to read its own items".into());
        };
        if let Some(answer) = step.answer
            && *answer != Answer::Together(told.clone())
        {
            return Err(format!("answered {answer:?} where the model answers {told:?}"));
        }
        let put = acts.iter().filter_map(|act| match act {
            Act::Put(batch) => Some((batch.client, batch.number)),
            _ => None,
        });
        let new: Vec<_> = after.waiting.iter().filter(|(at, _)| !stage.waiting.contains_key(at)).collect();
        let stamped =
            |at: &Position| matches!(at, Position::Commit { stamp, .. } if Some(*stamp) == step.stamp);
        if !new.iter().map(|(_, name)| **name).eq(put) || !new.iter().all(|(at, _)| stamped(at)) {
            return Err(format!("enqueued {new:?} by {acts:?}"));
        }
        stage.waiting.extend(new.into_iter().map(|(at, name)| (*at, *name)));
        if stage != *after {
            return Err(format!("{acts:?} led to {after:?}, should lead to {stage:?}"));
        }
        for (at, name, hand) in ends {
            self.holders.insert(at, (step.client, step.index));
            if hand == Hand::Acknowledge && !self.acknowledged.insert(name) {
                return Err(format!("acknowledged {name:?} again"));
            }
        }
        Ok(())
    }

    fn end(&mut self, call: Call, end: End) -> Result<(), String> {
        match self.ends.insert(call, end) {
            None => Ok(()),
            Some(before) => Err(format!("ended as {end:?} and as {before:?}")),
        }
    }
}

impl Workload for Leased {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Session<D>;
    type Model = Model;

    const NAME: &'static str = "leased_queue";
    const ABOUT: &'static str = "items worked at under leases: one holder at a time, one acknowledgement";
    const ONE_EFFECT: bool = false;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "leased_queue: a claim finds no item",
            "leased_queue: a lease ends",
            "leased_queue: who lost the lease is refused",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Leased {
        let lease = *rng.pick(&[0, 30, 30, 100, 100, 300, 300, 2_000]);
        // Where leases are long, a few operations take all the time that there is.
        let most = if lease > 300 { 5 } else { rng.range(8..30) as usize };
        let mix = [rng.range(3..7), rng.range(3..9), rng.range(1..4), rng.range(1..4)];
        Leased {
            clients: rng.range(2..9) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            lease,
            padding: *rng.pick(&[0, 100, 3_000]),
            page: rng.range(0..4) as usize,
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let stamp = |n: u8| Versionstamp::complete([0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0], 0);
        let rows = (0..3)
            .flat_map(|part| (1..5).map(move |n| leased().subspace().subspace(&part).pack(&stamp(n)).into()));
        slots.chain(rows).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let batch = (0..=self.padding).prop_map(|padding| Batch { client: 0, number: 0, padding });
        let hand = prop_oneof![
            2 => Just(Hand::Acknowledge),
            2 => Just(Hand::Release),
            1 => (0u8..3).prop_map(Hand::Renew),
        ];
        let act = prop_oneof![
            3 => batch.clone().prop_map(Act::Put),
            2 => prop_oneof![0..5usize, Just(1_000)].prop_map(Act::Count),
            2 => (0..4usize).prop_map(Act::Leases),
            4 => hand.prop_map(Act::Take),
            1 => Just(Act::Stale),
        ];
        let full = Batch { client: 0, number: 0, padding: FULL };
        let batch = prop_oneof![50 => batch, 1 => Just(full)].prop_map(Op::Enqueue);
        let manner = prop_oneof![
            4 => Just(Manner::Prompt),
            2 => (1u8..6).prop_map(Manner::Renewing),
            3 => (8u8..40).prop_map(Manner::Slow),
            2 => (8u8..40).prop_map(Manner::Late),
            1 => Just(Manner::Releasing),
            2 => Just(Manner::Vanishing),
            3 => (0u8..12, 0u8..12, any::<bool>()).prop_map(|(a, b, releases)| Manner::Twice(a, b, releases)),
            1 => any::<bool>().prop_map(|releases| Manner::Twice(0, 0, releases)),
        ];
        let [put, work, end, look] = self.mix;
        let op = prop_oneof![
            6 * put => batch,
            4 * work => manner.prop_map(Op::Work),
            4 * end => Just(Op::Expire),
            2 * look => prop_oneof![0..4usize, Just(1_000)].prop_map(Op::Count),
            4 * look => vec(act, 1..6).prop_map(Op::Together),
            1 => prop_oneof![Just(1u16), 1u16..500].prop_map(Op::Oversized),
            1 => Just(Op::Deep),
        ];
        let named = move |mut ops: Vec<Op>| {
            for (number, op) in (0u16..).zip(&mut ops) {
                let named = |batch: &mut Batch, part: u16| {
                    (batch.client, batch.number) = (client as u16, number * 8 + part);
                };
                match op {
                    Op::Enqueue(batch) => named(batch, 0),
                    Op::Together(acts) => {
                        for (part, act) in (0..).zip(acts) {
                            if let Act::Put(batch) = act {
                                named(batch, part);
                            }
                        }
                    }
                    _ => {}
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

    async fn apply<D: Database>(&self, session: &mut Session<D>, op: &Op) -> Outcome<Answer> {
        let enqueued = |outcome: once::Outcome<Position, Error>| match outcome {
            once::Outcome::Applied(_) => Outcome::Answered(Answer::Enqueued),
            once::Outcome::Refused(e) => refused(e),
            once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
        };
        let db = session.database().clone();
        match op {
            Op::Enqueue(batch) => enqueued(leased().enqueue_once(session, &batch.value()).await),
            Op::Work(manner) => self.work(session, *manner).await,
            Op::Expire => match self.expire(&db).await {
                Ok(()) => Outcome::Answered(Answer::Expired),
                // Some may have happened although others have not, or may still: nothing depends on it.
                Err(e) => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::Unknown),
            },
            Op::Together(acts) => {
                let ids: Vec<ItemId> = acts.iter().map(|_| ItemId::draw(db.env())).collect();
                let told = match self.planted {
                    Some(planted) => planted::together(planted, session, acts, &ids).await,
                    None => {
                        let ids = &ids;
                        session.apply(|tx| async move { together(&tx, acts, ids).await.map(Recorded) }).await
                    }
                };
                match told {
                    once::Outcome::Applied(Recorded(told)) => Outcome::Answered(Answer::Together(told)),
                    once::Outcome::Refused(e) => refused(e),
                    once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
                }
            }
            Op::Deep => {
                let prefix = vec![b'd'; tx::KEY_SIZE_LIMIT - 20];
                let queue = LeasedQueue::new(Subspace::from_bytes(prefix));
                enqueued(queue.enqueue_once(session, b"").await)
            }
            Op::Count(most) => {
                let counted =
                    db.run(|tx, _| async move { leased().len(&tx, *most, Serializable).await }).await;
                counted.map_or_else(
                    |e| refused(e.error),
                    |(waiting, claimed)| Outcome::Answered(Answer::Count(waiting, claimed)),
                )
            }
            Op::Oversized(beyond) => {
                let value = vec![0; MAX_VALUE_BYTES + usize::from(*beyond)];
                enqueued(leased().enqueue_once(session, &value).await)
            }
        }
    }

    async fn recall<D: Database>(&self, session: &mut Session<D>) {
        sessions::read_dropped(session, self.timeout).await;
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        sessions::settle(session, self.timeout, error, async |session, pending| {
            let answer = match op {
                Op::Together(_) => {
                    session.resolve(pending).await?.map(|Recorded(told)| Answer::Together(told))
                }
                _ => session.resolve(pending).await?.map(|_: Position| Answer::Enqueued),
            };
            Ok(answer.map(Outcome::Answered))
        })
        .await
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        if let Some(Answer::Worked(name, end)) = step.answer {
            model.told.insert((step.client, step.index), (*name, *end));
        }
        if step.committed {
            if step.answer == Some(&Answer::Nothing) && !model.stage.waiting.is_empty() {
                return Err(format!("found nothing, where {:?} wait", model.stage.waiting));
            }
            return model.commit(step);
        }
        let fits = match (step.op, step.answer) {
            (_, None) | (Op::Expire, Some(Answer::Expired)) => true,
            (Op::Count(most), Some(Answer::Count(waiting, claimed))) => {
                let counted = [model.stage.waiting.len(), model.stage.claimed.len()];
                [*waiting, *claimed] == counted.map(|count| count.min((*most).max(1)))
            }
            (Op::Together(acts), Some(Answer::Refused(why))) => {
                *why == Error::OwnUnreadable.to_string() && model.stage.clone().together(acts).is_none()
            }
            (Op::Oversized(_) | Op::Deep, Some(Answer::Refused(why))) => why.contains("exceeds the limit"),
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

    /// Nobody works any more: every lease ends, and everything is there that nobody has acknowledged.
    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        for (at, (name, end)) in &model.told {
            let (claimed, ended) = (model.claims.get(at), model.ends.get(at));
            let fits = match end {
                End::Acknowledged | End::Released => ended == Some(end),
                End::Lost | End::Silent => ended.is_none(),
                End::Twice => false,
            };
            if claimed != Some(name) || !fits {
                let call = format!("operation {} of client {}", at.1, at.0);
                return Ok(Err(format!(
                    "{call} says it claimed {name:?} and that this ended as {end:?}; it claimed {claimed:?}, \
                     which ended as {ended:?}"
                )));
            }
        }
        match self.expire(db).await {
            Ok(()) => {}
            Err(e) => return e.fdb().map_or_else(|| Ok(Err(e.to_string())), Err),
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let mut expected = model.stage.clone();
        expected.waiting.append(&mut expected.claimed);
        expected.leases.values_mut().for_each(|(_, _, held)| *held = false);
        Ok(read.and_then(|stage| match stage == expected {
            true => Ok(()),
            false => Err(format!("the database holds {stage:?}, should hold {expected:?}")),
        }))
    }
}

/// Everything stored.
async fn stored<T: Transaction>(tx: &T) -> tx::Result<Result<Stage, String>> {
    let range = RangeOption::from(leased().subspace().range());
    Ok(Stage::of(tx.get_range_all(range, Serializable).await?.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_carry_their_names() {
        let batch = Batch { client: 3, number: 9, padding: 300 };
        assert_eq!(name(&batch.value()), Ok((3, 9)));
        let full = Batch { padding: FULL, ..batch };
        assert_eq!((full.value().len(), name(&full.value())), (MAX_VALUE_BYTES, Ok((3, 9))));
        assert!(name(b"else").is_err());
    }

    #[test]
    fn a_stage_tells_what_is_broken() {
        let at = |n: u8| Position::Commit { stamp: [n; 10], rank: 0, id: ItemId([n; 16]) };
        let mut stage = Stage::default();
        stage.waiting.insert(at(1), (0, 0));
        stage.waiting.insert(at(2), (0, 1));
        stage.claimed.insert(at(3), (0, 2));
        stage.leases.insert(at(2), (1, 0, false));
        stage.leases.insert(at(3), (4, 2, true));
        assert_eq!(stage.check(), Ok(()));
        stage.leases.insert(at(1), (1, 0, true));
        assert!(stage.check().unwrap_err().contains("of no item"));
        stage.leases.remove(&at(1));
        stage.leases.insert(at(3), (4, 2, false));
        assert!(stage.check().unwrap_err().contains("under no lease"));
        stage.claimed.insert(at(3), (0, 0));
        assert!(stage.check().unwrap_err().contains("twice"));
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
