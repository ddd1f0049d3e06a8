//! A comparison with recorded results of a real FoundationDB cluster.

use crate::run::Conclusion;
use serde::{Deserialize, Serialize};

/// A case with a different result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The case's id.
    pub case: String,
    /// The step, from 0; `None` if the final keyspace differs or the case ended early.
    pub step: Option<usize>,
    /// The operation of that step.
    pub what: String,
    /// The result of the real cluster.
    pub expected: String,
    /// The result of the simulated cluster.
    pub actual: String,
}

/// A case that cannot agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impossible {
    /// The case's id.
    pub case: String,
    /// The reason.
    pub reason: String,
}

/// One file of recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Its name.
    pub file: String,
    /// Cases run.
    pub cases: u64,
    /// Cases that were equal in every step and in the final keyspace.
    pub equal: u64,
    /// Cases that cannot be equal, listed by name.
    pub impossible: Vec<Impossible>,
    /// The first difference of each case that differs.
    pub differences: Vec<Difference>,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConformanceReport {
    /// Each file, by name.
    pub files: Vec<FileReport>,
}

impl ConformanceReport {
    /// A difference is a fault of the simulated client. If there is nothing to compare, the comparison is
    /// vacuous.
    pub fn outcome(&self) -> Conclusion {
        if self.files.iter().any(|f| !f.differences.is_empty()) {
            Conclusion::Harness
        } else if self.files.iter().all(|f| f.cases == 0) {
            Conclusion::Vacuous
        } else {
            Conclusion::Passed
        }
    }
}
