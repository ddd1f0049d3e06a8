//! `log`: entries are appended, read page by page, waited for, and trimmed.
//!
//! The value of an entry contains its client and number, which reveals an entry that is lost, duplicated or
//! out of order. Several entries are appended in one transaction, and pages end in the middle of such a
//! transaction. Values have lengths from zero to several kilobytes. A few are too large, a few pages have no
//! entries, and a few transactions read what they have appended themselves.
//!
//! There are three kinds of runs. In the first, entries are trimmed. In the second, clients follow the log
//! from its first entry on, with tails that wait for further entries. In the third, two clients take turns:
//! each waits for the other's entry and appends its own at once, so that an entry often comes between a read
//! and a watch, and no third client's entry makes up for a lost wake-up. A few of these waits are so long
//! that a late answer cannot be caused by a fault.

mod alone;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::shared::{self, one_call};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp, pack, unpack};
use imbl::Vector;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content},
};
use shaketable_layers::log::{Entry, Error, Log as Layer};
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Log {
    /// The maximum length of values, in bytes.
    longest: usize,
    /// The maximum number of entries on a page.
    page: usize,
    /// The time limit of tails, in milliseconds.
    patience: u64,
    kind: Kind,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// Entries are trimmed.
    Trimmed,
    /// The log is followed.
    Followed,
    /// Two clients append in turns.
    Turns,
}

/// Entries appended without conflicts, read on from a position, waited for.
#[shaketable::workload(name = "log", model = Model, planted, promises(turns, limits))]
impl Log {
    fn draw(rng: &mut Stream) -> Log {
        Log {
            longest: *rng.pick(&[8, 200, 3_000]),
            page: *rng.pick(&[2, 5, 20]),
            patience: *rng.pick(&[50, 500, 3_000]),
            kind: *rng.pick(&[Kind::Trimmed, Kind::Followed, Kind::Turns]),
        }
    }

