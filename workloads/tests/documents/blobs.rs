//! The recipe for blobs: a large file is written in chunks, read back as a whole and in part.

use crate::{begin, on_cluster};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_layers::{
    blob::{Blobs, Error, Expect},
    limits::{TRANSACTION_SIZE_LIMIT, TooLarge},
    once::{Outcome, Session, Slots},
    tx::{Database, Isolation::Serializable, Transaction},
};
use shaketable_sim::client::SimDatabase;

fn file(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 7) as u8 ^ (i >> 8) as u8).collect()
}

async fn range(db: &SimDatabase, blobs: &Blobs, start: u64, length: u64) -> Option<Bytes> {
    let read = db
        .run(|tx, _| async move { blobs.read_range(&tx, b"my-blob-id", start, length, Serializable).await });
    read.await.expect("a calm cluster answers")
}

async fn size(db: &SimDatabase, blobs: &Blobs) -> Option<u64> {
    let size = db.run(|tx, _| async move { blobs.size(&tx, b"my-blob-id", Serializable).await });
    size.await.expect("a calm cluster answers")
}

async fn session(db: &SimDatabase) -> Session<SimDatabase> {
    Session::open(db, &Slots::new(Subspace::from("sessions")), 1).await.expect("a calm cluster answers")
}

#[test]
fn a_large_file_is_written_read_back_and_deleted() {
    on_cluster(|db| async move {
        let (blobs, data) = (Blobs::new(Subspace::from("blob")), file(123_456));
        let mut session = session(&db).await;
        assert!(matches!(blobs.write_once(&mut session, b"my-blob-id", &data).await, Outcome::Applied(_)));
        assert_eq!(range(&db, &blobs, 0, u64::MAX).await.as_deref(), Some(&data[..]));
        assert_eq!(size(&db, &blobs).await, Some(123_456));
        // The header, a piece over the edge of a chunk, the end, and beyond it.
        for (start, end) in [(0, 1024), (9_990, 10_010), (123_450, 123_456), (123_456, 123_456)] {
            let read = range(&db, &blobs, start as u64, (end - start) as u64).await;
            assert_eq!(read.as_deref(), Some(&data[start..end]));
        }
        assert_eq!(range(&db, &blobs, 123_400, 1_000).await.as_deref(), Some(&data[123_400..]));
        assert_eq!(range(&db, &blobs, 200_000, 10).await.as_deref(), Some(&b""[..]));
        // A shorter content leaves nothing of the longer one.
        assert!(matches!(blobs.write_once(&mut session, b"my-blob-id", b"short").await, Outcome::Applied(_)));
        assert_eq!(range(&db, &blobs, 0, u64::MAX).await.as_deref(), Some(&b"short"[..]));
        assert_eq!(blobs.delete_once(&mut session, b"my-blob-id").await, Outcome::Applied(true));
        assert_eq!(size(&db, &blobs).await, None);
        assert_eq!(blobs.delete_once(&mut session, b"my-blob-id").await, Outcome::Applied(false));
    });
}

#[test]
fn an_empty_blob_is_there_and_a_missing_one_is_not() {
    on_cluster(|db| async move {
        let blobs = Blobs::new(Subspace::from("blob"));
        assert_eq!(range(&db, &blobs, 0, 10).await, None);
        let mut session = session(&db).await;
        assert!(matches!(blobs.write_once(&mut session, b"my-blob-id", b"").await, Outcome::Applied(_)));
        assert_eq!(range(&db, &blobs, 0, 10).await.as_deref(), Some(&b""[..]));
        assert_eq!(size(&db, &blobs).await, Some(0));
    });
}

#[test]
fn what_is_too_large_for_a_transaction_is_refused_and_comes_by_an_upload() {
    on_cluster(|db| async move {
        let (blobs, data) = (Blobs::new(Subspace::from("blob")), file(TRANSACTION_SIZE_LIMIT + 1));
        let mut session = session(&db).await;
        match blobs.write_once(&mut session, b"my-blob-id", &data).await {
            Outcome::Refused(Error::TooLarge(TooLarge::Transaction { limit, .. })) => {
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
        // Once it is there, it is not absent.
        let again = blobs.upload_once(&mut session, b"my-blob-id", b"x", Expect::Absent).await;
        let changed = Error::Changed { expected: Expect::Absent, found: Some(generation) };
        assert_eq!(again, Outcome::Refused(changed));
    });
}

#[test]
fn parts_may_come_in_any_order_and_an_upload_is_finished_only_with_all_of_them() {
    on_cluster(|db| async move {
        let blobs = &Blobs::with_sizes(Subspace::from("blob"), 2, 4).expect("sizes within the limits");
        let upload = shaketable_layers::blob::UploadId::draw(db.env());
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
        let far = put(u64::MAX, b"x").await;
        assert!(matches!(far, Err(Error::Overflow { .. })), "{far:?}");
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
        let mut session = session(&db).await;
        assert!(matches!(blobs.write_once(&mut session, b"my-blob-id", &data).await, Outcome::Applied(_)));
        // Chunks are of 10,000 bytes: the first, the second, and parts of both.
        for (start, length, chunks) in [(0, 10_000, 1), (10_000, 10_000, 1), (9_000, 2_000, 2)] {
            let tx = begin(&db);
            blobs.write_at(&tx, b"my-blob-id", start, &data[..length]).await.expect("it is there");
            let size = tx.get_approximate_size().await.expect("it is counted");
            assert!((chunks * 10_000..chunks * 10_000 + 3_000).contains(&size), "{size} for {chunks} chunks");
        }
    });
}
