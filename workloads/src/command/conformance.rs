//! `shaketable conformance`: recorded results of a real cluster, replayed on another cluster, or recorded on
//! one.

use super::{CheckArguments, RecordArguments};
use crate::conformance::{self, KINDS, scripts};
use shaketable::{
    command::{
        Refusal,
        backend::Backend,
        output::{self, Target},
        program, settle,
    },
    refuse,
};
use shaketable_fidelity::conformance::{Recorded, prepare, read, record as perform};
use shaketable_reports::{Body, Conclusion, text};
use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_tx as tx;

/// Replays the recordings of a folder, and prints and writes the report.
pub fn check(arguments: &CheckArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let backend = Backend::open(&(&arguments.cluster).into(), Profile::Calm)?;
    let recordings = read(&arguments.folder).map_err(|error| Refusal::Usage(error.to_string()))?;
    let checked = match &backend {
        Backend::Simulated => conformance::check(recordings),
        Backend::Real(cluster) => {
            let check = async |db: &_| {
                // A served cluster has none of the keys that a real one keeps after the user's.
                if cluster.is_simulated() {
                    prepare(db).await?;
                }
                conformance::check_on(db, recordings).await
            };
            cluster.alone(check)?
        }
    };
    let report = checked.map_err(failed)?;
    let outcome = report.outcome();
    let printed = format!("commit {}\n\n{}", program().commit, text::conformance(&report));
    let written = output::publish(&printed, json.as_ref(), Body::Conformance(report));
    settle(outcome, written, None)
}

/// Draws scripts, performs them and writes one file for each kind: all files or none.
pub fn record(arguments: &RecordArguments) -> Result<Conclusion, Refusal> {
    let (folder, seed) = (&arguments.out, Seed(arguments.seed));
    let Ok(count) = usize::try_from(arguments.cases) else {
        refuse!("{} cases are too many", arguments.cases)
    };
    let paths = KINDS.map(|kind| folder.join(format!("{kind}.jsonl")));
    if let Some(path) = paths.iter().find(|path| path.exists()) {
        refuse!("{} exists: choose another folder", path.display());
    }
    let backend = Backend::open(&(&arguments.cluster).into(), Profile::Calm)?;
    if let Err(error) = std::fs::create_dir_all(folder) {
        refuse!("cannot write {}: {error}", folder.display());
    }
    let targets = paths.iter().map(|path| Target::check(path)).collect::<Result<Vec<_>, _>>()?;
    let recorded: tx::Result<Vec<Recorded>> = match &backend {
        Backend::Simulated => {
            KINDS.into_iter().map(|kind| conformance::record_simulated(seed, kind, count)).collect()
        }
        Backend::Real(cluster) => cluster.alone(async |db| {
            let mut all = Vec::new();
            for kind in KINDS {
                all.push(perform(db, scripts(seed, kind, count)).await?);
            }
            Ok(all)
        })?,
    };
    let recorded = recorded.map_err(failed)?;
    let mut summary = String::new();
    for ((kind, target), Recorded { cases, unstable }) in KINDS.into_iter().zip(targets).zip(&recorded) {
        let lines = cases.iter().map(|case| serde_json::to_string(case).unwrap_or_default() + "\n");
        target.write(&lines.collect::<String>())?;
        summary += &format!("{kind}: {}", text::plural(cases.len() as u64, "case", "cases"));
        if *unstable > 0 {
            summary += &format!(", and {unstable} left out because their results varied");
        }
        summary += "\n";
    }
    output::print(&format!("{summary}\nrecordings in {}\n", folder.display()))?;
    Ok(Conclusion::Passed)
}

/// The refusal of a cluster that failed outside of the steps that are compared.
fn failed(error: tx::Error) -> Refusal {
    Refusal::Cluster(format!("the cluster failed between cases: {error}"))
}
