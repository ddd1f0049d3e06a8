//! Everything that is stored, read as a model: at every version each index must be the projection of the
//! records, the unique ones unique, and there must be no other row.

use super::{
    Records,
    indexes::{Contribution, Kind},
    layout,
    model::{Kept, Model, State, number},
    plain::Record,
    ranked::{self, Scores},
    schema::packed,
};
use crate::{
    beside,
    record_shared::{
        layout::{FORMAT, Header, part, rows, state, suffix, text, version_of},
        rows::compare,
    },
};
use bytes::Bytes;
use foundationdb_tuple::{Element, unpack};
use prost::Message;
use shaketable_tx::{self as tx, Tx};
use std::collections::BTreeMap;

/// Rows below some subspace.
pub(super) type Rows = BTreeMap<Vec<u8>, Bytes>;

/// The rows of a store, by its parts.
#[derive(Default)]
struct Parts {
    header: Option<Bytes>,
    /// The rows of each record, by the last elements of their keys.
    records: BTreeMap<Vec<u8>, BTreeMap<i64, Bytes>>,
    /// The rows of indexes, by the index's number and the rest of the key.
    indexes: BTreeMap<i64, Rows>,
    /// The rows of ranked sets, likewise.
    secondary: BTreeMap<i64, Rows>,
    states: BTreeMap<String, Bytes>,
}

impl Parts {
    fn take(&mut self, key: &[u8], value: Bytes) -> Option<()> {
        let below = key.strip_prefix(layout::store().bytes())?;
        let elements: Vec<Element<'_>> = unpack(below).ok()?;
        match &elements[..] {
            [Element::Int(part::HEADER)] => self.header = Some(value),
            [Element::Int(part::RECORDS), primary_key @ .., Element::Int(last)]
                if !primary_key.is_empty() =>
            {
                let primary_key: Vec<_> = primary_key.iter().cloned().map(Element::into_owned).collect();
                self.records.entry(packed(&primary_key)).or_default().insert(*last, value);
            }
            [Element::Int(part::INDEXES), Element::Int(number), ..] => {
                let rest = key.strip_prefix(layout::index(*number).bytes())?;
                self.indexes.entry(*number).or_default().insert(rest.to_vec(), value);
            }
            [Element::Int(part::SECONDARY), Element::Int(number), ..] => {
                let rest = key.strip_prefix(layout::secondary(*number).bytes())?;
                self.secondary.entry(*number).or_default().insert(rest.to_vec(), value);
            }
            [Element::Int(part::STATES), Element::String(name)] => {
                self.states.insert(name.to_string(), value);
            }
            _ => return None,
        }
        Some(())
    }
}

impl Records {
    /// Reads everything that is stored, as a model. The inner error describes a broken invariant.
    pub(super) async fn read(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        let beside = self.beside();
        if let Err(why) = beside::check(tx, &beside).await? {
            return Ok(Err(why));
        }
        let mut parts = Parts::default();
        for row in rows(tx, &layout::store()).await? {
            if parts.take(&row.key, row.value).is_none() {
                return Ok(Err(format!("the row {} is of no part of the store", text(&row.key))));
            }
        }
        Ok(self.state(parts).map(|state| Model::new(self.schema, self.user, state)))
    }

    fn state(&self, parts: Parts) -> Result<State, String> {
        let Some(header) = parts.header else {
            let is_empty = parts.records.is_empty()
                && parts.indexes.is_empty()
                && parts.secondary.is_empty()
                && parts.states.is_empty();
            return if is_empty { Ok(State::default()) } else { Err("rows without a header".into()) };
        };
        let mut state = State { created: true, later: self.is_later(&header)?, ..State::default() };
        state.disabled = parts
            .states
            .into_iter()
            .map(|(name, value)| match value == packed(&[Element::Int(state::DISABLED)]) {
                true => Ok(name),
                false => Err(format!("the index {name} has the state {}", text(&value))),
            })
            .collect::<Result<_, String>>()?;
        let known: Vec<_> = state.indexes(&self.schema).map(|index| index.name).collect();
        if let Some(name) = state.disabled.iter().find(|name| !known.contains(&&***name)) {
            return Err(format!("there is a state of the index {name}, which is not in the meta-data"));
        }
        for (primary_key, rows) in parts.records {
            let kept = self
                .kept(&primary_key, rows)
                .map_err(|why| format!("the record {}: {why}", text(&primary_key)))?;
            state.records.insert(primary_key, kept);
        }
        self.ranked_sets(&state, parts.secondary)?;
        self.indexes(&mut state, parts.indexes)?;
        self.unique(&state)?;
        Ok(state)
    }

    /// Whether the header is that of the later meta-data.
    fn is_later(&self, header: &[u8]) -> Result<bool, String> {
        let found = Header::decode(header).map_err(|error| format!("the header: {error}"))?;
        let expected = |later| Header {
            format: Some(FORMAT),
            meta_data: Some(self.schema.version(later)),
            user: self.user,
        };
        match found {
            found if found == expected(false) => Ok(false),
            found if found == expected(true) => Ok(true),
            found => Err(format!("the header is {found:?}")),
        }
    }

