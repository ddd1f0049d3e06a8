//! Saves: the entries that they leave, what they require, what they refuse, what they conflict with.

use crate::{
    begin,
    fixture::{all, commit, keys, open, scan, stores},
    on_cluster,
    schema::{
        assert_indexes, build, builder, message, meta_data, rows, save, simple, text, with, with_index,
    },
};
use prost::Message as _;
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value};
use shaketable_record::{
    cursor::TupleRange,
    error::Error,
    expression::{Column, EvaluateError, Evaluated, Function, KeyExpression, concat, field, function},
    index::IndexScan,
    metadata::{Index, RecordMetaData, compile},
    store::{RecordContext, RecordExistenceCheck, SaveVersion},
    value::{IntoValue, Tuple},
};
use shaketable_tx::{self as tx, Isolation::Serializable, Transaction, limits::TooLarge};
use std::sync::Arc;

fn other(meta_data: &RecordMetaData, rec_no: i64, number: i32) -> DynamicMessage {
    message(meta_data, "MyOtherRecord", [("rec_no", Value::I64(rec_no)), ("num_value_2", Value::I32(number))])
}

#[test]
fn a_record_that_changes_leaves_no_stale_entry() {
    on_cluster(|db| async move {
        let tags = Index::new("tags", concat([field("tags").fan_out(), field("num_value_2")]));
        let meta_data = with_index(tags);
        let stores = stores("s", meta_data.clone());
        let tags = |tags: &[&str]| ("tags", Value::List(tags.iter().map(|tag| text(tag)).collect()));
        // One transaction for each, and then all of them in one.
        let changes = [
            simple(&meta_data, 1, [("str_value_indexed", text("a")), tags(&["x", "y", "x"])]),
            simple(&meta_data, 1, [("str_value_indexed", text("b")), tags(&["y", "z"])]),
            simple(&meta_data, 1, [tags(&[])]),
            simple(&meta_data, 1, [("num_value_2", Value::I32(2)), tags(&["x", "y"])]),
            other(&meta_data, 1, 7),
            simple(&meta_data, 1, [("num_value_unique", Value::I32(2))]),
        ];
        for change in &changes {
            save(&stores, &db, std::slice::from_ref(change)).await;
            let store = open(&stores, &db).await;
            assert_indexes(&store).await;
        }
        save(&stores, &db, &changes).await;
        let store = open(&stores, &db).await;
        assert_indexes(&store).await;
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Ok(true));
        assert_indexes(&store).await;
        commit(store).await;
        assert_eq!(rows(&db).await.len(), 1, "the header");
    });
}

#[test]
fn of_two_saves_of_a_record_one_conflicts() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &[simple(&meta_data, 1, [("str_value_indexed", text("old"))])]).await;
        let (a, b, c) = (open(&stores, &db).await, open(&stores, &db).await, open(&stores, &db).await);
        a.save_record(&simple(&meta_data, 1, [("str_value_indexed", text("a"))])).await.unwrap();
        b.save_record(&simple(&meta_data, 1, [("str_value_indexed", text("b"))])).await.unwrap();
        c.save_record(&simple(&meta_data, 2, [("str_value_indexed", text("a"))])).await.unwrap();
        commit(a).await;
        assert_eq!(b.context().commit().await, Err(Error::Fdb(tx::Error::NOT_COMMITTED)));
        // Unrelated records do not conflict, although they have the same key in an index.
        commit(c).await;
        assert_indexes(&open(&stores, &db).await).await;
    });
}

