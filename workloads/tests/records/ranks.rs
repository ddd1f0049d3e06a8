//! Indexes of ranks: the examples of the overview, ties, groups, and what saves conflict on.

use crate::{
    fixture::{Store, Tx, all, at, commit, keys, meta_data, open, scan, stores},
    on_cluster,
    schema::{message, text},
};
use foundationdb_tuple::pack;
use prost_reflect::Value;
use shaketable_record::{
    cursor::{Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
    expression::{KeyExpression, field},
    index::{
        IndexScan,
        aggregate::Aggregate,
        function::rank,
        rank::{COUNT_DUPLICATES, count_below, count_scores, rank_of, score_at},
    },
    metadata::{Index, RecordMetaData, index_types},
    store::{Part, RecordStoreBuilder, StoredRecord},
    value::Tuple,
};
use shaketable_sim::seed::Seed;
use shaketable_tx::{Db, Isolation::Serializable, Transaction};
use std::collections::{BTreeMap, BTreeSet};

const RANKED: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message MyRankedRecord {
        optional string name = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional int32 score = 2 [(com.apple.foundationdb.record.field).index = { type: "rank" }];
        optional string game_id = 3;
    }
    message RecordTypeUnion { optional MyRankedRecord _MyRankedRecord = 1; }
"#;

fn rank_per_game() -> KeyExpression {
    field("score").group_by("game_id")
}

fn ranked(indexes: impl IntoIterator<Item = Index>) -> RecordMetaData {
    meta_data(RANKED, |builder| {
        for index in indexes {
            builder.add_index(Some("MyRankedRecord"), index).expect("an index");
        }
    })
}

fn per_game() -> Index {
    Index::new("rank_per_game", rank_per_game()).kind(index_types::RANK)
}

async fn save(store: &Store, name: &str, score: Option<i32>, game: &str) -> StoredRecord {
    let mut fields = vec![("name", text(name)), ("game_id", text(game))];
    fields.extend(score.map(|score| ("score", Value::I32(score))));
    store.save_record(&message(store.meta_data(), "MyRankedRecord", fields)).await.expect("saved")
}

/// The records whose ranks are in a range, in the order of the scan.
async fn by_rank(store: &Store, index: &str, range: TupleRange, reverse: bool) -> Vec<String> {
    let entries = all(scan(store, index, IndexScan::ByRank, range, reverse).expect("a scan")).await;
    entries.iter().map(|entry| entry.primary_key.to_string()).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("[{name:?}]")).collect()
}

fn between(low: i64, high: i64) -> TupleRange {
    TupleRange::between(Endpoint::Inclusive(low.into()), Endpoint::Inclusive(high.into()))
}

#[test]
fn a_record_has_a_rank_and_ranks_have_records() {
    on_cluster(|db| async move {
        let stores = stores("ranks", ranked([]));
        let store = open(&stores, &db).await;
        for (i, name) in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"].iter().enumerate() {
            save(&store, name, Some(100 - 7 * i as i32), "chess").await;
        }
        let index = "MyRankedRecord$score";
        // Query.rank("score").equalsValue(10L): the eleventh from below.
        assert_eq!(by_rank(&store, index, TupleRange::all_of(10i64), false).await, names(&["b"]));
        assert_eq!(by_rank(&store, index, between(2, 4), false).await, names(&["j", "i", "h"]));
        assert_eq!(by_rank(&store, index, between(2, 4), true).await, names(&["h", "i", "j"]));
        assert_eq!(by_rank(&store, index, between(12, 20), false).await, names(&[]));
        assert_eq!(by_rank(&store, index, TupleRange::all(), false).await.len(), 12);
        let b = store.load_record(&"b".into()).await.expect("read").expect("it is there");
        assert_eq!(store.evaluate_record_function(&rank("score"), &b).await, Ok(Some(10)));
        assert_eq!(score_at(at(&store, index), &Tuple::empty(), 10, Serializable).await, Ok(Some(93.into())));
        assert_eq!(score_at(at(&store, index), &Tuple::empty(), 12, Serializable).await, Ok(None));
        assert_eq!(count_below(at(&store, index), &50.into(), Serializable).await, Ok(4));
        assert_eq!(rank_of(at(&store, index), &50.into(), Serializable).await, Ok(None));
        let no_index = store.evaluate_record_function(&rank("name"), &b).await;
        assert!(matches!(no_index, Err(Error::Query(_))), "{no_index:?}");
    });
}

