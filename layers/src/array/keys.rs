//! The key schema of an array.
//!
//! ```text
//! (array, index)              =  value        one dimension
//! (array, index, index, ..)   =  value        several dimensions: the first index varies slowest
//! ```

use super::Error;
use crate::canonical;
use foundationdb_tuple::{Element, Subspace};

/// The subspace of the cells whose index starts with `index`: a single cell if every dimension is given.
pub(super) fn under(array: &Subspace, index: &[i64]) -> Result<Subspace, Error> {
    match index.iter().find(|i| **i < 0) {
        Some(negative) => Err(Error::NegativeIndex(*negative)),
        None => Ok(array.subspace(&index.iter().map(|i| Element::Int(*i)).collect::<Vec<_>>())),
    }
}

/// The index of a cell, by its key.
pub(super) fn index(array: &Subspace, dimensions: usize, key: &[u8]) -> Result<Vec<i64>, Error> {
    let parts: Vec<i64> = canonical::unpack_below(array, key).map_err(|_| Error::foreign(key))?;
    match parts.len() == dimensions && parts.iter().all(|i| *i >= 0) {
        true => Ok(parts),
        false => Err(Error::foreign(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_indexes_do_and_round_trip() {
        let array = Subspace::from("a");
        let mut cells = [vec![0, 300], vec![1, 0], vec![0, 0], vec![256, 1], vec![0, i64::MAX]];
        cells.sort();
        let keys: Vec<_> = cells.iter().map(|i| under(&array, i).unwrap().into_bytes()).collect();
        assert!(keys.is_sorted());
        for (cell, key) in cells.iter().zip(&keys) {
            assert_eq!(index(&array, 2, key).as_ref(), Ok(cell));
            assert_eq!(index(&array, 3, key), Err(Error::foreign(key)));
        }
        assert_eq!(under(&array, &[1, -4]).unwrap_err(), Error::NegativeIndex(-4));
        let negative = array.pack(&(-1i64,));
        assert_eq!(index(&array, 1, &negative), Err(Error::foreign(&negative)));
        let text = array.pack(&("x",));
        assert_eq!(index(&array, 1, &text), Err(Error::foreign(&text)));
    }
}
