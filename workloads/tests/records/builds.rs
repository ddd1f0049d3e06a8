//! Online builds: several builders at once, their deaths, saves that go on, unknown results, violations of
//! uniqueness.

use crate::{
    cluster,
    fixture::{Store, Tx, at, commit, groups, keys, meta_data, open, stores},
    on_cluster,
    schema::{message, text},
};
use futures::future::{Either, join3, select};
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, concat, field},
    index::{
        IndexState,
        aggregate::Aggregate,
        build::Batch,
        rank::{COUNT_DUPLICATES, count_below},
    },
    metadata::{Index, RecordMetaData, index_types},
    store::{Part, RebuildPolicy, RecordContext, RecordStoreBuilder, StoredRecord},
    value::Tuple,
};
use shaketable_sim::{
    faults::{Family, FaultPlan},
    seed::Seed,
};
use shaketable_tx::{Database, Db, Error as FdbError, Isolation::Serializable, Transaction};
use std::{collections::BTreeMap, pin::pin, time::Duration};

const SALES: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    option (com.apple.foundationdb.record.schema).store_record_versions = true;
    message Sale {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string shop = 2;
        optional int64 price = 3;
    }
    message RecordTypeUnion { optional Sale _Sale = 1; }
"#;

const VALUE: &str = "by price";
const RANK: &str = "rank";
const COUNTED_RANK: &str = "counted rank";
const VERSION: &str = "version";
const COUNT: &str = "count";
const SUM: &str = "sum";
const ALL: &[&str] = &[VALUE, RANK, COUNTED_RANK, VERSION, COUNT, SUM];

fn indexes() -> [Index; 6] {
    let price = || field("price").group_by("shop");
    [
        Index::new(VALUE, "price"),
        Index::new(RANK, price()).kind(index_types::RANK),
        Index::new(COUNTED_RANK, price()).kind(index_types::RANK).option(COUNT_DUPLICATES, "true"),
        Index::new(VERSION, concat(["shop".into(), KeyExpression::Version])).kind(index_types::VERSION),
        Index::new(COUNT, KeyExpression::from("shop").group_last(0)).kind(index_types::COUNT),
        Index::new(SUM, price()).kind(index_types::SUM),
    ]
}

/// The meta-data before there are indexes, and with them.
fn with(indexes: impl IntoIterator<Item = Index>) -> [RecordMetaData; 2] {
    let before = meta_data(SALES, |_| {});
    let mut builder = before.to_builder();
    for index in indexes {
        builder.add_index(Some("Sale"), index).expect("an index");
    }
    [before, builder.build().expect("meta-data")]
}

async fn save(store: &Store, id: i64, shop: &str, price: i64) -> Result<StoredRecord, Error> {
    let fields = [("id", Value::I64(id)), ("shop", text(shop)), ("price", Value::I64(price))];
    store.save_record(&message(store.meta_data(), "Sale", fields)).await
}

/// A store with this many records, and how it is opened with indexes.
async fn filled(db: &Db, records: i64, added: impl IntoIterator<Item = Index>) -> RecordStoreBuilder<Tx> {
    let [before, after] = with(added);
    let store = open(&stores("sales", before), db).await;
    for id in 0..records {
        save(&store, id, ["north", "south"][id as usize % 2], id % 7).await.expect("saved");
    }
    commit(store).await;
    stores("sales", after)
}

