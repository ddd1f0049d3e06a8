//! Audits: the invariants of the workload hold at every version.
//!
//! They are read on the cluster during the run and at its end, and afterwards in states rebuilt from the log,
//! so that the first version that breaks an invariant can be reported.

use super::{Keyspace, Snapshot, Truth, Undo, witness::breaks};
use crate::{describe::erased::AnyWorkload, describe::misfit::Misfit, judge::finding::Objection};
use bytes::Bytes;
use futures::FutureExt;
use shaketable_sim::{
    history::History,
    proto::{KeyRange, LogEntry, LoggedTransaction, Version},
};
use shaketable_tx::AnyTransaction;
use std::sync::Arc;

/// The maximum number of intervals between audited versions. Once an audit fails, every version of the last
/// interval is audited.
const MOST_VERSIONS: usize = 40;

/// How many times as much as was written may be audited between the first and the last state. It bounds the
/// cost of judging a database that grows: at each of its versions an audit reads all that was written before.
const AUDITED_PER_WRITTEN: usize = 4;

/// What a row costs an audit beside its bytes.
const ROW: usize = 64;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The version from which on it is broken.
    pub since: Version,
    /// What is broken, and by which transaction.
    pub objection: Objection,
}

/// Audits the states from version `from` on. Returns the number of audits, and the broken invariant as the
/// error.
pub fn judge(
    workload: &AnyWorkload,
    history: &History,
    truth: &Truth,
    from: Version,
) -> (u64, Result<(), Box<Broken>>) {
    let writes: Vec<_> = truth.entries.iter().filter(|e| !e.transactions.is_empty()).collect();
    let first = writes.partition_point(|e| e.version <= from);
    let database = Snapshot::new(Keyspace::default());
    let tx = AnyTransaction::new(database.clone());
    let mut sizes = Sizes::default();
    writes[..first].iter().for_each(|entry| sizes.advance(&database, entry));
    let stride = writes[first..].len().div_ceil(MOST_VERSIONS).max(1);
    let mut audited = 0;
    let (mut done, mut sound) = (first, first);
    loop {
        audited += 1;
        sizes.written = 0;
        if let Err(broken) = audit(workload, &tx) {
            let earliest = first_broken(workload, &writes[..done], sound);
            let broken = match earliest {
                Some(first) => first.objection(history, truth),
                // The setup broke it.
                None => Broken {
                    since: from,
                    objection: Objection {
                        message: broken.to_string(),
                        said: broken.said(),
                        ..Objection::default()
                    },
                },
            };
            return (audited, Err(Box::new(broken)));
        }
        if done == writes.len() {
            return (audited, Ok(()));
        }
        sound = done;
        while done < writes.len() && (done < sound + stride || !sizes.is_audit_due()) {
            sizes.advance(&database, writes[done]);
            done += 1;
        }
    }
}

/// The sizes that decide which versions are audited, in bytes.
#[derive(Default)]
struct Sizes {
    /// All rows of the state, without the cluster's own.
    state: usize,
    /// What was written since the last audit.
    written: usize,
}

impl Sizes {
    /// Applies an entry of the log to the state.
    fn advance(&mut self, database: &Snapshot, entry: &LogEntry) {
        let mut undo = Undo::new();
        database.change(|state| {
            for mutation in entry.transactions.iter().flat_map(|tx| &tx.mutations) {
                state.apply(mutation, Some(&mut undo));
                // No audit reads the rows of the cluster itself.
                for (key, before) in undo.drain(..).filter(|(key, _)| !key.starts_with(b"\xff")) {
                    let row = |value: &Bytes| ROW + key.len() + value.len();
                    let (before, after) = (before.as_ref().map_or(0, row), state.get(&key).map_or(0, row));
                    self.state = self.state + after - before;
                    self.written += before.max(after);
                }
            }
        });
    }

    fn is_audit_due(&self) -> bool {
        self.written * AUDITED_PER_WRITTEN >= self.state
    }
}

/// The first transaction that breaks an invariant.
struct First<'a> {
    version: Version,
    tx: &'a LoggedTransaction,
    /// What the audit says.
    broken: Misfit,
    /// What it read.
    reads: Vec<KeyRange>,
}

impl First<'_> {
    fn objection(self, history: &History, truth: &Truth) -> Broken {
        let by = self.tx.attempt.map_or_else(String::new, |a| format!(", written by attempt {}", a.0));
        let message = format!("from version {}{by}: {}", self.version, self.broken);
        let place = (self.version, u32::from(self.tx.batch_index));
        let witness = breaks(history, truth, place, self.tx.attempt, &self.reads);
        Broken { since: self.version, objection: Objection { message, said: self.broken.said(), witness } }
    }
}

/// The first of the transactions after the first `sound` versions that breaks an invariant.
fn first_broken<'a>(workload: &AnyWorkload, writes: &[&'a Arc<LogEntry>], sound: usize) -> Option<First<'a>> {
    let mut state = Keyspace::default();
    for entry in &writes[..sound] {
        entry.transactions.iter().flat_map(|tx| &tx.mutations).for_each(|m| state.apply(m, None));
    }
    let database = Snapshot::new(state);
    let snapshot = AnyTransaction::new(database.clone());
    for entry in &writes[sound..] {
        for tx in &entry.transactions {
            database.change(|state| tx.mutations.iter().for_each(|m| state.apply(m, None)));
            database.record_reads();
            if let Err(broken) = audit(workload, &snapshot) {
                return Some(First { version: entry.version, tx, broken, reads: database.record_reads() });
            }
        }
    }
    None
}

fn audit(workload: &AnyWorkload, snapshot: &AnyTransaction) -> Result<(), Misfit> {
    match workload.audit(snapshot).now_or_never() {
        Some(Ok(verdict)) => verdict,
        Some(Err(error)) => Err(format!("the audit failed: {error}").into()),
        None => Err("the audit waits for something other than a read of its transaction".into()),
    }
}
