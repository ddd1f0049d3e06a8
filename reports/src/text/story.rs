//! The story of a run.

use crate::history::RunHistory;

/// The operations of a run in the order of their calls, one in a line.
pub fn story(history: &RunHistory) -> String {
    let mut operations: Vec<_> = history.operations.iter().collect();
    operations.sort_by_key(|operation| operation.called);
    operations.iter().map(|one| format!("client {}: {} {}\n", one.client, one.call, one.outcome)).collect()
}
