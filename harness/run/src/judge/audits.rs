//! Audits: the invariants of the workload hold at every version.
//!
//! They are read on the cluster during the run and at its end, and afterwards in states rebuilt from the log,
//! so that the first version that breaks an invariant can be reported. What the rebuilt states store is also
//! compared with the model at their versions, which goes through the operations beside them.

use super::{
    Keyspace, Snapshot, Undo,
    times::Times,
    witness::breaks,
    writes::{END, Place},
};
use crate::{
    describe::erased::{AnyModel, AnyWorkload},
    describe::misfit::Misfit,
    judge::finding::Objection,
};
use bytes::Bytes;
use futures::FutureExt;
use shaketable_sim::proto::{KeyRange, LogEntry, LoggedTransaction, Version};
use shaketable_tx::{Tx, points::Within};
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

/// Audits the states from version `from` on, among them the one at `looked`, at which somebody found an
/// invariant broken. Returns the number of audits, and the broken invariant as the error.
pub fn judge(
    workload: &AnyWorkload,
    times: &Times<'_>,
    from: Version,
    looked: Option<Version>,
) -> (u64, Result<(), Box<Broken>>) {
    let (audited, result, _) = Audits::new(workload, times, from, looked).finish();
    (audited, result)
}

/// What differs from the model at an audited version: the number of versions that agree with it for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differs(usize);

/// Audits of the states from a version on, in step with the model as far as the model comes.
pub struct Audits<'a> {
    workload: &'a AnyWorkload,
    times: &'a Times<'a>,
    from: Version,
    /// The versions that wrote something.
    writes: Vec<&'a Arc<LogEntry>>,
    database: Snapshot,
    tx: Tx,
    sizes: Sizes,
    /// The least number of versions from one audit to the next.
    stride: usize,
    /// The number of versions that the auditor of the run saw where it found a broken invariant.
    looked: Option<usize>,
    /// The number of versions in the state, and up to the last audit.
    done: usize,
    sound: usize,
    /// Whether the state is not audited yet.
    is_due: bool,
    audited: u64,
    /// What an audit found broken.
    broken: Option<Misfit>,
    differs: Option<Differs>,
    /// Whether an audit is running, or has panicked.
    runs: bool,
}

impl<'a> Audits<'a> {
    /// Audits of the states from version `from` on, of which the first has what was written until then.
    /// The state at `looked`, where the auditor of the run found a broken invariant, is one of them.
    pub fn new(
        workload: &'a AnyWorkload,
        times: &'a Times<'a>,
        from: Version,
        looked: Option<Version>,
    ) -> Audits<'a> {
        let writes: Vec<_> = times.truth.entries.iter().filter(|e| !e.transactions.is_empty()).collect();
        let first = writes.partition_point(|e| e.version <= from);
        let database = Snapshot::new(Keyspace::default());
        let mut sizes = Sizes::default();
        writes[..first].iter().for_each(|entry| sizes.advance(&database, entry));
        Audits {
            workload,
            times,
            from,
            looked: looked.map(|at| writes.partition_point(|e| e.version <= at)),
            stride: writes[first..].len().div_ceil(MOST_VERSIONS).max(1),
            writes,
            tx: Tx::new(database.clone()),
            database,
            sizes,
            done: first,
            sound: first,
            is_due: true,
            audited: 0,
            broken: None,
            differs: None,
            runs: false,
        }
    }

    /// Audits the states that lie before a place. `model` is the model at this place.
    pub fn advance(&mut self, before: Place, model: Option<&AnyModel>) {
        while !self.runs && self.broken.is_none() && self.moves() {
            let version = self.version();
            if version >= before.0 {
                return;
            }
            self.audit(version, model);
        }
    }

    /// The version of the state.
    fn version(&self) -> Version {
        self.done.checked_sub(1).map_or(self.from, |last| self.writes[last].version)
    }

    /// Moves to the next state that is to be audited; whether there is one.
    fn moves(&mut self) -> bool {
        if !self.is_due && self.done < self.writes.len() {
            self.is_due = true;
            while self.done < self.writes.len()
                && (self.done < self.sound + self.stride || !self.sizes.is_audit_due())
            {
                self.sizes.advance(&self.database, self.writes[self.done]);
                self.done += 1;
                if self.looked == Some(self.done) {
                    break;
                }
            }
        }
        self.is_due
    }

    fn audit(&mut self, version: Version, model: Option<&AnyModel>) {
        let _looks_at = Within::moment(self.times.at(version));
        self.runs = true;
        self.audited += 1;
        self.sizes.written = 0;
        let model = model.filter(|_| self.differs.is_none());
        let mut found = audit(self.workload, &self.tx, model);
        if found.is_err() && model.is_some() {
            // A broken invariant is found without the model as well.
            found = audit(self.workload, &self.tx, None);
            self.differs = found.is_ok().then_some(Differs(self.sound));
        }
        self.broken = found.err();
        if self.broken.is_none() {
            (self.sound, self.is_due) = (self.done, false);
        }
        self.runs = false;
    }

    /// Audits the remaining states. Returns the number of audits, the broken invariant as the error, and
    /// whether what is stored differs from the model.
    pub fn finish(mut self) -> (u64, Result<(), Box<Broken>>, Option<Differs>) {
        self.advance(END, None);
        let Some(broken) = self.broken.take() else { return (self.audited, Ok(()), self.differs) };
        let broken = match self.first_broken() {
            Some(first) => first.objection(self.times),
            // The setup broke it.
            None => Broken {
                since: self.from,
                objection: Objection {
                    message: broken.to_string(),
                    said: broken.said(),
                    ..Objection::default()
                },
            },
        };
        (self.audited, Err(Box::new(broken)), None)
    }

    /// The first transaction after the sound states that breaks an invariant.
    fn first_broken(&self) -> Option<First<'a>> {
        let database = Snapshot::new(Keyspace::default());
        self.writes[..self.sound].iter().for_each(|entry| apply(&database, entry.transactions.iter()));
        let snapshot = Tx::new(database.clone());
        for entry in &self.writes[self.sound..self.done] {
            let _looks_at = Within::moment(self.times.at(entry.version));
            for tx in &entry.transactions {
                apply(&database, [tx].into_iter());
                database.record_reads();
                if let Err(broken) = audit(self.workload, &snapshot, None) {
                    return Some(First {
                        version: entry.version,
                        tx,
                        broken,
                        reads: database.record_reads(),
                    });
                }
            }
        }
        None
    }
}

