//! Records that meta-data refuses, each with the path in the message.

use super::{builder, orders};
use crate::{
    expression::{KeyExpression, concat, field, function},
    metadata::{Index, MetaDataError, RecordMetaData, Usage, compile},
};
use foundationdb_tuple::Element;

/// Why the records, or the meta-data with them, are refused.
fn refused(messages: &str) -> MetaDataError {
    builder(messages).and_then(|builder| builder.build()).map(|_| ()).expect_err("refused")
}

fn text_of(messages: &str) -> String {
    refused(messages).to_string()
}

#[test]
fn rl5_unsigned_types_are_refused_at_any_depth() {
    for kind in ["uint32", "uint64", "fixed32", "fixed64"] {
        let field = format!("message Order {{ optional int64 id = 1 [key]; optional {kind} n = 2; }}");
        let expected = MetaDataError::Unsigned { path: "Order.n".into(), kind: kind.into() };
        assert_eq!(refused(&field), expected);
    }
    let path_of = |messages: &str| match refused(messages) {
        MetaDataError::Unsigned { path, .. } => path,
        other => panic!("{other}"),
    };
    let order = "message Order { optional int64 id = 1 [key]; ";
    assert_eq!(path_of(&format!("{order} repeated uint32 list = 2; }}")), "Order.list");
    assert_eq!(path_of(&format!("{order} map<string, uint32> map = 2; }}")), "Order.map.value");
    assert_eq!(path_of(&format!("{order} map<fixed64, string> map = 2; }}")), "Order.map.key");
    assert_eq!(path_of(&format!("{order} oneof of {{ uint32 one = 2; }} }}")), "Order.one");
    assert_eq!(
        path_of(&format!("{order} optional group Part = 2 {{ optional uint32 n = 1; }} }}")),
        "Order.part.n"
    );
    assert_eq!(
        path_of(&format!(
            "{order} optional A a = 2; }} message A {{ repeated B b = 1; }} message B {{ optional Order order = 1; optional fixed32 n = 2; }}"
        )),
        "Order.a.b.n"
    );
    assert_eq!(path_of(&format!("{order} }} message Unused {{ optional uint64 n = 1; }}")), "Unused.n");
    let recursive =
        format!("{order} optional Order self = 2; repeated A a = 3; }} message A {{ optional A a = 1; }}");
    let builder = builder(&recursive).expect("it is valid");
    // What a message that contains itself would show of itself has no end.
    let shown = format!("{builder:?} {:?}", builder.build().expect("it is valid"));
    assert_eq!(shown.matches("message: \"Order\"").count(), 2, "{shown}");
}

