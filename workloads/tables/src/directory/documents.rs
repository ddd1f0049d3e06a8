//! Directories: those of the class scheduling tutorial, and the developer guide's statements about them.

use crate::shared::cluster::{begin, on_cluster};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_layers::directory::{Allocator, CandidateSeed, Directories, Directory, Error, Node, Path};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::{Serializable, Snapshot},
    RangeOption, Transaction, Tx,
    limits::TooLarge,
    once::{Outcome, Session, Slots},
};
use std::{collections::BTreeSet, future::Future};

/// Runs a body that must not be refused.
async fn done<A: Send, F: Future<Output = Result<A, Error>> + Send>(
    db: &Db,
    body: impl Fn(Tx) -> F + Send + Sync,
) -> A {
    let body = &body;
    db.run(|tx, _| async move { body(tx).await }).await.expect("a calm cluster and no refusal")
}

async fn keys(tx: &Tx) -> Vec<Bytes> {
    let all = RangeOption::new(&b""[..], &b"\xff"[..]);
    let rows = tx.get_range_all(all, Serializable).await.expect("rows");
    rows.into_iter().map(|row| row.key).collect()
}

fn all() -> Directories {
    Directories::default().with_manual_prefixes()
}

#[test]
fn the_tutorial_opens_its_directory_and_clears_it() {
    on_cluster(|db| async move {
        let scheduling = done(&db, |tx| async move {
            Directories::default().create_or_open(&tx, &["scheduling"], b"", CandidateSeed(1)).await
        })
        .await;
        let again = done(&db, |tx| async move {
            let scheduling =
                Directories::default().create_or_open(&tx, &["scheduling"], b"", CandidateSeed(2)).await?;
            let (course, attends) = (scheduling.subspace()?.subspace(&"class"), "attends");
            tx.set(&course.pack(&("class1",)), b"100");
            tx.set(&scheduling.subspace()?.pack(&(attends, "s", "class1")), b"");
            Ok(scheduling)
        })
        .await;
        assert_eq!(again, scheduling);
        let (begin, end) = scheduling.subspace().expect("no partition").range();
        let (begin, end) = (&begin, &end);
        done(&db, |tx| async move {
            assert_eq!(
                keys(&tx).await.iter().filter(|key| key[..] > begin[..] && key[..] < end[..]).count(),
                2
            );
            tx.clear_range(begin, end);
            Ok(())
        })
        .await;
        let exists =
            done(
                &db,
                |tx| async move { Directories::default().exists(&tx, &["scheduling"], Serializable).await },
            );
        assert!(exists.await);
    });
}

#[test]
fn concurrent_creates_in_one_transaction_agree_on_one_prefix() {
    on_cluster(|db| async move {
        let directories = done(&db, |tx| async move {
            let all = all();
            let one = |chance| all.create_or_open(&tx, &["a", "b"], b"t", CandidateSeed(chance));
            let (x, y, z) = (one(1), one(2), one(3));
            let other = all.create_or_open(&tx, &["a"], b"", CandidateSeed(4));
            let (x, y, z, other) = futures::join!(x, y, z, other);
            Ok([x?, y?, z?, other?])
        })
        .await;
        let [x, y, z, other] = &directories;
        assert_eq!((x, x), (y, z));
        assert_ne!(x, other);
        done(&db, |tx| async move {
            let nodes = Directories::default().nodes().clone();
            let tags = keys(&tx).await.into_iter().filter(|key| key.ends_with(b"\x01layer\0"));
            let mut expected: Vec<Node> = [x, other].map(|directory| nodes.of(directory.prefix())).into();
            expected.sort_by_key(Node::tag);
            assert_eq!(tags.collect::<Vec<_>>(), expected.iter().map(Node::tag).collect::<Vec<_>>());
            assert!(keys(&tx).await.iter().all(|key| !key.windows(5).any(|part| part == b"claim")));
            Ok(())
        })
        .await;
    });
}

