//! The sequential model.
//!
//! It follows what each transaction wrote, and checks that this is a step which the queue allows to the
//! operation that holds the lease. Whether what the operations returned is right is decided at the end.

use super::{Act, Answer, End, Handling, Leased, LeasedOp, Name, leased, stage::Stage};
use crate::shared::{Call, added, apply_below, stamp_in};
use shaketable::{Misfit, judge::Keyspace, workload::Step};
use shaketable_layers::{leased_queue::Error, queue::Position};
use std::collections::{BTreeMap, BTreeSet};

/// The model: what is stored, which operation holds which item, and how operations ended.
#[derive(Clone, Default)]
pub struct Model {
    rows: Keyspace,
    pub(super) stage: Stage,
    /// The operation that made the last claim of an item.
    holders: BTreeMap<Position, Call>,
    claims: BTreeMap<Call, Name>,
    ends: BTreeMap<Call, End>,
    acknowledged: BTreeSet<Name>,
    pub(super) told: BTreeMap<Call, (Name, End)>,
}

impl Model {
    /// Applies what a transaction wrote, and checks that it was allowed to.
    fn commit(&mut self, step: &Step<'_, Leased>) -> Result<(), Misfit> {
        let after = self.stage.changed(apply_below(leased().subspace(), step.mutations, &mut self.rows))?;
        let before = std::mem::replace(&mut self.stage, after.clone());
        let call = (step.client, step.index);
        if let LeasedOp::together { acts } = step.op {
            return self.together(acts, before, &after, step);
        }

        let (put, left) = (added(&after.waiting, &before.waiting), added(&before.waiting, &after.waiting));
        let (claimed, ended) =
            (added(&after.claimed, &before.claimed), added(&before.claimed, &after.claimed));
        let leases = [added(&after.leases, &before.leases), added(&before.leases, &after.leases)];
        let changed: BTreeSet<Position> =
            leases.into_iter().flatten().map(|(position, _)| position).collect();
        let changed = Vec::from_iter(changed);
        let lease = |stage: &Stage, p: &Position| stage.leases.get(p).copied();
        let mine = |p: &Position| self.holders.get(p) == Some(&call);
        match (step.op, &put[..], &left[..], &claimed[..], &ended[..], &changed[..]) {
            (
                LeasedOp::work { .. } | LeasedOp::expire {} | LeasedOp::deep { beyond: 0 },
                [],
                [],
                [],
                [],
                [],
            ) => Ok(()),
            (LeasedOp::enqueue { batch }, [(position, name)], [], [], [], []) => {
                match *name == (batch.client, batch.number) && stamp_in(position) == step.stamp {
                    true => Ok(()),
                    false => Err(format!("enqueued {name:?} at {position:?}").into()),
                }
            }
            (LeasedOp::work { .. }, [], [item], [same], [], [at]) if item == same && item.0 == *at => {
                if before.waiting.get_min() != Some(item) {
                    return Err(format!("claimed {item:?} out of turn: {:?}", before.waiting).into());
                }
                let token = lease(&before, at).map_or(0, |(token, ..)| token);
                match lease(&after, at) {
                    Some((next, 0, true)) if next > token => {}
                    other => return Err(format!("the lease {other:?} follows the token {token}").into()),
                }
                self.holders.insert(*at, call);
                match self.claims.insert(call, item.1) {
                    None => Ok(()),
                    Some(other) => Err(format!("claimed {item:?} and also {other:?}").into()),
                }
            }
            (LeasedOp::work { .. }, [], [], [], [], [at]) => {
                let (old, new) = (lease(&before, at), lease(&after, at));
                let renewed = old.map(|(token, revision, held)| (token, revision + 1, held));
                match mine(at) && new == renewed && old.is_some_and(|(_, _, held)| held) {
                    true => Ok(()),
                    false => {
                        Err(format!("changed the lease {old:?} to {new:?}, and holds it: {}", mine(at))
                            .into())
                    }
                }
            }
            (LeasedOp::work { .. }, [], [], [], [item], [at])
                if item.0 == *at && lease(&after, at).is_none() =>
            {
                if !mine(at) {
                    return Err(format!(
                        "acknowledged {item:?}, which is held by {:?}",
                        self.holders.get(at)
                    )
                    .into());
                }
                if !self.acknowledged.insert(item.1) {
                    return Err(format!("acknowledged {item:?} again").into());
                }
                self.end(call, End::Acknowledged)
            }
            (LeasedOp::work { .. } | LeasedOp::expire {}, [item], [], [], [same], [at])
                if item == same && item.0 == *at =>
            {
                let unheld = lease(&before, at).map(|(token, revision, _)| (token, revision, false));
                if lease(&after, at) != unheld {
                    return Err(format!("{item:?} comes back under the lease {:?}", lease(&after, at)).into());
                }
                match step.op {
                    LeasedOp::work { .. } if !mine(at) => {
                        Err(format!("released {item:?}, which another operation holds").into())
                    }
                    LeasedOp::work { .. } => self.end(call, End::Released),
                    _ => Ok(()),
                }
            }
            _ => Err(format!(
                "no step of the queue: put {put:?}, left {left:?}, claimed {claimed:?}, ended {ended:?}, \
                 changed the leases {changed:?} from {:?} to {:?}",
                before.leases, after.leases
            )
            .into()),
        }
    }

