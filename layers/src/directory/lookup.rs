//! How a path leads to a directory: through its nodes, and into the partitions on it.

use super::{
    Directories, Directory, Error, PARTITION, Path,
    keys::{self, Node, Nodes, VERSION},
};
use crate::{
    reachable,
    tx::{Isolation, Transaction},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// How to follow a path.
#[derive(Clone, Copy)]
pub(super) struct LookupOptions {
    pub(super) isolation: Isolation,
    /// Whether the call will write.
    pub(super) writes: bool,
    /// Whether a path that ends at a partition is followed into it.
    pub(super) enters: bool,
    /// Whether the call gives a manual prefix.
    pub(super) gives_prefix: bool,
}

pub(super) const OPENING: LookupOptions =
    LookupOptions { isolation: Isolation::Serializable, writes: false, enters: false, gives_prefix: false };
pub(super) const CHANGING: LookupOptions = LookupOptions { writes: true, ..OPENING };

/// The result of following a path within one layer.
pub(super) struct Found {
    /// The last existing node on the path.
    pub(super) node: Node,
    /// The node before it.
    pub(super) parent: Node,
    /// Its tag.
    pub(super) tag: Bytes,
    /// The number of names that lead to it.
    pub(super) depth: usize,
}

impl Found {
    pub(super) fn is_partition(&self) -> bool {
        self.tag == PARTITION
    }
}

/// The end of a path: the layer that contains it, which depends on the partitions on the path, and the node
/// found there.
pub(super) struct Lookup {
    pub(super) layer: Directories,
    /// The names within the layer.
    pub(super) names: Vec<String>,
    pub(super) found: Found,
    /// The version keys that a write must set.
    pub(super) unversioned: Vec<Vec<u8>>,
}

impl Lookup {
    pub(super) fn exists(&self) -> bool {
        self.found.depth == self.names.len()
    }

    pub(super) fn path(&self) -> Path {
        self.layer.partition.join(&self.names)
    }

    /// The directory at the end of the path, if it has the requested tag; an empty tag accepts any.
    pub(super) fn open(self, tag: &[u8]) -> Result<Directory, Error> {
        let found = self.found.tag.clone();
        if !tag.is_empty() && found != tag {
            return Err(Error::WrongTag { path: self.path(), asked: Bytes::copy_from_slice(tag), found });
        }
        // No client can have created it: its content would include the nodes or the system keys.
        if self.layer.is_reserved(self.found.node.prefix()) {
            return Err(Error::foreign(&self.found.node.tag()));
        }
        let path = self.path();
        Ok(self.layer.directory(path, self.found.node.prefix().clone(), found))
    }
}

impl Directories {
    /// Follows a path, including the partitions on it.
    pub(super) async fn follow<T: Transaction>(
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
    pub(super) async fn find<T: Transaction>(
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
    pub(super) async fn check_version<T: Transaction>(
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
    pub(super) fn set_versions<T: Transaction>(&self, tx: &T, unversioned: Vec<Vec<u8>>) {
        for key in unversioned {
            tx.set(&key, &keys::version_value());
        }
    }

    /// The layer of the partition on the path, and the names after the partition.
    pub(super) fn enter(&self, found: &Found, names: &[String]) -> (Directories, Vec<String>) {
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

    pub(super) fn directory(self, path: Path, prefix: Bytes, tag: Bytes) -> Directory {
        Directory { layer: Directories { base: Vec::new(), ..self }, path, prefix, tag }
    }

    pub(super) fn names(&self, path: &[&str]) -> Vec<String> {
        self.base.iter().cloned().chain(path.iter().map(|name| (*name).to_owned())).collect()
    }
}
