//! The sequential model.
//!
//! It follows what each transaction wrote to the slots: an incarnation begins, or an operation is applied or
//! ruled out. Whether what the operations returned is right is decided at the end.

use super::{
    Answer, Known, Refusal, Sessions, SessionsOp,
    register::{BOUND, mark, number, register},
    slot::Slot,
};
use crate::shared::{Call, key};
use bytes::Bytes;
use imbl::OrdMap;
use shaketable::{Misfit, judge::Keyspace, sessions::slots, workload::Step};
use shaketable_tx::once::{Error, OpId};
use std::collections::{BTreeMap, BTreeSet};

/// The model: what is stored, and what became of the operations. Copies of the maps that grow are cheap.
#[derive(Clone, Default)]
pub struct Model {
    pub(super) rows: Keyspace,
    /// For each number the client of the last incarnation, and whether that client certainly knows of it.
    opener: BTreeMap<u64, (usize, bool)>,
    /// What each call that opened a session found.
    found: OrdMap<Call, Option<(OpId, Known)>>,
    /// What was applied.
    applied: OrdMap<OpId, Known>,
    /// What each call applied.
    by: OrdMap<Call, Vec<OpId>>,
    /// What operations returned.
    pub(super) told: OrdMap<Call, Answer>,
}

impl Model {
    pub(super) fn slot(&self, number: u64) -> Result<Slot, String> {
        self.rows.0.get(&slots().key(number)).map_or(Ok(Slot::default()), Slot::of)
    }

    pub(super) fn register(&self, client: u64) -> i64 {
        number(self.rows.0.get(&register(client)).cloned())
    }

    /// Applies what a transaction wrote, and checks that it was allowed to.
    pub(super) fn commit(&mut self, client: u64, step: &Step<'_, Sessions>) -> Result<(), Misfit> {
        let (before, sum) = (self.slot(client)?, self.register(client));
        let keys: BTreeSet<&Bytes> = step.mutations.iter().map(key).collect();
        step.mutations.iter().for_each(|mutation| self.rows.apply(mutation, None));
        let call = (step.client, step.index);
        if let SessionsOp::mark { .. } = step.op {
            return match keys.iter().all(|key| **key == mark(step.client)) {
                true => Ok(()),
                false => Err(format!("a mark wrote {keys:?}").into()),
            };
        }
        let (slot, register) = (slots().key(client), register(client));
        if !keys.contains(&slot) || keys.iter().any(|key| **key != slot && **key != register) {
            return Err(format!("wrote {keys:?}").into());
        }
        let (after, added) = (self.slot(client)?, self.register(client) - sum);
        let touched = keys.contains(&register);
        if after.epoch == before.epoch + 1 {
            let same = after.answered == before.answered && after.applied == before.applied;
            let heard = step.answer.is_some_and(|answer| !matches!(answer, Answer::Failed(_)));
            self.opener.insert(client, (step.client, heard));
            self.found.insert(call, before.last(client)?);
            return match same && !touched {
                true => Ok(()),
                false => Err(format!("an incarnation began and changed {before:?} to {after:?}").into()),
            };
        }
        if after.epoch != before.epoch || after.answered.0 != after.epoch {
            return Err(format!("an incarnation that had ended changed {before:?} to {after:?}").into());
        }
        if after.answered <= before.answered {
            return Err(format!("an operation that had ended changed {before:?} to {after:?}").into());
        }
        let Some((op, fate)) = after.last(client)? else {
            return Err("an operation without a number".into());
        };
        let Known::Applied(value, stamp) = fate else {
            return match touched {
                true => Err(format!("{op} was ruled out, and wrote").into()),
                false => Ok(()),
            };
        };
        if Some(stamp) != step.stamp {
            return Err(format!("{op} records the stamp {stamp:02x?}, but has {:02x?}", step.stamp).into());
        }
        let expected = match (step.op, step.op.adds()) {
            (SessionsOp::blind { by }, _) => (i64::from(*by), 0),
            (SessionsOp::burst { .. }, _) => (added.signum(), 0),
            (op @ SessionsOp::too_large { .. }, _) | (op, None) => {
                return Err(format!("{op:?} was applied").into());
            }
            (_, Some(by)) => (i64::from(by), sum + i64::from(by)),
        };
        if (added, value) != expected || value.abs() > BOUND {
            return Err(format!("{op} added {added} and recorded {value}, it should be {expected:?}").into());
        }
        let by = self.by.entry(call).or_default();
        if let (Some(before), false) = (by.first(), matches!(step.op, SessionsOp::burst { .. })) {
            return Err(format!("{op} was applied, and so was {before}").into());
        }
        by.push(op);
        self.applied.insert(op, fate);
        Ok(())
    }

    /// Whether what was returned by an operation that changed nothing fits this version.
    pub(super) fn fits(&self, client: u64, step: &Step<'_, Sessions>) -> Result<bool, String> {
        let (slot, sum) = (self.slot(client)?, self.register(client));
        Ok(match (step.op, step.answer) {
            (SessionsOp::look {}, Some(Answer::Seen(value, ruled_out))) => {
                let stored = self.rows.0.contains_key(&slots().key(client));
                (*value, *ruled_out) == (sum, stored.then_some(slot.applied.is_none()))
            }
            (op, Some(Answer::Refused(why))) if *why == Refusal::Bound.to_string() => {
                op.adds().is_some_and(|by| (sum + i64::from(by)).abs() > BOUND)
            }
            (SessionsOp::too_large { answer, .. }, Some(Answer::Refused(why)))
                if *why == answer.refusal().to_string() =>
            {
                true
            }
            // By the incarnation of another client, or by one of its own that it does not know of; or because
            // the operation was resolved by others before it began.
            (_, Some(Answer::Refused(why))) if *why == Error::Superseded.to_string() => {
                let own = self.opener.get(&client) == Some(&(step.client, true));
                !own || (slot.applied.is_none() && slot.answered.0 == slot.epoch)
            }
            (_, Some(Answer::Refused(why))) => *why == Error::Fenced.to_string() && slot.applied.is_none(),
            _ => true,
        })
    }

    /// What is wrong with what an operation returned, given the whole history.
    pub(super) fn misled(&self, call: &Call, told: &Answer) -> Option<String> {
        let own = self.by.get(call).map_or(&[][..], Vec::as_slice);
        let fits = match told {
            Answer::Applied(value, stamp) => {
                matches!(own, [op] if self.applied.get(op) == Some(&Known::Applied(*value, *stamp)))
            }
            Answer::Burst(count) => own.len() >= usize::from(*count),
            Answer::Opened(last) => self.found.get(call) == Some(last),
            Answer::Fate(op, fate) | Answer::Unread(op, fate) => {
                own.is_empty()
                    && match fate {
                        Known::Forgotten => true,
                        Known::NotApplied => !self.applied.contains_key(op),
                        applied => self.applied.get(op) == Some(applied),
                    }
            }
            Answer::Refused(_) | Answer::Failed(_) | Answer::Seen(..) | Answer::Nothing => own.is_empty(),
        };
        let applied = own.iter().map(|op| (op, &self.applied[op]));
        (!fits).then(|| format!("returned {told:?}, and has applied {:?}", applied.collect::<Vec<_>>()))
    }
}
