//! Model: the workload's sequential model, replayed in commit order, gives the answers that clients received.
//!
//! Every answered operation has a place in this order: after everything that was acknowledged before its
//! call, and before everything that became durable after its return.
//!
//! * The place of an operation with an effect is the commit of its writing transaction, which must be durable
//!   before the operation returns, unless its answer
//!   [allows a later effect](crate::describe::workload::Workload::may_land_late). An operation with
//!   [several effects](crate::describe::workload::Workload::effects) has a place at each, and all must be
//!   durable. A transaction that is [not an effect](crate::describe::workload::Workload::is_effect) according
//!   to the workload does not count.
//! * The place of an operation without an effect is the read version of one of its transactions. It may be
//!   any of them, because a layer may read again to ensure that an earlier attempt has no effect. Read
//!   versions lower than what was acknowledged before the call do not count; of an operation that may read
//!   [stale](crate::describe::workload::Workload::staleness) data, only those older than it may read do not.
//! * The place of an operation that neither wrote nor read may be any version of that time.
//!
//! An operation that was reported to have no effect must have none. An operation with an unknown outcome may
//! have one.
//!
//! The finding is the contradiction with the earliest place. A commit contradicts at its place, an operation
//! without an effect at the last of its places: before that, it may still fit. What follows a contradiction
//! is not judged, because the model is no longer that of the database.

