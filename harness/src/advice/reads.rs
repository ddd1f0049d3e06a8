//! Reads: round trips one after another, small reads, large ranges, selectors with offsets, and watches.

use super::{
    entry,
    guidelines::{OFFSETS, RANGE, RANGE_SIZE, ROUND_TRIPS, ROWS_FOR_ONE, SMALL, SMALL_READS, WATCH, WATCHES},
    traffic::{Observed, Tried},
    units::{bytes, number, share},
};
use shaketable_reports::{AdviceEntry, Severity, text::count};
use shaketable_sim::{history::Call, judges::SESSIONS, proto::Mutation};
use shaketable_tx::{KeySelector, KeyValue};
use std::collections::BTreeMap;

/// The mean number of round trips of a kind that deserves a look, and the fewest transactions that say
/// something.
const ROUND_TRIPS_NOTED: f64 = 3.0;
const FEWEST: u64 = 10;
/// How much larger than advised a mean range read is before it is noted.
const MUCH: u64 = 4;
/// The offset of a selector that is noted: more than steps to a neighbour.
const OFFSET: u64 = 10;
/// The mean number of rows that are read to change one that is noted.
const ROWS_NOTED: f64 = 10.0;
/// The number of watches of a client in a run that is noted.
const WATCHES_NOTED: u64 = WATCHES / 10;

/// The reads of the complete transactions of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfKind {
    transactions: u64,
    round_trips: u64,
    /// The most round trips of a transaction.
    most: u64,
    reads: u64,
    /// Transactions with several point reads of little data together, their point reads, and the bytes found.
    small: (u64, u64, u64),
    /// Transactions with range reads, the bytes found by those, and the most of one.
    ranges: (u64, u64, u64),
    /// Transactions that changed one of the rows of their range reads and nothing else, and those rows.
    for_one: (u64, u64),
    /// Transactions that only read, for an answer that is not larger than a row of their range reads, and
    /// those rows.
    for_answer: (u64, u64),
    /// The largest offset of a selector from the key next to it.
    offset: u64,
}

/// The reads of a run or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reads {
    kinds: BTreeMap<String, OfKind>,
    /// The most watches that a client set in a run.
    watches: u64,
}

fn offset(selector: &KeySelector) -> u64 {
    // 0 and 1 are the neighbours of a key.
    u64::from(if selector.offset > 0 {
        selector.offset.unsigned_abs() - 1
    } else {
        selector.offset.unsigned_abs()
    })
}

/// The rows of the range reads of a transaction.
fn rows<'a>(one: &Tried<'a>) -> impl Iterator<Item = &'a KeyValue> + use<'a> {
    one.attempt.calls.iter().flat_map(|call| match call {
        Call::GetRange { answer: Some((rows, _)), .. } => &rows[..],
        _ => &[],
    })
}

/// The rows of the range reads of a transaction that changed one of them, and nothing else but the record of
/// its session.
fn rows_for_one(one: &Tried<'_>) -> Option<u64> {
    let key = |mutation: &Mutation| match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key.clone(),
        Mutation::ClearRange(range) => range.begin.clone(),
    };
    let mut written: Vec<_> =
        one.committed?.iter().map(key).filter(|key| !key.starts_with(SESSIONS)).collect();
    written.dedup();
    let [written] = &written[..] else { return None };
    rows(one).any(|row| row.key == *written).then(|| rows(one).count() as u64)
}

/// The rows of the range reads of a transaction that only read, if its answer, of this length, is not larger
/// than one of them.
fn rows_for_answer(one: &Tried<'_>, answer: u64) -> Option<u64> {
    let (rows, bytes) =
        rows(one).fold((0, 0), |sum, row| (sum.0 + 1, sum.1 + row.key.len() + row.value.len()));
    (one.committed.is_none() && answer * rows <= bytes as u64).then_some(rows)
}

