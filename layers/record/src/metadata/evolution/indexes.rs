//! The rules of indexes and former indexes, which are told apart by the numbers under which they are stored.

use super::{EvolutionError, IndexChange};
use crate::metadata::{FormerIndex, Index, RecordMetaData};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

type Numbered<'a, T> = BTreeMap<i64, &'a T>;

/// Checks the indexes. `renamed` has the new name of each old record type.
pub(super) fn validate(
    old: &RecordMetaData,
    new: &RecordMetaData,
    renamed: &BTreeMap<String, String>,
) -> Result<(), EvolutionError> {
    let (old_indexes, new_indexes) = (by_number(old), by_number(new));
    let (old_former, new_former) = (former_by_number(old), former_by_number(new));
    for (number, former) in &old_former {
        if let Some(index) = new_indexes.get(number) {
            return Err(EvolutionError::NumberReused { index: index.name.clone(), number: *number });
        }
        match new_former.get(number) {
            None => return Err(EvolutionError::FormerIndexDropped(former.name.clone())),
            Some(same) if same == former => {}
            Some(_) => return Err(EvolutionError::FormerIndexChanged { name: former.name.clone() }),
        }
    }
    for (number, index) in &old_indexes {
        if !new_indexes.contains_key(number) && !new_former.contains_key(number) {
            return Err(EvolutionError::IndexDropped(index.name.clone()));
        }
    }
    for (_, added) in new_former.iter().filter(|(number, _)| !old_former.contains_key(number)) {
        new_former_index(old, old_indexes.get(&added.subspace_key).copied(), added)?;
    }
    for (number, index) in &new_indexes {
        match old_indexes.get(number) {
            Some(before) => Change { old, new, renamed, before, after: index }.validate()?,
            None => new_index(old, index)?,
        }
    }
    Ok(())
}

fn by_number(meta_data: &RecordMetaData) -> Numbered<'_, Arc<Index>> {
    meta_data.indexes.values().map(|index| (index.subspace_key, index)).collect()
}

fn former_by_number(meta_data: &RecordMetaData) -> Numbered<'_, FormerIndex> {
    meta_data.former.iter().map(|former| (former.subspace_key, former)).collect()
}

fn new_index(old: &RecordMetaData, index: &Index) -> Result<(), EvolutionError> {
    match index.added_version.min(index.last_modified_version) {
        version if version <= old.version => {
            Err(EvolutionError::NewIndex { index: index.name.clone(), version, old: old.version })
        }
        _ => Ok(()),
    }
}

/// A former index that the old meta-data does not have: its index was there, or came and went in between.
fn new_former_index(
    old: &RecordMetaData,
    index: Option<&Arc<Index>>,
    former: &FormerIndex,
) -> Result<(), EvolutionError> {
    let (added, removed) = (former.added_version, former.removed_version);
    let not_later = |version| {
        Err(EvolutionError::FormerIndexVersion { name: former.name.clone(), added, removed, old: version })
    };
    if removed <= old.version {
        return not_later(old.version);
    }
    match index {
        None if added <= old.version => not_later(old.version),
        None => Ok(()),
        Some(index) if index.name != former.name || index.added_version != added => {
            Err(EvolutionError::FormerIndexChanged { name: former.name.clone() })
        }
        Some(_) => Ok(()),
    }
}

/// An index in both.
struct Change<'a> {
    old: &'a RecordMetaData,
    new: &'a RecordMetaData,
    renamed: &'a BTreeMap<String, String>,
    before: &'a Index,
    after: &'a Index,
}

impl Change<'_> {
    fn validate(&self) -> Result<(), EvolutionError> {
        let (before, after) = (self.before, self.after);
        let index = || after.name.clone();
        if before.name != after.name {
            return Err(EvolutionError::IndexRenamed { old: before.name.clone(), new: index() });
        }
        let (old, new) = (before.added_version, after.added_version);
        if old != new {
            return Err(EvolutionError::AddedVersion { index: index(), old, new });
        }
        let (old, new, last) = (before.last_modified_version, after.last_modified_version, self.old.version);
        match self.changed() {
            _ if old != new && (new < old || new <= last) => {
                Err(EvolutionError::ModifiedVersion { index: index(), old, new, last })
            }
            Some(change) if old == new => Err(EvolutionError::IndexChanged { index: index(), change }),
            _ => Ok(()),
        }
    }

    /// What of the change makes the entries of a store wrong.
    fn changed(&self) -> Option<IndexChange> {
        let (before, after) = (self.before, self.after);
        let changes = [
            (IndexChange::Kind, before.kind != after.kind),
            (IndexChange::RecordTypes, self.changes_types()),
            (IndexChange::Expression, !before.expression.is_same(&after.expression)),
            (IndexChange::Unique, after.unique && !before.unique),
            (IndexChange::Options, before.options != after.options),
        ];
        changes.into_iter().find(|(_, changed)| *changed).map(|(change, _)| change)
    }

    /// Whether the index lost a record type, or got one that older stores may have records of.
    fn changes_types(&self) -> bool {
        let of = |meta_data: &RecordMetaData, index: &Index| -> BTreeSet<String> {
            let names = meta_data.types.keys().filter(|name| meta_data.is_index_of(index, name));
            names.cloned().collect()
        };
        let before: BTreeSet<String> = of(self.old, self.before)
            .into_iter()
            .filter_map(|name| self.renamed.get(&name).cloned())
            .collect();
        let after = of(self.new, self.after);
        let is_older = |name: &&String| {
            self.new.types.get(*name).is_none_or(|found| found.since_version <= self.old.version)
        };
        !before.is_subset(&after) || after.difference(&before).any(|name| is_older(&name))
    }
}