/// The entries of all indexes are those of the records.
async fn check(stores: &RecordStoreBuilder<Tx>, db: &Db) -> usize {
    let store = open(stores, db).await;
    let spent = Spent::new(Limits::default());
    let records = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent).expect("a scan");
    let records = records.to_list().await.expect("read").rows;
    for index in [VALUE, RANK, COUNTED_RANK, VERSION] {
        let at = at(&store, index);
        let mut expected = Vec::new();
        for record in &records {
            let keys = at.keys(record).expect("keys").into_iter().map(|key| key.tuple());
            expected.extend(keys.map(|key| (key, record.primary_key.clone())));
        }
        expected.sort();
        assert_eq!(keys(&store, index).await, expected, "{index}");
    }
    let (mut counts, mut sums) = (BTreeMap::<Tuple, i64>::new(), BTreeMap::<Tuple, i64>::new());
    let mut prices: Vec<(Tuple, i64)> = Vec::new();
    for record in &records {
        let number = |name| record.message.get_field_by_name(name).and_then(|value| value.as_i64());
        let shop = record.message.get_field_by_name("shop").expect("a field");
        let shop = Tuple::from(shop.as_str().expect("a text"));
        let price = number("price").expect("a price");
        *counts.entry(shop.clone()).or_default() += 1;
        *sums.entry(shop.clone()).or_default() += price;
        prices.push((shop, price));
    }
    let positive = |rows: Vec<(Tuple, Tuple)>| -> Vec<(Tuple, Tuple)> {
        rows.into_iter().filter(|(_, value)| *value != Tuple::from(0)).collect()
    };
    let rows = |of: BTreeMap<Tuple, i64>| of.into_iter().map(|(shop, value)| (shop, value.into())).collect();
    assert_eq!(positive(groups(&store, COUNT).await), positive(rows(counts)));
    assert_eq!(positive(groups(&store, SUM).await), positive(rows(sums)));
    for (shop, price) in &prices {
        let mut lesser: Vec<i64> =
            prices.iter().filter(|(of, less)| of == shop && less < price).map(|(_, less)| *less).collect();
        lesser.sort_unstable();
        let key = shop.followed_by(&(*price).into());
        let counted = count_below(at(&store, COUNTED_RANK), &key, Serializable).await;
        assert_eq!(counted, Ok(lesser.len() as i64));
        lesser.dedup();
        assert_eq!(count_below(at(&store, RANK), &key, Serializable).await, Ok(lesser.len() as i64));
    }
    records.len()
}

/// Saves and deletes records until the indexes are readable, and some more. Returns how many before.
async fn use_store(stores: &RecordStoreBuilder<Tx>, db: &Db, seed: u64) -> usize {
    let mut rng = Seed(seed).stream("saves");
    let (mut during, mut after) = (0, 0);
    while after < 10 {
        let (id, price, delete) = (rng.below(60) as i64, rng.below(7) as i64, rng.chance(0.3));
        let shop = ["north", "south"][rng.below(2) as usize];
        let readable = db.run(|tx, _| async move {
            let context = RecordContext::within(tx);
            let store = stores.open(&context).await?;
            match delete {
                true => drop(store.delete_record(&id.into()).await?),
                false => drop(save(&store, id, shop, price).await?),
            }
            store.is_readable(COUNT)
        });
        match readable.await {
            Ok(true) => after += 1,
            Ok(false) => during += 1,
            Err(failed) => panic!("{failed}"),
        }
    }
    during
}

/// A cluster on which one commit in five has an unknown result.
fn on_unsure_cluster<F: Future<Output = ()> + 'static>(
    body: impl Fn(Db) -> F + Send + Sync + Clone + 'static,
) {
    let rates = [(Family::UnknownCommitted, 0.15), (Family::UnknownNotCommitted, 0.05)];
    let plan = FaultPlan { rates: BTreeMap::from(rates), ..FaultPlan::default() };
    cluster::under(plan, move |machine| body(Db::new(machine.open())));
}

#[test]
fn several_builders_build_while_records_are_saved_and_results_are_unknown() {
    on_unsure_cluster(|db| async move {
        let stores = filled_again(&db).await;
        let (one, two, during) = join3(
            stores.build_indexes(&db, ALL, 4),
            stores.build_indexes(&db, ALL, 3),
            use_store(&stores, &db, 1),
        )
        .await;
        let (one, two) = (one.expect("built"), two.expect("built"));
        assert_eq!(one.states, [IndexState::Readable; ALL.len()]);
        assert!(one.records > 4 && two.records > 3, "both took part: {one:?} {two:?}");
        assert!(during > 2, "{during} saves while the indexes were built");
        check(&stores, &db).await;
    });
}

