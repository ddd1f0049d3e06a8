//! The storage of idempotency ids, with which a client can look up the result of a commit whose reply it did
//! not receive.
//!
//! A commit proxy writes an accepted transaction's id, and the client that sent the transaction reads it. The
//! layout is that of `fdbclient/IdempotencyId` except for the grouping: keys begin with `\xff\x02/idmp/` and
//! the eight big-endian bytes of the commit version, so that the possible commit versions of a transaction
//! form one range. Here they are followed by the two bytes of the position in the batch, and the value is
//! just the id; FoundationDB puts the high byte of the position into the key and, after a timestamp, all ids
//! that share it into the value, each preceded by its length and followed by the low byte of its position.
//! FoundationDB also expires ids after days (1022 after that); here they are kept, since no run is that long.

use crate::{
    atomic,
    proto::{KeyRange, Version},
};
use bytes::Bytes;

/// The prefix of all ids (`idempotencyIdKeys`).
const PREFIX: &[u8] = b"\xff\x02/idmp/";

/// The key and the value that record the commit of the transaction with this id.
pub fn entry(id: &Bytes, version: Version, batch_index: u16) -> (Bytes, Bytes) {
    ([PREFIX, &atomic::versionstamp(version, batch_index)].concat().into(), id.clone())
}

/// The range of the ids of commits in `from..to`.
pub fn between(from: Version, to: Version) -> KeyRange {
    let key = |version: Version| Bytes::from([PREFIX, &version.to_be_bytes()[..]].concat());
    KeyRange { begin: key(from), end: key(to) }
}

/// The commit version and the position in the batch that a key contains.
pub fn place(key: &[u8]) -> Option<(Version, u16)> {
    let (version, index) = key.strip_prefix(PREFIX)?.split_first_chunk::<8>()?;
    Some((Version::from_be_bytes(*version), u16::from_be_bytes(index.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lies_in_the_range_of_its_version_and_names_its_place() {
        let id = Bytes::from_static(b"0123456789abcdef");
        let (key, value) = entry(&id, 0x0102, 0x0304);
        assert_eq!((&key[..], &value), (&b"\xff\x02/idmp/\0\0\0\0\0\0\x01\x02\x03\x04"[..], &id));
        assert_eq!(place(&key), Some((0x0102, 0x0304)));
        let holds = |from, to| {
            let range = between(from, to);
            range.begin <= key && key < range.end
        };
        assert!(holds(0x0102, 0x0103) && !holds(0x0103, 0x0200) && !holds(0, 0x0102));
        assert_eq!(place(b"\xff\x02/idmp/short"), None);
    }
}
