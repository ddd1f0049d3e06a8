//! The sequential model: plain records, and what indexes of aggregates remember of records that are gone.

use super::{
    Target,
    answers::{Listed, Returned, hash, listed},
    calls::Check,
    indexes::{Contribution, Definition, Kind, definitions},
    layout,
    plain::Record,
    schema::{Schema, packed},
    span::first,
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

/// The states of a store, and the versions of the transaction in progress.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) schema: Schema,
    /// The version of the application.
    user: Option<i32>,
    states: Timeline<State>,
    /// The versionstamp of this transaction, and how many versions it has given.
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
    pub(super) fn new(schema: Schema, user: Option<i32>, state: State) -> Model {
        Model { schema, user, states: Timeline::new(state), given: (INCOMPLETE, 0) }
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

/// The versionstamp of a transaction, as its own versions have it.
pub(super) fn stamp_of(at: &At) -> [u8; 10] {
    at.stamp.unwrap_or(INCOMPLETE)
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
    pub(super) fn maintained(&self, schema: &Schema) -> Vec<Definition> {
        self.indexes(schema).filter(|index| !self.disabled.contains(index.name)).collect()
    }

    /// The indexes that the store has.
    pub(super) fn indexes(&self, schema: &Schema) -> impl Iterator<Item = Definition> {
        let later = self.later;
        definitions(schema).into_iter().filter(move |index| match later {
            true => !index.is_removed,
            false => !index.is_later,
        })
    }

    pub(super) fn index(&self, schema: &Schema, name: &str) -> Result<Definition, Error> {
        let found = self.indexes(schema).find(|index| index.name == name);
        found.ok_or_else(|| Error::UnknownIndex(name.into()))
    }

    /// Puts a record in its place, or removes the one that is there.
    fn put(&mut self, schema: &Schema, primary_key: &[u8], new: Option<Kept>) {
        let old = self.records.remove(primary_key);
        let [before, after] = [&old, &new].map(|kept| kept.as_ref().map(|kept| &kept.record));
        for index in self.maintained(schema).iter().filter(|index| !index.has_entries()) {
            let of = |record: Option<&Record>| {
                record.map(|record| index.contributions(schema, record)).unwrap_or_default()
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

impl Model {
    /// What a look sees of the store, which it does not create.
    pub(super) fn look(&mut self, snapshot: bool, at: &At) -> Result<&State, Error> {
        self.states.begin(at);
        match self.states.now().created {
            true => Ok(self.states.seen(snapshot)),
            false => Err(Error::NoStore),
        }
    }

    /// The store that a write opens, and creates if there is none.
    fn open(&mut self, at: &At) -> &State {
        self.states.begin(at);
        if !self.states.now().created {
            self.states.write(|state| state.created = true);
        }
        self.states.now()
    }

    pub(super) fn save(&mut self, record: &Record, check: Check, at: &At) -> Result<Option<Returned>, Error> {
        let version = self.schema.versions.then(|| self.next_version(stamp_of(at)));
        self.put(record, check, version, at)
    }

    pub(super) fn save_as(&mut self, record: &Record, own: u8, at: &At) -> Result<Option<Returned>, Error> {
        self.put(record, Check::Any, Some(own_version(own)), at)
    }

    fn put(
        &mut self,
        record: &Record,
        check: Check,
        version: Option<[u8; 12]>,
        at: &At,
    ) -> Result<Option<Returned>, Error> {
        let schema = self.schema;
        let mut refusals = schema.refusals(self.open(at), record, check);
        if !refusals.is_empty() {
            // If several indexes refuse a record, any of them may be the first.
            let told = refusals.iter().position(|error| Some(&*error.to_string()) == at.refusal);
            return Err(refusals.swap_remove(told.unwrap_or(0)));
        }
        let (primary_key, kept) =
            (packed(&schema.primary_key(record)), Kept { record: record.clone(), version });
        self.states.write(|state| state.put(&schema, &primary_key, Some(kept.clone())));
        Ok(Some(schema.returned(&kept, stamp_of(at))))
    }

    pub(super) fn delete(&mut self, target: &Target, at: &At) -> Result<bool, Error> {
        let schema = self.schema;
        let primary_key = packed(&schema.key_at(target));
        let found = self.open(at).records.contains_key(&primary_key);
        self.states.write(|state| state.put(&schema, &primary_key, None));
        Ok(found)
    }

    pub(super) fn delete_where(&mut self, target: &Target, columns: usize, at: &At) -> Result<(), Error> {
        let schema = self.schema;
        let prefix = schema.prefix(target, columns);
        schema.can_delete_where(self.open(at), prefix.len())?;
        self.states.write(|state| state.remove_where(&prefix));
        Ok(())
    }

    pub(super) fn delete_all(&mut self, at: &At) -> Result<(), Error> {
        self.open(at);
        self.states.write(|state| state.remove_where(&[]));
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        target: &Target,
        snapshot: bool,
        at: &At,
    ) -> Result<Option<Returned>, Error> {
        let schema = self.schema;
        let found = self.look(snapshot, at)?.records.get(&packed(&schema.key_at(target)));
        Ok(found.map(|kept| schema.returned(kept, stamp_of(at))))
    }

    pub(super) fn exists(&mut self, target: &Target, snapshot: bool, at: &At) -> Result<bool, Error> {
        let primary_key = packed(&self.schema.key_at(target));
        Ok(self.look(snapshot, at)?.records.contains_key(&primary_key))
    }

    pub(super) fn version(&mut self, target: &Target, at: &At) -> Result<Option<[u8; 12]>, Error> {
        let primary_key = packed(&self.schema.key_at(target));
        let found = self.look(false, at)?.records.get(&primary_key);
        Ok(found.and_then(|kept| seen(kept.version, stamp_of(at))))
    }

    pub(super) fn states(&mut self, at: &At) -> Result<Listed, Error> {
        let schema = self.schema;
        let state = self.look(false, at)?;
        let mut names: Vec<_> =
            state.indexes(&schema).map(|index| (index.name, state.disabled.contains(index.name))).collect();
        names.sort_unstable();
        Ok(listed(names))
    }

    pub(super) fn disable(&mut self, index: &str, at: &At) -> Result<(), Error> {
        let schema = self.schema;
        let definition = self.open(at).index(&schema, index)?;
        self.states.write(|state| {
            state.disabled.insert(index.into());
            state.groups.remove(&definition.number);
        });
        Ok(())
    }

    pub(super) fn upgrade(&mut self, at: &At) -> Result<Option<(i32, Option<i32>)>, Error> {
        self.states.begin(at);
        let state = self.states.now();
        let opened = state.created.then(|| (self.schema.version(state.later), self.user));
        let removed: Vec<_> =
            definitions(&self.schema).into_iter().filter(|index| index.is_removed).collect();
        self.states.write(|state| {
            (state.created, state.later) = (true, true);
            state.disabled.retain(|name| removed.iter().all(|index| index.name != name));
        });
        Ok(opened)
    }
}

impl Schema {
    /// The columns of the primary key of a target.
    pub(super) fn key_at(&self, (of, place): &Target) -> Vec<Element<'static>> {
        self.key_of(*of, place)
    }

    /// This many columns of the primary key of a target; one more is the number of a row that the record may
    /// have.
    pub(super) fn prefix(&self, target: &Target, columns: usize) -> Vec<Element<'static>> {
        let row = Element::Int(suffix::WHOLE);
        first(self.key_at(target).into_iter().chain([row]).collect(), columns)
    }

    /// A record as answers contain it.
    pub(super) fn returned(&self, kept: &Kept, stamp: [u8; 10]) -> Returned {
        let rows = layout::rows(self, &kept.record, kept.version.as_ref());
        let keys = rows.iter().map(|(key, _)| key.len()).sum();
        let values = rows.iter().map(|(_, value)| value.len()).sum();
        Returned {
            primary_key: packed(&self.primary_key(&kept.record)),
            of: kept.record.type_name().into(),
            hash: hash(&kept.record),
            version: seen(kept.version, stamp),
            size: (rows.len(), keys, values),
        }
    }
}
