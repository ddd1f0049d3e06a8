//! Any expression on any record.

use super::{file, message};
use crate::{
    expression::{FanType, Field, Functions, KeyExpression, NullStandin, Subject, concat, function, literal},
    value::IntoValue,
    version::RecordVersion,
};
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DynamicMessage, FileDescriptor, MapKey, MessageDescriptor, Value as ProtoValue};
use std::sync::LazyLock;

/// The file of the records that [`any_expression`] is for.
pub(crate) fn any_expression_file() -> FileDescriptor {
    let text = r#"
        syntax = "proto2";
        import "tuple_fields.proto";
        package test;
        message Record {
            optional int32 a = 1; optional string b = 2; repeated string c = 3;
            optional Record d = 4; repeated Record e = 5; map<string, Record> f = 6;
            optional com.apple.foundationdb.record.NullableInt64 g = 7; optional bytes h = 8;
            optional group I = 9 { optional double a = 1; }
        }
        message RecordTypeUnion { optional Record _Record = 1; }
    "#;
    file(text)
}

static RECORD: LazyLock<MessageDescriptor> = LazyLock::new(|| message(&any_expression_file(), "Record"));

fn any_field() -> impl Strategy<Value = Field> {
    let name = prop_oneof![
        20 => "[a-h]", 1 => Just("i".to_owned()), 1 => Just("key".to_owned()), 1 => Just("value".to_owned()),
    ];
    let fan = prop_oneof![
        3 => Just(FanType::None), 2 => Just(FanType::FanOut),
        1 => Just(FanType::Concatenate), 1 => Just(FanType::ConcatenateOrEmpty),
    ];
    let null = prop_oneof![
        2 => Just(NullStandin::Null), 1 => Just(NullStandin::NullUnique), 1 => Just(NullStandin::NotNull),
    ];
    (name, fan, null).prop_map(|(name, fan, null)| Field { name, fan, null })
}

/// An expression that need not fit the records.
pub(crate) fn any_expression() -> impl Strategy<Value = KeyExpression> {
    let leaf = prop_oneof![
        8 => any_field().prop_map(KeyExpression::Field),
        1 => Just(KeyExpression::Empty),
        1 => Just(KeyExpression::Version),
        1 => Just(KeyExpression::RecordType),
        1 => any::<Option<i64>>().prop_map(literal),
        1 => any::<f64>().prop_map(literal),
        1 => any::<f32>().prop_map(literal),
        1 => ".{0,3}".prop_map(literal),
        1 => any::<bool>().prop_map(literal),
        1 => any::<Vec<u8>>().prop_map(literal),
    ];
    leaf.prop_recursive(5, 12, 3, |inner| {
        prop_oneof![
            4 => (any_field(), inner.clone()).prop_map(|(parent, child)| parent.nest(child)),
            3 => proptest::collection::vec(inner.clone(), 0..3).prop_map(concat),
            1 => (inner.clone(), 0..3_usize).prop_map(|(whole, grouped)| whole.group_last(grouped)),
            1 => ("lower|words|none", inner).prop_map(|(name, arguments)| function(name, arguments)),
        ]
    })
}

/// A record of which some scalars are set, the last one of each if it is not repeated.
fn scalars() -> impl Strategy<Value = DynamicMessage> {
    let field = prop_oneof![
        "a: [1-9][0-9]{0,2}",
        r#"[bch]: "[A-Z a-z]{0,5}""#,
        Just("g { }".to_owned()),
        Just("g { value: 3 }".to_owned()),
        Just("I { }".to_owned()),
        Just("I { a: 1.5 }".to_owned()),
    ];
    proptest::collection::vec(field, 0..6).prop_map(|fields| {
        let bytes: Vec<u8> =
            fields.iter().flat_map(|field| super::record(&RECORD, field).encode_to_vec()).collect();
        DynamicMessage::decode(RECORD.clone(), &bytes[..]).expect("fields of the record")
    })
}

fn any_record() -> impl Strategy<Value = DynamicMessage> {
    let nested = |inner: BoxedStrategy<DynamicMessage>| {
        let list = proptest::collection::vec(inner.clone(), 0..3);
        let map = proptest::collection::btree_map("[a-c]", inner.clone(), 0..3);
        (scalars(), proptest::option::of(inner), list, map).prop_map(|(mut record, one, list, map)| {
            if let Some(one) = one {
                record.set_field_by_name("d", ProtoValue::Message(one));
            }
            record.set_field_by_name(
                "e",
                ProtoValue::List(list.into_iter().map(ProtoValue::Message).collect()),
            );
            let entries =
                map.into_iter().map(|(key, value)| (MapKey::String(key), ProtoValue::Message(value)));
            record.set_field_by_name("f", ProtoValue::Map(entries.collect()));
            record
        })
    };
    scalars().boxed().prop_recursive(3, 12, 3, move |inner| nested(inner.boxed()))
}

proptest! {
    #[test]
    fn an_evaluation_never_panics_and_has_the_columns(expression in any_expression(), record in any_record()) {
        let (record_type, functions) = ("t".into_value(), Functions::default());
        let version = RecordVersion::incomplete(1);
        let subject = Subject {
            message: Some(&record),
            record_type: &record_type,
            version: Some(&version),
            functions: &functions,
        };
        let keys = expression.evaluate(subject);
        let valid = expression.validate(&RECORD, &functions).is_ok();
        let total = !expression.to_string().contains("lower") && !expression.to_string().contains("words");
        prop_assert!(!valid || !total || keys.is_ok(), "{expression}: {keys:?}");
        for key in keys.iter().flatten() {
            prop_assert_eq!(key.columns().len(), expression.columns());
        }
        if let (true, false, Ok(keys)) = (valid, expression.creates_duplicates(), &keys) {
            prop_assert_eq!(keys.len(), 1);
        }
        prop_assert_eq!(expression.column_expressions().len(), expression.columns());
    }

    #[test]
    fn bytes_are_the_expression(expression in any_expression()) {
        let bytes = expression.to_bytes().expect("no literal that cannot be written");
        let read = KeyExpression::from_bytes(&bytes).expect("the same expression");
        prop_assert_eq!(read.to_bytes(), Ok(bytes));
        prop_assert!(read.is_same(&expression));
        prop_assert_eq!(read.to_string(), expression.to_string());
    }

    #[test]
    fn torn_bytes_are_an_error_or_another_expression(
        expression in any_expression(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut bytes = expression.to_bytes().expect("no literal that cannot be written");
        let at = at.index(bytes.len().max(1)).min(bytes.len());
        match cut {
            true => bytes.truncate(at),
            false => bytes.insert(at, byte),
        }
        if let Ok(read) = KeyExpression::from_bytes(&bytes) {
            prop_assert!(read.to_bytes().is_ok());
        }
    }
}
