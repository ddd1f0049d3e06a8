//! The recorded answers of a real cluster on calm simulated clusters, and as a report.
//!
//! The recordings and what replays them are in [`shaketable_fidelity::conformance`]; scripts for more of them
//! are drawn here.

mod scripts;

pub use scripts::{KINDS, scripts};

use shaketable::calm;
use shaketable_fidelity::conformance::{Recorded, Recording, Replayed, impossible, prepare, record};
use shaketable_reports::{ConformanceReport, Difference, FileReport, Impossible};
use shaketable_sim::seed::Seed;
use shaketable_tx::{Db, Result};
use std::sync::Arc;

/// Replays recordings, which have names, each on its own calm simulated cluster.
pub fn check(recordings: Vec<(String, Recording)>) -> Result<ConformanceReport> {
    let mut files = Vec::new();
    for (name, recording) in recordings {
        let recording = Arc::new(recording);
        let replayed = calm::simulate(move |db| {
            let recording = recording.clone();
            async move {
                if let Recording::Client(_) = *recording {
                    prepare(&db).await?;
                }
                recording.replay(&db).await
            }
        });
        files.push(report(name, replayed?));
    }
    Ok(ConformanceReport { files })
}

/// Replays recordings on `db`, using its whole user keyspace. That of special keys is left out: it manages
/// the cluster.
pub async fn check_on(db: &Db, recordings: Vec<(String, Recording)>) -> Result<ConformanceReport> {
    let mut files = Vec::new();
    for (name, recording) in recordings {
        if !matches!(recording, Recording::Special(_)) {
            files.push(report(name, recording.replay(db).await?));
        }
    }
    Ok(ConformanceReport { files })
}

/// Draws scripts of one kind, and records what a calm simulated cluster answers.
pub fn record_simulated(seed: Seed, kind: &'static str, count: usize) -> Result<Recorded> {
    calm::simulate(move |db| async move {
        prepare(&db).await?;
        record(&db, scripts(seed, kind, count)).await
    })
}

fn report(file: String, replayed: Vec<(String, Replayed)>) -> FileReport {
    let mut report = FileReport {
        file,
        cases: replayed.len() as u64,
        equal: 0,
        impossible: Vec::new(),
        differences: Vec::new(),
    };
    for (case, replayed) in replayed {
        match (replayed, impossible(&case)) {
            (Replayed::Equal, _) => report.equal += 1,
            (Replayed::Different(_), Some(reason)) => {
                report.impossible.push(Impossible { case, reason: reason.to_owned() });
            }
            (Replayed::Different(difference), None) => report.differences.push(Difference {
                case,
                step: difference.step,
                what: difference.what,
                expected: difference.expected,
                actual: difference.actual,
            }),
        }
    }
    report
}
