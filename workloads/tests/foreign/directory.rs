//! Directories, partitions and the allocator.

use crate::{Layer, calls::Calls, written};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_layers::directory::{CandidateSeed, Directories, Error, PARTITION};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{Isolation::Serializable, Transaction};

pub struct AllDirectories(Directories);

const PATHS: [&[&str]; 9] = [
    &["a"],
    &["a", "b"],
    &["a", "b", "c"],
    &["p"],
    &["p", "x"],
    &["p", "x", "y"],
    &["manual"],
    &["a", "new", "newer"],
    &[],
];

impl Layer for AllDirectories {
    const NAME: &'static str = "directory";

    fn new() -> AllDirectories {
        AllDirectories(Directories::default().with_manual_prefixes())
    }

    /// The nodes, those of the partition, and the content of directories.
    fn spaces(&self) -> Vec<Bytes> {
        [&b"\xfe"[..], b"part\xfe", b"part", b"manual", b""].map(Bytes::from_static).to_vec()
    }

    async fn write(&self, db: &SimDatabase) {
        let AllDirectories(all) = self;
        written(db, |tx| async move {
            let chance = CandidateSeed(1);
            let deep = all.create(&tx, &["a", "b", "c"], b"tag", chance).await?;
            tx.set(&deep.subspace()?.pack(&"key"), b"value");
            all.create_with_prefix(&tx, &["p"], PARTITION, b"part", chance).await?;
            all.create(&tx, &["p", "x", "y"], b"", chance).await?;
            all.create_with_prefix(&tx, &["manual"], b"", b"manual", chance).await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let AllDirectories(all) = self;
        let allocator = &all.nodes().allocator();
        for (at, path) in PATHS.into_iter().enumerate() {
            calls.tx("Directories::open", |tx| async move { all.open(&tx, path, b"").await }).await;
            calls.tx("Directories::open", |tx| async move { all.open(&tx, path, b"tag").await }).await;
            calls
                .tx("Directories::exists", |tx| async move { all.exists(&tx, path, Serializable).await })
                .await;
            calls.tx("Directories::list", |tx| async move { all.list(&tx, path, Serializable).await }).await;
            calls
                .pages("Directories::list_page", async |tx, after: Option<String>| {
                    let page = all.list_page(&tx, path, after.as_deref(), 1, Serializable).await;
                    page.map(|page| page.into_iter().last())
                })
                .await;
            let create = |tx| async move { all.create(&tx, path, b"", CandidateSeed(2)).await };
            calls.tx("Directories::create", create).await;
            let create = |tx| async move { all.create_or_open(&tx, path, b"tag", CandidateSeed(3)).await };
            calls.tx("Directories::create_or_open", create).await;
            let prefixes = [&b"mine"[..], b"manual2", b"\x15", b"", b"\xff"];
            for prefix in prefixes.into_iter().cycle().skip(at).take(2) {
                let create = |tx| async move {
                    all.create_with_prefix(&tx, path, b"", prefix, CandidateSeed(4)).await
                };
                calls.tx("Directories::create_with_prefix", create).await;
            }
            let destinations = [&["moved"][..], &["a", "moved"], &["p", "moved"], &["a", "b", "c", "d"], &[]];
            for to in destinations.into_iter().cycle().skip(at).take(2) {
                calls.tx("Directories::rename", |tx| async move { all.rename(&tx, path, to).await }).await;
                let moved = |tx| async move { all.open(&tx, path, b"").await?.move_to(&tx, to).await };
                calls.tx("Directory::move_to", moved).await;
            }
            let handle = |tx| async move {
                let directory = all.open(&tx, path, b"").await?;
                all.check(&tx, &directory).await?;
                let listed = directory.below().list(&tx, &[], Serializable).await?;
                let created =
                    directory.below().create_or_open(&tx, &["below"], b"", CandidateSeed(5)).await?;
                created.siblings().check(&tx, &created).await?;
                created.remove(&tx).await?;
                let exists = directory.exists(&tx, Serializable).await?;
                directory.remove_if_exists(&tx).await?;
                Ok::<_, Error>((listed, exists))
            };
            calls.tx("Directory::below", handle).await;
            calls.tx("Directories::remove", |tx| async move { all.remove(&tx, path).await }).await;
            let remove = |tx| async move { all.remove_if_exists(&tx, path).await };
            calls.tx("Directories::remove_if_exists", remove).await;
        }
        for chance in 0..3 {
            let allocate = |tx| async move { allocator.allocate(&tx, CandidateSeed(chance)).await };
            calls.tx("Allocator::allocate", allocate).await;
        }
        let others = &Directories::new(Subspace::from_bytes([0xfe]), Subspace::from_bytes("manual"));
        let create = |tx| async move { others.create_or_open(&tx, &["o", "p"], b"", CandidateSeed(6)).await };
        calls.tx("Directories::create_or_open", create).await;
    }
}
