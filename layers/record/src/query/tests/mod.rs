//! Tests of queries without a store: the logic of three values, what is refused, and plans.

mod encoding;
mod evaluation;
mod plans;
mod refused;

use crate::{
    expression::{KeyExpression, concat, field, function},
    metadata::{Index, RecordMetaData, compile, index_types},
    query::{RecordQuery, plan_query},
};

const SCHEMA: &str = r#"
    syntax = "proto2";
    message Order {
        required int64 order_id = 1;
        optional Flower flower = 2;
        optional int32 price = 3;
        optional int32 quantity = 4;
        optional string name = 5;
        repeated string tags = 6;
        repeated Line lines = 7;
        optional bytes code = 8;
        optional double weight = 9;
        optional bool paid = 10;
        optional Color color = 11;
        repeated Line other_lines = 12;
    }
    message Customer { required int64 order_id = 1; optional string name = 2; optional int32 price = 3; }
    message Folder { optional string parent = 1; optional string child = 2; optional string name = 3; }
    message Flower { optional string type = 1; optional Color color = 2; }
    message Line { optional string item = 1; optional int32 count = 2; repeated string notes = 3; }
    enum Color { RED = 0; BLUE = 1; }
    message RecordTypeUnion {
        optional Order _Order = 1;
        optional Customer _Customer = 2;
        optional Folder _Folder = 3;
    }
"#;

/// Orders, customers and folders: the first two have a primary key of the same columns.
fn shop(indexes: impl IntoIterator<Item = (&'static [&'static str], Index)>) -> RecordMetaData {
    let file = compile(SCHEMA).unwrap();
    let mut builder = RecordMetaData::builder();
    builder.set_records(&file).unwrap();
    builder.set_store_record_versions(true).unwrap();
    builder.record_type("Order").unwrap().set_primary_key("order_id");
    builder.record_type("Customer").unwrap().set_primary_key("order_id");
    builder.record_type("Folder").unwrap().set_primary_key(concat(["parent", "child"]));
    for (types, index) in indexes {
        match types.is_empty() {
            true => builder.add_index(None, index).unwrap(),
            false => builder.add_multi_type_index(types.iter().copied(), index).unwrap(),
        };
    }
    builder.build().unwrap()
}

const ORDER: &[&str] = &["Order"];

/// Indexes of every kind.
fn all_indexes() -> Vec<(&'static [&'static str], Index)> {
    let of_order = |name: &str, expression: KeyExpression| (ORDER, Index::new(name, expression));
    let part = |name: &str| KeyExpression::from(field(name));
    let lines = || field("lines").fan_out();
    vec![
        of_order("price", part("price")),
        of_order("quantity", part("quantity")),
        (ORDER, Index::new("code", part("code")).unique()),
        of_order("paid_price", concat(["paid", "price"])),
        of_order("flower", field("flower").nest(concat(["type", "color"]))),
        of_order("tags", field("tags").fan_out().into()),
        of_order("name_tags", concat([part("name"), field("tags").fan_out().into()])),
        of_order("all_tags", field("tags").concatenate().into()),
        of_order("lines", lines().nest(concat(["item", "count"]))),
        of_order("lines_apart", concat([lines().nest("count"), lines().nest("item")])),
        of_order("lower_name", function("lower", "name")),
        (&["Order", "Customer"], Index::new("name", part("name"))),
        (&[], Index::new("name_of_all", part("name"))),
        (ORDER, Index::new("rank", part("weight")).kind(index_types::RANK)),
        (ORDER, Index::new("rank_by_color", field("weight").group_by("color")).kind(index_types::RANK)),
        (&[], Index::new("version", KeyExpression::Version).kind(index_types::VERSION)),
        (
            ORDER,
            Index::new("quantity_version", concat([part("quantity"), KeyExpression::Version]))
                .kind(index_types::VERSION),
        ),
        (ORDER, Index::new("count", part("color").ungrouped_by()).kind(index_types::COUNT)),
    ]
}

trait UngroupedBy {
    fn ungrouped_by(self) -> KeyExpression;
}

impl UngroupedBy for KeyExpression {
    /// The expression as a group of nothing: what a count needs.
    fn ungrouped_by(self) -> KeyExpression {
        KeyExpression::Empty.group_by(self)
    }
}

/// The plan of a query with all indexes, or why there is none.
fn explain(query: &RecordQuery) -> String {
    explain_in(&shop(all_indexes()), query)
}

fn explain_in(meta_data: &RecordMetaData, query: &RecordQuery) -> String {
    plan_query(query, meta_data, &|_| true)
        .map_or_else(|error| format!("refused: {error}"), |plan| plan.explain())
}
