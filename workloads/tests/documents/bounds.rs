//! More data than one transaction can read: calls that would read all of it are refused, instead of exceeding
//! the lifetime of their read version forever, and those that can continue in pages do.

use crate::on_cluster;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use futures::future::{BoxFuture, FutureExt};
use serde_json::json;
use shaketable_layers::{
    array::Array,
    blob::{Blobs, Expect, UploadId},
    bulk::{BuildId, Workspace},
    counter::{Part as CounterPart, SplitCounter},
    directory::{Directories, Nodes},
    document::Documents,
    encoding::{Column, Ordered, Part as KeyPart},
    entity::{
        Cardinality,
        Direction::{Forward, Inverse},
        Entities,
    },
    graph::Graph,
    hierarchy::Hierarchy,
    id::Id,
    index::{Table as Records, users::User},
    label::Label,
    leased_queue::LeasedQueue,
    list::List,
    log::Log,
    multimap::{Multimap, Multiset},
    priority_queue::PriorityQueue,
    queue::{ItemId, Order, Queue},
    scheduling::Scheduling,
    staged_queue::StagedQueue,
    table::Table,
    vector::Vector,
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{
    self as tx, Database, DatabaseOption,
    Isolation::Serializable,
    Transaction,
    limits::{READ_LIMIT, TooLarge},
};
use std::time::Duration;

/// The result of a call: success, or its error message and the number of attempts.
type Ended = Result<(), (String, u32)>;

/// A layer's call.
type Call = Box<dyn Fn(SimDatabase) -> BoxFuture<'static, Ended>>;

/// The calls of a layer that read everything below a prefix.
struct Layer {
    name: &'static str,
    below: Vec<Subspace>,
    calls: Vec<(&'static str, Call)>,
}

/// The expected refusal, which must be returned by the first attempt.
fn refused() -> Ended {
    Err((TooLarge::Read { limit: READ_LIMIT }.to_string(), 1))
}

/// A call in its own transaction.
macro_rules! call {
    (|$tx:ident| $call:expr) => {
        Box::new(|db: SimDatabase| {
            let ended = async move {
                let ended = db.run(|$tx, _| async move { $call.await.map(drop) }).await;
                ended.map_err(|e| (e.error.to_string(), e.attempts))
            };
            ended.boxed()
        })
    };
}

/// A layer with its calls.
macro_rules! layer {
    ($name:literal, [$($below:expr),+], $($what:literal: |$tx:ident| $call:expr,)+) => {
        Layer { name: $name, below: vec![$($below),+], calls: vec![$(($what, call!(|$tx| $call))),+] }
    };
}

/// The subspace of the layer.
fn space() -> Subspace {
    Subspace::from("large")
}

fn below<T: foundationdb_tuple::TuplePack>(parts: T) -> Subspace {
    space().subspace(&parts)
}

/// More than exists.
const MOST: usize = usize::MAX;

fn upload() -> UploadId {
    UploadId([7; 16])
}

fn directories() -> Directories {
    Directories::new(below("nodes"), below("content"))
}

/// The keys that make a directory a subdirectory of another one, given their prefixes.
fn inside(parent: &[u8], name: &str, prefix: &[u8]) -> [(Vec<u8>, Vec<u8>); 2] {
    let nodes = Nodes::new(below("nodes"));
    [(nodes.of(parent).child(name), prefix.to_vec()), (nodes.of(prefix).tag(), Vec::new())]
}

/// The keys of the directory "a" with the prefix "a".
fn made_by_hand() -> [(Vec<u8>, Vec<u8>); 2] {
    inside(below("nodes").bytes(), "a", b"a")
}

fn entities() -> Entities {
    let relationships = ["knows", "owns"].map(|name| (name, Cardinality::ManyToMany));
    Entities::new(space(), relationships)
}

fn ordered() -> Ordered {
    Ordered::new(space(), vec![Column::Unsigned(1)]).expect("a column")
}

fn label(name: &str) -> Label {
    Label::from(name)
}

/// All calls that read whole ranges.
#[allow(clippy::too_many_lines, reason = "one line for each call")]
fn layers() -> Vec<Layer> {
    vec![
        layer!("array", [space()],
            "cells": |tx| Array::with_dimensions(space(), 2).cells(&tx, &[], Serializable),
            "page": |tx| Array::with_dimensions(space(), 2).page(&tx, &[], None, MOST, Serializable),
        ),
        layer!("blob", [below((4, TupleBytes::from(&upload().0[..]))), below((3,))],
            "parts": |tx| Blobs::new(space()).parts(&tx, upload(), Serializable),
            "uploads": |tx| Blobs::new(space()).uploads(&tx, None, MOST, Serializable),
            "finish_upload": |tx| async {
                let blobs = Blobs::new(space());
                blobs.begin_upload(&tx, b"blob", upload()).await?;
                blobs.finish_upload(&tx, upload(), Expect::Anything).await
            },
        ),
        layer!("bulk", [below((1,))],
            "observe": |tx| async { Workspace::new(space())?.observe(&tx, None, MOST).await },
        ),
        layer!("counter", [space()],
            "get": |tx| SplitCounter::new(space(), 3).get(&tx, Serializable),
            "add_within": |tx| SplitCounter::new(space(), 3).add_within(&tx, CounterPart(0), 1, 0, 9),
        ),
        layer!("directory", [Nodes::new(below("nodes")).of(b"a").children()],
            "list": |tx| async {
                made_by_hand().iter().for_each(|(key, value)| tx.set(key, value));
                directories().list(&tx, &["a"], Serializable).await
            },
            "list_page": |tx| async {
                made_by_hand().iter().for_each(|(key, value)| tx.set(key, value));
                directories().list_page(&tx, &["a"], None, MOST, Serializable).await
            },
            "remove": |tx| async {
                made_by_hand().iter().for_each(|(key, value)| tx.set(key, value));
                directories().remove(&tx, &["a"]).await
            },
        ),
        layer!("document", [below(1)],
            "get": |tx| Documents::new(space()).get(&tx, &1.into(), &[], Serializable),
            "remove": |tx| Documents::new(space()).remove(&tx, &1.into(), &[0.into()]),
            "find": |tx| {
                let documents = Documents::new(Subspace::from("other")).with_index(space(), vec!["a".into()]);
                async move { documents.find(&tx, &["a".into()], &json!(1), Serializable).await }
            },
        ),
        layer!("encoding", [space()],
            "under": |tx| ordered().under(&tx, &[], Serializable),
            "page": |tx| ordered().page(&tx, &[], None, MOST, Serializable),
            "between": |tx| ordered().between(&tx, &[KeyPart::Unsigned(0)], &[KeyPart::Unsigned(255)], Serializable),
        ),
        layer!("entity", [below(("attribute", "e")), below(("relationship", "knows", "e"))],
            "get_attributes": |tx| entities().get_attributes(&tx, &"e".into(), Serializable),
            "get_relationships": |tx| entities().get_relationships(&tx, "knows", Serializable),
            "get_relationships_page": |tx|
                entities().get_relationships_page(&tx, "knows", None, MOST, Serializable),
            "get_related_entities": |tx|
                entities().get_related_entities(&tx, "knows", Forward, &"e".into(), Serializable),
            "get_related_entities_page": |tx| {
                let e = Id::from("e");
                async move {
                    let of = (Forward, &e);
                    entities().get_related_entities_page(&tx, "knows", of, None, MOST, Serializable).await
                }
            },
            "delete_entity": |tx| entities().delete_entity(&tx, &"e".into()),
        ),
        layer!("graph", [
                below(("u", "friendsWith")), below(("u", "hasFollowed")), below(("u", "followedBy"))
            ],
            "friends": |tx| Graph::new(space()).friends(&tx, &"u".into(), Serializable),
            "friends_page": |tx| Graph::new(space()).friends_page(&tx, &"u".into(), None, MOST, Serializable),
            "friends_of_friends": |tx| Graph::new(space()).friends_of_friends(&tx, &"u".into(), Serializable),
            "following": |tx| Graph::new(space()).following(&tx, &"u".into(), Serializable),
            "followers": |tx| Graph::new(space()).followers(&tx, &"u".into(), Serializable),
            "remove_user": |tx| Graph::new(space()).remove_user(&tx, &"u".into()),
        ),
        layer!("hierarchy", [space()],
            "get": |tx| Hierarchy::new(space()).get(&tx, &[], Serializable),
            "tuples": |tx| Hierarchy::new(space()).tuples(&tx, &[], Serializable),
            "remove": |tx| Hierarchy::new(space()).remove(&tx, &[0.into()]),
        ),
        layer!("index", [below(("index", "name", "k")), below("records")],
            "find": |tx| Records::<User>::new(&space()).find(&tx, "name", &"k", Serializable),
            "find_covered": |tx| Records::<User>::new(&space()).find_covered(&tx, "name", &"k", Serializable),
            "find_page": |tx|
                Records::<User>::new(&space()).find_page(&tx, "name", &"k", None, MOST, Serializable),
            "records_page": |tx| Records::<User>::new(&space()).records_page(&tx, None, MOST, Serializable),
            "find_between": |tx|
                Records::<User>::new(&space()).find_between::<_, String>(&tx, "name", .., Serializable),
            "records": |tx| Records::<User>::new(&space()).records(&tx, Serializable),
        ),
        layer!("leased_queue", [below(0), below(2)],
            "len": |tx| LeasedQueue::new(space()).len(&tx, MOST, Serializable),
            "leases": |tx| LeasedQueue::new(space()).leases(&tx, None, MOST, Serializable),
        ),
        layer!("list", [below(("node", "n"))],
            "attributes": |tx| async {
                let (list, node) = (List::new(space()), Id::from("n"));
                list.push_front(&tx, &node, b"").await?;
                list.attributes(&tx, &node, Serializable).await
            },
        ),
        layer!("log", [below(0)],
            "scan": |tx| Log::new(space()).scan(&tx, None, MOST, Serializable),
        ),
        layer!("multimap", [below("i")],
            "Multimap::get": |tx| Multimap::new(space()).get(&tx, &label("i"), None, MOST, Serializable),
            "Multimap::all": |tx| Multimap::new(space()).all(&tx, None, MOST, Serializable),
            "Multiset::get": |tx| Multiset::new(space()).get(&tx, &label("i"), None, MOST, Serializable),
            "Multiset::all": |tx| Multiset::new(space()).all(&tx, None, MOST, Serializable),
        ),
        layer!("priority_queue", [space()],
            "len": |tx| PriorityQueue::new(space()).len(&tx, Serializable),
            "items": |tx| PriorityQueue::new(space()).items(&tx, Serializable),
            "items_page": |tx| PriorityQueue::new(space()).items_page(&tx, None, MOST, Serializable),
        ),
        layer!("queue", [space()],
            "len": |tx| Queue::new(space(), Order::Index).len(&tx, Serializable),
            "items": |tx| Queue::new(space(), Order::Commit).items(&tx, Serializable),
            "items_page": |tx| Queue::new(space(), Order::Index).items_page(&tx, None, MOST, Serializable),
        ),
        layer!("scheduling", [below("class"), below(("attends", "s"))],
            "available_classes": |tx| Scheduling::new(&space()).available_classes(&tx, None, MOST),
            "classes_of": |tx| Scheduling::new(&space()).classes_of(&tx, "s"),
        ),
        layer!("staged_queue", [below(0), below(2)],
            "len": |tx| StagedQueue::new(space()).len(&tx, Serializable),
            "parked": |tx| StagedQueue::new(space()).parked(&tx, Serializable),
        ),
        layer!("table", [below(("R", "r"))],
            "get_row": |tx| Table::both(space()).get_row(&tx, &label("r"), Serializable),
            "get_column": |tx| Table::by_column(below("R")).get_column(&tx, &label("r"), Serializable),
            "set_row": |tx| async {
                Table::both(space()).set_row(&tx, &label("r"), &[(label("c"), b"v"[..].into())].into()).await
            },
            "delete_row": |tx| Table::both(space()).delete_row(&tx, &label("r")),
            "Grid::slice": |tx| async { Table::both(space()).grid().slice(&tx, &[], Serializable).await },
            "Grid::page": |tx| async {
                Table::both(space()).grid().page(&tx, &[], None, MOST, Serializable).await
            },
        ),
        layer!("vector", [space()],
            "scan": |tx| Vector::new(space()).scan(&tx, 0, None, Serializable),
            "stored": |tx| Vector::new(space()).stored(&tx, 0, None, Serializable),
        ),
    ]
}

/// Stores rows of 100,000 bytes below a prefix, whose keys are pairs numbered by their first element.
async fn fill(db: &SimDatabase, below: &Subspace, rows: std::ops::Range<usize>) {
    for rows in rows.collect::<Vec<_>>().chunks(50) {
        let stored = db.run(|tx, _| async move {
            rows.iter().for_each(|n| tx.set(&below.pack(&(*n, 0)), &[7; 99_980]));
            Ok::<_, tx::Error>(())
        });
        stored.await.expect("half of what a transaction takes");
    }
}

/// Stores these rows.
async fn store(db: &SimDatabase, rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
    for rows in rows.into_iter().collect::<Vec<_>>().chunks(5_000) {
        let stored = db.run(|tx, _| async move {
            rows.iter().for_each(|(key, value)| tx.set(key, value));
            Ok::<_, tx::Error>(())
        });
        stored.await.expect("small rows");
    }
}

/// The result of a call in its own transaction, with the message of its error.
macro_rules! ended {
    ($db:expr, |$tx:ident| $call:expr) => {{
        let ended = $db.run(|$tx, _| async move { $call.await }).await;
        ended.map_err(|e| (e.error.to_string(), e.attempts))
    }};
}

#[test]
fn no_call_reads_more_than_a_transaction_has_time_for() {
    let names: Vec<_> = layers().iter().map(|layer| layer.name).collect();
    for (at, name) in names.into_iter().enumerate() {
        on_cluster(move |db| async move {
            db.set_option(DatabaseOption::TransactionRetryLimit(3)).expect("an option");
            let layer = layers().swap_remove(at);
            for below in &layer.below {
                fill(&db, below, 0..102).await;
            }
            for (what, call) in &layer.calls {
                assert_eq!(call(db.clone()).await, refused(), "{name}: {what}");
            }
        });
    }
}

#[test]
fn a_tail_that_asks_for_more_than_it_can_have_does_not_wait_for_it() {
    on_cluster(|db| async move {
        fill(&db, &below(0), 0..102).await;
        let tail = Log::new(space()).tail(&db, None, MOST, Duration::from_secs(1)).await;
        assert_eq!(tail.map(drop).map_err(|e| (e.error.to_string(), e.attempts)), refused());
    });
}

#[test]
fn friends_of_more_friends_than_can_be_asked_are_refused() {
    on_cluster(|db| async move {
        let edge = |u: i64, v: i64| (below((u, "friendsWith", v)).into_bytes(), Vec::new());
        store(&db, (0..9_000).flat_map(|n| [edge(-1, n), edge(n, 100_000 + n)])).await;
        let second = async || {
            let (db, user) = (db.clone(), Id::from(-1));
            let user = &user;
            ended!(db, |tx| Graph::new(space()).friends_of_friends(&tx, user, Serializable))
                .map(|users| users.len())
        };
        // Within the lifetime of a transaction.
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        assert_eq!(second().await, Ok(9_000));
        store(&db, (9_000..10_000).map(|n| edge(-1, n))).await;
        assert_eq!(second().await.map(drop), refused());
    });
}

#[test]
fn reads_of_one_call_are_counted_together() {
    on_cluster(|db| async move {
        let db = &db;
        // Sixty of a hundred rows on either side.
        for below in [below(("relationship", "knows", "e")), below(("inverse", "owns", "e"))] {
            fill(db, &below, 0..60).await;
        }
        let one = ended!(db, |tx| async {
            entities().get_related_entities(&tx, "owns", Inverse, &"f".into(), Serializable).await
        });
        assert_eq!(one.map(|related| related.len()), Ok(0));
        assert_eq!(ended!(db, |tx| entities().delete_entity(&tx, &"e".into())).map(drop), refused());
    });
    on_cluster(|db| async move {
        let db = &db;
        for below in [below(0), below(1)] {
            fill(db, &below, 0..60).await;
        }
        let len = async |most| {
            ended!(db, |tx| async { LeasedQueue::new(space()).len(&tx, most, Serializable).await })
        };
        assert_eq!(len(49).await, Ok((49, 49)));
        assert_eq!(len(60).await.map(drop), refused());
    });
}

#[test]
fn documents_that_are_looked_at_for_a_long_text_are_counted() {
    on_cluster(|db| async move {
        let documents = &Documents::new(space()).with_index(Subspace::from("index"), vec!["text".into()]);
        // Fewer than the number that adds up to ten megabytes, and one more.
        let text = |end: &str| json!("x".repeat(900_000) + end);
        let find = async |end: &str| {
            let text = &text(end);
            ended!(db, |tx| documents.find(&tx, &["text".into()], text, Serializable))
        };
        for n in 0..12 {
            let doc = &json!({ "text": text(if n % 2 == 0 { "even" } else { "odd" }) });
            let insert = ended!(db, |tx| documents.insert(&tx, &n.into(), doc));
            assert_eq!(insert, Ok(()));
            match n {
                10 => assert_eq!(find("odd").await, Ok([1, 3, 5, 7, 9].map(Into::into).to_vec())),
                11 => assert_eq!(find("odd").await.map(drop), refused()),
                _ => (),
            }
        }
    });
}

#[test]
fn directories_are_removed_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let prefix = |n: u32| [b"d", &n.to_be_bytes()[..]].concat();
        let name = |n: u32| format!("{n:05}");
        let remove = async |path: &[&str]| ended!(db, |tx| directories().remove(&tx, path));
        let root = below("nodes").into_bytes();
        // Siblings, and a chain of subdirectories.
        for chained in [false, true] {
            let few = if chained { 400 } else { 8_000 };
            let many = if chained { 700 } else { 10_000 };
            for (directories, removed) in [(many, refused()), (few, Ok(()))] {
                let parent = |n: u32| if chained { prefix(n) } else { prefix(0) };
                let below = (0..directories).flat_map(|n| inside(&parent(n), &name(n), &prefix(n + 1)));
                store(&db, inside(&root, "top", &prefix(0)).into_iter().chain(below)).await;
                assert_eq!(remove(&["top"]).await, removed, "{directories} directories, {chained}");
                let rest = db.run(|tx, _| async move {
                    let (begin, end) = space().range();
                    tx.clear_range(&begin, &end);
                    Ok::<_, tx::Error>(())
                });
                rest.await.expect("a calm cluster");
            }
        }
    });
}

