//! What a builder makes of a file, and of the calls that follow.

use super::{SIMPLE, builder, file_text, orders};
use crate::{
    expression::{KeyExpression, concatenate_fields, field},
    metadata::{Index, MetaDataError, RecordMetaData, compile, compile_files, index_types},
    value::{IntoValue, Tuple},
};
use prost_reflect::DescriptorPool;

#[test]
fn rl4_options_make_primary_keys_and_indexes() {
    let meta_data = RecordMetaData::from_proto(SIMPLE).expect("the first example");
    let record_type = meta_data.record_type("MySimpleRecord").expect("a record type");
    assert_eq!(record_type.primary_key, field("rec_no").into());
    assert_eq!(record_type.union_field.name(), "_MySimpleRecord");
    assert_eq!(record_type.key, 1.into_value());
    assert_eq!(meta_data.union().name(), "UnionDescriptor");
    let indexes: Vec<_> = meta_data
        .indexes()
        .map(|index| (&*index.name, index.expression.to_string(), &*index.kind, index.unique))
        .collect();
    let expected = [
        ("MySimpleRecord$num_value_3_indexed", "num_value_3_indexed".into(), "value", false),
        ("MySimpleRecord$num_value_unique", "num_value_unique".into(), "value", true),
        ("MySimpleRecord$str_value_indexed", "str_value_indexed".into(), "value", false),
    ];
    assert_eq!(indexes, expected);
    assert_eq!(meta_data.version(), 3);
    assert!(meta_data.indexes_of("MySimpleRecord").all(|index| (1..=3).contains(&index.subspace_key)));
}

#[test]
fn rl4_an_index_option_has_a_type_and_settings() {
    let messages = r#"message Order {
        optional int64 id = 1 [key];
        optional int32 score = 2 [index = { type: "rank" }];
        repeated string tags = 3 [index = { options: { key: "a" value: "b" } options: { key: "unique" value: "true" } }];
    }"#;
    let meta_data = builder(messages).and_then(|builder| builder.build()).expect("valid");
    let score = meta_data.index("Order$score").expect("a rank index");
    assert_eq!((&*score.kind, &score.expression), (index_types::RANK, &field("score").ungrouped()));
    let tags = meta_data.index("Order$tags").expect("an index of a list");
    assert_eq!(tags.expression, field("tags").fan_out().into());
    assert!(tags.unique);
    assert_eq!(tags.options, [("a".to_owned(), "b".to_owned())].into());
}

#[test]
fn rl4_the_older_form_of_an_index_option() {
    let field = |n: i32, kind: &str| {
        format!(
            "optional int32 {} = {n} [(com.apple.foundationdb.record.field).indexed = {kind}];",
            kind.to_lowercase()
        )
    };
    let fields = [field(2, "INDEX"), field(3, "UNIQUE"), field(4, "RANK"), field(5, "RANK_UNIQUE")].concat();
    let messages = format!("message Order {{ optional int64 id = 1 [key]; {fields} }}");
    let meta_data = builder(&messages).and_then(|builder| builder.build()).expect("valid");
    let indexes: Vec<_> =
        meta_data.indexes().map(|index| (&*index.name, &*index.kind, index.unique)).collect();
    let expected = [
        ("Order$index", "value", false),
        ("Order$rank", "rank", false),
        ("Order$rank_unique", "rank", true),
        ("Order$unique", "value", true),
    ];
    assert_eq!(indexes, expected);
}

#[test]
fn rl4_options_of_the_file_and_of_messages() {
    let text = r#"
        syntax = "proto3";
        import "record_metadata_options.proto";
        package a.b;
        option (com.apple.foundationdb.record.schema) = { store_record_versions: true split_long_records: false };
        message Order {
            option (com.apple.foundationdb.record.record) = { usage: RECORD record_type_key: { string_value: "o" } };
            int64 id = 1 [(com.apple.foundationdb.record.field) = { primary_key: true index: {} }];
        }
        message Line { option (com.apple.foundationdb.record.record).usage = NESTED; }
        message RecordTypeUnion { oneof of { Order order = 1; } }
    "#;
    let meta_data = RecordMetaData::from_proto(text).expect("valid");
    assert!(meta_data.stores_record_versions() && !meta_data.splits_long_records());
    assert_eq!(meta_data.record_type("Order").map(|found| found.key.clone()), Some("o".into_value()));
    assert!(meta_data.index("Order$id").is_some());
    assert_eq!(meta_data.version(), 3);
}

