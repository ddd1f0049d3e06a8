//! Meta-data as bytes and back.

use super::{SIMPLE, builder, file_text};
use crate::{
    expression::{
        Function, KeyExpression, concat, field, function, literal,
        tests::{any_expression, any_expression_file},
    },
    metadata::{Extensions, Index, MetaDataError, RecordMetaData, compile, compile_files, index_types},
};
use proptest::prelude::*;
use prost::Message;
use prost_reflect::FileDescriptor;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use std::{collections::BTreeSet, sync::LazyLock};

/// Meta-data with everything that can be stored.
fn full() -> (RecordMetaData, Extensions) {
    let messages = r#"
        option (com.apple.foundationdb.record.schema).store_record_versions = true;
        message Order {
            optional int64 id = 1 [key]; optional string flower = 2 [index = { unique: true }];
            optional com.apple.foundationdb.record.NullableInt32 price = 3; repeated Line lines = 4;
        }
        message Line { option (usage) = NESTED; optional int32 amount = 1; }
        message Shop { optional int64 id = 1; }
        message RecordTypeUnion { optional Order _Order = 1; optional Shop _Shop = 5; }
    "#;
    let mut extensions =
        Extensions { index_types: BTreeSet::from(["mine".to_owned()]), ..Extensions::default() };
    extensions.functions.register("half", Function::new(1, |key| Ok(vec![key.clone()])));
    let mut builder = builder(messages).expect("valid records");
    builder.set_extensions(extensions.clone());
    let shop = builder.record_type("Shop").expect("a type");
    shop.set_primary_key(concat([KeyExpression::RecordType, "id".into()]))
        .set_record_type_key("s")
        .set_since_version(1);
    let amounts = field("lines").fan_out().nest(field("amount").not_null());
    let indexes = [
        Index::new("amounts", amounts),
        Index::new("mine", function("half", concat([field("price")]))).kind("mine").option("k", "v"),
        Index::new("rank", concat([literal(1.5), "price".into()])).kind(index_types::RANK),
        Index::new("version", KeyExpression::Version).kind(index_types::VERSION),
    ];
    for index in indexes {
        builder.add_index(Some("Order"), index).expect("added");
    }
    builder.add_index(None, Index::new("ids", "id")).expect("added");
    builder.add_multi_type_index(["Order", "Shop"], Index::new("both", "id")).expect("added");
    // The last number is that of a former index.
    builder.add_index(None, Index::new("gone", "id")).expect("added");
    builder.remove_index("gone").expect("removed");
    (builder.build().expect("valid"), extensions)
}

/// Compares everything that can be asked for.
fn assert_same(a: &RecordMetaData, b: &RecordMetaData) {
    assert_eq!(a.version(), b.version());
    assert_eq!(a.union().full_name(), b.union().full_name());
    assert_eq!(a.stores_record_versions(), b.stores_record_versions());
    assert_eq!(a.splits_long_records(), b.splits_long_records());
    assert_eq!(a.former_indexes(), b.former_indexes());
    assert!(a.indexes().eq(b.indexes()));
    for index in a.indexes() {
        assert_eq!(a.types_of(index), b.types_of(index), "{}", index.name);
    }
    let types = |meta_data: &RecordMetaData| -> Vec<_> {
        let of = |found: &std::sync::Arc<crate::metadata::RecordType>| {
            let fields: Vec<_> = found.message.fields().map(|field| field.full_name().to_owned()).collect();
            let union_field = found.union_field.number();
            (
                found.name.clone(),
                union_field,
                found.primary_key.clone(),
                found.key.clone(),
                found.since_version,
                fields,
            )
        };
        meta_data.record_types().map(of).collect()
    };
    assert_eq!(types(a), types(b));
}

#[test]
fn meta_data_is_what_its_bytes_are() {
    let (meta_data, extensions) = full();
    let bytes = meta_data.to_bytes().expect("bytes");
    let read = RecordMetaData::from_bytes(&bytes, &extensions).expect("the same meta-data");
    assert_same(&meta_data, &read);
    assert_eq!(read.to_bytes(), Ok(bytes.clone()));
    assert_eq!(read.validate_evolution(&meta_data), Ok(()));
    let next = |meta_data: &RecordMetaData| {
        let mut builder = meta_data.to_builder();
        builder.add_index(None, Index::new("next", "id")).expect("added");
        builder.build().expect("valid")
    };
    assert_same(&next(&meta_data), &next(&read));
}

