//! The sequential model: the records, and the states of the indexes.

use super::{
    Answer, RecordBuild, RecordBuildOp,
    layout::{UNIQUE, definitions, names, space},
    operations::{Act, Mark},
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
        if matches!(step.op, RecordBuildOp::build { .. } | RecordBuildOp::scrub { .. }) {
            return Ok(());
        }
        if !model.done.insert((step.client, step.index)) {
            return Err("took effect a second time".into());
        }
        let expected = match step.op {
            RecordBuildOp::write { acts } => match model.write(acts) {
                Ok(told) => Answer::Wrote(told),
                Err(id) => return Err(format!("saved record {id}, whose key is taken").into()),
            },
            RecordBuildOp::batch { places, .. } => model.states_of(places),
            RecordBuildOp::mark { index, .. } => model.states_of(&[*index]),
            _ => Answer::Done,
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
    fn states_of(&self, places: &[usize]) -> Answer {
        Answer::States(names(places).into_iter().map(|name| self.state(name)).collect())
    }
}

/// Objects to a change of states that the operation must not make.
fn changed_states(op: &RecordBuildOp, before: &States, after: &States) -> Result<(), Misfit> {
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
            RecordBuildOp::build { places, .. } | RecordBuildOp::batch { places, .. } => {
                concerns(places) && is_built
            }
            RecordBuildOp::mark { index, mark } => {
                let is_meant = match mark {
                    Mark::Disabled => change.1 == state::DISABLED,
                    Mark::WriteOnly => change.1 == state::WRITE_ONLY,
                    Mark::Readable => is_built && change.0 != state::DISABLED,
                };
                concerns(&[*index]) && is_meant
            }
            _ => false,
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
        (RecordBuildOp::write { acts }, Answer::Taken(id)) => model.clone().write(acts) == Err(*id),
        (RecordBuildOp::mark { index, mark: Mark::Readable }, Answer::Incomplete) => {
            let state = model.state(&definitions()[*index].name);
            [state::WRITE_ONLY, state::DISABLED].contains(&state)
        }
        (RecordBuildOp::build { .. }, Answer::States(states)) => !states.contains(&state::DISABLED),
        (RecordBuildOp::build { .. }, Answer::Incomplete | Answer::Died) => true,
        (RecordBuildOp::scrub { index, .. }, Answer::Unscrubbed) => {
            let definition = &definitions()[*index];
            // Its transactions read at different versions, of which the last one counts.
            !definition.has_entries()
                || [state::WRITE_ONLY, state::DISABLED].contains(&model.state(&definition.name))
        }
        (RecordBuildOp::scrub { .. }, Answer::Done) => true,
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