/// A search for the first transaction after which what is stored differs from the model, in step with it.
pub struct Search<'a> {
    workload: &'a AnyWorkload,
    times: &'a Times<'a>,
    next: Box<dyn Iterator<Item = (Version, &'a LoggedTransaction)> + 'a>,
    /// The transaction that is to be compared next, which the state has.
    last: Option<(Version, &'a LoggedTransaction)>,
    database: Snapshot,
    tx: Tx,
    found: Option<First<'a>>,
}

impl<'a> Search<'a> {
    /// A search from an audited version that agrees with the model.
    pub fn new(workload: &'a AnyWorkload, times: &'a Times<'a>, Differs(sound): Differs) -> Search<'a> {
        let writes = times.truth.entries.iter().filter(|entry| !entry.transactions.is_empty());
        let database = Snapshot::new(Keyspace::default());
        for entry in writes.clone().take(sound) {
            apply(&database, entry.transactions.iter());
        }
        let each = |entry: &'a Arc<LogEntry>| entry.transactions.iter().map(|tx| (entry.version, tx));
        let next = Box::new(writes.skip(sound).flat_map(each));
        let tx = Tx::new(database.clone());
        Search { workload, times, next, last: None, database, tx, found: None }
    }

    /// Compares the states that lie before a place. `model` is the model at this place.
    pub fn advance(&mut self, before: Place, model: &AnyModel) {
        while self.found.is_none() {
            if self.last.is_none() {
                self.last = self.next.next();
                apply(&self.database, self.last.iter().map(|(_, tx)| *tx));
            }
            let Some((version, tx)) = self.last.filter(|(version, tx)| place(*version, tx) < before) else {
                return;
            };
            self.last = None;
            let _looks_at = Within::moment(self.times.at(version));
            self.database.record_reads();
            if let Err(broken) = audit(self.workload, &self.tx, Some(model)) {
                self.found = Some(First { version, tx, broken, reads: self.database.record_reads() });
            }
        }
    }

    /// What was found.
    pub fn finish(self) -> Option<Broken> {
        let found = self.found?;
        let sides = found.broken.sides.clone();
        let mut broken = found.objection(self.times);
        if let Some((expected, found)) = sides {
            let witness = &mut broken.objection.witness;
            (witness.expected, witness.found) = (Some(expected), Some(found));
        }
        Some(broken)
    }
}

fn apply<'a>(database: &Snapshot, transactions: impl Iterator<Item = &'a LoggedTransaction>) {
    database.change(|state| transactions.flat_map(|tx| &tx.mutations).for_each(|m| state.apply(m, None)));
}

fn place(version: Version, tx: &LoggedTransaction) -> Place {
    (version, u32::from(tx.batch_index))
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
    fn objection(self, Times { history, truth, .. }: &Times<'_>) -> Broken {
        let by = self.tx.attempt.map_or_else(String::new, |a| format!(", written by attempt {}", a.0));
        let message = format!("from version {}{by}: {}", self.version, self.broken);
        let place = place(self.version, self.tx);
        let witness = breaks(history, truth, place, self.tx.attempt, &self.reads);
        Broken { since: self.version, objection: Objection { message, said: self.broken.said(), witness } }
    }
}

fn audit(workload: &AnyWorkload, snapshot: &Tx, model: Option<&AnyModel>) -> Result<(), Misfit> {
    match workload.audit(snapshot, model).now_or_never() {
        Some(Ok(verdict)) => verdict,
        Some(Err(error)) => Err(format!("the audit failed: {error}").into()),
        None => Err("the audit waits for something other than a read of its transaction".into()),
    }
}
