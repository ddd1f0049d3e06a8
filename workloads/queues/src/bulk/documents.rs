//! The guides' advice on work beyond the limits of one transaction: batches that can be resumed, and a new
//! version of a space built beside the one in use.

use crate::shared::cluster::{self, on_cluster};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_layers::bulk::{BuildId, Cleared, Error, Job, Limits, Workspace};
use shaketable_tx::{
    Database, Db, Isolation::Serializable, KeyValue, MutationType, RangeOption, Transaction, Tx, key_after,
};
use std::time::Duration;

const ROWS: u8 = 150;

fn job() -> Job {
    Job::new(&Subspace::from("jobs"), b"copy", (b"a".to_vec(), b"b".to_vec())).expect("a short name")
}

/// Rows `a0`, `a1`, ..; each with its number.
async fn fill(db: &Db) {
    let filled = db.run(|tx, _| async move {
        (0..ROWS).for_each(|row| tx.set(&[b'a', row], &[row]));
        Ok::<_, shaketable_tx::Error>(())
    });
    filled.await.expect("a calm cluster answers");
}

async fn rows(db: &Db, begin: &'static [u8], end: &'static [u8]) -> Vec<KeyValue> {
    let read =
        db.run(|tx, _| async move { tx.get_range_all(RangeOption::new(begin, end), Serializable).await });
    read.await.expect("a calm cluster answers")
}

/// Copies an enlarged row, and counts it.
async fn blow_up(tx: Tx, row: KeyValue) -> Result<(), Error> {
    tx.set(&[b"c", &row.key[1..]].concat(), &[row.value[0]; 90_000]);
    tx.atomic_op(b"done", &1u64.to_le_bytes(), MutationType::Add);
    Ok(())
}

#[test]
fn a_batch_that_is_too_large_for_a_transaction_is_made_smaller() {
    on_cluster(|db| async move {
        fill(&db).await;
        // All rows in one batch would be 13 megabytes.
        let all = Limits { rows: 1_000, bytes: i64::MAX, time: Duration::from_secs(100) };
        let first = job().advance(&db, &all, blow_up).await.expect("a smaller batch fits");
        assert!(!first.finished && first.rows > 1, "{first:?}");
        let progress = job().run(&db, &Limits::default(), blow_up).await.expect("a calm cluster answers");
        assert!(progress.finished);
        assert_eq!(progress.rows, u64::from(ROWS));
        let copies = rows(&db, b"c", b"d").await;
        assert_eq!(copies.len(), usize::from(ROWS));
        assert!(copies.iter().all(|copy| copy.value.len() == 90_000 && copy.value[0] == copy.key[1]));
        assert_eq!(rows(&db, b"done", b"dooo").await[0].value[..], u64::from(ROWS).to_le_bytes());
        // A finished job does nothing more.
        assert_eq!(job().run(&db, &all, blow_up).await, Ok(progress));
    });
}

#[test]
fn a_batch_ends_at_its_bytes_and_a_writer_can_tell_what_was_passed() {
    on_cluster(|db| async move {
        fill(&db).await;
        let (db, job) = (&db, &job());
        let passed = async |key: Bytes| {
            let key = &key;
            let passed = db.run(|tx, _| async move { job.has_passed(&tx, key).await });
            passed.await.map_err(|e| e.error)
        };
        assert_eq!(passed(Bytes::from_static(b"a\0")).await, Ok(false));
        let limits = Limits { bytes: 250_000, ..Limits::default() };
        let progress = job.advance(db, &limits, blow_up).await.expect("a calm cluster answers");
        assert_eq!((progress.rows, progress.finished), (3, false));
        assert_eq!(progress.cursor, key_after(&[b'a', 2]));
        for (row, expected) in [(0u8, true), (2, true), (3, false)] {
            assert_eq!(passed(Bytes::from(vec![b'a', row])).await, Ok(expected));
        }
        for outside in [&b"b"[..], b"B"] {
            let key = Bytes::from_static(outside);
            assert_eq!(passed(key.clone()).await, Err(Error::OutsideRange { key }));
        }
        // After it is forgotten, it starts again.
        let forgotten = db.run(|tx, _| async move { job.forget(&tx).await }).await;
        assert_eq!(forgotten, Ok(()));
        assert_eq!(passed(Bytes::from_static(b"a\0")).await, Ok(false));
    });
}

