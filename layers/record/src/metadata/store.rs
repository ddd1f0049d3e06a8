//! Meta-data in the database, and where stores get it from.
//!
//! | key after the subspace | value |
//! |---|---|
//! | `(null, 0)` | the meta-data, as [`RecordMetaData::to_bytes`] |
//! | `(null, 1)`, `(null, 2)`, .. | its parts, if it has more than 100,000 bytes |
//! | `("V")` | a packed tuple of its version, its length and a hash of its bytes |
//!
//! The first two are as Java's `FDBMetaDataStore` has them. It has no row `("V")`, and keeps older versions,
//! which this store does not.

use super::{Extensions, MetaDataError, RecordMetaData, RecordMetaDataBuilder};
use crate::{error::Error, value::Tuple};
use foundationdb_tuple::{Element, Subspace};
use futures::future::{BoxFuture, ready};
use shaketable_tx::{Isolation::Serializable, RangeOption, Transaction, VALUE_SIZE_LIMIT, limits, reachable};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a record store gets its meta-data from, in each transaction.
pub trait MetaDataProvider<T: Transaction>: Send + Sync {
    /// The meta-data as this transaction sees it.
    fn meta_data<'a>(&'a self, tx: &'a T) -> BoxFuture<'a, Result<Arc<RecordMetaData>, Error>>;
}

impl<T: Transaction> MetaDataProvider<T> for Arc<RecordMetaData> {
    fn meta_data<'a>(&'a self, _tx: &'a T) -> BoxFuture<'a, Result<Arc<RecordMetaData>, Error>> {
        Box::pin(ready(Ok(self.clone())))
    }
}

/// Fails with [`Error::NoMetaData`] if none is saved.
impl<T: Transaction> MetaDataProvider<T> for MetaDataStore {
    fn meta_data<'a>(&'a self, tx: &'a T) -> BoxFuture<'a, Result<Arc<RecordMetaData>, Error>> {
        Box::pin(async { self.load(tx).await?.ok_or(Error::NoMetaData) })
    }
}

/// Meta-data that is saved in a subspace, so that all clients use the same. Clones share a cache of what was
/// loaded last; every transaction reads one small row to know whether that is still what is saved, and
/// conflicts with a transaction that saves another.
///
/// ```
/// use shaketable_tx::{Database, Transaction};
/// use shaketable_record::{error::Error, metadata::{MetaDataStore, RecordMetaData}};
///
/// async fn add_index<D: Database>(db: &D, store: &MetaDataStore) -> Result<(), Error> {
///     let tx = db.create_transaction()?;
///     let Some(meta_data) = store.load(&tx).await? else { return Err(Error::NoMetaData) };
///     let next = meta_data.to_builder().remove_index("Order$flower")?.build()?;
///     store.save_record_meta_data(&tx, &next).await?;
///     Ok(tx.commit().await?)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MetaDataStore {
    subspace: Subspace,
    extensions: Arc<Extensions>,
    cache: Arc<Mutex<Option<Cached>>>,
}

#[derive(Debug)]
struct Cached {
    /// The value of the row `("V")`.
    stamp: Vec<u8>,
    meta_data: Arc<RecordMetaData>,
}

impl MetaDataStore {
    /// A store in a subspace that nothing else uses, whose meta-data needs these functions and types of
    /// indexes.
    pub fn new(subspace: Subspace, extensions: Extensions) -> MetaDataStore {
        MetaDataStore { subspace, extensions: Arc::new(extensions), cache: Arc::default() }
    }

