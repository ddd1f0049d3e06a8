//! Indexes of aggregates, compared with sums over the records.

use crate::{
    fixture::{Store, all, commit, groups, meta_data, open, scan, stores},
    on_cluster,
    schema::{message, text},
};
use prost_reflect::Value;
use shaketable_record::{
    cursor::TupleRange,
    error::Error,
    expression::{KeyExpression, field},
    index::{
        IndexScan,
        aggregate::{Aggregate, CLEAR_WHEN_ZERO},
        function::AggregateFunction,
    },
    metadata::{Index, RecordMetaData},
    value::Tuple,
};
use shaketable_sim::seed::Seed;
use shaketable_tx::Transaction;
use std::collections::BTreeMap;

const SALES: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message Sale {
        optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string shop = 2;
        optional int64 day = 3;
        optional int64 price = 4;
        repeated string tags = 5;
    }
    message Other { optional int64 id = 1 [(com.apple.foundationdb.record.field).primary_key = true]; }
    message RecordTypeUnion { optional Sale _Sale = 1; optional Other _Other = 2; }
"#;

/// What is grouped: all of it by shop and day, or counted.
fn operand(aggregate: Aggregate) -> KeyExpression {
    match aggregate {
        Aggregate::Count | Aggregate::CountUpdates => counted(),
        _ => grouped(),
    }
}

fn counted() -> KeyExpression {
    KeyExpression::Concat(vec!["shop".into(), "day".into()]).group_last(0)
}

fn grouped() -> KeyExpression {
    field("price").group_by(KeyExpression::Concat(vec!["shop".into(), "day".into()]))
}

fn sales() -> RecordMetaData {
    meta_data(SALES, |builder| {
        for aggregate in Aggregate::ALL {
            let index = Index::new(aggregate.kind(), operand(aggregate)).kind(aggregate.kind());
            builder.add_index(Some("Sale"), index).expect("an index");
        }
        for (name, aggregate) in [("cleared count", Aggregate::Count), ("cleared sum", Aggregate::Sum)] {
            let index = Index::new(name, operand(aggregate)).kind(aggregate.kind());
            builder.add_index(Some("Sale"), index.option(CLEAR_WHEN_ZERO, "true")).expect("an index");
        }
        let tags = KeyExpression::from(field("tags").fan_out()).group_last(0);
        let tags = Index::new("tags", tags).kind(Aggregate::Count.kind());
        builder.add_index(Some("Sale"), tags).expect("an index");
        let everything = KeyExpression::Empty.group_last(0);
        let everything = Index::new("everything", everything).kind(Aggregate::Count.kind());
        builder.add_index(None, everything).expect("an index");
    })
}

#[derive(Clone, Debug, PartialEq)]
struct Sale {
    shop: String,
    day: i64,
    price: Option<i64>,
}

async fn save(store: &Store, id: i64, sale: &Sale, tags: &[&str]) {
    let mut fields = vec![("id", Value::I64(id)), ("shop", text(&sale.shop)), ("day", Value::I64(sale.day))];
    fields.extend(sale.price.map(|price| ("price", Value::I64(price))));
    fields.push(("tags", Value::List(tags.iter().copied().map(text).collect())));
    store.save_record(&message(store.meta_data(), "Sale", fields)).await.expect("saved");
}

fn sale(shop: &str, day: i64, price: i64) -> Sale {
    Sale { shop: shop.into(), day, price: Some(price) }
}

type Groups = BTreeMap<(String, i64), i64>;

/// What the model has for each group, and what it ever had.
#[derive(Default)]
struct Model {
    sales: BTreeMap<i64, Sale>,
    updates: Groups,
    least: Groups,
    greatest: Groups,
}

impl Model {
    fn save(&mut self, id: i64, sale: Sale) {
        let group = (sale.shop.clone(), sale.day);
        *self.updates.entry(group.clone()).or_default() += 1;
        if let Some(price) = sale.price {
            let least = self.least.entry(group.clone()).or_insert(price);
            *least = price.min(*least);
            let greatest = self.greatest.entry(group).or_insert(price);
            *greatest = price.max(*greatest);
        }
        self.sales.insert(id, sale);
    }

