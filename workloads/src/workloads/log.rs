//! `log`: entries are appended, read page by page, waited for, and trimmed.
//!
//! Entries are named by who appended them and when, so that one that is lost, doubled or out of order
//! shows. Several are appended in one transaction, and pages end in the middle of such. Values reach from
//! nothing to several kilobytes; now and then one is too large, a page has no entries, or a transaction
//! comes to what it has appended itself. In runs that trim nothing, clients follow the log from its first
//! entry on by tails, which wait a while for what is not there yet.

use crate::{
    sabotage::log as sabotage,
    specimen::{self, At, Content, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    limits,
    log::{self, Entry, Error, Position},
    once::Session,
    tx::{self, Database, Env, Isolation::Serializable, RangeOption, RunError, Transaction},
};
use shaketable_sim::seed::Stream;
use std::time::Duration;

flaws! {
    Unrecorded = UNRECORDED, "an append is done again after an unknown result without an operation record", "a blind write done twice";
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
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// Values have up to so many bytes.
    longest: usize,
    /// Pages have up to so many entries.
    page: usize,
    /// Tails wait so long, milliseconds.
    patience: u64,
    /// Whether entries are removed; if not, the log is followed.
    trims: bool,
    flaw: Option<Flaw>,
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
    /// Reads so many entries in pages of so many, waiting for them.
    Follow(usize, usize),
    /// Reads the last entry.
    Last,
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
    pack(&(name.0, name.1, &vec![byte; length][..]))
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
pub(crate) async fn skip<T: Transaction>(tx: &T, skip: usize) -> Result<Option<(Position, Name)>, Error> {
    let skipped = log::Log::new(space()).scan(tx, None, skip, Serializable).await?;
    Ok(skipped.last().map(|last| (last.position, item(last.position.stamp, &last.value).name)))
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
            trims: rng.chance(0.5),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let stamp = |n: u8| Versionstamp::complete([0, 0, 0, 0, n / 4, 64 * (n % 4), 0, 0, 0, 0], 0);
        let entries = (1..8).map(|n| Bytes::from(space().pack(&(0, stamp(n)))));
        entries.chain([Bytes::from(space().pack(&1))]).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let page = self.page;
        let whole = match self.trims {
            true => (0..page).prop_map(Op::Trim).boxed(),
            false => (1..4 * page, 1..page + 1).prop_map(|(count, page)| Op::Follow(count, page)).boxed(),
        };
        prop_oneof![
            8 => (any::<u8>(), 0..=self.longest).prop_map(|(byte, n)| Op::Append(Name::default(), byte, n)),
            4 => (0..2 * page, 0..page + 1).prop_map(|(skip, n)| Op::Page(skip, n)),
            3 => whole,
            2 => Just(Op::Last),
            1 => Just(Op::Append(Name::default(), 0, 100_000)),
        ]
        .boxed()
    }

    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::Append(name, ..) = op {
            *name = Name(client as u32, number as u32);
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Page(..) | Op::Follow(..) | Op::Last)
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Append(..))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        match self.flaw {
            Some(flaw) => sabotage::perform(flaw, tx, op).await,
            None => perform(tx, op).await,
        }
    }

    /// To follow the log is more than one transaction, unless it is done together with something else.
    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        let [Op::Follow(count, page)] = *ops else { return None };
        let (log, db) = (log::Log::new(space()), session.database().clone());
        let patience = Duration::from_millis(self.patience);
        let mut entries: Vec<Entry> = Vec::new();
        while entries.len() < count {
            let after = entries.last().map(|entry| entry.position);
            match log.tail(&db, after, page.min(count - entries.len()), patience).await {
                Ok(more) if more.is_empty() => break,
                Ok(more) => entries.extend(more),
                Err(e) => return Some(specimen::ran(Err(e))),
            }
        }
        Some(specimen::ran(Ok::<_, RunError<Error>>(vec![Answer::First(items(&entries))])))
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Append(name, byte, length) => {
                let value = value(*name, *byte, *length);
                limits::row(&space().pack(&(0, Versionstamp::complete([0; 10], 0), 0)), &value)?;
                model.all.push(item(at.stamp.unwrap_or_default(), &value));
                Answer::Written
            }
            Op::Page(skip, limit) => {
                let skipped = model.page(0, *skip, at)?;
                let behind = skipped.last().map(|item| item.name);
                Answer::Behind(behind, model.page(skipped.len(), *limit, at)?.to_vec())
            }
            Op::Follow(count, _) => Answer::First(model.page(0, *count, at)?.to_vec()),
            Op::Last => match model.readable(at) {
                (_, true) => return Err(Error::OwnEntriesUnreadable),
                _ => Answer::Last(model.live().last().cloned()),
            },
            Op::Trim(entries) => {
                let trimmed = model.page(0, *entries, at)?.len();
                model.trimmed += trimmed;
                Answer::Trimmed(trimmed)
            }
        })
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

/// Does a call right.
pub(crate) async fn perform<T: Transaction>(tx: &T, op: &Op) -> Result<Answer, Error> {
    let log = log::Log::new(space());
    match op {
        Op::Append(name, byte, length) => {
            log.append(tx, &value(*name, *byte, *length)).await?;
            Ok(Answer::Written)
        }
        Op::Page(skipped, limit) => {
            let behind = skip(tx, *skipped).await?;
            let after = behind.map(|(position, _)| position);
            let entries = log.scan(tx, after, *limit, Serializable).await?;
            Ok(Answer::Behind(behind.map(|(_, name)| name), items(&entries)))
        }
        Op::Follow(count, _) => Ok(Answer::First(items(&log.scan(tx, None, *count, Serializable).await?))),
        Op::Last => {
            let last = log.last(tx, Serializable).await?;
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
