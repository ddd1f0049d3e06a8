//! The states of a store's indexes, as one transaction sees them.
//!
//! A state that is not [`IndexState::Readable`] is a row of its own. All of them are read when the store is
//! opened, and the transaction conflicts with every change of them: no save misses an index that became
//! writable, or fails to record a violation.

use super::{IndexAt, IndexMaintainer, IndexState, range_set::RangeSet};
use crate::{
    error::Error,
    metadata::Index,
    store::{Part, RecordStore},
    value::Tuple,
};
use shaketable_tx::{Isolation, RangeOption, Transaction, sometimes};
use std::sync::Arc;

impl<T: Transaction> RecordStore<T> {
    /// The index with this name. Fails with [`Error::UnknownIndex`].
    pub fn index(&self, name: &str) -> Result<&Arc<Index>, Error> {
        self.meta_data().index(name).ok_or_else(|| Error::UnknownIndex(name.into()))
    }

    /// The state of an index. Fails with [`Error::UnknownIndex`].
    pub fn index_state(&self, name: &str) -> Result<IndexState, Error> {
        self.index(name)?;
        Ok(self.opened().states.get(name).copied().unwrap_or_default())
    }

    /// Whether an index is [`IndexState::Readable`].
    pub fn is_readable(&self, name: &str) -> Result<bool, Error> {
        Ok(self.index_state(name)? == IndexState::Readable)
    }

    /// Whether an index has the keys of all records, so that it can be scanned. Its keys may still violate
    /// its uniqueness.
    pub fn is_scannable(&self, name: &str) -> Result<bool, Error> {
        Ok(self.index_state(name)?.is_scannable())
    }

    /// Disables an index: it is no longer written, and what it has is removed. Nothing happens if it is
    /// disabled.
    pub async fn mark_index_disabled(&self, name: &str) -> Result<(), Error> {
        self.writing().await?.begin_anew(name, IndexState::Disabled)
    }

    /// Begins to write an index, which becomes empty, for an online build. Nothing happens if it is
    /// write-only.
    pub async fn mark_index_write_only(&self, name: &str) -> Result<(), Error> {
        self.writing().await?.begin_anew(name, IndexState::WriteOnly)
    }

    /// Empties an index that does not have this state, and gives it the state.
    pub(crate) fn begin_anew(&self, name: &str, state: IndexState) -> Result<(), Error> {
        if self.index_state(name)? != state {
            self.clear_index(name)?;
            self.set_index_state(name, state)?;
        }
        Ok(())
    }

    /// Makes a write-only index readable that has the keys of all records, or, if some of them violate its
    /// uniqueness, [readable with that pending](IndexState::ReadableUniquePending); and an index with that
    /// pending readable once no violation is left. Returns the state that it has then. Fails with
    /// [`Error::IndexState`] if it was not built completely.
    pub async fn mark_index_readable(&self, name: &str) -> Result<IndexState, Error> {
        let store = self.writing().await?;
        let state = store.index_state(name)?;
        if state == IndexState::Readable {
            return Ok(state);
        }
        let at = IndexAt { store: &store, index: self.index(name)? };
        let is_built = state == IndexState::ReadableUniquePending
            || state == IndexState::WriteOnly
                && RangeSet::new(at.space(Part::Ranges)).is_complete(at.transaction()?).await?;
        if !is_built {
            let reason = format!("it is {state}, and was not built completely");
            return Err(Error::IndexState { index: name.into(), reason });
        }
        store.finish_index(name).await
    }

    /// Makes an index readable that has the keys of all records, unless there are violations of its
    /// uniqueness.
    pub(crate) async fn finish_index(&self, name: &str) -> Result<IndexState, Error> {
        let at = IndexAt { store: self, index: self.index(name)? };
        let state = match at.index.unique && at.has_violations().await? {
            true => IndexState::ReadableUniquePending,
            false => IndexState::Readable,
        };
        let tx = at.transaction()?;
        let violations = (state == IndexState::Readable).then_some(Part::Violations);
        for part in [Part::Ranges, Part::Builds].into_iter().chain(violations) {
            let (begin, end) = at.space(part).range();
            tx.clear_range(&begin, &end);
        }
        self.set_index_state(name, state)?;
        Ok(state)
    }

    /// Sets the state of an index, whatever it has.
    pub(crate) fn set_index_state(&self, name: &str, state: IndexState) -> Result<(), Error> {
        let tx = self.context().transaction()?;
        let key = self.keyspace().part(Part::States).pack(&(name,));
        let states = &mut self.opened().states;
        match state {
            IndexState::Readable => {
                tx.clear(&key);
                states.remove(name);
            }
            state => {
                tx.set(&key, &Tuple::from(state as i64).pack());
                states.insert(name.into(), state);
            }
        }
        Ok(())
    }

    /// Removes everything that an index keeps, except for its state.
    pub(crate) fn clear_index(&self, name: &str) -> Result<(), Error> {
        self.clear_subspace_key(self.index(name)?.subspace_key)
    }

    /// Removes everything that the index with this number keeps.
    pub(crate) fn clear_subspace_key(&self, number: i64) -> Result<(), Error> {
        for part in [Part::Indexes, Part::Secondary, Part::Ranges, Part::Violations, Part::Builds] {
            let space = self.keyspace().part(part).subspace(&(number,));
            self.context().clear_range(space.bytes(), &space.range().1)?;
        }
        Ok(())
    }
}

impl<T: Transaction> IndexAt<'_, T> {
    /// The state of the index.
    pub fn state(&self) -> Result<IndexState, Error> {
        self.store.index_state(&self.index.name)
    }

    /// Whether there are violations of the index's uniqueness. The read is serializable.
    pub async fn has_violations(&self) -> Result<bool, Error> {
        let range = RangeOption::from(self.space(Part::Violations).range()).limit(1);
        Ok(!self.transaction()?.get_range_all(range, Isolation::Serializable).await?.is_empty())
    }

    /// Whether the index has to be updated for a record. A disabled index has not. One that is being built,
    /// and for which a record must not be counted twice, has if the build has passed the record.
    pub(crate) async fn is_maintained(
        &self,
        maintainer: &dyn IndexMaintainer<T>,
        primary_key: &Tuple,
    ) -> Result<bool, Error> {
        match self.state()? {
            IndexState::Disabled => Ok(false),
            IndexState::WriteOnly if !maintainer.is_idempotent(self.index) => {
                let built = RangeSet::new(self.space(Part::Ranges));
                let is_built = built.contains(self.transaction()?, &primary_key.pack()).await?;
                sometimes!(is_built, "record: a save changes a count that is being built");
                sometimes!(!is_built, "record: a save leaves a count to the build");
                Ok(is_built)
            }
            _ => Ok(true),
        }
    }
}
