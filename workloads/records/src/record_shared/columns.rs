//! The columns of keys of records with simple keys.

use foundationdb_tuple::{Element, pack};
use serde::{Deserialize, Serialize};
use shaketable_record::value::Tuple;

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
}