/// The union's field of a type is the one named after it, or the one with the largest number; the key of the
/// type is the smallest number.
#[test]
fn a_type_with_several_fields_of_the_union() {
    let of = |fields: &str| {
        let messages = format!(
            "message Order {{ optional int64 id = 1 [key]; }} message RecordTypeUnion {{ {fields} }}"
        );
        let meta_data = builder(&messages).and_then(|builder| builder.build()).expect("valid");
        let record_type = meta_data.record_type("Order").expect("a record type").clone();
        (record_type.union_field.number(), Tuple::from(record_type.key.clone()))
    };
    assert_eq!(of("optional Order a = 7; optional Order b = 3;"), (7, Tuple::from(3)));
    assert_eq!(of("optional Order _Order = 3; optional Order b = 7;"), (3, Tuple::from(3)));
}

#[test]
fn rl7_the_builders_example() {
    let messages = r#"
        message Restaurant { required int64 rest_no = 1 [key]; repeated Review reviews = 2; }
        message Review { optional int32 rating = 1; }
        message Node { optional string parent_path = 1; optional string child_name = 2; }
        message RecordTypeUnion { optional Restaurant _Restaurant = 1; optional Node _Node = 2; }
    "#;
    let mut builder = builder(messages).expect("valid records");
    builder
        .record_type("Node")
        .expect("a type")
        .set_primary_key(concatenate_fields(["parent_path", "child_name"]));
    let ratings = field("reviews").fan_out().nest("rating");
    builder.add_index(Some("Restaurant"), Index::new("review_rating", ratings)).expect("added");
    builder.add_index(None, Index::new("all", KeyExpression::RecordType)).expect("added");
    let both = Index::new("both", KeyExpression::Empty.group_last(0)).kind(index_types::COUNT);
    builder.add_multi_type_index(["Node", "Restaurant", "Node"], both).expect("added");
    let meta_data = builder.build().expect("valid");
    let of = |name| meta_data.indexes_of(name).map(|index| &*index.name).collect::<Vec<_>>();
    assert_eq!(of("Restaurant"), ["all", "both", "review_rating"]);
    assert_eq!(of("Node"), ["all", "both"]);
    let types = |name| meta_data.types_of(meta_data.index(name).expect("an index")).map(<[String]>::to_vec);
    assert_eq!(types("both"), Some(vec!["Node".into(), "Restaurant".into()]));
    assert_eq!(types("all"), None);
    let node = meta_data.record_type("Node").expect("a type");
    assert_eq!(meta_data.record_type_of(&node.message), Some(node));
}

#[test]
fn each_change_is_a_version_and_has_a_number() {
    let mut builder = orders();
    assert_eq!(builder.version(), 0);
    builder.add_index(Some("Order"), Index::new("a", "flower")).expect("added");
    builder.add_index(Some("Order"), Index::new("b", "price")).expect("added");
    builder.set_store_record_versions(true).expect("set").set_store_record_versions(true).expect("set");
    assert_eq!(builder.version(), 3);
    builder.change_index(Index::new("a", "price").unique()).expect("changed");
    builder.remove_index("b").expect("removed");
    builder.add_index(Some("Order"), Index::new("b", "flower")).expect("added again");
    let meta_data = builder.build().expect("valid");
    let versions = |name| {
        let index: &Index = meta_data.index(name).expect("an index");
        (index.subspace_key, index.added_version, index.last_modified_version)
    };
    assert_eq!((versions("a"), versions("b"), meta_data.version()), ((1, 1, 4), (3, 6, 6), 6));
    let former = &meta_data.former_indexes()[0];
    assert_eq!((&*former.name, former.subspace_key), ("b", 2));
    assert_eq!((former.added_version, former.removed_version), (2, 5));
    assert!(meta_data.index("a").is_some_and(|index| index.unique));
    builder.set_version(i32::MAX);
    let exhausted = builder.add_index(None, Index::new("c", "id")).expect_err("no next version");
    assert_eq!(exhausted, MetaDataError::Exhausted("version"));
}

