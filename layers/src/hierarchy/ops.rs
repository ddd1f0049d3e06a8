//! A hierarchy's operations, each inside a transaction.

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

/// One nested value below a subspace of its own.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    tree: Tree,
}

impl Hierarchy {
    /// The hierarchy below `subspace`, which nothing else may use.
    pub fn new(subspace: Subspace) -> Hierarchy {
        crate::called!();
        Hierarchy { tree: Tree { root: subspace.into_bytes(), place: Place::Key } }
    }

    /// Puts an item at a path, the root when that is empty. Objects become one with what is there, member
    /// by member; any other value takes the place of what is there.
    ///
    /// More than 10,000 objects that are there already are refused: each of them is looked at.
    ///
    /// What the path goes through comes into being where nothing is. An element of a list is one that is
    /// there, or the next.
    pub async fn insert<T: Transaction>(&self, tx: &T, path: &[Step], item: &Value) -> Result<(), Error> {
        crate::called!();
        self.tree.merge(tx, path, item, Absent::Create).await?;
        Ok(())
    }

    /// Puts an item at a path in the place of all that is there; otherwise as [`insert`](Self::insert).
    pub async fn replace<T: Transaction>(&self, tx: &T, path: &[Step], item: &Value) -> Result<(), Error> {
        crate::called!();
        self.tree.put(tx, path, item, Absent::Create).await?;
        Ok(())
    }

    /// Removes what is at a path, and says whether there was something. The elements behind one of a list
    /// move up; an object or list that loses all it has stays, empty.
    pub async fn remove<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<bool, Error> {
        crate::called!();
        self.tree.remove(tx, path).await
    }

    /// What is at a path. An empty object or list is something.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Option<Value>, Error> {
        crate::called!();
        self.tree.get(tx, path, isolation).await
    }

    /// The tuples of what is at a path, as they are stored behind the path's own.
    pub async fn tuples<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Vec<Tuple>, Error> {
        crate::called!();
        let rows = read::all::<_, Error>(tx, self.tree.range(path)?.into(), isolation).await?;
        Ok(self.tree.tuples(self.tree.at(path).len(), &rows)?.0)
    }
}
