//! The recipe for blobs: a large file is written in chunks, and read back as a whole and in part; content
//! that does not fit into one transaction; and content that does not match its manifest.

use crate::shared::cluster::{self, begin, on_cluster, session};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack};
use futures::future::join;
use shaketable_layers::blob::{
    Blobs, Error, Expect, Generation, MAX_PARTS, MAX_READ_BYTES, MAX_READ_CHUNKS, Pages, UploadId,
};
use shaketable_sim::{
    faults::{Family, FaultPlan, Strike},
    rt::SECOND,
};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::{Serializable, Snapshot},
    RangeOption, RetryError, Transaction,
    limits::{TRANSACTION_SIZE_LIMIT, TooLarge},
    once::Outcome,
};
use std::time::Duration;

fn file(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 7) as u8 ^ (i >> 8) as u8).collect()
}

async fn range(db: &Db, blobs: &Blobs, start: u64, length: u64) -> Option<Bytes> {
    let read = db
        .run(|tx, _| async move { blobs.read_range(&tx, b"my-blob-id", start, length, Serializable).await });
    read.await.expect("a calm cluster answers")
}

async fn size(db: &Db, blobs: &Blobs) -> Option<u64> {
    let size = db.run(|tx, _| async move { blobs.size(&tx, b"my-blob-id", Serializable).await });
    size.await.expect("a calm cluster answers")
}

async fn write(db: &Db, blobs: &Blobs, data: &[u8]) -> Result<Generation, Error> {
    let written = db.run(|tx, _| async move { blobs.write(&tx, b"my-blob-id", data).await });
    written.await.map_err(|e| e.error)
}

async fn delete(db: &Db, blobs: &Blobs) -> bool {
    let deleted = db.run(|tx, _| async move { blobs.delete(&tx, b"my-blob-id").await });
    deleted.await.expect("a calm cluster answers")
}

/// A blob that was never written: its manifest claims `size` bytes, in chunks of this size.
async fn claim(db: &Db, size: u64, chunk: u64) {
    let key = Subspace::from("blob").pack(&(0, TupleBytes::from(&b"my-blob-id"[..])));
    let manifest = pack(&(size, chunk, 1i64, 0i64, TupleBytes::from(&b""[..])));
    let (key, manifest) = (&key, &manifest);
    let set = db.run(|tx, _| async move {
        tx.set(key, manifest);
        Ok::<_, tx::Error>(())
    });
    set.await.expect("a calm cluster answers");
}

#[test]
fn a_large_file_is_written_read_back_and_deleted() {
    on_cluster(|db| async move {
        let (blobs, data) = (Blobs::new(Subspace::from("blob")), file(123_456));
        assert!(write(&db, &blobs, &data).await.is_ok());
        assert_eq!(range(&db, &blobs, 0, u64::MAX).await.as_deref(), Some(&data[..]));
        assert_eq!(size(&db, &blobs).await, Some(123_456));
        // The header, a slice across a chunk boundary, the end, and beyond it.
        for (start, end) in [(0, 1024), (9_990, 10_010), (123_450, 123_456), (123_456, 123_456)] {
            let read = range(&db, &blobs, start as u64, (end - start) as u64).await;
            assert_eq!(read.as_deref(), Some(&data[start..end]));
        }
        assert_eq!(range(&db, &blobs, 123_400, 1_000).await.as_deref(), Some(&data[123_400..]));
        assert_eq!(range(&db, &blobs, 200_000, 10).await.as_deref(), Some(&b""[..]));
        // Shorter content leaves nothing of the longer content.
        assert!(write(&db, &blobs, b"short").await.is_ok());
        assert_eq!(range(&db, &blobs, 0, u64::MAX).await.as_deref(), Some(&b"short"[..]));
        assert!(delete(&db, &blobs).await);
        assert_eq!(size(&db, &blobs).await, None);
        assert!(!delete(&db, &blobs).await);
    });
}