    fn sums(&self, of: impl Fn(&Sale) -> i64) -> Groups {
        let mut sums = Groups::new();
        for sale in self.sales.values() {
            *sums.entry((sale.shop.clone(), sale.day)).or_default() += of(sale);
        }
        sums
    }
}

fn rows(groups: Groups) -> Vec<(Tuple, Tuple)> {
    groups.into_iter().map(|((shop, day), value)| (Tuple::from((shop, day)), value.into())).collect()
}

/// Groups without those that are zero.
fn positive(rows: Vec<(Tuple, Tuple)>) -> Vec<(Tuple, Tuple)> {
    rows.into_iter().filter(|(_, value)| *value != Tuple::from(0)).collect()
}

#[test]
fn aggregates_follow_the_records() {
    on_cluster(|db| async move {
        let stores = stores("sales", sales());
        let (mut rng, mut model) = (Seed(5).stream("sales"), Model::default());
        for _ in 0..40 {
            let store = open(&stores, &db).await;
            for _ in 0..1 + rng.below(4) {
                let id = rng.below(12) as i64;
                if rng.chance(0.3) {
                    let was = model.sales.remove(&id).is_some();
                    assert_eq!(store.delete_record(&id.into()).await, Ok(was));
                    continue;
                }
                let price = (!rng.chance(0.1)).then(|| rng.below(40) as i64 - 20);
                let shop = ["north", "south"][rng.below(2) as usize].to_owned();
                let sale = Sale { shop, day: rng.below(3) as i64, price };
                save(&store, id, &sale, &[]).await;
                model.save(id, sale);
            }
            commit(store).await;
        }
        let store = open(&stores, &db).await;
        let (counts, sums) = (rows(model.sums(|_| 1)), rows(model.sums(|sale| sale.price.unwrap_or(0))));
        assert_eq!(positive(groups(&store, "count").await), counts);
        assert_eq!(groups(&store, "cleared count").await, counts);
        assert_eq!(positive(groups(&store, "sum").await), positive(sums.clone()));
        assert_eq!(groups(&store, "cleared sum").await, positive(sums));
        assert_eq!(groups(&store, "count_updates").await, rows(model.updates));
        assert_eq!(groups(&store, "min_ever").await, rows(model.least));
        assert_eq!(groups(&store, "max_ever").await, rows(model.greatest));
        let all = Tuple::from(model.sales.len() as i64);
        assert_eq!(groups(&store, "everything").await, [(Tuple::empty(), all)]);
    });
}

#[test]
fn a_record_counts_once_for_each_of_its_keys_and_moves_between_groups() {
    on_cluster(|db| async move {
        let stores = stores("sales", sales());
        let store = open(&stores, &db).await;
        save(&store, 1, &sale("north", 1, 5), &["a", "b"]).await;
        save(&store, 2, &sale("north", 1, 6), &["b"]).await;
        let counted = |rows: &[(&str, i64)]| -> Vec<(Tuple, Tuple)> {
            rows.iter().map(|(tag, count)| (Tuple::from(*tag), Tuple::from(*count))).collect()
        };
        assert_eq!(groups(&store, "tags").await, counted(&[("a", 1), ("b", 2)]));
        save(&store, 1, &sale("south", 1, 5), &["b", "c"]).await;
        assert_eq!(groups(&store, "tags").await, counted(&[("a", 0), ("b", 2), ("c", 1)]));
        let one = Tuple::from(1);
        let moved = [(("north", 1).into(), one.clone()), (("south", 1).into(), one)];
        assert_eq!(groups(&store, "count").await, moved);
        let range = TupleRange::all_of("south");
        let south = all(scan(&store, "sum", IndexScan::ByGroup, range, true).expect("a scan")).await;
        assert_eq!(south.len(), 1);
        let by_value = scan(&store, "sum", IndexScan::ByValue, TupleRange::all(), false);
        assert!(matches!(by_value.map(drop), Err(Error::IndexState { .. })));
    });
}

