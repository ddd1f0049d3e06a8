//! Random records. The values are few, so that conditions hold for some records.

use super::{
    model::{Fields, Record, Slot},
    schema::{FieldOf, KeyedBy, Kind, PART, Schema, TYPES, fields_of},
};
use shaketable_record::value::{IntoValue, Value};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;
use uuid::Uuid;

const TEXTS: [&str; 13] = [
    "",
    "b a.B-b",
    "a",
    "A",
    "ab",
    "aB",
    "a\u{10ffff}",
    "b",
    "ba",
    "b\u{10000}",
    "\u{10ffff}b",
    "\u{c4}a",
    "\u{e4}a",
];
const BYTES: [&[u8]; 6] = [&[], &[0], &[1], &[1, 255], &[255], &[255, 255]];
const UUIDS: [(u64, u64); 4] = [(0, 0), (0, u64::MAX), (1 << 63, 0), (u64::MAX, 1)];
const INTS: [i64; 7] = [-300, -1, 0, 1, 2, 3, 255];

/// A value of a field of this type.
pub fn value(kind: Kind, rng: &mut Stream) -> Value {
    match kind {
        Kind::Int | Kind::WrappedInt => (*rng.pick(&INTS)).into_value(),
        Kind::Enum => (rng.below(3) as i64).into_value(),
        Kind::Bool => rng.chance(0.5).into_value(),
        Kind::Text | Kind::WrappedText => (*rng.pick(&TEXTS)).into_value(),
        Kind::Bytes => (*rng.pick(&BYTES)).into_value(),
        Kind::Double => (*rng.pick(&[-1.5, 0.0, 0.5, 2.0])).into_value(),
        Kind::Float => (*rng.pick(&[-1.5f32, 0.0, 0.5, 2.0])).into_value(),
        Kind::Uuid => {
            let (high, low) = *rng.pick(&UUIDS);
            Uuid::from_u64_pair(high, low).into_value()
        }
        Kind::Part | Kind::Entry => panic!("a message is no value"),
    }
}

/// Whether a value is the default of its type.
pub(super) fn is_default(value: &Value) -> bool {
    let defaults: [Value; 6] = [
        0.into_value(),
        "".into_value(),
        false.into_value(),
        (&[] as &[u8]).into_value(),
        0.0.into_value(),
        0.0f32.into_value(),
    ];
    defaults.contains(value)
}

fn fields(of: &[FieldOf], presence: bool, rng: &mut Stream) -> Fields {
    let mut fields = Fields::new();
    for FieldOf { name, kind, repeated } in of {
        if rng.chance(0.25) {
            continue;
        }
        let count = rng.below(4);
        let slot = match (kind, repeated) {
            (Kind::Part, false) => Slot::Part(self::fields(PART, presence, rng)),
            (Kind::Part, true) => {
                Slot::Parts((0..count).map(|_| self::fields(PART, presence, rng)).collect())
            }
            (Kind::Entry, _) => Slot::Parts(entries(count, rng)),
            (kind, true) => Slot::Many((0..count).map(|_| value(*kind, rng)).collect()),
            (kind, false) => match value(*kind, rng) {
                value if !presence && !kind.is_message() && is_default(&value) => continue,
                value => Slot::One(value),
            },
        };
        // A list without elements is not present.
        let is_empty = match &slot {
            Slot::Many(values) => values.is_empty(),
            Slot::Parts(parts) => parts.is_empty(),
            Slot::One(_) | Slot::Part(_) => false,
        };
        if !is_empty {
            fields.insert(name, slot);
        }
    }
    fields
}

/// The entries of a map, by their keys.
fn entries(count: u64, rng: &mut Stream) -> Vec<Fields> {
    let pair = |_| (*rng.pick(&TEXTS), *rng.pick(&INTS));
    let map: BTreeMap<&str, i64> = (0..count).map(pair).collect();
    map.into_iter().map(|(key, value)| entry(key.into_value(), value.into_value())).collect()
}

/// An entry of a map as the message that it is in keys. Both of its fields are always present.
pub(super) fn entry(key: Value, value: Value) -> Fields {
    [("key", Slot::One(key)), ("value", Slot::One(value))].into()
}

/// A record with this number. What its primary key has follows from the number: a number names a record.
pub fn record(id: i64, schema: &Schema, rng: &mut Stream) -> Record {
    let presence = schema.presence;
    let number = match schema.keyed_by {
        KeyedBy::Type => id.unsigned_abs() % 8,
        _ => rng.below(8),
    };
    let [item, other, more] = TYPES;
    let record_type = match number {
        0 => more,
        4 | 5 => other,
        _ => item,
    };
    let mut fields = fields(fields_of(record_type), presence, rng);
    if let KeyedBy::Field(name) = schema.keyed_by {
        let number = id.unsigned_abs() as usize % (TEXTS.len() + 1);
        let value = match name {
            "name" => TEXTS.get(number).map(|text| text.into_value()),
            _ => INTS.get(number).map(|number| number.into_value()),
        };
        match value.filter(|value| presence || !is_default(value)) {
            Some(value) => fields.insert(name, Slot::One(value)),
            None => fields.remove(name),
        };
    }
    Record { id, record_type, fields, version: None }
}
