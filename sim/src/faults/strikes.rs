//! The faults of a run as plain data.

use super::{decision::Decision, families::Family};
use crate::{ids::ClientId, rt::Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The intensity of the faults in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No faults; only drawn latencies and topology.
    Calm,
    /// A compressed version of a bad week.
    #[default]
    Standard,
    /// Much more of everything, as far as liveness allows.
    Storm,
}

/// One timed fault. The family defines the meaning of the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strike {
    /// The start, nanoseconds after the beginning of the act `hurt`.
    pub at: Nanos,
    /// The family.
    pub family: Family,
    /// The victim, modulo the number of candidates.
    pub target: u32,
    /// The second victim, modulo the number of candidates.
    pub other: u32,
    /// The duration, nanoseconds.
    pub duration: Nanos,
    /// The amount.
    pub amount: f64,
}

/// A request of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// For its read version.
    ReadVersion,
    /// To commit what it has written. A transaction without writes makes none.
    Commit,
}

/// One request of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Step {
    /// The client.
    pub client: ClientId,
    /// Its operation.
    pub operation: u32,
    /// The request.
    pub request: Request,
    /// How many such requests the operation made before.
    #[serde(default)]
    pub index: u32,
}

/// A client that dies at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// The request to commit.
    pub step: Step,
    /// Whether it was answered; otherwise it was not sent.
    pub after: bool,
}

/// The faults of a run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FaultPlan {
    /// Timed faults, in ascending order.
    pub strikes: Vec<Strike>,
    /// For each family of events that the contract allows, the probability at each opportunity.
    pub rates: BTreeMap<Family, f64>,
    /// Events that the contract allows, each at one opportunity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Requests that are made one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Step>,
    /// Clients that die at a commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deaths: Vec<Death>,
}

impl FaultPlan {
    /// Whether clients die at requests of theirs.
    pub(super) fn kills_at_requests(&self) -> bool {
        !self.deaths.is_empty() || self.strikes.iter().any(|strike| strike.family == Family::Departure)
    }

    /// The families that occur in the plan.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        let decided = self.decisions.iter().map(|decision| decision.family);
        let deaths = self.deaths.iter().map(|_| Family::ClientDeath);
        let struck = self.strikes.iter().map(|strike| strike.family);
        self.rates.keys().copied().chain(struck).chain(decided).chain(deaths)
    }
}
