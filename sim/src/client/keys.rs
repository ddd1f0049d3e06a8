//! Bounds of the keyspace, size limits, and key positions that need no copying.

use crate::proto::KeyRange;
use bytes::Bytes;
use shaketable_tx::KEY_SIZE_LIMIT;
use std::cmp::Ordering;

/// The end of the keys that an ordinary transaction may access.
pub const USER_END: Bytes = Bytes::from_static(b"\xff");
/// The end of all stored keys, and the beginning of the special keys.
pub const ALL_END: Bytes = Bytes::from_static(b"\xff\xff");
/// The end of the special keys.
pub const SPECIAL_END: Bytes = Bytes::from_static(b"\xff\xff\xff");
/// The key whose value changes with the cluster's metadata; readable by every transaction.
pub const METADATA_VERSION: &[u8] = b"\xff/metadataVersion";
/// The end of the range that holds only [`METADATA_VERSION`].
pub const METADATA_VERSION_END: &[u8] = b"\xff/metadataVersion\0";
/// The only operand with which [`METADATA_VERSION`] may be set.
pub const METADATA_VERSION_OPERAND: &[u8] = &[0; 14];
/// The prefix of keys that are used only in conflict ranges.
pub const SELF_CONFLICT_PREFIX: &[u8] = b"\xff/SC/";

const SYSTEM_KEY_SIZE_LIMIT: usize = 30_000;

/// The maximum length of an existing key; longer keys are cut to one more.
pub fn max_key_size(key: &[u8]) -> usize {
    max_write_key_size(key, true)
}

/// The maximum length of a key that may be written; raw access adds the length of a tenant's prefix.
pub fn max_write_key_size(key: &[u8], raw_access: bool) -> usize {
    match key.first() {
        Some(0xff) => SYSTEM_KEY_SIZE_LIMIT,
        _ => KEY_SIZE_LIMIT + if raw_access { 8 } else { 0 },
    }
}

/// `key`, cut to one byte more than the maximum length of a key: there are no keys between the two.
pub fn clipped(key: &[u8]) -> &[u8] {
    &key[..key.len().min(max_key_size(key) + 1)]
}

/// The range that contains only `key`; both ends share one buffer.
pub fn single_key(key: &[u8]) -> KeyRange {
    let mut buffer = Vec::with_capacity(key.len() + 1);
    buffer.extend_from_slice(key);
    buffer.push(0);
    let end = Bytes::from(buffer);
    KeyRange { begin: end.slice(..key.len()), end }
}

/// A position in the keyspace: a key, or the position directly after it.
#[derive(Clone, Copy, Debug)]
pub struct Edge<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Whether the position is the key followed by a zero byte.
    pub after: bool,
}

impl<'a> Edge<'a> {
    /// The position of `key`.
    pub fn at(key: &'a [u8]) -> Self {
        Edge { key, after: false }
    }

    /// The position directly after `key`.
    pub fn after(key: &'a [u8]) -> Self {
        Edge { key, after: true }
    }

    /// The position as a key.
    pub fn to_bytes(self) -> Bytes {
        if !self.after {
            return Bytes::copy_from_slice(self.key);
        }
        let mut key = Vec::with_capacity(self.key.len() + 1);
        key.extend_from_slice(self.key);
        key.push(0);
        key.into()
    }

    /// The length of the position as a key, in bytes.
    pub fn len(self) -> usize {
        self.key.len() + usize::from(self.after)
    }

    /// Whether this is the first position after `other`.
    pub fn is_key_after(self, other: Edge<'_>) -> bool {
        self.len() == other.len() + 1 && (self.after || self.key.last() == Some(&0)) && {
            let n = other.len();
            let byte = |e: Edge<'_>, i: usize| e.key.get(i).copied().unwrap_or(0);
            let common = self.key.len().min(other.key.len());
            self.key[..common] == other.key[..common] && (common..n).all(|i| byte(self, i) == byte(other, i))
        }
    }
}

impl PartialEq for Edge<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Edge<'_> {}
impl PartialOrd for Edge<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Edge<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let n = self.key.len().min(other.key.len());
        let rest = |e: &Self| e.key[n..].iter().any(|b| *b != 0);
        self.key[..n]
            .cmp(&other.key[..n])
            // One of the remainders is empty: the other is greater at its first byte that is not zero.
            .then_with(|| rest(self).cmp(&rest(other)))
            .then_with(|| self.len().cmp(&other.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_that_is_too_long_is_cut_behind_the_longest_that_is_not() {
        for (first, longest) in [(b'k', KEY_SIZE_LIMIT + 8), (0xff, SYSTEM_KEY_SIZE_LIMIT)] {
            let key = vec![first; 2 * SYSTEM_KEY_SIZE_LIMIT];
            for length in [1, longest, longest + 1] {
                assert_eq!(clipped(&key[..length]).len(), length);
            }
            assert_eq!(clipped(&key).len(), longest + 1);
        }
    }

    proptest! {
        #[test]
        fn edges_compare_like_the_keys_they_represent(
            a in prop::collection::vec(0u8..3, 0..4), aa in any::<bool>(),
            b in prop::collection::vec(0u8..3, 0..4), bb in any::<bool>(),
        ) {
            let (x, y) = (Edge { key: &a, after: aa }, Edge { key: &b, after: bb });
            let (kx, ky) = (x.to_bytes(), y.to_bytes());
            prop_assert_eq!(x.cmp(&y), kx.cmp(&ky));
            prop_assert_eq!(x.is_key_after(y), kx == Edge::after(&ky).to_bytes());
            prop_assert_eq!(x.len(), kx.len());
        }
    }
}
