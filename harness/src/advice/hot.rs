//! Hot keys: keys and cleared ranges that many operations of several clients write.

use super::{
    entry,
    guidelines::{HOT, HOT_KEYS},
    place::Names,
    traffic::{Observed, Tried},
    units::{number, rate, share},
};
use shaketable_reports::{AdviceEntry, Severity, text::plural};
use shaketable_sim::proto::{KeyRange, Mutation};
use shaketable_tx::key_after;
use std::collections::{BTreeMap, BTreeSet};

/// The least share of the operations of a kind that write a key which the layer makes hot, rather than a
/// workload that draws from few keys, per cent: of a key above the lower rate, and above the upper one.
const STRUCTURAL: [u64; 2] = [50, 20];
/// The least share of writes after a read with which a hot key is worse than its rate, per cent: the others
/// do not conflict with one another.
const AFTER_READ: u64 = 25;
/// The fewest operations of a kind of which a share says something.
const FEWEST: u64 = 10;

/// The writes of a key or of a cleared range.
#[derive(Clone, Debug, Default, PartialEq)]
struct Writes {
    /// In transactions that had read it: another write between makes them conflict.
    after_read: u64,
    /// By atomic operations.
    atomic: u64,
    /// Without a read.
    blind: u64,
    /// The operations that wrote it, by kind, and the operations of the kind that wrote anything in these
    /// runs.
    by_kind: BTreeMap<String, (u64, u64)>,
    /// The most writes a second in a run in which several clients wrote it.
    peak: f64,
}

impl Writes {
    fn all(&self) -> u64 {
        self.after_read + self.atomic + self.blind
    }
}

/// The keys written, and how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hot(BTreeMap<KeyRange, Writes>);

/// What a mutation writes, and whether atomically.
pub(super) fn target(mutation: &Mutation) -> (KeyRange, bool) {
    match mutation {
        Mutation::Set(key, _) => (KeyRange::new(key.clone(), key_after(key)), false),
        Mutation::Atomic(key, ..) => (KeyRange::new(key.clone(), key_after(key)), true),
        Mutation::ClearRange(range) => (range.clone(), false),
    }
}

/// A group of keys that are shown as one.
#[derive(Default)]
struct Group<'a> {
    keys: u64,
    hottest: f64,
    /// The largest part of the operations of a kind that write one of the keys: those, all of them, and the
    /// kind.
    share: (u64, u64, &'a str),
    writes: Writes,
}

impl Hot {
    /// Observes the committed transactions of a run.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        type Writers<'a> = (BTreeSet<u16>, BTreeSet<(&'a str, (u16, u32))>);
        let mut all: BTreeSet<(&str, (u16, u32))> = BTreeSet::new();
        let mut writers: BTreeMap<KeyRange, (Writes, Writers<'_>)> = BTreeMap::new();
        for one in tried {
            let Some(operation) = one.operation() else { continue };
            let targets: BTreeMap<KeyRange, bool> =
                one.committed.unwrap_or_default().iter().map(target).collect();
            all.extend((!targets.is_empty()).then_some((one.kind, operation)));
            for (range, is_atomic) in targets {
                let was_read = one.attempt.read_ranges.iter().any(|read| read.intersects(&range));
                let (writes, (clients, operations)) = writers.entry(range).or_default();
                match (was_read, is_atomic) {
                    (true, _) => writes.after_read += 1,
                    (false, true) => writes.atomic += 1,
                    (false, false) => writes.blind += 1,
                }
                clients.insert(operation.0);
                operations.insert((one.kind, operation));
            }
        }
        for (range, (mut writes, (clients, operations))) in writers {
            for (kind, _) in operations {
                let of_kind = || all.iter().filter(|(other, _)| *other == kind).count() as u64;
                writes.by_kind.entry(kind.to_owned()).or_insert_with(|| (0, of_kind())).0 += 1;
            }
            writes.peak = if clients.len() > 1 { rate(writes.all(), run.time) } else { 0.0 };
            self.add(&range, &writes);
        }
    }

