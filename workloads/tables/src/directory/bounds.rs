//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, NAMES, below, check_pages, refused, space, store},
    cluster::{begin, on_cluster},
};
use shaketable_layers::directory::{Directories, Nodes};
use shaketable_tx::{self as tx, Database, DatabaseOption, Isolation::Serializable, Transaction};

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

shared::refused_calls! {
    [Nodes::new(below("nodes")).of(b"a").children()],
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
}

#[test]
fn directories_are_removed_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let prefix = |n: u32| [b"d", &n.to_be_bytes()[..]].concat();
        let name = |n: u32| format!("{n:05}");
        let remove = async |path: &[&str]| shared::ended!(db, |tx| directories().remove(&tx, path));
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
fn pages_follow_each_other_and_a_short_one_is_the_last() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        for name in NAMES {
            for (key, value) in inside(below("nodes").bytes(), name, name.as_bytes()) {
                tx.set(&key, &value);
            }
        }
        let page = async |after: Option<String>, limit| {
            directories().list_page(&tx, &[], after.as_deref(), limit, Serializable).await.expect("a page")
        };
        check_pages(page, String::clone).await;
    });
}
