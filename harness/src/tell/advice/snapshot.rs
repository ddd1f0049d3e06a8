//! Snapshot reads: keys that a transaction read only at snapshot, and then wrote.

use super::{
    entry,
    guidelines::SNAPSHOT,
    hot::target,
    traffic::{Traffic, Tried},
    units::share,
};
use bytes::Bytes;
use shaketable_reports::{AdviceEntry, Severity, text::count};
use shaketable_sim::{
    history::Call,
    proto::{KeyRange, Mutation},
};
use shaketable_tx::Isolation;
use std::collections::{BTreeMap, BTreeSet};

/// The operations that wrote a key after reading it only at snapshot, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshots(BTreeMap<String, u64>);

/// The keys that a call found at snapshot.
fn found(call: &Call) -> Vec<&Bytes> {
    match call {
        Call::Get { key, isolation: Isolation::Snapshot, answer: Some(Some(_)) } => vec![key],
        Call::GetKey { isolation: Isolation::Snapshot, answer: Some(key), .. } => vec![key],
        Call::GetRange { isolation: Isolation::Snapshot, answer: Some((rows, _)), .. } => {
            rows.iter().map(|row| &row.key).collect()
        }
        _ => Vec::new(),
    }
}

/// The keys that were found at snapshot, and that the transaction had not written itself before.
fn read_at_snapshot(calls: &[Call]) -> BTreeSet<&Bytes> {
    let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
    for call in calls {
        if let Call::Write(Mutation::Set(key, _) | Mutation::Atomic(key, ..)) = call {
            written.insert(key);
        }
        read.extend(found(call).into_iter().filter(|key| !written.contains(key)));
    }
    read
}

impl Snapshots {
    /// Observes the committed transactions of a run.
    pub(super) fn observe(&mut self, tried: &[Tried<'_>]) {
        // What is done at once with a read at snapshot need not depend on it.
        for one in tried.iter().filter(|one| one.is_of_one_kind()) {
            let read = read_at_snapshot(&one.attempt.calls);
            let is_unguarded = |key: &Bytes| {
                read.contains(key) && !one.attempt.read_ranges.iter().any(|range| range.contains(key))
            };
            let mut targets = one.committed.unwrap_or_default().iter().map(target);
            let is_single = |range: &KeyRange| range.end.strip_suffix(b"\0") == Some(&range.begin);
            if targets.any(|(range, atomic)| !atomic && is_single(&range) && is_unguarded(&range.begin)) {
                *self.0.entry(one.kind.to_owned()).or_default() += 1;
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Snapshots) {
        for (kind, count) in &other.0 {
            *self.0.entry(kind.clone()).or_default() += count;
        }
    }

    /// An entry a kind.
    pub(super) fn advise(&self, traffic: &Traffic) -> Vec<AdviceEntry> {
        let of_kind = |(kind, n): (&String, &u64)| {
            let writers = traffic.totals(kind).writers;
            let measured = format!(
                "{kind} sets or clears a key that it has read only at snapshot, in {} of its transactions that write ({}): \
                 a change in between is lost",
                share(*n, writers.max(*n)),
                count(*n),
            );
            entry(
                "snapshot reads",
                Severity::Look,
                Some(kind),
                measured,
                (*n as f64, "transactions"),
                SNAPSHOT,
            )
        };
        self.0.iter().map(of_kind).collect()
    }
}
