//! Deleting records: one, those whose primary keys begin alike, all.

use super::{Part, RecordStore, rows};
use crate::{
    cursor::TupleRange,
    error::Error,
    index::{IndexAt, IndexState},
    value::Tuple,
};
use shaketable_tx::Transaction;

impl<T: Transaction> RecordStore<T> {
    /// Deletes a record with its entries in indexes. Returns whether there was one. Fails with
    /// [`Error::Torn`] if the record cannot be read: its entries cannot be found then.
    pub async fn delete_record(&self, primary_key: &Tuple) -> Result<bool, Error> {
        let store = self.writing().await?;
        let Some(old) = store.load_record(primary_key).await? else { return Ok(false) };
        store.update_indexes(Some(&old), None).await?;
        rows::clear(&store.context, &store.keyspace.record(primary_key))?;
        Ok(true)
    }

    /// Deletes all records whose primary keys begin with `prefix`, with their entries in indexes, without
    /// reading them. Fails with [`Error::IndexState`], and has deleted nothing, if there is an index whose
    /// keys do not begin with these columns of the primary key.
    pub async fn delete_where(&self, prefix: &Tuple) -> Result<(), Error> {
        let store = self.writing().await?;
        let mut maintained = Vec::new();
        for index in self.meta_data.indexes() {
            if store.index_state(&index.name)? == IndexState::Disabled {
                continue;
            }
            let (at, maintainer) = (IndexAt { store: &store, index }, store.maintainer(index)?);
            if !maintainer.can_delete_where(at, prefix) {
                return Err(self.cannot_delete(&index.name));
            }
            maintained.push((at, maintainer));
        }
        for (at, maintainer) in maintained {
            if !maintainer.delete_where(at, prefix).await? {
                return Err(self.cannot_delete(&at.index.name));
            }
        }
        // There is no such record, but the rows of one record may begin with the prefix.
        if self.meta_data.beyond_primary_key(prefix).is_some() {
            return Ok(());
        }
        let (begin, end) = TupleRange::all_of(prefix.clone()).keys(&self.keyspace.part(Part::Records));
        store.context.clear_range(&begin, &end)
    }

    fn cannot_delete(&self, index: &str) -> Error {
        let reason = "its keys do not begin with these columns of the primary key".into();
        Error::IndexState { index: index.into(), reason }
    }

    /// Deletes all records, with everything that indexes keep about them: entries, ranked sets, violations,
    /// the progress of builds. The header and the states of indexes are kept. Nothing is read: the
    /// transaction conflicts with no other, and records that are saved at the same time are deleted if their
    /// transactions commit before.
    pub async fn delete_all_records(&self) -> Result<(), Error> {
        let store = self.writing().await?;
        let states = self.keyspace.part(Part::States);
        store.context.clear_range(self.keyspace.part(Part::Records).bytes(), states.bytes())?;
        store.context.clear_range(&states.range().1, &self.keyspace.store().range().1)
    }
}