    /// Saves meta-data, in place of older meta-data that it [can follow](RecordMetaData::validate_evolution).
    /// Writes nothing if it is saved already. Fails with [`Error::MetaData`] if it cannot follow what is
    /// saved, and with [`Error::TooLarge`] if it exceeds the limit of a transaction; nothing is written then.
    pub async fn save_record_meta_data<T: Transaction>(
        &self,
        tx: &T,
        meta_data: &RecordMetaData,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let bytes = meta_data.to_bytes()?;
        // What cannot be loaded again is not saved.
        RecordMetaData::from_bytes(&bytes, &meta_data.extensions)?;
        let rows = self.rows(&bytes, meta_data.version());
        limits::transaction(rows.iter().map(|(key, value)| key.len() + value.len()).sum())?;
        rows.iter().try_for_each(|(key, value)| limits::row(key, value))?;
        if let Some(saved) = self.read(tx).await? {
            if saved == bytes {
                reachable!("record: meta-data is saved that is there already");
                return Ok(());
            }
            let old = RecordMetaDataBuilder::from_bytes(&saved, &self.extensions)?.assemble()?;
            meta_data.validate_evolution(&old).map_err(MetaDataError::from)?;
        }
        let (begin, end) = self.parts().range();
        tx.clear_range(&begin, &end);
        for (key, value) in rows {
            tx.set(&key, &value);
        }
        Ok(())
    }

    /// The meta-data that is saved, if any.
    pub async fn load<T: Transaction>(&self, tx: &T) -> Result<Option<Arc<RecordMetaData>>, Error> {
        let tx = &tx.reading().await;
        let Some(stamp) = tx.get(&self.stamp_key(), Serializable).await? else {
            // Meta-data without this row is not of this store.
            return match self.read(tx).await? {
                None => Ok(None),
                Some(_) => Err(Error::foreign("a version of the meta-data", &self.stamp_key())),
            };
        };
        if let Some(cached) = &*self.cache()
            && cached.stamp == stamp
        {
            reachable!("record: meta-data from the cache");
            return Ok(Some(cached.meta_data.clone()));
        }
        let torn = || Error::foreign("meta-data with its version", self.parts().bytes());
        let bytes = self.read(tx).await?.ok_or_else(torn)?;
        let meta_data = Arc::new(RecordMetaData::from_bytes(&bytes, &self.extensions)?);
        if stamp_of(&bytes, meta_data.version()) != *stamp {
            return Err(torn());
        }
        *self.cache() = Some(Cached { stamp: stamp.to_vec(), meta_data: meta_data.clone() });
        Ok(Some(meta_data))
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Option<Cached>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts(&self) -> Subspace {
        self.subspace.subspace(&(Element::Nil,))
    }

    fn stamp_key(&self) -> Vec<u8> {
        self.subspace.pack(&("V",))
    }

    /// The rows that hold meta-data.
    fn rows(&self, bytes: &[u8], version: i32) -> Vec<(Vec<u8>, Vec<u8>)> {
        let first = usize::from(bytes.len() > VALUE_SIZE_LIMIT);
        let parts = bytes.chunks(VALUE_SIZE_LIMIT).enumerate();
        let row = |(i, part): (usize, &[u8])| (self.parts().pack(&(first + i,)), part.to_vec());
        parts.map(row).chain([(self.stamp_key(), stamp_of(bytes, version))]).collect()
    }

    /// The bytes that are saved. Fails with [`Error::Foreign`] if a part is missing.
    async fn read<T: Transaction>(&self, tx: &T) -> Result<Option<Vec<u8>>, Error> {
        let (begin, end) = self.parts().range();
        let rows = tx.get_range_all(RangeOption::from((begin, end)), Serializable).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let start = usize::from(first.key != self.parts().pack(&(0_usize,)));
        let mut bytes = Vec::new();
        for (i, row) in rows.iter().enumerate() {
            if row.key != self.parts().pack(&(start + i,)) || (start == 0 && i > 0) {
                return Err(Error::foreign("a part of the meta-data", &row.key));
            }
            bytes.extend_from_slice(&row.value);
        }
        Ok(Some(bytes))
    }
}

/// What tells saved meta-data apart: a packed tuple of its version, its length, and the 64-bit FNV-1a hash of
/// its bytes.
fn stamp_of(bytes: &[u8], version: i32) -> Vec<u8> {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix).cast_signed();
    let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    Tuple::from((version, length, hash)).pack()
}
