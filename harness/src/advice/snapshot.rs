//! Keys that a transaction wrote as it had seen them without a guard: at snapshot, or in an earlier
//! transaction of its operation. If another operation changed one of them in between, its update is lost.
//!
//! It is no finding, because a correct layer may do it: what another key of the same transaction guards
//! cannot change in between, and some values need not be the last, such as a hint or a time of use.

use super::{
    entry,
    guidelines::SNAPSHOT,
    hot::target,
    place::Names,
    traffic::{Observed, Traffic, Tried, is_of_layer},
    units::share,
};
use bytes::Bytes;
use shaketable_reports::{
    AdviceEntry, Severity,
    text::{count, plural},
};
use shaketable_sim::{
    history::{Call, Reported},
    judges::writes::{LAST, Place, point, spans},
    proto::Mutation,
};
use shaketable_tx::Isolation;
use std::collections::{BTreeMap, BTreeSet};

/// The transactions that wrote what they had seen without a guard.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshots {
    /// Those that wrote a key after reading it only at snapshot, by kind.
    unguarded: BTreeMap<String, u64>,
    /// Those by which an update of another operation is lost, by kind and key.
    lost: BTreeMap<(String, Bytes), u64>,
}

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

/// The one key that a mutation sets or clears, with what it leaves there.
fn single(mutation: &Mutation) -> Option<(&Bytes, Option<&Bytes>)> {
    match mutation {
        Mutation::Set(key, value) => Some((key, Some(value))),
        Mutation::ClearRange(range) if *range == point(&range.begin) => Some((&range.begin, None)),
        _ => None,
    }
}

/// What a mutation leaves at a key, if that does not depend on what was there.
fn left(mutation: &Mutation) -> Option<Option<&Bytes>> {
    match mutation {
        Mutation::Set(_, value) => Some(Some(value)),
        Mutation::ClearRange(_) => Some(None),
        Mutation::Atomic(..) => None,
    }
}

/// When the transactions of an operation, of which this is the last one, last saw or wrote a key.
fn seen_at(key: &Bytes, last: &Tried<'_>, before: &[Tried<'_>]) -> Option<Place> {
    let read = |one: &Tried<'_>| {
        let is_read = spans(one.attempt).iter().any(|span| span.contains(key));
        Some((one.attempt.read_version.filter(|_| is_read)?, LAST))
    };
    let wrote = |one: &Tried<'_>| one.place.filter(|_| one.mutations().any(|m| target(m).0.contains(key)));
    let earlier = before.iter().flat_map(|one| [read(one), wrote(one)]);
    read(last).or_else(|| earlier.flatten().max())
}

impl Observed<'_> {
    /// Whether what another operation wrote was at a key at the second place, and was not at the first one.
    /// If it is this value, nothing is lost.
    fn is_changed(
        &self,
        (key, value): (&Bytes, Option<&Bytes>),
        own: Option<(u16, u32)>,
        (after, before): (Place, Place),
    ) -> bool {
        let entries = &self.truth.entries;
        let from = entries.partition_point(|entry| entry.version < after.0);
        let until = entries.partition_point(|entry| entry.version <= before.0);
        let placed = entries[from..until].iter().flat_map(|entry| {
            entry.transactions.iter().map(|tx| ((entry.version, u32::from(tx.batch_index)), tx))
        });
        let between = placed.filter(|(at, _)| after < *at && *at < before);
        let writes = between.flat_map(|(_, tx)| tx.mutations.iter().map(|mutation| (tx.attempt, mutation)));
        let Some((by, last)) = writes.filter(|(_, mutation)| target(mutation).0.contains(key)).last() else {
            return false;
        };
        let by = by.and_then(|id| self.history.attempt(id));
        let by = by.and_then(|attempt| Some((attempt.client.0, attempt.operation?)));
        by.is_some() && by != own && left(last) != Some(value)
    }
}

impl Snapshots {
    /// Observes the committed transactions of a run.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        let mut earlier: BTreeMap<Option<(u16, u32)>, Vec<Tried<'_>>> = BTreeMap::new();
        // What is done at once with a read at snapshot need not depend on it.
        for one in tried.iter().filter(|one| one.is_of_one_kind() && !one.attempt.prepares) {
            let is_guarded = |key: &Bytes| one.attempt.read_ranges.iter().any(|range| range.contains(key));
            let unguarded = || one.mutations().filter_map(single).filter(|(key, _)| !is_guarded(key));
            let read = read_at_snapshot(&one.attempt.calls);
            if unguarded().any(|(key, _)| read.contains(key)) {
                *self.unguarded.entry(one.kind.to_owned()).or_default() += 1;
            }
            let before = earlier.entry(one.operation()).or_default();
            let is_lost = |(key, value): &(&Bytes, Option<&Bytes>)| {
                let between = seen_at(key, one, before).zip(one.place);
                between.is_some_and(|between| run.is_changed((key, *value), one.operation(), between))
            };
            let lost: BTreeSet<&Bytes> = unguarded().filter(is_lost).map(|(key, _)| key).collect();
            for key in lost.into_iter().filter(|key| is_of_layer(key)) {
                *self.lost.entry((one.kind.to_owned(), key.clone())).or_default() += 1;
            }
            // What is tried again reads again, and may find that it need not.
            if !matches!(one.attempt.reported, Reported::Failed(_)) {
                before.push(*one);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Snapshots) {
        for (kind, count) in &other.unguarded {
            *self.unguarded.entry(kind.clone()).or_default() += count;
        }
        for (key, count) in &other.lost {
            *self.lost.entry(key.clone()).or_default() += count;
        }
    }

    /// The keys of which updates were lost.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.lost.keys().map(|(_, key)| &key[..])
    }

    /// The updates that were lost: an entry a kind and a group of similar keys.
    fn lost(&self, traffic: &Traffic, names: &Names) -> Vec<AdviceEntry> {
        let mut groups: BTreeMap<(&str, String), u64> = BTreeMap::new();
        for ((kind, key), n) in &self.lost {
            *groups.entry((kind, names.range(&point(key)))).or_default() += n;
        }
        let of_group = |((kind, keys), n): (&(&str, String), &u64)| {
            let measured = format!(
                "{kind} overwrote {keys} as it had read or written it before, without a read that conflicts, and \
                 another operation had changed it since, {}, in {} of its transactions that write: that \
                 change is lost",
                plural(*n, "time", "times"),
                share(*n, traffic.totals(kind).writers.max(*n)),
            );
            let number = (*n as f64, "updates");
            entry("lost updates", Severity::Look, Some(kind), measured, number, SNAPSHOT)
        };
        groups.iter().map(of_group).collect()
    }

    /// The updates that were lost, and an entry for each kind that may lose some.
    pub(super) fn advise(&self, traffic: &Traffic, names: &Names) -> Vec<AdviceEntry> {
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
        let mut entries = self.lost(traffic, names);
        entries.extend(self.unguarded.iter().map(of_kind));
        entries
    }
}
