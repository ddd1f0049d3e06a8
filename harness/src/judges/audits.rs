//! Audits: the invariants of the workload hold at every version.
//!
//! They are read on the cluster during the run and at its end, and afterwards in states rebuilt from the log, so
//! that the first version that breaks an invariant can be reported.

use super::{Keyspace, Snapshot, Truth};
use crate::workload::Workload;
use futures::FutureExt;
use shaketable_sim::proto::Version;

/// The maximum number of intervals between audited versions. Once an audit fails, every version of the last
/// interval is audited.
const MOST_VERSIONS: usize = 40;

/// Audits the states from version `from` on. Returns the number of audits, and the broken invariant as the error.
pub fn judge<W: Workload>(workload: &W, truth: &Truth, from: Version) -> (u64, Result<(), String>) {
    let writes: Vec<_> = truth.entries.iter().filter(|e| !e.transactions.is_empty()).collect();
    let first = writes.partition_point(|e| e.version <= from);
    let database = Snapshot::new(Keyspace::default());
    let advance = |database: &Snapshot, entries: &[&std::sync::Arc<shaketable_sim::proto::LogEntry>]| {
        database.change(|state| {
            let mutations = entries.iter().flat_map(|e| &e.transactions).flat_map(|tx| &tx.mutations);
            mutations.for_each(|mutation| state.apply(mutation, None));
        });
    };
    advance(&database, &writes[..first]);
    let stride = writes[first..].len().div_ceil(MOST_VERSIONS).max(1);
    let mut audited = 0;
    let mut done = first;
    loop {
        audited += 1;
        if let Err(broken) = audit(workload, &database) {
            let earliest = first_broken(workload, &writes[..done], done.saturating_sub(stride).max(first));
            return (audited, Err(earliest.unwrap_or(broken)));
        }
        if done == writes.len() {
            return (audited, Ok(()));
        }
        let next = (done + stride).min(writes.len());
        advance(&database, &writes[done..next]);
        done = next;
    }
}

/// Describes the first of the versions after the first `sound` ones that breaks an invariant.
fn first_broken<W: Workload>(
    workload: &W,
    writes: &[&std::sync::Arc<shaketable_sim::proto::LogEntry>],
    sound: usize,
) -> Option<String> {
    let mut state = Keyspace::default();
    for entry in &writes[..sound] {
        entry.transactions.iter().flat_map(|tx| &tx.mutations).for_each(|m| state.apply(m, None));
    }
    let database = Snapshot::new(state);
    for entry in &writes[sound..] {
        for tx in &entry.transactions {
            database.change(|state| tx.mutations.iter().for_each(|m| state.apply(m, None)));
            if let Err(broken) = audit(workload, &database) {
                let by = tx.attempt.map_or_else(String::new, |a| format!(", written by attempt {}", a.0));
                return Some(format!("from version {}{by}: {broken}", entry.version));
            }
        }
    }
    None
}

fn audit<W: Workload>(workload: &W, database: &Snapshot) -> Result<(), String> {
    match workload.audit::<Snapshot>(database).now_or_never() {
        Some(Ok(verdict)) => verdict,
        Some(Err(error)) => Err(format!("the audit failed: {error}")),
        None => Err("the audit waits for something other than a read of its transaction".to_owned()),
    }
}