/// As [`filled`], on a cluster whose commits may have unknown results.
async fn filled_again(db: &Db) -> RecordStoreBuilder<Tx> {
    let [before, after] = with(indexes());
    let before = &stores("sales", before);
    let fill = db.run(|tx, _| async move {
        let context = RecordContext::within(tx);
        let store = before.create_or_open(&context).await?;
        for id in 0..60 {
            save(&store, id, ["north", "south"][id as usize % 2], id % 7).await?;
        }
        Ok::<_, Error>(())
    });
    fill.await.expect("filled");
    let stores = stores("sales", after);
    let upgrade = db.run(|tx, _| {
        let stores = stores.clone();
        async move { stores.open(&RecordContext::within(tx)).await.map(drop) }
    });
    upgrade.await.expect("opened");
    stores
}

#[test]
fn a_build_continues_after_the_death_of_a_builder() {
    on_cluster(|db| async move {
        let stores = filled(&db, 60, indexes()).await;
        drop(open(&stores, &db).await);
        let store = open(&stores, &db).await;
        commit(store).await;
        let mut died = 0;
        for _ in 0..3 {
            let build = pin!(stores.build_indexes(&db, ALL, 3));
            let death = pin!(db.env().sleep(Duration::from_millis(40)));
            died += usize::from(matches!(select(build, death).await, Either::Right(_)));
        }
        assert!(died > 0, "a builder dies before it has finished");
        let store = open(&stores, &db).await;
        assert_eq!(store.index_state(COUNT), Ok(IndexState::WriteOnly));
        assert!(store.mark_index_readable(COUNT).await.is_err(), "records are missing");
        let last = stores.build_indexes(&db, ALL, 3).await.expect("built");
        assert!((1..60).contains(&last.records), "the others' work was kept: {last:?}");
        assert_eq!(check(&stores, &db).await, 60);
        let again = stores.build_indexes(&db, ALL, 3).await.expect("built");
        assert_eq!(again.records, 0, "readable indexes are left alone");
    });
}

#[test]
fn an_index_is_not_used_before_it_is_built() {
    on_cluster(|db| async move {
        let stores = filled(&db, 5, indexes()).await;
        let store = open(&stores, &db).await;
        assert_eq!(store.index_state(VALUE), Ok(IndexState::Disabled));
        assert_eq!(store.begin_index_builds(&[VALUE]).await, Ok(true));
        assert_eq!(store.index_state(VALUE), Ok(IndexState::WriteOnly));
        save(&store, 9, "north", 1).await.expect("saved");
        let refused = store.mark_index_readable(VALUE).await;
        assert!(matches!(refused, Err(Error::IndexState { .. })), "{refused:?}");
        let unknown = store.begin_index_builds(&["unknown"]).await;
        assert_eq!(unknown, Err(Error::UnknownIndex("unknown".into())));
    });
}

/// A range that begins or ends at what is no key of a record, with all records on its other side.
#[test]
fn a_build_refuses_a_range_that_its_records_are_not_in() {
    on_cluster(|db| async move {
        let stores = filled(&db, 5, indexes()).await;
        // Integers that are cut off: one is before all records and one after them.
        let done = [(0, &b"\x00"[..], &b"\x16"[..]), (1, b"\x13", b"\xff")];
        for (choice, begin, end) in done {
            let store = open(&stores, &db).await;
            store.begin_index_builds(&[VALUE]).await.expect("write-only");
            let row = at(&store, VALUE).space(Part::Ranges).pack(&(begin,));
            store.context().transaction().expect("open").set(&row, end);
            let built = store.build_indexes(&[VALUE], Batch { records: 2, choice }).await;
            assert!(matches!(built, Err(Error::Foreign { .. })), "{built:?}");
        }
    });
}

