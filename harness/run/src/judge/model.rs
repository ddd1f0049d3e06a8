//! Model: the workload's sequential model, replayed in commit order, gives the answers that clients received.
//!
//! Every answered operation has a place in this order: after everything that was acknowledged before its
//! call, and before everything that became durable after its return.
//!
//! * The place of an operation with an effect is the commit of its writing transaction, which must be durable
//!   before the operation returns, unless its answer
//!   [allows a later effect](crate::describe::workload::Workload::may_land_late). An operation with
//!   [several effects](crate::describe::workload::Workload::ONE_EFFECT) has a place at each, and all must be
//!   durable. A transaction that is [not an effect](crate::describe::workload::Workload::is_effect) according
//!   to the workload does not count.
//! * The place of an operation without an effect is the read version of one of its transactions. It may be
//!   any of them, because a layer may read again to ensure that an earlier attempt has no effect. Read
//!   versions lower than what was acknowledged before the call do not count, unless the operation may read
//!   [stale](crate::describe::workload::Workload::may_read_stale) data.
//! * The place of an operation that neither wrote nor read may be any version of that time.
//!
//! An operation that was reported to have no effect must have none. An operation with an unknown outcome may
//! have one.

use super::{
    KnownCommit, Timeline, Truth,
    witnesses::{Key, Mismatched, Unplaced},
    writes::{LAST, Place},
};
use crate::{
    describe::erased::{AnyModel, AnyStep, AnyValue, AnyWorkload},
    describe::waiting::Timing,
    describe::workload::{Operation, Outcome},
    judge::finding::Objection,
    judge::panics,
};
use shaketable_sim::{
    history::History,
    ids::AttemptId,
    judges::Said,
    proto::{Mutation, Version},
    rt::Nanos,
};
use std::{
    collections::BTreeMap,
    ops::{
        Bound::{Excluded, Included},
        RangeBounds,
    },
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why there is no final model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// An answer or an effect contradicts the model.
    Layer(Box<Objection>),
    /// The model itself panicked. This is not a finding about the layer.
    Model(Box<Objection>),
}

/// A committed transaction of an operation.
struct Effect<'a> {
    place: Place,
    attempt: AttemptId,
    read_version: Option<Version>,
    mutations: &'a [Mutation],
}

/// The transactions of each operation in the history.
struct Traces<'a> {
    /// Committed transactions that are effects, ascending by place.
    effects: BTreeMap<Key, Vec<Effect<'a>>>,
    /// Read versions of all attempts, ascending, without duplicates.
    reads: BTreeMap<Key, Vec<Version>>,
    /// The fresh read versions, with the ends of their attempts.
    fresh: BTreeMap<Key, Vec<(Nanos, Version)>>,
}

impl<'a> Traces<'a> {
    fn of(workload: &AnyWorkload, history: &History, truth: &'a Truth) -> Traces<'a> {
        let mut effects: BTreeMap<Key, Vec<Effect<'_>>> = BTreeMap::new();
        let mut reads: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                let attempt = tx.attempt.and_then(|id| Some((id, history.attempts[id.0 as usize].as_ref()?)));
                if let Some((id, attempt)) = attempt
                    && let Some(operation) = attempt.operation
                    && workload.is_effect(&tx.mutations)
                {
                    let place = (entry.version, u32::from(tx.batch_index));
                    let effect = Effect {
                        place,
                        attempt: id,
                        read_version: attempt.read_version,
                        mutations: &tx.mutations,
                    };
                    effects.entry((attempt.client.0 as usize, operation as usize)).or_default().push(effect);
                }
            }
        }
        let mut fresh: BTreeMap<Key, Vec<(Nanos, Version)>> = BTreeMap::new();
        for attempt in history.attempts.iter().flatten() {
            if let (Some(operation), Some(version)) = (attempt.operation, attempt.read_version) {
                let key = (attempt.client.0 as usize, operation as usize);
                reads.entry(key).or_default().push(version);
                if attempt.fresh {
                    fresh.entry(key).or_default().push((attempt.ended, version));
                }
            }
        }
        for versions in reads.values_mut() {
            versions.sort_unstable();
            versions.dedup();
        }
        Traces { effects, reads, fresh }
    }

    fn effects(&self, key: Key) -> &[Effect<'a>] {
        self.effects.get(&key).map_or(&[], Vec::as_slice)
    }

    fn reads(&self, key: Key) -> &[Version] {
        self.reads.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The highest fresh read version that an operation had received when it returned.
    fn received(&self, key: Key, returned: Nanos) -> Option<Version> {
        let fresh = self.fresh.get(&key).into_iter().flatten();
        fresh.filter(|(ended, _)| *ended <= returned).map(|(_, version)| *version).max()
    }

    /// The versions that answers show to be committed, with the times of these answers. An answer that allows
    /// a later effect shows nothing, and no answer shows what became visible after its return.
    fn shown_by_answers(
        &self,
        workload: &AnyWorkload,
        operations: &[Vec<Operation<AnyValue>>],
        durable: &Timeline,
    ) -> Vec<(Nanos, Version)> {
        let each = operations.iter().enumerate().flat_map(|(client, list)| {
            list.iter().enumerate().map(move |(index, operation)| ((client, index), operation))
        });
        each.filter(|(_, operation)| match &operation.outcome {
            Some(Outcome::Answered(answer)) => !workload.may_land_late(answer),
            _ => false,
        })
        .filter_map(|(key, operation)| {
            let seen = durable.seen_by(operation.returned);
            let last = self.effects(key).iter().rev().map(|effect| effect.place.0).find(|at| *at <= seen);
            let known = last.max(self.received(key, operation.returned));
            let version = known.or_else(|| self.reads(key).first().copied());
            version.map(|version| (operation.returned, version))
        })
        .collect()
    }
}

