//! The sequential model: plain records, and what indexes of aggregates remember of records that are gone.

use super::{
    Records,
    indexes::{Contribution, Definition, Kind},
    layout,
    operations::{Answer, Check, Op, Target, Told, hash, listed},
    plain::Record,
    scans::first,
    schema::packed,
};
use crate::record_shared::layout::suffix;
use foundationdb_tuple::{Element, unpack};
use shaketable::{models::timeline::Timeline, specimen::At};
use shaketable_record::error::Error;
use std::collections::{BTreeMap, BTreeSet};

/// A record with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub(super) record: Record,
    pub(super) version: Option<[u8; 12]>,
}

/// What a store contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is a store.
    pub(super) created: bool,
    /// Whether it was opened with the later meta-data.
    pub(super) later: bool,
    /// The indexes that are disabled.
    pub(super) disabled: BTreeSet<String>,
    /// The records, by their packed primary keys.
    pub(super) records: BTreeMap<Vec<u8>, Kept>,
    /// The rows of the indexes of aggregates, by the numbers of the indexes and the packed groups.
    pub(super) groups: BTreeMap<i64, BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// The states of a run, and how many versions the transaction in progress has given.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) states: Timeline<State>,
    given: ([u8; 10], u16),
}

/// Compares the current states.
impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.states == other.states
    }
}

/// The first ten bytes of versions that are not complete.
const INCOMPLETE: [u8; 10] = [0xff; 10];

impl Model {
    pub(super) fn new(state: State) -> Model {
        Model { states: Timeline::new(state), given: (INCOMPLETE, 0) }
    }

    /// The next version of the transaction with this versionstamp.
    fn next_version(&mut self, stamp: [u8; 10]) -> [u8; 12] {
        if self.given.0 != stamp {
            self.given = (stamp, 0);
        }
        self.given.1 += 1;
        version(stamp, self.given.1 - 1)
    }
}

fn version(stamp: [u8; 10], local: u16) -> [u8; 12] {
    let mut version = [0; 12];
    version[..10].copy_from_slice(&stamp);
    version[10..].copy_from_slice(&local.to_be_bytes());
    version
}

/// A version of a client's own: earlier than all that FoundationDB gives.
pub(super) fn own_version(number: u8) -> [u8; 12] {
    version([0, 0, 0, 0, 0, 0, 0, 0, 0, number], 7)
}

/// A version as the transaction with this versionstamp sees it: its own are not complete.
fn seen(version: Option<[u8; 12]>, stamp: [u8; 10]) -> Option<[u8; 12]> {
    version.map(|mut version| {
        if version[..10] == stamp {
            version[..10].copy_from_slice(&INCOMPLETE);
        }
        version
    })
}

