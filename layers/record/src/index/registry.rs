//! The maintainers of indexes, by the type of the index.

use super::IndexMaintainer;
use shaketable_layers::tx::Transaction;
use std::{collections::BTreeMap, sync::Arc};

/// The maintainers that a store uses, by the type of the index.
pub struct Registry<T: Transaction>(BTreeMap<String, Arc<dyn IndexMaintainer<T>>>);

impl<T: Transaction> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Registry(self.0.clone())
    }
}

impl<T: Transaction> Default for Registry<T> {
    fn default() -> Self {
        Registry(BTreeMap::new())
    }
}

impl<T: Transaction> Registry<T> {
    /// Registers the maintainer of an index type; the one that it had before is replaced.
    pub fn register(&mut self, kind: impl Into<String>, maintainer: impl IndexMaintainer<T> + 'static) {
        self.0.insert(kind.into(), Arc::new(maintainer));
    }

    /// The maintainer of an index type.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn IndexMaintainer<T>>> {
        self.0.get(kind)
    }
}
