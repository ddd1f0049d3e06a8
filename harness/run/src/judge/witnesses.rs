//! The witnesses of answers and effects that do not fit the model: the transactions of the operation, and
//! those that wrote what it read.

use super::{
    KnownCommit, Truth,
    writes::{LAST, Place, Writes, spans, written},
};
use crate::{
    describe::{
        misfit::{Cause, Misfit},
        sessions,
    },
    judge::finding::{Objection, Witness},
};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, History},
    ids::AttemptId,
    judges::Said,
    proto::Version,
};

/// An operation: its client, and its index in the client's list.
pub(super) type Key = (usize, usize);

/// An operation that was compared with the model at one of its places.
pub(super) struct Mismatched {
    pub(super) key: Key,
    /// The place and the attempt of its effect; `None` if it only read.
    pub(super) effect: Option<(Place, AttemptId)>,
    /// The read version; `None` if it did not read.
    pub(super) read_version: Option<Version>,
    /// That it does not fit, in a sentence.
    pub(super) message: String,
    /// The claim that it contradicts.
    pub(super) said: Said,
    /// Why it does not fit.
    pub(super) misfit: Misfit,
}

impl Mismatched {
    /// The objection to it.
    pub(super) fn objection(self, history: &History, truth: &Truth) -> Objection {
        let writes = Writes::of(history, truth);
        let mut witness = Witness::operation(self.key.0, self.key.1);
        let attempts = self.attempts(history);
        witness.attempts.extend(attempts.iter().map(|(id, _)| *id));
        match self.misfit.cause {
            Cause::Reads => self.add_reads(&mut witness, &writes, &attempts),
            Cause::Commit(version) => add_commit(&mut witness, &writes, &attempts, version),
            Cause::Time => {}
        }
        if let Some((expected, found)) = self.misfit.sides {
            (witness.expected, witness.found) = (Some(expected), Some(found));
        }
        Objection { message: self.message, said: self.said, witness }
    }

    /// The attempts that have this place. If they read nothing that matters, also the last one of the
    /// operation that did.
    fn attempts<'a>(&self, history: &'a History) -> Vec<(AttemptId, &'a Attempt)> {
        let is_placed = |id: AttemptId, attempt: &Attempt| match self.effect {
            Some((_, effect)) => effect == id,
            None => self.read_version.is_some() && attempt.read_version == self.read_version,
        };
        let mut attempts: Vec<_> =
            of_operation(history, self.key).filter(|(id, attempt)| is_placed(*id, attempt)).collect();
        let reads = |attempt: &Attempt| spans(attempt).iter().any(|span| !sessions::has(&span.begin));
        if !attempts.iter().any(|(_, attempt)| reads(attempt)) {
            attempts.extend(of_operation(history, self.key).filter(|(_, attempt)| reads(attempt)).last());
        }
        attempts
    }

    /// Adds what changed between the read versions and the commit, and the last writers of what the attempts
    /// read. If no operation had written it, the keys that they wrote themselves.
    fn add_reads(&self, witness: &mut Witness, writes: &Writes<'_>, attempts: &[(AttemptId, &Attempt)]) {
        let read = attempts.iter().filter_map(|(_, attempt)| Some((spans(attempt), attempt.read_version?)));
        let read: Vec<_> = read.map(|(spans, version)| (spans, (version, LAST))).collect();
        if let Some((place, _)) = self.effect {
            read.iter().for_each(|(spans, at)| witness.add(writes.between(spans, *at, place)));
        }
        read.iter().for_each(|(spans, at)| witness.add(writes.seen(spans, *at)));
        if witness.keys.is_empty() {
            witness.keys.extend(attempts.iter().flat_map(|(id, _)| writes.by(*id)));
        }
        if witness.keys.is_empty() {
            witness.keys.extend(attempts.iter().flat_map(|(_, attempt)| written(attempt)));
        }
    }
}

/// Adds the transactions that committed at a version, and the keys that they changed and the attempts had
/// read.
fn add_commit(
    witness: &mut Witness,
    writes: &Writes<'_>,
    attempts: &[(AttemptId, &Attempt)],
    version: Version,
) {
    let causes = writes.at(version);
    let read: Vec<_> = attempts.iter().flat_map(|(_, attempt)| spans(attempt)).collect();
    let changed = causes.iter().flat_map(|by| writes.by(*by));
    witness.keys.extend(changed.filter(|key| read.iter().any(|range| range.contains(key))));
    witness.attempts.extend(causes);
}