#[test]
fn each_group_has_its_own_ranks() {
    on_cluster(|db| async move {
        let stores = stores("ranks", ranked([per_game()]));
        let store = open(&stores, &db).await;
        for (name, score, game) in [("a", 5, "go"), ("b", 7, "go"), ("c", 6, "chess"), ("d", 9, "go")] {
            save(&store, name, Some(score), game).await;
        }
        let d = store.load_record(&"d".into()).await.expect("read").expect("it is there");
        assert_eq!(store.evaluate_record_function(&rank(rank_per_game()), &d).await, Ok(Some(2)));
        assert_eq!(store.evaluate_record_function(&rank("score"), &d).await, Ok(Some(3)));
        let index = "rank_per_game";
        let second = TupleRange::all_of(("go", 1i64));
        assert_eq!(by_rank(&store, index, second, false).await, names(&["b"]));
        assert_eq!(by_rank(&store, index, TupleRange::all_of("go"), true).await, names(&["d", "b", "a"]));
        assert_eq!(count_scores(at(&store, index), &"go".into(), Serializable).await, Ok(3));
        assert_eq!(count_scores(at(&store, index), &"poker".into(), Serializable).await, Ok(0));
        let across = TupleRange::between(
            Endpoint::Inclusive(("chess", 0i64).into()),
            Endpoint::Inclusive(("go", 1i64).into()),
        );
        let refused = scan(&store, index, IndexScan::ByRank, across, false);
        assert!(matches!(refused.map(|_| ()), Err(Error::IndexState { .. })));
        // A record that changes its group.
        save(&store, "b", Some(7), "chess").await;
        assert_eq!(by_rank(&store, index, TupleRange::all_of("go"), false).await, names(&["a", "d"]));
        assert_eq!(by_rank(&store, index, TupleRange::all_of("chess"), false).await, names(&["c", "b"]));
    });
}

#[test]
fn ties_share_a_rank() {
    on_cluster(|db| async move {
        for (subspace, counts, above) in [("distinct", "false", 1), ("all", "true", 3)] {
            let index = Index::new("ties", "score").kind(index_types::RANK).option(COUNT_DUPLICATES, counts);
            let stores = stores(subspace, ranked([index]));
            let store = open(&stores, &db).await;
            for (name, score) in [("a", 5), ("b", 5), ("c", 5), ("d", 6)] {
                save(&store, name, Some(score), "go").await;
            }
            let name = "ties";
            assert_eq!(rank_of(at(&store, name), &5.into(), Serializable).await, Ok(Some(0)));
            assert_eq!(rank_of(at(&store, name), &6.into(), Serializable).await, Ok(Some(above)));
            assert_eq!(by_rank(&store, name, TupleRange::all_of(0i64), false).await, names(&["a", "b", "c"]));
            assert_eq!(by_rank(&store, name, between(above, above), false).await, names(&["d"]));
            assert_eq!(by_rank(&store, name, between(1, above), false).await, names(&["d"]));
            assert!(store.delete_record(&"a".into()).await.expect("deleted"));
            assert_eq!(rank_of(at(&store, name), &5.into(), Serializable).await, Ok(Some(0)));
            assert_eq!(rank_of(at(&store, name), &6.into(), Serializable).await, Ok(Some(1.max(above - 1))));
        }
    });
}

