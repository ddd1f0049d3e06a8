//! `log`: entries are appended, read page by page, waited for, and trimmed.
//!
//! Entries are named by who appended them and when, so that one that is lost, doubled or out of order
//! shows. Several are appended in one transaction, and pages end in the middle of such. Values reach from
//! nothing to several kilobytes; now and then one is too large, a page has no entries, or a transaction
//! comes to what it has appended itself.
//!
//! A run is of one of three kinds. In some, entries are trimmed. In some, clients follow the log from its first
//! entry on by tails, which wait a while for what is not there yet. In others two clients take turns: each waits
//! for the other's entry and appends its own at once, so that an entry often comes between a look and a watch,
//! and nobody else's entry makes up for a wake-up that is lost. A few of these waits are so long that a late
//! answer cannot be taken for a fault's doing.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    judges::waiting::Wait,
    specimen::{
        self, At, Content, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, Specimen, UNRECORDED, UNWRITTEN,
    },
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    limits,
    log::{self, Appended, Entry, Error, Position},
    once::{self, Fate, OpId, Session},
    tx::{
        self, Database, DatabaseOption, Env,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction, VALUE_SIZE_LIMIT,
    },
};
use shaketable_sim::{rt::MILLISECOND, seed::Stream};
use std::time::Duration;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "an append is done again after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "an append is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "an append is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is begun and not waited for", "fire and forget";
    Remembered = REMEMBERED, "a client that asks again gets what it remembers", "a cache that nobody invalidates";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for a second", "a read version shared between transactions";
    SameRank = "same-rank", "entries of one transaction have nothing but the versionstamp in their keys", "several versionstamped keys in one transaction";
    OffsetInTuple = "offset-in-tuple", "the stamp's offset is counted from the tuple, not from the key", "the offset of a versionstamped key";
    TenBytes = "ten-bytes", "a page begins behind the transaction of the last entry, not behind the entry", "a stamp of ten bytes taken for one of twelve";
    Inclusive = "inclusive", "a page begins with the entry that it should begin behind", "a selector that is off by one";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole page", "a range that is longer than a batch";
    NoLimit = "no-limit", "a page of no entries has all of them", "a limit of 0 is none";
    ReadVersion = "read-version", "an entry's key is the read version of its transaction", "a version that is not the commit's";
    ClientCounter = "client-counter", "an entry's number is one more than the last one, read at snapshot", "a counter at the client";
    CounterReads = "counter-reads", "an append reads the last entry serializably", "a counter at the client, with isolation";
    HeadForgotten = "head-forgotten", "an append does not change what tails watch", "an index forgotten on one path";
    TrimExclusive = "trim-exclusive", "a trim leaves the entry that it is to trim up to", "an end that is exclusive";
    TrimStamp = "trim-stamp", "a trim removes all entries of the last one's transaction", "a stamp of ten bytes taken for one of twelve";
    LargestRefused = "largest-refused", "a value as large as can be is refused", "a limit that is off by one";
    LastAtSnapshot = "last-at-snapshot", "the last entry is read at snapshot, however it is asked for", "a dropped conflict range";
    LostWakeUp = "lost-wake-up", "a tail sets its watch in another transaction than the one that has found nothing", "a watch set after the read that it guards";
    WrongKey = "wrong-key", "a tail watches a key that no append changes", "a watch on a range's first key";
    Sleeps = "sleeps", "a tail sleeps until its patience has run out, and looks then", "polling in the place of a watch";
    HalfPatience = "half-patience", "a tail waits half as long as it is told to", "a timeout that is halved";
    WakesForGood = "wakes-for-good", "a tail that is woken answers what it finds, be it nothing", "a watch that fires although nothing changed";
    NoLastLook = "no-last-look", "a tail whose patience has run out answers without looking once more", "a timeout taken for an answer";
    DeafAfterError = "deaf-after-error", "a tail whose watch has failed does not look again", "a watch's error taken for the end";
    NoPatience = "no-patience", "a tail waits for ever", "a wait without a timeout";
    WatchesOnce = "watches-once", "a tail that was woken and has found nothing does not set its watch again", "a watch that fires once";
}