    fn points() -> &'static [&'static str] {
        &[
            "log: a tail is woken",
            "log: a tail runs out of patience",
            "log: a transaction comes to its own entries",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        (1..8).map(|n| space().pack(&(0, shared::stamp(n)))).chain([space().pack(&1)]).collect()
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn number(op: &mut LogOp, client: usize, number: usize) {
        use LogOp::{append, follow, succeed, turn};
        if let append { name, .. } | succeed { name } | turn { name, .. } = op {
            *name = Name(client as u32, number as u32);
        }
        match op {
            turn { patience, .. } if number < LONG_TURNS => *patience = LONG,
            follow { patience, .. } if client == 0 && number < LONG_FOLLOWS => *patience = LONG,
            _ => {}
        }
    }

    /// A call that is alone in its transaction may wait, or verify where its entry is.
    async fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[LogOp],
    ) -> Option<Outcome<Answer<LogAnswer>>> {
        match *ops {
            [LogOp::append { name, byte, length }] if bug.is_none() && byte % 4 < 2 => {
                Some(self.verified(session, byte % 4 == 0, &value(name, byte, length)).await)
            }
            _ => self.waited(session.database(), ops, bug.and_then(shared::named)).await,
        }
    }

    fn timeout(&self, op: &LogOp) -> Option<u64> {
        match op {
            LogOp::nothing {} => Some(0),
            LogOp::idle { patience, .. } => Some(patience * MILLISECOND),
            _ => None,
        }
    }

    fn wait(&self, model: &Model, op: &LogOp, answer: &LogAnswer, at: &At) -> Option<Wait> {
        let version = |item: &Item| item.stamp[..8].try_into().map_or(0, i64::from_be_bytes);
        let wait = |patience, found| Some(Wait { patience: patience * MILLISECOND, found });
        match (op, answer) {
            (LogOp::follow { count, patience, .. }, LogAnswer::follow(items)) => {
                wait(*patience, items.get(count.wrapping_sub(1)).map(version))
            }
            (LogOp::idle { patience, .. }, _) => wait(*patience, None),
            (LogOp::turn { patience, .. }, LogAnswer::turn(true)) => {
                // The last entry is its own.
                let awaited = model.0.iter().rev().nth(1)?;
                wait(*patience, Some(version(awaited)))
            }
            // An earlier entry of the client, whose outcome it does not know, may commit while it waits, and
            // end its turn.
            (LogOp::turn { name, patience }, LogAnswer::turn(false)) if at.stamp.is_none() => {
                let last = model.0.last();
                match last.is_some_and(|last| last.name.0 == name.0 && version(last) > at.called) {
                    true => None,
                    false => wait(*patience, None),
                }
            }
            _ => None,
        }
    }

    /// The weight of an operation: where entries are trimmed, where the log is followed, and of a client that
    /// takes turns, or of another one beside those.
    fn weight(&self, client: usize, [trimmed, followed, turns, beside]: [u32; 4]) -> u32 {
        match self.kind {
            Kind::Trimmed => trimmed,
            Kind::Followed => followed,
            Kind::Turns if client < PARTNERS => turns,
            Kind::Turns => beside,
        }
    }

    /// The name of an entry is known when its call is numbered.
    #[draws(name)]
    fn unnamed() -> impl Strategy<Value = Name> {
        Just(Name::default())
    }

    /// Appends an entry with this byte, repeated this many times.
    #[write(weight = self.weight(client, [36, 36, 0, 0]), blind, at)]
    async fn append(
        &self,
        tx: &Tx,
        name: Name,
        #[draw(any::<u8>())] byte: u8,
        #[draw(prop_oneof![8 => 0..=self.longest, 1 => FULL..FULL + 2])] length: usize,
    ) -> Result<(), Error> {
        layer().append(tx, &value(name, byte, length)).await.map(|_| ())
    }

    /// Skips entries, and reads some after them. Tells the name of the entry before the page.
    #[read(weight = self.weight(client, [16, 16, 4, 4]), at)]
    async fn page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(0..2 * self.page)] skip: usize,
        #[draw(0..self.page + 1)] limit: usize,
    ) -> Result<(Option<Name>, Vec<Item>), Error> {
        let tx = &one_call(tx, true).await;
        let skipped = layer().scan(tx, None, skip, isolation).await?;
        let behind = skipped.last();
        let entries = layer().scan(tx, behind.map(|entry| entry.position), limit, isolation).await?;
        Ok((behind.map(|entry| item_of(entry).name), items(&entries)))
    }

    /// Reads this many entries in pages of this size, waiting up to this many milliseconds for each page.
    /// Among other calls it does not wait.
    #[read(weight = self.weight(client, [0, 12, 0, 4]), at)]
    async fn follow(
        &self,
        tx: &Tx,
        #[draw(1..4 * self.page)] count: usize,
        #[draw(1..self.page + 1)] page: usize,
        #[draw(Just(self.patience))] patience: u64,
    ) -> Result<Vec<Item>, Error> {
        let _ = (page, patience);
        Ok(items(&layer().scan(tx, None, count, Serializable).await?))
    }

    /// Waits this many milliseconds, for up to so many entries: those after a position that no entry reaches,
    /// although each append wakes it. Among other calls it does not wait.
    #[read(weight = self.weight(client, [3, 6, 0, 0]))]
    async fn idle(
        &self,
        _: &Tx,
        #[draw(1..self.page + 1)] limit: usize,
        #[draw(select(vec![50, 500]))] patience: u64,
    ) -> Result<Vec<Item>, Error> {
        let _ = (limit, patience);
        Ok(Vec::new())
    }

    /// Waits for no entries, a long time: it returns at once, wherever it begins.
    #[read(weight = self.weight(client, [1, 2, 0, 0]))]
    async fn nothing(&self, _: &Tx) -> Result<Vec<Item>, Error> {
        Ok(Vec::new())
    }

    /// Waits up to this many milliseconds until the last entry is another client's, and then appends an
    /// entry. Tells whether it was this client's turn. Among other calls it does not wait.
    #[write(weight = self.weight(client, [0, 0, 32, 0]), at)]
    async fn turn(&self, tx: &Tx, name: Name, #[draw(Just(100))] patience: u64) -> Result<bool, Error> {
        let _ = patience;
        let tx = &one_call(tx, false).await;
        let is_turn = is_turn_of(name.0, self.last(tx, Serializable).await?.map(|last| last.name));
        if is_turn {
            self.append(tx, name, TURN.0, TURN.1).await?;
        }
        Ok(is_turn)
    }

    #[read(weight = self.weight(client, [8, 8, 4, 4]), at)]
    async fn last(&self, tx: &Tx, isolation: Isolation) -> Result<Option<Item>, Error> {
        Ok(layer().last(tx, isolation).await?.as_ref().map(item_of))
    }

    /// Reads the last entry and appends an entry.
    #[write(weight = self.weight(client, [8, 0, 0, 0]), at)]
    async fn succeed(&self, tx: &Tx, name: Name) -> Result<Option<Item>, Error> {
        let tx = &one_call(tx, false).await;
        let last = self.last(tx, Serializable).await?;
        self.append(tx, name, TURN.0, TURN.1).await?;
        Ok(last)
    }

    /// Removes this many entries.
    #[write(weight = self.weight(client, [12, 0, 0, 0]), at)]
    async fn trim(&self, tx: &Tx, #[draw(0..self.page)] entries: usize) -> Result<usize, Error> {
        let tx = &one_call(tx, false).await;
        let trimmed = layer().scan(tx, None, entries, Serializable).await?;
        if let Some(last) = trimmed.last() {
            layer().trim(tx, last.position).await?;
        }
        Ok(trimmed.len())
    }

    /// Checks that the entries are in order, and that the head contains the stamp of the last append.
    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        let mut all = Vec::new();
        for row in shared::rows(tx, &space().subspace(&0)).await? {
            let Ok((_, stamp, _)) = space().unpack::<(i64, Versionstamp, i64)>(&row.key) else {
                return Ok(Err(format!("{} is not the key of an entry", row.key.escape_ascii())));
            };
            let mut bytes = [0; 10];
            bytes.copy_from_slice(stamp.transaction_version());
            all.push(item(bytes, &row.value));
        }
        let head = tx.get(&space().pack(&1), Serializable).await?;
        let last = all.last().map(|item: &Item| &item.stamp[..]);
        Ok(match last.is_some() && last != head.as_deref() {
            true => Err(format!("the head is {head:?}, the last entry {last:?}")),
            false => Ok(Model(all.into())),
        })
    }
}

