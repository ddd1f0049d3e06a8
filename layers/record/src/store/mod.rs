//! Record stores: records of several types in one subspace, by their primary keys, with their indexes.

mod builder;
mod context;
mod delete;
mod describe;
mod header;
mod keyspace;
mod load;
mod opened;
mod path;
mod record;
mod rows;
mod save;
mod scan;
mod serial;
mod stamped;
mod upgrade;

pub use builder::RecordStoreBuilder;
pub use context::RecordContext;
pub use describe::{describe_key, describe_value};
pub use header::FORMAT_VERSION;
pub use keyspace::{Keyspace, Part, suffix};
use opened::Opened;
pub use path::KeySpacePath;
pub use record::StoredRecord;
pub use save::{RecordExistenceCheck, SaveVersion};
pub use scan::OnTorn;
pub use upgrade::RebuildPolicy;

use crate::{error::Error, index::Registry, metadata::RecordMetaData};
use shaketable_tx::Transaction;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A record store, open in one transaction.
pub struct RecordStore<T: Transaction> {
    context: RecordContext<T>,
    keyspace: Keyspace,
    meta_data: Arc<RecordMetaData>,
    registry: Registry<T>,
    opened: Arc<Mutex<Opened>>,
    previous: Option<PreviousVersions>,
}

/// With what a store was last opened before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousVersions {
    /// The version of the meta-data.
    pub meta_data: i32,
    /// The version of the application, if it was given.
    pub user: Option<i32>,
}

impl<T: Transaction> Clone for RecordStore<T> {
    fn clone(&self) -> Self {
        RecordStore {
            context: self.context.clone(),
            keyspace: self.keyspace.clone(),
            meta_data: self.meta_data.clone(),
            registry: self.registry.clone(),
            opened: self.opened.clone(),
            previous: self.previous,
        }
    }
}

impl<T: Transaction> RecordStore<T> {
    /// The context in which it is open.
    pub fn context(&self) -> &RecordContext<T> {
        &self.context
    }

    /// Its subspaces.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Its meta-data.
    pub fn meta_data(&self) -> &Arc<RecordMetaData> {
        &self.meta_data
    }

    /// The maintainers of its indexes.
    pub fn registry(&self) -> &Registry<T> {
        &self.registry
    }

    /// With what the store was last opened before; `None` if it was created now.
    pub fn previous_versions(&self) -> Option<PreviousVersions> {
        self.previous
    }

    pub(crate) fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This store, in a turn of its own: everything that reads and then writes happens in one. Fails with
    /// [`Error::Closed`], and with [`Error::StaleMetaData`] if the store was opened with later meta-data in
    /// this context since.
    pub(crate) async fn writing(&self) -> Result<RecordStore<T>, Error> {
        let context = self.context.writing().await;
        context.transaction()?;
        let (store, given) = (self.opened().meta_data, self.meta_data.version());
        match store > given {
            true => Err(Error::StaleMetaData { store, given }),
            false => Ok(RecordStore { context, ..self.clone() }),
        }
    }

    /// This store, in a turn that only reads. Cursors must not be made of it: they would keep the turn.
    pub(crate) async fn reading(&self) -> RecordStore<T> {
        RecordStore { context: self.context.reading().await, ..self.clone() }
    }
}
