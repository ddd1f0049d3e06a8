//! What operations are given and what they return, as plain data, and how it is drawn.

use super::Leased;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack, unpack};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable_layers::{leased_queue::MAX_VALUE_BYTES, queue::Position};

/// One of several calls in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Enqueues an item.
    Put(Batch),
    /// Counts, up to this number.
    Count(usize),
    /// Lists the leases, in pages of this size.
    Leases(usize),
    /// Claims an item and does this with it.
    Take(Handling),
    /// Tries to end leases that were not observed: the first one as it may be after a renewal, and as it may
    /// have been before.
    Stale,
}

/// What is done with an item in the transaction that claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handling {
    /// It is acknowledged.
    Acknowledge,
    /// It is given back.
    Release,
    /// Its lease is ended as it was observed.
    Expire,
    /// The lease is renewed this many times, and held.
    Renew(u8),
}

/// What one of several calls returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActAnswer {
    /// Enqueued.
    Put,
    /// The number of items that wait, and the number of those that are claimed.
    Count(usize, usize),
    /// Position, token and revision of each lease that is held.
    Leases(Vec<(Position, i64, i64)>),
    /// The item that was claimed, its token, the number of renewals, and whether it is not held any more.
    Taken(Name, i64, i64, bool),
    /// There was no item to claim.
    Nothing,
    /// The number of leases that ended.
    Ended(usize),
}

/// How a worker works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manner {
    /// Acknowledges at once.
    Prompt,
    /// Renews this many times, in time, before it acknowledges.
    Renewing(u8),
    /// Acknowledges after this many tenths of the lease's duration, usually too late.
    Slow(u8),
    /// Sleeps for this many tenths of the lease's duration, renews, and acknowledges.
    Late(u8),
    /// Gives the item back.
    Releasing,
    /// Stops without ending the lease.
    Vanishing,
    /// Is believed dead after this many tenths of the lease's duration, and continues beside a second
    /// incarnation. That holds the same item, and after this many tenths acknowledges it, or gives it back if
    /// true.
    Twice(u8, u8, bool),
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Enqueued.
    Enqueued,
    /// There was no item to claim.
    Nothing,
    /// Claimed this item, and ended in this way.
    Worked(Name, End),
    /// Ended all leases that were to end.
    Expired,
    /// The number of items that wait, and the number of those that are claimed.
    Count(usize, usize),
    /// What each of several calls returned.
    Together(Vec<ActAnswer>),
    /// Refused, with this message.
    Refused(String),
}

/// How a worker's lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The worker acknowledged the item.
    Acknowledged,
    /// The worker was refused because it had lost the lease.
    Lost,
    /// The worker gave the item back.
    Released,
    /// The worker did nothing, or nothing that succeeded.
    Silent,
    /// Both incarnations of the worker ended it, which must not happen.
    Twice,
}

/// The items that an operation enqueues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub(super) client: u16,
    pub(super) number: u16,
    padding: u32,
}

/// The padding that gives a value the maximum size.
const FULL: u32 = u32::MAX;

/// Names an item: its client, and the number of its operation.
pub type Name = (u16, u16);

impl Batch {
    pub(super) fn value(&self) -> Bytes {
        let of = |padding: usize| pack(&(self.client, self.number, &vec![1u8; padding][..]));
        let padding = match self.padding {
            FULL => MAX_VALUE_BYTES - of(0).len(),
            padding => padding as usize,
        };
        of(padding).into()
    }
}

/// The name in a value.
pub(super) fn name(value: &[u8]) -> Result<Name, String> {
    let parts: (u16, u16, TupleBytes<'_>) =
        unpack(value).map_err(|_| format!("\"{}\" was never enqueued", value.escape_ascii()))?;
    Ok((parts.0, parts.1))
}

impl Leased {
    fn batch(&self) -> impl Strategy<Value = Batch> + Clone + use<> {
        (0..=self.padding).prop_map(|padding| Batch { client: 0, number: 0, padding })
    }

    /// Draws the item of an operation of its own.
    pub(super) fn batch_or_full(&self) -> BoxedStrategy<Batch> {
        let full = Batch { client: 0, number: 0, padding: FULL };
        prop_oneof![50 => self.batch(), 1 => Just(full)].boxed()
    }

    /// Draws one of several calls.
    pub(super) fn act(&self) -> BoxedStrategy<Act> {
        let handling = prop_oneof![
            2 => Just(Handling::Acknowledge),
            2 => Just(Handling::Release),
            1 => Just(Handling::Expire),
            1 => (0u8..3).prop_map(Handling::Renew),
        ];
        let act = prop_oneof![
            3 => self.batch().prop_map(Act::Put),
            2 => some(5).prop_map(Act::Count),
            2 => (0..4usize).prop_map(Act::Leases),
            4 => handling.prop_map(Act::Take),
            1 => Just(Act::Stale),
        ];
        act.boxed()
    }
}

/// Draws a number that few items reach, or one that they do not.
pub(super) fn some(few: usize) -> impl Strategy<Value = usize> {
    prop_oneof![0..few, Just(1_000)]
}

/// Draws how a worker works.
pub(super) fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        4 => Just(Manner::Prompt),
        2 => (1u8..6).prop_map(Manner::Renewing),
        3 => (8u8..40).prop_map(Manner::Slow),
        2 => (8u8..40).prop_map(Manner::Late),
        1 => Just(Manner::Releasing),
        2 => Just(Manner::Vanishing),
        3 => (0u8..12, 0u8..12, any::<bool>()).prop_map(|(a, b, releases)| Manner::Twice(a, b, releases)),
        1 => any::<bool>().prop_map(|releases| Manner::Twice(0, 0, releases)),
    ]
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
}
