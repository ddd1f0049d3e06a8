//! The sequential model.
//!
//! It follows what each transaction wrote, checks that this is a step which the queue allows, and records
//! what each operation was given. Whether what the operations returned is right is decided at the end,
//! because a dequeue may be served by others.

use super::{
    Answer, Name, Staged, StagedOp,
    operations::patience,
    stage::{Stage, version},
    staged,
};
use crate::shared::{Call, added, apply_below, is_too_much_to_read, stamp_in};
use imbl::ordset::DiffItem;
use shaketable::{Misfit, judge::Keyspace, waiting::Wait, workload::Step};
use shaketable_layers::{queue::ItemId, staged_queue::Request};
use shaketable_sim::proto::Version;
use std::collections::{BTreeMap, BTreeSet};

/// The model: what is stored, and what became of the dequeues.
#[derive(Clone, Default)]
pub struct Model {
    rows: Keyspace,
    pub(super) stage: Stage,
    /// What operations were given.
    given: BTreeMap<Call, Option<Name>>,
    /// The requests that operations registered.
    registered: BTreeMap<Call, Vec<Request>>,
    /// The operations with whose request a later dequeue of their session does not continue.
    aside: BTreeSet<Call>,
    /// The version at which the item for each ticket was parked.
    parked_since: BTreeMap<ItemId, Version>,
    /// Operations that found neither items nor requests.
    found_empty: BTreeSet<Call>,
    /// What operations returned.
    pub(super) told: BTreeMap<Call, Answer>,
}