#[test]
fn rl6_a_union_is_needed_and_has_one_message_for_each_type() {
    let order = "message Order { optional int64 id = 1 [key]; }";
    let with = |rest: &str| text_of(&format!("{order} {rest}"));
    let plain = compile(r#"syntax = "proto2"; message Order { }"#).expect("a valid file");
    let none = RecordMetaData::builder().set_records(&plain).map(|_| ()).expect_err("refused");
    assert_eq!(none, MetaDataError::NoUnion { file: "records.proto".into() });
    assert_eq!(
        with(
            "message U { option (usage) = UNION; optional Order o = 1; } message RecordTypeUnion { optional Order o = 1; }"
        ),
        "both U and RecordTypeUnion are the union"
    );
    assert_eq!(with("message RecordTypeUnion { }"), "the union RecordTypeUnion has no record types");
    assert_eq!(
        with("message RecordTypeUnion { optional Order o = 1; optional int32 n = 2; }"),
        "field RecordTypeUnion.n of the union is not a message"
    );
    assert_eq!(
        with("message RecordTypeUnion { optional group O = 1 { optional int64 id = 1 [key]; } }"),
        "field RecordTypeUnion.o of the union is not a message"
    );
    assert_eq!(
        with("message RecordTypeUnion { repeated Order o = 1; }"),
        "field RecordTypeUnion.o of the union is repeated"
    );
    assert_eq!(
        with("message RecordTypeUnion { map<string, Order> o = 1; }"),
        "field RecordTypeUnion.o of the union is repeated"
    );
    assert_eq!(
        with("message RecordTypeUnion { oneof a { Order o = 1; } optional Order p = 2; }"),
        "the union RecordTypeUnion may have one oneof with all its fields, or none"
    );
    assert_eq!(
        with("message R { option (usage) = RECORD; } message RecordTypeUnion { optional Order o = 1; }"),
        "the message R has the usage RECORD, but the union has no field of it"
    );
    assert_eq!(
        with("message RecordTypeUnion { option (usage) = NESTED; optional Order o = 1; }"),
        "the message RecordTypeUnion cannot have the usage Nested"
    );
}

#[test]
fn a_nested_message_is_not_a_record_type() {
    let messages = r#"
        message Line { option (usage) = NESTED; optional int64 id = 1 [key]; }
        message RecordTypeUnion { optional Line _Line = 1; }
    "#;
    let expected = MetaDataError::UnionFieldUsage {
        path: "RecordTypeUnion._Line".into(),
        message: "Line".into(),
        usage: Usage::Nested,
    };
    assert_eq!(refused(messages), expected);
    let own = "message A { message RecordTypeUnion { optional int64 id = 1 [key]; } }
        message U { option (usage) = UNION; optional A.RecordTypeUnion a = 1; }";
    assert!(matches!(refused(own), MetaDataError::UnionFieldUsage { usage: Usage::Unset, .. }));
}

#[test]
fn two_record_types_have_two_names() {
    let messages = r#"
        message A { message Order { optional int64 id = 1 [key]; } }
        message B { message Order { optional int64 id = 1 [key]; } }
        message RecordTypeUnion { optional A.Order a = 1; optional B.Order b = 2; }
    "#;
    assert_eq!(refused(messages), MetaDataError::TwoRecordTypes { name: "Order".into() });
}

#[test]
fn rl8_a_record_type_has_one_primary_key() {
    let key = |fields: &str| {
        text_of(&format!("message Order {{ {fields} }} message Line {{ repeated int64 ids = 1; }}"))
    };
    assert_eq!(key("optional int64 id = 1;"), "record type Order has no primary key");
    assert_eq!(
        key("optional int64 id = 1 [key]; optional int64 other = 2 [key];"),
        "record type Order has two primary keys: id and other"
    );
    assert_eq!(
        key("repeated int64 id = 1 [key];"),
        "the primary key of Order can fan out to other than one key: Order.id[]"
    );
    assert_eq!(
        key("optional Line id = 1 [key];"),
        "the primary key of Order: field id is a message: nest a field of it"
    );
    let set = |key: KeyExpression| {
        let mut builder = orders();
        builder.record_type("Order").expect("a type").set_primary_key(key);
        builder.build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(
        set(concat([field("id").into(), field("lines").fan_out().nest("amount")])),
        Err("the primary key of Order can fan out to other than one key: Order.lines[].amount".into())
    );
    assert_eq!(
        set(function("words", "flower")),
        Err("the primary key of Order can fan out to other than one key: Order.words(flower)".into())
    );
    assert_eq!(
        set(concat([field("id").into(), KeyExpression::Version])),
        Err("the primary key of Order contains the record's version".into())
    );
    assert_eq!(
        set(field("line").nest(KeyExpression::Version)),
        Err("the primary key of Order contains the record's version".into())
    );
    assert_eq!(set(KeyExpression::Empty), Err("the primary key of Order has no columns".into()));
    assert_eq!(set(field("none").into()), Err("the primary key of Order: Order has no field none".into()));
    assert_eq!(set(concat([KeyExpression::RecordType, field("tags").concatenate().into()])), Ok(()));
}

#[test]
fn record_type_keys_differ_and_can_be_stored() {
    let messages = r#"
        message A { optional int64 id = 1 [key]; } message B { optional int64 id = 1 [key]; }
        message RecordTypeUnion { optional A _A = 1; optional B _B = 2; }
    "#;
    let with = |key: Element<'static>| {
        let mut builder = builder(messages).expect("valid records");
        builder.record_type("A").expect("a type").set_record_type_key(key);
        builder.build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with(Element::Int(2)), Err("record types A and B have the same key 2".into()));
    assert_eq!(with(Element::Nil), Err("the key of record type A cannot be null".into()));
    assert_eq!(with(Element::Tuple(vec![])), Err("the key of record type A cannot be []".into()));
    assert_eq!(with(Element::String("a".into())), Ok(()));
}

#[test]
fn versions_are_not_later_than_the_meta_datas() {
    let index = |added, modified| {
        let mut builder = orders();
        let mut index = Index::new("a", "flower");
        (index.added_version, index.last_modified_version) = (added, modified);
        builder.add_index(Some("Order"), index).expect("added").set_version(5);
        builder.build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(index(3, 5), Ok(()));
    assert_eq!(
        index(4, 3),
        Err("index a: added_version is version 4, later than last_modified_version, which is 3".into())
    );
    assert_eq!(
        index(4, 6),
        Err("index a: last_modified_version is version 6, later than the meta-data, which is 5".into())
    );
    let mut builder = orders();
    builder.record_type("Order").expect("a type").set_since_version(1);
    assert!(matches!(builder.build(), Err(MetaDataError::Version { what: "record type", .. })));
    let mut builder = orders();
    builder
        .add_index(None, Index::new("a", "id"))
        .expect("added")
        .remove_index("a")
        .expect("removed")
        .set_version(1);
    assert!(matches!(builder.build(), Err(MetaDataError::Version { what: "former index", .. })));
}

#[test]
fn a_builder_has_one_file_of_records() {
    assert_eq!(RecordMetaData::builder().build().map(|_| ()), Err(MetaDataError::Records));
    let before = RecordMetaData::builder().add_index(None, Index::new("a", "id")).map(|_| ());
    assert_eq!(before, Err(MetaDataError::Records));
    let file = compile(super::SIMPLE).expect("a valid file");
    assert_eq!(RecordMetaData::builder().update_records(&file).map(|_| ()), Err(MetaDataError::Records));
    let mut builder = orders();
    assert_eq!(builder.set_records(&file).map(|_| ()), Err(MetaDataError::Records));
    let unknown = builder.record_type("None").map(|_| ());
    assert_eq!(unknown, Err(MetaDataError::UnknownRecordType { name: "None".into() }));
}

/// An extension of the same name that says something else.
#[test]
fn options_of_another_form_are_refused() {
    let options = r#"
        syntax = "proto2"; package com.apple.foundationdb.record; import "google/protobuf/descriptor.proto";
        extend google.protobuf.FieldOptions { optional bytes field = 1233; }
    "#;
    let records = r#"
        syntax = "proto2"; import "options.proto";
        message Order { optional int64 id = 1 [(com.apple.foundationdb.record.field) = "x"]; }
        message RecordTypeUnion { optional Order _Order = 1; }
    "#;
    let file = crate::metadata::compile_files("r.proto", [("r.proto", records), ("options.proto", options)])
        .expect("valid files");
    let refused = RecordMetaData::builder().set_records(&file).map(|_| ());
    assert_eq!(refused, Err(MetaDataError::Options { of: "Order.id".into() }));
}
