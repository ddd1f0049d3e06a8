//! What the layer should refuse: records, and deletions by the first columns of primary keys.

use super::{
    calls::Check,
    indexes::{Definition, Kind},
    layout,
    model::{Kept, State},
    plain::Record,
    schema::{Schema, packed, tuple},
};
use foundationdb_tuple::Element;
use shaketable_record::error::Error;
use shaketable_tx::limits;

impl Schema {
    /// Why a record is refused.
    pub(super) fn refusals(&self, state: &State, record: &Record, check: Check) -> Vec<Error> {
        let elements = self.primary_key(record);
        let old = state.records.get(&packed(&elements)).map(|kept| &kept.record);
        let primary_key = || tuple(&elements);
        let is_other = |old: &Record| old.type_name() != record.type_name();
        match (check, old) {
            (Check::Absent, Some(_)) => return vec![Error::Exists(primary_key())],
            (Check::Present | Check::Update, None) => return vec![Error::NotFound(primary_key())],
            (Check::SameType | Check::Update, Some(old)) if is_other(old) => {
                return vec![Error::TypeChanged {
                    primary_key: primary_key(),
                    found: old.type_name().into(),
                    wanted: record.type_name().into(),
                }];
            }
            _ => {}
        }
        if !self.splits
            && let Err(too_large) =
                limits::value_up_to(100_000, &layout::row_key(&elements, 0), &record.stored())
        {
            return vec![too_large.into()];
        }
        let maintained = state.maintained(self);
        maintained.iter().flat_map(|index| self.refusals_of(state, index, old, record)).collect()
    }

    /// Why an index refuses a record.
    fn refusals_of(
        &self,
        state: &State,
        index: &Definition,
        old: Option<&Record>,
        new: &Record,
    ) -> Vec<Error> {
        let named = |too_large| Error::EntryTooLarge { index: index.name.into(), too_large };
        let key = |row: &[u8]| [layout::index(index.number).bytes(), row].concat();
        if !index.has_entries() {
            let before = old.map(|old| index.contributions(self, old)).unwrap_or_default();
            let after = index.contributions(self, new);
            let stays =
                |group: &Vec<u8>| index.kind != Kind::CountUpdates && before.get(group) == after.get(group);
            let changed = after.keys().chain(before.keys()).filter(|group| !stays(group));
            let fits = |group: &Vec<u8>| limits::key(&key(group)).err();
            return changed.filter_map(fits).map(named).collect();
        }
        let before = old.map(|old| index.entries(self, old, None)).unwrap_or_default();
        let mut refusals = Vec::new();
        for (row, added) in index.entries(self, new, None) {
            if before.contains_key(&row) {
                continue;
            }
            refusals.extend(limits::key(&key(&row)).err().map(named));
            if index.unique && added.is_compared {
                refusals.extend(self.not_unique(state, index, &added.columns, new));
            }
        }
        refusals
    }

    /// The refusal of a key that another record has in a unique index.
    fn not_unique(
        &self,
        state: &State,
        index: &Definition,
        key: &[Element<'static>],
        new: &Record,
    ) -> Option<Error> {
        let own = self.primary_key(new);
        let has = |kept: &&Kept| {
            let keys = index.keys(self, &kept.record, None);
            keys.iter().any(|other| packed(&other.columns) == packed(key))
                && packed(&self.primary_key(&kept.record)) != packed(&own)
        };
        let existing = state.records.values().find(has)?;
        Some(Error::NotUnique {
            index: index.name.into(),
            key: tuple(key),
            primary_key: tuple(&own),
            existing: tuple(&self.primary_key(&existing.record)),
        })
    }

    /// Records can be deleted by as many columns as the keys of all indexes begin with.
    pub(super) fn can_delete_where(&self, state: &State, columns: usize) -> Result<(), Error> {
        let mut names: Vec<_> = state.maintained(self).iter().map(|index| index.name).collect();
        names.sort_unstable();
        match names.first() {
            Some(name) if columns > self.prefix => Err(Error::IndexState {
                index: (*name).into(),
                reason: "its keys do not begin with these columns of the primary key".into(),
            }),
            _ => Ok(()),
        }
    }
}