#[test]
fn builds_under_way_are_observed_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(space()).expect("a short prefix");
        let build = |n: u128| BuildId(n.to_be_bytes());
        for part in (0..10_000).collect::<Vec<u128>>().chunks(1_000) {
            let begun = ended!(db, |tx| async {
                for n in part {
                    workspace.begin(&tx, build(*n)).await?;
                }
                Ok::<_, shaketable_layers::bulk::Error>(())
            });
            assert_eq!(begun, Ok(()));
        }
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let observe = async |most| ended!(db, |tx| workspace.observe(&tx, None, most));
        assert_eq!(observe(9_000).await.map(|builds| builds.len()), Ok(9_000));
        assert_eq!(observe(10_000).await.map(drop), refused());
    });
}

#[test]
fn what_goes_on_in_batches_takes_fewer_rows_where_they_are_large() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(space()).expect("a short prefix");
        let build = BuildId([9; 16]);
        let begun = ended!(db, |tx| async {
            workspace.begin(&tx, build).await?;
            workspace.discard(&tx, build).await
        });
        assert_eq!(begun, Ok(true));
        let data = below((2, TupleBytes::from(&build.0[..])));
        fill(&db, &data, 0..150).await;
        let batch = ended!(db, |tx| workspace.clear_retired(&tx, MOST)).expect("a batch");
        assert!((100..110).contains(&batch.rows) && batch.more, "{batch:?}");
        let rest = workspace.clear_all_retired(&db, MOST).await;
        assert_eq!(rest, Ok(150 - batch.rows));
        let left =
            db.run(|tx, _| async move { tx.get_range_all(space().range().into(), Serializable).await });
        assert_eq!(left.await, Ok(Vec::new()));
    });
}