/// The witness of an operation: its transactions, and what they wrote. If none of them committed, its last
/// attempt.
pub(crate) fn of(history: &History, truth: &Truth, key: Key) -> Witness {
    let its: Vec<_> = of_operation(history, key).collect();
    let committed = its.iter().filter(|(id, _)| truth.place(*id).is_some());
    let committed: Vec<AttemptId> = committed.map(|(id, _)| *id).collect();
    let writes = Writes::of(history, truth);
    let mut witness = Witness {
        keys: committed.iter().flat_map(|id| writes.by(*id)).collect(),
        attempts: committed,
        ..Witness::operation(key.0, key.1)
    };
    if let (true, Some((id, last))) = (witness.attempts.is_empty(), its.last()) {
        witness.attempts.push(*id);
        witness.keys = written(last);
    }
    witness
}

/// The attempts of an operation.
pub(super) fn of_operation(
    history: &History,
    (client, index): Key,
) -> impl Iterator<Item = (AttemptId, &Attempt)> {
    let attempts = history.attempts.iter().enumerate();
    attempts.filter_map(move |(id, attempt)| {
        let attempt = attempt.as_ref()?;
        let is_its = (usize::from(attempt.client.0), attempt.operation) == (client, Some(index as u32));
        is_its.then_some((AttemptId(id as u32), attempt))
    })
}

/// Why an operation has no place in the order.
pub(super) enum Unplaced {
    /// It was reported to have no effect, and has one.
    Failed(Place, AttemptId),
    /// It has several effects.
    Twice(Vec<(Place, AttemptId)>),
    /// It was answered before its effect was durable.
    Early(AttemptId),
    /// It read at a version lower than one that was known to be committed when it was called.
    Stale(Version, KnownCommit),
}

impl Unplaced {
    /// What is wrong with it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Unplaced::Failed(..) => "an effect of what failed",
            Unplaced::Twice(_) => "several effects",
            Unplaced::Early(_) => "answered before it was durable",
            Unplaced::Stale(..) => "a stale read",
        }
    }

    /// The witness.
    pub(super) fn witness(self, key: Key, history: &History, truth: &Truth) -> Witness {
        let writes = Writes::of(history, truth);
        let operation = Witness::operation(key.0, key.1);
        match self {
            Unplaced::Failed((version, _), attempt) => Witness {
                attempts: vec![attempt],
                keys: writes.by(attempt),
                expected: Some("no effect".to_owned()),
                found: Some(format!("a commit at version {version}")),
                ..operation
            },
            Unplaced::Twice(effects) => Witness {
                attempts: effects.iter().map(|(_, attempt)| *attempt).collect(),
                keys: in_common(effects.iter().map(|(_, attempt)| writes.by(*attempt)).collect()),
                ..operation
            },
            Unplaced::Early(attempt) => Witness { attempts: vec![attempt], ..operation },
            Unplaced::Stale(read, known) => {
                let its: Vec<_> = of_operation(history, key)
                    .filter(|(_, attempt)| attempt.read_version == Some(read))
                    .collect();
                let spans: Vec<_> = its.iter().flat_map(|(_, attempt)| spans(attempt)).collect();
                let mut witness = Witness {
                    attempts: its.iter().map(|(id, _)| *id).chain(known.by).collect(),
                    expected: Some(format!("a read version of at least {}", known.version)),
                    found: Some(format!("read version {read}")),
                    ..operation
                };
                if known.by.is_none() {
                    witness.attempts.extend(writes.at(known.version));
                }
                witness.add(writes.between(&spans, (read, LAST), (known.version, LAST)));
                witness
            }
        }
    }
}

/// The keys that are in all of the lists; if there are none, all keys.
fn in_common(lists: Vec<Vec<Bytes>>) -> Vec<Bytes> {
    let all = || lists.iter().flatten();
    let common: Vec<Bytes> =
        all().filter(|key| lists.iter().all(|list| list.contains(key))).cloned().collect();
    if common.is_empty() { all().cloned().collect() } else { common }
}
