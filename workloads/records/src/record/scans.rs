//! What scans and aggregates should return.

use super::{
    Target,
    answers::{Listed, listed},
    indexes::{Definition, Kind},
    model::{Kept, Model, number, own_version, stamp_of, starts_with},
    plain::Record,
    schema::{Schema, packed},
    span::{Span, contains, first},
};
use foundationdb_tuple::{Element, unpack};
use shaketable::specimen::At;
use shaketable_record::error::Error;
use std::collections::BTreeMap;

/// A row of a scan: its packed key, primary key and value.
type Entry = (Vec<u8>, Vec<u8>, Vec<u8>);

impl Schema {
    /// The columns of the keys of an index that a bound names.
    pub(super) fn bound(&self, index: &Definition, like: &Record) -> Vec<Element<'static>> {
        let version = own_version(100);
        let Some(key) = index.keys(self, like, Some(&version)).into_iter().next() else {
            return self.primary_key(like).into_iter().take(self.prefix).collect();
        };
        match index.has_entries() {
            true => key.columns.into_iter().chain(self.primary_key(like)).collect(),
            false => first(key.columns.clone(), key.columns.len() - index.grouped()),
        }
    }
}

impl Model {
    pub(super) fn scan(&mut self, span: &Span<Target>, at: &At) -> Result<Listed, Error> {
        let (schema, stamp) = (self.schema, stamp_of(at));
        let ends = span.ends(|target| schema.key_at(target));
        let within = |kept: &&Kept| contains(&ends, &schema.primary_key(&kept.record));
        let records = self.look(false, at)?.records.values();
        let found = records.filter(within).map(|kept| Some(schema.returned(kept, stamp)));
        Ok(ordered(found.collect(), span.reverse))
    }

    pub(super) fn scan_index(&mut self, name: &str, span: &Span<Record>, at: &At) -> Result<Listed, Error> {
        let (schema, stamp) = (self.schema, stamp_of(at));
        let state = self.look(false, at)?;
        let index = &state.index(&schema, name)?;
        if state.disabled.contains(name) {
            return Err(Error::IndexState { index: name.into(), reason: "it is disabled".into() });
        }
        let ends = span.ends(|like| schema.bound(index, like));
        let mut found: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        if !index.has_entries() {
            let is_number = matches!(index.kind, Kind::Count | Kind::CountUpdates | Kind::Sum);
            for (group, row) in state.groups.get(&index.number).into_iter().flatten() {
                let columns: Vec<Element<'_>> = unpack(group).unwrap_or_default();
                let columns: Vec<_> = columns.into_iter().map(Element::into_owned).collect();
                let value = if is_number { packed(&[Element::Int(number(row))]) } else { row.clone() };
                if contains(&ends, &columns) {
                    found.insert(group.clone(), (group.clone(), Vec::new(), value));
                }
            }
        }
        // Entries of versions that are not complete cannot be read.
        let is_readable = |kept: &&Kept| {
            index.kind != Kind::Version || kept.version.is_none_or(|version| version[..10] != stamp)
        };
        for kept in state.records.values().filter(is_readable).filter(|_| index.has_entries()) {
            let primary_key = schema.primary_key(&kept.record);
            for (row, key) in index.entries(&schema, &kept.record, kept.version.as_ref()) {
                if contains(&ends, &[&key.columns[..], &primary_key].concat()) {
                    found.insert(row, (packed(&key.columns), packed(&primary_key), Vec::new()));
                }
            }
        }
        Ok(ordered(found.into_values().collect(), span.reverse))
    }
    /// What an index aggregates over the groups that begin with this many columns of a record's, if `of_one`
    /// of the records of its type only: no two indexes aggregate the same of different types.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        like: &Record,
        columns: usize,
        of_one: bool,
        at: &At,
    ) -> Result<Option<Vec<u8>>, Error> {
        let schema = self.schema;
        let state = self.look(false, at)?;
        let index = &state.index(&schema, name)?;
        let is_of_others = of_one && *index.types != [like.type_name()];
        if state.disabled.contains(name) || is_of_others {
            let expression = &schema.meta_data()[usize::from(state.later)]
                .index(name)
                .map(|index| (index.kind.clone(), index.expression.clone()));
            let (kind, operand) = expression.as_ref().ok_or_else(|| Error::UnknownIndex(name.into()))?;
            return Err(Error::Query(format!(
                "no readable index of type {kind} has {operand} of just these records"
            )));
        }
        let group = first(schema.bound(index, like), columns);
        let groups = state.groups.get(&index.number).into_iter().flatten();
        let rows = groups.filter(|(of, _)| starts_with(of, &group)).map(|(_, row)| row);
        // Packed values are in the order of the values.
        Ok(match index.kind {
            Kind::MinEver => rows.min().cloned(),
            Kind::MaxEver => rows.max().cloned(),
            _ => {
                let sum = rows.fold(0, |sum: i64, row| sum.wrapping_add(number(row)));
                Some(packed(&[Element::Int(sum)]))
            }
        })
    }
}

fn ordered<I: std::fmt::Debug>(mut items: Vec<I>, reverse: bool) -> Listed {
    if reverse {
        items.reverse();
    }
    listed(items)
}
