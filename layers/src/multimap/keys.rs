//! The key schema of multimaps.
//!
//! ```text
//! (multimap, index, value)  =  ''        a set of values under each index
//! (multiset, index, value)  =  copies    a count of each value: i64, little-endian, from 1
//! ```

use super::Error;
use crate::{label::Label, tx::KeyValue};
use foundationdb_tuple::Subspace;

/// The key of a value under an index.
pub(super) fn pair(subspace: &Subspace, index: &Label, value: &Label) -> Vec<u8> {
    subspace.pack(&(index, value))
}

/// Everything under an index.
pub(super) fn under(subspace: &Subspace, index: &Label) -> Subspace {
    subspace.subspace(&(index,))
}

/// The index and the value of a key.
pub(super) fn parts(subspace: &Subspace, key: &[u8]) -> Result<(Label, Label), Error> {
    subspace.unpack(key).map_err(|_| Error::foreign(key))
}

/// The pair in a row of a set.
pub(super) fn member(subspace: &Subspace, row: &KeyValue) -> Result<(Label, Label), Error> {
    match row.value.is_empty() {
        true => parts(subspace, &row.key),
        false => Err(Error::foreign(&row.key)),
    }
}

/// Decodes the number of copies; a multiset stores no zero.
pub(super) fn copies(key: &[u8], value: &[u8]) -> Result<u64, Error> {
    let copies = value.try_into().map_or(0, i64::from_le_bytes);
    u64::try_from(copies).ok().filter(|copies| *copies > 0).ok_or_else(|| Error::foreign(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_adjacent_by_index_and_round_trip() {
        let space = Subspace::from("enroll");
        let labels: [Label; 5] = ["".into(), "a".into(), "a\0".into(), "ab".into(), 1.into()];
        let mut last = Vec::new();
        for index in &labels {
            let (begin, end) = under(&space, index).range();
            for value in &labels {
                let key = pair(&space, index, value);
                assert!(last < key && begin <= key && key < end, "{index:?} {value:?}");
                assert_eq!(parts(&space, &key), Ok((index.clone(), value.clone())));
                last = key;
            }
        }
    }

    #[test]
    fn what_a_multimap_does_not_write_is_foreign() {
        let space = Subspace::from("enroll");
        let key = space.pack(&("a", "b"));
        let foreign = Err(Error::foreign(&key));
        assert_eq!(member(&space, &KeyValue::new(key.clone(), &b"1"[..])), foreign);
        for value in [&b""[..], &0i64.to_le_bytes(), &(-1i64).to_le_bytes(), &1i32.to_le_bytes()] {
            assert_eq!(copies(&key, value), Err(Error::foreign(&key)));
        }
        assert_eq!(copies(&key, &258i64.to_le_bytes()), Ok(258));
        let longer = space.pack(&("a", "b", "c"));
        assert_eq!(parts(&space, &longer), Err(Error::foreign(&longer)));
    }
}