/// A planned step of the model: an operation at one of its possible places.
struct Candidate<'a> {
    place: Place,
    key: Key,
    answer: Option<&'a AnyValue>,
    /// The effect; `None` for a read.
    effect: Option<&'a Effect<'a>>,
    read_version: Option<Version>,
}

/// Replays the operations and returns the final model, and how many waits were judged. `plan` has the planned
/// operations of each client, and `operations` their outcomes.
pub fn judge(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    history: &History,
    truth: &Truth,
) -> (Result<AnyModel, Mismatch>, u64) {
    let traces = Traces::of(workload, history, truth);
    let durable = Timeline::of(history, truth);
    let shown = traces.shown_by_answers(workload, operations, &durable);
    let timing = Timing::of(history, durable.with(shown.into_iter()));
    let model = judged(workload, plan, operations, (history, truth), &traces, &timing);
    (model, timing.judged())
}

fn judged(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    (history, truth): (&History, &Truth),
    traces: &Traces<'_>,
    timing: &Timing,
) -> Result<AnyModel, Mismatch> {
    let mut order = Vec::new();
    for (client, list) in operations.iter().enumerate() {
        for (index, operation) in list.iter().enumerate() {
            let (key, op) = ((client, index), &plan[client][index]);
            let found = candidates(workload, op, key, operation, traces, timing.timeline(), truth);
            order.extend(found.map_err(|(unplaced, why)| {
                let message = format!("{}: {why}", describe(key, op));
                let said = Said::named(unplaced.name());
                let witness = unplaced.witness(key, history, truth);
                Mismatch::Layer(Box::new(Objection { message, said, witness }))
            })?);
        }
    }
    order.sort_by_key(|candidate| (candidate.place, candidate.key));
    let replayed = replay(workload, plan, operations, order, timing);
    replayed.map_err(|(mismatch, misfit)| mismatch(Box::new(misfit.objection(history, truth))))
}

/// The possible places of an operation.
fn candidates<'a>(
    workload: &AnyWorkload,
    op: &AnyValue,
    key: Key,
    operation: &'a Operation<AnyValue>,
    traces: &'a Traces<'a>,
    timeline: &Timeline,
    truth: &Truth,
) -> Result<Vec<Candidate<'a>>, (Unplaced, String)> {
    let effects = traces.effects(key);
    let answer = match &operation.outcome {
        Some(Outcome::Answered(answer)) => Some(answer),
        _ => None,
    };
    if let (Some(Outcome::Failed(error)), Some(effect)) = (&operation.outcome, effects.first()) {
        let message = format!(
            "it was reported to have failed with {error} and without an effect, but it committed at version {}",
            effect.place.0
        );
        return Err((Unplaced::Failed(effect.place, effect.attempt), message));
    }
    if workload.has_one_effect() && effects.len() > 1 {
        let versions: Vec<String> = effects.iter().map(|effect| effect.place.0.to_string()).collect();
        let message = format!(
            "took effect {} times: at versions {} (a workload whose operations may do so has ONE_EFFECT = false)",
            effects.len(),
            versions.join(", ")
        );
        let effects = effects.iter().map(|effect| (effect.place, effect.attempt)).collect();
        return Err((Unplaced::Twice(effects), message));
    }
    let seen = timeline.seen_by(operation.returned);
    let late = effects.iter().find(|effect| effect.place.0 > seen);
    if let (Some(answer), Some(late)) = (answer, late)
        && !workload.may_land_late(answer)
    {
        let message = format!(
            "it committed at version {}, and was answered at {:.6} s, before that version was durable",
            late.place.0,
            operation.returned as f64 / 1e9
        );
        return Err((Unplaced::Early(late.attempt), message));
    }
    if !effects.is_empty() {
        let candidate = |effect: &'a Effect<'a>| Candidate {
            place: effect.place,
            key,
            answer,
            effect: Some(effect),
            read_version: effect.read_version,
        };
        return Ok(effects.iter().map(candidate).collect());
    }
    let Some(answer) = answer else { return Ok(Vec::new()) };
    let candidate = |version: Version, read_version| Candidate {
        place: (version, LAST),
        key,
        answer: Some(answer),
        effect: None,
        read_version,
    };
    let decided = match workload.may_read_stale(op) {
        true => None,
        false => timeline.known_before(operation.called),
    };
    let from = decided.map_or(0, |decided| decided.version);
    match traces.reads(key) {
        // Every version that became visible during the operation, and the latest one before.
        [] => {
            let during = truth.entries.iter().map(|entry| entry.version);
            let during = during.filter(|version| (Excluded(from), Included(seen)).contains(version));
            Ok(std::iter::once(from).chain(during).map(|version| candidate(version, None)).collect())
        }
        [.., latest] if *latest < from => {
            let by = decided.and_then(|decided| decided.by);
            let message = format!(
                "read at version {latest}, but version {from}{} was known to be committed before it was called",
                by.map_or(String::new(), |by| format!(" (attempt {})", by.0))
            );
            Err((Unplaced::Stale(*latest, KnownCommit { version: from, by }), message))
        }
        reads => {
            let reads = reads.iter().filter(|version| **version >= from);
            Ok(reads.map(|version| candidate(*version, Some(*version))).collect())
        }
    }
}

