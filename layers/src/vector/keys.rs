//! The key schema of vectors.
//!
//! ```text
//! (vector, index)       =  value     one vector; its last element is always stored
//! (matrix, row, index)  =  value     a matrix: each row is a vector
//! ```
//!
//! An element before the last one may be missing: it is a hole, which reads as the default.

use super::{Error, MAX_VALUE_BYTES};
use crate::{canonical, limits};
use foundationdb_tuple::Subspace;

/// The largest index: the size is one more.
const LAST: i64 = i64::MAX - 1;

/// Checks an index or a size.
pub(super) fn counts(index: i64) -> Result<i64, Error> {
    match index {
        ..0 => Err(Error::Negative(index)),
        _ => Ok(index),
    }
}

/// The key of an element.
pub(super) fn element(vector: &Subspace, index: i64) -> Result<Vec<u8>, Error> {
    match counts(index)? {
        i64::MAX => Err(Error::Full),
        _ => Ok(vector.pack(&(index,))),
    }
}

/// The begin of the elements from `index`; `index` may be the size.
pub(super) fn from(vector: &Subspace, index: i64) -> Vec<u8> {
    vector.pack(&(index,))
}

/// The end of the range of all elements.
pub(super) fn end(vector: &Subspace) -> Vec<u8> {
    vector.range().1
}

/// Refuses an element that FoundationDB would reject, or whose removal could not be recorded.
pub(super) fn fits(key: &[u8], value: &[u8]) -> Result<(), Error> {
    limits::key(key)?;
    Ok(limits::value_up_to(MAX_VALUE_BYTES, key, value)?)
}

/// The index of an element, decoded from its key.
pub(super) fn index(vector: &Subspace, key: &[u8]) -> Result<i64, Error> {
    match canonical::unpack_below(vector, key) {
        Ok((index @ 0..=LAST,)) => Ok(index),
        _ => Err(Error::foreign(key)),
    }
}

/// The row and the index of an element of a matrix, decoded from its key.
pub(super) fn place(matrix: &Subspace, key: &[u8]) -> Result<(i64, i64), Error> {
    match canonical::unpack_below(matrix, key) {
        Ok((row @ 0..=LAST, index @ 0..=LAST)) => Ok((row, index)),
        _ => Err(Error::foreign(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_indexes_do_and_round_trip() {
        let vector = Subspace::from("v");
        let indexes = [0, 1, 255, 256, 65_536, i64::MAX - 1];
        let keys = indexes.map(|i| element(&vector, i).unwrap());
        assert!(keys.is_sorted());
        for (i, key) in indexes.iter().zip(&keys) {
            assert_eq!(index(&vector, key), Ok(*i));
            assert!(*key < end(&vector) && from(&vector, *i) == *key);
            assert_eq!(place(&vector, key), Err(Error::foreign(key)));
        }
        for foreign in [vector.pack(&(-1,)), vector.pack(&("x",)), vector.pack(&(1, 2)), b"else".to_vec()] {
            assert_eq!(index(&vector, &foreign), Err(Error::foreign(&foreign)));
        }
        assert_eq!(place(&vector, &vector.pack(&(1, 2))), Ok((1, 2)));
    }

    #[test]
    fn indexes_are_counted_from_zero_and_leave_room_for_a_size() {
        let vector = Subspace::from("v");
        assert_eq!(element(&vector, -1), Err(Error::Negative(-1)));
        assert_eq!(element(&vector, i64::MIN), Err(Error::Negative(i64::MIN)));
        assert_eq!(element(&vector, i64::MAX), Err(Error::Full));
        assert_eq!(counts(i64::MAX), Ok(i64::MAX));
    }

    #[test]
    fn the_largest_element_fits_into_the_record_of_its_pop() {
        use crate::once::{Answer, MAX_ANSWER_BYTES};
        let popped = Some(bytes::Bytes::from(vec![1; MAX_VALUE_BYTES]));
        let mut out = bytes::BytesMut::new();
        assert_eq!(popped.encode(&mut out), Ok(None));
        assert_eq!(out.len(), MAX_ANSWER_BYTES);
        assert_eq!(fits(b"k", &vec![1; MAX_VALUE_BYTES]), Ok(()));
        let refused = fits(b"k", &vec![1; MAX_VALUE_BYTES + 1]);
        assert!(matches!(refused, Err(Error::TooLarge(limits::TooLarge::Value { .. }))), "{refused:?}");
        let refused = fits(&[b'k'; 10_001], b"");
        assert!(matches!(refused, Err(Error::TooLarge(limits::TooLarge::Key { .. }))), "{refused:?}");
    }
}