/// The model: the entries, without those that are trimmed. Entries of a transaction that has not committed
/// have a stamp of zeros. A copy is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model(Vector<Item>);

impl Model {
    fn append(&mut self, name: Name, byte: u8, length: usize, at: &At) -> Result<(), Error> {
        let value = value(name, byte, length);
        limits::value_up_to(VALUE_SIZE_LIMIT, space().bytes(), &value)?;
        self.0.push_back(item(at.stamp.unwrap_or_default(), &value));
        Ok(())
    }

    fn page(&self, skip: usize, limit: usize, at: &At) -> Result<(Option<Name>, Vec<Item>), Error> {
        let skipped = self.entries(0, skip, at)?;
        let behind = skipped.last().map(|item| item.name);
        Ok((behind, self.entries(skipped.len(), limit, at)?.into_iter().collect()))
    }

    fn follow(&self, count: usize, _: usize, _: u64, at: &At) -> Result<Vec<Item>, Error> {
        Ok(self.entries(0, count, at)?.into_iter().collect())
    }

    fn idle(&self, _: usize, _: u64) -> Result<Vec<Item>, Error> {
        self.nothing()
    }

    fn nothing(&self) -> Result<Vec<Item>, Error> {
        Ok(Vec::new())
    }

    fn turn(&mut self, name: Name, _: u64, at: &At) -> Result<bool, Error> {
        let is_turn = is_turn_of(name.0, self.last(at)?.map(|last| last.name));
        if is_turn {
            self.append(name, TURN.0, TURN.1, at)?;
        }
        Ok(is_turn)
    }

