//! The rows of small record stores, computed from plain records independently of the layer: all of them must
//! be as computed, and there must be no others.

use super::layout::{self, Header, text};
use foundationdb_tuple::Subspace;
use prost::Message;
use shaketable_tx::{self as tx, Tx};
use std::collections::BTreeMap;

/// Rows: keys with their values.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The row of a store's header, for this version of the meta-data.
pub(crate) fn header(store: &Subspace, version: i32) -> (Vec<u8>, Vec<u8>) {
    (layout::header_key(store), Header::of(version).encode_to_vec())
}

/// All rows of a store.
pub(crate) async fn stored(tx: &Tx, store: &Subspace) -> tx::Result<Rows> {
    let rows = layout::rows(tx, store).await?;
    Ok(rows.into_iter().map(|row| (row.key.into(), row.value.into())).collect())
}

/// Compares rows with what they should be.
pub(crate) fn compare<V: AsRef<[u8]>>(
    rows: &BTreeMap<Vec<u8>, V>,
    expected: &BTreeMap<Vec<u8>, V>,
) -> Result<(), String> {
    for (key, value) in rows {
        match expected.get(key).map(AsRef::as_ref) {
            Some(expected) if expected == value.as_ref() => {}
            Some(expected) => {
                let (key, value) = (text(key), text(value.as_ref()));
                return Err(format!("row {key} is {value}, should be {}", text(expected)));
            }
            None => return Err(format!("row {} = {} belongs to no record", text(key), text(value.as_ref()))),
        }
    }
    match expected.keys().find(|key| !rows.contains_key(*key)) {
        Some(key) => Err(format!("row {} is missing", text(key))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_missing_and_extra_rows_are_found() {
        let row = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
        let expected = Rows::from([row(b"a", b"1"), row(b"b", b"2")]);
        assert_eq!(compare(&expected, &expected), Ok(()));
        assert!(compare(&Rows::from([row(b"a", b"1")]), &expected).unwrap_err().contains("missing"));
        let wrong = Rows::from([row(b"a", b"2"), row(b"b", b"2")]);
        assert!(compare(&wrong, &expected).unwrap_err().contains("should be \"1\""));
        let extra = Rows::from([row(b"a", b"1"), row(b"b", b"2"), row(b"c", b"")]);
        assert!(compare(&extra, &expected).unwrap_err().contains("no record"));
    }
}