impl OfKind {
    fn observe(&mut self, one: &Tried<'_>, answer: Option<u64>) {
        self.transactions += 1;
        self.round_trips += u64::from(one.attempt.round_trips);
        self.most = self.most.max(u64::from(one.attempt.round_trips));
        let (mut gets, mut found, mut ranges, mut in_ranges) = (0, 0, 0, 0);
        for call in &one.attempt.calls {
            match call {
                Call::Get { answer, .. } => {
                    gets += 1;
                    found += answer.iter().flatten().map(|value| value.len() as u64).sum::<u64>();
                }
                Call::GetKey { selector, .. } => self.offset = self.offset.max(offset(selector)),
                Call::GetRange { begin, end, answer, .. } => {
                    ranges += 1;
                    let rows = answer.iter().flat_map(|(rows, _)| rows.iter());
                    in_ranges += rows.map(|row| (row.key.len() + row.value.len()) as u64).sum::<u64>();
                    self.offset = self.offset.max(offset(begin)).max(offset(end));
                }
                Call::Write(_) => continue,
            }
            self.reads += 1;
        }
        if gets > 1 && found < SMALL {
            self.small = (self.small.0 + 1, self.small.1 + gets, self.small.2 + found);
        }
        if ranges > 0
            && let Some(rows) = rows_for_one(one)
        {
            self.for_one = (self.for_one.0 + 1, self.for_one.1 + rows);
        }
        if ranges > 0
            && let Some(rows) = answer.and_then(|answer| rows_for_answer(one, answer))
        {
            self.for_answer = (self.for_answer.0 + 1, self.for_answer.1 + rows);
        }
        if ranges > 0 {
            self.ranges = (self.ranges.0 + 1, self.ranges.1 + in_ranges, self.ranges.2.max(in_ranges));
        }
    }

    fn merge(&mut self, other: &OfKind) {
        self.transactions += other.transactions;
        self.round_trips += other.round_trips;
        self.most = self.most.max(other.most);
        self.reads += other.reads;
        let (a, b) = (self.small, other.small);
        self.small = (a.0 + b.0, a.1 + b.1, a.2 + b.2);
        let (a, b) = (self.ranges, other.ranges);
        self.ranges = (a.0 + b.0, a.1 + b.1, a.2.max(b.2));
        let (a, b) = (self.for_one, other.for_one);
        self.for_one = (a.0 + b.0, a.1 + b.1);
        let (a, b) = (self.for_answer, other.for_answer);
        self.for_answer = (a.0 + b.0, a.1 + b.1);
        self.offset = self.offset.max(other.offset);
    }

    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.transactions.max(1) as f64
    }

    /// Several point reads of little data in most transactions, which wait for one another.
    fn small_reads(&self, kind: &str) -> Option<AdviceEntry> {
        let (with, gets, found) = self.small;
        let gets = gets as f64 / with.max(1) as f64;
        if with * 2 < self.transactions || with < FEWEST || self.mean(self.round_trips) < 1.5 {
            return None;
        }
        let measured = format!(
            "{kind} reads {} keys one by one, {} together, in {} of its transactions ({} round trips on average)",
            number(gets),
            bytes(found / with),
            share(with, self.transactions),
            number(self.mean(self.round_trips)),
        );
        Some(entry("small reads", Severity::Look, Some(kind), measured, (gets, "reads"), SMALL_READS))
    }

    fn round_trips(&self, kind: &str) -> Option<AdviceEntry> {
        let mean = self.mean(self.round_trips);
        if mean < ROUND_TRIPS_NOTED || self.transactions < FEWEST {
            return None;
        }
        let most = match self.most as f64 > mean {
            true => format!(", at most in {}", count(self.most)),
            false => String::new(),
        };
        let measured = format!(
            "{kind} does {} reads in {} round trips one after another on average{most}",
            number(self.mean(self.reads)),
            number(mean),
        );
        Some(entry("round trips", Severity::Look, Some(kind), measured, (mean, "round trips"), ROUND_TRIPS))
    }

    fn large_ranges(&self, kind: &str) -> Option<AdviceEntry> {
        let (with, found, most) = self.ranges;
        let mean = found / with.max(1);
        if mean <= MUCH * RANGE {
            return None;
        }
        let measured = format!(
            "{kind} reads ranges of {} in a transaction on average, at most {}",
            bytes(mean),
            bytes(most)
        );
        Some(entry("range size", Severity::Look, Some(kind), measured, (mean as f64, "bytes"), RANGE_SIZE))
    }

    fn rows_for_one(&self, kind: &str) -> Option<AdviceEntry> {
        let of = |(with, rows): (u64, u64)| {
            let mean = rows as f64 / with.max(1) as f64;
            (with >= FEWEST && with * 2 >= self.transactions && mean >= ROWS_NOTED).then_some(mean)
        };
        let (mean, what) = match (of(self.for_one), of(self.for_answer)) {
            (Some(mean), _) => (mean, "to change one of them"),
            (None, mean) => (mean?, "for an answer that is not larger than one of them"),
        };
        let measured = format!("{kind} reads ranges of {} rows, on average, {what}", number(mean));
        Some(entry("rows for one", Severity::Look, Some(kind), measured, (mean, "rows"), ROWS_FOR_ONE))
    }

    fn offsets(&self, kind: &str) -> Option<AdviceEntry> {
        let measured = format!("{kind} reads with a key selector of offset {}", count(self.offset));
        let number = (self.offset as f64, "keys");
        (self.offset > OFFSET)
            .then(|| entry("offsets", Severity::Look, Some(kind), measured, number, OFFSETS))
    }
}

