//! Made-up reports.

pub mod pages;
pub mod small;

use shaketable_reports::Counters;
use std::collections::BTreeMap;

fn counters(scale: u64) -> Counters {
    Counters {
        operations: 5_100 * scale,
        unknown_operations: 12 * scale,
        attempts: 6_300 * scale,
        committed: 4_012 * scale,
        conflicts: 811 * scale,
        unknown_committed: 42 * scale,
        unknown_not_committed: 37 * scale,
        late_landings: 9 * scale,
        retries: 1_204 * scale,
        faults: 350 * scale,
        audits: 240 * scale,
        watches: 50 * scale,
        waits: 20 * scale,
        recoveries: 3 * scale,
    }
}

fn families(scale: u64) -> BTreeMap<String, u64> {
    ["clog", "client-death", "kill", "late-landing", "one-row-batches", "partition", "unknown-committed"]
        .into_iter()
        .zip(1..)
        .map(|(family, n)| (family.to_owned(), n * 10 * scale))
        .collect()
}
