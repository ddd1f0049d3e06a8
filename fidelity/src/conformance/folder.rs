//! The recordings of a folder, and all cases of one replayed.

use super::{
    FormatError, Recording, Replayed, format::parse_special, parse, replay, replay_directories,
    replay_special, replay_tuple, special,
};
use shaketable_tx::{self as tx, Database};
use std::{fs, io, path::Path};
use thiserror::Error;

/// Cases that cannot be equal, with the reasons.
const IMPOSSIBLE: &[(&str, &str)] = &[("tuple-625", TWO_FORMS), ("tuple-922", TWO_FORMS)];

/// Why a case with this name cannot be equal; `None` if it can.
pub fn impossible(case: &str) -> Option<&'static str> {
    let mut all = IMPOSSIBLE.iter().chain(special::ELSEWHERE);
    all.find(|(id, _)| *id == case).map(|(_, reason)| *reason)
}

/// The only integer that bindings do not pack in the same way.
const TWO_FORMS: &str = "the Python binding packs -(2^64 - 1) after a length byte, foundationdb-tuple \
                                 in eight bytes; each unpacks both forms";

/// Why there is nothing to replay.
#[derive(Debug, Error)]
pub enum ReadError {
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
    /// There are no recordings.
    #[error("{path}: no recordings (files that end in .jsonl, or special-keys.txt)")]
    Empty {
        /// The folder.
        path: String,
    },
}

impl Recording {
    /// Replays the cases on `db` one after another; returns each case's name and result.
    pub async fn replay<D: Database>(&self, db: &D) -> tx::Result<Vec<(String, Replayed)>> {
        let mut replayed = Vec::new();
        match self {
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
                    replayed.push((format!("tuple-{}", number + 1), replay_tuple(case)));
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
}

/// The recording of special keys.
const SPECIAL: &str = "special-keys.txt";

/// Reads every recording in the folder `dir`, by name.
pub fn read(dir: &Path) -> Result<Vec<(String, Recording)>, ReadError> {
    let mut files = Vec::new();
    for name in names(dir)? {
        let path = dir.join(&name);
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let parse = if name == SPECIAL { parse_special } else { parse };
        let recording =
            parse(&text).map_err(|error| ReadError::Malformed { path: path.display().to_string(), error })?;
        files.push((name, recording));
    }
    Ok(files)
}

fn unreadable(path: &Path, error: io::Error) -> ReadError {
    ReadError::Unreadable { path: path.display().to_string(), error }
}

fn names(dir: &Path) -> Result<Vec<String>, ReadError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
        let name = entry.map_err(|error| unreadable(dir, error))?.file_name();
        names.extend(name.to_str().map(str::to_owned));
    }
    names.retain(|name| name.ends_with(".jsonl") || name == SPECIAL);
    names.sort_unstable();
    if names.is_empty() { Err(ReadError::Empty { path: dir.display().to_string() }) } else { Ok(names) }
}
