//! Saving records: first everything is checked, then it is written.

use super::{RecordStore, StoredRecord, rows::Planned, serial};
use crate::{
    error::Error,
    expression::Subject,
    index::{IndexAt, IndexMaintainer},
    metadata::{Index, RecordType},
    value::Tuple,
    version::RecordVersion,
};
use futures::future::try_join_all;
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage};
use shaketable_tx::{Transaction, reachable};
use std::{future::Future, sync::Arc};

/// What a save requires of the record that has the primary key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordExistenceCheck {
    /// Nothing: a record with this primary key is replaced, also by one of another type.
    #[default]
    None,
    /// There is none; otherwise [`Error::Exists`].
    MustNotExist,
    /// There is one, of any type; otherwise [`Error::NotFound`].
    MustExist,
    /// If there is one, it is of the same type; otherwise [`Error::TypeChanged`].
    SameType,
    /// There is one, of the same type.
    MustExistWithSameType,
}

/// The version that a save gives to its record, if the store keeps versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SaveVersion {
    /// The next one of the transaction, which the commit completes.
    #[default]
    Next,
    /// This one, which must be complete ([`Error::Version`]). The caller sees to it that versions are unique
    /// and grow.
    Own(RecordVersion),
}

impl<T: Transaction> RecordStore<T> {
    /// Saves a record under its primary key, in place of the record that has it, if any, of whatever type.
    /// Its indexes are updated, and if the store keeps versions, it gets the next one, whether or not the
    /// record has changed.
    ///
    /// # Errors
    ///
    /// What is refused leaves nothing in the transaction: [`Error::UnknownType`], [`Error::Message`],
    /// [`Error::PrimaryKey`], [`Error::Evaluate`], [`Error::TooLarge`], [`Error::EntryTooLarge`],
    /// [`Error::NotUnique`], [`Error::TooManyVersions`], and [`Error::Torn`] for the record that has the
    /// primary key. After an error of FoundationDB the transaction must not be committed.
    pub fn save_record<'a, M: ReflectMessage>(
        &'a self,
        message: &M,
    ) -> impl Future<Output = Result<StoredRecord, Error>> + Send + use<'a, T, M> {
        self.save_record_with(message, RecordExistenceCheck::None, SaveVersion::Next)
    }

    /// As [`save_record`](RecordStore::save_record); fails with [`Error::Exists`] if there is a record with
    /// this primary key.
    pub fn insert_record<'a, M: ReflectMessage>(
        &'a self,
        message: &M,
    ) -> impl Future<Output = Result<StoredRecord, Error>> + Send + use<'a, T, M> {
        self.save_record_with(message, RecordExistenceCheck::MustNotExist, SaveVersion::Next)
    }

    /// As [`save_record`](RecordStore::save_record); fails with [`Error::NotFound`] if there is no record
    /// with this primary key, and with [`Error::TypeChanged`] if it is of another type.
    pub fn update_record<'a, M: ReflectMessage>(
        &'a self,
        message: &M,
    ) -> impl Future<Output = Result<StoredRecord, Error>> + Send + use<'a, T, M> {
        self.save_record_with(message, RecordExistenceCheck::MustExistWithSameType, SaveVersion::Next)
    }

    /// As [`save_record`](RecordStore::save_record), with what is required of the record before, and the
    /// version. The message's type is found by its full name; the descriptor may be another one than that of
    /// the meta-data.
    pub fn save_record_with<'a, M: ReflectMessage>(
        &'a self,
        message: &M,
        check: RecordExistenceCheck,
        version: SaveVersion,
    ) -> impl Future<Output = Result<StoredRecord, Error>> + Send + use<'a, T, M> {
        let descriptor = message.descriptor();
        let found = self.meta_data.record_type_of(&descriptor).cloned();
        let record_type = found.ok_or_else(|| Error::UnknownType(descriptor.full_name().into()));
        let encoded = message.encode_to_vec();
        async move { self.writing().await?.save_encoded(record_type?, &encoded, check, version).await }
    }

    /// As [`save_record_with`](RecordStore::save_record_with), for a message without a descriptor, of the
    /// record type with this name.
    pub fn save_message<'a, M: Message>(
        &'a self,
        record_type: &str,
        message: &M,
        check: RecordExistenceCheck,
        version: SaveVersion,
    ) -> impl Future<Output = Result<StoredRecord, Error>> + Send + use<'a, T, M> {
        let found = self.meta_data.record_type(record_type).cloned();
        let record_type = found.ok_or_else(|| Error::UnknownType(record_type.into()));
        let encoded = message.encode_to_vec();
        async move { self.writing().await?.save_encoded(record_type?, &encoded, check, version).await }
    }

    async fn save_encoded(
        &self,
        record_type: Arc<RecordType>,
        encoded: &[u8],
        check: RecordExistenceCheck,
        version: SaveVersion,
    ) -> Result<StoredRecord, Error> {
        let tx = self.context.transaction()?;
        let message = serial::adopt(&record_type, encoded)?;
        let primary_key = self.primary_key_of(&record_type, &message)?;
        // Serializable: what it has decides which entries of indexes are removed.
        let old = self.load_record(&primary_key).await?;
        check.of(&primary_key, &record_type, old.as_ref())?;
        if old.as_ref().is_some_and(|old| old.record_type.name != record_type.name) {
            reachable!("record: a record of another type is replaced");
        }
        let version = self.version_of(version)?;
        let bytes = serial::encode(&record_type, &message);
        let record = self.keyspace.record(&primary_key);
        let used = usize::try_from(tx.get_approximate_size().await?).unwrap_or(0);
        let split = self.meta_data.splits_long_records();
        let planned = Planned::new(&record, &bytes, version.clone(), split, used)?;
        let (rows, key_bytes, value_bytes) = planned.size();
        let new = StoredRecord { primary_key, record_type, message, version, rows, key_bytes, value_bytes };
        self.update_indexes(old.as_ref(), Some(&new)).await?;
        planned.write(&self.context, old.as_ref(), &record)?;
        Ok(new)
    }

    /// The version of the next record. Fails before anything is written.
    fn version_of(&self, version: SaveVersion) -> Result<Option<RecordVersion>, Error> {
        match version {
            SaveVersion::Next if self.meta_data.stores_record_versions() => {
                self.context.next_version().map(Some)
            }
            SaveVersion::Next => Ok(None),
            SaveVersion::Own(_) if !self.meta_data.stores_record_versions() => {
                Err(Error::Version("the meta-data does not store record versions"))
            }
            SaveVersion::Own(own) if !own.is_complete() => Err(Error::Version("it is incomplete")),
            SaveVersion::Own(own) => Ok(Some(own)),
        }
    }

    /// The primary key of a message of this type.
    pub(super) fn primary_key_of(
        &self,
        record_type: &RecordType,
        message: &DynamicMessage,
    ) -> Result<Tuple, Error> {
        let subject = Subject {
            message: Some(message),
            record_type: &record_type.key,
            version: None,
            functions: self.meta_data.functions(),
        };
        let keys = record_type.primary_key.evaluate(subject)?;
        match &keys[..] {
            [key] => Ok(key.tuple()),
            keys => Err(Error::PrimaryKey { record_type: record_type.name.clone(), keys: keys.len() }),
        }
    }

    /// Changes all indexes from what `old` needs to what `new` needs: all of them are asked before the first
    /// one writes.
    pub(super) async fn update_indexes(
        &self,
        old: Option<&StoredRecord>,
        new: Option<&StoredRecord>,
    ) -> Result<(), Error> {
        let on = |index: &Index, record: Option<&StoredRecord>| {
            record.is_some_and(|record| self.meta_data.is_index_of(index, &record.record_type.name))
        };
        let Some(primary_key) = new.or(old).map(|record| &record.primary_key) else { return Ok(()) };
        let indexes = self.meta_data.indexes().filter(|index| on(index, old) || on(index, new));
        let asked = indexes.map(|index| async move {
            let (at, maintainer) = (IndexAt { store: self, index }, self.maintainer(index)?);
            let is_maintained = at.is_maintained(&**maintainer, primary_key).await?;
            Ok::<_, Error>(is_maintained.then_some((at, maintainer)))
        });
        let maintained: Vec<_> = try_join_all(asked).await?.into_iter().flatten().collect();
        try_join_all(maintained.iter().map(|(at, maintainer)| maintainer.check(*at, old, new))).await?;
        try_join_all(maintained.iter().map(|(at, maintainer)| maintainer.update(*at, old, new))).await?;
        Ok(())
    }

    /// The maintainer of an index.
    pub(crate) fn maintainer(&self, index: &Index) -> Result<&Arc<dyn IndexMaintainer<T>>, Error> {
        self.registry
            .get(&index.kind)
            .ok_or_else(|| Error::UnknownIndexType { index: index.name.clone(), kind: index.kind.clone() })
    }
}

impl RecordExistenceCheck {
    fn of(self, primary_key: &Tuple, wanted: &RecordType, old: Option<&StoredRecord>) -> Result<(), Error> {
        use RecordExistenceCheck::{MustExist, MustExistWithSameType, MustNotExist, SameType};
        match (self, old) {
            (MustNotExist, Some(_)) => Err(Error::Exists(primary_key.clone())),
            (MustExist | MustExistWithSameType, None) => Err(Error::NotFound(primary_key.clone())),
            (SameType | MustExistWithSameType, Some(old)) if old.record_type.name != wanted.name => {
                Err(Error::TypeChanged {
                    primary_key: primary_key.clone(),
                    found: old.record_type.name.clone(),
                    wanted: wanted.name.clone(),
                })
            }
            _ => Ok(()),
        }
    }
}
