//! The sequential model: the records and the states of the indexes, with their past.

use super::{
    Answer, Change, Queries, QueriesOp,
    judge::{judge, refused},
    model::{Model, Record},
};
use shaketable::{Misfit, workload::Step};
use shaketable_record::{index::IndexState, version::RecordVersion};
use shaketable_sim::proto::Version;
use std::{collections::BTreeMap, sync::Arc};

/// The records and the states of the indexes.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The records, by their numbers.
    pub records: Vec<Record>,
    /// The states of the indexes that are not readable.
    pub states: BTreeMap<String, IndexState>,
}

impl State {
    /// These records, and indexes of which some are disabled.
    pub fn new<'a>(records: Vec<Record>, disabled: impl Iterator<Item = &'a str>) -> State {
        State { records, states: disabled.map(|name| (name.to_owned(), IndexState::Disabled)).collect() }
    }

    fn save(&mut self, record: Record) -> bool {
        match self.records.binary_search_by_key(&record.id, |other| other.id) {
            Ok(place) => {
                self.records[place] = record;
                true
            }
            Err(place) => {
                self.records.insert(place, record);
                false
            }
        }
    }

    fn delete(&mut self, id: i64) -> bool {
        let before = self.records.len();
        self.records.retain(|record| record.id != id);
        self.records.len() < before
    }

    /// Changes the state of an index, and returns the new one.
    fn change(&mut self, index: &str, change: Change) -> IndexState {
        let state = match change {
            Change::Disable => IndexState::Disabled,
            Change::Write => IndexState::WriteOnly,
            Change::Build(_) => IndexState::Readable,
        };
        match state {
            IndexState::Readable => self.states.remove(index),
            state => self.states.insert(index.to_owned(), state),
        };
        state
    }
}

/// What is stored, and what was at each version.
#[derive(Clone, Debug)]
pub struct History(Vec<(Version, Arc<State>)>);

impl History {
    /// With this state at the beginning.
    pub fn new(state: State) -> History {
        History(vec![(Version::MIN, Arc::new(state))])
    }

    /// What was stored at a version.
    pub fn at(&self, version: Version) -> &State {
        let known = self.0.partition_point(|(from, _)| *from <= version).max(1);
        &self.0[known - 1].1
    }

    /// What is stored now.
    pub fn now(&self) -> &State {
        self.at(Version::MAX)
    }
}

impl Queries {
    /// Performs an operation on the model, at its place in the history, and judges what it returned.
    pub(super) fn follow(&self, model: &mut History, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let Some(stamp) = step.stamp else { return self.looked(model, step) };
        let mut state = model.now().clone();
        let expected = match step.op {
            QueriesOp::save { records } => {
                let save = |(local, (id, drawn)): (u16, &(i64, u64))| {
                    let version = Some(RecordVersion::complete(stamp, local));
                    state.save(Record { version, ..self.record(*id, *drawn) })
                };
                Answer::Were((0..).zip(records).map(save).collect())
            }
            QueriesOp::delete { ids } => Answer::Were(ids.iter().map(|id| state.delete(*id)).collect()),
            QueriesOp::index { place, change } => {
                Answer::State(state.change(self.index_at(*place), *change).to_string())
            }
            QueriesOp::ask { .. } => return Err("committed a write".into()),
        };
        let [a, b, c, d, e, f, g, h, ..] = stamp;
        model.0.push((Version::from_be_bytes([a, b, c, d, e, f, g, h]), Arc::new(state)));
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, the model returns {expected:?}").into())
            }
            _ => Ok(()),
        }
    }

    /// Judges a query. Its place is the last version at which it has read.
    fn looked(&self, model: &History, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let Some(answer) = step.answer else { return Ok(()) };
        let QueriesOp::ask { drawn, .. } = step.op else {
            return Err(format!("returned {answer:?}, but nothing was committed").into());
        };
        let query = self.query(*drawn);
        let at = |version| Model { records: &model.at(version).records, schema: self.schema() };
        let (version, judged) = match answer {
            Answer::NoIndex(version, _) => {
                let states = &model.at(*version).states;
                (*version, refused(&query, at(*version), &|index| !states.contains_key(index)))
            }
            Answer::Found(found) => {
                let pages = found.pages.iter().map(|page| page.version);
                let version = pages.chain([found.version]).max().unwrap_or(found.version);
                if step.read_version != Some(version) {
                    return Err(format!("has read last at version {version}").into());
                }
                (version, judge(&query, found, &at))
            }
            _ => return Err(format!("returned {answer:?} to a query").into()),
        };
        match step.read_version == Some(version) {
            true => Ok(judged?),
            false => Err(format!("has read last at version {version}").into()),
        }
    }
}