#[test]
fn a_save_requires_of_the_old_record_what_it_is_told() {
    on_cluster(|db| async move {
        use RecordExistenceCheck::{MustExist, MustExistWithSameType, MustNotExist, None, SameType};
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &[simple(&meta_data, 1, []), other(&meta_data, 2, 1)]).await;
        let store = open(&stores, &db).await;
        let (exists, not_found) = (|n: i64| Error::Exists(n.into()), |n: i64| Error::NotFound(n.into()));
        let changed = Error::TypeChanged {
            primary_key: Tuple::from(2),
            found: "MyOtherRecord".into(),
            wanted: "MySimpleRecord".into(),
        };
        // Of the same type, of another one, absent.
        let cases = [
            (None, [Ok(()), Ok(()), Ok(())]),
            (MustNotExist, [Err(exists(1)), Err(exists(2)), Ok(())]),
            (MustExist, [Ok(()), Ok(()), Err(not_found(3))]),
            (SameType, [Ok(()), Err(changed.clone()), Ok(())]),
            (MustExistWithSameType, [Ok(()), Err(changed), Err(not_found(3))]),
        ];
        for (check, expected) in cases {
            for (rec_no, expected) in (1..).zip(expected) {
                let record = simple(&meta_data, rec_no, []);
                let saved = store.save_record_with(&record, check, SaveVersion::Next).await;
                assert_eq!(saved.map(|_| ()), expected, "{check:?} {rec_no}");
                store.delete_record(&Tuple::from(3)).await.unwrap();
                store.save_record(&other(&meta_data, 2, 1)).await.unwrap();
            }
        }
        assert!(store.insert_record(&simple(&meta_data, 3, [])).await.is_ok());
        assert_eq!(store.insert_record(&simple(&meta_data, 3, [])).await, Err(exists(3)));
        assert!(store.update_record(&simple(&meta_data, 3, [])).await.is_ok());
        assert_eq!(store.update_record(&simple(&meta_data, 4, [])).await, Err(not_found(4)));
        assert_indexes(&store).await;
    });
}

/// As a generated type: without a descriptor, but with the fields of a `MySimpleRecord`.
#[derive(Clone, PartialEq, prost::Message)]
struct Plain {
    #[prost(int64, required, tag = "1")]
    rec_no: i64,
    #[prost(string, optional, tag = "2")]
    str_value_indexed: Option<String>,
}

/// As a generated type with a descriptor.
#[derive(Clone, PartialEq, prost::Message)]
struct Typed {
    #[prost(int64, required, tag = "1")]
    rec_no: i64,
    #[prost(int32, optional, tag = "2")]
    num_value_2: Option<i32>,
}

impl ReflectMessage for Typed {
    fn descriptor(&self) -> prost_reflect::MessageDescriptor {
        // Not the pool of the store's meta-data.
        meta_data().record_type("MyOtherRecord").expect("a type").message.clone()
    }
}

#[test]
fn generated_types_are_saved_and_come_back() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        let plain = Plain { rec_no: 1, str_value_indexed: Some("plain".into()) };
        let (check, version) = (RecordExistenceCheck::None, SaveVersion::Next);
        let saved = store.save_message("MySimpleRecord", &plain, check, version.clone()).await.unwrap();
        assert_eq!(saved.message, simple(&meta_data, 1, [("str_value_indexed", text("plain"))]));
        assert_eq!(store.load_record(&Tuple::from(1)).await.unwrap().unwrap().transcode(), Ok(plain.clone()));
        let typed = Typed { rec_no: 2, num_value_2: Some(5) };
        store.save_record(&typed).await.unwrap();
        assert_eq!(store.load(&Tuple::from(2)).await, Ok(Some(typed.clone())));
        assert_eq!(store.load::<Typed>(&Tuple::from(3)).await, Ok(None));
        assert!(matches!(store.load::<Typed>(&Tuple::from(1)).await, Err(Error::TypeChanged { .. })));
        let unknown = store.save_message("Nobody", &plain, check, version.clone()).await;
        assert_eq!(unknown, Err(Error::UnknownType("Nobody".into())));
        // Text where a number has to be.
        let refused = store.save_message("MyOtherRecord", &plain, check, version).await;
        assert!(matches!(refused, Err(Error::Message { .. })), "{refused:?}");
        assert_indexes(&store).await;
    });
}