/// Before a build comes to a record, saving it changes no count; afterwards it does, once.
#[test]
fn a_save_counts_what_the_build_has_passed() {
    on_cluster(|db| async move {
        let stores = filled(&db, 20, indexes()).await;
        let store = open(&stores, &db).await;
        store.begin_index_builds(ALL).await.expect("write-only");
        let first = Batch { records: 10, choice: 0 };
        let progress = store.build_indexes(ALL, first).await.expect("built");
        assert_eq!((progress.records, progress.complete), (10, false));
        let count = |store: Store| async move {
            let rows = at(&store, COUNT).space(shaketable_record::store::Part::Indexes).range();
            let tx = store.context().transaction().expect("open").clone();
            let rows = tx.get_range_all(rows.into(), Serializable).await.expect("read");
            rows.iter().map(|row| i64::from(row.value[0])).sum::<i64>()
        };
        assert_eq!(count(store.clone()).await, 10);
        save(&store, 3, "south", 6).await.expect("saved");
        assert!(store.delete_record(&4.into()).await.expect("deleted"));
        assert_eq!(count(store.clone()).await, 9, "records that are done");
        save(&store, 13, "north", 6).await.expect("saved");
        save(&store, 30, "north", 6).await.expect("saved");
        assert!(store.delete_record(&14.into()).await.expect("deleted"));
        assert_eq!(count(store.clone()).await, 9, "records that are not");
        commit(store).await;
        stores.build_indexes(&db, ALL, 100).await.expect("built");
        assert_eq!(check(&stores, &db).await, 19);
    });
}

#[test]
fn a_save_in_a_batch_conflicts_with_it() {
    on_cluster(|db| async move {
        let stores = filled(&db, 20, indexes()).await;
        let store = open(&stores, &db).await;
        store.begin_index_builds(ALL).await.expect("write-only");
        commit(store).await;
        let batch = Batch { records: 10, choice: 0 };
        for (id, builder_first, conflicts) in [(3, true, true), (14, false, true), (25, true, false)] {
            let (building, saving) = (open(&stores, &db).await, open(&stores, &db).await);
            building.build_indexes(&[COUNT], batch).await.expect("built");
            save(&saving, id, "north", 100 + id).await.expect("saved");
            let (first, second) = match builder_first {
                true => (&building, &saving),
                false => (&saving, &building),
            };
            first.context().commit().await.expect("the first of them");
            let second = second.context().commit().await;
            assert_eq!(second.is_err(), conflicts, "record {id}: {second:?}");
            if conflicts {
                assert_eq!(second, Err(Error::Fdb(FdbError::NOT_COMMITTED)));
            }
        }
        stores.build_indexes(&db, ALL, 7).await.expect("built");
        assert_eq!(check(&stores, &db).await, 21);
    });
}

#[test]
fn indexes_that_are_built_to_different_extents_are_finished_together() {
    on_cluster(|db| async move {
        let stores = filled(&db, 30, indexes()).await;
        let store = open(&stores, &db).await;
        store.begin_index_builds(&[COUNT, SUM]).await.expect("write-only");
        for (index, choice) in [(COUNT, 0), (SUM, 1)] {
            store.build_indexes(&[index], Batch { records: 12, choice }).await.expect("built");
        }
        commit(store).await;
        let report = stores.build_indexes(&db, ALL, 5).await.expect("built");
        assert!(report.records <= 60, "{report:?}");
        assert_eq!(check(&stores, &db).await, 30);
    });
}

#[test]
fn a_unique_index_over_duplicates_becomes_readable_when_they_are_resolved() {
    on_cluster(|db| async move {
        let stores = filled(&db, 9, [Index::new("unique", "price").unique()]).await;
        let report = stores.build_indexes(&db, &["unique"], 2).await.expect("built");
        assert_eq!(report.states, [IndexState::ReadableUniquePending]);
        let store = open(&stores, &db).await;
        assert_eq!(store.is_readable("unique"), Ok(false));
        assert_eq!(store.mark_index_readable("unique").await, Ok(IndexState::ReadableUniquePending));
        // Prices are 0 to 6, 0, 1: records 0 and 7, and 1 and 8, have the same.
        assert!(store.delete_record(&7.into()).await.expect("deleted"));
        assert_eq!(store.mark_index_readable("unique").await, Ok(IndexState::ReadableUniquePending));
        save(&store, 8, "north", 100).await.expect("saved");
        assert_eq!(store.mark_index_readable("unique").await, Ok(IndexState::Readable));
        commit(store).await;
        let store = open(&stores, &db).await;
        let taken = save(&store, 20, "north", 100).await;
        assert!(matches!(taken, Err(Error::NotUnique { .. })), "{taken:?}");
    });
}

