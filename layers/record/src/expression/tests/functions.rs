//! Functions, and what expressions are refused for.

use super::{file, keys, message, record};
use crate::{
    expression::{
        Column, EvaluateError, Evaluated, ExpressionError, Function, Functions, KeyExpression, NullStandin,
        Subject, concat, field, function, literal,
    },
    value::{IntoValue, Tuple},
    version::RecordVersion,
};
use foundationdb_tuple::Element;

const PROTO: &str = r#"
    syntax = "proto2";
    message Record {
        optional string text = 1; repeated string list = 2; optional int32 number = 3;
        optional Inner inner = 4; repeated Inner inners = 5; map<string, int32> map = 6;
    }
    message Inner { optional string name = 1; optional Inner inner = 2; repeated string list = 3; }
"#;

#[test]
fn lower_gives_the_text_in_lower_case() {
    let message = message(&file(PROTO), "Record");
    let lower = || function("lower", "text");
    assert_eq!(keys(lower(), &record(&message, r#"text: "Straße ÄÖ""#)), [r#"["straße äö"]"#]);
    assert_eq!(keys(lower(), &record(&message, "")), ["[null]"]);
    let list = function("lower", field("list").fan_out());
    assert_eq!(keys(list, &record(&message, r#"list: "B" list: "A""#)), [r#"["b"]"#, r#"["a"]"#]);
}

#[test]
fn words_gives_each_word_once() {
    let message = message(&file(PROTO), "Record");
    let text = record(&message, r#"text: "The cat, the DOG; 2 cats!""#);
    let words = || function("words", "text");
    assert_eq!(keys(words(), &text), [r#"["the"]"#, r#"["cat"]"#, r#"["dog"]"#, r#"["2"]"#, r#"["cats"]"#]);
    assert!(keys(words(), &record(&message, "")).is_empty());
    let with_number = concat([words(), field("number").into()]);
    let text = record(&message, r#"text: "a b" number: 1"#);
    assert_eq!(keys(with_number, &text), [r#"["a", 1]"#, r#"["b", 1]"#]);
}

#[test]
fn a_function_must_be_given_and_give_what_it_says() {
    let message = message(&file(PROTO), "Record");
    let number = record(&message, "number: 1");
    let mut functions = Functions::default();
    let two = |_: &Evaluated| {
        let column = || Column::Value(1.into_value());
        Ok(vec![Evaluated::new(vec![column(), column()])])
    };
    functions.register("two", Function::new(0, two));
    let record_type = 1.into_value();
    let subject =
        Subject { message: Some(&number), record_type: &record_type, version: None, functions: &functions };
    let failed = |expression: KeyExpression| expression.evaluate(subject).expect_err("refused").to_string();
    assert_eq!(
        failed(function("two", KeyExpression::Empty)),
        "function two: returned 2 columns instead of 1"
    );
    assert_eq!(failed(function("lower", "number")), "function lower: [1] is not a text");
    let none = function("none", KeyExpression::Empty).evaluate(subject);
    assert_eq!(none, Err(EvaluateError::NoFunction("none".into())));
}

#[test]
fn a_field_of_another_message_is_refused_when_it_is_evaluated() {
    let message = message(&file(PROTO), "Record");
    let full = record(&message, r#"list: "a" number: 1 inner { } inners { } map { key: "a" value: 1 }"#);
    let (record_type, functions) = (1.into_value(), Functions::default());
    let subject =
        Subject { message: Some(&full), record_type: &record_type, version: None, functions: &functions };
    for wrong in [
        field("none").into(),
        field("list").into(),
        field("number").fan_out().into(),
        field("inner").into(),
        field("map").fan_out().into(),
        field("map").into(),
        field("number").nest("name"),
        field("inners").nest("name"),
        field("inner").fan_out().nest("name"),
        field("inners").concatenate().nest("name"),
        field("list").fan_out().nest("name"),
    ] as [KeyExpression; 11]
    {
        let error = wrong.evaluate(subject);
        assert!(matches!(error, Err(EvaluateError::Field { .. })), "{wrong}: {error:?}");
        assert!(wrong.validate(&message, &functions).is_err(), "{wrong}");
    }
}

#[test]
fn an_expression_that_does_not_fit_is_refused_with_the_path() {
    let message = message(&file(PROTO), "Record");
    let functions = Functions::default();
    let refused = |expression: KeyExpression| {
        expression.validate(&message, &functions).expect_err("refused").to_string()
    };
    let inner = |child: crate::expression::Field| field("inner").nest(field("inner").nest(child));
    assert_eq!(refused(inner(field("none"))), "Record has no field inner.inner.none");
    assert_eq!(
        refused(inner(field("list"))),
        "field inner.inner.list is repeated: fan out or concatenate it"
    );
    assert_eq!(
        refused(inner(field("name").fan_out())),
        "field inner.inner.name is not repeated: it cannot fan out or be concatenated"
    );
    assert_eq!(refused(inner(field("inner"))), "field inner.inner.inner is a message: nest a field of it");
    assert_eq!(
        refused(field("inner").nest(field("name").nest("x"))),
        "field inner.name is not a message: nothing can be nested in it"
    );
    assert_eq!(
        refused(field("inners").concatenate().nest("name")),
        "field inners is a list of messages: it can fan out, but not be concatenated"
    );
    assert_eq!(
        refused(field("inner").not_null().nest("name")),
        "field inner is a message: an absent message has no default value"
    );
    assert_eq!(refused(field("map").into()), "field map is repeated: fan out or concatenate it");
    assert_eq!(refused(field("map").nest("key")), "field map is repeated: fan out or concatenate it");
    assert_eq!(refused(field("map").fan_out().into()), "field map is a message: nest a field of it");
    assert_eq!(refused(KeyExpression::from("text").group_last(2)), "2 grouped columns of 1");
    assert_eq!(refused(function("none", "text")), "no function none is registered");
    assert_eq!(
        refused(function("lower", concat(["text", "number"]))),
        "function lower takes 1 columns, not 2"
    );
    assert_eq!(
        refused(function("lower", KeyExpression::Version)),
        "function lower cannot be called with the record's version"
    );
    assert_eq!(refused(literal(RecordVersion::incomplete(0))), "a literal cannot be @incomplete+0");
    let nested = literal(Element::Tuple(vec![Element::Int(1)]));
    assert_eq!(nested.validate(&message, &functions), Err(ExpressionError::Literal("[1]".into())));
    assert_eq!(nested.to_bytes(), Err(ExpressionError::Literal("[1]".into())));
}

#[test]
fn expressions_are_nested_as_deep_as_they_can_be_read_again() {
    let message = message(&file(PROTO), "Record");
    let deep = |levels| (0..levels).fold(KeyExpression::from("name"), |child, _| field("inner").nest(child));
    let deepest = deep(31);
    assert_eq!(deepest.validate(&message, &Functions::default()), Ok(()));
    assert_eq!(KeyExpression::from_bytes(&deepest.to_bytes().expect("bytes")), Ok(deepest));
    let deeper = deep(32).validate(&message, &Functions::default());
    assert_eq!(deeper, Err(ExpressionError::Depth { limit: 32 }));
}

/// The combinations of two lists grow with the product of their lengths.
#[test]
fn a_record_with_too_many_combinations_is_refused() {
    let message = message(&file(PROTO), "Record");
    let tags = |count| record(&message, &r#"list: "x" "#.repeat(count));
    let combinations = |parts| concat((0..parts).map(|_| field("list").fan_out()));
    assert_eq!(keys(combinations(2), &tags(500)).len(), 250_000);
    let one_more = super::evaluate(&combinations(2), &tags(501));
    assert_eq!(one_more, Err(EvaluateError::TooManyKeys { keys: 501 * 501, limit: 250_000 }));
    let refused = super::evaluate(&combinations(9), &tags(200));
    assert_eq!(refused, Err(EvaluateError::TooManyKeys { keys: 200_usize.pow(3), limit: 250_000 }));
}

#[test]
fn keys_are_split_and_tell_their_nulls() {
    let key = Evaluated::new(vec![Column::Value(1.into_value()), Column::Null(NullStandin::NullUnique)]);
    assert!(!key.has_non_unique_null());
    assert!(Evaluated::new(vec![Column::Null(NullStandin::Null)]).has_non_unique_null());
    let (first, rest) = key.split_at(1);
    assert_eq!((first.tuple(), rest.tuple()), (Tuple::from(1), Tuple::from(None::<i64>)));
}
