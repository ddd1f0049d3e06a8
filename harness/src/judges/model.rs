//! Model: the workload's sequential model, replayed in commit order, gives the answers that
//! clients got.
//!
//! Every answered operation has a place in that order, after everything that was acknowledged before its
//! call and before its return:
//!
//! * An operation with an effect stands where its writing transaction committed, which was durable before
//!   the operation was answered, unless the workload says that such an answer
//!   [leaves it open](Workload::may_land_late). A transaction that the workload calls no effect does not count.
//! * An operation without an effect stands where one of its transactions read. Which one gave the answer
//!   only the layer knows, which may have looked again to make sure that an earlier attempt is without
//!   effect. Looks from before what was acknowledged before the call do not count, unless the workload
//!   says that the operation may read [stale](Workload::may_read_stale) data.
//! * An operation that neither wrote nor read stands at any version of that time.
//!
//! An operation that was reported to have no effect must have none; one whose outcome is unknown may have
//! one.

use super::{Timeline, Truth, waiting::Timing};
use crate::{
    panics,
    workload::{Operation, Outcome, Step, Workload},
};
use shaketable_sim::{
    history::History,
    proto::{Mutation, Version},
    rt::Nanos,
};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why there is no final model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// An answer or an effect does not fit the model.
    Layer(String),
    /// The model itself failed, which says nothing about the layer.
    Model(String),
}

/// Which operation: the client, and the place in its list.
type Key = (usize, usize);

/// Where an operation stands: after everything of lower version and batch index.
type Place = (Version, u32);

/// After every transaction of its version.
const LAST: u32 = u32::MAX;

/// A committed transaction of an operation.
struct Effect<'a> {
    place: Place,
    read_version: Option<Version>,
    mutations: &'a [Mutation],
}

/// What the operations of a run left in its history.
struct Traces<'a> {
    /// Committed transactions that are effects, ascending by place.
    effects: BTreeMap<Key, Vec<Effect<'a>>>,
    /// Read versions of all attempts, ascending, without repetition.
    looks: BTreeMap<Key, Vec<Version>>,
}

impl<'a> Traces<'a> {
    fn of<W: Workload>(workload: &W, history: &History, truth: &'a Truth) -> Traces<'a> {
        let mut effects: BTreeMap<Key, Vec<Effect<'_>>> = BTreeMap::new();
        let mut looks: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        for entry in &truth.entries {
            for tx in &entry.transactions {
                let attempt = tx.attempt.and_then(|id| history.attempts[id.0 as usize].as_ref());
                if let Some(attempt) = attempt
                    && let Some(operation) = attempt.operation
                    && workload.is_effect(&tx.mutations)
                {
                    let place = (entry.version, u32::from(tx.batch_index));
                    let effect =
                        Effect { place, read_version: attempt.read_version, mutations: &tx.mutations };
                    effects.entry((attempt.client.0 as usize, operation as usize)).or_default().push(effect);
                }
            }
        }
        for attempt in history.attempts.iter().flatten() {
            if let (Some(operation), Some(version)) = (attempt.operation, attempt.read_version) {
                looks.entry((attempt.client.0 as usize, operation as usize)).or_default().push(version);
            }
        }
        for versions in looks.values_mut() {
            versions.sort_unstable();
            versions.dedup();
        }
        Traces { effects, looks }
    }

    fn effects(&self, key: Key) -> &[Effect<'a>] {
        self.effects.get(&key).map_or(&[], Vec::as_slice)
    }

    fn looks(&self, key: Key) -> &[Version] {
        self.looks.get(&key).map_or(&[], Vec::as_slice)
    }

    /// When an answer showed that a version is committed. An answer that leaves open what lands late shows
    /// nothing, and what landed after the return was not shown by it.
    fn shown<W: Workload>(
        &self,
        workload: &W,
        operations: &[Vec<Operation<W::Answer>>],
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
            last.or_else(|| self.looks(key).first().copied()).map(|version| (operation.returned, version))
        })
        .collect()
    }
}

/// One step of the model to come: an operation at one of the places where it may stand.
struct Stand<'a, A> {
    place: Place,
    key: Key,
    answer: Option<&'a A>,
    /// The effect; `None` for a look.
    effect: Option<&'a Effect<'a>>,
    read_version: Option<Version>,
}

/// Replays the operations. `operations` is each client's list as it went. Gives the final model.
pub fn judge<W: Workload>(
    workload: &W,
    plan: &[Vec<W::Op>],
    operations: &[Vec<Operation<W::Answer>>],
    history: &History,
    truth: &Truth,
) -> Result<W::Model, Unfit> {
    let traces = Traces::of(workload, history, truth);
    let durable = Timeline::of(history, truth);
    let shown = traces.shown(workload, operations, &durable);
    let timeline = durable.with(shown.into_iter());
    let mut order = Vec::new();
    for (client, list) in operations.iter().enumerate() {
        for (index, operation) in list.iter().enumerate() {
            let (key, op) = ((client, index), &plan[client][index]);
            let stands = stands(workload, op, key, operation, &traces, &timeline, truth);
            order.extend(stands.map_err(|why| Unfit::Layer(format!("{}: {why}", named::<W>(key, op))))?);
        }
    }
    order.sort_by_key(|stand| (stand.place, stand.key));
    replay(workload, plan, operations, order, &Timing::of(history, timeline))
}

