//! Creation of directories, and free prefixes for them.

use super::{
    CandidateSeed, Directories, Directory, Error, Path,
    keys::Node,
    lookup::{CHANGING, Lookup, LookupOptions, OPENING},
};
use crate::{
    limits, reachable, read,
    tx::{ConflictRangeType, Isolation, RangeOption, Transaction},
};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, try_join};

/// The parameters of a call that may create a directory.
#[derive(Clone, Copy)]
pub(super) struct Creation<'a> {
    pub(super) tag: &'a [u8],
    pub(super) prefix: Option<&'a [u8]>,
    /// Whether the call opens an existing directory.
    pub(super) opens: bool,
}

/// A directory to be created.
struct NewDirectory {
    parent: Node,
    name: String,
    node: Node,
    tag: Bytes,
}

impl Directories {
    /// Opens or creates a directory, depending on `creation`. Boxed, because a caller may have many such
    /// calls in flight on one stack.
    pub(super) fn make<'a, T: Transaction>(
        &'a self,
        tx: &'a T,
        path: &'a [&'a str],
        creation: Creation<'a>,
        seed: CandidateSeed,
    ) -> BoxFuture<'a, Result<Directory, Error>> {
        self.make_inline(tx, path, creation, seed).boxed()
    }

    async fn make_inline<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        creation: Creation<'_>,
        mut seed: CandidateSeed,
    ) -> Result<Directory, Error> {
        let gives_prefix = creation.prefix.is_some();
        let mut lookup = self.follow(tx, path, LookupOptions { gives_prefix, ..OPENING }).await?;
        if lookup.names.is_empty() {
            return Err(Error::Root("opened"));
        }
        if lookup.exists() {
            return match creation.opens {
                true => lookup.open(creation.tag),
                false => Err(Error::AlreadyExists(lookup.path())),
            };
        }
        let version = lookup.layer.check_version(tx, CHANGING).await?;
        let missing = lookup.plan(tx, creation, &mut seed).await?;
        lookup.unversioned.extend(version);
        // There is a name, and no directory at its path.
        lookup.create_all(tx, missing).ok_or(Error::Root("opened"))
    }

    /// Allocates a prefix that is not used by any other directory.
    async fn allocate<T: Transaction>(
        &self,
        tx: &T,
        path: impl Fn() -> Path,
        seed: &mut CandidateSeed,
    ) -> Result<Bytes, Error> {
        let allocated = self.nodes.allocator().allocate_from(tx, seed).await?;
        let prefix = Bytes::from([&self.content[..], &allocated].concat());
        let range = RangeOption::from(self.content_of(&prefix)?).limit(1);
        let held = read::all::<_, Error>(tx, range, Isolation::Serializable).await?;
        if !held.is_empty() {
            return Err(Error::PrefixNotEmpty { path: path(), prefix });
        }
        if !self.is_free(tx, &prefix, Isolation::Snapshot).await? {
            reachable!("directory: an allocated prefix clashes with a manual one");
            return Err(Error::PrefixClash { path: path(), prefix });
        }
        // Nodes are read at snapshot, because neighbouring directories are created all the time. Only nodes
        // whose prefix would overlap with this one matter: if such a node is created, this transaction
        // conflicts.
        for length in 1..prefix.len() {
            let (begin, end) = self.nodes.of(&prefix[..length]).range();
            tx.add_conflict_range(&begin, &end, ConflictRangeType::Read)?;
        }
        if let Some((begin, end)) = self.nodes.beginning_with(&prefix) {
            tx.add_conflict_range(&begin, &end, ConflictRangeType::Read)?;
        }
        Ok(prefix)
    }

    /// Whether this prefix does not overlap with any directory's prefix, nor with the nodes.
    async fn is_free<T: Transaction>(
        &self,
        tx: &T,
        prefix: &[u8],
        isolation: Isolation,
    ) -> Result<bool, Error> {
        if self.is_reserved(prefix) {
            return Ok(false);
        }
        let Some(beginning) = self.nodes.beginning_with(prefix) else { return Ok(false) };
        let before = read::all::<_, Error>(tx, self.nodes.last_before(prefix), isolation);
        let behind = read::all::<_, Error>(tx, RangeOption::from(beginning).limit(1), isolation);
        let (before, behind) = try_join(before, behind).await?;
        // Prefixes do not nest, so that only the last one before it can be a prefix of this one.
        let begun = match before.first() {
            None => false,
            Some(row) => prefix.starts_with(&self.nodes.prefix_of(&row.key)?),
        };
        Ok(!begun && behind.is_empty())
    }
}

impl Lookup {
    /// The missing directories at the end of the path, each with a free prefix.
    async fn plan<T: Transaction>(
        &self,
        tx: &T,
        creation: Creation<'_>,
        seed: &mut CandidateSeed,
    ) -> Result<Vec<NewDirectory>, Error> {
        let Lookup { layer, names, found, .. } = self;
        let tag = Bytes::copy_from_slice(creation.tag);
        if let Some(prefix) = creation.prefix
            && !layer.is_free(tx, prefix, Isolation::Serializable).await?
        {
            reachable!("directory: a prefix by hand is in use");
            return Err(Error::PrefixInUse { path: self.path(), prefix: Bytes::copy_from_slice(prefix) });
        }
        let mut missing: Vec<NewDirectory> = Vec::new();
        for (depth, name) in names.iter().enumerate().skip(found.depth) {
            let last = depth + 1 == names.len();
            let path = || layer.partition.join(&names[..=depth]);
            let prefix = match creation.prefix {
                Some(prefix) if last => Bytes::copy_from_slice(prefix),
                _ => layer.allocate(tx, path, seed).await?,
            };
            let clashes = |directory: &NewDirectory| {
                prefix.starts_with(directory.node.prefix()) || directory.node.prefix().starts_with(&prefix)
            };
            if missing.iter().any(clashes) {
                return Err(Error::PrefixClash { path: path(), prefix });
            }
            let parent = missing.last().map_or(&found.node, |directory| &directory.node).clone();
            let node = layer.nodes.of(&prefix);
            let tag = if last { tag.clone() } else { Bytes::new() };
            limits::row(&node.tag(), &tag)?;
            limits::row(&parent.child(name), &prefix)?;
            missing.push(NewDirectory { parent, name: name.clone(), node, tag });
        }
        Ok(missing)
    }

    /// Writes the directories, from the first one on. Returns the last one; `None` if there is none.
    fn create_all<T: Transaction>(self, tx: &T, missing: Vec<NewDirectory>) -> Option<Directory> {
        let path = self.path();
        let Lookup { layer, unversioned, .. } = self;
        layer.set_versions(tx, unversioned);
        for NewDirectory { parent, name, node, tag } in &missing {
            tx.set(&parent.child(name), node.prefix());
            tx.set(&node.tag(), tag);
        }
        let NewDirectory { node, tag, .. } = missing.into_iter().next_back()?;
        Some(layer.directory(path, node.prefix().clone(), tag))
    }
}