    /// The last entry, unless the transaction at this place has appended entries itself.
    fn last(&self, at: &At) -> Result<Option<Item>, Error> {
        match self.readable(at) {
            (_, true) => Err(Error::OwnEntriesUnreadable),
            _ => Ok(self.0.last().cloned()),
        }
    }

    fn succeed(&mut self, name: Name, at: &At) -> Result<Option<Item>, Error> {
        let last = self.last(at)?;
        self.append(name, TURN.0, TURN.1, at)?;
        Ok(last)
    }

    fn trim(&mut self, entries: usize, at: &At) -> Result<usize, Error> {
        let trimmed = self.entries(0, entries, at)?.len();
        self.0 = self.0.skip(trimmed);
        Ok(trimmed)
    }

    /// The number of entries that the transaction at this place can read, and whether entries of its own
    /// follow, which it cannot read.
    fn readable(&self, at: &At) -> (usize, bool) {
        let stamp = at.stamp.unwrap_or_default();
        let own = self.0.iter().rev().take_while(|item| item.stamp == stamp).count();
        (self.0.len() - own, own > 0)
    }

    /// Up to `limit` entries, after the first `skip`.
    fn entries(&self, skip: usize, limit: usize, at: &At) -> Result<Vector<Item>, Error> {
        let (readable, own) = self.readable(at);
        let behind = readable - skip.min(readable);
        match behind < limit && own {
            true => Err(Error::OwnEntriesUnreadable),
            false => Ok(self.0.skip(readable - behind).take(behind.min(limit))),
        }
    }
}

/// Names an entry: its client, and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Name(u32, u32);

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Item {
    stamp: [u8; 10],
    name: Name,
    value: Content,
}

/// The time limit of a few long waits, in milliseconds: longer than faults and late watches delay an answer.
const LONG: u64 = 12_000;

/// How many of a client's first calls wait that long. They are few, because a client whose partner has
/// finished waits in vain, and must still end within a minute.
const LONG_FOLLOWS: usize = 3;

const LONG_TURNS: usize = 4;

/// The number of bytes that gives an entry's value the maximum size. With one more, the value is one byte too
/// large.
const FULL: usize = 1_000_000;

/// The number of clients that take turns.
const PARTNERS: usize = 2;

/// The byte of an entry that is appended in turn, and its repetitions.
const TURN: (u8, usize) = (b't', 4);

fn space() -> Subspace {
    Subspace::from("log")
}

fn layer() -> Layer {
    Layer::new(space())
}

/// Whether it is a client's turn when the last entry has this name.
fn is_turn_of(client: u32, last: Option<Name>) -> bool {
    last.map_or(client == 0, |last| last.0 != client)
}

fn value(name: Name, byte: u8, length: usize) -> Vec<u8> {
    let of = |byte: u8, length: usize| pack(&(name.0, name.1, &vec![byte; length][..]));
    match length.checked_sub(FULL) {
        // A zero takes two bytes in a tuple.
        Some(beyond) => of(b'f', VALUE_SIZE_LIMIT - of(b'f', 0).len() + beyond),
        None => of(byte, length),
    }
}

fn item(stamp: [u8; 10], value: &[u8]) -> Item {
    let name: Result<(u32, u32, TupleBytes<'_>), _> = unpack(value);
    let name = name.map_or(Name(u32::MAX, u32::MAX), |(client, number, _)| Name(client, number));
    Item { stamp, name, value: Content::from(value) }
}

fn item_of(entry: &Entry) -> Item {
    item(entry.position.stamp, &entry.value)
}

fn items(entries: &[Entry]) -> Vec<Item> {
    entries.iter().map(item_of).collect()
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Log>>()
}