/// Where an operation may stand.
fn stands<'a, W: Workload>(
    workload: &W,
    op: &W::Op,
    key: Key,
    operation: &'a Operation<W::Answer>,
    traces: &'a Traces<'a>,
    timeline: &Timeline,
    truth: &Truth,
) -> Result<Vec<Stand<'a, W::Answer>>, String> {
    let effects = traces.effects(key);
    let answer = match &operation.outcome {
        Some(Outcome::Answered(answer)) => Some(answer),
        _ => None,
    };
    if let (Some(Outcome::GaveUp(error)), Some(effect)) = (&operation.outcome, effects.first()) {
        return Err(format!(
            "its client was told that it failed with {error} and has no effect, but it committed at version {}",
            effect.place.0
        ));
    }
    if W::ONE_EFFECT && effects.len() > 1 {
        let versions: Vec<String> = effects.iter().map(|effect| effect.place.0.to_string()).collect();
        return Err(format!("took effect {} times: at versions {}", effects.len(), versions.join(", ")));
    }
    let seen = timeline.seen_by(operation.returned);
    if let (Some(answer), Some(first)) = (answer, effects.first())
        && first.place.0 > seen
        && !workload.may_land_late(answer)
    {
        return Err(format!(
            "answered at {:.6} s, before version {} was durable, at which it committed",
            operation.returned as f64 / 1e9,
            first.place.0
        ));
    }
    if !effects.is_empty() {
        let stand = |effect: &'a Effect<'a>| Stand {
            place: effect.place,
            key,
            answer,
            effect: Some(effect),
            read_version: effect.read_version,
        };
        return Ok(effects.iter().map(stand).collect());
    }
    let Some(answer) = answer else { return Ok(Vec::new()) };
    let look = |version: Version, read_version| Stand {
        place: (version, LAST),
        key,
        answer: Some(answer),
        effect: None,
        read_version,
    };
    let decided = match workload.may_read_stale(op) {
        true => None,
        false => timeline.decided_before(operation.called),
    };
    let from = decided.map_or(0, |decided| decided.version);
    match traces.looks(key) {
        // Every version of its time, and the one that stood when it was called.
        [] => {
            let during = truth.entries.iter().map(|entry| entry.version);
            let during = during.filter(|version| *version > from && *version <= seen);
            Ok(std::iter::once(from).chain(during).map(|version| look(version, None)).collect())
        }
        [.., latest] if *latest < from => Err(format!(
            "read at version {latest}, but version {from}{} was known to be committed before it was called",
            decided.and_then(|decided| decided.by).map_or(String::new(), |by| format!(" (attempt {})", by.0))
        )),
        looks => {
            let looks = looks.iter().filter(|version| **version >= from);
            Ok(looks.map(|version| look(*version, Some(*version))).collect())
        }
    }
}

/// Steps the model through the operations in their order.
fn replay<W: Workload>(
    workload: &W,
    plan: &[Vec<W::Op>],
    operations: &[Vec<Operation<W::Answer>>],
    order: Vec<Stand<'_, W::Answer>>,
    timing: &Timing,
) -> Result<W::Model, Unfit> {
    let mut model = workload.model();
    // Operations without effect: what does not fit, `None` once a look has fitted.
    let mut unfit: BTreeMap<Key, Option<String>> = BTreeMap::new();
    for Stand { place: (version, batch), key, answer, effect, read_version } in order {
        let (client, index) = key;
        let op = &plan[client][index];
        let committed = effect.is_some();
        let Operation { called, returned, .. } = operations[client][index];
        let step = Step {
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
        let stepped = catch_unwind(AssertUnwindSafe(|| workload.step(&mut model, &step)));
        let stepped = stepped.map_err(|panic| {
            Unfit::Model(format!("it panicked in {}: {}", named::<W>(key, op), panics::message(&*panic)))
        });
        let fits = stepped?.map_err(|why| {
            let how = match (committed, read_version) {
                (true, _) => "committed",
                (false, Some(_)) => "read",
                (false, None) => "neither read nor wrote and could stand",
            };
            format!("{}, which {how} at version {version}: {why}", named::<W>(key, op))
        });
        match fits {
            Err(why) if committed => return Err(Unfit::Layer(why)),
            Err(why) => drop(unfit.entry(key).or_insert(Some(why))),
            Ok(()) if committed => {}
            Ok(()) => drop(unfit.insert(key, None)),
        }
    }
    unfit.into_values().flatten().next().map_or(Ok(model), |why| Err(Unfit::Layer(why)))
}

fn named<W: Workload>((client, index): Key, op: &W::Op) -> String {
    format!("operation {index} of client {client} ({op:?})")
}

/// Eight bytes of commit version, two of batch order, big-endian.
fn versionstamp(version: Version, batch: u32) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp[8..].copy_from_slice(&(batch as u16).to_be_bytes());
    stamp
}
