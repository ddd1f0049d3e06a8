//! Operations on hierarchies, each within a transaction.

use super::{
    Error, Step, Tuple,
    tree::{Absent, Place, Tree},
};
use crate::{
    read,
    tx::{Isolation, Transaction},
};
use foundationdb_tuple::Subspace;
use serde_json::Value;

/// One nested value in its own subspace.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    tree: Tree,
}

impl Hierarchy {
    /// The hierarchy in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Hierarchy {
        Hierarchy { tree: Tree { root: subspace.into_bytes(), place: Place::Key } }
    }

    /// Puts an item at a path, or at the root if the path is empty. Objects are merged with the existing
    /// ones, member by member; any other value replaces what is there.
    ///
    /// A merge that touches more than 10,000 existing objects is refused, because each of them must be read.
    ///
    /// Missing parents on the path are created. An element of a list must be an existing one or the next.
    pub async fn insert<T: Transaction>(&self, tx: &T, path: &[Step], item: &Value) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.tree.merge(tx, path, item, Absent::Create).await?;
        Ok(())
    }

    /// Puts an item at a path in place of everything there; otherwise like [`insert`](Self::insert).
    pub async fn replace<T: Transaction>(&self, tx: &T, path: &[Step], item: &Value) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.tree.put(tx, path, item, Absent::Create).await?;
        Ok(())
    }

    /// Removes the value at a path, and returns whether there was one. The elements after a removed element
    /// of a list move up; an object or list that loses its last member or element stays as an empty one.
    pub async fn remove<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        self.tree.remove(tx, path).await
    }

    /// The value at a path. An empty object or list is a value.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Option<Value>, Error> {
        let tx = &tx.reading().await;
        self.tree.get(tx, path, isolation).await
    }

    /// The tuples of the value at a path, as stored after the path's own tuple.
    pub async fn tuples<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Vec<Tuple>, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, self.tree.range(path)?.into(), isolation).await?;
        Ok(self.tree.tuples(self.tree.at(path).len(), &rows)?.0)
    }
}
