//! The data types of the contract: keys, selectors, ranges, streaming modes and mutation types.
//!
//! Names and numeric codes are those of `fdbclient/vexillographer/fdb.options` and of the `foundationdb`
//! crate.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The maximum length of a key, in bytes (`KEY_SIZE_LIMIT` in `fdbclient/ClientKnobs.cpp`).
pub const KEY_SIZE_LIMIT: usize = 10_000;

/// The maximum length of a value, in bytes (`VALUE_SIZE_LIMIT`).
pub const VALUE_SIZE_LIMIT: usize = 100_000;

/// Whether a read takes part in conflict detection.
///
/// An enum rather than a flag: a published example passes `true` for "snapshot" where it needs a serializable
/// read, and therefore oversells its seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Isolation {
    /// The read adds a read conflict range: the transaction commits only if its reads would still return the
    /// same.
    Serializable,
    /// The read adds no conflict range.
    Snapshot,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

impl KeyValue {
    /// A key-value pair.
    pub fn new(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        KeyValue { key: key.into(), value: value.into() }
    }
}

/// Identifies a key relative to another: the first key at or after (or strictly after) `key`, moved by
/// `offset - 1` keys. FoundationDB resolves it to an existing key, or to the beginning or the end of the
/// keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeySelector {
    /// The base key.
    pub key: Bytes,
    /// Whether the base key itself counts as "before".
    pub or_equal: bool,
    /// The number of keys to move; 1 is the first key after the base, 0 the last at or before it.
    pub offset: i32,
}

impl KeySelector {
    /// A selector from its three parts.
    pub fn new(key: impl Into<Bytes>, or_equal: bool, offset: i32) -> Self {
        KeySelector { key: key.into(), or_equal, offset }
    }
    /// The last key before `key`.
    pub fn last_less_than(key: impl Into<Bytes>) -> Self {
        Self::new(key, false, 0)
    }
    /// The last key at or before `key`.
    pub fn last_less_or_equal(key: impl Into<Bytes>) -> Self {
        Self::new(key, true, 0)
    }
    /// The first key after `key`.
    pub fn first_greater_than(key: impl Into<Bytes>) -> Self {
        Self::new(key, true, 1)
    }
    /// The first key at or after `key`.
    pub fn first_greater_or_equal(key: impl Into<Bytes>) -> Self {
        Self::new(key, false, 1)
    }
}

/// The size of the batches of a range read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(i32)]
pub enum StreamingMode {
    /// Everything, in batches as large as the server will send.
    WantAll = -2,
    /// Batches that grow with the iteration, from 4,096 bytes.
    Iterator = -1,
    /// Exactly as many rows as the limit; requires a limit (2210 without).
    Exact = 0,
    /// 256 bytes.
    Small = 1,
    /// 1,000 bytes.
    Medium = 2,
    /// 4,096 bytes.
    Large = 3,
    /// As large as the server will send.
    Serial = 4,
}

/// The parameters of a range read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeOption {
    /// Where the range begins (inclusive after resolution).
    pub begin: KeySelector,
    /// Where the range ends (exclusive after resolution).
    pub end: KeySelector,
    /// The maximum number of rows; `None` is unlimited. `Some(0)` is unlimited too, as in the C API.
    pub limit: Option<usize>,
    /// The approximate maximum number of bytes of a batch; 0 leaves it to the mode.
    pub target_bytes: usize,
    /// The size of batches.
    pub mode: StreamingMode,
    /// Whether to return rows in descending order.
    pub reverse: bool,
}

impl RangeOption {
    /// The half-open range `[begin, end)`, ascending, iterator mode, no limit.
    pub fn new(begin: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self::between(KeySelector::first_greater_or_equal(begin), KeySelector::first_greater_or_equal(end))
    }

    /// The range between two selectors.
    pub fn between(begin: KeySelector, end: KeySelector) -> Self {
        RangeOption {
            begin,
            end,
            limit: None,
            target_bytes: 0,
            mode: StreamingMode::Iterator,
            reverse: false,
        }
    }

