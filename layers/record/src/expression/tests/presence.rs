//! Fields that are absent: by the syntax of their file, by their null stand-in, and in wrappers.

use super::{file, keys, message, null, record};
use crate::expression::{NullStandin, field};
use prost_reflect::DynamicMessage;

const PROTO2: &str = r#"
    syntax = "proto2";
    import "tuple_fields.proto";
    package test;
    message Record {
        optional int32 number = 1;
        optional string text = 2 [default = "none"];
        optional com.apple.foundationdb.record.NullableInt32 nullable = 3;
        repeated int32 list = 4;
        optional Inner inner = 5;
        optional group Part = 6 { optional int32 size = 1; }
    }
    message Inner { optional int32 value = 1; repeated int32 list = 2; }
"#;
const PROTO3: &str = r#"
    syntax = "proto3";
    import "record_metadata_options.proto";
    import "tuple_fields.proto";
    package test;
    message Record {
        int32 number = 1;
        string text = 2;
        optional int32 tracked = 3;
        com.apple.foundationdb.record.NullableInt32 nullable = 4;
        MyNullableInt32 mine = 5;
    }
    message MyNullableInt32 {
        option (com.apple.foundationdb.record.record).usage = NESTED;
        int32 value = 1;
    }
"#;

fn proto2(text: &str) -> DynamicMessage {
    record(&message(&file(PROTO2), "Record"), text)
}

fn proto3(text: &str) -> DynamicMessage {
    record(&message(&file(PROTO3), "Record"), text)
}

#[test]
fn rl22_proto2_tells_zero_from_absent() {
    assert_eq!(keys("number", &proto2("number: 0")), ["[0]"]);
    assert_eq!(keys("number", &proto2("")), ["[null]"]);
    assert_eq!(null("number", &proto2("")), Some(NullStandin::Null));
    assert_eq!(
        null(field("number").null(NullStandin::NullUnique), &proto2("")),
        Some(NullStandin::NullUnique)
    );
    assert_eq!(keys(field("number").not_null(), &proto2("")), ["[0]"]);
    assert_eq!(keys(field("text").not_null(), &proto2("")), [r#"["none"]"#]);
}

#[test]
fn rl22_proto3_without_presence_takes_zero_for_null() {
    assert_eq!(keys("number", &proto3("number: 0")), ["[null]"]);
    assert_eq!(keys("text", &proto3(r#"text: """#)), ["[null]"]);
    assert_eq!(keys("number", &proto3("number: 1")), ["[1]"]);
    assert_eq!(keys(field("number").not_null(), &proto3("")), ["[0]"]);
    assert_eq!(keys(field("text").not_null(), &proto3("")), [r#"[""]"#]);
    assert_eq!(null(field("text").not_null(), &proto3("")), None);
}

/// Also if the zero was written explicitly, as version 2 of protobuf does.
#[test]
fn rl22_proto3_takes_an_explicit_zero_for_null() {
    let bytes = [8, 0];
    let decoded = DynamicMessage::decode(message(&file(PROTO3), "Record"), &bytes[..]).expect("a message");
    assert_eq!(keys("number", &decoded), ["[null]"]);
    let decoded = DynamicMessage::decode(message(&file(PROTO2), "Record"), &bytes[..]).expect("a message");
    assert_eq!(keys("number", &decoded), ["[0]"]);
}

#[test]
fn rl22_proto3_optional_tells_zero_from_absent() {
    assert_eq!(keys("tracked", &proto3("tracked: 0")), ["[0]"]);
    assert_eq!(keys("tracked", &proto3("")), ["[null]"]);
}

#[test]
fn rl22_a_nullable_message_is_a_scalar_that_can_be_absent() {
    for of in [proto2, proto3] {
        assert_eq!(keys("nullable", &of("")), ["[null]"]);
        assert_eq!(keys("nullable", &of("nullable { }")), ["[0]"]);
        assert_eq!(keys("nullable", &of("nullable { value: 0 }")), ["[0]"]);
        assert_eq!(keys("nullable", &of("nullable { value: 7 }")), ["[7]"]);
        assert_eq!(keys(field("nullable").not_null(), &of("")), ["[0]"]);
    }
}

#[test]
fn rl22_a_wrapper_of_ones_own_is_null_as_its_message_is() {
    let wrapped = || field("mine").nest(field("value").not_null());
    assert_eq!(keys(wrapped(), &proto3("")), ["[null]"]);
    assert_eq!(keys(wrapped(), &proto3("mine { }")), ["[0]"]);
    assert_eq!(keys(wrapped(), &proto3("mine { value: 7 }")), ["[7]"]);
    assert_eq!(null(wrapped(), &proto3("")), Some(NullStandin::Null));
    let unique = field("mine").null(NullStandin::NullUnique).nest(field("value").not_null());
    assert_eq!(null(unique, &proto3("")), Some(NullStandin::NullUnique));
}

#[test]
fn a_field_of_an_absent_message_is_null() {
    let value = |value| field("inner").nest(value);
    assert_eq!(keys(value(field("value")), &proto2("")), ["[null]"]);
    assert_eq!(keys(value(field("value")), &proto2("inner { }")), ["[null]"]);
    assert_eq!(keys(value(field("value")), &proto2("inner { value: 0 }")), ["[0]"]);
    let unique = field("value").null(NullStandin::NullUnique);
    assert_eq!(null(value(unique), &proto2("")), Some(NullStandin::NullUnique));
    assert!(keys(value(field("list").fan_out()), &proto2("")).is_empty());
    assert_eq!(keys(value(field("list").concatenate()), &proto2("")), ["[null]"]);
    assert_eq!(keys(value(field("list").concatenate_or_empty()), &proto2("")), ["[null]"]);
    assert_eq!(keys(value(field("list").concatenate_or_empty()), &proto2("inner { }")), ["[[]]"]);
}

#[test]
fn a_list_without_values_is_null_unless_it_cannot_be() {
    assert_eq!(keys(field("list").concatenate(), &proto2("")), ["[null]"]);
    assert_eq!(keys(field("list").concatenate().not_null(), &proto2("")), ["[[]]"]);
    assert_eq!(keys(field("list").concatenate_or_empty(), &proto2("")), ["[[]]"]);
    assert_eq!(keys(field("list").concatenate(), &proto2("list: 1")), ["[[1]]"]);
}

#[test]
fn a_group_of_proto2_is_a_message() {
    let size = || field("part").nest("size");
    assert_eq!(keys(size(), &proto2("Part { size: 3 }")), ["[3]"]);
    assert_eq!(keys(size(), &proto2("")), ["[null]"]);
}
