//! Operations on linked lists.

use super::{Error, MAX_WALK, keys};
use crate::{
    id::Id,
    limits, reachable, read,
    tx::{Isolation, RangeOption, Transaction},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use std::collections::BTreeSet;

/// A linked list in its own subspace.
#[derive(Clone, Debug)]
pub struct List {
    subspace: Subspace,
}

/// A node visited by a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: Id,
    /// Its value.
    pub value: Bytes,
}

impl List {
    /// The list in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> List {
        List { subspace }
    }

    /// Inserts a new node before all others.
    pub async fn push_front<T: Transaction>(&self, tx: &T, id: &Id, value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.insert(tx, &keys::head(&self.subspace), id, value).await
    }

    /// Inserts a new node after the node `after`.
    pub async fn insert_after<T: Transaction>(
        &self,
        tx: &T,
        after: &Id,
        id: &Id,
        value: &[u8],
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.must_exist(tx, after, Isolation::Serializable).await?;
        self.insert(tx, &keys::next(&self.subspace, after), id, value).await
    }

    /// Removes the first node with everything about it, and returns its id.
    pub async fn remove_first<T: Transaction>(&self, tx: &T) -> Result<Option<Id>, Error> {
        let tx = &tx.writing().await;
        self.unlink(tx, &keys::head(&self.subspace)).await
    }

    /// Removes the node after `node` with everything about it, and returns its id; `None` if `node` is the
    /// last one.
    pub async fn remove_next_node<T: Transaction>(&self, tx: &T, node: &Id) -> Result<Option<Id>, Error> {
        let tx = &tx.writing().await;
        self.must_exist(tx, node, Isolation::Serializable).await?;
        self.unlink(tx, &keys::next(&self.subspace, node)).await
    }

    /// Like [`remove_next_node`](List::remove_next_node), if the next node is the one that the caller
    /// expects; [`Error::NextChanged`] otherwise. `None` expects the end of the list, and removes nothing.
    pub async fn remove_next_node_if<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        expected: Option<&Id>,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let found = self.next(tx, node, Isolation::Serializable).await?;
        if found.as_ref() != expected {
            reachable!("list: what comes next is not what was expected");
            return Err(Error::NextChanged { node: node.clone(), expected: expected.cloned(), found });
        }
        self.unlink(tx, &keys::next(&self.subspace, node)).await?;
        Ok(())
    }

    /// The first node, if there is one.
    pub async fn first<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<Id>, Error> {
        let tx = &tx.reading().await;
        self.follow(tx, &keys::head(&self.subspace), isolation).await
    }

    /// The node after `node`; `None` if `node` is the last one.
    pub async fn next<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        isolation: Isolation,
    ) -> Result<Option<Id>, Error> {
        let tx = &tx.reading().await;
        self.must_exist(tx, node, isolation).await?;
        self.follow(tx, &keys::next(&self.subspace, node), isolation).await
    }

    /// Whether the node exists.
    pub async fn contains<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        isolation: Isolation,
    ) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        Ok(self.read_node(tx, node, isolation).await?.is_some())
    }

    /// The nodes from the first one, or after the node `after`, at most `limit` of them.
    ///
    /// If there are more than [`MAX_WALK`] nodes and `limit` requests them, the walk is refused; the same
    /// applies if their values exceed [`READ_LIMIT`](limits::READ_LIMIT) bytes.
    pub async fn walk<T: Transaction>(
        &self,
        tx: &T,
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Node>, Error> {
        let tx = &tx.reading().await;
        let mut met = BTreeSet::new();
        let (mut nodes, allowance) = (Vec::new(), read::Allowance::new());
        let mut link = match after {
            None => self.first(tx, isolation).await?,
            Some(node) => {
                met.insert(node.clone());
                self.next(tx, node, isolation).await?
            }
        };
        while nodes.len() < limit
            && let Some(id) = link
        {
            if !met.insert(id.clone()) {
                return Err(Error::Cycle(id));
            }
            if nodes.len() == MAX_WALK {
                return Err(Error::WalkTooLong(MAX_WALK));
            }
            let (own, next) = (keys::node(&self.subspace, &id), keys::next(&self.subspace, &id));
            let (value, next_link) =
                futures::future::try_join(tx.get(own.bytes(), isolation), tx.get(&next, isolation)).await?;
            let Some(value) = value else { return Err(Error::Dangling(id)) };
            allowance.bytes(value.len())?;
            link = keys::follow(&next, next_link)?;
            nodes.push(Node { id, value });
        }
        Ok(nodes)
    }

    /// Replaces a node's value.
    pub async fn set_value<T: Transaction>(&self, tx: &T, node: &Id, value: &[u8]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        keys::fits(&self.subspace, node, value)?;
        self.must_exist(tx, node, Isolation::Serializable).await?;
        tx.set(keys::node(&self.subspace, node).bytes(), value);
        Ok(())
    }

    /// A node's value.
    pub async fn value<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        isolation: Isolation,
    ) -> Result<Bytes, Error> {
        let tx = &tx.reading().await;
        self.read_node(tx, node, isolation).await?.ok_or_else(|| Error::NoSuchNode(node.clone()))
    }

    /// Sets an attribute of a node. The node's own key is read serializably: this call conflicts with the
    /// node's removal, so that nothing is left on a removed node.
    pub async fn set_attribute<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        name: &str,
        value: &[u8],
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::attribute(&self.subspace, node, name)?;
        limits::row(&key, value)?;
        self.must_exist(tx, node, Isolation::Serializable).await?;
        tx.set(&key, value);
        Ok(())
    }

    /// Removes an attribute of a node, if it exists.
    pub async fn clear_attribute<T: Transaction>(&self, tx: &T, node: &Id, name: &str) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::attribute(&self.subspace, node, name)?;
        limits::key(&key)?;
        self.must_exist(tx, node, Isolation::Serializable).await?;
        tx.clear(&key);
        Ok(())
    }

    /// An attribute of a node, if it exists.
    pub async fn attribute<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        name: &str,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        let key = keys::attribute(&self.subspace, node, name)?;
        limits::key(&key)?;
        self.must_exist(tx, node, isolation).await?;
        Ok(tx.get(&key, isolation).await?)
    }

    /// All attributes of a node, in the order of their names.
    pub async fn attributes<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        isolation: Isolation,
    ) -> Result<Vec<(String, Bytes)>, Error> {
        let tx = &tx.reading().await;
        self.must_exist(tx, node, isolation).await?;
        let range = RangeOption::from(keys::node(&self.subspace, node).range());
        let rows = read::all::<_, Error>(tx, range, isolation).await?;
        let named = rows.into_iter().map(|row| Ok((keys::name(&self.subspace, node, &row.key)?, row.value)));
        named.filter(|attribute| !matches!(attribute, Ok((name, _)) if name == keys::NEXT)).collect()
    }

    /// Inserts a new node at the link stored under `link`, before the node to which the link led.
    async fn insert<T: Transaction>(&self, tx: &T, link: &[u8], id: &Id, value: &[u8]) -> Result<(), Error> {
        keys::fits(&self.subspace, id, value)?;
        if self.contains(tx, id, Isolation::Serializable).await? {
            return Err(Error::NodeExists(id.clone()));
        }
        let behind = self.follow(tx, link, Isolation::Serializable).await?;
        tx.set(keys::node(&self.subspace, id).bytes(), value);
        tx.set(&keys::next(&self.subspace, id), &keys::link(behind.as_ref()));
        tx.set(link, &keys::link(Some(id)));
        Ok(())
    }

    /// Removes the node to which the link stored under `link` leads. Both links are read serializably: if one
    /// of them changes meanwhile, because a neighbour is inserted or removed, the transaction conflicts.
    async fn unlink<T: Transaction>(&self, tx: &T, link: &[u8]) -> Result<Option<Id>, Error> {
        let Some(id) = self.follow(tx, link, Isolation::Serializable).await? else {
            reachable!("list: nothing to remove at the end");
            return Ok(None);
        };
        if !self.contains(tx, &id, Isolation::Serializable).await? {
            return Err(Error::Dangling(id));
        }
        let behind = self.follow(tx, &keys::next(&self.subspace, &id), Isolation::Serializable).await?;
        tx.set(link, &keys::link(behind.as_ref()));
        let (begin, end) = keys::whole(&self.subspace, &id);
        tx.clear_range(&begin, &end);
        Ok(Some(id))
    }

    async fn follow<T: Transaction>(
        &self,
        tx: &T,
        link: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Id>, Error> {
        let stored = tx.get(link, isolation).await?;
        match &stored {
            None => reachable!("list: an absent link is the end"),
            Some(stored) if stored.is_empty() => reachable!("list: an empty link is the end"),
            Some(_) => (),
        }
        keys::follow(link, stored)
    }

    /// The value of a node, if it exists. No node has an id that is too long for a key.
    async fn read_node<T: Transaction>(
        &self,
        tx: &T,
        node: &Id,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        keys::fits(&self.subspace, node, b"")?;
        Ok(tx.get(keys::node(&self.subspace, node).bytes(), isolation).await?)
    }

    async fn must_exist<T: Transaction>(&self, tx: &T, node: &Id, isolation: Isolation) -> Result<(), Error> {
        match self.contains(tx, node, isolation).await? {
            true => Ok(()),
            false => Err(Error::NoSuchNode(node.clone())),
        }
    }
}