#[test]
fn records_are_updated_by_the_numbers_of_the_union() {
    let mut builder =
        builder(r#"message Order { optional int64 id = 1 [key]; optional string flower = 2 [index = {}]; }"#)
            .expect("valid records");
    let before = builder.build().expect("valid");
    let next = r#"
        message Purchase { optional int64 id = 1; optional string flower = 2 [index = {}]; optional int32 price = 3; }
        message Shop { optional int64 id = 1 [key]; optional string name = 2 [index = {}]; }
        message RecordTypeUnion { optional Purchase _Purchase = 1; optional Shop _Shop = 2; }
    "#;
    builder.update_records(&compile(&file_text(next)).expect("a valid file")).expect("updated");
    let after = builder.build().expect("valid");
    assert_eq!(after.record_types().map(|found| &*found.name).collect::<Vec<_>>(), ["Purchase", "Shop"]);
    let purchase = after.record_type("Purchase").expect("the renamed type");
    assert_eq!((purchase.since_version, &purchase.primary_key), (0, &field("id").into()));
    assert_eq!(after.record_type("Shop").map(|shop| shop.since_version), Some(2));
    let of = |name| after.indexes_of(name).map(|index| &*index.name).collect::<Vec<_>>();
    assert_eq!(of("Purchase"), ["Order$flower"]);
    assert_eq!(of("Shop"), ["Shop$name"]);
    assert_eq!(after.validate_evolution(&before), Ok(()));
}

#[test]
fn types_that_are_renamed_in_a_chain_or_swapped_keep_their_indexes() {
    let text = |first: &str, second: &str, third: &str| {
        let fields = |name: &str| {
            format!(
                "message {name} {{ optional int64 id = 1 [key]; optional string flower = 2 [index = {{}}]; }}"
            )
        };
        let types = [first, second, third].map(fields).join(" ");
        file_text(&format!(
            "{types} message RecordTypeUnion {{ optional {first} a = 1; optional {second} b = 2; optional {third} c = 3; }}"
        ))
    };
    for (first, second, third) in [("B", "C", "D"), ("D", "A", "B"), ("B", "A", "C"), ("C", "A", "B")] {
        let mut builder = RecordMetaData::builder();
        builder.set_records(&compile(&text("A", "B", "C")).expect("a file")).expect("records");
        builder.add_multi_type_index(["A", "C"], Index::new("both", "id")).expect("added");
        builder.update_records(&compile(&text(first, second, third)).expect("a file")).expect("updated");
        let after = builder.build().expect("valid");
        let of = |name| after.indexes_of(name).map(|index| &*index.name).collect::<Vec<_>>();
        assert_eq!(of(first), ["A$flower", "both"], "{first} {second} {third}");
        assert_eq!(of(second), ["B$flower"], "{first} {second} {third}");
        assert_eq!(of(third), ["C$flower", "both"], "{first} {second} {third}");
    }
}

#[test]
fn an_inline_index_that_was_removed_does_not_come_back() {
    let text = r#"message Order { optional int64 id = 1 [key]; optional string flower = 2 [index = {}]; }"#;
    let mut builder = builder(text).expect("valid records");
    builder.remove_index("Order$flower").expect("removed");
    builder.update_records(&compile(&file_text(text)).expect("a valid file")).expect("updated");
    assert_eq!(builder.build().map(|meta_data| meta_data.indexes().count()), Ok(0));
}

#[test]
fn a_refused_update_changes_nothing() {
    let mut builder = orders();
    let without_union = compile(r#"syntax = "proto2"; message Order { }"#).expect("a valid file");
    assert!(builder.update_records(&without_union).is_err());
    assert_eq!(builder.build().map(|meta_data| meta_data.version()), Ok(0));
}

/// As an application has it that compiles its files when it is built.
#[test]
fn a_descriptor_set_is_as_good_as_text() {
    let set = compile(SIMPLE).expect("a valid file").parent_pool().encode_to_vec();
    let pool = DescriptorPool::decode(&set[..]).expect("a descriptor set");
    let file = pool.get_file_by_name("records.proto").expect("the file");
    let meta_data = RecordMetaData::builder().set_records(&file).and_then(|builder| builder.build());
    assert_eq!(meta_data.map(|meta_data| meta_data.indexes().count()), Ok(3));
}

#[test]
fn files_import_each_other() {
    let order = r#"
        syntax = "proto3"; import "shared/line.proto"; import "google/protobuf/timestamp.proto";
        message Order { int64 id = 1; shop.Line line = 2; google.protobuf.Timestamp at = 3; }
        message RecordTypeUnion { Order _Order = 1; }
    "#;
    let line = r#"syntax = "proto2"; package shop; message Line { optional int32 amount = 1; }"#;
    let file = compile_files("order.proto", [("order.proto", order), ("shared/line.proto", line)])
        .expect("valid files");
    let mut builder = RecordMetaData::builder();
    builder.set_records(&file).expect("valid records");
    builder.record_type("Order").expect("a type").set_primary_key("id");
    let nested = |name, child| field(name).nest(child);
    builder.add_index(None, Index::new("amount", nested("line", "amount"))).expect("added");
    builder.add_index(None, Index::new("at", nested("at", "seconds"))).expect("added");
    assert_eq!(builder.build().map(|meta_data| meta_data.version()), Ok(2));
}

#[test]
fn a_file_that_does_not_compile_is_refused_with_its_name() {
    let refused = |text: &str| compile(text).expect_err("refused").to_string();
    assert!(refused("message {").contains("records.proto"), "{}", refused("message {"));
    let missing = refused(r#"syntax = "proto3"; import "none.proto";"#);
    assert!(missing.contains("none.proto"), "{missing}");
    let deep = "message A { ".repeat(10_000);
    assert!(compile(&deep).is_err());
}
