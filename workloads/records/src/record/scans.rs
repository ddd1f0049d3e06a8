//! What scans should return.

use super::{
    Records,
    indexes::{Definition, Kind},
    model::{Kept, State, number, own_version, starts_with},
    operations::{Answer, End, Span, Target, listed},
    plain::Record,
    schema::packed,
};
use foundationdb_tuple::{Element, unpack};
use shaketable_record::error::Error;
use std::collections::BTreeMap;

/// A row of a scan: its packed key, primary key and value.
type Entry = (Vec<u8>, Vec<u8>, Vec<u8>);

/// Whether a key is in a range. An end is compared with as many columns of the key as it has.
fn contains(
    low: &End<Vec<Element<'static>>>,
    high: &End<Vec<Element<'static>>>,
    key: &[Element<'static>],
) -> bool {
    let compared = |end: &[Element<'static>]| packed(&key[..end.len().min(key.len())]).cmp(&packed(end));
    let above = match low {
        End::Open => true,
        End::Inclusive(end, _) => compared(end).is_ge(),
        End::Exclusive(end, _) => compared(end).is_gt(),
    };
    let below = match high {
        End::Open => true,
        End::Inclusive(end, _) => compared(end).is_le(),
        End::Exclusive(end, _) => compared(end).is_lt(),
    };
    above && below
}

impl Records {
    pub(super) fn scan(&self, state: &State, span: &Span<Target>, stamp: [u8; 10]) -> Answer {
        let end = |end: &End<Target>| end.columns(|target| self.primary_key(target));
        let (low, high) = (end(&span.low), end(&span.high));
        let within = |kept: &&Kept| contains(&low, &high, &self.schema.primary_key(&kept.record));
        let found = state.records.values().filter(within).map(|kept| Some(self.told(kept, stamp)));
        ordered(found.collect(), span.reverse)
    }

    /// The columns of the keys of an index that a bound names.
    pub(super) fn bound(&self, index: &Definition, like: &Record) -> Vec<Element<'static>> {
        let version = own_version(100);
        let Some(key) = index.keys(&self.schema, like, Some(&version)).into_iter().next() else {
            return self.schema.primary_key(like).into_iter().take(self.schema.prefix).collect();
        };
        match index.has_entries() {
            true => key.columns.into_iter().chain(self.schema.primary_key(like)).collect(),
            false => first(key.columns.clone(), key.columns.len() - index.grouped()),
        }
    }

    pub(super) fn scan_index(
        &self,
        state: &State,
        name: &str,
        span: &Span<Box<Record>>,
        stamp: [u8; 10],
    ) -> Result<Answer, Error> {
        let index = &self.index(state, name)?;
        if state.disabled.contains(name) {
            return Err(Error::IndexState { index: name.into(), reason: "it is disabled".into() });
        }
        let end = |end: &End<Box<Record>>| end.columns(|like| self.bound(index, like));
        let (low, high) = (end(&span.low), end(&span.high));
        let mut found: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
        if !index.has_entries() {
            let is_number = matches!(index.kind, Kind::Count | Kind::CountUpdates | Kind::Sum);
            for (group, row) in state.groups.get(&index.number).into_iter().flatten() {
                let columns: Vec<Element<'_>> = unpack(group).unwrap_or_default();
                let columns: Vec<_> = columns.into_iter().map(Element::into_owned).collect();
                let value = if is_number { packed(&[Element::Int(number(row))]) } else { row.clone() };
                if contains(&low, &high, &columns) {
                    found.insert(group.clone(), (group.clone(), Vec::new(), value));
                }
            }
        }
        // Entries of versions that are not complete cannot be read.
        let is_readable = |kept: &&Kept| {
            index.kind != Kind::Version || kept.version.is_none_or(|version| version[..10] != stamp)
        };
        for kept in state.records.values().filter(is_readable).filter(|_| index.has_entries()) {
            let primary_key = self.schema.primary_key(&kept.record);
            for (row, key) in index.entries(&self.schema, &kept.record, kept.version.as_ref()) {
                if contains(&low, &high, &[&key.columns[..], &primary_key].concat()) {
                    found.insert(row, (packed(&key.columns), packed(&primary_key), Vec::new()));
                }
            }
        }
        Ok(ordered(found.into_values().collect(), span.reverse))
    }
}

impl Records {
    /// What an index aggregates over the groups that begin with this many columns of a record's, if `of_one`
    /// of the records of its type only: no two indexes aggregate the same of different types.
    pub(super) fn aggregate(
        &self,
        state: &State,
        name: &str,
        like: &Record,
        columns: usize,
        of_one: bool,
    ) -> Result<Answer, Error> {
        let index = &self.index(state, name)?;
        let is_of_others = of_one && *index.types != [like.type_name()];
        if state.disabled.contains(name) || is_of_others {
            let expression = &self.schema.meta_data()[usize::from(state.later)]
                .index(name)
                .map(|index| (index.kind.clone(), index.expression.clone()));
            let (kind, operand) = expression.as_ref().ok_or_else(|| Error::UnknownIndex(name.into()))?;
            return Err(Error::Query(format!(
                "no readable index of type {kind} has {operand} of just these records"
            )));
        }
        let group = first(self.bound(index, like), columns);
        let groups = state.groups.get(&index.number).into_iter().flatten();
        let rows = groups.filter(|(of, _)| starts_with(of, &group)).map(|(_, row)| row);
        // Packed values are in the order of the values.
        Ok(Answer::Aggregate(match index.kind {
            Kind::MinEver => rows.min().cloned(),
            Kind::MaxEver => rows.max().cloned(),
            _ => {
                let sum = rows.fold(0, |sum: i64, row| sum.wrapping_add(number(row)));
                Some(packed(&[Element::Int(sum)]))
            }
        }))
    }
}

fn ordered<I: std::fmt::Debug>(mut items: Vec<I>, reverse: bool) -> Answer {
    if reverse {
        items.reverse();
    }
    listed(items)
}

pub(super) fn first(mut columns: Vec<Element<'static>>, most: usize) -> Vec<Element<'static>> {
    columns.truncate(most);
    columns
}

impl<L> End<L> {
    /// The columns of this end.
    pub(super) fn columns(
        &self,
        columns: impl Fn(&L) -> Vec<Element<'static>>,
    ) -> End<Vec<Element<'static>>> {
        match self {
            End::Open => End::Open,
            End::Inclusive(like, most) => End::Inclusive(first(columns(like), *most), *most),
            End::Exclusive(like, most) => End::Exclusive(first(columns(like), *most), *most),
        }
    }
}
