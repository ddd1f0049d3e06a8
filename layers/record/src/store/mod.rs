//! Record stores: records of several types in one subspace, by their primary keys, with their indexes.

mod context;
mod keyspace;
mod record;
mod stamped;

pub use context::RecordContext;
pub use keyspace::{Keyspace, Part, suffix};
pub use record::StoredRecord;

use crate::{
    index::{IndexState, Registry},
    metadata::RecordMetaData,
};
use shaketable_layers::tx::Transaction;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// A record store, open in one transaction.
pub struct RecordStore<T: Transaction> {
    context: RecordContext<T>,
    keyspace: Keyspace,
    meta_data: Arc<RecordMetaData>,
    registry: Registry<T>,
    /// The states of the indexes that are not readable, by name, as this transaction sees them.
    states: Arc<Mutex<BTreeMap<String, IndexState>>>,
}

impl<T: Transaction> Clone for RecordStore<T> {
    fn clone(&self) -> Self {
        RecordStore {
            context: self.context.clone(),
            keyspace: self.keyspace.clone(),
            meta_data: self.meta_data.clone(),
            registry: self.registry.clone(),
            states: self.states.clone(),
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
}
