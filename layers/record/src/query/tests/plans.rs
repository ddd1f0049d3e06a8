//! Plans, as `explain` shows them.

use super::{ORDER, explain, explain_in, shop};
use crate::{
    expression::{KeyExpression, concat, field, function},
    metadata::{Index, index_types},
    query::{Query, QueryComponent, RecordQuery, plan_query},
    version::RecordVersion,
};

fn orders(filter: QueryComponent) -> RecordQuery {
    RecordQuery::of("Order").filter(filter)
}

fn price() -> crate::query::QueryField {
    Query::field("price")
}

/// The queries with their plans, in one text.
fn plans(queries: impl IntoIterator<Item = RecordQuery>) -> String {
    let plan = |query: RecordQuery| format!("{query}\n{}\n", indented(&explain(&query)));
    queries.into_iter().map(plan).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn one_index() {
    let flower = |field: &str, value: &str| Query::field("flower").matches(Query::field(field).equals(value));
    insta::assert_snapshot!(plans([
        RecordQuery::all(),
        RecordQuery::of("Order"),
        orders(price().equals(5)),
        orders(price().greater_than(5)),
        orders(price().less_or_equal(5)),
        orders(Query::and([price().greater_than(5), price().less_than(9), price().greater_or_equal(6)])),
        orders(price().is_null()),
        orders(price().not_null()),
        orders(price().not_equals(5)),
        orders(price().equals(None::<i32>)),
        orders(Query::not(price().less_than(5))),
        orders(Query::not(Query::or([price().less_than(5), Query::field("quantity").equals(1)]))),
        orders(Query::and([Query::field("paid").equals(true), price().greater_than(5)])),
        orders(Query::and([price().equals(5), Query::field("paid").not_equals(true)])),
        orders(flower("type", "ROSE")),
        orders(Query::and([
            flower("type", "ROSE"),
            Query::field("flower").matches(Query::field("color").equals(1))
        ])),
        orders(Query::field("name").starts_with("a")),
        orders(Query::field("code").equals(vec![1u8])),
        orders(Query::field("order_id").equals(7)),
        orders(Query::and([price().equals(5), Query::field("order_id").greater_than(7)])),
        orders(Query::key(function("lower", "name")).equals("ann")),
    ]));
}

#[test]
fn repeated_fields() {
    let tag = || Query::field("tags").one_of_them();
    let line = |component| Query::field("lines").one_of_them().matches(component);
    let item = || Query::field("item").equals("pen");
    let count = || Query::field("count").equals(2);
    insta::assert_snapshot!(plans([
        orders(tag().equals("new")),
        orders(tag().greater_than("new")),
        orders(tag().greater_than("new")).remove_duplicates(false),
        // Two conditions may be true for two elements: they are no range.
        orders(Query::and([tag().greater_than("a"), tag().less_than("b")])),
        orders(Query::and([tag().equals("new"), tag().equals("old")])),
        orders(Query::not(tag().equals("new"))),
        orders(tag().is_in(["new", "old"])),
        // One element has both: in one index its columns are of the same element, in the other they are not.
        orders(line(Query::and([item(), count()]))),
        orders(Query::and([line(item()), line(count())])),
        orders(line(item())),
        orders(line(Query::field("notes").one_of_them().equals("x"))),
        orders(Query::field("name").equals("ann")),
        orders(Query::and([Query::field("name").equals("ann"), tag().equals("new")])),
    ]));
}

#[test]
fn orders_that_are_asked_for() {
    let tags = || field("tags").fan_out();
    let name_is = || Query::field("name").equals("ann");
    insta::assert_snapshot!(plans([
        RecordQuery::of("Order").sort("price"),
        RecordQuery::of("Order").sort("price").reverse(),
        RecordQuery::of("Order").sort("order_id").reverse(),
        RecordQuery::of("Order").reverse(),
        RecordQuery::of("Order").sort("weight"),
        RecordQuery::of("Order").sort("color"),
        RecordQuery::of("Order").sort(field("flower").nest("color")),
        orders(Query::field("paid").equals(true)).sort("price"),
        orders(Query::field("paid").equals(true)).sort("quantity"),
        orders(price().equals(5)).sort("price"),
        orders(price().equals(5)).sort(concat(["price", "order_id"])),
        orders(price().greater_than(5)).sort(concat(["price", "order_id", "name"])),
        RecordQuery::of("Order").sort(tags()),
        RecordQuery::of("Order").sort(tags()).remove_duplicates(false),
        RecordQuery::of("Order").sort(field("tags").concatenate()),
        orders(Query::field("tags").one_of_them().equals("new")).sort(tags()),
        orders(name_is()).sort(tags()),
        orders(name_is()).sort(concat([KeyExpression::from(field("name")), tags().into()])),
        orders(Query::field("tags").one_of_them().equals("new")).sort("order_id"),
        orders(Query::field("tags").one_of_them().greater_than("new")).sort("order_id"),
        RecordQuery::of("Order").sort(KeyExpression::Version),
        RecordQuery::all().sort("name"),
        RecordQuery::of("Order").sort(function("lower", "name")),
    ]));
}

#[test]
fn several_indexes() {
    let quantity = || Query::field("quantity");
    let tag = |tag: &str| Query::field("tags").one_of_them().equals(tag);
    insta::assert_snapshot!(plans([
        orders(Query::and([price().equals(5), quantity().equals(1)])),
        orders(Query::and([price().equals(5), quantity().equals(1), Query::field("weight").equals(1.5)])),
        orders(Query::and([price().equals(5), quantity().greater_than(1)])),
        orders(Query::and([tag("new"), tag("old")])).sort("order_id"),
        orders(Query::or([price().equals(5), quantity().equals(1)])),
        orders(Query::or([price().equals(5), quantity().equals(1)])).sort("order_id").reverse(),
        orders(Query::or([price().equals(5), quantity().greater_than(1)])),
        orders(Query::or([price().equals(5), quantity().greater_than(1)])).sort("order_id"),
        orders(Query::or([price().less_than(5), price().greater_than(9)])).sort("price"),
        orders(Query::or([price().equals(5), Query::field("weight").not_equals(1.0)])),
        orders(Query::or([
            Query::and([price().equals(5), Query::field("paid").not_equals(true)]),
            quantity().equals(1),
        ])),
        orders(Query::and([
            Query::field("name").not_equals("ann"),
            Query::or([price().equals(5), quantity().equals(1)]),
        ])),
        orders(Query::or([price().equals(5), price().equals(None::<i32>)])),
        orders(price().is_in([9, 5, 9])),
        orders(price().is_in([5])),
        orders(price().is_in(Vec::<i32>::new())),
        orders(price().is_in([9, 5])).sort("price").reverse(),
        orders(price().is_in([9, 5])).sort("order_id"),
        orders(Query::and([Query::field("paid").is_in([true, false]), price().equals(5)])),
        orders(Query::field("tags").one_of_them().is_in(["a", "b"])).sort("order_id"),
    ]));
}

#[test]
fn ranks_versions_and_types() {
    let version = RecordVersion::complete([1; 10], 2);
    let by_color = || field("weight").group_by("color");
    insta::assert_snapshot!(plans([
        orders(Query::rank("weight").equals(10)),
        orders(Query::and([Query::rank("weight").greater_or_equal(5), Query::rank("weight").less_than(9)])),
        orders(Query::and([Query::rank(by_color()).less_than(3), Query::field("color").equals(1)])),
        orders(Query::rank(by_color()).less_than(3)),
        orders(Query::rank("weight").less_than(3)).sort("weight").reverse(),
        orders(Query::rank("price").less_than(3)),
        orders(Query::field("weight").greater_than(1.0)),
        orders(Query::version().greater_than(version.clone())),
        RecordQuery::all().filter(Query::version().greater_than(version.clone())),
        orders(Query::and([Query::version().greater_than(version), Query::field("quantity").equals(42)])),
        RecordQuery::all().sort(KeyExpression::Version),
        RecordQuery::of("Customer").filter(Query::field("name").equals("ann")),
        RecordQuery::of_types(["Order", "Customer"]).filter(Query::field("name").equals("ann")),
        RecordQuery::of_types(["Order", "Folder"]).filter(Query::field("name").equals("ann")),
        RecordQuery::all().filter(Query::record_type().equals("Order")),
        RecordQuery::of_types(["Order", "Customer"]).filter(price().equals(5)),
        RecordQuery::of_types(["Order", "Folder"]).sort("name"),
    ]));
}

#[test]
fn entries_that_have_all_that_is_required() {
    let some = |fields: &[&'static str]| RecordQuery::of("Order").required_results(fields.iter().copied());
    let type_of_flower = field("flower").nest("type");
    insta::assert_snapshot!(plans([
        some(&["price"]),
        some(&["price", "order_id"]).filter(price().greater_than(5)),
        some(&["price", "name"]).filter(price().greater_than(5)),
        some(&["price"]).filter(Query::and([price().greater_than(5), price().not_equals(7)])),
        some(&["price"]).filter(Query::and([price().greater_than(5), Query::field("weight").equals(1.0)])),
        some(&["name"]).filter(Query::field("tags").one_of_them().equals("new")),
        some(&["order_id"]).filter(Query::field("tags").one_of_them().greater_than("new")),
        RecordQuery::of("Order").required_results([type_of_flower]).sort(field("flower").nest("type")),
        RecordQuery::of("Customer").required_results(["name"]).sort("name"),
        some(&["color", "weight"]).filter(Query::and([
            Query::rank(field("weight").group_by("color")).less_than(3),
            Query::field("color").equals(1),
        ])),
    ]));
}

#[test]
fn a_primary_key_that_begins_with_the_record_type() {
    let mut builder = crate::metadata::RecordMetaData::builder();
    builder.set_records(&crate::metadata::compile(super::SCHEMA).unwrap()).unwrap();
    for (name, key) in [("Order", "order_id"), ("Customer", "order_id"), ("Folder", "child")] {
        let typed = concat([KeyExpression::RecordType, field(key).into()]);
        builder.record_type(name).unwrap().set_primary_key(typed);
    }
    builder.add_index(None, Index::new("name_of_all", "name")).unwrap();
    builder.add_index(Some("Order"), Index::new("paid_price", concat(["paid", "price"]))).unwrap();
    let meta_data = builder.build().unwrap();
    let plan = |query| explain_in(&meta_data, &query);
    // The type alone is no reason to scan all records of the type.
    assert_eq!(
        plan(orders(Query::field("paid").equals(true))),
        "Load records\n  Scan index paid_price: paid = true"
    );
    assert_eq!(
        plan(orders(Query::field("name").less_than("b"))),
        "Records of Order\n  Load records\n    Scan index name_of_all: name < \"b\""
    );
    assert_eq!(plan(RecordQuery::of("Customer")), "Scan records: record type = 2");
    assert_eq!(plan(RecordQuery::of("Order").sort("order_id")), "Scan records: record type = 1");
    assert_eq!(
        plan(RecordQuery::of("Order").filter(Query::field("order_id").less_than(7))),
        "Scan records: record type = 1, order_id < 7"
    );
    assert_eq!(
        plan(RecordQuery::of("Order").filter(Query::field("name").equals("ann"))),
        "Load records\n  Scan index name_of_all: name = \"ann\", record type = 1"
    );
}

#[test]
fn an_index_that_cannot_be_used_is_not() {
    let query = orders(price().equals(5));
    let meta_data = shop([
        (ORDER, Index::new("a", "price")),
        (ORDER, Index::new("b", concat(["price", "name"]))),
        (&["Customer"], Index::new("of_customers", "price")),
    ]);
    let with = |readable: &[&str]| {
        plan_query(&query, &meta_data, &|index| readable.contains(&&*index.name)).unwrap().explain()
    };
    let scan = "Filter: price = 5\n  Records of Order\n    Scan records: everything";
    assert_eq!(with(&["a", "b", "of_customers"]), "Load records\n  Scan index a: price = 5");
    assert_eq!(with(&["b", "of_customers"]), "Load records\n  Scan index b: price = 5");
    assert_eq!(with(&["of_customers"]), scan);

    // An index of groups has no entries of records; nor does one that an application maintains, as far as is
    // known.
    let count =
        shop([(ORDER, Index::new("count", KeyExpression::Empty.group_by("price")).kind(index_types::COUNT))]);
    assert_eq!(explain_in(&count, &query), scan);
    let mut builder = crate::metadata::RecordMetaData::builder();
    builder.set_records(&crate::metadata::compile(super::SCHEMA).unwrap()).unwrap();
    for name in ["Order", "Customer", "Folder"] {
        builder.record_type(name).unwrap().set_primary_key("name");
    }
    builder.register_index_type("mine");
    builder.add_index(Some("Order"), Index::new("mine", "price").kind("mine")).unwrap();
    assert_eq!(explain_in(&builder.build().unwrap(), &query), scan);

    // What is asked of two elements is not in the columns of one.
    let lines =
        shop([(ORDER, Index::new("lines", field("lines").fan_out().nest(concat(["item", "count"]))))]);
    let line = |component| Query::field("lines").one_of_them().matches(component);
    let both = || [Query::field("item").equals("pen"), Query::field("count").equals(2)];
    let one = explain_in(&lines, &orders(line(Query::and(both()))));
    assert_eq!(one, "Load records\n  Scan index lines: lines[].item = \"pen\", lines[].count = 2");
    let two = explain_in(&lines, &orders(Query::and(both().map(line))));
    assert!(two.ends_with("Scan index lines: lines[].item = \"pen\""), "{two}");

    // A record without tags has no entry.
    let tags = shop([(ORDER, Index::new("price_tags", concat([field("price"), field("tags").fan_out()])))]);
    assert_eq!(explain_in(&tags, &query), scan);
    // An absent price is zero in this index.
    let zero = shop([(ORDER, Index::new("price", field("price").not_null()))]);
    assert_eq!(explain_in(&zero, &query), scan);
    let asked = orders(Query::field(field("price").not_null()).equals(0));
    assert_eq!(explain_in(&zero, &asked), "Load records\n  Scan index price: price! = 0");
}

/// The rows of branches are merged by the whole primary key: a column of it that has one value in each branch
/// may have another one in the next.
#[test]
fn branches_are_not_in_the_order_of_what_follows_their_own_values() {
    let in_folder = |name: &str| Query::field("parent").equals(name);
    let by = |filter, sort: &str| explain(&RecordQuery::of("Folder").filter(filter).sort(sort));
    let either = || Query::or([in_folder("a"), in_folder("b")]);
    assert_eq!(by(in_folder("a"), "child"), "Records of Folder\n  Scan records: parent = \"a\"");
    assert_eq!(by(either(), "child"), "refused: no index gives this order: child");
    let by_parent = by(either(), "parent");
    assert!(by_parent.ends_with("Scan records: everything"), "{by_parent}");
}

/// A column of an index that has one value in all rows is passed over, wherever it is: but not the columns
/// that have one value in each branch.
#[test]
fn columns_with_one_value_are_in_any_order() {
    let index = Index::new("all", concat(["price", "name", "quantity"]));
    let meta_data = shop([(ORDER, index)]);
    let by = |filter, columns: &[&str]| {
        let query = RecordQuery::of("Order").filter(filter).sort(concat(columns.iter().copied()));
        explain_in(&meta_data, &query)
    };
    let name_is = |name: &str| Query::field("name").equals(name);
    let scan = "Filter: name = \"ann\"\n  Load records\n    Scan index all: everything";
    for columns in
        [&["price", "quantity"][..], &["price", "name", "quantity"], &["name", "price", "quantity"]]
    {
        assert_eq!(by(name_is("ann"), columns), scan, "{columns:?}");
    }
    assert!(by(name_is("ann"), &["quantity"]).starts_with("refused"));
    let either = |price: i32, name: &str| Query::and([Query::field("price").equals(price), name_is(name)]);
    let branches = |others: &str| Query::or([either(1, "ann"), either(2, others)]);
    assert!(by(branches("bob"), &["price", "quantity"]).starts_with("refused"));
    let common = Query::and([name_is("ann"), Query::or([price().equals(1), price().equals(2)])]);
    let merged = by(common, &["quantity"]);
    assert!(!merged.starts_with("refused"), "{merged}");
}

#[test]
fn a_plan_is_found_for_any_number_of_branches() {
    let branches = (0..100).map(|n| Query::and([price().equals(n), Query::field("quantity").equals(n)]));
    let text = explain(&orders(Query::or(branches)));
    assert!(text.starts_with("Filter: (price = 0 and quantity = 0) or"), "{text}");
    let few = (0..10).map(|n| Query::and([price().equals(n), Query::field("quantity").equals(n)]));
    assert_eq!(explain(&orders(Query::or(few))).matches("Intersection").count(), 10);
    // Nor are more than so many scans merged.
    let sorted = |values: i32| orders(price().is_in(0..values)).sort("order_id");
    assert!(explain(&sorted(64)).starts_with("Load records\n  Union"));
    assert!(explain(&sorted(65)).starts_with("Filter"));
}