#[test]
fn meta_data_needs_what_the_application_adds() {
    let (meta_data, extensions) = full();
    let bytes = meta_data.to_bytes().expect("bytes");
    let refused =
        |extensions| RecordMetaData::from_bytes(&bytes, &extensions).expect_err("refused").to_string();
    let without_types = Extensions { index_types: BTreeSet::new(), ..extensions.clone() };
    assert_eq!(refused(without_types), "index mine is of the unknown type mine");
    let without_functions = Extensions { functions: Default::default(), ..extensions };
    assert_eq!(refused(without_functions), "index mine on Order: no function half is registered");
}

/// Whoever reads the options of stored records finds them, and a type's key is as it was set, not as the
/// options say.
#[test]
fn options_stay_in_the_records() {
    let text = file_text(
        r#"message Order {
            option (com.apple.foundationdb.record.record).record_type_key = { string_value: "o" };
            optional int64 id = 1 [key];
            optional string flower = 2 [index = {}];
        }"#,
    );
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(&text).expect("a valid file")).expect("valid records");
    builder.record_type("Order").expect("a type").set_record_type_key(1);
    let bytes = builder.build().and_then(|meta_data| meta_data.to_bytes()).expect("bytes");
    let read = RecordMetaData::from_bytes(&bytes, &Extensions::default()).expect("meta-data");
    assert_eq!(
        read.record_type("Order").map(|found| found.key.clone()),
        Some(crate::value::IntoValue::into_value(1))
    );
    let again = RecordMetaData::builder()
        .set_records(&read.union().parent_file())
        .and_then(|builder| builder.build());
    assert_eq!(again.map(|meta_data| meta_data.indexes().count()), Ok(1));
}

/// The files of this crate are not stored; a file of the application with the same name is.
#[test]
fn imported_files_are_stored_with_the_records() {
    let records = r#"
        syntax = "proto3"; import "b.proto"; import "tuple_fields.proto"; import "google/protobuf/timestamp.proto";
        message Order { int64 id = 1; b.B b = 2; own.Own own = 3; google.protobuf.Timestamp at = 4; }
        message RecordTypeUnion { Order _Order = 1; }
    "#;
    let b = r#"syntax = "proto2"; package b; import public "tuple_fields.proto"; message B { optional int32 n = 1; }"#;
    let own = r#"syntax = "proto3"; package own; message Own { int32 n = 1; }"#;
    let files = [("records.proto", records), ("b.proto", b), ("tuple_fields.proto", own)];
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile_files("records.proto", files).expect("valid files")).expect("valid records");
    builder.record_type("Order").expect("a type").set_primary_key("id");
    builder.add_index(None, Index::new("own", field("own").nest("n"))).expect("added");
    builder.add_index(None, Index::new("at", field("at").nest("nanos"))).expect("added");
    let meta_data = builder.build().expect("valid");
    let bytes = meta_data.to_bytes().expect("bytes");
    assert_same(&meta_data, &RecordMetaData::from_bytes(&bytes, &Extensions::default()).expect("the same"));
    // The imports in another order.
    let mut row = Row::decode(&bytes[..]).expect("a message");
    assert_eq!(row.dependencies.len(), 3);
    row.dependencies.reverse();
    assert_same(
        &meta_data,
        &RecordMetaData::from_bytes(&row.encode_to_vec(), &Extensions::default()).expect("the same"),
    );
    row.dependencies.pop();
    let refused = RecordMetaData::from_bytes(&row.encode_to_vec(), &Extensions::default());
    assert!(matches!(refused, Err(MetaDataError::Torn(_))), "{refused:?}");
    let simple =
        RecordMetaData::from_proto(SIMPLE).and_then(|meta_data| meta_data.to_bytes()).expect("bytes");
    assert!(Row::decode(&simple[..]).is_ok_and(|row| row.dependencies.is_empty()));
}