#[test]
fn many_large_items_are_handed_out_and_taken_back_a_few_at_a_time() {
    on_cluster(|db| async move {
        let (staged, db) = (&StagedQueue::new(space()), &db);
        db.set_option(DatabaseOption::TransactionRetryLimit(3)).expect("an option");
        let id = |n: u128| ItemId(n.to_be_bytes());
        for part in (0..120).collect::<Vec<u128>>().chunks(40) {
            let enqueued = ended!(db, |tx| async {
                for n in part {
                    staged.enqueue(&tx, id(*n), &[7; 90_000]).await?;
                    staged.register(&tx, id(1_000 + *n)).await?;
                }
                Ok::<_, shaketable_layers::staged_queue::Error>(())
            });
            assert_eq!(enqueued, Ok(()));
        }
        let mut served = Vec::new();
        while served.iter().sum::<usize>() < 120 {
            served.push(ended!(db, |tx| staged.fulfil(&tx, MOST)).expect("some are served"));
        }
        assert!(served.iter().all(|some| (1..=11).contains(some)), "{served:?}");
        let parked = ended!(db, |tx| staged.parked(&tx, Serializable)).map(drop);
        assert_eq!(parked, refused());
        let back = staged.reclaim_unchanged(db, Duration::from_secs(1)).await;
        assert_eq!(back, Ok(120));
        assert_eq!(ended!(db, |tx| staged.parked(&tx, Serializable)), Ok(Vec::new()));
    });
}

