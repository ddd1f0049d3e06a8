//! What operations write or clear, and nothing reads: rows that are leaked, and rows that are not the
//! layer's.

use super::{
    entry,
    guidelines::UNREAD,
    hot::target,
    place::Names,
    traffic::{Observed, Tried, is_of_layer},
};
use shaketable_reports::{AdviceEntry, Severity, text::plural};
use shaketable_sim::judges::writes::{point, spans};
use shaketable_sim::proto::{KeyRange, Mutation};
use std::collections::{BTreeMap, BTreeSet};

/// A key or a cleared range that operations wrote.
#[derive(Clone, Debug, Default, PartialEq)]
struct Touched {
    /// The transactions that wrote it, by kind.
    by: BTreeMap<String, u64>,
    /// Whether it was only cleared, and nobody ever wrote there.
    only_cleared: bool,
    /// Whether something read it in one of the runs.
    is_read: bool,
}

/// What operations wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unread(BTreeMap<KeyRange, Touched>);

/// Ranges that do not overlap, in order.
fn united(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort();
    let mut united: Vec<KeyRange> = Vec::new();
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.begin <= last.end => last.end = range.end.max(last.end.clone()),
            _ => united.push(range),
        }
    }
    united
}

/// Whether one of these ranges, which are in order, has a key of this one.
fn meet(united: &[KeyRange], range: &KeyRange) -> bool {
    let after = united.partition_point(|one| one.end <= range.begin);
    united.get(after).is_some_and(|one| one.begin < range.end)
}

impl Unread {
    /// Observes a run: what operations wrote, and what anybody read.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        let attempts = run.history.attempts.iter().flatten();
        let read = attempts.flat_map(|attempt| {
            let watched = attempt.watches().map(|key| point(key));
            spans(attempt).into_iter().chain(attempt.read_ranges.iter().cloned()).chain(watched)
        });
        let read = united(read.collect());
        let transactions = run.truth.entries.iter().flat_map(|entry| &entry.transactions);
        let written = transactions.flat_map(|tx| &tx.mutations).filter_map(|mutation| match mutation {
            Mutation::ClearRange(_) => None,
            mutation => Some(target(mutation).0),
        });
        let written = united(written.collect());
        for one in tried.iter().filter(|one| one.attempt.operation.is_some()) {
            let targets: BTreeSet<KeyRange> =
                one.committed.unwrap_or_default().iter().map(|mutation| target(mutation).0).collect();
            for range in targets.into_iter().filter(|range| is_of_layer(&range.begin)) {
                let only_cleared = !meet(&written, &range);
                let by = BTreeMap::from([(one.kind.to_owned(), 1)]);
                let touched = Touched { by, only_cleared, is_read: meet(&read, &range) };
                self.add(&range, &touched);
            }
        }
    }

    fn add(&mut self, range: &KeyRange, touched: &Touched) {
        let is_new = !self.0.contains_key(range);
        let sum = self.0.entry(range.clone()).or_default();
        touched.by.iter().for_each(|(kind, n)| *sum.by.entry(kind.clone()).or_default() += n);
        sum.only_cleared = touched.only_cleared && (is_new || sum.only_cleared);
        sum.is_read |= touched.is_read;
    }

    pub(super) fn merge(&mut self, other: &Unread) {
        other.0.iter().for_each(|(range, touched)| self.add(range, touched));
    }

    /// The keys and ranges.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &KeyRange> {
        self.0.keys()
    }

    /// An entry for each group of similar keys of which none was ever read.
    pub(super) fn advise(&self, names: &Names) -> Vec<AdviceEntry> {
        let mut groups: BTreeMap<String, (u64, Touched)> = BTreeMap::new();
        for (range, touched) in &self.0 {
            let is_new = !groups.contains_key(&names.range(range));
            let (keys, sum) = groups.entry(names.range(range)).or_default();
            *keys += 1;
            touched.by.iter().for_each(|(kind, n)| *sum.by.entry(kind.clone()).or_default() += n);
            sum.only_cleared = touched.only_cleared && (is_new || sum.only_cleared);
            sum.is_read |= touched.is_read;
        }
        groups.retain(|_, (_, sum)| !sum.is_read);
        let entries = groups.iter().filter_map(|(name, (keys, sum))| {
            let (kind, _) = sum.by.iter().max_by_key(|(_, n)| **n)?;
            let times: u64 = sum.by.values().sum();
            let what = if sum.only_cleared { "cleared, never written" } else { "written" };
            let measured = format!(
                "{name} ({}): {what} in {} of {kind}{}, and read by no operation, audit or check",
                plural(*keys, "key", "keys"),
                plural(times, "transaction", "transactions"),
                if sum.by.len() > 1 { " and others" } else { "" },
            );
            Some(entry(
                "unread",
                Severity::Look,
                Some(kind),
                measured,
                (times as f64, "transactions"),
                UNREAD,
            ))
        });
        entries.collect()
    }
}
