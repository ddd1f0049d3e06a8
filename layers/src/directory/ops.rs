//! Operations on directories, each within a transaction.

use super::{
    CandidateSeed, Directory, Error, Path,
    creation::Creation,
    keys::{self, Node, Nodes},
    lookup::{CHANGING, Found, Lookup, LookupOptions, OPENING},
};
use crate::{
    limits, reachable, read, sometimes,
    tx::{Isolation, Transaction, key_after, strinc},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::try_join_all;
use std::collections::BTreeSet;

/// A starting point from which paths lead to directories: the root of a directory layer, or the directories
/// [`below`](Directory::below) a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// The nodes of this layer.
    pub(super) nodes: Nodes,
    /// The prefix of all allocated prefixes.
    pub(super) content: Bytes,
    /// The path of the partition that contains these directories; empty if they are not in a partition.
    pub(super) partition: Path,
    /// Whether manual prefixes are allowed.
    pub(super) manual: bool,
    /// The starting point of paths, relative to the partition.
    pub(super) base: Vec<String>,
}

/// The official layer: nodes below `\xfe`, and the shortest possible allocated prefixes.
impl Default for Directories {
    fn default() -> Directories {
        Directories::new(Subspace::from_bytes([0xfe]), Subspace::all())
    }
}

impl Directories {
    /// The directories whose nodes are below `nodes` and whose allocated prefixes are below `content`. Both
    /// are part of the data format: all clients must always use the same.
    pub fn new(nodes: Subspace, content: Subspace) -> Directories {
        Directories {
            nodes: Nodes::new(nodes),
            content: content.into_bytes().into(),
            partition: Path::default(),
            manual: false,
            base: Vec::new(),
        }
    }

    /// The same directories, with manual prefixes allowed.
    pub fn with_manual_prefixes(self) -> Directories {
        Directories { manual: true, ..self }
    }

    /// The nodes, for tools that read or repair them directly.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The prefix of all allocated prefixes.
    pub fn content(&self) -> &Bytes {
        &self.content
    }

    /// Opens a directory. If `tag` is not empty, it must equal the directory's layer tag.
    pub async fn open<T: Transaction>(&self, tx: &T, path: &[&str], tag: &[u8]) -> Result<Directory, Error> {
        let tx = &tx.reading().await;
        let lookup = self.follow(tx, path, OPENING).await?;
        match () {
            () if lookup.names.is_empty() => Err(Error::Root("opened")),
            () if lookup.exists() => lookup.open(tag),
            () => Err(Error::NotFound(lookup.path())),
        }
    }

    /// Fails with [`Error::Stale`] if a directory's path, resolved from here, no longer leads to it. After
    /// that, writes of the transaction below its prefix are certain to be in the directory: a concurrent
    /// removal or move conflicts.
    pub async fn check<T: Transaction>(&self, tx: &T, directory: &Directory) -> Result<(), Error> {
        let tx = &tx.reading().await;
        let stale = || Error::Stale(directory.path.clone());
        let names = directory.path.names().strip_prefix(self.partition.names()).ok_or_else(stale)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let here = Directories { base: Vec::new(), ..self.clone() };
        match here.open(tx, &names, b"").await {
            Ok(now) if now.prefix == directory.prefix && now.tag == directory.tag => Ok(()),
            Ok(_) | Err(Error::NotFound(_)) => Err(stale()),
            Err(e) => Err(e),
        }
    }

