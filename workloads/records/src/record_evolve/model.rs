//! The sequential model: the records, and the versions of the meta-data that the store and its users have.

use super::{
    Answer, Record, RecordEvolve, RecordEvolveOp,
    chain::{Link, place_of},
    layout::{saved_key, saved_version, space, used_key, written},
    operations::{Act, ActAnswer},
};
use crate::record_shared::layout::{Header, header_key};
use foundationdb_tuple::unpack;
use prost::Message;
use shaketable::{Misfit, workload::Step};
use shaketable_sim::proto::Mutation;
use std::collections::{BTreeMap, BTreeSet};

/// The sequential model. Versions of the meta-data are given by their places.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(super) records: BTreeMap<i64, Record>,
    /// The version in the store's header.
    pub(super) opened: usize,
    /// The version that is saved for all clients.
    pub(super) saved: usize,
    /// The operations that have taken effect; none may take effect again.
    pub(super) done: BTreeSet<(usize, usize)>,
}

impl Model {
    fn act(&mut self, link: &Link, act: &Act) -> ActAnswer {
        match act {
            Act::Save(record) => {
                self.records.insert(record.id, link.fit(record));
                ActAnswer::Saved
            }
            Act::Delete(id) => ActAnswer::Deleted(self.records.remove(id).is_some()),
            Act::Load(id) => ActAnswer::Loaded(self.records.get(id).cloned()),
            Act::Scan => ActAnswer::Scanned(self.records.keys().copied().collect()),
        }
    }

    /// Whether records have the same code, at some time during these calls.
    fn has_duplicates(&self, acts: &[Act]) -> bool {
        let saved = acts.iter().filter_map(|act| match act {
            Act::Save(record) => Some(record),
            _ => None,
        });
        let mut codes: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for record in self.records.values().chain(saved) {
            if let Some(code) = record.fields[2] {
                codes.entry(code).or_default().insert(record.id);
            }
        }
        codes.values().any(|records| records.len() > 1)
    }

    /// Follows the versions that a transaction has written. None goes back, and none is unknown.
    fn follow(&mut self, chain: &[Link], mutations: &[Mutation]) -> Result<(), Misfit> {
        let place = |version: Option<i32>| {
            let place = version.and_then(|version| place_of(chain, version));
            place.ok_or_else(|| format!("wrote the unknown version {version:?} of the meta-data"))
        };
        if let Some(value) = written(mutations, &saved_key()) {
            let saved = place(saved_version(value))?;
            if saved != self.saved + 1 {
                return Err(
                    format!("saved version {saved} of the meta-data over version {}", self.saved).into()
                );
            }
            self.saved = saved;
        }
        if let Some(value) = written(mutations, &header_key(&space())) {
            let header = Header::decode(value).map_err(|_| "wrote a header that cannot be read")?;
            let opened = place(header.meta_data)?;
            if opened <= self.opened {
                return Err(format!("the header went from version {} to {opened}", self.opened).into());
            }
            self.opened = opened;
        }
        match self.opened <= self.saved {
            true => Ok(()),
            false => Err(format!("the store has version {}, {} is saved", self.opened, self.saved).into()),
        }
    }
}

impl RecordEvolve {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if !step.committed {
            return looked(model, step);
        }
        let (chain, before) = (self.chain(), model.clone());
        model.follow(&chain, step.mutations)?;
        if matches!(step.op, RecordEvolveOp::build { .. }) {
            return unsaved(&before, model);
        }
        if !model.done.insert((step.client, step.index)) {
            return Err("took effect a second time".into());
        }
        let expected = match step.op {
            RecordEvolveOp::use_own { acts } | RecordEvolveOp::use_latest { acts } => {
                unsaved(&before, model)?;
                let used = written(step.mutations, &used_key(step.client))
                    .and_then(|value| unpack::<(i64,)>(value).ok());
                let (used,) = used.ok_or("did not note its version")?;
                let used = used as usize;
                if used != model.opened {
                    return Err(
                        format!("used a store of version {} with version {used}", model.opened).into()
                    );
                }
                if matches!(step.op, RecordEvolveOp::use_latest { .. }) && used != model.saved {
                    return Err(format!("loaded version {used} when {} was saved", model.saved).into());
                }
                let answers = acts.iter().map(|act| model.act(&chain[used], act));
                [ActAnswer::With(used)].into_iter().chain(answers.collect::<Vec<_>>()).collect()
            }
            RecordEvolveOp::evolve {} => {
                if model.saved != (before.saved + 1).min(chain.len() - 1) {
                    return Err("did not save the next version".into());
                }
                vec![ActAnswer::Latest(model.saved)]
            }
            RecordEvolveOp::save_own {} => {
                unsaved(&before, model)?;
                return match step.answer {
                    Some(Answer::Told(answers)) => own(model, answers),
                    _ => Ok(()),
                };
            }
            RecordEvolveOp::save_wrong { .. } => {
                unsaved(&before, model)?;
                vec![ActAnswer::Own(model.saved, false)]
            }
            RecordEvolveOp::refresh {} | RecordEvolveOp::build { .. } => {
                return Err("committed a change".into());
            }
        };
        match step.answer {
            Some(answer) if *answer != Answer::Told(expected.clone()) => {
                Err(format!("returned {answer:?}, the model returns {expected:?}").into())
            }
            _ => Ok(()),
        }
    }
}

/// Objects to a change of the meta-data that is saved.
fn unsaved(before: &Model, after: &Model) -> Result<(), Misfit> {
    match before.saved == after.saved {
        true => Ok(()),
        false => Err("changed the meta-data that is saved".into()),
    }
}

/// A client can save its own meta-data if, and only if, that is the one that is saved.
fn own(model: &Model, answers: &[ActAnswer]) -> Result<(), Misfit> {
    match answers {
        [ActAnswer::Own(place, is_saved)]
            if *is_saved == (*place == model.saved) && *place <= model.saved =>
        {
            Ok(())
        }
        _ => Err(format!("returned {answers:?}, version {} is saved", model.saved).into()),
    }
}

/// Checks an operation without an effect: what it returned must fit the current state of the model.
fn looked(model: &Model, step: &Step<'_, RecordEvolve>) -> Result<(), Misfit> {
    let Some(answer) = step.answer else { return Ok(()) };
    let fits = match (step.op, answer) {
        (RecordEvolveOp::use_own { .. } | RecordEvolveOp::build { .. }, Answer::Stale(place)) => {
            *place < model.opened
        }
        (RecordEvolveOp::use_own { acts } | RecordEvolveOp::use_latest { acts }, Answer::Taken(_)) => {
            model.has_duplicates(acts)
        }
        (RecordEvolveOp::refresh {}, Answer::Told(answers)) => {
            answers[..] == [ActAnswer::Latest(model.saved)]
        }
        (RecordEvolveOp::build { .. }, Answer::Built | Answer::Incomplete | Answer::Died) => true,
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(format!(
            "returned {answer:?} and committed nothing; the store has version {}, {} is saved",
            model.opened, model.saved
        )
        .into()),
    }
}
