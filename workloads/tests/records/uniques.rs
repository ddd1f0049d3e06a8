//! Unique indexes: what is refused, which nulls are allowed several times, and violations while an index is
//! built.

use crate::{
    fixture::{Store, all, at, commit, open, stores},
    on_cluster,
    schema::{assert_indexes, build, builder, meta_data, save, simple, text, with},
};
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Continuation, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, NullStandin, concat, field},
    index::{IndexState, Violation, scrub::Scrub},
    metadata::Index,
    store::Part,
    value::Tuple,
};
use shaketable_tx::{self as tx, Isolation::Serializable, Transaction};

const UNIQUE: &str = "MySimpleRecord$num_value_unique";

fn unique(number: i32) -> [(&'static str, Value); 1] {
    [("num_value_unique", Value::I32(number))]
}

#[test]
fn a_key_that_another_record_has_is_refused_and_nothing_is_written() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &[simple(&meta_data, 1, unique(14)), simple(&meta_data, 2, unique(15))]).await;
        let store = open(&stores, &db).await;
        let taken = simple(&meta_data, 3, unique(14).into_iter().chain([("str_value_indexed", text("x"))]));
        let refused = store.save_record(&taken).await.unwrap_err();
        let expected = Error::NotUnique {
            index: UNIQUE.into(),
            key: Tuple::from(14),
            primary_key: Tuple::from(3),
            existing: Tuple::from(1),
        };
        assert_eq!(refused, expected);
        assert_eq!(store.load_record(&Tuple::from(3)).await, Ok(None));
        assert_indexes(&store).await;
        // A record keeps its own key, and takes one that is given up in the same transaction.
        store.save_record(&simple(&meta_data, 1, unique(14))).await.unwrap();
        store.save_record(&simple(&meta_data, 1, unique(16))).await.unwrap();
        store.save_record(&taken).await.unwrap();
        assert!(matches!(
            store.save_record(&simple(&meta_data, 1, unique(14))).await,
            Err(Error::NotUnique { .. })
        ));
        store.delete_record(&Tuple::from(2)).await.unwrap();
        store.save_record(&simple(&meta_data, 1, unique(15))).await.unwrap();
        assert_indexes(&store).await;
        commit(store).await;
    });
}

#[test]
fn of_two_transactions_that_take_a_key_one_conflicts() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        save(&stores, &db, &[]).await;
        let (a, b, other) = (open(&stores, &db).await, open(&stores, &db).await, open(&stores, &db).await);
        a.save_record(&simple(&meta_data, 1, unique(14))).await.unwrap();
        b.save_record(&simple(&meta_data, 2, unique(14))).await.unwrap();
        other.save_record(&simple(&meta_data, 3, unique(15))).await.unwrap();
        commit(a).await;
        assert_eq!(b.context().commit().await, Err(Error::Fdb(tx::Error::NOT_COMMITTED)));
        commit(other).await;
    });
}

#[test]
fn a_key_with_any_null_is_allowed_twice_unless_its_nulls_are_unique() {
    on_cluster(|db| async move {
        let expressions: [(KeyExpression, bool); 3] = [
            (concat(["num_value_2", "num_value_3_indexed"]), true),
            (
                concat([field("num_value_2"), field("num_value_3_indexed").null(NullStandin::NullUnique)]),
                false,
            ),
            (concat([field("num_value_2"), field("num_value_3_indexed").not_null()]), false),
        ];
        for (expression, twice) in expressions {
            let mut builder = builder();
            builder.add_index(Some("MySimpleRecord"), Index::new("both", expression).unique()).unwrap();
            let meta_data = build(&builder);
            let stores = stores(if twice { "a" } else { "b" }, meta_data.clone());
            let store = open(&stores, &db).await;
            store.delete_all_records().await.unwrap();
            let half = |rec_no| simple(&meta_data, rec_no, [("num_value_2", Value::I32(1))]);
            store.save_record(&half(1)).await.unwrap();
            assert_eq!(store.save_record(&half(2)).await.is_ok(), twice);
            let full = |rec_no| {
                let columns = [("num_value_2", Value::I32(1)), ("num_value_3_indexed", Value::I32(2))];
                simple(&meta_data, rec_no, columns)
            };
            store.save_record(&full(3)).await.unwrap();
            assert!(matches!(store.save_record(&full(4)).await, Err(Error::NotUnique { .. })));
            assert_indexes(&store).await;
            commit(store).await;
        }
    });
}

/// The primary keys of the records with violations.
async fn violations(store: &Store) -> Vec<Tuple> {
    let space = at(store, UNIQUE).space(Part::Violations);
    let tx = store.context().transaction().unwrap();
    let rows = tx.get_range_all(space.range().into(), Serializable).await.unwrap();
    let tuple = |key: &[u8]| Tuple::unpack(key.strip_prefix(space.bytes()).unwrap()).unwrap();
    rows.iter().map(|row| tuple(&row.key).split_at(1).1).collect()
}

