//! Which of FoundationDB's promises to its clients a cluster keeps.

use crate::run::Conclusion;
use serde::{Deserialize, Serialize};

/// A promise that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractCase {
    /// Its section and topic, such as `reads/conflict-range/get`.
    pub name: String,
    /// The promise.
    pub promise: String,
    /// What was observed instead, if the promise was broken.
    pub broken: Option<String>,
}

impl ContractCase {
    /// The section of the contract.
    pub fn section(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

/// Every promise that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractReport {
    /// The cases, in the order of their sections.
    pub cases: Vec<ContractCase>,
}

impl ContractReport {
    /// A broken promise is a fault of the backend. If nothing was tested, the report is vacuous.
    pub fn outcome(&self) -> Conclusion {
        if self.cases.iter().any(|case| case.broken.is_some()) {
            Conclusion::Harness
        } else if self.cases.is_empty() {
            Conclusion::Vacuous
        } else {
            Conclusion::Passed
        }
    }
}
