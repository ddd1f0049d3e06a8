//! What indexes are refused for.

use super::orders;
use crate::{
    expression::{Function, KeyExpression, concat, field, function, literal},
    metadata::{Index, IndexRule, MetaDataError, index_types::*},
};

/// What adding the index to orders, which store versions, says.
fn add(index: Index) -> Result<(), MetaDataError> {
    let mut builder = orders();
    builder.set_store_record_versions(true)?;
    builder.add_index(Some("Order"), index)?;
    builder.build().map(|_| ())
}

fn rule_of(kind: &str, expression: impl Into<KeyExpression>) -> Result<(), IndexRule> {
    match add(Index::new("a", expression).kind(kind)) {
        Err(MetaDataError::IndexRule { rule, .. }) => Err(rule),
        other => {
            assert_eq!(other, Ok(()));
            Ok(())
        }
    }
}

#[test]
fn an_index_fits_the_records() {
    let refused =
        |expression: KeyExpression| add(Index::new("a", expression)).expect_err("refused").to_string();
    assert_eq!(refused("none".into()), "index a on Order: Order has no field none");
    assert_eq!(refused(field("line").nest("none")), "index a on Order: Order has no field line.none");
    assert_eq!(
        refused(field("tags").into()),
        "index a on Order: field tags is repeated: fan out or concatenate it"
    );
    assert_eq!(
        refused(field("flower").fan_out().into()),
        "index a on Order: field flower is not repeated: it cannot fan out or be concatenated"
    );
    assert_eq!(
        refused(field("flower").nest("x")),
        "index a on Order: field flower is not a message: nothing can be nested in it"
    );
}

#[test]
fn an_index_of_several_types_fits_all_of_them() {
    let messages = r#"
        message A { optional int64 id = 1 [key]; optional int64 n = 2; } message B { optional int64 id = 1 [key]; }
        message RecordTypeUnion { optional A _A = 1; optional B _B = 2; }
    "#;
    let with = |types: Option<&[&str]>| {
        let mut builder = super::builder(messages)?;
        match types {
            Some(types) => builder.add_multi_type_index(types.iter().copied(), Index::new("a", "n"))?,
            None => builder.add_index(None, Index::new("a", "n"))?,
        };
        builder.build().map(|_| ())
    };
    assert_eq!(with(Some(&["A"])), Ok(()));
    for types in [None, Some(&["A", "B"][..])] {
        let refused = with(types).expect_err("B has no n").to_string();
        assert_eq!(refused, "index a on B: B has no field n");
    }
    assert_eq!(with(Some(&[])), Err(MetaDataError::IndexWithoutTypes { index: "a".into() }));
    assert_eq!(with(Some(&["C"])), Err(MetaDataError::UnknownRecordType { name: "C".into() }));
}

#[test]
fn two_indexes_have_two_names_and_two_numbers() {
    let mut builder = orders();
    builder.add_index(None, Index::new("a", "id")).expect("added");
    let again = builder.add_index(Some("Order"), Index::new("a", "flower")).map(|_| ());
    assert_eq!(again, Err(MetaDataError::TwoIndexes { name: "a".into() }));
    let mut same = Index::new("b", "id");
    same.subspace_key = 1;
    builder.add_index(None, same).expect("added");
    let expected = MetaDataError::TwoSubspaceKeys { first: "a".into(), second: "b".into(), number: 1 };
    assert_eq!(builder.build().map(|_| ()), Err(expected));
    let unknown = MetaDataError::UnknownIndex { name: "c".into() };
    assert_eq!(builder.remove_index("c").map(|_| ()), Err(unknown.clone()));
    assert_eq!(builder.change_index(Index::new("c", "id")).map(|_| ()), Err(unknown));
    builder.remove_index("a").expect("removed");
    assert!(matches!(builder.build(), Err(MetaDataError::TwoSubspaceKeys { number: 1, .. })));
}

#[test]
fn rl23_a_type_of_the_application_is_declared() {
    let index = || Index::new("a", "flower").kind("text");
    let expected = MetaDataError::UnknownIndexType { index: "a".into(), kind: "text".into() };
    assert_eq!(add(index()), Err(expected));
    let mut builder = orders();
    builder.register_index_type("text").add_index(Some("Order"), index()).expect("added");
    assert!(builder.build().is_ok());
}

#[test]
fn functions_are_registered() {
    let index = || Index::new("a", function("half", "price"));
    let refused = add(index()).expect_err("refused").to_string();
    assert_eq!(refused, "index a on Order: no function half is registered");
    let mut builder = orders();
    builder.register_function("half", Function::new(1, |key| Ok(vec![key.clone()])));
    builder.add_index(Some("Order"), index()).expect("added");
    assert!(builder.build().is_ok_and(|meta_data| meta_data.functions().get("half").is_some()));
}

#[test]
fn a_value_index_has_neither_groups_nor_versions() {
    assert_eq!(rule_of(VALUE, concat(["flower", "price"])), Ok(()));
    assert_eq!(rule_of(VALUE, field("price").group_by("flower")), Err(IndexRule::NotGrouped));
    assert_eq!(rule_of(VALUE, KeyExpression::Version), Err(IndexRule::NoVersion));
    assert_eq!(rule_of(VALUE, field("line").nest(KeyExpression::Version)), Err(IndexRule::NoVersion));
}

