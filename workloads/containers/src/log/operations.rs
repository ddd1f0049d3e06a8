//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Kind, LONG, Log};
use foundationdb_tuple::{Bytes as TupleBytes, pack, unpack};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::specimen::Content;
use shaketable_layers::log::Entry;
use shaketable_tx::VALUE_SIZE_LIMIT;

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Appends an entry with this byte, repeated this many times.
    Append(Name, u8, usize),
    /// Skips this many entries, and reads up to this many after them.
    Page(usize, usize),
    /// Reads this many entries in pages of this size, waiting up to this many milliseconds for each page.
    Follow(usize, usize, u64),
    /// Waits this many milliseconds, for up to so many entries: those after a position that no entry reaches,
    /// although each append wakes it. If it is to be none, it does not wait, wherever it begins.
    Idle(usize, u64),
    /// Waits up to this many milliseconds until the last entry is another client's, and then appends an
    /// entry.
    Turn(Name, u64),
    /// Reads the last entry.
    Last,
    /// Reads the last entry and appends an entry.
    Succeed(Name),
    /// Removes this many entries.
    Trim(usize),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The name of the entry before the page, and the entries of the page.
    Behind(Option<Name>, Vec<Item>),
    /// The first entries.
    First(Vec<Item>),
    /// The last entry.
    Last(Option<Item>),
    /// The number of entries that were removed.
    Trimmed(usize),
    /// Whether it was this client's turn.
    Turn(bool),
}

/// Names an entry: its client, and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(pub(super) u32, pub(super) u32);

/// An entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub(super) stamp: [u8; 10],
    pub(super) name: Name,
    value: Content,
}

/// The number of bytes that gives an entry's value the maximum size. With one more, the value is one byte too
/// large.
const FULL: usize = 1_000_000;

/// The number of clients that take turns.
const PARTNERS: u32 = 2;

/// The byte of an entry that is appended in turn, and its repetitions.
pub(super) const TURN: (u8, usize) = (b't', 4);

pub(super) fn value(name: Name, byte: u8, length: usize) -> Vec<u8> {
    let of = |byte: u8, length: usize| pack(&(name.0, name.1, &vec![byte; length][..]));
    match length.checked_sub(FULL) {
        // A zero takes two bytes in a tuple.
        Some(beyond) => of(b'f', VALUE_SIZE_LIMIT - of(b'f', 0).len() + beyond),
        None => of(byte, length),
    }
}

pub(super) fn item(stamp: [u8; 10], value: &[u8]) -> Item {
    let name: Result<(u32, u32, TupleBytes<'_>), _> = unpack(value);
    let name = name.map_or(Name(u32::MAX, u32::MAX), |(client, number, _)| Name(client, number));
    Item { stamp, name, value: Content::from(value) }
}

pub(super) fn items(entries: &[Entry]) -> Vec<Item> {
    entries.iter().map(|entry| item(entry.position.stamp, &entry.value)).collect()
}

impl Log {
    /// Draws one call.
    pub(super) fn drawn(&self, client: usize) -> BoxedStrategy<Op> {
        let (page, patience) = (self.page, self.patience);
        let append =
            (any::<u8>(), 0..=self.longest).prop_map(|(byte, n)| Op::Append(Name::default(), byte, n));
        let read = (0..2 * page, 0..page + 1).prop_map(|(skip, n)| Op::Page(skip, n));
        let follow =
            (1..4 * page, 1..page + 1).prop_map(move |(count, page)| Op::Follow(count, page, patience));
        // A tail that is to return nothing returns at once, however patient it is.
        let idle = prop_oneof![
            1 => Just(Op::Idle(0, 5 * LONG)),
            3 => (1..page + 1, select(vec![50, 500])).prop_map(|(limit, patience)| Op::Idle(limit, patience)),
        ];
        let edge = (any::<u8>(), 0..2usize);
        let edge = edge.prop_map(|(byte, beyond)| Op::Append(Name::default(), byte, FULL + beyond));
        match self.kind {
            Kind::Trimmed => {
                let succeed = Just(Op::Succeed(Name::default()));
                prop_oneof![8 => append, 4 => read, 3 => (0..page).prop_map(Op::Trim), 2 => Just(Op::Last), 2 => succeed, 1 => idle, 1 => edge]
                    .boxed()
            }
            Kind::Followed => {
                prop_oneof![8 => append, 4 => read, 3 => follow, 2 => idle, 2 => Just(Op::Last), 1 => edge]
                    .boxed()
            }
            Kind::Turns if client < PARTNERS as usize => {
                prop_oneof![8 => Just(Op::Turn(Name::default(), 100)), 1 => read, 1 => Just(Op::Last)].boxed()
            }
            Kind::Turns => prop_oneof![1 => read, 1 => follow, 1 => Just(Op::Last)].boxed(),
        }
    }
}