impl Reads {
    /// Observes the complete attempts of a run.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        let mut watches: BTreeMap<u16, u64> = BTreeMap::new();
        for one in tried {
            *watches.entry(one.attempt.client.0).or_default() += one.attempt.watches().count() as u64;
            if one.is_complete() && one.is_of_one_kind() {
                let answer = run.done_by(one).and_then(|done| done.answer);
                self.kinds.entry(one.kind.to_owned()).or_default().observe(one, answer);
            }
        }
        self.watches = self.watches.max(watches.into_values().max().unwrap_or(0));
    }

    pub(super) fn merge(&mut self, other: &Reads) {
        for (kind, reads) in &other.kinds {
            self.kinds.entry(kind.clone()).or_default().merge(reads);
        }
        self.watches = self.watches.max(other.watches);
    }

    /// The entries of each topic, those with the largest numbers first, and one if all transactions need few
    /// round trips.
    pub(super) fn advise(&self) -> Vec<AdviceEntry> {
        let sorted = |of: fn(&OfKind, &str) -> Option<AdviceEntry>| {
            let mut entries: Vec<_> = self.kinds.iter().filter_map(|(kind, reads)| of(reads, kind)).collect();
            entries.sort_by(|a, b| b.number.total_cmp(&a.number));
            entries
        };
        let mut entries = sorted(OfKind::round_trips);
        let most = self.kinds.values().map(|reads| reads.most).max().unwrap_or(0);
        if entries.is_empty() && !self.kinds.is_empty() {
            let measured = format!("at most {} round trips one after another in a transaction", count(most));
            let number = (most as f64, "round trips");
            entries.push(entry("round trips", Severity::Fine, None, measured, number, ROUND_TRIPS));
        }
        entries.extend(sorted(OfKind::small_reads));
        entries.extend(sorted(OfKind::large_ranges));
        entries.extend(sorted(OfKind::rows_for_one));
        entries.extend(sorted(OfKind::offsets));
        if self.watches > WATCHES_NOTED {
            let measured = format!("a client set {} watches in a run", count(self.watches));
            let number = (self.watches as f64, "watches");
            entries.push(entry("watches", Severity::Look, None, measured, number, WATCH));
        }
        entries
    }
}