#[test]
fn an_empty_blob_is_there_and_a_missing_one_is_not() {
    on_cluster(|db| async move {
        let blobs = Blobs::new(Subspace::from("blob"));
        assert_eq!(range(&db, &blobs, 0, 10).await, None);
        assert!(write(&db, &blobs, b"").await.is_ok());
        assert_eq!(range(&db, &blobs, 0, 10).await.as_deref(), Some(&b""[..]));
        assert_eq!(size(&db, &blobs).await, Some(0));
    });
}

#[test]
fn what_is_too_large_for_a_transaction_is_refused_and_comes_by_an_upload() {
    on_cluster(|db| async move {
        let (blobs, data) = (Blobs::new(Subspace::from("blob")), file(TRANSACTION_SIZE_LIMIT + 1));
        let mut session = session(&db).await;
        match write(&db, &blobs, &data).await {
            Err(Error::TooLarge(TooLarge::Transaction { limit, .. })) => {
                assert_eq!(limit, TRANSACTION_SIZE_LIMIT);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(size(&db, &blobs).await, None);
        let uploaded = blobs.upload_once(&mut session, b"my-blob-id", &data, Expect::Absent).await;
        let Outcome::Applied(generation) = uploaded else { panic!("{uploaded:?}") };
        assert_eq!(size(&db, &blobs).await, Some(data.len() as u64));
        let read = blobs.read_paged(&db, b"my-blob-id").await.expect("a calm cluster answers");
        assert!(read == Some((generation, Bytes::from(data))), "another content than was uploaded");
        // Once the blob exists, it is not absent.
        let again = blobs.upload_once(&mut session, b"my-blob-id", b"x", Expect::Absent).await;
        let changed = Error::Changed { expected: Expect::Absent, found: Some(generation) };
        assert_eq!(again, Outcome::Refused(changed));
    });
}

#[test]
fn parts_may_come_in_any_order_and_an_upload_is_finished_only_with_all_of_them() {
    on_cluster(|db| async move {
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let upload = UploadId::draw(db.env());
        let put = async |number, data: &'static [u8]| {
            let put = db.run(|tx, _| async move { blobs.put_part(&tx, upload, number, data).await });
            put.await.map_err(|e| e.error)
        };
        let finish = async || {
            let finish =
                db.run(|tx, _| async move { blobs.finish_upload(&tx, upload, Expect::Anything).await });
            finish.await.map_err(|e| e.error)
        };
        assert_eq!(put(0, b"abcd").await, Err(Error::NoUpload(upload)));
        let begun = db.run(|tx, _| async move { blobs.begin_upload(&tx, b"my-blob-id", upload).await });
        assert_eq!(begun.await, Ok(()));
        let other = db.run(|tx, _| async move { blobs.begin_upload(&tx, b"other", upload).await });
        assert_eq!(other.await.map_err(|e| e.error), Err(Error::OtherUpload(upload)));
        assert_eq!(put(2, b"i").await, Ok(()));
        assert_eq!(put(0, b"").await, Err(Error::PartLength { number: 0, bytes: 0, limit: 4 }));
        assert_eq!(put(0, b"abcde").await, Err(Error::PartLength { number: 0, bytes: 5, limit: 4 }));
        for number in [MAX_PARTS, u64::MAX] {
            assert_eq!(put(number, b"x").await, Err(Error::PartNumber { number }));
        }
        assert_eq!(finish().await, Err(Error::MissingPart(0)));
        assert_eq!(put(0, b"abc").await, Ok(()));
        assert_eq!(finish().await, Err(Error::ShortPart(0)));
        assert_eq!(put(0, b"abcd").await, Ok(()));
        assert_eq!(finish().await, Err(Error::MissingPart(1)));
        assert_eq!(put(1, b"efgh").await, Ok(()));
        assert_eq!(size(&db, blobs).await, None);
        assert!(finish().await.is_ok());
        assert_eq!(range(&db, blobs, 0, u64::MAX).await.as_deref(), Some(&b"abcdefghi"[..]));
        assert_eq!(finish().await, Err(Error::NoUpload(upload)));
        assert_eq!(put(1, b"EFGH").await, Err(Error::NoUpload(upload)));
        let again = db.run(|tx, _| async move { blobs.begin_upload(&tx, b"my-blob-id", upload).await });
        assert_eq!(again.await.map_err(|e| e.error), Err(Error::NoUpload(upload)));
    });
}

#[test]
fn a_write_touches_the_chunks_it_covers_and_no_other() {
    on_cluster(|db| async move {
        let (blobs, data) = (Blobs::new(Subspace::from("blob")), file(30_000));
        assert!(write(&db, &blobs, &data).await.is_ok());
        // Chunks have 10,000 bytes: the first, the second, and parts of both.
        for (start, length, chunks) in [(0, 10_000, 1), (10_000, 10_000, 1), (9_000, 2_000, 2)] {
            let tx = begin(&db);
            blobs.write_at(&tx, b"my-blob-id", start, &data[..length]).await.expect("it is there");
            let size = tx.get_approximate_size().await.expect("it is counted");
            assert!((chunks * 10_000..chunks * 10_000 + 3_000).contains(&size), "{size} for {chunks} chunks");
        }
    });
}

#[test]
fn a_manifest_with_a_wrong_size_costs_no_more_than_what_is_stored() {
    on_cluster(|db| async move {
        let (blobs, id) = (&Blobs::new(Subspace::from("blob")), &b"my-blob-id"[..]);
        assert!(write(&db, blobs, &file(25_000)).await.is_ok());
        let read = async |length| {
            let read =
                db.run(|tx, _| async move { blobs.read_range(&tx, id, 0, length, Serializable).await });
            read.await.map_err(|e| e.error)
        };
        // A terabyte, and the largest possible size: the content is too short, or too long to be read at
        // once.
        let limit = MAX_READ_BYTES / (10_000 + 30) * 10_000;
        for size in [1 << 40, u64::MAX] {
            claim(&db, size, 10_000).await;
            let too_long = Error::TooLong { bytes: size, limit };
            assert_eq!(read(u64::MAX).await, Err(too_long));
            assert_eq!(read(limit).await, Err(Error::Damaged(20_000)));
            let paged = blobs.read_paged(&db, id).await;
            assert_eq!(paged.map_err(|e| e.error), Err(Error::Damaged(20_000)));
            let append = db.run(|tx, _| async move { blobs.append(&tx, id, b"xyz").await });
            let expected = match size {
                u64::MAX => Error::Overflow { start: size, length: 3 },
                _ => Error::Damaged(size - size % 10_000),
            };
            assert_eq!(append.await.map_err(|e| e.error), Err(expected));
            let cut = db.run(|tx, _| async move { blobs.truncate(&tx, id, size - 1).await });
            let last = size - 1 - (size - 1) % 10_000;
            assert_eq!(cut.await.map_err(|e| e.error), Err(Error::Damaged(last)));
        }
        // Chunk sizes that cannot have been written.
        for chunk in [0, 100_001, u64::MAX] {
            claim(&db, 25_000, chunk).await;
            for result in [read(10).await.map(drop), write(&db, blobs, b"x").await.map(drop)] {
                assert!(matches!(result, Err(Error::Foreign(_))), "{chunk}: {result:?}");
            }
        }
    });
}

#[test]
fn one_transaction_reads_no_more_than_it_can_in_its_life() {
    on_cluster(|db| async move {
        let (blobs, id) = (&Blobs::new(Subspace::from("blob")), &b"my-blob-id"[..]);
        // In chunks of a hundred thousand bytes, one chunk is left out to make room for the keys of the
        // others.
        for (chunk, limit) in [(100_000, MAX_READ_BYTES - 100_000), (3, 3 * MAX_READ_CHUNKS)] {
            claim(&db, limit + 1, chunk).await;
            let read = async |from, length| {
                let read =
                    db.run(|tx, _| async move { blobs.read_range(&tx, id, from, length, Snapshot).await });
                read.await.map_err(|e| e.error)
            };
            assert_eq!(read(0, u64::MAX).await, Err(Error::TooLong { bytes: limit + 1, limit }));
            // The limit itself is accepted, but there is no content.
            assert_eq!(read(0, limit).await, Err(Error::Damaged(0)));
            assert_eq!(read(1, u64::MAX - 1).await, Err(Error::Damaged(0)));
            // Pages request no more than that.
            let mut pages = Pages::open(&db, blobs, id).await.expect("a look").expect("it is there");
            assert_eq!(pages.next(&db).await.map_err(|e| e.error), Err(Error::Damaged(0)));
        }
    });
}

#[test]
fn an_upload_has_no_more_parts_than_one_transaction_can_count() {
    on_cluster(|db| async move {
        let blobs = Blobs::with_sizes(Subspace::from("blob"), 1, 1).expect("sizes within the limits");
        let (id, data) = (UploadId::draw(db.env()), vec![0; MAX_PARTS as usize + 1]);
        let put = blobs.put_all(&db, b"my-blob-id", id, &data).await;
        assert_eq!(put.map_err(|e| e.error), Err(Error::PartNumber { number: MAX_PARTS }));
        // Refused before anything was written.
        let uploads = db.run(|tx, _| {
            let blobs = blobs.clone();
            async move { blobs.uploads(&tx, None, 1, Serializable).await }
        });
        assert_eq!(uploads.await, Ok(Vec::new()));
    });
}

#[test]
fn all_that_was_left_is_collected_however_much_it_is() {
    on_cluster(|db| async move {
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let ids: Vec<UploadId> = (0..250u128).map(|n| UploadId((n << 64).to_be_bytes())).collect();
        for some in ids.chunks(50) {
            let begun = db.run(|tx, _| async move {
                for id in some {
                    blobs.begin_upload(&tx, b"my-blob-id", *id).await?;
                    blobs.put_part(&tx, *id, 7, b"xyz").await?;
                }
                Ok::<_, Error>(())
            });
            assert_eq!(begun.await, Ok(()));
        }
        assert_eq!(blobs.collect(&db, Duration::ZERO).await, Ok(ids));
        let left = db.run(|tx, _| async move {
            let all = Subspace::from("blob").range();
            tx.get_range_all(all.into(), Serializable).await
        });
        assert_eq!(left.await, Ok(Vec::new()));
    });
}

#[test]
fn an_id_is_used_for_one_blob_only() {
    on_cluster(|db| async move {
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let upload = UploadId::draw(db.env());
        let begin = async |name: &'static [u8]| {
            let begun = db.run(|tx, _| async move { blobs.begin_upload(&tx, name, upload).await });
            begun.await.map_err(|e| e.error)
        };
        let put = blobs.put_all(&db, b"one", upload, b"content of one").await;
        assert_eq!(put, Ok(()));
        let finish = db.run(|tx, _| async move { blobs.finish_upload(&tx, upload, Expect::Absent).await });
        assert!(finish.await.is_ok());
        assert_eq!(begin(b"two").await, Err(Error::NoUpload(upload)));
        // Once none of its content is left, the id can be reused, and the two blobs have nothing in common.
        let cut = db.run(|tx, _| async move { blobs.truncate(&tx, b"one", 0).await });
        assert!(cut.await.is_ok());
        assert_eq!(begin(b"two").await, Ok(()));
        let both = db.run(|tx, _| async move {
            blobs.put_part(&tx, upload, 0, b"two").await?;
            blobs.finish_upload(&tx, upload, Expect::Absent).await?;
            blobs.append(&tx, b"one", b"1").await?;
            let one = blobs.read(&tx, b"one", Serializable).await?;
            let two = blobs.read(&tx, b"two", Serializable).await?;
            Ok::<_, Error>((one, two))
        });
        let (one, two) = both.await.expect("a calm cluster answers");
        assert_eq!((one.as_deref(), two.as_deref()), (Some(&b"1"[..]), Some(&b"two"[..])));
    });
}