#[test]
fn of_two_transactions_that_draw_one_candidate_the_second_conflicts() {
    on_cluster(|db| async move {
        let allocator = &Allocator::new(Subspace::from("hca"));
        let (one, other) = (db.create_transaction().expect("a"), db.create_transaction().expect("b"));
        let first = allocator.allocate(&one, CandidateSeed(7)).await.expect("a prefix");
        assert_eq!(allocator.allocate(&other, CandidateSeed(7)).await.as_ref(), Ok(&first));
        assert_eq!(one.commit().await, Ok(()));
        assert_eq!(other.commit().await, Err(tx::Error::NOT_COMMITTED));
        let (one, other) = (db.create_transaction().expect("a"), db.create_transaction().expect("b"));
        let second = allocator.allocate(&one, CandidateSeed(7)).await.expect("a prefix");
        let third = allocator.allocate(&other, CandidateSeed(8)).await.expect("a prefix");
        assert_eq!(BTreeSet::from([&first, &second, &third]).len(), 3);
        assert_eq!((one.commit().await, other.commit().await), (Ok(()), Ok(())));
    });
}

#[test]
fn a_seed_may_be_used_again_and_again() {
    on_cluster(|db| async move {
        let allocator = &Allocator::new(Subspace::from("hca"));
        let tx = db.create_transaction().expect("a transaction");
        // Half of the first four windows and of the fifth one, which has more candidates than a call draws.
        let mut given = BTreeSet::new();
        for _ in 0..4 * 32 + 512 {
            assert!(given.insert(allocator.allocate(&tx, CandidateSeed(7)).await.expect("a prefix")));
        }
    });
}

#[test]
fn a_thousand_prefixes_are_short_and_apart() {
    on_cluster(|db| async move {
        let mut given = BTreeSet::new();
        for number in 0..100 {
            let ten = done(&db, |tx| async move {
                let allocator = Allocator::new(Subspace::from("hca"));
                let mut ten = Vec::new();
                for n in 0..10 {
                    ten.push(allocator.allocate(&tx, CandidateSeed(10 * number + n)).await?);
                }
                Ok(ten)
            });
            for prefix in ten.await {
                assert!(prefix.len() <= 3, "{prefix:?}");
                assert!(given.insert(prefix));
            }
        }
    });
}