    /// Creates a directory and its missing parents, which have no tag.
    pub async fn create<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        tag: &[u8],
        seed: CandidateSeed,
    ) -> Result<Directory, Error> {
        let tx = &tx.writing().await;
        self.make(tx, path, Creation { tag, prefix: None, opens: false }, seed).await
    }

    /// Creates a directory with a prefix chosen by the caller, and its missing parents, which get allocated
    /// prefixes. Existing keys below the prefix become the directory's content.
    pub async fn create_with_prefix<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        tag: &[u8],
        prefix: &[u8],
        seed: CandidateSeed,
    ) -> Result<Directory, Error> {
        let tx = &tx.writing().await;
        self.make(tx, path, Creation { tag, prefix: Some(prefix), opens: false }, seed).await
    }

    /// Opens a directory, or creates it if it does not exist.
    pub async fn create_or_open<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        tag: &[u8],
        seed: CandidateSeed,
    ) -> Result<Directory, Error> {
        let tx = &tx.writing().await;
        self.make(tx, path, Creation { tag, prefix: None, opens: true }, seed).await
    }

    /// Moves a directory, with all directories below it, to another path in its partition. Its prefix, and
    /// therefore its content, does not change.
    pub async fn rename<T: Transaction>(
        &self,
        tx: &T,
        from: &[&str],
        to: &[&str],
    ) -> Result<Directory, Error> {
        let tx = &tx.writing().await;
        let (mut layer, mut unversioned) = (self.clone(), Vec::new());
        let (mut from, mut to) = (self.names(from), self.names(to));
        loop {
            let (source, destination) = (layer.partition.join(&from), layer.partition.join(&to));
            unversioned.extend(layer.check_version(tx, CHANGING).await?);
            if to.starts_with(&from) {
                return Err(Error::BelowItself { from: source, to: destination });
            }
            let old = layer.find(tx, &from, Isolation::Serializable).await?;
            let new = layer.find(tx, &to, Isolation::Serializable).await?;
            let leaves = |found: &Found, names: &[String]| found.is_partition() && found.depth < names.len();
            match (leaves(&old, &from), leaves(&new, &to)) {
                (false, _) if old.depth < from.len() => return Err(Error::NotFound(source)),
                (true, true) if old.node == new.node => {
                    reachable!("directory: a move within a partition");
                    (layer, from) = layer.enter(&old, &from);
                    to.drain(..new.depth);
                    continue;
                }
                (false, false) => {}
                _ => return Err(Error::BetweenPartitions { from: source, to: destination }),
            }
            if new.depth == to.len() {
                return Err(Error::AlreadyExists(destination));
            }
            let (Some(old_name), Some(new_name)) = (from.last(), to.last()) else {
                return Err(Error::Root("moved"));
            };
            if new.depth + 1 < to.len() {
                return Err(Error::NoParent(destination));
            }
            let key = new.node.child(new_name);
            limits::row(&key, old.node.prefix())?;
            layer.set_versions(tx, unversioned);
            tx.set(&key, old.node.prefix());
            tx.clear(&old.parent.child(old_name));
            return Ok(layer.directory(destination, old.node.prefix().clone(), old.tag));
        }
    }

    /// Removes a directory, all directories below it, and their content: up to several thousand directories,
    /// with one read for each. Beyond [`READ_LIMIT`](limits::READ_LIMIT) bytes, where each read counts for at
    /// least [`READ_COST`](limits::READ_COST), the removal is refused, and parts of the tree must be removed
    /// first.
    pub async fn remove<T: Transaction>(&self, tx: &T, path: &[&str]) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let lookup = self.follow(tx, path, CHANGING).await?;
        match lookup.exists() {
            true => lookup.remove(tx).await,
            false => Err(Error::NotFound(lookup.path())),
        }
    }

    /// Like [`remove`](Directories::remove), but does nothing if the directory does not exist. Returns
    /// whether it existed.
    pub async fn remove_if_exists<T: Transaction>(&self, tx: &T, path: &[&str]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let lookup = self.follow(tx, path, CHANGING).await?;
        let exists = lookup.exists();
        match exists {
            true => lookup.remove(tx).await?,
            false => lookup.layer.set_versions(tx, lookup.unversioned),
        }
        Ok(exists)
    }

    /// The names of the directories directly below a path, in the order of their UTF-8 bytes.
    pub async fn list<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        isolation: Isolation,
    ) -> Result<Vec<String>, Error> {
        let tx = &tx.reading().await;
        let children = self.children(tx, path, isolation).await?.children();
        let rows = read::all::<_, Error>(tx, children.range().into(), isolation).await?;
        rows.iter().map(|row| keys::name(&children, &row.key)).collect()
    }

    /// The first `limit` names that [`list`](Directories::list) returns, or of those after the name `after`:
    /// pass the last name of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn list_page<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        after: Option<&str>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<String>, Error> {
        let tx = &tx.reading().await;
        let node = self.children(tx, path, isolation).await?;
        let children = node.children();
        let (mut begin, end) = children.range();
        if let Some(after) = after {
            let last = node.child(after);
            limits::key(&last)?;
            begin = key_after(&last).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.iter().map(|row| keys::name(&children, &row.key)).collect()
    }

    /// The node that contains the subdirectories of a path.
    async fn children<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        isolation: Isolation,
    ) -> Result<Node, Error> {
        let lookup = self.follow(tx, path, LookupOptions { isolation, enters: true, ..OPENING }).await?;
        match lookup.exists() {
            true => Ok(lookup.found.node),
            false => Err(Error::NotFound(lookup.path())),
        }
    }

    /// Whether there is a directory at the path.
    pub async fn exists<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        isolation: Isolation,
    ) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        Ok(self.follow(tx, path, LookupOptions { isolation, ..OPENING }).await?.exists())
    }

    /// Whether a prefix cannot be used for a directory: it overlaps with the system keys or with the nodes.
    pub(super) fn is_reserved(&self, prefix: &[u8]) -> bool {
        let nodes = self.nodes.key();
        prefix.starts_with(nodes) || nodes.starts_with(prefix) || prefix.first() == Some(&0xff)
    }

    /// The range of all keys that start with a directory's prefix. No directory's prefix is a prefix of the
    /// nodes.
    pub(super) fn content_of(&self, prefix: &Bytes) -> Result<(Vec<u8>, Vec<u8>), Error> {
        match strinc(prefix).filter(|_| !self.nodes.key().starts_with(prefix)) {
            Some(end) => Ok((prefix.to_vec(), end.to_vec())),
            None => Err(Error::foreign(&self.nodes.of(prefix).tag())),
        }
    }
}