impl Model {
    /// Applies what a transaction wrote, and checks that it was allowed to.
    fn commit(&mut self, step: &Step<'_, Staged>) -> Result<(), Misfit> {
        let after = self.stage.changed(apply_below(staged().subspace(), step.mutations, &mut self.rows))?;
        let before = std::mem::replace(&mut self.stage, after.clone());
        let call = (step.client, step.index);

        let (put, removed) = (added(&after.items, &before.items), added(&before.items, &after.items));
        let (mut registered, mut served) = (Vec::new(), Vec::new());
        for difference in before.requests.diff(&after.requests) {
            match difference {
                DiffItem::Add(request) => registered.push(*request),
                DiffItem::Remove(request) => served.push(*request),
            }
        }
        let parked = added(&after.parked, &before.parked);
        let mut gone = added(&before.parked, &after.parked);
        gone.retain(|(ticket, _)| !after.parked.contains_key(ticket));
        let fetched: Vec<_> = gone.iter().map(|(_, given)| *given).collect();
        let since = gone.iter().filter_map(|(ticket, _)| self.parked_since.get(ticket).copied()).min();
        if let Some(version) = step.stamp.as_ref().map(version) {
            self.parked_since.extend(parked.iter().map(|(ticket, _)| (*ticket, version)));
        }
        let counts = [put.len(), removed.len(), registered.len(), served.len(), parked.len(), fetched.len()];
        let own = self.registered.get(&call).and_then(|requests| requests.first()).copied();
        let (dequeues, enlists) = (step.op.dequeues(), matches!(step.op, StagedOp::enlist {}));
        match (step.op, counts) {
            (StagedOp::call_request { calls }, _)
                if let (Some(request), Some(read)) = (own, step.read_version) =>
            {
                let Some((mut expected, names, answers)) = before.call_request(calls, &request, read) else {
                    return Err("committed, but the queue refuses it".to_owned().into());
                };
                // The items that it enqueues get their place from the commit.
                let new = after.items.iter().filter(|(_, name)| names.contains(name));
                let new: Vec<_> = new.map(|(p, n)| (*p, *n)).collect();
                expected.items.extend(new.iter().copied());
                if after != expected || new.iter().map(|(_, name)| *name).collect::<Vec<_>>() != names {
                    return Err(
                        format!("led from {before:?} to {after:?}, it should lead to {expected:?}").into()
                    );
                }
                match step.answer {
                    Some(answer) if *answer != Answer::Request(answers.clone()) => {
                        Err(format!("returned {answer:?}, it should return {answers:?}").into())
                    }
                    _ => stamped(step, new.iter().map(|(p, _)| stamp_in(p))),
                }
            }
            (op, [n, 0, 0, 0, 0, 0]) if let Some(batch) = op.batch() => {
                let names: Vec<Name> = put.iter().map(|(_, name)| *name).collect();
                if n != usize::from(batch.items) || names != batch.names().collect::<Vec<_>>() {
                    return Err(format!("enqueued {names:?}").into());
                }
                stamped(step, put.iter().map(|(p, _)| stamp_in(p)))
            }
            (StagedOp::reclaim {} | StagedOp::deep { beyond: 0 }, [0, 0, 0, 0, 0, 0]) => Ok(()),
            (StagedOp::reclaim {}, [_, 0, 0, 0, 0, _]) => {
                let back: Vec<_> = fetched.into_iter().flatten().collect();
                match put == back {
                    true => Ok(()),
                    false => Err(format!("brought back {put:?}, of {back:?} that were parked").into()),
                }
            }
            (StagedOp::together { parts }, [_, _, _, 0, 0, 0]) => {
                let expected = match before.together(parts) {
                    Ok(expected) => expected,
                    Err(e) => return Err(format!("committed, but the queue refuses it: {e}").into()),
                };
                let names: Vec<Name> = put.iter().map(|(_, name)| *name).collect();
                let fits = names == expected.put
                    && removed == expected.taken
                    && registered.len() == expected.registered;
                if !fits {
                    return Err(
                        format!("put {names:?}, removed {removed:?}, registered {registered:?}").into()
                    );
                }
                match step.answer {
                    Some(answer) if *answer != Answer::Parts(expected.answers.clone()) => {
                        return Err(
                            format!("returned {answer:?}, it should return {:?}", expected.answers).into()
                        );
                    }
                    _ => {}
                }
                stamped(
                    step,
                    put.iter().map(|(p, _)| stamp_in(p)).chain(registered.iter().map(|r| Some(r.stamp()))),
                )
            }
            (_, [0, 0, 0, 0, 0, 0]) if dequeues || enlists => {
                if before.items.is_empty() && before.requests.is_empty() {
                    self.found_empty.insert(call);
                }
                Ok(())
            }
            (op, [0, 0, 1, 0, 0, 0])
                if dequeues || enlists || matches!(op, StagedOp::call_request { .. }) =>
            {
                self.registered.entry(call).or_default().extend(&registered);
                if !dequeues {
                    self.aside.insert(call);
                }
                stamped(step, registered.iter().map(|request| Some(request.stamp())))
            }
            (_, [0, 1, 0, 0, 0, 0]) if dequeues => {
                if let Some(request) = before.requests.get_min() {
                    return Err(format!("took {:?} although {request:?} waits", removed[0]).into());
                }
                if before.items.get_min() != Some(&removed[0]) {
                    return Err(format!("took {:?} out of turn: {:?}", removed[0], before.items).into());
                }
                self.give(call, Some(removed[0].1))
            }
            (op, [0, 0, 0, 0, 0, 1]) if dequeues || enlists => {
                let waits = matches!(op, StagedOp::dequeue {} | StagedOp::within { .. });
                if let (true, Some(Answer::Taken(..))) = (waits, step.answer) {
                    step.waited(Wait { patience: 0, found: since })?;
                }
                let is_old = since.is_some_and(|since| since <= step.known_at_call());
                if matches!(op, StagedOp::dequeue {}) && fetched[0].is_none() && is_old {
                    // A dropped dequeue was told that there was no item. The one that goes on asks again.
                    return Ok(());
                }
                self.give(call, fetched[0].map(|(_, name)| name))
            }
            (StagedOp::leave {} | StagedOp::within { .. }, [0, 0, 0, 1, 0, 0]) => Ok(()),
            (_, [0, 0, 0, 1, 0, 0]) if enlists => Ok(()),
            (StagedOp::dequeue {} | StagedOp::within { .. } | StagedOp::cut { .. }, [0, _, 0, n, _, 0])
                if n > 0 =>
            {
                let first: Vec<_> = before.requests.iter().take(n).copied().collect();
                if served != first {
                    return Err(format!("served {served:?}, but {first:?} are first").into());
                }
                let items: Vec<_> = before.items.iter().take(n).map(|(p, n)| (*p, *n)).collect();
                let pairs = served.iter().enumerate().map(|(at, r)| (r.ticket(), items.get(at).copied()));
                let pairs: BTreeMap<_, _> = pairs.collect();
                match parked.iter().copied().collect::<BTreeMap<_, _>>() == pairs && removed == items {
                    true => Ok(()),
                    false => Err(format!("parked {parked:?}, it should park {pairs:?}").into()),
                }
            }
            _ => Err(format!(
                "no step of the queue: put {put:?}, removed {removed:?}, registered {registered:?}, served \
                 {served:?}, parked {parked:?}, fetched {fetched:?}"
            )
            .into()),
        }
    }

    fn give(&mut self, call: Call, item: Option<Name>) -> Result<(), Misfit> {
        match self.given.insert(call, item) {
            // A dequeue that continues with another one's request may learn that there was no item, before it
            // makes a new request.
            Some(None) | None => Ok(()),
            Some(before) => Err(format!("got {item:?} and {before:?}").into()),
        }
    }

    /// Whether a request stands, or something is parked for it.
    fn holds(&self, request: &Request) -> bool {
        self.stage.requests.contains(request) || self.stage.parked.contains_key(&request.ticket())
    }