#[test]
fn a_message_that_is_no_record_of_the_meta_data_is_refused() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let file = compile(
            r#"
            syntax = "proto2";
            package elsewhere;
            message MySimpleRecord { optional int64 rec_no = 1; }
            message Nested { optional int64 rec_no = 1; }
            "#,
        );
        let file = file.expect("valid");
        let store = open(&stores, &db).await;
        for message in file.messages() {
            let name = message.full_name().to_owned();
            let refused = store.save_record(&DynamicMessage::new(message)).await;
            assert_eq!(refused, Err(Error::UnknownType(name)));
        }
        let empty = DynamicMessage::new(meta_data.record_type("MySimpleRecord").unwrap().message.clone());
        let refused = store.save_record(&empty).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the message cannot be a MySimpleRecord: the required field test.MySimpleRecord.rec_no is absent"
        );
    });
}

#[test]
fn an_entry_over_the_limit_is_refused_by_the_indexs_name_and_nothing_is_written() {
    on_cluster(|db| async move {
        let mut builder = builder();
        let tags = concat([field("tags").concatenate(), field("num_value_2")]);
        builder.add_index(Some("MySimpleRecord"), Index::new("a tags", tags)).unwrap();
        let meta_data = build(&builder);
        let stores = stores("s", meta_data.clone());
        let old =
            simple(&meta_data, 1, [("str_value_indexed", text("old")), ("num_value_unique", Value::I32(1))]);
        save(&stores, &db, &[old]).await;
        let before = rows(&db).await;
        let long = "x".repeat(9_990);
        let many = Value::List((0..5_000).map(|_| text("")).collect());
        let cases = [
            ("MySimpleRecord$str_value_indexed", ("str_value_indexed", text(&long))),
            ("a tags", ("tags", many)),
        ];
        for (index, field) in cases {
            for rec_no in [1, 2] {
                let store = open(&stores, &db).await;
                let fields = [
                    ("num_value_unique", Value::I32(5)),
                    ("num_value_3_indexed", Value::I32(5)),
                    field.clone(),
                ];
                let refused = store.save_record(&simple(&meta_data, rec_no, fields)).await.unwrap_err();
                let Error::EntryTooLarge { index: named, too_large: TooLarge::Key { limit: 10_000, .. } } =
                    &refused
                else {
                    panic!("{refused}")
                };
                assert_eq!(named, index);
                commit(store).await;
                assert_eq!(rows(&db).await, before);
            }
        }
        // The longest entry that fits.
        let store = open(&stores, &db).await;
        let prefix = store.keyspace().of_index(
            shaketable_record::store::Part::Indexes,
            store.index("MySimpleRecord$str_value_indexed").unwrap(),
        );
        let most = 10_000 - prefix.bytes().len() - Tuple::from(("", 1)).pack().len();
        for (length, fits) in [(most, true), (most + 1, false)] {
            let record = simple(&meta_data, 1, [("str_value_indexed", text(&"x".repeat(length)))]);
            assert_eq!(store.save_record(&record).await.is_ok(), fits);
        }
        commit(store).await;
    });
}

#[test]
fn a_primary_key_over_the_limit_is_refused() {
    on_cluster(|db| async move {
        let mut builder = builder();
        let text_key = concat(["str_value_indexed", "rec_no"]);
        builder.record_type("MySimpleRecord").unwrap().set_primary_key(text_key);
        builder.record_type("MyOtherRecord").unwrap().set_primary_key(concat(["num_value_2", "rec_no"]));
        for name in ["str_value_indexed", "num_value_unique", "num_value_3_indexed"] {
            builder.remove_index(&format!("MySimpleRecord${name}")).unwrap();
        }
        let meta_data = build(&builder);
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        let refused =
            store.save_record(&simple(&meta_data, 1, [("str_value_indexed", text(&"x".repeat(10_000)))]));
        let refused = refused.await.unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Key { .. })), "{refused}");
        // A null in a primary key is a value like others.
        let saved = store.save_record(&simple(&meta_data, 1, [])).await.unwrap();
        assert_eq!(saved.primary_key, Tuple::from((None::<i64>, 1)));
        assert!(store.load_record(&Tuple::from((None::<i64>, 1))).await.unwrap().is_some());
        commit(store).await;
    });
}

