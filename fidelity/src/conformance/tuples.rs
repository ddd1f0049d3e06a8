//! Recorded tuples, as packed by the official tuple layer.

use super::{Bytes, Difference, Replayed};
use foundationdb_tuple::{Element, PackError, Versionstamp, pack, unpack};
use num_bigint::BigInt;
use serde::Deserialize;
use std::collections::BTreeMap;
use uuid::Uuid;

/// A tuple and its packed bytes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TupleCase {
    /// The tuple.
    pub tuple: Vec<RecordedElement>,
    /// Its bytes.
    pub packed: Bytes,
}

/// An element of a recorded tuple.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedElement {
    /// Null.
    Null(bool),
    /// A boolean.
    Bool(bool),
    /// Bytes.
    Bytes(Bytes),
    /// Text.
    Text(String),
    /// An integer of any size, in decimal.
    Int(String),
    /// A double, by its bits.
    F64(Bytes),
    /// A float, by its bits.
    F32(Bytes),
    /// Sixteen bytes.
    Uuid(Bytes),
    /// Twelve bytes.
    Stamp(Bytes),
    /// A tuple.
    Tuple(Vec<RecordedElement>),
}

impl RecordedElement {
    /// The element; `None` if its spelling is invalid.
    fn element(&self) -> Option<Element<'static>> {
        let decode = |bytes: &Bytes| bytes.decode(&BTreeMap::new());
        Some(match self {
            RecordedElement::Null(_) => Element::Nil,
            RecordedElement::Bool(value) => Element::Bool(*value),
            RecordedElement::Bytes(bytes) => Element::Bytes(decode(bytes)?.into()),
            RecordedElement::Text(text) => Element::String(text.clone().into()),
            RecordedElement::Int(text) => match text.parse() {
                Ok(small) => Element::Int(small),
                Err(_) => Element::BigInt(text.parse::<BigInt>().ok()?),
            },
            RecordedElement::F64(bits) => Element::Double(f64::from_be_bytes(decode(bits)?.try_into().ok()?)),
            RecordedElement::F32(bits) => Element::Float(f32::from_be_bytes(decode(bits)?.try_into().ok()?)),
            RecordedElement::Uuid(bytes) => Element::Uuid(Uuid::from_slice(&decode(bytes)?).ok()?),
            RecordedElement::Stamp(bytes) => {
                Element::Versionstamp(Versionstamp::from(<[u8; 12]>::try_from(decode(bytes)?).ok()?))
            }
            RecordedElement::Tuple(elements) => Element::Tuple(all(elements)?),
        })
    }
}

fn all(elements: &[RecordedElement]) -> Option<Vec<Element<'static>>> {
    elements.iter().map(RecordedElement::element).collect()
}

/// Packs the tuple of a case, and unpacks the recorded bytes; both must be equal.
pub fn replay_tuple(case: &TupleCase) -> Replayed {
    let different = |what: &str, expected: String, actual: String| {
        Replayed::Different(Difference { step: None, what: what.to_owned(), expected, actual })
    };
    let tuple = format!("{:?}", case.tuple);
    let (Some(elements), Some(recorded)) = (all(&case.tuple), case.packed.decode(&BTreeMap::new())) else {
        return different("read", tuple, "not well spelled".to_owned());
    };
    let unpacked: Result<Vec<Element>, PackError> = unpack(&recorded);
    if unpacked.as_ref().ok() != Some(&elements) {
        return different(&format!("unpack {}", case.packed.0), tuple, format!("{unpacked:?}"));
    }
    let packed = pack(&elements);
    match packed == recorded {
        true => Replayed::Equal,
        false => different(&format!("pack {tuple}"), case.packed.0.clone(), Bytes::encode(&packed).0),
    }
}