#[test]
fn a_save_that_changes_no_key_writes_no_aggregate() {
    on_cluster(|db| async move {
        let count = Index::new("count", counted()).kind(Aggregate::Count.kind());
        let with = |index: Option<Index>| {
            meta_data(SALES, |builder| {
                if let Some(index) = index {
                    builder.add_index(Some("Sale"), index).expect("an index");
                }
            })
        };
        let mut sizes = Vec::new();
        let indexes = [Aggregate::Sum, Aggregate::MinEver, Aggregate::MaxEver]
            .map(|aggregate| Index::new("index", operand(aggregate)).kind(aggregate.kind()));
        for (i, index) in [None, Some(count)].into_iter().chain(indexes.map(Some)).enumerate() {
            let stores = stores(&format!("sales{i}"), with(index));
            let store = open(&stores, &db).await;
            save(&store, 1, &sale("north", 1, 5), &[]).await;
            commit(store).await;
            let store = open(&stores, &db).await;
            save(&store, 1, &sale("north", 1, 5), &["new"]).await;
            let tx = store.context().transaction().expect("it is open").clone();
            sizes.push(tx.get_approximate_size().await.expect("a size"));
        }
        assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
    });
}

#[test]
fn an_aggregate_is_evaluated_from_a_readable_index_of_just_these_records() {
    on_cluster(|db| async move {
        let stores = stores("sales", sales());
        let store = open(&stores, &db).await;
        let sold = [("north", 1, 5), ("north", 2, -3), ("south", 1, 11), ("south", 1, 4)];
        for (id, (shop, day, price)) in (0..).zip(sold) {
            save(&store, id, &sale(shop, day, price), &[]).await;
        }
        let by_shop = |expression: KeyExpression| match expression {
            KeyExpression::Group { grouped: 0, .. } => KeyExpression::from("shop").group_last(0),
            _ => field("price").group_by("shop"),
        };
        let of = |aggregate: Aggregate, types: &'static [&'static str], group: Tuple| {
            let store = store.clone();
            let function = AggregateFunction::new(aggregate, by_shop(operand(aggregate)));
            async move { store.evaluate_aggregate(types, &function, &group).await }
        };
        let number = |number: i64| Ok(Some(Tuple::from(number)));
        assert_eq!(of(Aggregate::Count, &["Sale"], "north".into()).await, number(2));
        assert_eq!(of(Aggregate::Count, &["Sale"], Tuple::empty()).await, number(4));
        assert_eq!(of(Aggregate::Sum, &["Sale"], "south".into()).await, number(15));
        assert_eq!(of(Aggregate::Sum, &["Sale"], "nowhere".into()).await, number(0));
        assert_eq!(of(Aggregate::MinEver, &["Sale"], Tuple::empty()).await, number(-3));
        assert_eq!(of(Aggregate::MaxEver, &["Sale"], Tuple::empty()).await, number(11));
        assert_eq!(of(Aggregate::MaxEver, &["Sale"], "nowhere".into()).await, Ok(None));
        let every = AggregateFunction::new(Aggregate::Count, KeyExpression::Empty.group_last(0));
        assert_eq!(store.evaluate_aggregate(&[], &every, &Tuple::empty()).await, number(4));
        let refused = of(Aggregate::Count, &[], Tuple::empty()).await;
        assert!(matches!(refused, Err(Error::Query(_))), "the index misses a type: {refused:?}");
        let refused = of(Aggregate::Count, &["Sale"], ("north", 1).into()).await;
        assert!(matches!(refused, Err(Error::Query(_))), "a group of more columns: {refused:?}");
        store.mark_index_disabled("count").await.expect("disabled");
        store.mark_index_disabled("cleared count").await.expect("disabled");
        let refused = of(Aggregate::Count, &["Sale"], Tuple::empty()).await;
        assert!(matches!(refused, Err(Error::Query(_))), "no readable index: {refused:?}");
    });
}
