//! The sequential model: the records, and the states of the indexes.

use super::{
    Answer, RecordBuild,
    layout::{UNIQUE, definitions, names, space},
    operations::{Act, Mark, Op},
    plain::Record,
    rows::{States, follow_states},
};
use crate::record_shared::layout::state;
use shaketable::{Misfit, workload::Step};
use std::collections::{BTreeMap, BTreeSet};

/// The sequential model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(super) records: BTreeMap<i64, Record>,
    pub(super) states: States,
    /// The operations that have taken effect; none may take effect again.
    pub(super) done: BTreeSet<(usize, usize)>,
}

impl Model {
    fn state(&self, name: &str) -> i64 {
        self.states.get(name).copied().unwrap_or(state::READABLE)
    }

    /// Does calls one after the other. The error is the number of a record whose key is taken.
    fn write(&mut self, acts: &[Act]) -> Result<Vec<bool>, i64> {
        acts.iter().map(|act| self.act(act)).collect()
    }

    fn act(&mut self, act: &Act) -> Result<bool, i64> {
        match act {
            Act::Save(record) => {
                let code = |record: &Record| record.fields[2];
                let is_equal = |other: &Record| {
                    other.id != record.id && code(other).is_some() && code(other) == code(record)
                };
                let is_unique = self.state(&definitions()[UNIQUE].name) == state::READABLE;
                if is_unique && self.records.values().any(is_equal) {
                    return Err(record.id);
                }
                self.records.insert(record.id, record.clone());
                Ok(true)
            }
            Act::Delete(id) => Ok(self.records.remove(id).is_some()),
            Act::DeleteAll | Act::DeleteWhere => {
                self.records.clear();
                Ok(true)
            }
        }
    }
}

impl RecordBuild {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if !step.committed {
            return looked(model, step);
        }
        let before = model.states.clone();
        follow_states(&space(), step.mutations, &mut model.states);
        changed_states(step.op, &before, &model.states)?;
        if !matches!(step.op, Op::Build(..) | Op::Scrub(_)) && !model.done.insert((step.client, step.index)) {
            return Err("took effect a second time".into());
        }
        let expected = match step.op {
            Op::Write(acts) => match model.write(acts) {
                Ok(told) => Answer::Wrote(told),
                Err(id) => return Err(format!("saved record {id}, whose key is taken").into()),
            },
            Op::Batch(places, ..) => model.told(places),
            Op::Mark(index, _) => model.told(&[*index]),
            Op::Damage(..) => Answer::Done,
            Op::Build(..) | Op::Scrub(_) => return Ok(()),
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, the model returns {expected:?}").into())
            }
            _ => Ok(()),
        }
    }
}

impl Model {
    fn told(&self, places: &[usize]) -> Answer {
        Answer::States(names(places).into_iter().map(|name| self.state(name)).collect())
    }
}

/// Objects to a change of states that the operation must not make.
fn changed_states(op: &Op, before: &States, after: &States) -> Result<(), Misfit> {
    for definition in definitions() {
        let state = |states: &States| states.get(&definition.name).copied().unwrap_or(state::READABLE);
        let change = (state(before), state(after));
        let concerns = |places: &[usize]| names(places).contains(&&*definition.name);
        let is_built = match change {
            (state::DISABLED, state::WRITE_ONLY) => true,
            (state::WRITE_ONLY | state::PENDING, state::READABLE) => true,
            (state::WRITE_ONLY, state::PENDING) => definition.name == definitions()[UNIQUE].name,
            _ => false,
        };
        let may = match op {
            Op::Build(places, ..) | Op::Batch(places, ..) => concerns(places) && is_built,
            Op::Mark(index, Mark::Disabled) => concerns(&[*index]) && change.1 == state::DISABLED,
            Op::Mark(index, Mark::WriteOnly) => concerns(&[*index]) && change.1 == state::WRITE_ONLY,
            Op::Mark(index, Mark::Readable) => concerns(&[*index]) && is_built && change.0 != state::DISABLED,
            Op::Write(_) | Op::Scrub(_) | Op::Damage(..) => false,
        };
        if change.0 != change.1 && !may {
            return Err(format!(
                "changed the state of index {} from {} to {}",
                definition.name, change.0, change.1
            )
            .into());
        }
    }
    Ok(())
}

/// Checks an operation without an effect: what it returned must fit the current state of the model.
fn looked(model: &Model, step: &Step<'_, RecordBuild>) -> Result<(), Misfit> {
    let Some(answer) = step.answer else { return Ok(()) };
    let fits = match (step.op, answer) {
        (Op::Write(acts), Answer::Taken(id)) => model.clone().write(acts) == Err(*id),
        (Op::Mark(index, Mark::Readable), Answer::Incomplete) => {
            let state = model.state(&definitions()[*index].name);
            [state::WRITE_ONLY, state::DISABLED].contains(&state)
        }
        (Op::Build(..), Answer::States(states)) => !states.contains(&state::DISABLED),
        (Op::Build(..), Answer::Incomplete | Answer::Died) => true,
        (Op::Scrub(scrubbing), Answer::Unscrubbed) => {
            let definition = &definitions()[scrubbing.index];
            // Its transactions read at different versions, of which the last one counts.
            !definition.has_entries()
                || [state::WRITE_ONLY, state::DISABLED].contains(&model.state(&definition.name))
        }
        (Op::Scrub(_), Answer::Done) => true,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => {
            Err(format!("returned {answer:?} and committed nothing, with the states {:?}", model.states)
                .into())
        }
    }
}
