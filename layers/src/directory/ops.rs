//! Operations on directories, each within a transaction.

use super::{
    CandidateSeed, Directory, Error, PARTITION, Path,
    keys::{self, Node, Nodes, VERSION},
};
use crate::{
    limits, reachable, read, sometimes,
    tx::{ConflictRangeType, Isolation, MutationType, RangeOption, Transaction, key_after, strinc},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::{BoxFuture, FutureExt, try_join, try_join_all};
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

/// How to follow a path.
#[derive(Clone, Copy)]
struct LookupOptions {
    isolation: Isolation,
    /// Whether the call will write.
    writes: bool,
    /// Whether a path that ends at a partition is followed into it.
    enters: bool,
    /// Whether the call gives a manual prefix.
    gives_prefix: bool,
}

const OPENING: LookupOptions =
    LookupOptions { isolation: Isolation::Serializable, writes: false, enters: false, gives_prefix: false };
const CHANGING: LookupOptions = LookupOptions { writes: true, ..OPENING };

/// The result of following a path within one layer.
struct Found {
    /// The last existing node on the path.
    node: Node,
    /// The node before it.
    parent: Node,
    /// Its tag.
    tag: Bytes,
    /// The number of names that lead to it.
    depth: usize,
}

impl Found {
    fn is_partition(&self) -> bool {
        self.tag == PARTITION
    }
}

/// The end of a path: the layer that contains it, which depends on the partitions on the path, and the node
/// found there.
struct Lookup {
    layer: Directories,
    /// The names within the layer.
    names: Vec<String>,
    found: Found,
    /// The version keys that a write must set.
    unversioned: Vec<Vec<u8>>,
}

impl Lookup {
    fn exists(&self) -> bool {
        self.found.depth == self.names.len()
    }

    fn path(&self) -> Path {
        self.layer.partition.join(&self.names)
    }

    /// The directory at the end of the path, if it has the requested tag; an empty tag accepts any.
    fn open(self, tag: &[u8]) -> Result<Directory, Error> {
        let found = self.found.tag.clone();
        if !tag.is_empty() && found != tag {
            return Err(Error::WrongTag { path: self.path(), asked: Bytes::copy_from_slice(tag), found });
        }
        let path = self.path();
        Ok(self.layer.directory(path, self.found.node.prefix().clone(), found))
    }
}

/// The parameters of a call that may create a directory.
#[derive(Clone, Copy)]
struct Creation<'a> {
    tag: &'a [u8],
    prefix: Option<&'a [u8]>,
    /// Whether the call opens an existing directory.
    opens: bool,
}

/// A directory to be created.
struct NewDirectory {
    parent: Node,
    name: String,
    node: Node,
    tag: Bytes,
}

impl Directories {
    /// The directories whose nodes are below `nodes` and whose allocated prefixes are below `content`. Both
    /// are part of the data format: all clients must always use the same.
    pub fn new(nodes: Subspace, content: Subspace) -> Directories {
        crate::called!();
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
        crate::called!();
        Directories { manual: true, ..self }
    }

    /// The nodes, for tools that read or repair them directly.
    pub fn nodes(&self) -> &Nodes {
        crate::called!();
        &self.nodes
    }

    /// The prefix of all allocated prefixes.
    pub fn content(&self) -> &Bytes {
        crate::called!();
        &self.content
    }

    /// Opens a directory. If `tag` is not empty, it must equal the directory's layer tag.
    pub async fn open<T: Transaction>(&self, tx: &T, path: &[&str], tag: &[u8]) -> Result<Directory, Error> {
        crate::called!();
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
        crate::called!();
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
        crate::called!();
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
        crate::called!();
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
        crate::called!();
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
        crate::called!();
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
        crate::called!();
        let lookup = self.follow(tx, path, CHANGING).await?;
        match lookup.exists() {
            true => lookup.remove(tx).await,
            false => Err(Error::NotFound(lookup.path())),
        }
    }

    /// Like [`remove`](Directories::remove), but does nothing if the directory does not exist. Returns
    /// whether it existed.
    pub async fn remove_if_exists<T: Transaction>(&self, tx: &T, path: &[&str]) -> Result<bool, Error> {
        crate::called!();
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
        crate::called!();
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
        crate::called!();
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
        crate::called!();
        Ok(self.follow(tx, path, LookupOptions { isolation, ..OPENING }).await?.exists())
    }

    /// Follows a path, including the partitions on it.
    async fn follow<T: Transaction>(
        &self,
        tx: &T,
        path: &[&str],
        options: LookupOptions,
    ) -> Result<Lookup, Error> {
        let (mut layer, mut names, mut unversioned) = (self.clone(), self.names(path), Vec::new());
        loop {
            unversioned.extend(layer.check_version(tx, options).await?);
            if options.gives_prefix && !layer.manual {
                let path = layer.partition.join(&names);
                return Err(match layer.partition.names() {
                    [] => Error::ManualPrefix(path),
                    _ => Error::PrefixInPartition(path),
                });
            }
            if options.writes && names.is_empty() {
                return Err(Error::Root("removed"));
            }
            let found = layer.find(tx, &names, options.isolation).await?;
            if !found.is_partition() || found.depth == names.len() && !options.enters {
                return Ok(Lookup { layer, names, found, unversioned });
            }
            reachable!("directory: a partition is entered");
            (layer, names) = layer.enter(&found, &names);
        }
    }

