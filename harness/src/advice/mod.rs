//! Advice: compares the traffic of a workload with the guidelines of FoundationDB's documentation. It does
//! not affect the verdict of a run.
//!
//! [`Traffic`] is extracted from a run's history: keys, conflicts, sizes and reads. It is plain data, and the
//! traffic of many runs is merged. Each topic is one file, which observes a run and makes entries from what
//! it has observed. The guidelines and their figures are in `guidelines.rs`.
//!
//! Rates are those of virtual time, and depend on what the clients of a workload do. Each is therefore shown
//! beside the rate of all operations and the share of the operations that cause it.

mod conflicts;
mod growth;
mod guidelines;
mod hot;
mod open;
mod outcomes;
mod place;
mod reads;
mod run;
mod sizes;
mod snapshot;
#[cfg(test)]
mod tests;
mod traffic;
mod units;
mod unread;

pub use run::{Asked, advise};
pub use traffic::Traffic;

use guidelines::Guideline;
use shaketable_reports::{AdviceEntry, Severity};

/// An entry about a kind of operations, or about all of them.
fn entry(
    topic: &str,
    severity: Severity,
    kind: Option<&str>,
    measured: String,
    (number, unit): (f64, &str),
    guideline: Guideline,
) -> AdviceEntry {
    AdviceEntry {
        topic: topic.to_owned(),
        severity,
        kind: kind.map(str::to_owned),
        measured,
        number,
        unit: unit.to_owned(),
        guideline: guideline.text.to_owned(),
        source: guideline.source.to_owned(),
    }
}