/// Random saves and deletes; every rank is that of a sorted list.
#[test]
fn ranks_follow_the_records() {
    on_cluster(|db| async move {
        let counting =
            Index::new("counting", "score").kind(index_types::RANK).option(COUNT_DUPLICATES, "true");
        let stores = stores("ranks", ranked([counting, per_game()]));
        let mut rng = Seed(23).stream("ranks");
        let mut model: BTreeMap<String, (Option<i32>, String)> = BTreeMap::new();
        for step in 0..40 {
            let store = open(&stores, &db).await;
            for _ in 0..1 + rng.below(5) {
                let name = format!("player{}", rng.below(30));
                if rng.chance(0.25) {
                    let was = model.remove(&name).is_some();
                    assert_eq!(store.delete_record(&name.as_str().into()).await, Ok(was));
                } else {
                    let score = (!rng.chance(0.1)).then(|| rng.below(12) as i32);
                    let game = ["go", "chess"][rng.below(2) as usize].to_owned();
                    save(&store, &name, score, &game).await;
                    model.insert(name, (score, game));
                }
            }
            commit(store).await;
            if step % 4 != 3 {
                continue;
            }
            let store = open(&stores, &db).await;
            assert_eq!(keys(&store, "rank_per_game").await.len(), model.len());
            for (name, (score, game)) in &model {
                let record = store.load_record(&name.as_str().into()).await.expect("read").expect("saved");
                let lesser = |same_game: bool| {
                    let of_game = model.values().filter(move |(_, other)| !same_game || other == game);
                    of_game.map(|(score, _)| *score).filter(|other| other < score)
                };
                let distinct = |same_game| lesser(same_game).collect::<BTreeSet<_>>().len() as i64;
                let of = |expression: KeyExpression| {
                    let (store, record) = (store.clone(), record.clone());
                    async move { store.evaluate_record_function(&rank(expression), &record).await }
                };
                assert_eq!(of(rank_per_game()).await, Ok(Some(distinct(true))));
                assert_eq!(of(field("score").into()).await, Ok(Some(distinct(false))));
                let counted = count_below(at(&store, "counting"), &(*score).into(), Serializable).await;
                assert_eq!(counted, Ok(lesser(false).count() as i64));
            }
        }
    });
}

#[test]
fn a_scan_by_rank_continues_in_another_transaction() {
    on_cluster(|db| async move {
        let stores = stores("ranks", ranked([]));
        let store = open(&stores, &db).await;
        for score in 0..10 {
            save(&store, &format!("{score}"), Some(10 * score), "go").await;
        }
        commit(store).await;
        let (mut rows, mut from) = (Vec::new(), Continuation::Start);
        while from != Continuation::End {
            let store = open(&stores, &db).await;
            let other = page_by_rank(&store, between(2, 8), true, 2, from.clone()).await;
            assert!(from == Continuation::Start || matches!(other, Err(Error::Continuation(_))), "{other:?}");
            let (page, after) = page_by_rank(&store, between(2, 7), true, 2, from).await.expect("a page");
            rows.extend(page);
            from = after;
            if rows.len() == 2 {
                // A lesser score: the ranks of all others grow by one.
                save(&store, "less", Some(-1), "go").await;
            }
            commit(store).await;
        }
        assert_eq!(rows, names(&["7", "6", "5", "4", "3", "2", "1"]));
    });
}

/// The next few records of a range of ranks.
async fn page_by_rank(
    store: &Store,
    range: TupleRange,
    reverse: bool,
    rows: usize,
    from: Continuation,
) -> Result<(Vec<String>, Continuation), Error> {
    let spent = Spent::new(Limits { scanned: Some(rows), ..Limits::default() });
    let entries =
        store.scan_index("MyRankedRecord$score", IndexScan::ByRank, range, reverse, from, &spent)?;
    let page = entries.to_list().await?;
    Ok((page.rows.iter().map(|entry| entry.primary_key.to_string()).collect(), page.continuation))
}