    /// Follows a path within this layer.
    async fn find<T: Transaction>(
        &self,
        tx: &T,
        names: &[String],
        isolation: Isolation,
    ) -> Result<Found, Error> {
        let root = self.nodes.root();
        let mut found = Found { node: root.clone(), parent: root, tag: Bytes::new(), depth: 0 };
        for name in names {
            let Some(prefix) = tx.get(&found.node.child(name), isolation).await? else { break };
            let node = self.nodes.of(&prefix);
            let tag = tx.get(&node.tag(), isolation).await?.unwrap_or_default();
            found = Found { parent: found.node, node, tag, depth: found.depth + 1 };
            if found.is_partition() {
                break;
            }
        }
        Ok(found)
    }

    /// Refuses data of a later version. Returns the version's key if a writing call must set it.
    async fn check_version<T: Transaction>(
        &self,
        tx: &T,
        options: LookupOptions,
    ) -> Result<Option<Vec<u8>>, Error> {
        let key = self.nodes.version();
        let Some(value) = tx.get(&key, options.isolation).await? else {
            return Ok(options.writes.then_some(key));
        };
        let version = keys::version(&key, &value)?;
        match version {
            [major, ..] if major > VERSION[0] => Err(Error::TooNew { path: self.partition.clone(), version }),
            [_, minor, _] if minor > VERSION[1] && options.writes => {
                Err(Error::ReadOnly { path: self.partition.clone(), version })
            }
            _ => Ok(None),
        }
    }

    /// Sets the version in layers that have none.
    fn set_versions<T: Transaction>(&self, tx: &T, unversioned: Vec<Vec<u8>>) {
        for key in unversioned {
            tx.set(&key, &keys::version_value());
        }
    }

    /// The layer of the partition on the path, and the names after the partition.
    fn enter(&self, found: &Found, names: &[String]) -> (Directories, Vec<String>) {
        let (partition, rest) = names.split_at(found.depth);
        (self.within(found.node.prefix(), self.partition.join(partition)), rest.to_vec())
    }

    /// The layer of the partition with this prefix and path.
    pub(super) fn within(&self, prefix: &Bytes, partition: Path) -> Directories {
        Directories {
            nodes: Nodes::new(Subspace::from_bytes([prefix, &b"\xfe"[..]].concat())),
            content: prefix.clone(),
            partition,
            manual: false,
            base: Vec::new(),
        }
    }

    fn directory(self, path: Path, prefix: Bytes, tag: Bytes) -> Directory {
        Directory { layer: Directories { base: Vec::new(), ..self }, path, prefix, tag }
    }

    fn names(&self, path: &[&str]) -> Vec<String> {
        self.base.iter().cloned().chain(path.iter().map(|name| (*name).to_owned())).collect()
    }

    /// Opens or creates a directory, depending on `creation`. Boxed, because a caller may have many such
    /// calls in flight on one stack.
    fn make<'a, T: Transaction>(
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
        loop {
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
            if let Some(directory) = lookup.create_all(tx, missing).await? {
                return Ok(directory);
            }
            // A concurrent call in this transaction has created a directory on the path first.
            reachable!("directory: another call of the transaction is first");
        }
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

    /// Whether a prefix cannot be used for a directory: it overlaps with the system keys or with the nodes.
    fn is_reserved(&self, prefix: &[u8]) -> bool {
        let nodes = self.nodes.key();
        prefix.starts_with(nodes) || nodes.starts_with(prefix) || prefix.first() == Some(&0xff)
    }

    /// The range of all keys that start with a directory's prefix. No directory's prefix is a prefix of the
    /// nodes.
    fn content_of(&self, prefix: &Bytes) -> Result<(Vec<u8>, Vec<u8>), Error> {
        match strinc(prefix).filter(|_| !self.nodes.key().starts_with(prefix)) {
            Some(end) => Ok((prefix.to_vec(), end.to_vec())),
            None => Err(Error::foreign(&self.nodes.of(prefix).tag())),
        }
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
            limits::key(&parent.claim(name))?;
            missing.push(NewDirectory { parent, name: name.clone(), node, tag });
        }
        Ok(missing)
    }

    /// Writes the directories, from the first one on. Returns the last one, or `None` as soon as another call
    /// of the transaction has created one of them first.
    ///
    /// Two calls that find a directory missing both try to create it. They coordinate at its claim key: each
    /// appends the data that it would write and reads the key. The first claim determines the directory; the
    /// other call writes the same data, in case the first has not done so yet, and starts again.
    async fn create_all<T: Transaction>(
        self,
        tx: &T,
        missing: Vec<NewDirectory>,
    ) -> Result<Option<Directory>, Error> {
        let path = self.path();
        let Lookup { layer, mut unversioned, .. } = self;
        let mut last = None;
        for NewDirectory { parent, name, node, tag } in missing {
            let (key, claim) = (parent.child(&name), parent.claim(&name));
            tx.atomic_op(&claim, &keys::claim(node.prefix(), &tag), MutationType::AppendIfFits);
            let written = tx.get(&key, Isolation::Serializable);
            let claims = tx.get(&claim, Isolation::Serializable);
            let (written, claims) = try_join(written, claims).await?;
            if written.is_some() {
                tx.clear(&claim);
                return Ok(None);
            }
            let (prefix, first_tag) = keys::first_claim(&claim, &claims.unwrap_or_default())?;
            let first = layer.nodes.of(&prefix);
            layer.set_versions(tx, std::mem::take(&mut unversioned));
            tx.set(&key, &prefix);
            tx.set(&first.tag(), &first_tag);
            tx.clear(&claim);
            if first != node {
                return Ok(None);
            }
            last = Some((prefix, tag));
        }
        Ok(last.map(|(prefix, tag)| layer.directory(path, prefix, tag)))
    }

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