    /// What is wrong with what a dequeue returned. It must return what was given to earlier dequeues of its
    /// session that had not ended when it began.
    pub(super) fn misled(&self, at: &Call, told: &Answer) -> Option<String> {
        let (client, index) = *at;
        let (told, ago) = match told {
            Answer::Taken(name, ago) => (*name, *ago),
            Answer::Left(ago) => (None, *ago),
            Answer::Failed(_) => {
                let own = self.registered.get(at).into_iter().flatten().find(|request| self.holds(request));
                let given = self.given.get(at).copied().flatten();
                let fits = own.is_none() && given.is_none();
                return (!fits).then(|| format!("failed, and was given {given:?}, and its {own:?} stands"));
            }
            _ => return None,
        };
        let open = (client, index.saturating_sub(ago))..*at;
        let untold = |(at, _): &(&Call, &Option<Name>)| !self.told.contains_key(*at);
        let owed = self.given.range(open.clone()).filter(untold).filter_map(|(_, name)| *name).next();
        let given = self.given.get(at).copied();
        let fits = match (owed, told, given) {
            (Some(owed), told, given) => told == Some(owed) && given.is_none(),
            (None, Some(told), given) => given == Some(Some(told)),
            (None, None, Some(given)) => given.is_none(),
            (None, None, None) => {
                matches!(self.told.get(at), Some(Answer::Left(_))) || self.found_empty.contains(at)
            }
        };
        if !fits {
            return Some(format!("returned {told:?}, was given {given:?}, and should return {owed:?}"));
        }
        let requests = self
            .registered
            .range(open.start..=*at)
            .filter(|(call, _)| *call == at || !self.told.contains_key(*call) && !self.aside.contains(*call));
        let stands = requests.flat_map(|(_, requests)| requests).find(|request| self.holds(request));
        stands.map(|request| format!("has ended, but its {request:?} stands or is served"))
    }
}

/// Checks that the stamps are those of the transaction.
fn stamped(
    step: &Step<'_, Staged>,
    mut stamps: impl Iterator<Item = Option<[u8; 10]>>,
) -> Result<(), Misfit> {
    match stamps.find(|stamp| *stamp != step.stamp) {
        None => Ok(()),
        Some(wrong) => Err(format!("appended at {wrong:02x?}, but committed as {:02x?}", step.stamp).into()),
    }
}

impl Staged {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if let Some(answer @ (Answer::Taken(..) | Answer::Left(_) | Answer::Away | Answer::Failed(_))) =
            step.answer
        {
            model.told.insert((step.client, step.index), answer.clone());
        }
        if let (StagedOp::within { patience }, Some(Answer::Left(_))) = (step.op, step.answer) {
            // What becomes of its request shows whether there was an item.
            let over = step.called + self::patience(*patience).as_nanos() as u64;
            if step.returned < over {
                return Err(
                    format!("gave up {} ns before its patience had run out", over - step.returned).into()
                );
            }
        }
        if step.committed {
            return model.commit(step);
        }
        // An operation that changes nothing may commit nothing.
        let is_empty = model.stage.items.is_empty() && model.stage.requests.is_empty();
        if is_empty && matches!(step.answer, Some(Answer::Taken(None, _))) {
            model.found_empty.insert((step.client, step.index));
            return Ok(());
        }
        let first = || model.stage.items.get_min().map(|(_, name)| *name);
        let fits = match (step.op, step.answer) {
            (_, None) | (StagedOp::reclaim {}, Some(Answer::Reclaimed)) => true,
            // Its result depends on the steps of others; the check at the end compares them.
            (op, Some(Answer::Taken(..) | Answer::Left(_) | Answer::Away | Answer::Failed(_)))
                if op.dequeues() =>
            {
                true
            }
            (StagedOp::enlist {} | StagedOp::call_request { .. }, Some(Answer::Away)) => true,
            (StagedOp::survey {}, Some(Answer::Rows(rows))) => {
                let Stage { items, requests, parked } = &model.stage;
                *rows == [items.len(), requests.len(), parked.len()]
            }
            // A long run parks more than one call may read.
            (_, Some(Answer::Refused(why)))
                if is_too_much_to_read(
                    why,
                    model.rows.0.iter().map(|(key, value)| key.len() + value.len()),
                ) =>
            {
                true
            }
            (StagedOp::together { parts }, Some(Answer::Refused(why))) => {
                model.stage.together(parts).is_err_and(|e| e.to_string() == *why)
            }
            (StagedOp::peek {}, Some(Answer::First(name))) => *name == first(),
            (StagedOp::count {}, Some(Answer::Count(n))) => *n == model.stage.items.len(),
            (StagedOp::oversized { .. } | StagedOp::deep { beyond: 1.. }, Some(Answer::Refused(why))) => {
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
