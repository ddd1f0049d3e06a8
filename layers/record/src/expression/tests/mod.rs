//! Key expressions on records that are written as text.

mod arbitrary;
mod examples;
mod functions;
mod presence;
mod types;

pub(crate) use arbitrary::{any_expression, any_expression_file};

use super::{EvaluateError, Evaluated, Functions, KeyExpression, NullStandin, Subject};
use crate::{
    metadata::compile,
    value::{IntoValue, Value},
    version::RecordVersion,
};
use prost_reflect::{DynamicMessage, FileDescriptor, MessageDescriptor};

/// A compiled file.
fn file(text: &str) -> FileDescriptor {
    compile(text).expect("a valid file")
}

/// A message of a file.
fn message(file: &FileDescriptor, name: &str) -> MessageDescriptor {
    file.messages().find(|message| message.name() == name).expect("a message of the file")
}

/// A record in protobuf's text format.
fn record(message: &MessageDescriptor, text: &str) -> DynamicMessage {
    DynamicMessage::parse_text_format(message.clone(), text).expect("a record of this message")
}

/// What an expression that is valid for the record evaluates to.
fn evaluate(expression: &KeyExpression, record: &DynamicMessage) -> Result<Vec<Evaluated>, EvaluateError> {
    let functions = Functions::default();
    let message = prost_reflect::ReflectMessage::descriptor(record);
    assert_eq!(expression.validate(&message, &functions), Ok(()), "{expression}");
    let version = RecordVersion::complete([7; 10], 1);
    let record_type: Value = 4.into_value();
    let subject = Subject {
        message: Some(record),
        record_type: &record_type,
        version: Some(&version),
        functions: &functions,
    };
    let keys = expression.evaluate(subject);
    for key in keys.iter().flatten() {
        assert_eq!(key.columns().len(), expression.columns(), "{expression}: {key}");
    }
    keys
}

/// The keys of a record, in order, as text.
fn keys(expression: impl Into<KeyExpression>, record: &DynamicMessage) -> Vec<String> {
    let keys = evaluate(&expression.into(), record).expect("evaluated");
    keys.iter().map(Evaluated::to_string).collect()
}

/// How a unique index treats the only column of the only key; `None` if it is a value.
fn null(expression: impl Into<KeyExpression>, record: &DynamicMessage) -> Option<NullStandin> {
    let keys = evaluate(&expression.into(), record).expect("evaluated");
    match keys.iter().map(Evaluated::columns).collect::<Vec<_>>()[..] {
        [[super::Column::Null(null)]] => Some(*null),
        [[super::Column::Value(_)]] => None,
        _ => panic!("not one column"),
    }
}