/// A manual prefix equal to, containing or contained in the prefix that the allocator is about to choose.
#[test]
fn a_prefix_by_hand_and_an_allocated_one_do_not_meet() {
    on_cluster(|db| async move {
        let candidate = {
            let probe = db.create_transaction().expect("a transaction");
            all()
                .create(&probe, &["probe"], b"", CandidateSeed(5))
                .await
                .expect("a directory")
                .prefix()
                .clone()
        };
        for by_hand in [candidate.to_vec(), candidate[..1].to_vec(), [&candidate[..], b"x"].concat()] {
            done(&db, |tx| async move {
                tx.clear_range(b"", b"\xff");
                tx.set(&all().nodes().version(), &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                Ok(())
            })
            .await;
            let (one, other) = (db.create_transaction().expect("a"), db.create_transaction().expect("b"));
            let allocated = all().create(&one, &["a"], b"", CandidateSeed(5)).await.expect("a directory");
            assert_eq!(allocated.prefix(), &candidate);
            let given = all().create_with_prefix(&other, &["b"], b"", &by_hand, CandidateSeed(5)).await;
            assert_eq!(given.map(|directory| directory.prefix().to_vec()), Ok(by_hand));
            assert_eq!(other.commit().await, Ok(()));
            assert_eq!(one.commit().await, Err(tx::Error::NOT_COMMITTED));
        }
    });
}

#[test]
fn refusals_name_the_path_and_write_nothing() {
    on_cluster(|db| async move {
        done(&db, |tx| async move {
            all().create_with_prefix(&tx, &["p"], b"partition", b"1", CandidateSeed(0)).await?;
            all().create(&tx, &["p", "d"], b"", CandidateSeed(1)).await?;
            all().create(&tx, &["a", "b"], b"t", CandidateSeed(2)).await
        })
        .await;
        let tx = db.create_transaction().expect("a transaction");
        let all = &all();
        let path = |names: &[&str]| Path::from(names);
        let before = keys(&tx).await;
        let long = "n".repeat(10_000);
        let long = &long[..];
        let refused = |result: Result<Directory, Error>| result.expect_err("a refusal");
        let (from, to) = (path(&["p", "d"]), path(&["d"]));
        assert_eq!(
            refused(all.rename(&tx, &["p", "d"], &["d"]).await),
            Error::BetweenPartitions { from, to }
        );
        let (from, to) = (path(&["a"]), path(&["a", "b", "c"]));
        assert_eq!(refused(all.rename(&tx, &["a"], &["a", "b", "c"]).await), Error::BelowItself { from, to });
        assert_eq!(refused(all.rename(&tx, &["a"], &["x", "a"]).await), Error::NoParent(path(&["x", "a"])));
        let error = refused(all.open(&tx, &["a", "b"], b"u").await);
        assert_eq!(error.to_string(), r#"the directory /"a"/"b" has the layer tag "t", not "u""#);
        for prefix in [&b""[..], b"1", b"1A", b"\xfe", b"\xff\x01"] {
            let given = refused(all.create_with_prefix(&tx, &["c"], b"", prefix, CandidateSeed(3)).await);
            let prefix = Bytes::copy_from_slice(prefix);
            assert_eq!(given, Error::PrefixInUse { path: path(&["c"]), prefix });
        }
        let within = refused(all.create_with_prefix(&tx, &["p", "c"], b"", b"2", CandidateSeed(3)).await);
        assert_eq!(within, Error::PrefixInPartition(path(&["p", "c"])));
        assert!(matches!(all.rename(&tx, &["a"], &[long]).await, Err(Error::TooLarge(TooLarge::Key { .. }))));
        assert_eq!(all.remove(&tx, &[]).await, Err(Error::Root("removed")));
        assert_eq!(keys(&tx).await, before);
        // A create may have drawn candidates before it is refused, but has changed nothing else.
        assert!(matches!(
            refused(all.create(&tx, &["c", long], b"", CandidateSeed(3)).await),
            Error::TooLarge(_)
        ));
        let nodes = keys(&tx).await.into_iter().filter(|key| !key.windows(3).any(|part| part == b"hca"));
        let old = before.into_iter().filter(|key| !key.windows(3).any(|part| part == b"hca"));
        assert!(nodes.eq(old));
    });
}

#[test]
fn a_handle_is_good_until_its_directory_moves() {
    on_cluster(|db| async move {
        let handle = done(&db, |tx| async move {
            all().create(&tx, &["p"], b"partition", CandidateSeed(1)).await?;
            all().create(&tx, &["p", "d"], b"", CandidateSeed(2)).await
        })
        .await;
        let handle = &handle;
        done(&db, |tx| async move {
            all().check(&tx, handle).await?;
            all().rename(&tx, &["p"], &["q"]).await?;
            let stale = Error::Stale(Path::from(&["p", "d"][..]));
            assert_eq!(all().check(&tx, handle).await, Err(stale.clone()));
            all().create(&tx, &["p", "d"], b"", CandidateSeed(3)).await?;
            assert_eq!(all().check(&tx, handle).await, Err(stale));
            let moved = all().open(&tx, &["q", "d"], b"").await?;
            assert_eq!(moved.prefix(), handle.prefix());
            moved.move_to(&tx, &["q", "e"]).await?;
            assert_eq!(all().list(&tx, &["q"], Serializable).await?, ["e"]);
            let across = all().open(&tx, &["q", "e"], b"").await?.move_to(&tx, &["e"]).await;
            assert!(matches!(across, Err(Error::BetweenPartitions { .. })));
            Ok(())
        })
        .await;
    });
}

#[test]
fn a_handle_is_as_good_for_those_below_its_parent() {
    on_cluster(|db| async move {
        done(&db, |tx| async move {
            let child = all().create(&tx, &["d", "e"], b"", CandidateSeed(1)).await?;
            let parent = all().open(&tx, &["d"], b"").await?;
            let opened = parent.below().open(&tx, &["e"], b"").await?;
            assert_eq!((opened.path(), opened.prefix()), (child.path(), child.prefix()));
            parent.below().check(&tx, &child).await?;
            opened.remove(&tx).await?;
            let stale = Error::Stale(Path::from(&["d", "e"][..]));
            assert_eq!(parent.below().check(&tx, &child).await, Err(stale));
            Ok(())
        })
        .await;
    });
}

#[test]
fn a_look_at_snapshot_conflicts_with_no_change() {
    on_cluster(|db| async move {
        for (isolation, commits) in [(Snapshot, true), (Serializable, false)] {
            done(&db, |tx| async move { all().create(&tx, &["d", "e"], b"", CandidateSeed(1)).await }).await;
            let (lists, looks) = (begin(&db), begin(&db));
            assert_eq!(all().list(&lists, &["d"], isolation).await, Ok(vec!["e".to_owned()]));
            assert_eq!(all().exists(&looks, &["d", "e"], isolation).await, Ok(true));
            done(&db, |tx| async move { all().remove(&tx, &["d"]).await }).await;
            for tx in [lists, looks] {
                tx.set(b"seen", b"");
                assert_eq!(tx.commit().await.is_ok(), commits, "{isolation:?}");
            }
        }
    });
}

#[test]
fn inside_a_session_directories_are_the_answers() {
    on_cluster(|db| async move {
        let slots = Slots::new(Subspace::from("sessions"));
        let mut session = Session::open(&db, &slots, 1).await.expect("a session");
        let all = &Directories::default();
        let create = |tx: Tx| async move { all.create(&tx, &["a"], b"t", CandidateSeed(1)).await };
        let Outcome::Applied(created) = session.apply(create).await else { panic!("not created") };
        let (path, tag) = (Path::from(&["a"][..]), Bytes::from_static(b"t"));
        assert_eq!((created.path(), created.tag()), (&path, &tag));
        assert_eq!(session.apply(create).await, Outcome::Refused(Error::AlreadyExists(path)));
        let open = |tx: Tx| async move { all.create_or_open(&tx, &["a"], b"t", CandidateSeed(2)).await };
        assert_eq!(session.apply(open).await, Outcome::Applied(created.clone()));
        let created = &created;
        let moved = session.apply(|tx: Tx| async move { created.move_to(&tx, &["b"]).await }).await;
        let Outcome::Applied(moved) = moved else { panic!("not moved") };
        assert_eq!(moved.prefix(), created.prefix());
        let gone = session.apply(|tx: Tx| async move { created.remove_if_exists(&tx).await }).await;
        assert_eq!(gone, Outcome::Applied(false));
        let moved = &moved;
        let removed = session.apply(|tx: Tx| async move { moved.remove(&tx).await }).await;
        assert_eq!(removed, Outcome::Applied(()));
    });
}

/// A layer, for tests that put data into its nodes that the layer itself never writes.
fn nodes() -> (Directories, Node) {
    let all = Directories::default();
    let root = all.nodes().root();
    (all, root)
}

#[test]
fn a_directory_that_is_below_itself_is_not_removed_for_ever() {
    on_cluster(|db| async move {
        let (tx, (all, root)) = (begin(&db), nodes());
        let a = all.create(&tx, &["a"], b"", CandidateSeed(1)).await.expect("a directory");
        let ring = all.nodes().of(a.prefix()).child("ring");
        tx.set(&ring, a.prefix());
        assert_eq!(all.remove(&tx, &["a"]).await, Err(Error::Foreign(ring.into())));
        assert_eq!(all.exists(&tx, &["a", "ring", "ring"], Serializable).await, Ok(true));
        for prefix in [&b""[..], b"\xfe", b"\xff"] {
            tx.set(&root.child("b"), prefix);
            let refused = all.remove(&tx, &["b"]).await;
            assert!(matches!(refused, Err(Error::Foreign(_))), "{prefix:?}: {refused:?}");
        }
    });
}

#[test]
fn an_allocator_that_somebody_else_has_filled_is_foreign() {
    on_cluster(|db| async move {
        let (all, _) = nodes();
        let allocator = all.nodes().allocator();
        let create = async |tx: &Tx| all.create(tx, &["a"], b"", CandidateSeed(1)).await;
        let tx = begin(&db);
        (0..64).for_each(|candidate| tx.set(&allocator.mark(candidate), b""));
        assert_eq!(create(&tx).await, Err(Error::Foreign(allocator.counter(0).into())));
        for start in [-1, i64::MIN, i64::MAX, i64::MAX - 8_192] {
            let (tx, key) = (begin(&db), allocator.counter(start));
            tx.set(&key, &1i64.to_le_bytes());
            let refused = create(&tx).await;
            assert_eq!(refused, Err(Error::Foreign(key.into())), "{start}");
        }
        for count in [&b""[..], b"1", &[0; 9]] {
            let tx = begin(&db);
            tx.set(&allocator.counter(0), count);
            let made = create(&tx).await;
            assert!(made.is_ok() || matches!(made, Err(Error::Foreign(_))), "{made:?}");
        }
    });
}

#[test]
fn a_directory_layer_says_where_its_nodes_and_contents_lie() {
    let (nodes, content) = (Subspace::from("nodes"), Subspace::from("content"));
    let layer = Directories::new(nodes, content.clone());
    assert_eq!(&layer.content()[..], content.bytes());
}
