//! FoundationDB's limits, which layers check before they write.
//!
//! FoundationDB's client checks most of them only at commit, where the error does not identify the write that
//! was too large.

use crate::{KEY_SIZE_LIMIT, VALUE_SIZE_LIMIT};

/// The maximum size of a transaction: the bytes of its keys, values and conflict ranges together
/// (`TRANSACTION_SIZE_LIMIT` in `fdbclient/ClientKnobs.cpp`).
pub const TRANSACTION_SIZE_LIMIT: usize = 10_000_000;

/// The maximum that one call may read, in bytes of keys and values: reading much more would exceed the
/// five-second limit of a transaction.
pub const READ_LIMIT: usize = 10_000_000;

/// The number of bytes that each read counts in addition to its result, where a call starts one read for each
/// row of another: each read also takes time.
pub const READ_COST: usize = 1_000;

/// A limit was exceeded; nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// A key.
    #[error("a key of {bytes} bytes exceeds the limit of {limit}: {key}")]
    Key {
        /// The first bytes of the key.
        key: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A value.
    #[error("a value of {bytes} bytes exceeds the limit of {limit}, under the key {key}")]
    Value {
        /// The first bytes of the value's key.
        key: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The reads of one call: read in pages or in parts instead.
    #[error("one call reads more than the limit of {limit} bytes")]
    Read {
        /// The limit.
        limit: usize,
    },
    /// All writes of one call together.
    #[error("{bytes} bytes in one transaction exceed the limit of {limit}")]
    Transaction {
        /// The size of the keys and values.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A label or an element of a key: unpacking it would recurse too deeply.
    #[error("nested deeper than {limit}")]
    Depth {
        /// The limit.
        limit: usize,
    },
}

/// Refuses a key that FoundationDB would reject.
pub fn key(key: &[u8]) -> Result<(), TooLarge> {
    key_below(key, 0)
}

/// Refuses keys of `bytes` bytes below `prefix`; the error shows the prefix.
pub fn key_below(prefix: &[u8], bytes: usize) -> Result<(), TooLarge> {
    match prefix.len() + bytes {
        ..=KEY_SIZE_LIMIT => Ok(()),
        bytes => Err(TooLarge::Key { key: preview(prefix), bytes, limit: KEY_SIZE_LIMIT }),
    }
}

/// Refuses a value of more than `limit` bytes; the error shows its key.
pub fn value_up_to(limit: usize, key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
    match value.len() {
        bytes if bytes > limit => Err(TooLarge::Value { key: preview(key), bytes, limit }),
        _ => Ok(()),
    }
}

/// Refuses a key or a value that FoundationDB would reject.
pub fn row(key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
    self::key(key)?;
    value_up_to(VALUE_SIZE_LIMIT, key, value)
}

/// Refuses writes of more than [`TRANSACTION_SIZE_LIMIT`] bytes together.
pub fn transaction(bytes: usize) -> Result<(), TooLarge> {
    match bytes {
        ..=TRANSACTION_SIZE_LIMIT => Ok(()),
        _ => Err(TooLarge::Transaction { bytes, limit: TRANSACTION_SIZE_LIMIT }),
    }
}

/// The bytes that clearing `[begin, end)` adds to a transaction: a mutation and a conflict range, each with
/// the overhead of its structure, as FoundationDB counts them. A single key is the range up to [`key_after`]
/// of it.
///
/// [`key_after`]: crate::key_after
pub fn clear(begin: &[u8], end: &[u8]) -> usize {
    const MUTATION: usize = 44;
    const RANGE: usize = 24;
    MUTATION + RANGE + 2 * (begin.len() + end.len())
}

/// The first bytes of a key in printable form, which event hashes contain: it is shorter than `show::raw`.
fn preview(key: &[u8]) -> String {
    let cut = &key[..key.len().min(48)];
    format!("\"{}{}\"", cut.escape_ascii(), if cut.len() < key.len() { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_fits_and_one_byte_more_is_refused_by_name() {
        assert_eq!(row(&[b'k'; KEY_SIZE_LIMIT], &[0; VALUE_SIZE_LIMIT]), Ok(()));
        let long = key(&[b'k'; KEY_SIZE_LIMIT + 1]).unwrap_err();
        assert_eq!(
            long.to_string(),
            format!("a key of 10001 bytes exceeds the limit of 10000: \"{}…\"", "k".repeat(48))
        );
        let large = row(b"k\0", &[0; VALUE_SIZE_LIMIT + 1]).unwrap_err();
        assert_eq!(
            large.to_string(),
            "a value of 100001 bytes exceeds the limit of 100000, under the key \"k\\x00\""
        );
        assert_eq!(transaction(TRANSACTION_SIZE_LIMIT), Ok(()));
        assert!(transaction(TRANSACTION_SIZE_LIMIT + 1).is_err());
    }
}
