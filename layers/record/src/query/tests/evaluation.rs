//! The logic of three values, as truth tables, and the conditions on records.

use super::shop;
use crate::{
    expression::{Functions, Subject, concat, field, function},
    query::{EmptyList, Query, QueryComponent},
    value::{IntoValue, Value},
    version::RecordVersion,
};
use prost_reflect::{DynamicMessage, text_format::FormatOptions};

const TRUE: Option<bool> = Some(true);
const FALSE: Option<bool> = Some(false);
const UNKNOWN: Option<bool> = None;

/// What a condition is for the order that is written in protobuf's text format.
fn holds(order: &str, condition: &QueryComponent) -> Option<bool> {
    let meta_data = shop([]);
    let record_type = meta_data.record_type("Order").unwrap();
    let message = DynamicMessage::parse_text_format(record_type.message.clone(), order).unwrap();
    assert!(!message.to_text_format_with_options(&FormatOptions::new()).contains("unknown"));
    let version = RecordVersion::complete([1; 10], 2);
    let functions = Functions::default();
    let subject = Subject {
        message: Some(&message),
        record_type: &record_type.key,
        version: Some(&version),
        functions: &functions,
    };
    condition.evaluate(subject).unwrap()
}

/// A condition with this value for the empty order.
fn constant(value: Option<bool>) -> QueryComponent {
    match value {
        TRUE => Query::field("price").is_null(),
        FALSE => Query::field("price").not_null(),
        UNKNOWN => Query::field("price").equals(1),
    }
}

#[test]
fn truth_tables() {
    let not = |a| holds("", &Query::not(constant(a)));
    assert_eq!([not(TRUE), not(FALSE), not(UNKNOWN)], [FALSE, TRUE, UNKNOWN]);
    let all = [TRUE, FALSE, UNKNOWN];
    let and = |a, b| holds("", &Query::and([constant(a), constant(b)]));
    assert_eq!(all.map(|b| and(TRUE, b)), [TRUE, FALSE, UNKNOWN]);
    assert_eq!(all.map(|b| and(FALSE, b)), [FALSE, FALSE, FALSE]);
    assert_eq!(all.map(|b| and(UNKNOWN, b)), [UNKNOWN, FALSE, UNKNOWN]);
    let or = |a, b| holds("", &Query::or([constant(a), constant(b)]));
    assert_eq!(all.map(|b| or(TRUE, b)), [TRUE, TRUE, TRUE]);
    assert_eq!(all.map(|b| or(FALSE, b)), [TRUE, FALSE, UNKNOWN]);
    assert_eq!(all.map(|b| or(UNKNOWN, b)), [TRUE, UNKNOWN, UNKNOWN]);
    assert_eq!(holds("", &Query::and([])), TRUE);
    assert_eq!(holds("", &Query::or([])), FALSE);
}

/// The normal form is true for the same records; where the planner negates it again, it is false for the same
/// too.
#[test]
fn the_normal_form_is_true_for_the_same_records() {
    let all = [TRUE, FALSE, UNKNOWN];
    for a in all {
        for b in all {
            let (a, b) = (constant(a), constant(b));
            let nested = Query::field("flower").matches(Query::or([
                Query::field("type").is_null(),
                Query::not(Query::field("type").equals("ROSE")),
            ]));
            let conditions = [
                Query::not(Query::and([a.clone(), Query::not(b.clone())])),
                Query::not(Query::or([a.clone(), Query::and([b.clone(), nested.clone()])])),
                Query::and([Query::or([a, nested.clone()]), Query::not(nested), b]),
            ];
            for condition in conditions {
                let normal = super::super::normal::normal(&condition);
                let (left, right) = (holds("", &condition), holds("", &normal));
                assert_eq!(left == TRUE, right == TRUE, "{condition} is not {normal}");
            }
        }
    }
}

