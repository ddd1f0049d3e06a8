//! Which meta-data can follow which.

use super::{builder, file_text, orders};
use crate::{
    expression::{KeyExpression, concat, field},
    metadata::{
        EvolutionError, FormerIndex, Index, IndexChange, RecordMetaData, RecordMetaDataBuilder, compile,
        index_types,
    },
};

/// Orders of version 10, with two indexes, and a former one.
fn old() -> RecordMetaData {
    let mut builder = orders();
    builder.set_store_record_versions(true).expect("set");
    builder.add_index(Some("Order"), Index::new("flower", "flower").option("k", "v")).expect("added");
    builder.add_index(None, Index::new("id", "id").unique()).expect("added");
    builder.add_index(None, Index::new("gone", "id")).expect("added");
    builder.remove_index("gone").expect("removed");
    builder.set_version(10);
    builder.build().expect("valid")
}

/// What [`old`] and its successor of version 20, after this change, say.
fn after(change: impl FnOnce(&mut RecordMetaDataBuilder)) -> Result<(), EvolutionError> {
    let mut builder = old().to_builder();
    change(&mut builder);
    builder.set_version(20);
    builder.build().expect("valid").validate_evolution(&old())
}

/// What a file says that follows another; both have the message `Order` and no index.
fn records(before: &str, after: &str) -> Result<(), EvolutionError> {
    let before = file(before);
    let mut builder = RecordMetaData::builder();
    builder.set_records(&before).expect("valid records");
    let old = builder.build().expect("valid");
    let after = compile(&file_text(after)).or_else(|_| compile(after)).expect("a valid file");
    builder.update_records(&after).expect("valid records");
    builder.build().expect("valid").validate_evolution(&old)
}

fn file(text: &str) -> prost_reflect::FileDescriptor {
    compile(&file_text(text)).or_else(|_| compile(text)).expect("a valid file")
}

/// What changing a field of `Order` says.
fn fields(before: &str, after: &str) -> Result<(), EvolutionError> {
    let order = |field: &str| {
        format!(
            "message Order {{ optional int64 id = 1 [key]; {field} }} message Line {{ optional int32 n = 1; }}
            message Other {{ optional string n = 1; }} enum Size {{ S = 1; M = 2; }} enum Less {{ S1 = 1; }}
            enum More {{ M3 = 2; S3 = 1; L3 = 3; }}"
        )
    };
    records(&order(before), &order(after))
}

#[test]
fn meta_data_follows_itself_and_every_change_is_a_later_version() {
    assert_eq!(old().validate_evolution(&old()), Ok(()));
    assert_eq!(after(|_| {}), Ok(()));
    let mut same = old().to_builder();
    same.add_index(None, Index::new("new", "id")).expect("added");
    same.set_version(11);
    let newer = same.build().expect("valid");
    assert_eq!(newer.validate_evolution(&old()), Ok(()));
    let back = EvolutionError::VersionNotLater { old: 11, new: 10 };
    assert_eq!(old().validate_evolution(&newer), Err(back));
    let mut other = old().to_builder();
    other.set_version(10).record_type("Order").expect("a type").set_primary_key("flower");
    let other = other.build().expect("valid");
    let equal = EvolutionError::VersionNotLater { old: 10, new: 10 };
    assert_eq!(other.validate_evolution(&old()), Err(equal));
}

#[test]
fn what_is_stored_with_records_is_not_turned_off() {
    let versions = after(|builder| _ = builder.set_store_record_versions(false).expect("set"));
    assert_eq!(versions, Err(EvolutionError::RecordVersionsDropped));
    let split = after(|builder| _ = builder.set_split_long_records(false).expect("set"));
    assert_eq!(split, Err(EvolutionError::SplitDropped));
}

