//! The result of a run, as plain data.

use crate::finding::{Finding, Verdict};
use serde::{Deserialize, Serialize};
use shaketable_layers::points::Seen;
use shaketable_sim::{faults::Family, rt::Nanos, trace::Event};
use std::collections::BTreeMap;

/// The counters of a run or of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Operations called.
    pub operations: u64,
    /// Operations whose outcome remained unknown to their client.
    pub unknown_operations: u64,
    /// Transactions with writes that committed.
    pub committed: u64,
    /// Attempts.
    pub attempts: u64,
    /// Attempts that followed another attempt of the same operation.
    pub retries: u64,
    /// Attempts that failed with 1020.
    pub conflicts: u64,
    /// Attempts that failed with 1021 and had committed.
    pub unknown_committed: u64,
    /// Attempts that failed with 1021 and had not committed.
    pub unknown_not_committed: u64,
    /// Attempts that failed with 1031 or 1039, or whose commit was dropped, and that committed nevertheless.
    pub late_landings: u64,
    /// Audits evaluated.
    pub audits: u64,
    /// Recoveries of the cluster beyond the first generation.
    pub recoveries: u64,
    /// Faults delivered, by family.
    pub faults: BTreeMap<Family, u64>,
}

impl Counters {
    /// Adds the counters of another run.
    pub fn add(&mut self, other: &Counters) {
        self.operations += other.operations;
        self.unknown_operations += other.unknown_operations;
        self.committed += other.committed;
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.conflicts += other.conflicts;
        self.unknown_committed += other.unknown_committed;
        self.unknown_not_committed += other.unknown_not_committed;
        self.late_landings += other.late_landings;
        self.audits += other.audits;
        self.recoveries += other.recoveries;
        for (family, n) in &other.faults {
            *self.faults.entry(*family).or_default() += n;
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// The findings of the judges and of the runner.
    pub findings: Vec<Finding>,
    /// The counters.
    pub counters: Counters,
    /// The hash of the whole event stream, which includes the final keyspace.
    pub event_hash: u64,
    /// The number of events.
    pub events: u64,
    /// The virtual time of the run, nanoseconds.
    pub virtual_time: Nanos,
    /// How often the claims in layer and workload code were evaluated and held.
    pub points: BTreeMap<&'static str, Seen>,
    /// The events, if they were kept.
    pub trace: Vec<Event>,
    /// The operations, transactions and faults as text, if events were kept.
    pub transcript: String,
}

impl RunResult {
    /// How the run ended.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_added() {
        let one = Counters {
            operations: 1,
            unknown_operations: 2,
            committed: 3,
            attempts: 4,
            retries: 5,
            conflicts: 6,
            unknown_committed: 7,
            unknown_not_committed: 8,
            late_landings: 9,
            audits: 10,
            recoveries: 11,
            faults: BTreeMap::from([(Family::Kill, 12)]),
        };
        let mut sum = one.clone();
        sum.add(&one);
        sum.add(&one);
        let values = serde_json::to_value(&sum).expect("plain data");
        let parts = serde_json::to_value(&one).expect("plain data");
        for (name, part) in parts.as_object().expect("fields") {
            let expected = part.as_u64().map_or_else(|| serde_json::json!({"kill": 36}), |n| (3 * n).into());
            assert_eq!(values[name], expected, "{name}");
        }
    }
}