#[test]
fn an_entry_that_does_not_fit_ends_the_build_by_the_name_of_its_index() {
    on_cluster(|db| async move {
        let [before, after] = with([Index::new("long", "shop")]);
        let store = open(&stores("sales", before), &db).await;
        save(&store, 1, &"x".repeat(20_000), 1).await.expect("saved");
        commit(store).await;
        let failed = stores("sales", after).build_indexes(&db, &["long"], 10).await.expect_err("too long");
        assert!(matches!(&failed.error, Error::EntryTooLarge { index, .. } if index == "long"), "{failed:?}");
    });
}

#[test]
fn extremes_are_built_like_any_other_index() {
    on_cluster(|db| async move {
        let of = |aggregate: Aggregate| {
            Index::new(aggregate.kind(), field("price").group_by("shop")).kind(aggregate.kind())
        };
        let stores = filled(&db, 14, [of(Aggregate::MinEver), of(Aggregate::MaxEver)]).await;
        let names = [Aggregate::MinEver.kind(), Aggregate::MaxEver.kind()];
        stores.build_indexes(&db, &names, 3).await.expect("built");
        let store = open(&stores, &db).await;
        let rows = |value: i64| ["north", "south"].map(|shop| (Tuple::from(shop), Tuple::from(value)));
        assert_eq!(groups(&store, names[0]).await, rows(0));
        assert_eq!(groups(&store, names[1]).await, rows(6));
    });
}

/// Records of which a batch of many has more entries than fit into a transaction, and how they are opened
/// with indexes.
async fn large(db: &Db, policy: RebuildPolicy) -> (RecordStoreBuilder<Tx>, Vec<String>) {
    let before = meta_data(
        r#"
        syntax = "proto2";
        import "record_metadata_options.proto";
        message Page {
            optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
            repeated string words = 2;
        }
        message RecordTypeUnion { optional Page _Page = 1; }
        "#,
        |_| {},
    );
    let mut builder = before.to_builder();
    let names: Vec<String> = (0..20).map(|n| format!("words {n}")).collect();
    for name in &names {
        builder.add_index(Some("Page"), Index::new(name, field("words").fan_out())).expect("added");
    }
    let stores_before = stores("pages", before);
    for id in 0..8 {
        let words = (0..10).map(|n| text(&format!("{n}{}", "w".repeat(9_000)))).collect();
        let store = open(&stores_before, db).await;
        let fields = [("id", Value::I64(id)), ("words", Value::List(words))];
        store.save_record(&message(store.meta_data(), "Page", fields)).await.expect("saved");
        commit(store).await;
    }
    (stores("pages", builder.build().expect("meta-data")).rebuild(policy), names)
}

#[test]
fn a_batch_that_does_not_fit_into_a_transaction_is_lessened() {
    on_cluster(|db| async move {
        let (stores, names) = large(&db, RebuildPolicy::Disable).await;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        commit(open(&stores, &db).await).await;
        let built = stores.build_indexes(&db, &names, 1_000).await.expect("built");
        assert_eq!(built.states, vec![IndexState::Readable; names.len()]);
        let store = open(&stores, &db).await;
        for name in names {
            assert_eq!(keys(&store, name).await.len(), 80);
        }
    });
}

#[test]
fn a_store_is_opened_although_its_new_indexes_do_not_fit_into_a_transaction() {
    on_cluster(|db| async move {
        let (stores, names) = large(&db, RebuildPolicy::Inline(200)).await;
        commit(open(&stores, &db).await).await;
        let store = open(&stores, &db).await;
        assert!(names.iter().all(|name| store.index_state(name) == Ok(IndexState::Disabled)));
        let rows = at(&store, &names[0]).space(Part::Indexes).range().into();
        let rows = store.context().transaction().expect("open").get_range_all(rows, Serializable).await;
        assert_eq!(rows.map(|rows| rows.len()), Ok(0));
    });
}