    /// At most `limit` rows.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Descending order.
    pub fn reversed(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Sets the streaming mode.
    pub fn mode(mut self, mode: StreamingMode) -> Self {
        self.mode = mode;
        self
    }
}

impl From<(Vec<u8>, Vec<u8>)> for RangeOption {
    fn from((begin, end): (Vec<u8>, Vec<u8>)) -> Self {
        RangeOption::new(begin, end)
    }
}

/// One batch of a range read.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RangeBatch {
    /// The rows, in the requested order.
    pub rows: Vec<KeyValue>,
    /// Whether rows may remain after the last one. Can be set even for a batch with few or no rows.
    pub more: bool,
}

/// The kind of a conflict range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConflictRangeType {
    /// Conflicts as if the range had been read.
    Read,
    /// Conflicts as if the range had been written.
    Write,
}

/// An atomic operation, with FoundationDB's numeric code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u32)]
pub enum MutationType {
    /// Little-endian addition, wrapping at the operand's length.
    Add = 2,
    /// Bitwise and (for an absent value, stores the operand).
    BitAnd = 6,
    /// Bitwise or.
    BitOr = 7,
    /// Bitwise exclusive or.
    BitXor = 8,
    /// Appends, unless the result would exceed 100,000 bytes.
    AppendIfFits = 9,
    /// The larger of the two as little-endian unsigned integers of the operand's length.
    Max = 12,
    /// The smaller of the two, as for `Max` (for an absent value, stores the operand).
    Min = 13,
    /// Sets a key after replacing 10 of its bytes, at the trailing little-endian offset, by the versionstamp.
    SetVersionstampedKey = 14,
    /// Sets a value after replacing 10 of its bytes, at the trailing little-endian offset, by the
    /// versionstamp.
    SetVersionstampedValue = 15,
    /// The lexicographically smaller of the two.
    ByteMin = 16,
    /// The lexicographically larger of the two.
    ByteMax = 17,
    /// Clears the key if its value equals the operand.
    CompareAndClear = 20,
}

impl MutationType {
    /// Every atomic operation, in the order of their codes.
    pub const ALL: &'static [MutationType] = &[
        MutationType::Add,
        MutationType::BitAnd,
        MutationType::BitOr,
        MutationType::BitXor,
        MutationType::AppendIfFits,
        MutationType::Max,
        MutationType::Min,
        MutationType::SetVersionstampedKey,
        MutationType::SetVersionstampedValue,
        MutationType::ByteMin,
        MutationType::ByteMax,
        MutationType::CompareAndClear,
    ];

    /// FoundationDB's numeric code.
    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The operation with this code, if there is one (a client rejects other codes with 2018).
    pub fn from_code(code: u32) -> Option<MutationType> {
        Self::ALL.iter().copied().find(|m| m.code() == code)
    }
}

/// The first key after all keys that start with `prefix`; `None` if there is none (all bytes are 0xff).
pub fn strinc(prefix: &[u8]) -> Option<Bytes> {
    let keep = prefix.iter().rposition(|b| *b != 0xff)? + 1;
    let mut end = prefix[..keep].to_vec();
    end[keep - 1] += 1;
    Some(end.into())
}

/// The first key after `key`: the key followed by a zero byte.
pub fn key_after(key: &[u8]) -> Bytes {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strinc_is_the_end_of_a_prefix() {
        assert_eq!(strinc(b"a").as_deref(), Some(&b"b"[..]));
        assert_eq!(strinc(b"a\xff\xff").as_deref(), Some(&b"b"[..]));
        assert_eq!(strinc(b"\xff"), None);
        assert_eq!(strinc(b""), None);
    }

    #[test]
    fn mutation_codes_are_their_own_inverse() {
        for m in MutationType::ALL {
            assert_eq!(MutationType::from_code(m.code()), Some(*m));
        }
        assert_eq!(MutationType::from_code(3), None);
    }
}
