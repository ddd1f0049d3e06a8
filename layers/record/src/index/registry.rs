//! The maintainers of indexes, by the type of the index.

use super::IndexMaintainer;
use crate::{error::Error, metadata::RecordMetaData};
use shaketable_tx::Transaction;
use std::{collections::BTreeMap, sync::Arc};

/// The maintainers that a store uses, by the type of the index.
pub struct Registry<T: Transaction>(Arc<Maintainers<T>>);

type Maintainers<T> = BTreeMap<String, Arc<dyn IndexMaintainer<T>>>;

impl<T: Transaction> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Registry(self.0.clone())
    }
}

impl<T: Transaction> Default for Registry<T> {
    fn default() -> Self {
        Registry(Arc::default())
    }
}

impl<T: Transaction> Registry<T> {
    /// Refuses meta-data with an index whose type has no maintainer, or whose maintainer refuses it.
    pub fn validate(&self, meta_data: &RecordMetaData) -> Result<(), Error> {
        for index in meta_data.indexes() {
            let (name, kind) = (&index.name, &index.kind);
            let unknown = || Error::UnknownIndexType { index: name.clone(), kind: kind.clone() };
            let valid = self.get(kind).ok_or_else(unknown)?.validate(index, meta_data);
            valid.map_err(|reason| Error::InvalidIndex { index: name.clone(), reason })?;
        }
        Ok(())
    }

    /// Registers the maintainer of an index type; the one that it had before is replaced.
    pub fn register(&mut self, kind: impl Into<String>, maintainer: impl IndexMaintainer<T> + 'static) {
        Arc::make_mut(&mut self.0).insert(kind.into(), Arc::new(maintainer));
    }

    /// The maintainer of an index type.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn IndexMaintainer<T>>> {
        self.0.get(kind)
    }
}
