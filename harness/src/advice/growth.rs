//! Growth: operations that read more, the more is stored.
//!
//! A line is fitted through the number of keys stored at the read version of each transaction and what it
//! read. Growth is reported only if the slope is significant, and large enough to matter.

use super::{
    entry,
    guidelines::GROWTH,
    traffic::{Observed, Tried},
    units::{bytes, number},
};
use crate::judge::Keyspace;
use shaketable_reports::{AdviceEntry, Severity};
use shaketable_sim::{history::Call, proto::Version};
use std::collections::BTreeMap;

/// The fewest transactions, and the fewest different numbers of stored keys, of which a line says something.
const FEWEST: u64 = 30;
const FEWEST_SIZES: usize = 5;
/// The slope divided by its standard error from which it is significant: chance reaches it once in 30,000
/// times.
const SIGNIFICANT: f64 = 4.0;
/// The growth from the quarter of the transactions with the fewest keys stored to the quarter with the most
/// that matters: a factor, and a number of reads or rows.
const FACTOR: f64 = 1.5;
const MORE: f64 = 2.0;

/// A mean under construction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mean {
    transactions: u64,
    stored: u64,
    read: u64,
}

impl Mean {
    fn add(&mut self, other: Mean) {
        self.transactions += other.transactions;
        self.stored += other.stored;
        self.read += other.read;
    }

    fn stored(&self) -> f64 {
        self.stored as f64 / self.transactions.max(1) as f64
    }

    fn read(&self) -> f64 {
        self.read as f64 / self.transactions.max(1) as f64
    }
}

/// Squares of the differences from the means in keys stored, products with those in what was read, and
/// squares of the latter.
type Sums = (f64, f64, f64);

/// What transactions read, by the number of keys stored.
#[derive(Clone, Debug, Default, PartialEq)]
struct Line {
    cells: BTreeMap<u64, Mean>,
    /// The squares of what was read.
    squares: f64,
    runs: u64,
    /// From the means of each run, because runs differ in more than in the keys stored.
    within: Sums,
}

fn sums<'a>(cells: impl Iterator<Item = &'a Mean>, squares: f64, all: Mean) -> Sums {
    let (mut xx, mut xy) = (0.0, 0.0);
    for cell in cells {
        let x = cell.stored() - all.stored();
        xx += x * x * cell.transactions as f64;
        xy += x * (cell.read as f64 - all.read() * cell.transactions as f64);
    }
    (xx, xy, squares - all.read() * all.read as f64)
}

/// The slope, if it is significant with this many degrees of freedom.
fn slope((xx, xy, yy): Sums, freedom: Option<u64>) -> Option<f64> {
    let freedom = freedom.filter(|freedom| *freedom > 0 && xx > 0.0)? as f64;
    let slope = xy / xx;
    let error = ((yy - slope * xy).max(0.0) / freedom / xx).sqrt();
    (slope > SIGNIFICANT * error).then_some(slope)
}

impl Line {
    /// The line of the transactions of a run: keys stored, and what was read.
    fn of(samples: impl Iterator<Item = (u64, u64)>) -> Line {
        let mut line = Line { runs: 1, ..Line::default() };
        for (stored, read) in samples {
            line.cells.entry(stored).or_default().add(Mean { transactions: 1, stored, read });
            line.squares += (read * read) as f64;
        }
        line.within = sums(line.cells.values(), line.squares, line.all());
        line
    }

    fn merge(&mut self, other: &Line) {
        for (stored, theirs) in &other.cells {
            self.cells.entry(*stored).or_default().add(*theirs);
        }
        self.squares += other.squares;
        self.runs += other.runs;
        let (a, b) = (self.within, other.within);
        self.within = (a.0 + b.0, a.1 + b.1, a.2 + b.2);
    }

    fn all(&self) -> Mean {
        let mut all = Mean::default();
        self.cells.values().for_each(|cell| all.add(*cell));
        all
    }