#[test]
fn a_record_type_keeps_its_key_and_its_version() {
    let primary = after(|builder| {
        builder.record_type("Order").expect("a type").set_primary_key(concat(["flower", "id"]));
    });
    let expected = EvolutionError::PrimaryKey {
        record_type: "Order".into(),
        old: "id".into(),
        new: "(flower, id)".into(),
    };
    assert_eq!(primary, Err(expected));
    let key = after(|builder| _ = builder.record_type("Order").expect("a type").set_record_type_key("o"));
    let expected =
        EvolutionError::RecordTypeKey { record_type: "Order".into(), old: "1".into(), new: "\"o\"".into() };
    assert_eq!(key, Err(expected));
    let since = after(|builder| _ = builder.record_type("Order").expect("a type").set_since_version(3));
    assert_eq!(since, Err(EvolutionError::SinceVersion { record_type: "Order".into(), old: 0, new: 3 }));
}

const TWO: &str = r#"
    message Order { optional int64 id = 1 [key]; } message Shop { optional int64 id = 1 [key]; }
    message RecordTypeUnion { optional Order _Order = 1; optional Shop _Shop = 2; }
"#;

#[test]
fn a_record_type_is_neither_dropped_nor_split_nor_merged() {
    let types = |union: &str| {
        let messages = format!(
            "message Order {{ optional int64 id = 1 [key]; }} message Shop {{ optional int64 id = 1 [key]; }}
            message RecordTypeUnion {{ {union} }}"
        );
        records(TWO, &messages)
    };
    assert_eq!(types("optional Order _Order = 1; optional Shop _Shop = 2;"), Ok(()));
    assert_eq!(types("optional Order _Order = 1;"), Err(EvolutionError::RecordTypeDropped("Shop".into())));
    let moved = types("optional Order _Order = 1; optional Shop _Shop = 3;");
    assert_eq!(moved, Err(EvolutionError::RecordTypeDropped("Shop".into())));
    let merged = types("optional Order a = 1; optional Order b = 2;");
    let expected = EvolutionError::RecordTypesMerged {
        first: "Order".into(),
        second: "Shop".into(),
        new: "Order".into(),
    };
    assert_eq!(merged, Err(expected));
    let split = records(
        "message Order { optional int64 id = 1 [key]; } message RecordTypeUnion { optional Order a = 1; optional Order b = 2; }",
        TWO,
    );
    let expected =
        EvolutionError::RecordTypeSplit { old: "Order".into(), first: "Order".into(), second: "Shop".into() };
    assert_eq!(split, Err(expected));
}

#[test]
fn a_record_type_may_get_another_name() {
    let renamed = TWO.replace("Shop", "Store");
    assert_eq!(records(TWO, &renamed), Ok(()));
}

#[test]
fn a_new_record_type_says_since_when_it_is() {
    let one = "message Order { optional int64 id = 1 [key]; }";
    assert_eq!(records(one, TWO), Ok(()));
    let mut old = builder(one).expect("valid records");
    old.set_version(4);
    let old = old.build().expect("valid");
    let mut new = old.to_builder();
    new.update_records(&file(TWO))
        .expect("updated")
        .record_type("Shop")
        .expect("a type")
        .set_since_version(4);
    let refused = new.build().expect("valid").validate_evolution(&old);
    assert_eq!(refused, Err(EvolutionError::NewRecordType { record_type: "Shop".into(), since: 4, old: 4 }));
}