impl Planted {
    /// Whether it is in how tails wait.
    fn is_in_tail(self) -> bool {
        self as u8 >= Planted::LostWakeUp as u8
    }
}

/// The length of an entry's bytes that makes its value as large as values may be; one more, and it is a byte
/// too large.
const FULL: usize = 1_000_000;

/// So long a few waits last: longer than faults and late watches make an answer late, milliseconds.
const LONG: u64 = 12_000;

/// How many of a client's first calls wait so long: few, for a client whose partner is done waits in vain.
const LONG_FOLLOWS: usize = 3;
const LONG_TURNS: usize = 5;

/// Clients below this one take turns.
const PARTNERS: u32 = 2;

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// Values have up to so many bytes.
    longest: usize,
    /// Pages have up to so many entries.
    page: usize,
    /// Tails wait so long, milliseconds.
    patience: u64,
    kind: Kind,
    planted: Option<Planted>,
}

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Entries are removed.
    Trimmed,
    /// The log is followed.
    Followed,
    /// Two clients append by turns.
    Turns,
}

/// Names an entry: its client, its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(u32, u32);

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Appends so many bytes of this number.
    Append(Name, u8, usize),
    /// Skips so many entries and reads so many behind them.
    Page(usize, usize),
    /// Reads so many entries in pages of so many, waiting for them, each time so many milliseconds.
    Follow(usize, usize, u64),
    /// Waits for so many milliseconds until the last entry is another client's, and appends one.
    Turn(Name, u64),
    /// Reads the last entry.
    Last,
    /// Reads the last entry and appends one to it.
    Succeed(Name),
    /// Removes so many entries.
    Trim(usize),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// Behind this entry stand these.
    Behind(Option<Name>, Vec<Item>),
    /// These are the first entries.
    First(Vec<Item>),
    /// The last entry.
    Last(Option<Item>),
    /// So many entries were removed.
    Trimmed(usize),
    /// Whether it was this client's turn.
    Turn(bool),
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    stamp: [u8; 10],
    name: Name,
    value: Content,
}

/// All entries that ever were, and how many of them are gone. Entries of a transaction that has not
/// committed have a stamp of zeros.
#[derive(Clone, Debug, Default)]
pub struct Model {
    all: Vec<Item>,
    trimmed: usize,
}

impl Model {
    fn live(&self) -> &[Item] {
        &self.all[self.trimmed..]
    }

    /// The last entry, if the transaction at this place has appended none itself.
    fn last(&self, at: &At) -> Result<Option<&Item>, Error> {
        match self.readable(at) {
            (_, true) => Err(Error::OwnEntriesUnreadable),
            _ => Ok(self.live().last()),
        }
    }

    /// How many entries the transaction at this place can read; it cannot go further when it has appended
    /// some itself.
    fn readable(&self, at: &At) -> (usize, bool) {
        let stamp = at.stamp.unwrap_or_default();
        let own = self.all.iter().rev().take_while(|item| item.stamp == stamp).count();
        (self.live().len() - own, own > 0)
    }

    /// Up to so many entries behind the first so many of all.
    fn page(&self, skip: usize, limit: usize, at: &At) -> Result<&[Item], Error> {
        let (readable, own) = self.readable(at);
        let behind = &self.live()[skip.min(readable)..readable];
        match behind.len() < limit && own {
            true => Err(Error::OwnEntriesUnreadable),
            false => Ok(&behind[..behind.len().min(limit)]),
        }
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.live() == other.live()
    }
}

pub(crate) fn space() -> Subspace {
    Subspace::from("log")
}

pub(crate) fn value(name: Name, byte: u8, length: usize) -> Vec<u8> {
    let of = |byte: u8, length: usize| pack(&(name.0, name.1, &vec![byte; length][..]));
    match length.checked_sub(FULL) {
        // A zero takes two bytes in a tuple.
        Some(beyond) => of(b'f', VALUE_SIZE_LIMIT - of(b'f', 0).len() + beyond),
        None => of(byte, length),
    }
}

