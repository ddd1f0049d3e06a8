//! The types of fields, and the expressions that are not fields.

use super::{evaluate, file, keys, message, record};
use crate::{
    expression::{KeyExpression, concat, field, literal},
    value::Tuple,
};
use foundationdb_tuple::Element;

const TYPES: &str = r#"
    syntax = "proto2";
    import "tuple_fields.proto";
    package test;
    enum Size { SMALL = 1; LARGE = 12; }
    message Record {
        optional int32 int32 = 1;
        optional int64 int64 = 2;
        optional sint32 sint32 = 3;
        optional sint64 sint64 = 4;
        optional sfixed32 sfixed32 = 5;
        optional sfixed64 sfixed64 = 6;
        optional bool bool = 7;
        optional string string = 8;
        optional bytes bytes = 9;
        optional float float = 10;
        optional double double = 11;
        optional Size size = 12;
        optional com.apple.foundationdb.record.UUID uuid = 13;
        repeated com.apple.foundationdb.record.NullableString texts = 14;
        map<string, int32> counts = 15;
        map<int32, Inner> inner = 16;
        repeated Size sizes = 17;
    }
    message Inner { optional string name = 1; }
"#;

fn of(text: &str) -> prost_reflect::DynamicMessage {
    record(&message(&file(TYPES), "Record"), text)
}

#[test]
fn every_type_is_an_element_of_its_own_kind() {
    let record = of(r#"
        int32: -1 int64: 9223372036854775807 sint32: -2 sint64: -3 sfixed32: -4 sfixed64: -5
        bool: true string: "a\0b" bytes: "\x00\xff" float: 1.5 double: -0.0 size: LARGE
        uuid { most_significant_bits: 1 least_significant_bits: -1 }
    "#);
    let value = |name: &str| {
        let key = evaluate(&field(name).into(), &record).expect("evaluated").remove(0).tuple();
        key.elements()[0].clone()
    };
    assert_eq!(value("int32"), Element::Int(-1));
    assert_eq!(value("int64"), Element::Int(i64::MAX));
    assert_eq!(value("sint32"), Element::Int(-2));
    assert_eq!(value("sint64"), Element::Int(-3));
    assert_eq!(value("sfixed32"), Element::Int(-4));
    assert_eq!(value("sfixed64"), Element::Int(-5));
    assert_eq!(value("bool"), Element::Bool(true));
    assert_eq!(value("string"), Element::String("a\0b".into()));
    assert_eq!(value("bytes"), Element::Bytes(vec![0, 255].into()));
    assert_eq!(value("float"), Element::Float(1.5));
    assert_eq!(Tuple::from(value("double")), Tuple::from(-0.0_f64));
    assert_eq!(value("size"), Element::Int(12));
    assert_eq!(value("uuid"), Element::Uuid(uuid::Uuid::from_u64_pair(1, u64::MAX)));
}

#[test]
fn lists_have_the_elements_of_their_types() {
    let record = of(r#"texts { value: "a" } texts { } sizes: LARGE sizes: SMALL"#);
    assert_eq!(keys(field("texts").fan_out(), &record), [r#"["a"]"#, r#"[""]"#]);
    assert_eq!(keys(field("sizes").concatenate(), &record), ["[[12, 1]]"]);
}

#[test]
fn a_map_is_a_list_of_its_entries_by_key() {
    let record = of(r#"
        counts { key: "b" value: 2 } counts { key: "a" value: 0 } counts { key: "" value: 1 }
        inner { key: 2 value { name: "x" } } inner { key: 0 value { } }
    "#);
    let entry = || concat(["key", "value"]);
    let expected = [r#"["", 1]"#, r#"["a", 0]"#, r#"["b", 2]"#];
    assert_eq!(keys(field("counts").fan_out().nest(entry()), &record), expected);
    let names = concat([field("key").into(), field("value").nest("name")]);
    assert_eq!(keys(field("inner").fan_out().nest(names), &record), [r#"[0, null]"#, r#"[2, "x"]"#]);
    assert!(keys(field("counts").fan_out().nest("key"), &of("")).is_empty());
}

/// Also where the syntax does not record whether scalars are present.
#[test]
fn the_key_and_the_value_of_an_entry_are_never_null() {
    let proto = r#"syntax = "proto3"; message Record { map<int32, string> map = 1; }"#;
    let record =
        record(&message(&file(proto), "Record"), r#"map { key: 0 value: "" } map { key: -1 value: "a" }"#);
    let entries = field("map").fan_out().nest(concat(["key", "value"]));
    assert_eq!(keys(entries, &record), [r#"[-1, "a"]"#, r#"[0, ""]"#]);
}

#[test]
fn a_version_a_record_type_and_literals_are_columns() {
    let all = concat([
        KeyExpression::Version,
        KeyExpression::RecordType,
        literal("x"),
        literal(None::<i64>),
        field("int32").into(),
    ]);
    assert_eq!(keys(all.clone(), &of("int32: 5")), [r#"[@070707070707070707070001, 4, "x", null, 5]"#]);
    assert_eq!(all.version_columns(), 1);
    assert_eq!(field("inner").fan_out().nest(concat([KeyExpression::Version])).version_columns(), 1);
    assert_eq!(keys(KeyExpression::Empty, &of("")), ["[]"]);
}