    /// Performs several calls in sequence, and compares what they returned and wrote.
    fn together(
        &mut self,
        acts: &[Act],
        mut stage: Stage,
        after: &Stage,
        step: &Step<'_, Leased>,
    ) -> Result<(), Misfit> {
        let Some((told, ends)) = stage.together(acts) else {
            return Err("committed, but the model refuses to read its own items".into());
        };
        if let Some(answer) = step.answer
            && *answer != Answer::Together(told.clone())
        {
            return Err(format!("returned {answer:?}, the model returns {told:?}").into());
        }
        let put = acts.iter().filter_map(|act| match act {
            Act::Put(batch) => Some((batch.client, batch.number)),
            _ => None,
        });
        let mut new = added(&after.waiting, &stage.waiting);
        new.retain(|(at, _)| !stage.waiting.contains_key(at));
        let stamped = |at: &Position| step.stamp.is_some() && stamp_in(at) == step.stamp;
        if !new.iter().map(|(_, name)| *name).eq(put) || !new.iter().all(|(at, _)| stamped(at)) {
            return Err(format!("enqueued {new:?} by {acts:?}").into());
        }
        stage.waiting.extend(new);
        if stage != *after {
            return Err(format!("{acts:?} led to {after:?}, it should lead to {stage:?}").into());
        }
        for (at, name, handling) in ends {
            self.holders.insert(at, (step.client, step.index));
            if handling == Handling::Acknowledge && !self.acknowledged.insert(name) {
                return Err(format!("acknowledged {name:?} again").into());
            }
        }
        Ok(())
    }

    fn end(&mut self, call: Call, end: End) -> Result<(), Misfit> {
        match self.ends.insert(call, end) {
            None => Ok(()),
            Some(before) => Err(format!("ended as {end:?} and as {before:?}").into()),
        }
    }

    /// What is wrong with what a worker returned, given the whole history.
    pub(super) fn misled(&self, call: &Call, (name, end): &(Name, End)) -> Option<String> {
        let (claimed, ended) = (self.claims.get(call), self.ends.get(call));
        let fits = match end {
            End::Acknowledged | End::Released => ended == Some(end),
            End::Lost | End::Silent => ended.is_none(),
            End::Twice => false,
        };
        (claimed != Some(name) || !fits).then(|| {
            format!(
                "says it claimed {name:?} and that this ended as {end:?}; it claimed {claimed:?}, which ended as \
                 {ended:?}"
            )
        })
    }
}

impl Leased {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if let Some(Answer::Worked(name, end)) = step.answer {
            model.told.insert((step.client, step.index), (*name, *end));
        }
        if step.committed {
            if step.answer == Some(&Answer::Nothing) && !model.stage.waiting.is_empty() {
                return Err(format!("found nothing, but {:?} wait", model.stage.waiting).into());
            }
            return model.commit(step);
        }
        let fits = match (step.op, step.answer) {
            (_, None) | (LeasedOp::expire {}, Some(Answer::Expired)) => true,
            (LeasedOp::count { most }, Some(Answer::Count(waiting, claimed))) => {
                let counted = [model.stage.waiting.len(), model.stage.claimed.len()];
                [*waiting, *claimed] == counted.map(|count| count.min((*most).max(1)))
            }
            (LeasedOp::together { acts }, Some(Answer::Refused(why))) => {
                *why == Error::OwnUnreadable.to_string() && model.stage.clone().together(acts).is_none()
            }
            (LeasedOp::oversized { .. } | LeasedOp::deep { beyond: 1.. }, Some(Answer::Refused(why))) => {
                why.contains("exceeds the limit")
            }
            _ => return Err(format!("returned {:?}, but nothing was committed", step.answer).into()),
        };
        match fits {
            true => Ok(()),
            false => {
                Err(format!("returned {:?}, but the queue contains {:?}", step.answer, model.stage).into())
            }
        }
    }
}