#[test]
fn readers_are_switched_to_a_new_build_and_the_old_one_is_cleared() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(Subspace::from("w")).expect("a short prefix");
        let (db, [old, new, late]) = (&db, [1, 2, 3].map(|n| BuildId([n; 16])));
        let begin = async |build| {
            let begun = db.run(|tx, _| async move { workspace.begin(&tx, build).await });
            begun.await.map_err(|e| e.error)
        };
        let write = async |build: BuildId| {
            let written = db.run(|tx, _| async move {
                let space = workspace.claim(&tx, build).await?;
                (0..5i64).for_each(|row| tx.set(&space.pack(&(row,)), &build.0));
                Ok::<_, Error>(())
            });
            written.await.map_err(|e| e.error)
        };
        let publish = async |build| {
            let published = db.run(|tx, _| async move { workspace.publish(&tx, build).await });
            published.await.map_err(|e| e.error)
        };
        let pinned = async |build| {
            let pinned = db.run(|tx, _| async move { workspace.pinned(&tx, build, Serializable).await });
            pinned.await.map(drop).map_err(|e| e.error)
        };
        assert_eq!(pinned(old).await, Err(Error::Swapped { expected: old, found: None }));
        assert_eq!(write(old).await, Err(Error::NoBuild(old)));
        assert_eq!(begin(old).await, Ok(None));
        assert_eq!((write(old).await, publish(old).await), (Ok(()), Ok(())));
        assert_eq!(pinned(old).await, Ok(()));
        assert_eq!((begin(new).await, begin(late).await), (Ok(Some(old)), Ok(Some(old))));
        assert_eq!(begin(new).await, Ok(Some(old)));
        assert_eq!((write(new).await, write(late).await), (Ok(()), Ok(())));
        assert_eq!(publish(new).await, Ok(()));
        assert_eq!(publish(late).await, Err(Error::Outdated(late)));
        assert_eq!(pinned(old).await, Err(Error::Swapped { expected: old, found: Some(new) }));
        for ended in [old, new] {
            assert_eq!(write(ended).await, Err(Error::NoBuild(ended)));
            assert_eq!(publish(ended).await, Err(Error::NoBuild(ended)));
            assert_eq!(begin(ended).await, Err(Error::NoBuild(ended)));
        }
        assert_eq!(workspace.clear_all_retired(db, 2).await, Ok(5));
        assert_eq!(workspace.discard_unchanged(db, Duration::from_millis(1), 1).await, Ok(vec![late]));
        assert_eq!(workspace.clear_all_retired(db, 100).await, Ok(5));
        let (begin, end) = Subspace::from("w").range();
        let (begin, end) = (&begin, &end);
        let left = db.run(|tx, _| async move {
            tx.get_range_all(RangeOption::new(begin.clone(), end.clone()), Serializable).await
        });
        let left = left.await.expect("a calm cluster answers");
        assert_eq!(left.len(), 6, "the pointer and the current build");
        assert!(left[1..].iter().all(|row| row.value[..] == new.0));
    });
}

#[test]
fn a_late_clearer_leaves_a_build_alone_that_has_begun_again() {
    on_cluster(|db| async move {
        let workspace = &Workspace::new(Subspace::from("w")).expect("a short prefix");
        let (db, build) = (&db, BuildId([0; 16]));
        let begin = async || {
            let begun = db.run(|tx, _| async move {
                workspace.begin(&tx, build).await?;
                let space = workspace.claim(&tx, build).await?;
                tx.set(&space.pack(&(1,)), b"row");
                Ok::<_, Error>(())
            });
            begun.await.map_err(|e| e.error)
        };
        assert_eq!(begin().await, Ok(()));
        let discarded = db.run(|tx, _| async move { workspace.discard(&tx, build).await });
        assert_eq!(discarded.await, Ok(true));
        // It has read that the build is retired, and commits only long after that has changed.
        let late = cluster::begin(db);
        assert_eq!(workspace.clear_retired(&late, 10).await, Ok(Cleared { rows: 1, more: false }));
        assert_eq!(begin().await, Err(Error::NoBuild(build)));
        assert_eq!(workspace.clear_all_retired(db, 10).await, Ok(1));
        assert_eq!(begin().await, Ok(()));
        assert!(late.commit().await.is_err());
        let (begin, end) = Subspace::from("w").range();
        let (begin, end) = (&begin, &end);
        let left = db.run(|tx, _| async move {
            tx.get_range_all(RangeOption::new(begin.clone(), end.clone()), Serializable).await
        });
        assert_eq!(left.await.expect("a calm cluster answers").len(), 3, "its record, its claims, its row");
    });
}