#[test]
fn a_function_that_fails_refuses_the_record() {
    on_cluster(|db| async move {
        let mut builder = builder();
        builder.register_function(
            "positive",
            Function::new(1, |key| match key.columns() {
                [Column::Value(value)] if Tuple::from(value.clone()) > Tuple::from(0) => {
                    Ok(vec![Evaluated::new(vec![Column::Value(value.clone().into_value())])])
                }
                _ => Err(EvaluateError::Function { name: "positive".into(), reason: "it is not".into() }),
            }),
        );
        let positive = function("positive", KeyExpression::from("num_value_2"));
        builder.add_index(Some("MySimpleRecord"), Index::new("positive", positive)).unwrap();
        let meta_data = build(&builder);
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        let refused = store.save_record(&simple(&meta_data, 1, [])).await;
        assert!(matches!(refused, Err(Error::Evaluate(EvaluateError::Function { .. }))), "{refused:?}");
        assert_eq!(store.load_record(&Tuple::from(1)).await, Ok(None));
        store.save_record(&simple(&meta_data, 1, [("num_value_2", Value::I32(1))])).await.unwrap();
        commit(store).await;
    });
}

/// A map's entries have no order of their own; the bytes that are stored must not depend on that of the
/// process.
#[test]
fn a_record_with_a_map_always_has_the_same_bytes() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let record = || {
            let entries = (0..50).map(|i| (MapKey::String(format!("{i:02}")), Value::I32(i))).collect();
            let fields = [("counts", Value::Map(entries)), ("blob", Value::Bytes(b"b"[..].to_vec().into()))];
            simple(&meta_data, 1, fields)
        };
        save(&stores, &db, &[record()]).await;
        let first = rows(&db).await;
        let at = |key: &str| {
            let found =
                first.iter().find_map(|row| row.value.windows(2).position(|window| window == key.as_bytes()));
            found.expect("a key of the map")
        };
        assert!((1..50).all(|i| at(&format!("{:02}", i - 1)) < at(&format!("{i:02}"))));
        for _ in 0..5 {
            save(&stores, &db, &[record()]).await;
            assert_eq!(rows(&db).await, first);
        }
        let loaded = with(&stores, &db, async |store| store.load_record(&Tuple::from(1)).await).await;
        assert_eq!(loaded.unwrap().unwrap().message, record());
    });
}