#[test]
fn a_part_that_lands_late_does_not_come_back_over_what_has_replaced_it() {
    on_cluster(|db| async move {
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let upload = UploadId::draw(db.env());
        let begun = db.run(|tx, _| async move { blobs.begin_upload(&tx, b"my-blob-id", upload).await });
        assert_eq!(begun.await, Ok(()));
        let (late, beside) = (begin(&db), begin(&db));
        assert_eq!(blobs.put_part(&late, upload, 0, b"late").await, Ok(()));
        assert_eq!(blobs.put_part(&beside, upload, 1, b"y").await, Ok(()));
        let put = db.run(|tx, _| async move { blobs.put_part(&tx, upload, 0, b"abcd").await });
        assert_eq!(put.await, Ok(()));
        assert_eq!(late.commit().await, Err(tx::Error::NOT_COMMITTED));
        // A put of another part does not conflict.
        assert_eq!(beside.commit().await, Ok(()));
        let finish = db.run(|tx, _| async move { blobs.finish_upload(&tx, upload, Expect::Absent).await });
        assert!(finish.await.is_ok());
        assert_eq!(range(&db, blobs, 0, u64::MAX).await.as_deref(), Some(&b"abcdy"[..]));
    });
}

#[test]
fn an_upload_that_lives_survives_a_recovery_and_one_that_was_left_does_not() {
    // Every machine of the cluster is rebooted: the version jumps by a hundred million.
    let reboot = Strike {
        at: 3 * SECOND,
        family: Family::Reboot,
        target: 0,
        other: 0,
        duration: SECOND / 5,
        amount: 1.0,
    };
    let plan = FaultPlan { strikes: vec![reboot], ..FaultPlan::default() };
    cluster::under(plan, |machine| async move {
        let db = &Db::new(machine.open());
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let version = async || {
            let version = db.run(|tx, _| async move { tx.get_read_version().await });
            version.await.expect("the cluster comes back")
        };
        let (lives, left) = (UploadId([1; 16]), UploadId([2; 16]));
        for upload in [lives, left] {
            let begun = db.run(|tx, _| async move { blobs.begin_upload(&tx, b"my-blob-id", upload).await });
            assert_eq!(begun.await, Ok(()));
        }
        let before = version().await;
        let patience = Duration::from_secs(5);
        let uploader = async {
            for number in 0..10u64 {
                let put = db.run(|tx, _| async move { blobs.put_part(&tx, lives, number, b"part").await });
                assert_eq!(put.await.map_err(|e| e.error), Ok(()));
                db.env().sleep(Duration::from_secs(1)).await;
            }
        };
        let (collected, ()) = join(blobs.collect(db, patience), uploader).await;
        assert_eq!(collected.map_err(|e| e.error.fdb()), Ok(vec![left]));
        // According to the versions, both began more than a minute and a half ago.
        assert!(version().await - before > 90_000_000, "no recovery");
        let finish = db.run(|tx, _| async move { blobs.finish_upload(&tx, lives, Expect::Absent).await });
        assert!(finish.await.is_ok());
        assert_eq!(size(db, blobs).await, Some(40));
    });
}