/// Some pages of a list, each requested with the last item of the page before.
async fn pages<I: Clone>(page: impl AsyncFn(Option<I>, usize) -> Vec<I>) -> [Vec<I>; 4] {
    let first = page(None, 2).await;
    let second = page(first.last().cloned(), 2).await;
    [first, second.clone(), page(second.last().cloned(), 2).await, page(None, 0).await]
}

#[test]
fn pages_follow_each_other_and_a_short_one_is_the_last() {
    on_cluster(|db| async move {
        let (tx, at) = (crate::begin(&db), Serializable);
        let names = ["a", "a\0", "b", "c"];
        let cut = |all: [&'static str; 4]| [all[..2].to_vec(), all[2..].to_vec(), Vec::new(), Vec::new()];

        let users = Records::<User>::new(&below("users"));
        for id in names {
            let user = User { id: id.into(), name: "n".into(), zipcode: None };
            users.set(&tx, &user).await.expect("a user");
        }
        let found = pages(async |after: Option<(String, _)>, limit| {
            let after = after.as_ref().map(|(id, _)| id);
            users.find_page(&tx, "name", &"n", after, limit, at).await.expect("a page")
        });
        let ids = found.await.map(|page| page.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
        assert_eq!(ids, cut(names));
        let all = pages(async |after: Option<User>, limit| {
            users.records_page(&tx, after.as_ref().map(|user| &user.id), limit, at).await.expect("a page")
        });
        assert_eq!(
            all.await.map(|page| page.into_iter().map(|user| user.id).collect::<Vec<_>>()),
            cut(names)
        );

        let id = |n: u8| ItemId([n; 16]);
        let queue = Queue::new(below("queue"), Order::Index);
        let first = PriorityQueue::new(below("priorities"));
        for (n, name) in (0..).zip(names) {
            queue.enqueue(&tx, id(n), name.as_bytes()).await.expect("an item");
            first.push(&tx, id(n), i64::from(n / 3), name.as_bytes()).await.expect("an item");
        }
        let items = pages(async |after: Option<shaketable_layers::queue::Item>, limit| {
            let after = after.map(|item| item.position);
            queue.items_page(&tx, after, limit, at).await.expect("a page")
        });
        assert_eq!(
            items.await.map(|page| page.into_iter().map(|item| item.value).collect::<Vec<_>>()),
            cut(names)
        );
        let items = pages(async |after: Option<shaketable_layers::priority_queue::Item>, limit| {
            let after = after.map(|item| item.place);
            first.items_page(&tx, after, limit, at).await.expect("a page")
        });
        assert_eq!(
            items.await.map(|page| page.into_iter().map(|item| item.value).collect::<Vec<_>>()),
            cut(names)
        );

        for name in names {
            inside(below("nodes").bytes(), name, name.as_bytes())
                .iter()
                .for_each(|(key, value)| tx.set(key, value));
        }
        let listed = pages(async |after: Option<String>, limit| {
            directories().list_page(&tx, &[], after.as_deref(), limit, at).await.expect("a page")
        });
        assert_eq!(listed.await, cut(names));
    });
}

#[test]
fn objects_come_together_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let hierarchy = &Hierarchy::new(space());
        let objects = |number: usize, value: i64| {
            let members = (0..number).map(|n| (format!("{n:05}"), json!({ "x": value })));
            serde_json::Value::Object(members.collect())
        };
        let insert = async |item| {
            let item = &item;
            ended!(db, |tx| hierarchy.insert(&tx, &[], item))
        };
        let read = async |name: &str| {
            let path = &[name.into(), "x".into()];
            ended!(db, |tx| hierarchy.get(&tx, path, Serializable))
        };
        // Where nothing exists, one read is sufficient.
        assert_eq!(insert(objects(11_000, 1)).await, Ok(()));
        assert_eq!(insert(objects(11_000, 2)).await, refused());
        assert_eq!(read("00000").await, Ok(Some(json!(1))));
        assert_eq!(insert(objects(9_900, 2)).await, Ok(()));
        assert_eq!(read("09899").await, Ok(Some(json!(2))));
        assert_eq!(read("09900").await, Ok(Some(json!(1))));
    });
}

#[test]
fn a_walk_along_large_values_is_refused_and_goes_on_in_steps() {
    on_cluster(|db| async move {
        let (list, db) = (&List::new(space()), &db);
        for part in (0..102).collect::<Vec<i64>>().chunks(50) {
            let pushed = ended!(db, |tx| async {
                for n in part {
                    list.push_front(&tx, &Id::from(-*n), &[7; 99_000]).await?;
                }
                Ok::<_, shaketable_layers::list::Error>(())
            });
            assert_eq!(pushed, Ok(()));
        }
        let walk = async |after: Option<i64>, limit| {
            let after = &after.map(Id::from);
            ended!(db, |tx| list.walk(&tx, after.as_ref(), limit, Serializable)).map(|nodes| nodes.len())
        };
        assert_eq!(walk(None, 102).await.map(drop), refused());
        assert_eq!(walk(None, 100).await, Ok(100));
        assert_eq!(walk(Some(-2), 102).await, Ok(2));
    });
}
