//! Queries that do not fit the meta-data.

use super::{all_indexes, shop};
use crate::{
    expression::{KeyExpression, concat, field},
    metadata::Index,
    query::{Query, QueryComponent, QueryError, RecordQuery, plan_query, planner::plan_in},
    value::IntoValue,
    version::RecordVersion,
};

fn refused(query: &RecordQuery) -> String {
    plan_query(query, &shop(all_indexes()), &|_| true).expect_err("the query is refused").to_string()
}

fn order(filter: QueryComponent) -> String {
    refused(&RecordQuery::of("Order").filter(filter))
}

#[test]
fn a_query_names_what_is_there() {
    assert_eq!(refused(&RecordQuery::of("Book")), "there is no record type Book");
    assert_eq!(order(Query::field("size").equals(1)), "Order has no field size");
    let nested = Query::field("flower").matches(Query::field("size").equals(1));
    assert_eq!(order(nested), "Order has no field flower.size");
    let folders = RecordQuery::of_types(["Order", "Folder"]).filter(Query::field("price").equals(1));
    assert_eq!(refused(&folders), "Folder has no field price");
    let typed = RecordQuery::all().filter(Query::record_type().equals("Book"));
    assert_eq!(refused(&typed), "there is no record type Book");
    let sorted = refused(&RecordQuery::of("Order").sort("size"));
    assert!(sorted.starts_with("Order: ") && sorted.contains("size"), "{sorted}");
    let required = refused(&RecordQuery::of("Order").required_results(["size"]));
    assert!(required.starts_with("Order: ") && required.contains("size"), "{required}");
}

#[test]
fn a_value_is_of_the_type_that_it_is_compared_with() {
    let compare = |field: &str, value: crate::value::Value| order(Query::field(field).equals(value));
    assert_eq!(compare("price", "5".into_value()), "price is an integer: it cannot be compared with \"5\"");
    assert_eq!(
        compare("weight", 5.into_value()),
        "weight is a 64-bit floating-point number: it cannot be compared with 5"
    );
    assert_eq!(compare("name", vec![1u8].into_value()), "name is a string: it cannot be compared with 0x01");
    assert_eq!(compare("code", "a".into_value()), "code is bytes: it cannot be compared with \"a\"");
    assert_eq!(compare("paid", 1.into_value()), "paid is a Boolean: it cannot be compared with 1");
    assert_eq!(
        compare("color", "RED".into_value()),
        "color is an integer: it cannot be compared with \"RED\""
    );
    let list = Query::field("price").is_in([5.into_value(), true.into_value()]);
    assert_eq!(order(list), "price is an integer: it cannot be compared with true");
    let starts = Query::field("price").starts_with(5);
    assert_eq!(order(starts), "price is neither a string nor bytes: it starts with nothing");
    let rank = Query::rank("weight").equals("first");
    assert_eq!(order(rank), "rank of weight is an integer: it cannot be compared with \"first\"");
    assert_eq!(order(Query::version().equals(1)), "version is a version: it cannot be compared with 1");
    let typed = Query::record_type().less_than("Order");
    assert_eq!(order(typed), "record type is the name of a record type: it cannot be compared with an order");
    let tags = Query::key(field("tags").concatenate()).equals("a");
    assert_eq!(order(tags), "tags[*] is a list: it cannot be compared with \"a\"");
    let tag = Query::field("tags").one_of_them().equals(1);
    assert_eq!(order(tag), "tags is a string: it cannot be compared with 1");
    let null = RecordQuery::of("Order").filter(Query::field("price").equals(None::<i32>));
    assert!(plan_query(&null, &shop([]), &|_| true).is_ok());
}