#[test]
fn whatever_is_stored_is_answered_or_refused() {
    on_cluster(|db| async move {
        let (space, blob) = (Subspace::from("blob"), &b"my-blob-id"[..]);
        let blobs = Blobs::with_sizes(space.clone(), 10, 20).expect("sizes within the limits");
        let id = UploadId([7; 16]);
        let mut values: Vec<Vec<u8>> = vec![vec![], vec![0xff; 40], vec![0x05; 9_000], pack(&("text",))];
        for size in [0, 1, 25, u64::MAX - 1, u64::MAX] {
            for chunk in [0, 1, 10, 100_000, u64::MAX] {
                for step in [i64::MIN, -1, 0, i64::MAX - 1, i64::MAX] {
                    for place in [&b""[..], b"short", &id.0] {
                        values.push(pack(&(size, chunk, i64::MAX, step, TupleBytes::from(place))));
                    }
                }
                values.push(pack(&(TupleBytes::from(blob), chunk, size, i64::MIN)));
            }
            values.push(pack(&(size,)));
        }
        let raw = TupleBytes::from(&id.0[..]);
        for (n, value) in values.iter().enumerate() {
            let tx = begin(&db);
            let other = &values[n * 7 % values.len()];
            tx.set(&space.pack(&(0, TupleBytes::from(blob))), value);
            tx.set(&space.pack(&(1, TupleBytes::from(blob), 0u64)), other);
            tx.set(&space.pack(&(1, TupleBytes::from(blob), "not an offset")), b"");
            tx.set(&space.pack(&(2, raw.clone(), 10u64)), other);
            tx.set(&space.pack(&(3, raw.clone())), &values[n * 3 % values.len()]);
            tx.set(&space.pack(&(4, raw.clone(), u64::MAX)), other);
            tx.set(&space.pack(&(4, raw.clone(), 0u64)), value);
            tx.set(&space.pack(&(5, raw.clone())), b"signs");
            let results = [
                blobs.read(&tx, blob, Snapshot).await.map(drop),
                blobs.read_range(&tx, blob, u64::MAX - 7, 7, Serializable).await.map(drop),
                blobs.stat(&tx, blob, Serializable).await.map(drop),
                blobs.append(&tx, blob, b"more than a chunk has").await.map(drop),
                blobs.write_at(&tx, blob, 5, b"xyz").await.map(drop),
                blobs.truncate(&tx, blob, 3).await.map(drop),
                blobs.uploads(&tx, None, 10, Serializable).await.map(drop),
                blobs.parts(&tx, id, Serializable).await.map(drop),
                blobs.put_part(&tx, id, 1, b"part").await,
                blobs.begin_upload(&tx, blob, id).await,
                blobs.finish_upload(&tx, id, Expect::Anything).await.map(drop),
                blobs.abandon_upload(&tx, id).await.map(drop),
                blobs.write(&tx, blob, b"anew").await.map(drop),
                blobs.delete(&tx, blob).await.map(drop),
            ];
            for (call, result) in results.iter().enumerate() {
                assert!(!matches!(result, Err(Error::Fdb(_))), "{call}: {result:?} of {value:?}");
            }
        }
    });
}