#[test]
fn violations_are_recorded_while_an_index_is_built_and_resolved_by_later_changes() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let store = open(&stores, &db).await;
        store.mark_index_write_only(UNIQUE).await.unwrap();
        let at_least =
            |rec_nos: &[i64]| rec_nos.iter().map(|rec_no| Tuple::from(*rec_no)).collect::<Vec<_>>();
        for (rec_no, violating) in [(1, &[][..]), (2, &[1, 2]), (3, &[1, 2, 3])] {
            store.save_record(&simple(&meta_data, rec_no, unique(7))).await.unwrap();
            assert_eq!(violations(&store).await, at_least(violating));
        }
        let unbuilt = store.mark_index_readable(UNIQUE).await;
        assert!(matches!(unbuilt, Err(Error::IndexState { .. })), "{unbuilt:?}");
        commit(store).await;

        let built = stores.build_indexes(&db, &[UNIQUE], 10).await.expect("built");
        assert_eq!(built.states, [IndexState::ReadableUniquePending]);
        let store = open(&stores, &db).await;
        store.delete_record(&Tuple::from(1)).await.unwrap();
        assert_eq!(violations(&store).await, at_least(&[2, 3]));
        store.save_record(&simple(&meta_data, 3, unique(8))).await.unwrap();
        assert_eq!(violations(&store).await, at_least(&[]));
        commit(store).await;
        let (pending, readable) = with(&stores, &db, async |store| {
            assert!(!store.is_readable(UNIQUE).unwrap() && store.is_scannable(UNIQUE).unwrap());
            let pending = store.save_record(&simple(&meta_data, 4, unique(8))).await.is_ok();
            let still = store.mark_index_readable(UNIQUE).await;
            assert_eq!(still, Ok(IndexState::ReadableUniquePending));
            store.delete_record(&Tuple::from(4)).await.unwrap();
            (pending, store.mark_index_readable(UNIQUE).await)
        })
        .await;
        assert_eq!((pending, readable), (true, Ok(IndexState::Readable)));
        with(&stores, &db, async |store| {
            assert!(store.is_readable(UNIQUE).unwrap());
            assert!(store.save_record(&simple(&meta_data, 5, unique(8))).await.is_err());
            assert_indexes(store).await;
        })
        .await;
    });
}

#[test]
fn violations_are_listed_and_a_scrub_resolves_those_of_what_it_removes() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        with(&stores, &db, async |store| {
            store.mark_index_write_only(UNIQUE).await.unwrap();
            for (rec_no, number) in [(1, 7), (2, 7), (3, 8), (4, 9), (5, 9)] {
                store.save_record(&simple(&meta_data, rec_no, unique(number))).await.unwrap();
            }
        })
        .await;
        let built = stores.build_indexes(&db, &[UNIQUE], 10).await.expect("built");
        assert_eq!(built.states, [IndexState::ReadableUniquePending]);
        let listed = |store: &Store, range: TupleRange| {
            let spent = Spent::new(Limits::default());
            let rows = store.scan_violations(UNIQUE, range, false, Continuation::Start, &spent).unwrap();
            all(rows)
        };
        let violation = |number: i32, record: i64, existing: i64| Violation {
            key: number.into(),
            primary_key: record.into(),
            existing: existing.into(),
        };
        let store = open(&stores, &db).await;
        let of_seven = [violation(7, 1, 2), violation(7, 2, 1)];
        assert_eq!(listed(&store, TupleRange::all_of(7)).await, of_seven);
        assert_eq!(listed(&store, TupleRange::all()).await.len(), 4);
        // The records go, and their entries stay.
        let records = store.keyspace().part(Part::Records);
        for gone in [1i64, 4, 5] {
            let (begin, end) = records.subspace(&(gone,)).range();
            store.context().clear_range(&begin, &end).unwrap();
        }
        commit(store).await;
        let scrubbed = stores.scrub_index(&db, UNIQUE, Scrub::Dangling, true, 2).await.expect("scrubbed");
        assert_eq!(scrubbed.found.len(), 3);
        with(&stores, &db, async |store| {
            assert_eq!(listed(store, TupleRange::all()).await, []);
            assert_eq!(store.mark_index_readable(UNIQUE).await, Ok(IndexState::Readable));
        })
        .await;
    });
}

#[test]
fn a_scrub_that_adds_an_entry_records_its_violation() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        with(&stores, &db, async |store| {
            store.mark_index_write_only(UNIQUE).await.unwrap();
            for (rec_no, number) in [(1, 7), (2, 7), (3, 8)] {
                store.save_record(&simple(&meta_data, rec_no, unique(number))).await.unwrap();
            }
        })
        .await;
        stores.build_indexes(&db, &[UNIQUE], 10).await.expect("built");
        with(&stores, &db, async |store| {
            for part in [Part::Indexes, Part::Violations] {
                let key = at(store, UNIQUE).space(part).pack(&(7, 2));
                store.context().transaction().unwrap().clear(&key);
            }
        })
        .await;
        stores.scrub_index(&db, UNIQUE, Scrub::Missing, true, 2).await.expect("scrubbed");
        with(&stores, &db, async |store| {
            assert_eq!(violations(store).await, [Tuple::from(1), Tuple::from(2)]);
            assert_indexes(store).await;
        })
        .await;
    });
}