pub(crate) fn item(stamp: [u8; 10], value: &[u8]) -> Item {
    let name: Result<(u32, u32, TupleBytes<'_>), _> = unpack(value);
    let name = name.map_or(Name(u32::MAX, u32::MAX), |(client, number, _)| Name(client, number));
    Item { stamp, name, value: Content::from(value) }
}

pub(crate) fn items(entries: &[Entry]) -> Vec<Item> {
    entries.iter().map(|entry| item(entry.position.stamp, &entry.value)).collect()
}

/// The position behind so many entries, and the name of the entry there.
pub(crate) async fn skip<T: Transaction>(
    tx: &T,
    skip: usize,
    isolation: Isolation,
) -> Result<Option<(Position, Name)>, Error> {
    let skipped = log::Log::new(space()).scan(tx, None, skip, isolation).await?;
    Ok(skipped.last().map(|last| (last.position, item(last.position.stamp, &last.value).name)))
}

/// Whether it is the turn of a client when this is the last entry's.
fn is_turn_of(client: u32, last: Option<Name>) -> bool {
    last.map_or(client == 0, |last| last.0 != client)
}

fn name_of(entry: &Entry) -> Name {
    item(entry.position.stamp, &entry.value).name
}

/// The bytes of an entry that answers another.
const TURN: (u8, usize) = (b't', 4);

impl Log {
    async fn tail<D: Database>(
        &self,
        db: &D,
        after: Option<Position>,
        limit: usize,
        patience: u64,
    ) -> Result<Vec<Entry>, RunError<Error>> {
        let patience = Duration::from_millis(patience);
        match self.planted {
            Some(planted) if planted.is_in_tail() => planted::tail(planted, db, after, limit, patience).await,
            _ => log::Log::new(space()).tail(db, after, limit, patience).await,
        }
    }

    /// Follows the log from its first entry on.
    async fn follow<D: Database>(
        &self,
        db: &D,
        count: usize,
        page: usize,
        patience: u64,
    ) -> Result<Vec<Answer>, RunError<Error>> {
        let mut entries: Vec<Entry> = Vec::new();
        while entries.len() < count {
            let after = entries.last().map(|entry| entry.position);
            let more = self.tail(db, after, page.min(count - entries.len()), patience).await?;
            if more.is_empty() {
                break;
            }
            entries.extend(more);
        }
        Ok(vec![Answer::First(items(&entries))])
    }

    /// Waits until the last entry is another client's; whether it is.
    async fn await_turn<D: Database>(
        &self,
        db: &D,
        client: u32,
        patience: u64,
    ) -> Result<bool, RunError<Error>> {
        let log = &log::Log::new(space());
        let mut last = db.run(|tx, _| async move { log.last(&tx, Snapshot).await }).await?;
        while !is_turn_of(client, last.as_ref().map(name_of)) {
            let after = last.map(|last| last.position);
            last = self.tail(db, after, 10, patience).await?.pop();
            if last.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends in a transaction of its own without a session, and looks whether the entry is where it
    /// should be.
    async fn append_bare<D: Database>(
        &self,
        db: &D,
        value: &[u8],
    ) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let log = log::Log::new(space());
        let tx = db.create_transaction().map_err(Outcome::GaveUp)?;
        let position = loop {
            let appended = match log.append(&tx, value).await {
                Ok(appended) => appended,
                Err(Error::Fdb(e)) => {
                    tx.on_error(e).await.map_err(Outcome::GaveUp)?;
                    continue;
                }
                Err(e) => return Err(specimen::refused(&e)),
            };
            let stamp = tx.get_versionstamp();
            match tx.commit().await {
                Ok(()) => break appended.stamped(stamp.await.map_err(Outcome::Unknown)?),
                Err(e) if e.is_retryable_not_committed() => tx.on_error(e).await.map_err(Outcome::GaveUp)?,
                Err(e) => return Err(Outcome::Unknown(e)),
            }
        };
        self.expect_at(db, position, value).await
    }

    /// Appends exactly once, and looks whether the entry is where the answer says.
    async fn append_once<D: Database>(
        &self,
        session: &mut Session<D>,
        value: &[u8],
    ) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let log = &log::Log::new(space());
        let appended = match session.apply(|tx| async move { log.append(&tx, value).await }).await {
            once::Outcome::Applied(appended) => appended,
            once::Outcome::Refused(e) => return Err(specimen::refused(&e)),
            once::Outcome::Unknown(op) => known(session, op).await?,
        };
        match appended.position() {
            Some(position) => self.expect_at(session.database(), position, value).await,
            None => Err(Outcome::Violated("an append that was applied has no position".into())),
        }
    }

    /// The entry at this position is this one, unless it may have been trimmed.
    async fn expect_at<D: Database>(
        &self,
        db: &D,
        position: Position,
        value: &[u8],
    ) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let before = Position { rank: position.rank - 1, ..position };
        let log = &log::Log::new(space());
        let looked = db.run(|tx, _| async move { log.scan(&tx, Some(before), 1, Snapshot).await }).await;
        match looked {
            Ok(found)
                if self.kind != Kind::Trimmed
                    && found != [Entry { position, value: value.to_vec().into() }] =>
            {
                let found = items(&found);
                Err(Outcome::Violated(format!("at {position:?}, where it was appended, is {found:?}")))
            }
            // That it was appended is known, whatever becomes of the look.
            _ => Ok(()),
        }
    }
}

