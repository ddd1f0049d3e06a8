//! What a cluster keeps of what FoundationDB promises its clients.

use crate::run::Outcome;
use serde::{Deserialize, Serialize};

/// A promise that was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContractCase {
    /// Its section and topic, as `reads/conflict-range/get`.
    pub name: String,
    /// What is promised.
    pub promise: String,
    /// What was seen instead, if it was broken.
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
    /// In the order of their sections.
    pub cases: Vec<ContractCase>,
}

impl ContractReport {
    /// A broken promise is the backend's fault. Nothing tested is vacuous.
    pub fn outcome(&self) -> Outcome {
        if self.cases.iter().any(|case| case.broken.is_some()) {
            Outcome::Harness
        } else if self.cases.is_empty() {
            Outcome::Vacuous
        } else {
            Outcome::Passed
        }
    }
}