#[test]
fn each_type_of_field_is_compared() {
    let order = r#"order_id: -3 price: 5 name: "ann" code: "\001\377" weight: 1.5 paid: false color: BLUE"#;
    let check = |field: &str, less: Value, same: Value, more: Value| {
        let field = || Query::field(field);
        for (value, expected) in [(&less, [FALSE, TRUE]), (&same, [TRUE, FALSE]), (&more, [FALSE, FALSE])] {
            assert_eq!(holds(order, &field().equals(value.clone())), expected[0]);
            assert_eq!(holds(order, &field().greater_than(value.clone())), expected[1]);
        }
        assert_eq!(holds("", &field().equals(same.clone())), UNKNOWN);
        assert_eq!(holds("", &field().not_equals(same)), UNKNOWN);
        assert_eq!(holds("", &field().is_null()), TRUE);
        assert_eq!(holds(order, &field().not_null()), TRUE);
    };
    check("order_id", (-4).into_value(), (-3).into_value(), 0.into_value());
    check("price", 4.into_value(), 5.into_value(), i64::MAX.into_value());
    check("name", "a".into_value(), "ann".into_value(), "anna".into_value());
    check("code", vec![1u8].into_value(), vec![1u8, 255].into_value(), vec![2u8].into_value());
    check("weight", (-2.0).into_value(), 1.5.into_value(), 1.6.into_value());
    check("color", 0.into_value(), 1.into_value(), 2.into_value());
    assert_eq!(holds(order, &Query::field("paid").equals(false)), TRUE);
    assert_eq!(holds(order, &Query::field("paid").less_than(true)), TRUE);
    assert_eq!(holds(order, &Query::key(function("lower", "name")).equals("ann")), TRUE);
    assert_eq!(holds(order, &Query::version().less_than(RecordVersion::complete([1; 10], 3))), TRUE);
    assert_eq!(holds(order, &Query::version().greater_than(RecordVersion::complete([1; 10], 2))), FALSE);
}

#[test]
fn an_absent_message_has_absent_fields() {
    let rose = Query::field("flower").matches(Query::field("type").equals("ROSE"));
    let none = Query::field("flower").matches(Query::field("type").is_null());
    for (order, is_rose, is_none) in [
        ("", UNKNOWN, TRUE),
        ("flower {}", UNKNOWN, TRUE),
        (r#"flower { type: "ROSE" }"#, TRUE, FALSE),
        (r#"flower { type: "LILY" }"#, FALSE, FALSE),
    ] {
        assert_eq!(holds(order, &rose), is_rose, "{order}");
        assert_eq!(holds(order, &none), is_none, "{order}");
    }
}

#[test]
fn one_of_the_elements() {
    let with = |empty| Query::field("tags").one_of_them_with(empty).equals("new");
    let new = Query::field("tags").one_of_them().equals("new");
    assert_eq!(holds("", &new), UNKNOWN);
    assert_eq!(holds("", &Query::not(new.clone())), UNKNOWN);
    assert_eq!(holds("", &with(EmptyList::NoMatches)), FALSE);
    assert_eq!(holds("", &Query::not(with(EmptyList::NoMatches))), TRUE);
    assert_eq!(holds(r#"tags: ["old", "new"]"#, &new), TRUE);
    assert_eq!(holds(r#"tags: "old""#, &new), FALSE);
    assert_eq!(holds(r#"tags: "old""#, &Query::not(new)), TRUE);
    assert_eq!(holds(r#"tags: "old""#, &Query::field("tags").one_of_them().equals(None::<&str>)), UNKNOWN);

    let line = |component| Query::field("lines").one_of_them().matches(component);
    let pens = || Query::field("item").equals("pen");
    let two = || Query::field("count").equals(2);
    let both = line(Query::and([pens(), two()]));
    let apart = Query::and([line(pens()), line(two())]);
    let order = r#"lines { item: "pen" count: 1 } lines { item: "ink" count: 2 }"#;
    assert_eq!((holds(order, &both), holds(order, &apart)), (FALSE, TRUE));
    let order = r#"lines { item: "pen" count: 2 }"#;
    assert_eq!((holds(order, &both), holds(order, &apart)), (TRUE, TRUE));
    assert_eq!((holds("", &both), holds("", &apart)), (UNKNOWN, UNKNOWN));
    assert_eq!(holds("lines { count: 1 }", &line(pens())), UNKNOWN);
    let notes = line(Query::field("notes").one_of_them_with(EmptyList::NoMatches).equals("x"));
    assert_eq!(holds("lines { count: 1 }", &notes), FALSE);
    let all = Query::key(field("tags").concatenate());
    let list: Value =
        vec!["a", "b"].into_iter().map(IntoValue::into_value).collect::<Vec<Value>>().into_list();
    assert_eq!(holds(r#"tags: ["a", "b"]"#, &all.equals(list)), TRUE);
    assert_eq!(concat(["name"]).columns(), 1);
}

trait IntoList {
    fn into_list(self) -> Value;
}

impl IntoList for Vec<Value> {
    fn into_list(self) -> Value {
        Value::Tuple(self)
    }
}