#[test]
fn a_field_keeps_its_name_its_number_and_its_type() {
    let path = || "Order.a".to_owned();
    assert_eq!(fields("optional int32 a = 2;", "optional int32 a = 2; optional string b = 3;"), Ok(()));
    assert_eq!(fields("optional int32 a = 2;", ""), Err(EvolutionError::FieldDropped { path: path() }));
    assert_eq!(
        fields("optional int32 a = 2;", "optional int32 a = 3;"),
        Err(EvolutionError::FieldDropped { path: path() })
    );
    assert_eq!(
        fields("optional int32 a = 2;", "optional int32 b = 2;"),
        Err(EvolutionError::FieldRenamed { path: path(), new: "b".into() })
    );
    let types =
        |old: &str, new: &str| fields(&format!("optional {old} a = 2;"), &format!("optional {new} a = 2;"));
    assert_eq!(types("int32", "int64"), Ok(()));
    assert_eq!(types("sint32", "sint64"), Ok(()));
    for (old, new) in [
        ("int64", "int32"),
        ("int32", "sint32"),
        ("sfixed32", "sfixed64"),
        ("string", "bytes"),
        ("bool", "int32"),
        ("float", "double"),
        ("int32", "string"),
    ] {
        let expected = EvolutionError::FieldType { path: path(), old: old.into(), new: new.into() };
        assert_eq!(types(old, new), Err(expected));
    }
    assert!(matches!(types("Size", "int32"), Err(EvolutionError::FieldType { .. })));
    assert!(matches!(types("Line", "string"), Err(EvolutionError::FieldType { .. })));
    let group = fields("optional group A = 2 { optional int32 n = 1; }", "optional Line a = 2;");
    assert!(matches!(group, Err(EvolutionError::FieldType { .. })), "{group:?}");
}

#[test]
fn a_field_keeps_its_label() {
    let labels = |old: &str, new: &str| fields(&format!("{old} a = 2;"), &format!("{new} a = 2;"));
    for (old, new) in [
        ("optional", "required"),
        ("required", "optional"),
        ("optional", "repeated"),
        ("repeated", "optional"),
    ] {
        let expected = Err(EvolutionError::FieldLabel { path: "Order.a".into(), old, new });
        assert_eq!(labels(&format!("{old} int32"), &format!("{new} int32")), expected);
    }
    assert!(matches!(labels("map<string, string>", "repeated Line"), Err(EvolutionError::FieldLabel { .. })));
    let order = |label| {
        format!(
            r#"syntax = "proto3"; import "record_metadata_options.proto";
            message Order {{ int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true]; {label} int32 a = 2; }}
            message RecordTypeUnion {{ Order _Order = 1; }}"#
        )
    };
    let (old, new) = ("without presence", "optional");
    let expected = Err(EvolutionError::FieldLabel { path: "Order.a".into(), old, new });
    assert_eq!(records(&order(""), &order("optional")), expected);
    let proto2 = order("optional").replace("proto3", "proto2").replace("int64 id", "optional int64 id");
    let proto2 = proto2.replace("{ Order", "{ optional Order");
    assert_eq!(records(&proto2, &order("optional")), Err(EvolutionError::Syntax { message: "Order".into() }));
}

#[test]
fn a_new_field_is_not_required() {
    let expected = Err(EvolutionError::RequiredField { path: "Order.a".into() });
    assert_eq!(fields("", "required int32 a = 2;"), expected);
}

#[test]
fn a_field_keeps_its_default_value() {
    let default = |old: &str, new: &str| fields(&format!("optional {old};"), &format!("optional {new};"));
    let expected = Err(EvolutionError::FieldDefault { path: "Order.a".into() });
    assert_eq!(default("int32 a = 2 [default = 1]", "int32 a = 2 [default = 2]"), expected);
    assert_eq!(default("int32 a = 2", "int32 a = 2 [default = 2]"), expected);
    assert_eq!(default("int32 a = 2 [default = 1]", "int64 a = 2 [default = 1]"), Ok(()));
    assert_eq!(default("Size a = 2", "More a = 2"), expected);
    assert_eq!(default("Size a = 2", "More a = 2 [default = S3]"), Ok(()));
}

#[test]
fn an_enumeration_keeps_its_values() {
    let expected = Err(EvolutionError::EnumValueDropped { path: "Order.a".into(), value: "M".into() });
    assert_eq!(fields("optional Size a = 2;", "optional Less a = 2;"), expected);
}

