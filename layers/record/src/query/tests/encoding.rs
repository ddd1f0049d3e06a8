//! The bytes of plans, to which continuations belong that applications hold.

use super::{all_indexes, shop};
use crate::{
    expression::field,
    query::{
        Bound, Bounds, Comparison, Operand, Plan, Query, QueryComponent, RecordQuery, ValueRange,
        encoding::encoded, plan_query,
    },
    value::IntoValue,
};

fn hex(plan: &Plan) -> String {
    encoded(plan).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn index(name: &str, equal: Vec<(String, Bound)>, range: Option<(String, ValueRange)>) -> Plan {
    let bounds = Bounds { equal, range, of_ranks: false };
    Plan::Index { index: name.into(), by_rank: false, bounds, skip: 1, reverse: false }
}

/// Every step, condition, operand and comparison.
fn everything() -> Plan {
    let compare = |operand, comparison| QueryComponent::Compare { operand, comparison };
    let (one, text) = (|| 1i64.into_value(), || "a".into_value());
    let on = |comparison| compare(Operand::Field(field("price")), comparison);
    let comparisons = [
        Comparison::Equals(one()),
        Comparison::NotEquals(one()),
        Comparison::Less(one()),
        Comparison::LessOrEqual(one()),
        Comparison::Greater(one()),
        Comparison::GreaterOrEqual(one()),
        Comparison::StartsWith(text()),
        Comparison::In(vec![one(), text()]),
        Comparison::IsNull,
        Comparison::NotNull,
    ];
    let condition = Query::and([
        Query::or(comparisons.map(on)),
        Query::not(Query::field("tags").one_of_them().equals("a")),
        Query::rank(field("price").ungrouped()).less_than(2),
        Query::record_type().equals("Order"),
        compare(Operand::Version, Comparison::IsNull),
        compare(Operand::Key(field("name").into()), Comparison::NotNull),
        Query::field("flower").matches(Query::field("type").equals("a")),
        Query::field("lines").one_of_them().matches(Query::field("count").equals(1)),
    ]);
    let (range, prefix) = (
        ValueRange { low: Some((one(), true)), high: Some((2i64.into_value(), false)), prefix: None },
        ValueRange { prefix: Some(text()), ..ValueRange::default() },
    );
    let scan = index("i", vec![("a".into(), Bound::Each)], Some(("b".into(), range)));
    let joined = Plan::InJoin { column: "a".into(), values: vec![one(), text()], inner: Box::new(scan) };
    let to = index("j", vec![("a".into(), Bound::To(text()))], Some(("b".into(), prefix)));
    let union = Plan::Union { children: vec![joined, to], order: "b".into(), reverse: true };
    let records = Plan::Records { bounds: Bounds::default(), reverse: true };
    let intersection =
        Plan::Intersection { children: vec![records, Plan::Nothing], order: "b".into(), reverse: false };
    let columns = vec![Some(field("price").into()), None];
    let partial = Plan::Partial { record_type: "Order".into(), columns, inner: Box::new(union) };
    let loaded = Plan::Load(Box::new(Plan::Distinct(Box::new(intersection))));
    let either = Plan::Either { branches: vec![(condition, partial), (Query::and([]), loaded)] };
    let types = Plan::Types { types: vec!["Order".into(), "Folder".into()], inner: Box::new(either) };
    Plan::Filter { condition: Query::field("price").equals(1), inner: Box::new(types) }
}

#[test]
fn the_bytes_of_a_plan_stay() {
    let price = plan_query(
        &RecordQuery::of("Order")
            .filter(Query::and([Query::field("price").equals(3), Query::field("name").starts_with("a")])),
        &shop(all_indexes()),
        &|_| true,
    )
    .unwrap();
    assert_eq!(hex(price.root()), PRICE, "{price}");
    assert_eq!(hex(&everything()), EVERYTHING);
}

#[test]
fn what_is_only_shown_is_not_in_the_bytes() {
    let named = |name: &str| index("i", vec![(name.into(), Bound::Each)], None);
    assert_eq!(encoded(&named("a")), encoded(&named("b")));
    let union = |order: &str| Plan::Union { children: Vec::new(), order: order.into(), reverse: false };
    assert_eq!(encoded(&union("a")), encoded(&union("b")));
}

/// A plan that finds other rows, or in another order, has other bytes.
#[test]
fn each_part_of_a_plan_is_in_the_bytes() {
    let bounds = |of_ranks| Bounds { of_ranks, ..Bounds::default() };
    let index = |name: &str, by_rank, skip, reverse, of_ranks| Plan::Index {
        index: name.into(),
        by_rank,
        bounds: bounds(of_ranks),
        skip,
        reverse,
    };
    let scan = || Box::new(index("i", false, 0, false, false));
    let of = |field: &str| QueryComponent::Compare {
        operand: Operand::Field(crate::expression::field(field)),
        comparison: Comparison::IsNull,
    };
    let join = |values: Vec<i64>| Plan::InJoin {
        column: "a".into(),
        values: values.into_iter().map(IntoValue::into_value).collect(),
        inner: scan(),
    };
    let plans = [
        index("i", false, 0, false, false),
        index("j", false, 0, false, false),
        index("i", true, 0, false, false),
        index("i", false, 1, false, false),
        index("i", false, 0, true, false),
        index("i", false, 0, false, true),
        Plan::Records { bounds: bounds(false), reverse: false },
        Plan::Records { bounds: bounds(false), reverse: true },
        Plan::Load(scan()),
        Plan::Distinct(scan()),
        Plan::Filter { condition: of("price"), inner: scan() },
        Plan::Filter { condition: of("name"), inner: scan() },
        Plan::Filter { condition: Query::not(of("name")), inner: scan() },
        Plan::Types { types: vec!["ab".into(), "c".into()], inner: scan() },
        Plan::Types { types: vec!["a".into(), "bc".into()], inner: scan() },
        Plan::Union { children: vec![*scan(), *scan()], order: String::new(), reverse: false },
        Plan::Union { children: vec![*scan(), *scan()], order: String::new(), reverse: true },
        Plan::Union { children: vec![*scan()], order: String::new(), reverse: false },
        Plan::Intersection { children: vec![*scan(), *scan()], order: String::new(), reverse: false },
        join(vec![1, 2]),
        join(vec![2, 1]),
        Plan::Nothing,
    ];
    for (i, one) in plans.iter().enumerate() {
        for other in &plans[..i] {
            assert_ne!(encoded(one), encoded(other), "{one}\n{other}");
        }
    }
}

const PRICE: &str = "\
    010b03000000000c1a0a0a046e616d651001180106000000010000000302610008020000000570726963650000000001\
    0000000002150300000000000100";
const EVERYTHING: &str = "\
    010b03000000000d1a0b0a0570726963651001180100000000010000000215010a00000002000000054f726465720000\
    0006466f6c64657206000000020000000008010000000a03000000000d1a0b0a05707269636510011801000000000100\
    000002150103000000000d1a0b0a05707269636510011801010000000100000002150103000000000d1a0b0a05707269\
    636510011801020000000100000002150103000000000d1a0b0a05707269636510011801030000000100000002150103\
    000000000d1a0b0a05707269636510011801040000000100000002150103000000000d1a0b0a05707269636510011801\
    050000000100000002150103000000000d1a0b0a0570726963651001180106000000010000000302610003000000000d\
    1a0b0a0570726963651001180107000000020000000215010000000302610003000000000d1a0b0a0570726963651001\
    1801080000000003000000000d1a0b0a0570726963651001180109000000000203010000000c1a0a0a04746167731001\
    18010000000000010000000302610003020000001322110a0d1a0b0a0570726963651001180118010200000001000000\
    0215020304000000000100000007024f72646572000303080000000003050000000c1a0a0a046e616d65100118010900\
    0000000400000006666c6f77657203000000000c1a0a0a04747970651001180100000000010000000302610005000000\
    056c696e65730003000000000d1a0b0a05636f756e7410011801000000000100000002150109000000054f7264657200\
    000002010000000d1a0b0a05707269636510011801000400000002030000000200000002150100000003026100020000\
    00016900000000010101010000000215010101000000021502000000000000010002000000016a000000000100000000\
    0302610001000001000000030261000000000001000100000000000807050000000201000000000000010000";