use super::{
    KnownCommit, Timeline, Truth,
    witnesses::{Key, Mismatched, Unplaced},
    writes::{END, LAST, Place},
};
use crate::{
    describe::erased::{AnyModel, AnyStep, AnyValue, AnyWorkload},
    describe::waiting::Timing,
    describe::workload::{Operation, Outcome, Staleness},
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
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why there is no final model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// An answer or an effect contradicts the model at a version.
    Layer(Box<Objection>, Version),
    /// The model itself panicked at a version. This is not a finding about the layer.
    Model(Box<Objection>, Version),
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
    /// Read versions of all attempts but those that only prepare, ascending, without duplicates.
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
                if !attempt.prepares {
                    reads.entry(key).or_default().push(version);
                }
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

/// An operation that has no place, and from where on it cannot have one.
struct Misplaced {
    place: Place,
    key: Key,
    unplaced: Unplaced,
    why: String,
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

/// Looks at the model at places in the order: every operation before the place was done.
pub type Beside<'a> = &'a mut dyn FnMut(Place, &AnyModel);

/// Replays the operations and returns the final model, and how many waits were judged. `plan` has the planned
/// operations of each client, and `operations` their outcomes. `beside` looks at the model before each
/// operation, and at the end.
pub fn judge(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    history: &History,
    truth: &Truth,
    beside: Beside<'_>,
) -> (Result<AnyModel, Mismatch>, u64) {
    let traces = Traces::of(workload, history, truth);
    let durable = Timeline::of(history, truth);
    let shown = traces.shown_by_answers(workload, operations, &durable);
    let timing = Timing::of(history, durable.with(shown.into_iter()));
    let model = judged(workload, plan, operations, (history, truth), (&traces, &timing), beside);
    (model, timing.judged())
}

fn judged(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    (history, truth): (&History, &Truth),
    (traces, timing): (&Traces<'_>, &Timing),
    beside: Beside<'_>,
) -> Result<AnyModel, Mismatch> {
    let (mut order, mut first) = (Vec::new(), None::<Misplaced>);
    for (client, list) in operations.iter().enumerate() {
        // The last effect that the client was told of.
        let mut own = None;
        for (index, operation) in list.iter().enumerate() {
            let (key, op) = ((client, index), &plan[client][index]);
            let since = since(workload, op, operation.called, own, timing.timeline());
            if let (Some(Outcome::Answered(_)), Some(effect)) =
                (&operation.outcome, traces.effects(key).last())
            {
                own = own.max(Some(KnownCommit { version: effect.place.0, by: Some(effect.attempt) }));
            }
            let (found, misplaced) =
                candidates(workload, op, key, operation, traces, (since, timing.timeline()), truth);
            order.extend(found);
            let is_first = |it: &Misplaced| {
                first.as_ref().is_none_or(|first| (it.place, it.key) < (first.place, first.key))
            };
            first = misplaced.filter(is_first).or(first);
        }
    }
    order.sort_by_key(|candidate| (candidate.place, candidate.key));
    let until = first.as_ref().map(|first| (first.place, first.key));
    let replayed = replay(workload, plan, operations, order, until, timing, beside);
    let model = replayed.map_err(|(mismatch, version, misfit)| {
        mismatch(Box::new(misfit.objection(history, truth)), version)
    })?;
    let Some(Misplaced { place, key, unplaced, why }) = first else { return Ok(model) };
    let message = format!("{}: {why}", describe(key, &plan[key.0][key.1]));
    let said = Said::named(unplaced.name());
    let witness = unplaced.witness(key, history, truth);
    Err(Mismatch::Layer(Box::new(Objection { message, said, witness }), place.0))
}

/// What an operation must see, and why.
fn since(
    workload: &AnyWorkload,
    op: &AnyValue,
    called: Nanos,
    own: Option<KnownCommit>,
    timeline: &Timeline,
) -> (Option<KnownCommit>, Cow<'static, str>) {
    let Some(Staleness { at_most, sees_own }) = workload.staleness(op) else {
        return (timeline.known_before(called), "known to be committed before it was called".into());
    };
    let bound = u64::try_from(at_most.as_nanos()).unwrap_or(Nanos::MAX);
    let old = called.checked_sub(bound).and_then(|before| timeline.known_before(before));
    match own.filter(|own| sees_own && Some(own.version) > old.map(|old| old.version)) {
        Some(own) => (Some(own), "acknowledged to its own client before it was called".into()),
        None => {
            (old, format!("known to be committed {} s before it was called", at_most.as_secs_f64()).into())
        }
    }
}

/// The possible places of an operation, and why it has none from a place on.
fn candidates<'a>(
    workload: &AnyWorkload,
    op: &AnyValue,
    key: Key,
    operation: &'a Operation<AnyValue>,
    traces: &'a Traces<'a>,
    ((decided, why), timeline): ((Option<KnownCommit>, Cow<'static, str>), &Timeline),
    truth: &Truth,
) -> (Vec<Candidate<'a>>, Option<Misplaced>) {
    let effects = traces.effects(key);
    let misplaced = |place, unplaced, why| Some(Misplaced { place, key, unplaced, why });
    let of_effect = |answer, effect: &'a Effect<'a>| Candidate {
        place: effect.place,
        key,
        answer,
        effect: Some(effect),
        read_version: effect.read_version,
    };
    let answer = match &operation.outcome {
        Some(Outcome::Answered(answer)) => Some(answer),
        _ => None,
    };
    if let (Some(Outcome::Failed(error)), Some(effect)) = (&operation.outcome, effects.first()) {
        let message = format!(
            "it was reported to have failed with {error} and without an effect, but it committed at version {}",
            effect.place.0
        );
        let unplaced = Unplaced::Failed(effect.place, effect.attempt);
        return (Vec::new(), misplaced(effect.place, unplaced, message));
    }
    let allowed = workload.effects(op);
    let is_done = answer.is_some_and(|answer| !workload.is_refusal(answer));
    if effects.len() > *allowed.end() || is_done && effects.len() < *allowed.start() {
        let versions: Vec<String> = effects.iter().map(|effect| effect.place.0.to_string()).collect();
        let at = match versions.len() {
            0 => String::new(),
            _ => format!(": at versions {}", versions.join(", ")),
        };
        let times = match effects.len() {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let message = format!(
            "took effect {times}{at} (`effects` of its workload says how often it may: {})",
            match (*allowed.start(), *allowed.end()) {
                (0, most) => format!("at most {most}"),
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => most.to_string(),
                (least, most) => format!("{least} to {most}"),
            }
        );
        let all = effects.iter().map(|effect| (effect.place, effect.attempt)).collect();
        // The answer may be that of one too many. What is missing is missing when the operation returns.
        let at = effects.get(*allowed.end()).map(|effect| effect.place);
        let at = at.unwrap_or_else(|| (timeline.seen_by(operation.returned), LAST));
        let before = effects.iter().take(*allowed.end()).map(|effect| of_effect(None, effect)).collect();
        return (before, misplaced(at, Unplaced::Twice(all), message));
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
        return (Vec::new(), misplaced(late.place, Unplaced::Early(late.attempt), message));
    }
    if !effects.is_empty() {
        return (effects.iter().map(|effect| of_effect(answer, effect)).collect(), None);
    }
    let Some(answer) = answer else { return (Vec::new(), None) };
    let candidate = |version: Version, read_version| Candidate {
        place: (version, LAST),
        key,
        answer: Some(answer),
        effect: None,
        read_version,
    };
    let from = decided.map_or(0, |decided| decided.version);
    match traces.reads(key) {
        // Every version that became visible during the operation, and the latest one before.
        [] => {
            let up_to = |version| truth.entries.partition_point(|entry| entry.version <= version);
            let during = truth.entries[up_to(from).min(up_to(seen))..up_to(seen)].iter();
            let during = during.map(|entry| entry.version);
            (std::iter::once(from).chain(during).map(|version| candidate(version, None)).collect(), None)
        }
        [.., latest] if *latest < from => {
            let by = decided.and_then(|decided| decided.by);
            let message = format!(
                "read at version {latest}, but version {from}{} was {why}",
                by.map_or(String::new(), |by| format!(" (attempt {})", by.0))
            );
            let unplaced = Unplaced::Stale(*latest, KnownCommit { version: from, by });
            (Vec::new(), misplaced((*latest, LAST), unplaced, message))
        }
        reads => {
            let reads = reads.iter().filter(|version| **version >= from);
            (reads.map(|version| candidate(*version, Some(*version))).collect(), None)
        }
    }
}

/// Makes a mismatch of an objection and its version.
type MakeMismatch = fn(Box<Objection>, Version) -> Mismatch;

/// An operation that does not fit at a version, and which mismatch that is.
type Misfitting = (MakeMismatch, Version, Box<Mismatched>);

const LAYER: MakeMismatch = Mismatch::Layer;
const MODEL: MakeMismatch = Mismatch::Model;

/// Steps the model through the operations in order, up to the first contradiction, or `until` a place.
fn replay(
    workload: &AnyWorkload,
    plan: &[Vec<AnyValue>],
    operations: &[Vec<Operation<AnyValue>>],
    order: Vec<Candidate<'_>>,
    until: Option<(Place, Key)>,
    timing: &Timing,
    beside: Beside<'_>,
) -> Result<AnyModel, Misfitting> {
    let mut model = workload.model();
    // Operations without an effect that fit at one of their places.
    let mut matched: BTreeSet<Key> = BTreeSet::new();
    let last: BTreeMap<Key, Place> = order.iter().map(|candidate| (candidate.key, candidate.place)).collect();
    for Candidate { place, key, answer, effect, read_version } in order {
        if until.is_some_and(|until| until <= (place, key)) {
            break;
        }
        beside(place, &model);
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
        // Where a read does not fit, it changes nothing, if it fits at another of its places. If it does not,
        // the last of them is the one that the finding names, and nothing follows.
        let fits_elsewhere = !committed && (place < last[&key] || matched.contains(&key));
        let before = fits_elsewhere.then(|| model.clone());
        let stepped = catch_unwind(AssertUnwindSafe(|| workload.step(&mut model, &step)));
        let stepped = match stepped {
            Ok(stepped) => stepped,
            Err(panic) => {
                let panicked = panics::caught(&*panic);
                let message = format!("it panicked in {}: {panicked}", describe(key, op));
                let misfit = mismatched(message, (&panicked).into(), "it panicked".into());
                return Err((MODEL, version, misfit));
            }
        };
        match (stepped, before) {
            (Ok(()), _) if committed => {}
            (Ok(()), _) => drop(matched.insert(key)),
            (Err(_), Some(before)) => model = before,
            (Err(why), None) => {
                let how = match (committed, read_version) {
                    (true, _) => "committed",
                    (false, Some(_)) => "read",
                    (false, None) => "neither read nor wrote and may take place",
                };
                let message = format!("{}, which {how} at version {version}: {why}", describe(key, op));
                return Err((LAYER, version, mismatched(message, why.said(), why)));
            }
        }
    }
    if until.is_none() {
        beside(END, &model);
    }
    Ok(model)
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
