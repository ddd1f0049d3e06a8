//! Loading records by their primary keys.

use super::{
    Part, RecordStore, StoredRecord,
    rows::{self, Found},
    serial, suffix,
};
use crate::{error::Error, value::Tuple, version::RecordVersion};
use bytes::Bytes;
use foundationdb_tuple::Element;
use prost_reflect::ReflectMessage;
use shaketable_tx::{Isolation, RangeOption, StreamingMode, Transaction, key_after};

impl<T: Transaction> RecordStore<T> {
    /// The record with this primary key, as this transaction has left it. Fails with [`Error::Torn`] if its
    /// rows are not those of a record.
    pub async fn load_record(&self, primary_key: &Tuple) -> Result<Option<StoredRecord>, Error> {
        self.load_record_at(primary_key, Isolation::Serializable).await
    }

    /// As [`load_record`](RecordStore::load_record). At [`Isolation::Snapshot`] the record may have changed
    /// at the commit.
    pub async fn load_record_at(
        &self,
        primary_key: &Tuple,
        isolation: Isolation,
    ) -> Result<Option<StoredRecord>, Error> {
        if !self.meta_data.may_be_primary_key(primary_key) {
            return Ok(None);
        }
        let mut found = self.reading().await.find(primary_key, isolation).await?;
        match found.bytes(primary_key)? {
            Some(bytes) => self.stored(primary_key.clone(), found, bytes).map(Some),
            None => Ok(None),
        }
    }

    /// The record with this primary key as a message of a type of its own. Fails with [`Error::TypeChanged`]
    /// if it is of another record type.
    pub async fn load<M: ReflectMessage + Default>(&self, primary_key: &Tuple) -> Result<Option<M>, Error> {
        let loaded = self.load_record(primary_key).await?;
        loaded.map(|record| record.to_message()).transpose()
    }

    /// Whether there is a record with this primary key. Its bytes are not read back.
    pub async fn record_exists(&self, primary_key: &Tuple, isolation: Isolation) -> Result<bool, Error> {
        if !self.meta_data.may_be_primary_key(primary_key) {
            return Ok(false);
        }
        let record = self.keyspace.record(primary_key);
        let begin = rows::row_key(&record, suffix::UNSPLIT);
        let range = RangeOption::new(begin, rows::rows_of(&record).1).limit(1).mode(StreamingMode::Exact);
        let turn = self.context.reading().await;
        let found = turn.transaction()?.get_range_all(range, isolation).await?;
        Ok(!found.is_empty())
    }

    /// The version of the record with this primary key; `None` if there is no record, or if it was saved
    /// before the store kept versions. A record that this transaction has saved has an incomplete version.
    pub async fn load_record_version(&self, primary_key: &Tuple) -> Result<Option<RecordVersion>, Error> {
        if !self.meta_data.may_be_primary_key(primary_key) {
            return Ok(None);
        }
        let key = rows::row_key(&self.keyspace.record(primary_key), suffix::VERSION);
        let turn = self.context.reading().await;
        if let Some(written) = turn.written_version(&key) {
            return Ok(written);
        }
        let row = turn.transaction()?.get(&key, Isolation::Serializable).await?;
        row.map(|value| rows::version_of(primary_key, &value)).transpose()
    }

    async fn find(&self, primary_key: &Tuple, isolation: Isolation) -> Result<Found, Error> {
        let record = self.keyspace.record(primary_key);
        let (mut begin, end) = rows::rows_of(&record);
        let mut found = Found::default();
        let version = rows::row_key(&record, suffix::VERSION);
        if let Some(written) = self.context.written_version(&version) {
            found.written(version.len(), written);
            begin = key_after(&version).into();
        }
        let range = RangeOption::new(begin, end).mode(StreamingMode::WantAll);
        for row in self.context.transaction()?.get_range_all(range, isolation).await? {
            let last = row.key.strip_prefix(record.bytes()).and_then(Tuple::unpack);
            let Some([Element::Int(last)]) = last.as_ref().map(Tuple::elements) else {
                return Err(Error::foreign("a record's row", &row.key));
            };
            found.row(primary_key, *last, row.key.len(), row.value)?;
        }
        Ok(found)
    }

    /// The record that was found.
    pub(super) fn stored(
        &self,
        primary_key: Tuple,
        found: Found,
        bytes: Bytes,
    ) -> Result<StoredRecord, Error> {
        let (record_type, message) = serial::decode(&self.meta_data, &primary_key, bytes)?;
        Ok(StoredRecord {
            primary_key,
            record_type,
            message,
            version: found.version,
            rows: found.rows,
            key_bytes: found.key_bytes,
            value_bytes: found.value_bytes,
        })
    }

    /// The primary key and the last element of the key of a record's row, and the length of the key without
    /// that element.
    pub(super) fn row_of(&self, key: &[u8]) -> Result<(Tuple, i64, usize), Error> {
        let foreign = || Error::foreign("a record's row", key);
        let records = self.keyspace.part(Part::Records);
        let tuple = key.strip_prefix(records.bytes()).and_then(Tuple::unpack).ok_or_else(foreign)?;
        let (primary_key, last) = tuple.split_at(tuple.len().saturating_sub(1));
        match last.elements() {
            [Element::Int(number)] if !primary_key.is_empty() => {
                Ok((primary_key, *number, key.len().saturating_sub(last.pack().len())))
            }
            _ => Err(foreign()),
        }
    }
}
