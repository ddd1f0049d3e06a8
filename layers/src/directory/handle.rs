//! A handle to a directory.

use super::{Directories, Error, PARTITION, Path, keys::Nodes};
use crate::{
    once::{self, Answer},
    tx::{Isolation, Transaction},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};

/// A directory in the state in which it was opened.
///
/// A handle outlives its transaction, and its directory may be moved or removed in the meantime; keys or
/// directories written below its prefix after that belong to no directory. A transaction that uses a handle
/// that it did not open itself calls [`check`](Directories::check) first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The layer that contains the directory's own node.
    pub(super) layer: Directories,
    pub(super) path: Path,
    pub(super) prefix: Bytes,
    pub(super) tag: Bytes,
}

impl Directory {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its layer tag.
    pub fn tag(&self) -> &Bytes {
        &self.tag
    }

    /// Whether it is a partition: a partition contains directories, but no keys.
    pub fn is_partition(&self) -> bool {
        self.tag == PARTITION
    }

    /// The prefix of its keys or, for a partition, of everything in it.
    pub fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// The directories of the layer that contains it.
    pub fn siblings(&self) -> &Directories {
        &self.layer
    }

    /// The directory's subspace, for its content. A partition has none.
    pub fn subspace(&self) -> Result<Subspace, Error> {
        match self.is_partition() {
            true => Err(Error::Partition(self.path.clone())),
            false => Ok(Subspace::from_bytes(&self.prefix[..])),
        }
    }

    /// The directories below it.
    pub fn below(&self) -> Directories {
        match self.is_partition() {
            true => self.layer.within(&self.prefix, self.path.clone()),
            false => Directories { base: self.names().to_vec(), ..self.layer.clone() },
        }
    }

    /// Moves it to another absolute path in its partition.
    pub async fn move_to<T: Transaction>(&self, tx: &T, to: &[&str]) -> Result<Directory, Error> {
        let partition = self.layer.partition.names();
        match to.len() >= partition.len() && partition.iter().zip(to).all(|(ours, theirs)| ours == theirs) {
            true => self.layer.rename(tx, &self.name(), &to[partition.len()..]).await,
            false => Err(Error::BetweenPartitions { from: self.path.clone(), to: Path::from(to) }),
        }
    }

    /// Removes it, all directories below it, and their content.
    pub async fn remove<T: Transaction>(&self, tx: &T) -> Result<(), Error> {
        self.layer.remove(tx, &self.name()).await
    }

    /// Like [`remove`](Directory::remove), but does nothing if there is no directory at its path. Returns
    /// whether there was one.
    pub async fn remove_if_exists<T: Transaction>(&self, tx: &T) -> Result<bool, Error> {
        self.layer.remove_if_exists(tx, &self.name()).await
    }

    /// Whether there is a directory at its path, even if it is a different one.
    pub async fn exists<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<bool, Error> {
        self.layer.exists(tx, &self.name(), isolation).await
    }

    /// The names from its layer's root to it.
    fn names(&self) -> &[String] {
        &self.path.names()[self.layer.partition.names().len()..]
    }

    fn name(&self) -> Vec<&str> {
        self.names().iter().map(String::as_str).collect()
    }
}

/// The directory and the layer that contains it, as nested tuples.
type Packed<'a> =
    ((Vec<String>, TupleBytes<'a>, TupleBytes<'a>), (TupleBytes<'a>, TupleBytes<'a>, Vec<String>, bool));

impl Answer for Directory {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        let Directory { layer, path, prefix, tag } = self;
        let packed: Packed = (
            (path.names().to_vec(), prefix[..].into(), tag[..].into()),
            (
                layer.nodes.key().into(),
                layer.content[..].into(),
                layer.partition.names().to_vec(),
                layer.manual,
            ),
        );
        out.extend_from_slice(&pack(&packed));
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Directory> {
        let ((path, prefix, tag), (nodes, content, partition, manual)): Packed = unpack(&bytes).ok()?;
        // A directory's path lies within its layer's partition.
        path.strip_prefix(&partition[..])?;
        // Neither its content nor any node is among the system's keys.
        if [&nodes, &content, &prefix].iter().any(|prefix| prefix.first() == Some(&0xff)) {
            return None;
        }
        let own = |bytes: TupleBytes| Bytes::copy_from_slice(&bytes);
        let layer = Directories {
            nodes: Nodes::new(Subspace::from_bytes(&nodes[..])),
            content: own(content),
            partition: Path::from(&partition[..]),
            manual,
            base: Vec::new(),
        };
        Some(Directory { layer, path: Path::from(&path[..]), prefix: own(prefix), tag: own(tag) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &[&str], tag: &'static [u8]) -> Directory {
        Directory {
            layer: Directories::default().with_manual_prefixes(),
            path: Path::from(path),
            prefix: Bytes::from_static(b"\x15\x25\0"),
            tag: Bytes::from_static(tag),
        }
    }

    #[test]
    fn a_directory_survives_being_recorded() {
        let plain = directory(&["a", "", "x\0y"], b"");
        let mut inside = directory(&["p", "d"], b"t\0g");
        inside.layer = directory(&["p"], PARTITION).below();
        for directory in [plain, inside] {
            let mut out = BytesMut::new();
            assert_eq!(directory.encode(&mut out), Ok(None));
            assert_eq!(Directory::decode(out.freeze()), Some(directory));
        }
        assert_eq!(Directory::decode(Bytes::from_static(b"\x15\x01")), None);
        // Of a partition that does not contain it: its names within that partition would not be defined.
        let astray = Directory { path: Path::from(&["q"][..]), ..directory(&[], b"") };
        let astray = Directory { layer: directory(&["p"], PARTITION).below(), ..astray };
        // Of which one part is among the system's keys.
        let system = || Bytes::from_static(b"\xff\x02");
        let prefix = Directory { prefix: system(), ..directory(&["a"], b"") };
        let of_layer = |layer| Directory { layer, ..directory(&["a"], b"") };
        let nodes = of_layer(Directories::new(Subspace::from_bytes(system()), Subspace::all()));
        let content = of_layer(Directories { content: system(), ..Directories::default() });
        for lost in [astray, prefix, nodes, content] {
            let mut out = BytesMut::new();
            assert_eq!(lost.encode(&mut out), Ok(None));
            assert_eq!(Directory::decode(out.freeze()), None);
        }
    }

    #[test]
    fn a_partition_has_no_subspace_and_nodes_of_its_own() {
        let partition = directory(&["p"], PARTITION);
        assert_eq!(partition.subspace(), Err(Error::Partition(Path::from(&["p"][..]))));
        let below = partition.below();
        assert_eq!(below.nodes.key(), b"\x15\x25\0\xfe");
        assert_eq!((&below.content[..], below.manual), (&b"\x15\x25\0"[..], false));
        let plain = directory(&["a"], b"");
        assert_eq!(plain.subspace().unwrap().bytes(), b"\x15\x25\0");
        assert_eq!(plain.below().base, ["a"]);
    }
}