    fn add(&mut self, range: &KeyRange, writes: &Writes) {
        let sum = self.0.entry(range.clone()).or_default();
        sum.after_read += writes.after_read;
        sum.atomic += writes.atomic;
        sum.blind += writes.blind;
        for (kind, (count, all)) in &writes.by_kind {
            let sum = sum.by_kind.entry(kind.clone()).or_default();
            *sum = (sum.0 + count, sum.1 + all);
        }
        sum.peak = sum.peak.max(writes.peak);
    }

    pub(super) fn merge(&mut self, other: &Hot) {
        other.0.iter().for_each(|(range, writes)| self.add(range, writes));
    }

    /// The keys and ranges.
    pub(super) fn ranges(&self) -> impl Iterator<Item = &KeyRange> {
        self.0.keys()
    }

    /// What is written more often than advised: a group of similar keys an entry.
    pub(super) fn advise(&self, names: &Names) -> Vec<AdviceEntry> {
        let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
        for (range, writes) in self.0.iter().filter(|(_, writes)| writes.peak >= HOT[0]) {
            let group = groups.entry(names.range(range)).or_default();
            group.keys += 1;
            group.hottest = group.hottest.max(writes.peak);
            group.writes.after_read += writes.after_read;
            group.writes.atomic += writes.atomic;
            group.writes.blind += writes.blind;
            for (kind, (count, all)) in &writes.by_kind {
                let is_larger = count * group.share.1.max(1) > group.share.0 * all;
                if *all >= FEWEST && (group.share.1 == 0 || is_larger) {
                    group.share = (*count, *all, kind);
                }
            }
        }
        let (hot, few): (Vec<_>, Vec<_>) =
            groups.into_iter().filter(|(_, group)| group.share.1 > 0).partition(|(_, group)| {
                let least = STRUCTURAL[usize::from(group.hottest > HOT[1])];
                group.share.0 * 100 >= group.share.1 * least
            });
        let mut entries: Vec<AdviceEntry> = hot.iter().map(|(name, group)| of_group(name, group)).collect();
        entries.sort_by(|a, b| b.number.total_cmp(&a.number));
        entries.extend(drawn_from_few(&few));
        entries
    }
}

fn of_group(name: &str, group: &Group<'_>) -> AdviceEntry {
    let (count, all, kind) = group.share;
    let is_structural = count * 100 >= all * STRUCTURAL[0];
    let conflicts = group.writes.after_read * 100 >= group.writes.all() * AFTER_READ;
    let severity = match group.hottest > HOT[1] && is_structural && conflicts {
        true => Severity::Over,
        false => Severity::Look,
    };
    let (keys, one) = match group.keys {
        1 => (String::new(), "it"),
        keys => (format!(" ({keys} keys)"), "the same one"),
    };
    let writes = &group.writes;
    let how: Vec<String> = [
        (writes.after_read, "after a read"),
        (writes.atomic, "atomically"),
        (writes.blind, "without a read"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, how)| format!("{} {how}", share(*count, writes.all())))
    .collect();
    let measured = format!(
        "{name}{keys}: up to {} writes/s; {} of {kind} write {one} ({})",
        number(group.hottest),
        share(count, all),
        how.join(", "),
    );
    entry("hot key", severity, Some(kind), measured, (group.hottest, "writes/s"), HOT_KEYS)
}

/// Keys that are hot because a workload draws from few: one entry for all, which is fine.
fn drawn_from_few(groups: &[(String, Group<'_>)]) -> Option<AdviceEntry> {
    let hottest = groups.iter().map(|(_, group)| group.hottest).max_by(f64::total_cmp)?;
    let percent = |group: &Group<'_>| group.share.0 * 100 / group.share.1;
    let keys = groups.iter().map(|(_, group)| group.keys).sum();
    let most = groups.iter().map(|(_, group)| percent(group)).max().unwrap_or(0);
    let measured = format!(
        "{} with more than {} writes/s, because the workload draws from few: none is written by more than {most} % of \
         a kind",
        plural(keys, "key", "keys"),
        HOT[0],
    );
    Some(entry("hot key", Severity::Fine, None, measured, (hottest, "writes/s"), HOT_KEYS))
}