#[test]
fn the_length_of_the_last_part_is_one_that_a_part_can_have() {
    on_cluster(|db| async move {
        let (blobs, id) = (&Blobs::new(Subspace::from("blobs")), b"my-blob-id");
        let upload = UploadId::draw(db.env());
        let put = db.run(|tx, _| async move {
            blobs.begin_upload(&tx, id, upload).await?;
            blobs.put_part(&tx, upload, 0, b"part").await
        });
        put.await.expect("a part");
        // The only row that holds just a length.
        let mark = db.run(|tx, _| async move {
            let rows = tx.get_range_all(RangeOption::from(Subspace::from("blobs").range()), Snapshot).await?;
            Ok::<_, tx::Error>(rows.into_iter().find(|row| row.value == pack(&(4u64,))))
        });
        let mark = &mark.await.expect("a look").expect("a mark").key;
        for length in [0, u64::MAX] {
            let change = db.run(|tx, _| async move {
                tx.set(mark, &pack(&(length,)));
                Ok::<_, tx::Error>(())
            });
            change.await.expect("a change");
            let finish =
                db.run(|tx, _| async move { blobs.finish_upload(&tx, upload, Expect::Anything).await });
            assert_eq!(finish.await.map_err(|e| e.error), Err(Error::Damaged(0)));
        }
    });
}
