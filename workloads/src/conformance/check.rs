//! The complete comparison: every recording of a folder, replayed and counted.

use super::{
    FormatError, Recording, Replayed, format::parse_special, parse, prepare, replay, replay_directories,
    replay_special, replay_tuple, special,
};
use shaketable::calm;
use shaketable_reports::{ConformanceReport, FileReport, Impossible};
use shaketable_tx::{self as tx, Database};
use std::{fs, io, path::Path, sync::Arc};
use thiserror::Error;

/// Cases that cannot be equal, with the reasons.
const IMPOSSIBLE: &[(&str, &str)] = &[("tuple-625", TWO_FORMS), ("tuple-922", TWO_FORMS)];

fn impossible() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    IMPOSSIBLE.iter().chain(special::ELSEWHERE)
}

/// The only integer that bindings do not pack in the same way.
const TWO_FORMS: &str = "the Python binding packs -(2^64 - 1) after a length byte, foundationdb-tuple \
                                 in eight bytes; each unpacks both forms";

/// Why a comparison failed.
#[derive(Debug, Error)]
pub enum CheckError {
    /// A recording cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The error.
        error: io::Error,
    },
    /// A recording is malformed.
    #[error("{path}: {error}")]
    Malformed {
        /// Its path.
        path: String,
        /// The location and the error.
        error: FormatError,
    },
    /// There are no recordings to compare with.
    #[error("{path}: no recordings (files that end in .jsonl, or special-keys.txt)")]
    Empty {
        /// The folder.
        path: String,
    },
    /// The cluster failed outside of the steps that are compared.
    #[error("the cluster failed between cases: {0}")]
    Failed(tx::Error),
}

/// Replays a recording's cases one after another; returns each case's name and result.
async fn replay_all<D: Database>(db: &D, recording: &Recording) -> tx::Result<Vec<(String, Replayed)>> {
    let mut replayed = Vec::new();
    match recording {
        Recording::Client(cases) => {
            for case in cases {
                replayed.push((case.id.clone(), replay(db, case).await?));
            }
        }
        Recording::Directories(cases) => {
            for case in cases {
                replayed.push((case.id.clone(), replay_directories(db, case).await?));
            }
        }
        Recording::Tuples(cases) => {
            for (number, case) in cases.iter().enumerate() {
                let id = format!("tuple-{}", number + 1);
                replayed.push((id.clone(), replay_tuple(id, case)));
            }
        }
        Recording::Special(lines) => {
            for line in lines {
                replayed.push((line.call.clone(), replay_special(db, line).await?));
            }
        }
    }
    Ok(replayed)
}

/// The recording of special keys.
const SPECIAL: &str = "special-keys.txt";

/// Reads every recording in the folder `dir`, by name.
fn read(dir: &Path) -> Result<Vec<(String, Recording)>, CheckError> {
    let mut files = Vec::new();
    for name in recordings(dir)? {
        let path = dir.join(&name);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let parse = if name == SPECIAL { parse_special } else { parse };
        let recording = parse(&text)
            .map_err(|error| CheckError::Malformed { path: path.display().to_string(), error })?;
        files.push((name, recording));
    }
    Ok(files)
}

/// Replays every recording in the folder `dir`, each on its own calm simulated cluster.
pub fn check(dir: &Path) -> Result<ConformanceReport, CheckError> {
    let mut files = Vec::new();
    // All recordings are read before any is replayed.
    for (name, recording) in read(dir)? {
        let recording = Arc::new(recording);
        let replayed = calm::simulate(move |db| {
            let recording = recording.clone();
            async move {
                if let Recording::Client(_) = *recording {
                    prepare(&db).await?;
                }
                replay_all(&db, &recording).await
            }
        });
        files.push(report(name, replayed.map_err(CheckError::Failed)?));
    }
    Ok(ConformanceReport { files })
}

/// Replays every recording in the folder `dir` on `db`, using its whole user keyspace. That of special keys
/// is left out: it manages the cluster.
pub async fn check_on<D: Database>(db: &D, dir: &Path) -> Result<ConformanceReport, CheckError> {
    let mut files = Vec::new();
    for (name, recording) in read(dir)?.into_iter().filter(|(name, _)| name != SPECIAL) {
        files.push(report(name, replay_all(db, &recording).await.map_err(CheckError::Failed)?));
    }
    Ok(ConformanceReport { files })
}

fn unreadable(path: &Path, error: io::Error) -> CheckError {
    CheckError::Unreadable { path: path.display().to_string(), error }
}

fn recordings(dir: &Path) -> Result<Vec<String>, CheckError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
        let name = entry.map_err(|error| unreadable(dir, error))?.file_name();
        names.extend(name.to_str().map(str::to_owned));
    }
    names.retain(|name| name.ends_with(".jsonl") || name == SPECIAL);
    names.sort_unstable();
    if names.is_empty() { Err(CheckError::Empty { path: dir.display().to_string() }) } else { Ok(names) }
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
        match replayed {
            Replayed::Equal => report.equal += 1,
            Replayed::Different(difference) => match impossible().find(|(id, _)| *id == case) {
                Some((id, reason)) => report
                    .impossible
                    .push(Impossible { case: (*id).to_owned(), reason: (*reason).to_owned() }),
                None => report.differences.push(difference),
            },
        }
    }
    report
}
