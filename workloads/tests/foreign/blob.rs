//! Blobs and their uploads.

use crate::{Layer, calls::Calls, session, space, written};
use shaketable_layers::blob::{Blobs, Expect, Generation, Pages, UploadId};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{Database, Isolation::Serializable};
use std::time::Duration;

pub struct AllBlobs(Blobs);

const UPLOADS: [UploadId; 3] = [UploadId([0; 16]), UploadId([7; 16]), UploadId([0xff; 16])];

impl Layer for AllBlobs {
    const NAME: &'static str = "blob";

    fn new() -> AllBlobs {
        AllBlobs(Blobs::with_sizes(space(), 10, 30).expect("parts are whole chunks"))
    }

    async fn write(&self, db: &SimDatabase) {
        let AllBlobs(blobs) = self;
        written(db, |tx| async move {
            blobs.write(&tx, b"own", &[1; 35]).await?;
            blobs.write(&tx, b"empty", b"").await
        })
        .await;
        let [whole, under_way, _] = UPLOADS;
        for upload in [whole, under_way] {
            blobs.put_all(db, b"uploaded", upload, &[2; 75]).await.expect("a calm cluster takes parts");
        }
        written(db, |tx| async move { blobs.finish_upload(&tx, whole, Expect::Absent).await }).await;
    }

    async fn call(&self, calls: &mut Calls) {
        let AllBlobs(blobs) = self;
        let (long, data) = ([5; 200], [3; 12]);
        let generation = Generation { version: 1, step: 0 };
        for blob in [&b"own"[..], b"uploaded", b"empty", b"missing"] {
            calls.tx("Blobs::read", |tx| async move { blobs.read(&tx, blob, Serializable).await }).await;
            calls.tx("Blobs::size", |tx| async move { blobs.size(&tx, blob, Serializable).await }).await;
            calls.tx("Blobs::exists", |tx| async move { blobs.exists(&tx, blob, Serializable).await }).await;
            calls.tx("Blobs::stat", |tx| async move { blobs.stat(&tx, blob, Serializable).await }).await;
            calls.tx("Blobs::append", |tx| async move { blobs.append(&tx, blob, &long).await }).await;
            for offset in [0, 13, 40, u64::MAX] {
                let read = |tx| async move { blobs.read_range(&tx, blob, offset, 9, Serializable).await };
                calls.tx("Blobs::read_range", read).await;
                let now = |tx| async move {
                    let stat = blobs.stat(&tx, blob, Serializable).await?;
                    let now = stat.map_or(generation, |stat| stat.generation);
                    blobs.read_range_of(&tx, blob, now, offset, 22, Serializable).await
                };
                calls.tx("Blobs::read_range_of", now).await;
                calls
                    .tx("Blobs::write_at", |tx| async move { blobs.write_at(&tx, blob, offset, &data).await })
                    .await;
                calls
                    .tx("Blobs::truncate", |tx| async move { blobs.truncate(&tx, blob, offset).await })
                    .await;
            }
            calls.tx("Blobs::write", |tx| async move { blobs.write(&tx, blob, &long).await }).await;
            calls.tx("Blobs::delete", |tx| async move { blobs.delete(&tx, blob).await }).await;
        }
        for upload in UPLOADS {
            calls
                .tx(
                    "Blobs::begin_upload",
                    |tx| async move { blobs.begin_upload(&tx, b"uploaded", upload).await },
                )
                .await;
            for number in [0, 2, 99_999, u64::MAX] {
                let put = |tx| async move { blobs.put_part(&tx, upload, number, &data).await };
                calls.tx("Blobs::put_part", put).await;
            }
            calls.tx("Blobs::parts", |tx| async move { blobs.parts(&tx, upload, Serializable).await }).await;
            for expect in [Expect::Anything, Expect::Absent, Expect::Generation(generation)] {
                let finish = |tx| async move { blobs.finish_upload(&tx, upload, expect).await };
                calls.tx("Blobs::finish_upload", finish).await;
            }
            calls
                .tx("Blobs::abandon_upload", |tx| async move { blobs.abandon_upload(&tx, upload).await })
                .await;
        }
        calls
            .pages("Blobs::uploads", async |tx, after: Option<UploadId>| {
                blobs.uploads(&tx, after, 1, Serializable).await.map(|mut page| page.pop())
            })
            .await;
        let db = &calls.db.clone();
        for blob in [&b"own"[..], b"uploaded", b"empty"] {
            calls.run("Blobs::read_paged", async { blobs.read_paged(db, blob).await }).await;
            let pages = async {
                let Some(mut pages) = Pages::open(db, blobs, blob).await? else { return Ok(None) };
                Ok(Some((pages.stat(), pages.next(db).await?)))
            };
            calls.run("Pages::next", pages).await;
        }
        calls.run("Blobs::put_all", async { blobs.put_all(db, b"uploaded", UPLOADS[1], &long).await }).await;
        let mut session = session(db).await;
        let once = async { blobs.upload_once(&mut session, b"own", &long, Expect::Anything).await };
        calls.once("Blobs::upload_once", once).await;
        calls.run("Blobs::collect", async { blobs.collect(db, Duration::from_secs(1)).await }).await;
        let drawn = UploadId::draw(db.env());
        calls.tx("Blobs::abandon_upload", |tx| async move { blobs.abandon_upload(&tx, drawn).await }).await;
    }
}
