//! The rows of small record stores, computed from plain records independently of the layer: all of them must be as
//! computed, and there must be no others. The layout is that of the table in the layer's `store/keyspace.rs`.

use foundationdb_tuple::{Element, Subspace, pack};
use serde::{Deserialize, Serialize};
use shaketable_layers::tx::{self, Isolation::Serializable, RangeOption, Transaction};
use shaketable_record::value::Tuple;
use std::collections::BTreeMap;

/// The parts of a store.
pub(crate) const RECORDS: i64 = 1;
pub(crate) const INDEXES: i64 = 2;
pub(crate) const SECONDARY: i64 = 3;

/// Rows: keys with their values.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A column of a key, ordered as the tuple layer orders it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Col {
    /// Of a field that is absent.
    Null,
    /// A text.
    Text(String),
    /// A number.
    Int(i64),
}

impl Col {
    /// As an element of a tuple.
    pub(crate) fn element(&self) -> Element<'static> {
        match self {
            Col::Null => Element::Nil,
            Col::Text(text) => Element::String(text.clone().into()),
            Col::Int(number) => Element::Int(*number),
        }
    }

    /// The column with this element, if it is one.
    pub(crate) fn of(element: &Element<'_>) -> Option<Col> {
        Some(match element {
            Element::Nil => Col::Null,
            Element::String(text) => Col::Text(text.to_string()),
            Element::Int(number) => Col::Int(*number),
            _ => return None,
        })
    }

    /// The columns of a tuple of the layer, if all its elements are columns.
    pub(crate) fn all_of(tuple: &Tuple) -> Option<Vec<Col>> {
        tuple.elements().iter().map(Col::of).collect()
    }
}

impl From<Option<i64>> for Col {
    fn from(number: Option<i64>) -> Col {
        number.map_or(Col::Null, Col::Int)
    }
}

impl From<Option<&str>> for Col {
    fn from(text: Option<&str>) -> Col {
        text.map_or(Col::Null, |text| Col::Text(text.into()))
    }
}

/// The columns as a tuple of the layer.
pub(crate) fn tuple(columns: &[Col]) -> Tuple {
    columns.iter().map(Col::element).collect()
}

/// The packed columns.
pub(crate) fn packed(columns: &[Col]) -> Vec<u8> {
    pack(&columns.iter().map(Col::element).collect::<Vec<_>>())
}

/// The row of a store's header, for this version of the meta-data: a protobuf message with the format, which is 9, in its
/// field 1, and the version in its field 2.
pub(crate) fn header(store: &Subspace, version: u8) -> (Vec<u8>, Vec<u8>) {
    (store.pack(&0i64), vec![1 << 3, 9, 2 << 3, version])
}

/// The key of the row in which a record is whole.
pub(crate) fn record_key(store: &Subspace, id: i64) -> Vec<u8> {
    store.pack(&(RECORDS, id, 0i64))
}

/// The primary key of a record that is whole in the row with this key.
pub(crate) fn id_of(store: &Subspace, key: &[u8]) -> Option<i64> {
    match store.unpack(key) {
        Ok((RECORDS, id, 0i64)) => Some(id),
        _ => None,
    }
}

/// All rows of a store.
pub(crate) async fn stored<T: Transaction>(tx: &T, store: &Subspace) -> tx::Result<Rows> {
    let begin = store.bytes().to_vec();
    let end = [&begin[..], b"\xff"].concat();
    let rows = tx.get_range_all(RangeOption::from((begin, end)), Serializable).await?;
    Ok(rows.into_iter().map(|row| (row.key.into(), row.value.into())).collect())
}

/// Compares the rows of a store with what they should be.
pub(crate) fn compare(rows: &Rows, expected: &Rows) -> Result<(), String> {
    for (key, value) in rows {
        match expected.get(key) {
            Some(expected) if expected == value => {}
            Some(expected) => {
                return Err(format!("row {} is {}, should be {}", text(key), text(value), text(expected)));
            }
            None => return Err(format!("row {} = {} belongs to no record", text(key), text(value))),
        }
    }
    match expected.keys().find(|key| !rows.contains_key(*key)) {
        Some(key) => Err(format!("row {} is missing", text(key))),
        None => Ok(()),
    }
}

/// A key or a value, readable and truncated.
pub(crate) fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_ordered_as_they_are_stored() {
        let text = |text: &str| Col::Text(text.into());
        let columns = [
            Col::Null,
            text(""),
            text("a"),
            text("a\0"),
            text("ab"),
            Col::Int(-300),
            Col::Int(0),
            Col::Int(7),
        ];
        for pair in columns.windows(2) {
            assert!(pair[0] < pair[1] && packed(&pair[..1]) < packed(&pair[1..]), "{pair:?}");
            assert!(packed(&[pair[0].clone(), Col::Int(i64::MAX)]) < packed(&pair[1..]), "{pair:?}");
        }
    }

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