/// A score in a longer encoding is stored behind the place from which a scan continues, and would be found
/// again and again.
#[test]
fn a_scan_by_rank_ends_at_an_entry_in_another_encoding() {
    on_cluster(|db| async move {
        let ten = (10, &[0x15, 10][..], &[0x16, 0, 10][..]);
        let minus_ten = (-10, &[0x13, 0xf5][..], &[0x12, 0xff, 0xf5][..]);
        for (reverse, (score, short, long)) in [(false, ten), (true, minus_ten)] {
            let stores = stores(&format!("ranks {reverse}"), ranked([]));
            let store = open(&stores, &db).await;
            save(&store, "other", Some(0), "go").await;
            save(&store, "ten", Some(score), "go").await;
            let space = at(&store, "MyRankedRecord$score").space(Part::Indexes);
            let entry = |score: &[u8]| [space.bytes(), score, &pack(&"ten")].concat();
            let tx = store.context().transaction().expect("a transaction");
            assert!(tx.get(&entry(short), Serializable).await.expect("read").is_some());
            tx.clear(&entry(short));
            tx.set(&entry(long), b"");
            let (mut from, mut pages) = (Continuation::Start, Vec::new());
            let refused = loop {
                match page_by_rank(&store, TupleRange::all(), reverse, 1, from).await {
                    Ok((page, after)) => (from, pages) = (after, [pages, page].concat()),
                    Err(e) => break e,
                }
                assert!(pages.len() <= 2, "it is found again: {pages:?}");
                assert_ne!(from, Continuation::End, "{pages:?}");
            };
            assert!(matches!(refused, Error::Foreign { .. }), "{refused:?}");
            assert_eq!(pages, names(&["other", "ten"]));
        }
    });
}

/// How many of concurrent saves of unrelated records conflict: each begins before the first one commits.
async fn conflicts(db: &Db, subspace: &str, index: Option<Index>) -> usize {
    const SAVES: i32 = 40;
    let schema = RANKED.replace("[(com.apple.foundationdb.record.field).index = { type: \"rank\" }]", "");
    let meta_data = meta_data(&schema, |builder| {
        if let Some(index) = index {
            builder.add_index(Some("MyRankedRecord"), index).expect("an index");
        }
    });
    let stores: RecordStoreBuilder<Tx> = stores(subspace, meta_data);
    let store = open(&stores, db).await;
    for number in 0..200 {
        save(&store, &format!("old{number}"), Some(10 * number), "go").await;
    }
    commit(store).await;
    let mut open_stores = Vec::new();
    for number in 0..SAVES {
        let store = open(&stores, db).await;
        save(&store, &format!("new{number}"), Some(10 * (5 * number) + 3), "go").await;
        open_stores.push(store);
    }
    let mut conflicts = 0;
    for store in open_stores {
        conflicts += usize::from(store.context().commit().await.is_err());
    }
    conflicts
}

#[test]
fn concurrent_saves_of_unrelated_records_conflict_where_the_index_says_so() {
    on_cluster(|db| async move {
        let value = Index::new("value", "score");
        assert_eq!(conflicts(&db, "none", None).await, 0);
        assert_eq!(conflicts(&db, "value", Some(value.clone())).await, 0);
        for aggregate in Aggregate::ALL {
            let expression = match aggregate {
                Aggregate::Count | Aggregate::CountUpdates => KeyExpression::from("game_id").group_last(0),
                _ => field("score").group_by("game_id"),
            };
            let index = Index::new("aggregate", expression).kind(aggregate.kind());
            assert_eq!(conflicts(&db, aggregate.kind(), Some(index)).await, 0, "{aggregate:?}");
        }
        let ranked = conflicts(&db, "rank", Some(value.kind(index_types::RANK))).await;
        assert!(ranked <= RANK_CONFLICTS, "{ranked} of 40 saves conflict");
    });
}

/// Of 40 saves with scores that lie among 200 others: those whose score gets a row at a higher level of the
/// skip list, one in sixteen, and their neighbours there.
const RANK_CONFLICTS: usize = 8;