/// A file of the application that a file of this crate imports under its name.
#[test]
fn a_file_of_the_application_takes_the_place_of_one_that_others_import() {
    const NAME: &str = "google/protobuf/descriptor.proto";
    let text = file_text("message Order { optional int64 id = 1 [key]; }");
    let file = compile(&text).expect("a valid file");
    let decoded = |file: &FileDescriptor| {
        FileDescriptorProto::decode(&file.encode_to_vec()[..]).expect("a file, without its extensions")
    };
    let mut records = decoded(&file);
    let mut descriptor = decoded(&file.parent_pool().get_file_by_name(NAME).expect("it is imported"));
    let note = DescriptorProto { name: Some("Note".into()), ..DescriptorProto::default() };
    descriptor.message_type.push(note);
    records.dependency.push(NAME.into());
    records.message_type[0].field.push(FieldDescriptorProto {
        name: Some("note".into()),
        number: Some(1_000),
        type_name: Some(".google.protobuf.Note".into()),
        ..FieldDescriptorProto::default()
    });
    let meta_data = RecordMetaData::from_proto(&text).expect("valid");
    let mut row = Row::decode(&meta_data.to_bytes().expect("bytes")[..]).expect("a message");
    row.records = Some(records.encode_to_vec());
    row.dependencies = vec![descriptor.encode_to_vec()];
    let read = RecordMetaData::from_bytes(&row.encode_to_vec(), &Extensions::default()).expect("meta-data");
    let pool = read.union().parent_pool().clone();
    assert!(pool.get_message_by_name("google.protobuf.Note").is_some());
    assert!(pool.get_file_by_name("record_metadata_options.proto").is_some());
}

/// The fields of the stored message that the tests change.
#[derive(Clone, PartialEq, Message)]
struct Row {
    #[prost(bytes = "vec", optional, tag = "1")]
    records: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    indexes: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    record_types: Vec<Vec<u8>>,
    #[prost(bool, optional, tag = "4")]
    split_long_records: Option<bool>,
    #[prost(int32, optional, tag = "5")]
    version: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "7")]
    record_count_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    dependencies: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "15")]
    views: Vec<Vec<u8>>,
}

/// The fields of an index that the tests change.
#[derive(Clone, PartialEq, Message)]
struct IndexRow {
    #[prost(string, repeated, tag = "1")]
    record_types: Vec<String>,
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "4")]
    expression: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    subspace_key: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    last_modified_version: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "11")]
    predicate: Option<Vec<u8>>,
}

/// What loading the first example says after its message was changed.
fn changed(change: impl FnOnce(&mut Row)) -> Result<i32, String> {
    let bytes = RecordMetaData::from_proto(SIMPLE).and_then(|meta_data| meta_data.to_bytes()).expect("bytes");
    let mut row = Row::decode(&bytes[..]).expect("a message");
    change(&mut row);
    RecordMetaData::from_bytes(&row.encode_to_vec(), &Extensions::default())
        .map(|meta_data| meta_data.version())
        .map_err(|error| error.to_string())
}

/// What loading the first example says after one of its indexes was changed.
fn changed_index(change: impl FnOnce(&mut IndexRow)) -> Result<i32, String> {
    changed(|row| {
        let mut index = IndexRow::decode(&row.indexes[0][..]).expect("an index");
        change(&mut index);
        row.indexes[0] = index.encode_to_vec();
    })
}

#[test]
fn what_java_has_and_this_crate_does_not_is_refused() {
    assert_eq!(changed(|_| {}), Ok(3));
    let count = changed(|row| row.record_count_key = Some(Vec::new()));
    assert_eq!(count, Err("not supported: meta-data with a record count key".into()));
    assert_eq!(changed(|row| row.views.push(Vec::new())), Err("not supported: meta-data with views".into()));
    let name = "MySimpleRecord$num_value_3_indexed";
    let predicate = changed_index(|index| index.predicate = Some(Vec::new()));
    assert_eq!(predicate, Err(format!("not supported: the predicate of index {name}")));
    let by_name = Err(format!("not supported: index {name} is not stored under a number"));
    assert_eq!(changed_index(|index| index.subspace_key = None), by_name);
    let packed = crate::value::Tuple::from("name").pack();
    assert_eq!(changed_index(|index| index.subspace_key = Some(packed)), by_name);
    let split = Some(vec![0x32, 0]);
    let expected =
        format!("the expression of index {name}: key expressions of the kind Split are not supported");
    assert_eq!(changed_index(|index| index.expression = split), Err(expected));
}