impl Lookup {
    /// Removes the directory, its content, and all directories below it.
    async fn remove<T: Transaction>(self, tx: &T) -> Result<(), Error> {
        let Lookup { layer, names, found, unversioned } = self;
        let Some(name) = names.last() else { return Err(Error::Root("removed")) };
        let mut met = BTreeSet::from([found.node.prefix().clone()]);
        let (mut open, mut doomed) = (vec![found.node], Vec::new());
        let allowance = &read::Allowance::new();
        while !open.is_empty() {
            let nodes = open.split_off(open.len().saturating_sub(read::AT_ONCE));
            // In a chain of directories each read waits for the previous one: each round is counted as if it
            // were full.
            allowance.reads(read::AT_ONCE)?;
            // Serializable: a subdirectory that is created meanwhile must not be missed.
            let below = nodes.iter().map(|node| {
                allowance.all::<_, Error>(tx, node.children().range().into(), Isolation::Serializable)
            });
            for row in try_join_all(below).await?.into_iter().flatten() {
                // Two names of one directory, possibly one of them below the directory itself.
                if !met.insert(row.value.clone()) {
                    return Err(Error::foreign(&row.key));
                }
                open.push(layer.nodes.of(&row.value));
            }
            for node in nodes {
                // No client can have created it: its content would include the nodes or the system keys.
                if layer.is_reserved(node.prefix()) {
                    return Err(Error::foreign(&node.tag()));
                }
                doomed.push((layer.content_of(node.prefix())?, node.range()));
            }
        }
        sometimes!(doomed.len() > 1, "directory: a removal takes others with it");
        layer.set_versions(tx, unversioned);
        for ((begin, end), (first, last)) in &doomed {
            tx.clear_range(begin, end);
            tx.clear_range(first, last);
        }
        tx.clear(&found.parent.child(name));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_overlap_the_nodes_or_the_system_keys_are_reserved() {
        let all = Directories::new(Subspace::from_bytes("nodes"), Subspace::all());
        for prefix in [&b"a"[..], b"node0", b"nodez"] {
            assert!(!all.is_reserved(prefix), "{prefix:?}");
        }
        for prefix in [&b""[..], b"n", b"nodes", b"nodes\x01a", b"\xff", b"\xff\x02x"] {
            assert!(all.is_reserved(prefix), "{prefix:?}");
        }
    }
}