/// Where an operation whose outcome was unknown has appended, however long it takes to learn. It is asked
/// for here, for what such an operation recorded is no answer of this workload's. No timeouts strike from
/// now on.
async fn known<D: Database>(
    session: &mut Session<D>,
    op: OpId,
) -> Result<Appended, Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    db.set_option(DatabaseOption::TransactionTimeout(0)).map_err(Outcome::Unknown)?;
    loop {
        return match session.resolve(op).await {
            Ok(Fate::Applied(appended)) => Ok(appended),
            Ok(Fate::NotApplied) => Err(Outcome::GaveUp(tx::Error::COMMIT_UNKNOWN_RESULT)),
            Ok(Fate::Forgotten) => Err(Outcome::Violated("a session's own operation was forgotten".into())),
            Err(e) if e.fdb().is_some() => {
                db.env().sleep(Duration::from_millis(10)).await;
                continue;
            }
            Err(e) => Err(Outcome::Violated(e.to_string())),
        };
    }
}

impl Specimen for Log {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "log";
    const ABOUT: &'static str = "entries appended without conflicts, read on from a position, waited for";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "log: a tail is woken",
            "log: a tail runs out of patience",
            "log: a transaction comes to its own entries",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Log {
        Log {
            longest: *rng.pick(&[8, 200, 3_000]),
            page: *rng.pick(&[2, 5, 20]),
            patience: *rng.pick(&[50, 500, 3_000]),
            kind: *rng.pick(&[Kind::Trimmed, Kind::Followed, Kind::Turns]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let stamp = |n: u8| Versionstamp::complete([0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0], 0);
        let entries = (1..8).map(|n| Bytes::from(space().pack(&(0, stamp(n)))));
        entries.chain([Bytes::from(space().pack(&1))]).collect()
    }

    fn operation(&self, client: usize) -> BoxedStrategy<Op> {
        let (page, patience) = (self.page, self.patience);
        let append =
            (any::<u8>(), 0..=self.longest).prop_map(|(byte, n)| Op::Append(Name::default(), byte, n));
        let read = (0..2 * page, 0..page + 1).prop_map(|(skip, n)| Op::Page(skip, n));
        let follow =
            (1..4 * page, 1..page + 1).prop_map(move |(count, page)| Op::Follow(count, page, patience));
        let edge = (any::<u8>(), 0..2usize);
        let edge = edge.prop_map(|(byte, beyond)| Op::Append(Name::default(), byte, FULL + beyond));
        match self.kind {
            Kind::Trimmed => {
                let succeed = Just(Op::Succeed(Name::default()));
                prop_oneof![8 => append, 4 => read, 3 => (0..page).prop_map(Op::Trim), 2 => Just(Op::Last), 2 => succeed, 1 => edge]
                    .boxed()
            }
            Kind::Followed => {
                prop_oneof![8 => append, 4 => read, 3 => follow, 2 => Just(Op::Last), 1 => edge].boxed()
            }
            Kind::Turns if client < PARTNERS as usize => {
                prop_oneof![8 => Just(Op::Turn(Name::default(), 100)), 1 => read, 1 => Just(Op::Last)].boxed()
            }
            Kind::Turns => prop_oneof![1 => read, 1 => follow, 1 => Just(Op::Last)].boxed(),
        }
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        match op {
            Op::Append(name, ..) => *name = Name(client as u32, number as u32),
            Op::Succeed(name) => *name = Name(client as u32, number as u32),
            Op::Turn(name, patience) => {
                *name = Name(client as u32, number as u32);
                if number < LONG_TURNS {
                    *patience = LONG;
                }
            }
            Op::Follow(_, _, patience) if client == 0 && number < LONG_FOLLOWS => *patience = LONG,
            _ => {}
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Page(..) | Op::Follow(..) | Op::Last)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Append(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Page(..) | Op::Last)
            && self.planted.is_none_or(|planted| planted == Planted::LastAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, tx, op, isolation).await,
            None => perform(tx, op, isolation).await,
        }
    }

    /// To wait is more than one transaction, and so is to look where an entry is; neither is done together
    /// with something else.
    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        let [op] = ops else { return None };
        let db = session.database().clone();
        let is_right = self.planted.is_none_or(Planted::is_in_tail);
        Some(match *op {
            Op::Follow(count, page, patience) => {
                specimen::ran(Box::pin(self.follow(&db, count, page, patience)).await)
            }
            Op::Turn(name, patience) => match Box::pin(self.await_turn(&db, name.0, patience)).await {
                // The rest is done as any other call is.
                Ok(true) => return None,
                waited => specimen::ran(waited.map(|_| vec![Answer::Turn(false)])),
            },
            Op::Append(name, byte, length) if is_right && byte % 4 < 2 => {
                let value = value(name, byte, length);
                let appended = match byte % 4 {
                    0 => Box::pin(self.append_bare(&db, &value)).await,
                    _ => Box::pin(self.append_once(session, &value)).await,
                };
                match appended {
                    Ok(()) => Outcome::Answered(specimen::Answer::Done(vec![Answer::Written])),
                    Err(outcome) => outcome,
                }
            }
            _ => return None,
        })
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Append(name, byte, length) => {
                let value = value(*name, *byte, *length);
                limits::value_up_to(VALUE_SIZE_LIMIT, space().bytes(), &value)?;
                model.all.push(item(at.stamp.unwrap_or_default(), &value));
                Answer::Written
            }
            Op::Page(skip, limit) => {
                let skipped = model.page(0, *skip, at)?;
                let behind = skipped.last().map(|item| item.name);
                Answer::Behind(behind, model.page(skipped.len(), *limit, at)?.to_vec())
            }
            Op::Follow(count, ..) => Answer::First(model.page(0, *count, at)?.to_vec()),
            Op::Last => Answer::Last(model.last(at)?.cloned()),
            Op::Succeed(name) => {
                let last = model.last(at)?.cloned();
                model.all.push(item(at.stamp.unwrap_or_default(), &value(*name, TURN.0, TURN.1)));
                Answer::Last(last)
            }
            Op::Turn(name, _) => {
                let is_turn = is_turn_of(name.0, model.last(at)?.map(|last| last.name));
                if is_turn {
                    model.all.push(item(at.stamp.unwrap_or_default(), &value(*name, TURN.0, TURN.1)));
                }
                Answer::Turn(is_turn)
            }
            Op::Trim(entries) => {
                let trimmed = model.page(0, *entries, at)?.len();
                model.trimmed += trimmed;
                Answer::Trimmed(trimmed)
            }
        })
    }

    fn wait(&self, model: &Model, op: &Op, answer: &Answer, at: &At) -> Option<Wait> {
        let version = |item: &Item| item.stamp[..8].try_into().map_or(0, i64::from_be_bytes);
        let wait = |patience, found| Some(Wait { patience: patience * MILLISECOND, found });
        match (op, answer) {
            (Op::Follow(count, _, patience), Answer::First(items)) => {
                wait(*patience, items.get(count.wrapping_sub(1)).map(version))
            }
            (Op::Turn(_, patience), Answer::Turn(true)) => {
                // Its own entry is the last one.
                let awaited = model.live().iter().rev().nth(1)?;
                wait(*patience, Some(version(awaited)))
            }
            // The client's own entry before, of which it has not heard, may land while it waits and end its turn.
            (Op::Turn(name, patience), Answer::Turn(false)) if at.stamp.is_none() => {
                let last = model.live().last();
                match last.is_some_and(|last| last.name.0 == name.0 && version(last) > at.called) {
                    true => None,
                    false => wait(*patience, None),
                }
            }
            _ => None,
        }
    }

    /// Entries are in order, and the head says where the last append was.
    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let mut all = Vec::new();
        for row in tx.get_range_all(RangeOption::from(space().subspace(&0).range()), Serializable).await? {
            let Ok((_, stamp, _)) = space().unpack::<(i64, Versionstamp, i64)>(&row.key) else {
                return Ok(Err(format!("no entry's key: {}", row.key.escape_ascii())));
            };
            let mut bytes = [0; 10];
            bytes.copy_from_slice(stamp.transaction_version());
            all.push(item(bytes, &row.value));
        }
        let head = tx.get(&space().pack(&1), Serializable).await?;
        let last = all.last().map(|item: &Item| &item.stamp[..]);
        Ok(match last.is_some() && last != head.as_deref() {
            true => Err(format!("the head is {head:?}, the last entry {last:?}")),
            false => Ok(Model { all, trimmed: 0 }),
        })
    }
}