#[test]
fn what_is_missing_or_torn_is_named() {
    let torn = |what: &str| Err(format!("stored meta-data is torn: {what}"));
    assert_eq!(changed(|row| row.records = None), torn("records is missing"));
    assert_eq!(changed_index(|index| index.name = None), torn("the name of an index is missing"));
    let key = changed_index(|index| index.subspace_key = Some(vec![2, 65]));
    assert_eq!(key, torn("the subspace key of index MySimpleRecord$num_value_3_indexed"));
    assert_eq!(
        changed(|row| row.record_types.clear()),
        Err("record type MySimpleRecord has no primary key".into())
    );
    let unknown = changed_index(|index| index.record_types = vec!["None".into()]);
    assert_eq!(unknown, Err("there is no record type None".into()));
    assert_eq!(
        changed(|row| row.indexes[0] = row.indexes[1].clone()),
        Err("two indexes are named MySimpleRecord$num_value_unique".into())
    );
    let later = changed(|row| row.version = Some(1)).expect_err("an index is later");
    assert!(later.contains("later than the meta-data, which is 1"), "{later}");
    let empty =
        changed_index(|index| index.expression = Some(vec![0x1a, 0])).expect_err("a field without a name");
    assert!(empty.ends_with("the bytes of a key expression have no fan type"), "{empty}");
}

static FULL: LazyLock<(Vec<u8>, Extensions)> = LazyLock::new(|| {
    let (meta_data, extensions) = full();
    (meta_data.to_bytes().expect("bytes"), extensions)
});

/// Every byte is torn in several ways: a bit that is another one, a byte that is, that is added, and that is
/// the last.
#[test]
fn torn_bytes_are_an_error_or_other_meta_data() {
    let (bytes, extensions) = FULL.clone();
    let mut read = 0;
    for at in 0..bytes.len() {
        for change in 0..6 {
            let mut torn = bytes.clone();
            match change {
                0 => torn.truncate(at),
                1 => torn.insert(at, b'.'),
                2 => torn[at] = b'.',
                3 => torn[at] = 0xff,
                4 => torn[at] ^= 0x40,
                _ => torn[at] ^= 1 << (at % 8),
            }
            if let Ok(other) = RecordMetaData::from_bytes(&torn, &extensions) {
                assert!(other.to_bytes().is_ok(), "byte {at}, change {change}");
                read += 1;
            }
        }
    }
    assert!(read > bytes.len() / 4, "only {read} are meta-data");
}

proptest! {
    #[test]
    fn indexes_of_any_expression_are_what_their_bytes_are(expressions in proptest::collection::vec(any_expression(), 8)) {
        let file = any_expression_file();
        let mut builder = RecordMetaData::builder();
        builder.set_records(&file).expect("valid records");
        builder.record_type("Record").expect("a type").set_primary_key("a");
        builder.register_index_type("any");
        let mut valid = builder.build().expect("valid");
        for (i, expression) in expressions.into_iter().enumerate() {
            let mut next = valid.to_builder();
            next.add_index(None, Index::new(format!("i{i}"), expression).kind("any")).expect("added");
            valid = next.build().unwrap_or(valid);
        }
        let bytes = valid.to_bytes().expect("bytes");
        let read = RecordMetaData::from_bytes(&bytes, valid.extensions()).expect("the same meta-data");
        prop_assert_eq!(read.to_bytes(), Ok(bytes));
        prop_assert_eq!(read.indexes().count(), valid.indexes().count());
        prop_assert!(read.indexes().zip(valid.indexes()).all(|(a, b)| a.expression.is_same(&b.expression)));
    }
}
