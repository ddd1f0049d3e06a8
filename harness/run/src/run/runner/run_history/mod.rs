//! Converts a run into plain data for reports: its operations, its transactions with decoded keys and with
//! the writer of each value that was read, its faults, and the witness of the finding that decides the
//! verdict.

mod calls;
mod claim;
mod events;
mod known;
#[cfg(test)]
mod tests;
mod transactions;

use super::{
    ends::outcome,
    testbed::{AUDITOR, CHECKER},
};
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    describe::workload::Operation,
    judge::Truth,
    judge::finding::Finding,
    run::plan::Plan,
};
pub(super) use claim::explain;
use events::events;
use known::Known;
use shaketable_reports::{OperationEntry, RunHistory};
use shaketable_sim::{history::History, ids::NodeId, rt::Nanos, trace::Event};
use transactions::transaction;

/// Describes keys and values in the terms of the layer.
#[doc(hidden)]
pub trait Words {
    /// The description of a key, if the layer has one.
    fn key(&self, _: &[u8]) -> Option<String> {
        None
    }
    /// The description of a key's value, if the layer has one.
    fn value(&self, _: &[u8], _: &[u8]) -> Option<String> {
        None
    }
}

impl Words for AnyWorkload {
    fn key(&self, key: &[u8]) -> Option<String> {
        self.describe_key(key)
    }
    fn value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        self.describe_value(key, value)
    }
}

/// The sources of a run's history.
#[doc(hidden)]
pub struct Recorded<'a> {
    /// What clients and logs recorded.
    pub history: &'a History,
    /// What happened to machines.
    pub events: &'a [Event],
    /// When it ended.
    pub ended: Nanos,
    /// The name of a machine of the cluster.
    pub machine: &'a dyn Fn(NodeId) -> String,
}

/// The history of a run, without its witness.
pub(super) fn run_history(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
    recorded: &Recorded<'_>,
) -> RunHistory {
    let mut entries = Vec::new();
    for (client, (list, planned)) in operations.iter().zip(&plan.operations).enumerate() {
        for (index, (operation, op)) in list.iter().zip(planned).enumerate() {
            entries.push(OperationEntry {
                client: client as u16,
                index: index as u32,
                call: format!("{op:?}"),
                called: operation.called,
                returned: operation.outcome.is_some().then_some(operation.returned),
                outcome: operation.outcome.as_ref().map_or_else(|| "does not end".to_owned(), outcome),
            });
        }
    }
    of_entries(entries, &plan.configuration, recorded)
}

/// The history of a run, and what these findings say of it.
pub(crate) fn with_witness(
    plan: &Plan,
    operations: &[Vec<Operation<AnyValue>>],
    recorded: &Recorded<'_>,
    findings: &[Finding],
) -> RunHistory {
    let mut history = run_history(plan, operations, recorded);
    explain(&mut history, findings, &plan.configuration);
    history
}

/// The history with these operations.
#[doc(hidden)]
pub fn of_entries(operations: Vec<OperationEntry>, words: &dyn Words, recorded: &Recorded<'_>) -> RunHistory {
    let history = recorded.history;
    let truth = Truth::of(history);
    let known = Known::of(history, &truth, words);
    let attempts = history.attempts.iter().enumerate().filter_map(|(id, a)| Some((id as u32, a.as_ref()?)));
    let shown = attempts.filter(|(_, attempt)| ![AUDITOR, CHECKER].contains(&attempt.client));
    let transactions = shown.map(|(id, attempt)| transaction(id, attempt, history, &truth, &known)).collect();
    let events = events(recorded.events, recorded.machine);
    RunHistory { operations, transactions, events, ended: recorded.ended, ..RunHistory::default() }
}