/// An index whose type codes differ, column by column, has the order of the tuple layer.
#[test]
fn entries_are_in_the_order_of_their_values() {
    on_cluster(|db| async move {
        let file = r#"
            syntax = "proto2";
            import "record_metadata_options.proto";
            enum Size { SMALL = 0; LARGE = 300; NEGATIVE = -1; }
            message All {
                required int32 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
                optional int32 a = 2 [(com.apple.foundationdb.record.field).index = {}];
                optional sint64 b = 3 [(com.apple.foundationdb.record.field).index = {}];
                optional Size c = 4 [(com.apple.foundationdb.record.field).index = {}];
                optional bool d = 5 [(com.apple.foundationdb.record.field).index = {}];
                optional bytes e = 6 [(com.apple.foundationdb.record.field).index = {}];
                optional string f = 7 [(com.apple.foundationdb.record.field).index = {}];
                optional double g = 8 [(com.apple.foundationdb.record.field).index = {}];
                optional float h = 9 [(com.apple.foundationdb.record.field).index = {}];
            }
            message RecordTypeUnion { optional All _All = 1; }
        "#;
        let meta_data = Arc::new(RecordMetaData::from_proto(file).expect("valid"));
        let stores = stores("s", meta_data.clone());
        // In ascending order; the first one is absent.
        let columns: [(&str, Vec<Value>); 8] = [
            ("a", [i32::MIN, -256, -1, 0, 255, 256, i32::MAX].map(Value::I32).to_vec()),
            ("b", [i64::MIN, -65_536, -1, 0, 1, 256, i64::MAX].map(Value::I64).to_vec()),
            ("c", [-1, 0, 300].map(Value::EnumNumber).to_vec()),
            ("d", [false, true].map(Value::Bool).to_vec()),
            ("e", ["", "\0", "a", "a\0", "b"].map(|b| Value::Bytes(b.as_bytes().to_vec().into())).to_vec()),
            ("f", ["", "\0", "a", "a\0", "ä"].map(text).to_vec()),
            ("g", [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, f64::INFINITY].map(Value::F64).to_vec()),
            ("h", [f32::MIN, -1.5, 0.0, 1.5, f32::INFINITY].map(Value::F32).to_vec()),
        ];
        for (name, values) in columns {
            let store = open(&stores, &db).await;
            store.delete_all_records().await.unwrap();
            let index = format!("All${name}");
            // Not saved in this order.
            for (position, value) in values.iter().enumerate().rev() {
                let id = position as i32 + 1;
                let record = message(&meta_data, "All", [("id", Value::I32(id)), (name, value.clone())]);
                store.save_record(&record).await.unwrap();
            }
            store.save_record(&message(&meta_data, "All", [("id", Value::I32(0))])).await.unwrap();
            let found = keys(&store, &index).await;
            let ids: Vec<_> = found.iter().map(|(_, primary_key)| primary_key.clone()).collect();
            assert_eq!(ids, (0..=values.len() as i32).map(Tuple::from).collect::<Vec<_>>(), "{name}");
            // The range of each key has its record, and no other.
            for (key, primary_key) in found {
                let range = TupleRange::all_of(key.clone());
                let entries = all(scan(&store, &index, IndexScan::ByValue, range, false).unwrap()).await;
                assert_eq!(entries.len(), 1, "{name} {key}");
                assert_eq!(entries[0].primary_key, primary_key);
            }
        }
    });
}

#[test]
fn a_save_that_changes_no_key_writes_no_entry() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let record = |number: i32| {
            let fields = [
                ("str_value_indexed", text("a")),
                ("num_value_unique", Value::I32(1)),
                ("num_value_3_indexed", Value::I32(3)),
                ("num_value_2", Value::I32(number)),
            ];
            simple(&meta_data, 1, fields)
        };
        save(&stores, &db, &[record(1)]).await;
        // Somebody writes to the entries: this would conflict if the save read one of them, and the entries
        // would be there again if it wrote them.
        let store = open(&stores, &db).await;
        store.save_record(&record(2)).await.unwrap();
        let entries = store.keyspace().part(shaketable_record::store::Part::Indexes);
        let tx = begin(&db);
        tx.clear_range(&entries.range().0, &entries.range().1);
        tx.commit().await.unwrap();
        commit(store).await;
        let left = begin(&db).get_range_all(entries.range().into(), Serializable).await.unwrap();
        assert_eq!(left, []);
        assert!(record(1).encoded_len() > 0);
    });
}

#[test]
fn nothing_is_saved_in_a_closed_context() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let context = RecordContext::open(&db).unwrap();
        let store = stores.create(&context).await.unwrap();
        context.commit().await.unwrap();
        assert_eq!(store.save_record(&simple(&meta_data, 1, [])).await, Err(Error::Closed));
        assert_eq!(store.delete_record(&Tuple::from(1)).await, Err(Error::Closed));
        assert_eq!(store.delete_all_records().await, Err(Error::Closed));
        assert_eq!(store.delete_where(&Tuple::from(1)).await, Err(Error::Closed));
        assert_eq!(store.load_record_version(&Tuple::from(1)).await, Err(Error::Closed));
        assert_eq!(store.record_exists(&Tuple::from(1), Serializable).await, Err(Error::Closed));
    });
}