#[test]
fn rl20_a_version_index_has_one_version_and_needs_versions() {
    assert_eq!(rule_of(VERSION, concat([field("flower").into(), KeyExpression::Version])), Ok(()));
    assert_eq!(rule_of(VERSION, field("line").nest(KeyExpression::Version)), Ok(()));
    assert_eq!(rule_of(VERSION, "flower"), Err(IndexRule::OneVersion(0)));
    let two = concat([KeyExpression::Version, KeyExpression::Version]);
    assert_eq!(rule_of(VERSION, two), Err(IndexRule::OneVersion(2)));
    let grouped = KeyExpression::Version.group_by("flower");
    assert_eq!(rule_of(VERSION, grouped), Err(IndexRule::NotGrouped));
    let unique = add(Index::new("a", KeyExpression::Version).kind(VERSION).unique());
    assert!(matches!(unique, Err(MetaDataError::IndexRule { rule: IndexRule::NotUnique, .. })));
    let mut builder = orders();
    builder.add_index(None, Index::new("a", KeyExpression::Version).kind(VERSION)).expect("added");
    let refused = builder.build().map(|_| ()).expect_err("no versions").to_string();
    assert_eq!(refused, "index a of type version needs meta-data that stores record versions");
}

#[test]
fn rl19_a_rank_index_ranks_its_last_column_or_more() {
    assert_eq!(rule_of(RANK, "price"), Ok(()));
    assert_eq!(rule_of(RANK, concat(["flower", "price"])), Ok(()));
    assert_eq!(rule_of(RANK, concat(["flower", "price"]).group_last(2)), Ok(()));
    assert_eq!(rule_of(RANK, field("price").group_by("flower")), Ok(()));
    assert_eq!(rule_of(RANK, KeyExpression::from("price").group_last(0)), Err(IndexRule::Grouped));
    assert_eq!(rule_of(RANK, KeyExpression::Version), Err(IndexRule::NoVersion));
    assert_eq!(add(Index::new("a", "price").kind(RANK).unique()), Ok(()));
}

#[test]
fn a_count_groups_all_columns() {
    for kind in [COUNT, COUNT_UPDATES] {
        assert_eq!(rule_of(kind, KeyExpression::Empty), Ok(()));
        assert_eq!(rule_of(kind, KeyExpression::from("flower").group_last(0)), Ok(()));
        assert_eq!(rule_of(kind, KeyExpression::Empty.group_by("flower")), Ok(()));
        assert_eq!(rule_of(kind, "flower"), Err(IndexRule::NoneGrouped(1)));
        assert_eq!(rule_of(kind, field("price").group_by("flower")), Err(IndexRule::NoneGrouped(1)));
        let version = KeyExpression::Version.group_last(0);
        assert_eq!(rule_of(kind, version), Err(IndexRule::NoVersion));
        let unique = add(Index::new("a", KeyExpression::Empty).kind(kind).unique());
        assert!(matches!(unique, Err(MetaDataError::IndexRule { rule: IndexRule::NotUnique, .. })));
    }
}

#[test]
fn a_sum_is_of_one_integer() {
    assert_eq!(rule_of(SUM, "price"), Ok(()));
    assert_eq!(rule_of(SUM, field("line").nest("amount").group_by("flower")), Ok(()));
    assert_eq!(rule_of(SUM, field("lines").fan_out().nest("amount").ungrouped()), Ok(()));
    assert_eq!(rule_of(SUM, literal(1).group_by("flower")), Ok(()));
    assert_eq!(rule_of(SUM, concat(["id", "price"]).ungrouped()), Err(IndexRule::OneGrouped(2)));
    assert_eq!(rule_of(SUM, KeyExpression::from("price").group_last(0)), Err(IndexRule::OneGrouped(0)));
    for other in ["flower", "weight"] {
        assert_eq!(rule_of(SUM, other), Err(IndexRule::Integer), "{other}");
    }
    assert_eq!(rule_of(SUM, literal("x")), Err(IndexRule::Integer));
    assert_eq!(rule_of(SUM, function("lower", "flower")), Err(IndexRule::Integer));
    assert_eq!(rule_of(SUM, KeyExpression::RecordType), Err(IndexRule::Integer));
}

#[test]
fn least_and_greatest_are_of_a_column_or_more() {
    for kind in [MIN_EVER, MAX_EVER] {
        assert_eq!(rule_of(kind, "flower"), Ok(()));
        assert_eq!(rule_of(kind, concat(["flower", "price"]).ungrouped()), Ok(()));
        assert_eq!(rule_of(kind, KeyExpression::from("price").group_last(0)), Err(IndexRule::Grouped));
        assert_eq!(rule_of(kind, KeyExpression::Version), Err(IndexRule::NoVersion));
    }
}

/// An index that does not say what it ranks or aggregates means its last column.
#[test]
fn the_last_column_is_grouped_by_default() {
    let mut builder = orders();
    builder.add_index(None, Index::new("a", concat(["flower", "price"])).kind(RANK)).expect("added");
    let meta_data = builder.build().expect("valid");
    let expected = concat(["flower", "price"]).group_last(1);
    assert_eq!(meta_data.index("a").map(|index| index.expression.clone()), Some(expected));
}