/// An operation that does not fit, and which mismatch that is.
type Misfitting = (fn(Box<Objection>) -> Mismatch, Box<Mismatched>);

/// Steps the model through the operations in order.
fn replay(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    order: Vec<Candidate<'_>>,
    timing: &Timing,
) -> Result<AnyModel, Misfitting> {
    let mut model = workload.model();
    // Operations without an effect: the mismatch at the last place, or `None` once one of the places matches.
    let mut mismatches: BTreeMap<Key, Option<Box<Mismatched>>> = BTreeMap::new();
    for Candidate { place, key, answer, effect, read_version } in order {
        let (client, index) = key;
        let (version, batch) = place;
        let op = &plan[client][index];
        let committed = effect.is_some();
        let Operation { called, returned, .. } = operations[client][index];
        let step = AnyStep {
            client,
            index,
            op,
            answer,
            committed,
            stamp: committed.then(|| versionstamp(version, batch)),
            read_version,
            mutations: effect.map_or(&[], |effect| effect.mutations),
            called,
            returned,
            timing,
        };
        let mismatched = |message, said, misfit| {
            let effect = effect.map(|effect| (place, effect.attempt));
            Box::new(Mismatched { key, effect, read_version, message, said, misfit })
        };
        // A read may fit at another of its places, and changes nothing where it does not.
        let before = (!committed && !workload.misfit_keeps_model()).then(|| model.clone());
        let stepped = catch_unwind(AssertUnwindSafe(|| workload.step(&mut model, &step)));
        let stepped = stepped.map_err(|panic| {
            let panicked = panics::caught(&*panic);
            let message = format!("it panicked in {}: {panicked}", describe(key, op));
            (Mismatch::Model as fn(_) -> _, mismatched(message, (&panicked).into(), "it panicked".into()))
        });
        let matches = stepped?.map_err(|why| {
            let how = match (committed, read_version) {
                (true, _) => "committed",
                (false, Some(_)) => "read",
                (false, None) => "neither read nor wrote and may take place",
            };
            let message = format!("{}, which {how} at version {version}: {why}", describe(key, op));
            mismatched(message, why.said(), why)
        });
        match matches {
            Err(misfit) if committed => return Err((Mismatch::Layer, misfit)),
            Err(misfit) => {
                model = before.unwrap_or(model);
                // The last of its places is the one that the finding names.
                if mismatches.get(&key).is_none_or(Option::is_some) {
                    mismatches.insert(key, Some(misfit));
                }
            }
            Ok(()) => drop(mismatches.insert(key, None)),
        }
    }
    mismatches.into_values().flatten().next().map_or(Ok(model), |misfit| Err((Mismatch::Layer, misfit)))
}

pub(crate) fn describe((client, index): Key, op: &AnyValue) -> String {
    format!("operation {index} of client {client} ({op:?})")
}

/// Eight bytes of commit version and two bytes of batch order, big-endian.
fn versionstamp(version: Version, batch: u32) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp[8..].copy_from_slice(&(batch as u16).to_be_bytes());
    stamp
}