    /// The quarter of the transactions in the first of these cells.
    fn quarter<'a>(&self, cells: impl Iterator<Item = &'a Mean>) -> Mean {
        let all = self.all().transactions;
        let mut quarter = Mean::default();
        for cell in cells {
            if quarter.transactions * 4 >= all {
                break;
            }
            quarter.add(*cell);
        }
        quarter
    }

    /// The slope, if it is significant and the growth matters, and the quarters of the transactions with the
    /// fewest and with the most keys stored.
    fn grown(&self) -> Option<(f64, Mean, Mean)> {
        let all = self.all();
        if all.transactions < FEWEST || self.cells.len() < FEWEST_SIZES {
            return None;
        }
        let (few, many) = (self.quarter(self.cells.values()), self.quarter(self.cells.values().rev()));
        let matters = many.read() >= few.read() * FACTOR && many.read() - few.read() >= MORE;
        let within = slope(self.within, all.transactions.checked_sub(self.runs + 1));
        let pooled = || slope(sums(self.cells.values(), self.squares, all), all.transactions.checked_sub(2));
        let slope = within.or_else(pooled)?;
        matters.then_some((slope, few, many))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Lines {
    rows: Line,
    bytes: Line,
    calls: Line,
    /// The most keys stored.
    most: u64,
}

/// What the transactions of each kind read, by the number of keys stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Growth(BTreeMap<String, Lines>);

/// Rows and bytes found by a read.
fn found(call: &Call) -> Option<(u64, u64)> {
    match call {
        Call::Get { answer, .. } => Some((1, answer.iter().flatten().map(|value| value.len() as u64).sum())),
        Call::GetKey { answer, .. } => Some((1, answer.as_ref().map_or(0, |key| key.len() as u64))),
        Call::GetRange { answer, .. } => {
            let rows = || answer.iter().flat_map(|(rows, _)| rows.iter());
            Some((rows().count() as u64, rows().map(|row| (row.key.len() + row.value.len()) as u64).sum()))
        }
        Call::Write(_) => None,
    }
}

/// The number of keys stored from each version on.
fn stored(run: &Observed<'_>) -> Vec<(Version, u64)> {
    let mut keyspace = Keyspace::default();
    let of_entry = |entry: &std::sync::Arc<shaketable_sim::proto::LogEntry>| {
        let mutations = entry.transactions.iter().flat_map(|tx| &tx.mutations);
        mutations.for_each(|mutation| keyspace.apply(mutation, None));
        (entry.version, keyspace.0.len() as u64)
    };
    run.truth.entries.iter().map(of_entry).collect()
}

impl Growth {
    /// Observes the complete attempts of a run.
    pub(super) fn observe(&mut self, run: &Observed<'_>, tried: &[Tried<'_>]) {
        let stored = stored(run);
        let mut samples: BTreeMap<&str, Vec<(u64, [u64; 3])>> = BTreeMap::new();
        for one in tried.iter().filter(|one| one.is_complete() && one.is_of_one_kind()) {
            let Some(version) = one.attempt.read_version else { continue };
            let before = stored.partition_point(|(at, _)| *at <= version);
            let keys = before.checked_sub(1).map_or(0, |last| stored[last].1);
            let found: Vec<_> = one.attempt.calls.iter().filter_map(found).collect();
            let (rows, bytes) = found.iter().fold((0, 0), |sum, (rows, bytes)| (sum.0 + rows, sum.1 + bytes));
            samples.entry(one.kind).or_default().push((keys, [rows, bytes, found.len() as u64]));
        }
        for (kind, samples) in samples {
            let line = |of: usize| Line::of(samples.iter().map(|(keys, read)| (*keys, read[of])));
            let most = samples.iter().map(|(keys, _)| *keys).max().unwrap_or(0);
            self.add(kind, &Lines { rows: line(0), bytes: line(1), calls: line(2), most });
        }
    }

    fn add(&mut self, kind: &str, theirs: &Lines) {
        let lines = self.0.entry(kind.to_owned()).or_default();
        lines.rows.merge(&theirs.rows);
        lines.bytes.merge(&theirs.bytes);
        lines.calls.merge(&theirs.calls);
        lines.most = lines.most.max(theirs.most);
    }

    pub(super) fn merge(&mut self, other: &Growth) {
        other.0.iter().for_each(|(kind, lines)| self.add(kind, lines));
    }

    /// An entry for each kind that grows, those that grow most first; one if none does.
    pub(super) fn advise(&self) -> Vec<AdviceEntry> {
        let mut entries: Vec<_> = self.0.iter().filter_map(|(kind, lines)| of_kind(kind, lines)).collect();
        entries.sort_by(|a, b| b.number.total_cmp(&a.number));
        let most = self.0.values().map(|lines| lines.most).max();
        if let (true, Some(most)) = (entries.is_empty(), most) {
            let measured = format!("no operation reads more as more is stored (up to {most} keys)");
            entries.push(entry("growth", Severity::Fine, None, measured, (0.0, "rows a key"), GROWTH));
        }
        entries
    }
}

fn of_kind(kind: &str, lines: &Lines) -> Option<AdviceEntry> {
    let (grown, verb, what) = match (lines.calls.grown(), lines.rows.grown()) {
        (Some(grown), _) => (grown, "does", "reads"),
        (None, grown) => (grown?, "reads", "rows"),
    };
    let size = |mean: &Mean| bytes(mean.read().round() as u64);
    let sizes = match lines.bytes.grown() {
        Some((_, few, many)) => format!(" (from {} to {})", size(&few), size(&many)),
        None => String::new(),
    };
    let (slope, few, many) = grown;
    let measured = format!(
        "{kind} {verb} {} {what} with {:.0} keys stored, and {} with {:.0}{sizes}",
        number(few.read()),
        few.stored(),
        number(many.read()),
        many.stored(),
    );
    let unit = format!("{what} a key");
    Some(entry("growth", Severity::Look, Some(kind), measured, (slope, &unit), GROWTH))
}