    /// The record in these rows.
    fn kept(&self, primary_key: &[u8], rows: BTreeMap<i64, Bytes>) -> Result<Kept, String> {
        let version =
            rows.get(&suffix::VERSION).map(|value| version_of(value).ok_or("its version cannot be read"));
        let version = version.transpose()?;
        let bytes: Vec<&[u8]> = rows.range(suffix::WHOLE..).map(|(_, value)| &value[..]).collect();
        let record = Record::of_stored(&bytes.concat()).ok_or("it is no record, or not only one")?;
        let found: Vec<_> =
            rows.keys().map(|last| layout::row_key(&self.schema.primary_key(&record), *last)).collect();
        let expected: Vec<_> =
            layout::rows(&self.schema, &record, version.as_ref()).into_iter().map(|(key, _)| key).collect();
        if packed(&self.schema.primary_key(&record)) != primary_key {
            return Err("it has another primary key".into());
        }
        if version.is_some() != self.schema.versions {
            return Err(format!("its version is {version:?}"));
        }
        match found == expected {
            true => Ok(Kept { record, version }),
            false => Err(format!("it has the rows {:?}", rows.keys().collect::<Vec<_>>())),
        }
    }

    /// Compares the rows of all indexes with what the records should have there.
    fn indexes(&self, state: &mut State, mut stored: BTreeMap<i64, Rows>) -> Result<(), String> {
        for index in state.maintained(&self.schema) {
            let rows = stored.remove(&index.number).unwrap_or_default();
            if index.has_entries() {
                let entries = |kept: &Kept| index.entries(&self.schema, &kept.record, kept.version.as_ref());
                let expected: Rows = state
                    .records
                    .values()
                    .flat_map(|kept| entries(kept).into_keys().map(|row| (row, Bytes::new())))
                    .collect();
                compare(&rows, &expected).map_err(|why| format!("index {}: {why}", index.name))?;
                continue;
            }
            let rows: BTreeMap<_, _> = rows.into_iter().map(|(group, row)| (group, row.to_vec())).collect();
            let now = state.records.values().map(|kept| index.contributions(&self.schema, &kept.record));
            groups(index.kind, index.clears_zero, &rows, now.collect())
                .map_err(|why| format!("index {}: {why}", index.name))?;
            if !rows.is_empty() {
                state.groups.insert(index.number, rows);
            }
        }
        match stored.into_iter().next() {
            None => Ok(()),
            Some((number, rows)) => {
                Err(format!("index {number} is disabled or removed, and has {} rows", rows.len()))
            }
        }
    }

    /// Compares the ranked sets with the scores of the records.
    fn ranked_sets(&self, state: &State, mut stored: BTreeMap<i64, Rows>) -> Result<(), String> {
        for index in state.maintained(&self.schema).iter().filter(|index| index.kind == Kind::Rank) {
            let mut scores = Scores::new();
            for key in state.records.values().flat_map(|kept| index.keys(&self.schema, &kept.record, None)) {
                let (group, score) = key.columns.split_at(key.columns.len() - index.grouped());
                scores.entry(packed(group)).or_default().insert(packed(score));
            }
            let rows = stored.remove(&index.number).unwrap_or_default();
            ranked::check(&rows, &scores).map_err(|why| format!("index {}: {why}", index.name))?;
        }
        match stored.into_keys().next() {
            None => Ok(()),
            Some(number) => Err(format!("index {number} is not one of ranks, and has ranked sets")),
        }
    }

    /// No two records may have the same key in a unique index.
    fn unique(&self, state: &State) -> Result<(), String> {
        for index in state.maintained(&self.schema).iter().filter(|index| index.unique) {
            let mut taken = BTreeMap::new();
            for kept in state.records.values() {
                let keys = index.keys(&self.schema, &kept.record, None);
                for key in keys.iter().filter(|key| key.is_compared) {
                    if let Some(other) = taken.insert(packed(&key.columns), &kept.record) {
                        let (one, name) = (&kept.record, index.name);
                        return Err(format!("index {name}: {one:?} and {other:?} have the same key"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Compares the groups of an index of aggregates with what the records that are there now contribute. What
/// records contributed that are gone is known to the model alone.
fn groups(
    kind: Kind,
    clears_zero: bool,
    rows: &BTreeMap<Vec<u8>, Vec<u8>>,
    now: Vec<BTreeMap<Vec<u8>, Contribution>>,
) -> Result<(), String> {
    let mut sums: BTreeMap<&Vec<u8>, i64> = BTreeMap::new();
    for (group, contribution) in now.iter().flatten() {
        let row = rows.get(group);
        let wrong = || format!("group {} is {:?}, and a record has {contribution:?}", text(group), row);
        match contribution {
            Contribution::Number(number) => {
                let sum = sums.entry(group).or_default();
                *sum = sum.wrapping_add(*number);
            }
            Contribution::Value(value) if kind == Kind::MinEver => {
                row.filter(|row| *row <= value).ok_or_else(wrong)?;
            }
            Contribution::Value(value) => {
                row.filter(|row| *row >= value).ok_or_else(wrong)?;
            }
        }
    }
    if matches!(kind, Kind::MinEver | Kind::MaxEver) {
        return Ok(());
    }
    for group in rows.keys().chain(sums.keys().copied()) {
        let (row, sum) = (rows.get(group), sums.get(group).copied().unwrap_or(0));
        let found = row.map_or(0, |row| number(row));
        let is_right = match kind {
            Kind::CountUpdates => found >= sum,
            _ => found == sum,
        };
        if !is_right || row.is_some_and(|row| row.len() != 8 || clears_zero && found == 0) {
            return Err(format!("group {} is {row:?}, should be {sum}", text(group)));
        }
    }
    Ok(())
}