#[test]
fn messages_within_messages_are_checked() {
    let nested = |old: &str, new: &str| fields(&format!("{old} a = 2;"), &format!("{new} a = 2;"));
    let expected = |path: &str| {
        Err(EvolutionError::FieldType { path: path.into(), old: "int32".into(), new: "string".into() })
    };
    assert_eq!(nested("optional Line", "optional Other"), expected("Order.a.n"));
    assert_eq!(nested("repeated Line", "repeated Other"), expected("Order.a.n"));
    assert_eq!(nested("map<string, Line>", "map<string, Other>"), expected("Order.a.value.n"));
    let recursive = "optional Order a = 2; optional Line b = 3;";
    assert_eq!(fields(recursive, recursive), Ok(()));
}

#[test]
fn a_new_index_is_of_a_later_version() {
    assert_eq!(after(|builder| _ = builder.add_index(None, Index::new("new", "id")).expect("added")), Ok(()));
    let mut earlier = Index::new("new", "id");
    (earlier.added_version, earlier.last_modified_version) = (10, 20);
    let refused = after(|builder| _ = builder.add_index(None, earlier).expect("added"));
    assert_eq!(refused, Err(EvolutionError::NewIndex { index: "new".into(), version: 10, old: 10 }));
}

/// Changes an index of [`old`] in place, without a version.
fn changed(name: &str, change: impl FnOnce(&mut Index)) -> Result<(), EvolutionError> {
    after(|builder| change(builder.indexes.get_mut(name).expect("an index")))
}

#[test]
fn an_index_that_changes_says_so() {
    let silent = |change| Err(EvolutionError::IndexChanged { index: "flower".into(), change });
    let flower = |change: fn(&mut Index)| changed("flower", change);
    assert_eq!(flower(|index| index.expression = "price".into()), silent(IndexChange::Expression));
    let null = |index: &mut Index| index.expression = field("flower").not_null().into();
    assert_eq!(flower(null), silent(IndexChange::Expression));
    let rank = |index: &mut Index| {
        index.kind = index_types::RANK.into();
        index.expression = KeyExpression::from("flower").group_last(1);
    };
    assert_eq!(flower(rank), silent(IndexChange::Kind));
    assert_eq!(flower(|index| index.unique = true), silent(IndexChange::Unique));
    assert_eq!(flower(|index| index.options.clear()), silent(IndexChange::Options));
    assert_eq!(changed("id", |index| index.unique = false), Ok(()));
    let loud = Index::new("flower", "price").unique();
    assert_eq!(after(|builder| _ = builder.change_index(loud).expect("changed")), Ok(()));
}

#[test]
fn the_versions_of_an_index_only_grow() {
    let modified =
        |new| Err(EvolutionError::ModifiedVersion { index: "flower".into(), old: 2, new, last: 10 });
    let flower = |version: i32| {
        changed("flower", |index| {
            (index.added_version, index.last_modified_version) = (index.added_version.min(version), version);
        })
    };
    assert_eq!(flower(11), Ok(()));
    assert_eq!(flower(10), modified(10));
    let added = changed("flower", |index| (index.added_version, index.last_modified_version) = (1, 1));
    assert_eq!(added, Err(EvolutionError::AddedVersion { index: "flower".into(), old: 2, new: 1 }));
    let renamed = after(|builder| {
        let mut index = builder.indexes.remove("id").expect("an index");
        index.name = "ids".into();
        builder.indexes.insert("ids".into(), index);
    });
    assert_eq!(renamed, Err(EvolutionError::IndexRenamed { old: "id".into(), new: "ids".into() }));
}

#[test]
fn an_index_gets_a_record_type_only_if_that_is_new() {
    let mut before = builder(TWO).expect("valid records");
    before.add_index(Some("Order"), Index::new("a", "id")).expect("added");
    before.add_index(None, Index::new("all", "id")).expect("added");
    let old = before.build().expect("valid");
    let three =
        TWO.replace("message Shop {", "message Third { optional int64 id = 1 [key]; } message Shop {");
    let three = three.replace("_Shop = 2;", "_Shop = 2; optional Third _Third = 3;");
    let mut after = old.to_builder();
    after.update_records(&file(&three)).expect("updated");
    let types = |types: &[&str]| {
        let mut after = after.clone();
        after.index_types.insert("a".into(), types.iter().map(|name| (*name).into()).collect());
        after.build().expect("valid").validate_evolution(&old)
    };
    assert_eq!(types(&["Order", "Third"]), Ok(()));
    let refused = || EvolutionError::IndexChanged { index: "a".into(), change: IndexChange::RecordTypes };
    assert_eq!(types(&["Order", "Shop"]), Err(refused()));
    assert_eq!(types(&["Third"]), Err(refused()));
}