/// Does a call right, a look at this isolation.
pub(crate) async fn perform<T: Transaction>(tx: &T, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
    let log = log::Log::new(space());
    match op {
        Op::Append(name, byte, length) => {
            log.append(tx, &value(*name, *byte, *length)).await?;
            Ok(Answer::Written)
        }
        Op::Page(skipped, limit) => {
            let behind = skip(tx, *skipped, isolation).await?;
            let after = behind.map(|(position, _)| position);
            let entries = log.scan(tx, after, *limit, isolation).await?;
            Ok(Answer::Behind(behind.map(|(_, name)| name), items(&entries)))
        }
        Op::Follow(count, ..) => Ok(Answer::First(items(&log.scan(tx, None, *count, Serializable).await?))),
        Op::Succeed(name) => {
            let last = log.last(tx, Serializable).await?;
            log.append(tx, &value(*name, TURN.0, TURN.1)).await?;
            Ok(Answer::Last(last.map(|last| item(last.position.stamp, &last.value))))
        }
        Op::Turn(name, _) => {
            let last = log.last(tx, Serializable).await?;
            let is_turn = is_turn_of(name.0, last.as_ref().map(name_of));
            if is_turn {
                log.append(tx, &value(*name, TURN.0, TURN.1)).await?;
            }
            Ok(Answer::Turn(is_turn))
        }
        Op::Last => {
            let last = log.last(tx, isolation).await?;
            Ok(Answer::Last(last.map(|last| item(last.position.stamp, &last.value))))
        }
        Op::Trim(entries) => {
            let trimmed = log.scan(tx, None, *entries, Serializable).await?;
            if let Some(last) = trimmed.last() {
                log.trim(tx, last.position).await?;
            }
            Ok(Answer::Trimmed(trimmed.len()))
        }
    }
}
