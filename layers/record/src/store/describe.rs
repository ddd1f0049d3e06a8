//! The rows of a record store in words, for people who look at its keys: tests, time lines, administrators.

use super::{
    keyspace::{Part, suffix},
    serial,
};
use crate::{
    metadata::RecordMetaData,
    value::{Shown, Tuple, Value},
};
use bytes::Bytes;
use foundationdb_tuple::{Element, Subspace};

/// A key of the store in this subspace in words: `record (5,)`, `index by name: ("Ann", 5)`. Indexes that the
/// meta-data does not have are shown by number. `None` if the key does not belong to the store, or to none of
/// its parts.
pub fn describe_key(store: &Subspace, meta_data: &RecordMetaData, key: &[u8]) -> Option<String> {
    let row = row(store, key)?;
    let (part, rest) = row.elements().split_first()?;
    let name = |number: &Value| {
        let is_it = |key: i64| *number == Element::Int(key);
        let index = meta_data.indexes().find(|index| is_it(index.subspace_key));
        index.map_or_else(|| format!("number {}", Shown(number)), |index| index.name.clone())
    };
    let of_index = |what: &str| {
        let (number, rest) = rest.split_first()?;
        let rest = if rest.is_empty() { String::new() } else { format!(": {}", shown(rest)) };
        Some(format!("{what} {}{rest}", name(number)))
    };
    match part {
        Element::Int(part) if *part == Part::Header as i64 => Some("the header".to_owned()),
        Element::Int(part) if *part == Part::Records as i64 => Some(record_row(rest)),
        Element::Int(part) if *part == Part::Indexes as i64 => of_index("index"),
        Element::Int(part) if *part == Part::Secondary as i64 => of_index("ranks of index"),
        Element::Int(part) if *part == Part::States as i64 => Some(format!("state of index {}", shown(rest))),
        Element::Int(part) if *part == Part::Ranges as i64 => of_index("built range of index"),
        Element::Int(part) if *part == Part::Violations as i64 => of_index("violation of index"),
        Element::Int(part) if *part == Part::Builds as i64 => of_index("build of index"),
        _ => None,
    }
}

/// The value of such a key in words: a whole record is shown with its fields. `None` for other rows.
pub fn describe_value(
    store: &Subspace,
    meta_data: &RecordMetaData,
    key: &[u8],
    value: &[u8],
) -> Option<String> {
    let row = row(store, key)?;
    match row.elements() {
        [Element::Int(part), primary_key @ .., Element::Int(suffix::UNSPLIT)]
            if *part == Part::Records as i64 && !primary_key.is_empty() =>
        {
            let stored = serial::decode(meta_data, &Tuple::default(), Bytes::copy_from_slice(value));
            stored.ok().map(|(of, message)| format!("{} {{{}}}", of.name, message.to_text_format()))
        }
        _ => None,
    }
}

fn row(store: &Subspace, key: &[u8]) -> Option<Tuple> {
    Tuple::unpack(key.strip_prefix(store.bytes())?)
}

fn record_row(row: &[Value]) -> String {
    match row.split_last() {
        Some((Element::Int(suffix::UNSPLIT), key)) => format!("record {}", shown(key)),
        Some((Element::Int(suffix::VERSION), key)) => format!("version of record {}", shown(key)),
        Some((Element::Int(part), key)) if *part >= suffix::FIRST_PART => {
            format!("part {part} of record {}", shown(key))
        }
        _ => format!("records {}", shown(row)),
    }
}

fn shown(elements: &[Value]) -> String {
    elements.iter().cloned().collect::<Tuple>().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expression::field, metadata::Index};
    use std::sync::Arc;

    const SCHEMA: &str = r#"
        syntax = "proto2";
        message Player { optional int64 id = 1; optional string name = 2; }
        message RecordTypeUnion { optional Player _Player = 1; }
    "#;

    fn meta_data() -> Arc<RecordMetaData> {
        let mut builder = RecordMetaData::builder();
        builder.set_records(&crate::metadata::compile(SCHEMA).expect("a valid file")).expect("valid records");
        builder.record_type("Player").expect("the type").set_primary_key(field("id"));
        builder.add_index(Some("Player"), Index::new("by_name", field("name"))).expect("a valid index");
        Arc::new(builder.build().expect("meta-data"))
    }

    #[test]
    fn rows_are_described_in_the_words_of_the_layer() {
        let (store, meta_data) = (Subspace::from("game"), meta_data());
        let number = meta_data.index("by_name").expect("the index").subspace_key;
        let described = |key: Vec<u8>| describe_key(&store, &meta_data, &key);
        let shown = |text: &str| Some(text.to_owned());
        assert_eq!(described(store.pack(&(0,))), shown("the header"));
        assert_eq!(described(store.pack(&(1, 5, 0))), shown("record [5]"));
        assert_eq!(described(store.pack(&(1, 5, -1))), shown("version of record [5]"));
        assert_eq!(described(store.pack(&(1, 5, 2))), shown("part 2 of record [5]"));
        assert_eq!(described(store.pack(&(1,))), shown("records []"));
        assert_eq!(described(store.pack(&(2, number, "Ann", 5))), shown("index by_name: [\"Ann\", 5]"));
        assert_eq!(described(store.pack(&(2, 77))), shown("index number 77"));
        assert_eq!(described(store.pack(&(5, "by_name"))), shown("state of index [\"by_name\"]"));
        assert_eq!(described(store.pack(&(4, 1))), None);
        assert_eq!(described(Subspace::from("other").pack(&(0,))), None);
    }

    #[test]
    fn a_record_is_shown_with_its_fields() {
        let (store, meta_data) = (Subspace::from("game"), meta_data());
        let player = meta_data.record_type("Player").expect("the type");
        let mut message = prost_reflect::DynamicMessage::new(player.message.clone());
        message.set_field_by_name("name", prost_reflect::Value::String("Ann".into()));
        let value = serial::encode(player, &message);
        let described = |key: Vec<u8>| describe_value(&store, &meta_data, &key, &value);
        assert_eq!(described(store.pack(&(1, 5, 0))), Some("Player {name:\"Ann\"}".to_owned()));
        assert_eq!(described(store.pack(&(1, 5, 1))), None);
        assert_eq!(described(store.pack(&(0,))), None);
    }
}