#[test]
fn an_index_that_is_removed_is_a_former_index() {
    assert_eq!(after(|builder| _ = builder.remove_index("flower").expect("removed")), Ok(()));
    let forgotten = after(|builder| _ = builder.indexes.remove("flower"));
    assert_eq!(forgotten, Err(EvolutionError::IndexDropped("flower".into())));
    let removed = |change: fn(&mut FormerIndex)| {
        after(|builder| {
            builder.remove_index("flower").expect("removed");
            builder.former.last_mut().into_iter().for_each(change);
        })
    };
    let version =
        |removed| EvolutionError::FormerIndexVersion { name: "flower".into(), added: 2, removed, old: 10 };
    assert_eq!(removed(|former| former.removed_version = 10), Err(version(10)));
    let other = |name: &str| Err(EvolutionError::FormerIndexChanged { name: name.into() });
    assert_eq!(removed(|former| former.name = "x".into()), other("x"));
    assert_eq!(removed(|former| former.added_version = 1), other("flower"));
}

#[test]
fn a_former_index_stays() {
    let dropped = after(|builder| builder.former.clear());
    assert_eq!(dropped, Err(EvolutionError::FormerIndexDropped("gone".into())));
    let changed = after(|builder| builder.former[0].removed_version += 1);
    assert_eq!(changed, Err(EvolutionError::FormerIndexChanged { name: "gone".into() }));
    let mut reused = Index::new("new", "id");
    reused.subspace_key = 3;
    let reused = after(|builder| {
        builder.former.clear();
        builder.add_index(None, reused).expect("added");
    });
    assert_eq!(reused, Err(EvolutionError::NumberReused { index: "new".into(), number: 3 }));
}

/// An index can have come and gone since the old meta-data.
#[test]
fn an_index_that_came_and_went_is_a_former_index() {
    let came_and_went = |added| {
        after(|builder| {
            builder.add_index(None, Index::new("short", "id")).expect("added");
            builder.remove_index("short").expect("removed");
            builder.former.last_mut().into_iter().for_each(|former| former.added_version = added);
        })
    };
    assert_eq!(came_and_went(11), Ok(()));
    let expected =
        EvolutionError::FormerIndexVersion { name: "short".into(), added: 10, removed: 12, old: 10 };
    assert_eq!(came_and_went(10), Err(expected));
}

#[test]
fn a_default_is_the_value_and_deprecation_is_for_good() {
    let field = |options: &str| format!("optional int32 price = 2 {options};");
    for (before, after, same) in [
        ("", "[default = 0]", true),
        ("[default = 0]", "", true),
        ("[default = 1]", "", false),
        ("", "[default = -1]", false),
    ] {
        assert_eq!(fields(&field(before), &field(after)).is_ok(), same, "{before} {after}");
    }
    let floats = |options: &str| format!("optional double weight = 2 {options};");
    assert_eq!(fields(&floats(""), &floats("[default = 0]")), Ok(()));
    assert!(fields(&floats(""), &floats("[default = -0.0]")).is_err());
    let wider = |kind: &str| format!("optional {kind} price = 2 [default = 5];");
    assert_eq!(fields(&wider("int32"), &wider("int64")), Ok(()));
    let deprecated = field("[deprecated = true]");
    assert_eq!(fields(&field(""), &deprecated), Ok(()));
    assert_eq!(fields(&deprecated, &deprecated), Ok(()));
    let back = EvolutionError::FieldUndeprecated { path: "Order.price".into() };
    assert_eq!(fields(&deprecated, &field("")), Err(back));
}
