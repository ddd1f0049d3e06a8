//! The whole comparison: every recording of a folder, replayed and counted.

use super::{Case, FormatError, Replayed, parse, prepare, replay};
use parking_lot::Mutex;
use shaketable_layers::tx;
use shaketable_reports::{ConformanceReport, FileReport, Impossible};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    history::ClientId,
    rt::{self, MILLISECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{fs, io, path::Path, sync::Arc};
use thiserror::Error;

/// The recordings that a client answers for, without their ending.
pub const CASE_FILES: &[&str] = &["ryw", "conflict", "range", "atomic", "stamp", "errors"];

/// Cases that cannot agree, and why.
const IMPOSSIBLE: &[(&str, &str)] = &[];

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A recording cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A recording is malformed.
    #[error("{path}: {error}")]
    Malformed {
        /// Its path.
        path: String,
        /// Where and why.
        error: FormatError,
    },
    /// The cluster failed outside of the steps that are compared.
    #[error("the simulated cluster failed between cases: {0}")]
    Failed(tx::Error),
}

/// Replays cases one after the other on one calm cluster.
fn simulate(cases: &[Case]) -> Result<Vec<Replayed>, CheckError> {
    rt::simulate(Seed(0), async {
        let world = World::new(Seed(0), ClusterConfig::smallest(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let (controller, cases) = (cluster.controller(), Arc::new(cases.to_vec()));
        let done = Arc::new(Mutex::new(None));
        let answer = done.clone();
        world.add_machine(Class::Client, "client", move |world, node| {
            let db = SimDatabase::new(world, node, ClientId(0), controller);
            let (cases, answer) = (cases.clone(), answer.clone());
            async move {
                let replayed = replay_all(&db, &cases).await;
                *answer.lock() = Some(replayed);
            }
        });
        let replayed = loop {
            if let Some(replayed) = done.lock().take() {
                break replayed;
            }
            world.clock.sleep(100 * MILLISECOND).await;
        };
        cluster.shutdown().await;
        replayed.map_err(CheckError::Failed)
    })
}

async fn replay_all(db: &SimDatabase, cases: &[Case]) -> tx::Result<Vec<Replayed>> {
    prepare(db).await?;
    let mut replayed = Vec::with_capacity(cases.len());
    for case in cases {
        replayed.push(replay(db, case).await?);
    }
    Ok(replayed)
}

/// Replays every recording of the folder `dir` on calm simulated clusters.
pub fn check(dir: &Path) -> Result<ConformanceReport, CheckError> {
    let mut files = Vec::new();
    for name in CASE_FILES {
        let path = dir.join(format!("{name}.jsonl"));
        let shown = path.display().to_string();
        let text = fs::read_to_string(&path)
            .map_err(|error| CheckError::Unreadable { path: shown.clone(), error })?;
        let cases = parse(&text).map_err(|error| CheckError::Malformed { path: shown, error })?;
        files.push(report(name, &cases, simulate(&cases)?));
    }
    Ok(ConformanceReport { files })
}

fn report(name: &str, cases: &[Case], replayed: Vec<Replayed>) -> FileReport {
    let mut report = FileReport {
        file: format!("{name}.jsonl"),
        cases: cases.len() as u64,
        equal: 0,
        impossible: Vec::new(),
        differences: Vec::new(),
    };
    for (case, replayed) in cases.iter().zip(replayed) {
        match replayed {
            Replayed::Equal => report.equal += 1,
            Replayed::Different(difference) => match IMPOSSIBLE.iter().find(|(id, _)| *id == case.id) {
                Some((id, reason)) => report
                    .impossible
                    .push(Impossible { case: (*id).to_owned(), reason: (*reason).to_owned() }),
                None => report.differences.push(difference),
            },
        }
    }
    report
}