#[test]
fn a_field_is_used_as_what_it_is() {
    let any = || Query::field("item").equals("pen");
    assert_eq!(
        order(Query::field("price").matches(any())),
        "field price is not a message: it has no fields to match"
    );
    assert_eq!(
        order(Query::field("lines").matches(any())),
        "field lines is repeated: compare one of its elements"
    );
    assert_eq!(
        order(Query::field("tags").equals("a")),
        "field tags is repeated: compare one of its elements"
    );
    let one = Query::field("price").one_of_them().equals(1);
    assert_eq!(order(one), "field price is not repeated: it has no elements");
    let nested = Query::field("flower").one_of_them().matches(any());
    assert_eq!(order(nested), "field flower is not repeated: it has no elements");
    assert_eq!(order(Query::field("flower").is_null()), "field flower is a message: match a field of it");
    let version = Query::field("flower").matches(Query::version().is_null());
    assert_eq!(order(version), "version is not in flower: compare it outside");
    let two = Query::key(concat(["name", "price"])).equals(1);
    assert_eq!(order(two), "(name, price) has 2 columns: compare one");
    let incomplete = Query::version().greater_than(RecordVersion::incomplete(0));
    assert_eq!(order(incomplete), "an incomplete version cannot be compared");
}

#[test]
fn an_order_or_a_rank_needs_an_index() {
    let plan = |query: &RecordQuery| plan_query(query, &shop(all_indexes()), &|_| true);
    let sorted = RecordQuery::of("Order").sort(field("flower").nest("color"));
    assert_eq!(plan(&sorted), Err(QueryError::NoOrder("flower.color".into())));
    let ranked = RecordQuery::of("Order").filter(Query::rank("price").equals(1));
    assert_eq!(plan(&ranked), Err(QueryError::NoRankIndex("price".into())));
    let building = RecordQuery::of("Order").filter(Query::rank("weight").equals(1));
    let found = plan_query(&building, &shop(all_indexes()), &|index| index.name != "rank");
    assert_eq!(found, Err(QueryError::NoRankIndex("weight".into())));
}

#[test]
fn a_condition_that_is_nested_too_deeply_is_refused() {
    let nested = |depth: usize| {
        (0..depth).fold(Query::field("price").equals(5), |inner, n| match n % 3 {
            0 => Query::not(inner),
            1 => Query::and([inner]),
            _ => Query::or([inner]),
        })
    };
    assert_eq!(order(nested(5_000)), "the condition is nested deeper than 127");
    let message = shop([]).record_type("Order").expect("a type").message.clone();
    let message = prost_reflect::DynamicMessage::new(message);
    let (key, functions) = (1.into_value(), crate::expression::Functions::default());
    let subject = crate::expression::Subject {
        message: Some(&message),
        record_type: &key,
        version: None,
        functions: &functions,
    };
    assert!(nested(5_000).evaluate(subject).is_err());
    assert_eq!(nested(126).evaluate(subject), Ok(None));
    assert!(plan_query(&RecordQuery::of("Order").filter(nested(126)), &shop([]), &|_| true).is_ok());
}

/// An index of versions has the order that is asked for, and no other index does. It is refused once the
/// transaction has entries in it, which a scan does not find; a query about versions may still use it.
#[test]
fn no_order_is_better_than_one_that_leaves_out_own_writes() {
    let meta_data = shop(all_indexes());
    let plan = |query: &RecordQuery, hides: bool| {
        let readable = |index: &Index| index.name == "quantity_version";
        plan_in(query, &meta_data, &readable, &|_| hides).map(|plan| plan.explain())
    };
    let sorted = RecordQuery::of("Order").sort("quantity");
    let scanned = plan(&sorted, false).expect("nothing was written");
    assert!(scanned.contains("Scan index quantity_version"), "{scanned}");
    let refused = plan(&sorted, true).expect_err("the transaction has written");
    assert_eq!(refused.to_string(), "no index gives this order: quantity");
    let by_version =
        RecordQuery::of("Order").sort(concat([field("quantity").into(), KeyExpression::Version]));
    assert!(plan(&by_version, true).is_ok());
    // Versions that a query only wants to know do not make it one about versions.
    let told = sorted.required_results([KeyExpression::Version]);
    assert!(plan(&told, true).is_err());
    assert!(plan(&told, false).is_ok());
}
