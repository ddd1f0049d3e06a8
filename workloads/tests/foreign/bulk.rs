//! Jobs and workspaces.

use crate::{Layer, calls::Calls, space, written};
use bytes::Bytes;
use shaketable_layers::bulk::{BuildId, Error, Job, Limits, Observed, Workspace};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{Database, Isolation::Serializable, Transaction};
use std::time::Duration;

pub struct Bulk {
    jobs: [Job; 2],
    workspace: Workspace,
}

const BUILDS: [BuildId; 5] =
    [BuildId([0; 16]), BuildId([1; 16]), BuildId([2; 16]), BuildId([3; 16]), BuildId([0xff; 16])];

const LIMITS: Limits = Limits { rows: 2, bytes: 1_000, time: Duration::from_secs(1) };

impl Layer for Bulk {
    const NAME: &'static str = "bulk";

    fn new() -> Bulk {
        let job =
            |name: &str| Job::new(&space().subspace(&name), b"job", (b"rows/1".to_vec(), b"rows/8".to_vec()));
        Bulk {
            jobs: ["begun", "ended"].map(|name| job(name).expect("a short name")),
            workspace: Workspace::new(space().subspace(&"space")).expect("a short prefix"),
        }
    }

    /// Includes the rows that the jobs process.
    fn spaces(&self) -> Vec<Bytes> {
        vec![space().into_bytes().into(), Bytes::from_static(b"rows/")]
    }

    async fn write(&self, db: &SimDatabase) {
        let Bulk { jobs: [begun, ended], workspace } = self;
        let work = |_, _| async { Ok::<_, Error>(()) };
        written(db, |tx| async move {
            (0..9).for_each(|row| tx.set(format!("rows/{row}").as_bytes(), b"row"));
            Ok::<_, Error>(())
        })
        .await;
        begun.advance(db, &LIMITS, work).await.expect("a calm cluster takes a batch");
        ended.run(db, &LIMITS, work).await.expect("a calm cluster takes batches");
        written(db, |tx| async move {
            let [first, current, under_way, retired, _] = BUILDS;
            for build in [first, current] {
                workspace.begin(&tx, build).await?;
                for row in 0..3 {
                    tx.set(&workspace.claim(&tx, build).await?.pack(&row), b"row");
                }
                workspace.publish(&tx, build).await?;
            }
            for build in [under_way, retired] {
                workspace.begin(&tx, build).await?;
                workspace.claim(&tx, build).await?;
            }
            workspace.discard(&tx, retired).await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let db = &calls.db.clone();
        let work = |tx: <SimDatabase as Database>::Transaction, row: shaketable_tx::KeyValue| async move {
            // A job never leaves its range.
            assert!(row.key.starts_with(b"rows/") && (b'1'..b'8').contains(&row.key[5]), "{row:?}");
            tx.set(b"done", &row.key);
            Ok::<_, Error>(())
        };
        let Bulk { jobs, workspace } = self;
        for job in jobs {
            calls.tx("Job::progress", |tx| async move { job.progress(&tx, Serializable).await }).await;
            for row in [&b"rows/1"[..], b"rows/3", b"rows/7", b"rows/9"] {
                calls.tx("Job::has_passed", |tx| async move { job.has_passed(&tx, row).await }).await;
            }
            calls.tx("Job::step", |tx| async move { job.step(&tx, db.env(), &LIMITS, work).await }).await;
        }
        for build in BUILDS {
            calls
                .tx("Workspace::pinned", |tx| async move { workspace.pinned(&tx, build, Serializable).await })
                .await;
            calls.tx("Workspace::begin", |tx| async move { workspace.begin(&tx, build).await }).await;
            calls.tx("Workspace::claim", |tx| async move { workspace.claim(&tx, build).await }).await;
            calls.tx("Workspace::publish", |tx| async move { workspace.publish(&tx, build).await }).await;
            calls.tx("Workspace::discard", |tx| async move { workspace.discard(&tx, build).await }).await;
        }
        calls.tx("Workspace::current", |tx| async move { workspace.current(&tx, Serializable).await }).await;
        calls
            .pages("Workspace::observe", async |tx, after: Option<Observed>| {
                workspace
                    .observe(&tx, after.map(|observed| observed.build), 1)
                    .await
                    .map(|mut page| page.pop())
            })
            .await;
        let discard = |tx| async move {
            let Some(observed) = workspace.observe(&tx, None, 1).await?.pop() else { return Ok(false) };
            workspace.discard_observed(&tx, observed).await
        };
        calls.tx("Workspace::discard_observed", discard).await;
        calls.tx("Workspace::clear_retired", |tx| async move { workspace.clear_retired(&tx, 2).await }).await;
        for job in jobs {
            calls.run("Job::advance", async { job.advance(db, &LIMITS, work).await }).await;
            calls.run("Job::run", async { job.run(db, &LIMITS, work).await }).await;
        }
        calls.run("Workspace::clear_all_retired", async { workspace.clear_all_retired(db, 1).await }).await;
        let unchanged = async { workspace.discard_unchanged(db, Duration::from_secs(1), 1).await };
        calls.run("Workspace::discard_unchanged", unchanged).await;
        let [job, _] = jobs;
        calls.tx("Job::forget", |tx| async move { job.forget(&tx).await }).await;
        let drawn = BuildId::draw(db.env());
        calls.tx("Workspace::begin", |tx| async move { workspace.begin(&tx, drawn).await }).await;
    }
}