/// Whether a packed tuple begins with these elements.
pub(super) fn starts_with(row: &[u8], prefix: &[Element<'static>]) -> bool {
    let Ok(elements) = unpack::<Vec<Element<'_>>>(row) else { return false };
    let elements: Vec<_> = elements.into_iter().map(Element::into_owned).collect();
    elements.len() >= prefix.len() && packed(&elements[..prefix.len()]) == packed(prefix)
}

impl State {
    /// The indexes that the store has and writes.
    pub(super) fn maintained(&self, config: &Records) -> Vec<Definition> {
        self.indexes(config).filter(|index| !self.disabled.contains(index.name)).collect()
    }

    /// The indexes that the store has.
    pub(super) fn indexes(&self, config: &Records) -> impl Iterator<Item = Definition> {
        let later = self.later;
        config.definitions().into_iter().filter(move |index| match later {
            true => !index.is_removed,
            false => !index.is_later,
        })
    }

    /// Puts a record in its place, or removes the one that is there.
    fn put(&mut self, config: &Records, primary_key: &[u8], new: Option<Kept>) {
        let old = self.records.remove(primary_key);
        let [before, after] = [&old, &new].map(|kept| kept.as_ref().map(|kept| &kept.record));
        for index in self.maintained(config).iter().filter(|index| !index.has_entries()) {
            let of = |record: Option<&Record>| {
                record.map(|record| index.contributions(&config.schema, record)).unwrap_or_default()
            };
            change_groups(index, self.groups.entry(index.number).or_default(), of(before), of(after));
        }
        if let Some(new) = new {
            self.records.insert(primary_key.to_vec(), new);
        }
        self.groups.retain(|_, rows| !rows.is_empty());
    }

    /// Removes the records whose primary keys begin with these elements.
    fn remove_where(&mut self, prefix: &[Element<'static>]) {
        self.records.retain(|primary_key, _| !starts_with(primary_key, prefix));
        for rows in self.groups.values_mut() {
            rows.retain(|group, _| !starts_with(group, prefix));
        }
        self.groups.retain(|_, rows| !rows.is_empty());
    }
}

/// Changes the rows of an index of aggregates from what the old record contributes to what the new one does.
fn change_groups(
    index: &Definition,
    rows: &mut BTreeMap<Vec<u8>, Vec<u8>>,
    before: BTreeMap<Vec<u8>, Contribution>,
    after: BTreeMap<Vec<u8>, Contribution>,
) {
    let mut sums: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for (group, contribution) in &after {
        match contribution {
            Contribution::Number(number) => *sums.entry(group.clone()).or_default() = *number,
            // An unchanged value is there already, and in any case changes nothing.
            Contribution::Value(value) => {
                let row = rows.entry(group.clone()).or_insert_with(|| value.clone());
                let replaces = if index.kind == Kind::MinEver { value < row } else { value > row };
                if replaces {
                    row.clone_from(value);
                }
            }
        }
    }
    if index.kind != Kind::CountUpdates {
        for (group, contribution) in before {
            if let Contribution::Number(number) = contribution {
                let sum = sums.entry(group).or_default();
                *sum = sum.wrapping_sub(number);
            }
        }
    }
    for (group, change) in sums.into_iter().filter(|(_, change)| *change != 0) {
        let row = rows.entry(group.clone()).or_insert_with(|| vec![0; 8]);
        let sum = number(row).wrapping_add(change);
        *row = sum.to_le_bytes().to_vec();
        if index.clears_zero && sum == 0 {
            rows.remove(&group);
        }
    }
}

/// The number in a row of a count or a sum.
pub(super) fn number(row: &[u8]) -> i64 {
    row.try_into().map_or(0, i64::from_le_bytes)
}

impl Records {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        model.states.begin(at);
        let stamp = at.stamp.unwrap_or(INCOMPLETE);
        if !model.states.now().created {
            if op.is_read_only() {
                return Err(Error::NoStore);
            }
            if !matches!(op, Op::Upgrade) {
                model.states.write(|state| state.created = true);
            }
        }
        match op {
            Op::Save(record, check) => {
                let version = self.schema.versions.then(|| model.next_version(stamp));
                self.save(model, record, *check, version, at)
            }
            Op::SaveAs(record, own) => self.save(model, record, Check::Any, Some(own_version(*own)), at),
            Op::Delete(target) => {
                let primary_key = packed(&self.primary_key(target));
                let found = model.states.now().records.contains_key(&primary_key);
                model.states.write(|state| state.put(self, &primary_key, None));
                Ok(Answer::Found(found))
            }
            Op::DeleteWhere(target, columns) => {
                let prefix = self.prefix(target, *columns);
                self.can_delete_where(model.states.now(), prefix.len())?;
                model.states.write(|state| state.remove_where(&prefix));
                Ok(Answer::Done)
            }
            Op::DeleteAll => {
                model.states.write(|state| state.remove_where(&[]));
                Ok(Answer::Done)
            }
            Op::Load(target, snapshot) => {
                let found = model.states.seen(*snapshot).records.get(&packed(&self.primary_key(target)));
                Ok(Answer::Record(found.map(|kept| self.told(kept, stamp))))
            }
            Op::Exists(target, snapshot) => {
                let records = &model.states.seen(*snapshot).records;
                Ok(Answer::Found(records.contains_key(&packed(&self.primary_key(target)))))
            }
            Op::Version(target) => {
                let found = model.states.now().records.get(&packed(&self.primary_key(target)));
                Ok(Answer::Version(found.and_then(|kept| seen(kept.version, stamp))))
            }
            Op::Scan(span) => Ok(self.scan(model.states.now(), span, stamp)),
            Op::ScanIndex(name, span) => self.scan_index(model.states.now(), name, span, stamp),
            Op::Aggregate(name, like, columns, of_one) => {
                self.aggregate(model.states.now(), name, like, *columns, *of_one)
            }
            Op::States => {
                let state = model.states.now();
                let mut names: Vec<_> = state
                    .indexes(self)
                    .map(|index| (index.name, state.disabled.contains(index.name)))
                    .collect();
                names.sort_unstable();
                Ok(listed(names))
            }
            Op::Disable(name) => {
                let index = self.index(model.states.now(), name)?;
                model.states.write(|state| {
                    state.disabled.insert(name.clone());
                    state.groups.remove(&index.number);
                });
                Ok(Answer::Done)
            }
            Op::Upgrade => {
                let state = model.states.now();
                let opened = state.created.then(|| (self.schema.version(state.later), self.user));
                let removed: Vec<_> =
                    self.definitions().into_iter().filter(|index| index.is_removed).collect();
                model.states.write(|state| {
                    (state.created, state.later) = (true, true);
                    state.disabled.retain(|name| removed.iter().all(|index| index.name != name));
                });
                Ok(Answer::Opened(opened))
            }
        }
    }

    /// The columns of the primary key of a target.
    pub(super) fn primary_key(&self, (of, place): &Target) -> Vec<Element<'static>> {
        self.schema.key_of(*of, place)
    }

    /// This many columns of the primary key of a target; one more is the number of a row that the record may
    /// have.
    pub(super) fn prefix(&self, target: &Target, columns: usize) -> Vec<Element<'static>> {
        let row = Element::Int(suffix::WHOLE);
        first(self.primary_key(target).into_iter().chain([row]).collect(), columns)
    }

    pub(super) fn index(&self, state: &State, name: &str) -> Result<Definition, Error> {
        let found = state.indexes(self).find(|index| index.name == name);
        found.ok_or_else(|| Error::UnknownIndex(name.into()))
    }

    /// A record as answers contain it.
    pub(super) fn told(&self, kept: &Kept, stamp: [u8; 10]) -> Told {
        let rows = layout::rows(&self.schema, &kept.record, kept.version.as_ref());
        let keys = rows.iter().map(|(key, _)| key.len()).sum();
        let values = rows.iter().map(|(_, value)| value.len()).sum();
        Told {
            primary_key: packed(&self.schema.primary_key(&kept.record)),
            of: kept.record.type_name().into(),
            hash: hash(&kept.record),
            version: seen(kept.version, stamp),
            size: (rows.len(), keys, values),
        }
    }

    fn save(
        &self,
        model: &mut Model,
        record: &Record,
        check: Check,
        version: Option<[u8; 12]>,
        at: &At,
    ) -> Result<Answer, Error> {
        let mut refusals = self.refusals(model.states.now(), record, check);
        if !refusals.is_empty() {
            // If several indexes refuse a record, any of them may be the first.
            let told = refusals.iter().position(|error| Some(&*error.to_string()) == at.refusal);
            return Err(refusals.swap_remove(told.unwrap_or(0)));
        }
        let (primary_key, kept) =
            (packed(&self.schema.primary_key(record)), Kept { record: record.clone(), version });
        model.states.write(|state| state.put(self, &primary_key, Some(kept.clone())));
        Ok(Answer::Record(Some(self.told(&kept, at.stamp.unwrap_or(INCOMPLETE)))))
    }
}
