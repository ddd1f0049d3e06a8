//! The examples of the overview of the Record Layer, with its values.

use super::{file, keys, message, record};
use crate::expression::{concat, concatenate_fields, field};
use prost_reflect::DynamicMessage;

const ONE_AND_ONE: &str =
    r#"syntax = "proto2"; message Record { optional string a = 2; optional string b = 3; }"#;
const LIST_AND_ONE: &str =
    r#"syntax = "proto2"; message Record { repeated string a = 2; optional string b = 3; }"#;
const TWO_LISTS: &str =
    r#"syntax = "proto2"; message Record { repeated string a = 2; repeated string b = 3; }"#;
const CAR: &str = r#"
    syntax = "proto2";
    message Car { required string id = 1; repeated Seat s = 2; }
    message Seat { optional string back = 1; optional string seat = 2; repeated string armrest = 3; }
"#;

fn of(proto: &str, name: &str, text: &str) -> DynamicMessage {
    record(&message(&file(proto), name), text)
}

fn car() -> DynamicMessage {
    let text = r#"
        id: "car1"
        s { back: "red1" seat: "red2" }
        s { back: "blue1" seat: "blue2" armrest: "a" armrest: "b" armrest: "c" }
    "#;
    of(CAR, "Car", text)
}

#[test]
fn rl10_two_fields() {
    let record = of(ONE_AND_ONE, "Record", r#"a: "x" b: "y""#);
    assert_eq!(keys(concat([field("a"), field("b")]), &record), [r#"["x", "y"]"#]);
    assert_eq!(keys(concat([field("b"), field("a")]), &record), [r#"["y", "x"]"#]);
    assert_eq!(keys(concatenate_fields(["b", "a"]), &record), [r#"["y", "x"]"#]);
    assert_eq!(keys(field("a"), &record), [r#"["x"]"#]);
    assert_eq!(keys(field("b"), &record), [r#"["y"]"#]);
}

#[test]
fn rl11_a_list_and_a_field() {
    let record = of(LIST_AND_ONE, "Record", r#"a: "x1" a: "x2" b: "y""#);
    let (fan_out, concatenate) = (|| field("a").fan_out(), || field("a").concatenate());
    assert_eq!(keys(concatenate(), &record), [r#"[["x1", "x2"]]"#]);
    assert_eq!(keys(fan_out(), &record), [r#"["x1"]"#, r#"["x2"]"#]);
    assert_eq!(keys(concat([concatenate(), field("b")]), &record), [r#"[["x1", "x2"], "y"]"#]);
    assert_eq!(keys(concat([fan_out(), field("b")]), &record), [r#"["x1", "y"]"#, r#"["x2", "y"]"#]);
    assert_eq!(keys(concat([field("b"), fan_out()]), &record), [r#"["y", "x1"]"#, r#"["y", "x2"]"#]);
    assert_eq!(keys(field("b"), &record), [r#"["y"]"#]);
}

#[test]
fn rl12_two_lists() {
    let record = of(TWO_LISTS, "Record", r#"a: "x1" a: "x2" b: "y1" b: "y2""#);
    let expected = [r#"["x1", "y1"]"#, r#"["x1", "y2"]"#, r#"["x2", "y1"]"#, r#"["x2", "y2"]"#];
    assert_eq!(keys(concat([field("a").fan_out(), field("b").fan_out()]), &record), expected);
}

#[test]
fn rl13_the_backs_of_a_cars_seats() {
    assert_eq!(keys(field("s").fan_out().nest("back"), &car()), [r#"["red1"]"#, r#"["blue1"]"#]);
}

/// The overview has null for the seat without armrests;
/// [`ConcatenateOrEmpty`](crate::expression::FanType::ConcatenateOrEmpty) does as Java's library.
#[test]
fn rl13_the_parts_of_a_cars_seats() {
    let parts = |armrests| concat([field("back"), field("seat"), armrests]);
    let seats = |armrests| keys(field("s").fan_out().nest(parts(armrests)), &car());
    let blue = r#"["blue1", "blue2", ["a", "b", "c"]]"#;
    assert_eq!(seats(field("armrest").concatenate()), [r#"["red1", "red2", null]"#, blue]);
    assert_eq!(seats(field("armrest").concatenate_or_empty()), [r#"["red1", "red2", []]"#, blue]);
}

#[test]
fn the_ratings_of_a_restaurants_reviews() {
    let proto = r#"
        syntax = "proto2";
        message Restaurant { optional int64 rest_no = 1; repeated Review reviews = 2; }
        message Review { optional int32 rating = 1; }
    "#;
    let record =
        of(proto, "Restaurant", "rest_no: 1 reviews { rating: 5 } reviews { } reviews { rating: 5 }");
    let ratings = field("reviews").fan_out().nest("rating");
    assert_eq!(keys(ratings.clone(), &record), ["[5]", "[null]", "[5]"]);
    let none = of(proto, "Restaurant", "rest_no: 1");
    assert!(keys(ratings, &none).is_empty());
}

#[test]
fn a_group_is_before_what_is_grouped() {
    let proto =
        r#"syntax = "proto2"; message Score { optional int32 score = 2; optional string game_id = 3; }"#;
    let record = of(proto, "Score", r#"score: 9 game_id: "go""#);
    let grouped = field("score").group_by("game_id");
    assert_eq!(keys(grouped.clone(), &record), [r#"["go", 9]"#]);
    assert_eq!((grouped.columns(), grouped.grouping_columns()), (2, 1));
    let both = concatenate_fields(["game_id", "score"]);
    assert_eq!((both.grouping_columns(), both.clone().group_last(2).grouping_columns()), (1, 0));
    assert_eq!(both.ungrouped().grouping_columns(), 0);
}

#[test]
fn a_list_within_a_concat_is_one_column() {
    let record = of(LIST_AND_ONE, "Record", r#"b: "y""#);
    assert_eq!(keys(concat([field("a").concatenate(), field("b")]), &record), [r#"[null, "y"]"#]);
    assert!(keys(concat([field("a").fan_out(), field("b")]), &record).is_empty());
}
