//! The key schema of a directory layer: the official schema, version 1.0.0, which other tools can read.
//!
//! ```text
//! nodes                                   the subspace of nodes, by default \xfe
//! (nodes, prefix)                         the node of the directory with this prefix
//! (nodes, nodes)                          the node of the root
//!
//! (node, 0, name)          =  prefix      a subdirectory
//! (node, b"layer")         =  tag         its layer tag
//! (root, b"version")       =  1, 0, 0     three little-endian 32-bit numbers
//! (root, b"hca", 0, start) =  count       a window of the allocator; counts the draws from it
//! (root, b"hca", 1, n)     =  ''          a drawn candidate of the window
//! (node, b"claim", name)                  never stored: coordinates the calls of one transaction
//!
//! prefix ..                               the content of a directory
//! prefix \xfe ..                          the nodes of a directory that is a partition
//! ```

use super::{Allocator, Error};
use crate::{
    nesting,
    tx::{RangeOption, strinc},
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Element, Subspace};

/// The stored version of the schema.
pub const VERSION: [u32; 3] = [1, 0, 0];

/// The layer tag of a partition.
pub const PARTITION: &[u8] = b"partition";

fn bytes(bytes: &[u8]) -> TupleBytes<'_> {
    TupleBytes::from(bytes)
}

/// The nodes of one directory layer, for tools that read or repair them directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes(Subspace);

impl Nodes {
    /// The nodes in `subspace`.
    pub fn new(subspace: Subspace) -> Nodes {
        Nodes(subspace)
    }

    /// The prefix of the keys of all nodes.
    pub fn key(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The root's node.
    pub fn root(&self) -> Node {
        self.of(self.key())
    }

    /// The node of the directory with this prefix.
    pub fn of(&self, prefix: &[u8]) -> Node {
        Node { subspace: self.0.subspace(&bytes(prefix)), prefix: Bytes::copy_from_slice(prefix) }
    }

    /// The key of the schema's version.
    pub fn version(&self) -> Vec<u8> {
        self.root().subspace.pack(&bytes(b"version"))
    }

    /// The allocator of prefixes.
    pub fn allocator(&self) -> Allocator {
        Allocator::new(self.root().subspace.subspace(&bytes(b"hca")))
    }

    /// A read of the last key of the nodes whose prefix sorts before this one.
    pub(super) fn last_before(&self, prefix: &[u8]) -> RangeOption {
        let end = self.of(prefix).subspace.range().0;
        RangeOption::new(self.0.range().0, end).reversed().limit(1)
    }

    /// The range of the nodes whose prefix starts with this one; `None` if no key can.
    pub(super) fn beginning_with(&self, prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let end = strinc(prefix)?;
        Some((self.0.pack(&bytes(prefix)), self.0.pack(&bytes(&end))))
    }

    /// The prefix of the directory whose node this key belongs to.
    pub(super) fn prefix_of(&self, key: &[u8]) -> Result<Bytes, Error> {
        match nesting::unpack_below::<Vec<Element>>(&self.0, key).as_deref() {
            Ok([Element::Bytes(prefix), ..]) => Ok(Bytes::copy_from_slice(prefix)),
            _ => Err(Error::foreign(key)),
        }
    }
}

/// The node of a directory: its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    subspace: Subspace,
    prefix: Bytes,
}

impl Node {
    /// The prefix of the directory's content.
    pub fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// The key of its layer tag.
    pub fn tag(&self) -> Vec<u8> {
        self.subspace.pack(&bytes(b"layer"))
    }

    /// The key of the subdirectory with this name.
    pub fn child(&self, name: &str) -> Vec<u8> {
        self.children().pack(&name)
    }

    /// The subspace of the keys of all subdirectories.
    pub fn children(&self) -> Subspace {
        self.subspace.subspace(&0i64)
    }

    /// All keys of the node.
    pub fn range(&self) -> (Vec<u8>, Vec<u8>) {
        self.subspace.range()
    }
}

/// The name of the subdirectory to which a key of [`children`](Node::children) belongs.
pub(super) fn name(children: &Subspace, key: &[u8]) -> Result<String, Error> {
    children.unpack(key).map_err(|_| Error::foreign(key))
}

/// The stored version.
pub(super) fn version(key: &[u8], value: &[u8]) -> Result<[u32; 3], Error> {
    let mut numbers = value.chunks_exact(4).map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]]));
    match (value.len(), numbers.next(), numbers.next(), numbers.next()) {
        (12, Some(major), Some(minor), Some(micro)) => Ok([major, minor, micro]),
        _ => Err(Error::foreign(key)),
    }
}

/// The encoded version.
pub(super) fn version_value() -> Vec<u8> {
    VERSION.iter().flat_map(|n| n.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Nodes {
        Nodes::new(Subspace::from_bytes([0xfe]))
    }

    #[test]
    fn keys_are_the_official_ones() {
        assert_eq!(nodes().version(), b"\xfe\x01\xfe\x00\x01version\x00");
        assert_eq!(version_value(), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(nodes().root().child("é"), b"\xfe\x01\xfe\x00\x14\x02\xc3\xa9\x00");
        assert_eq!(nodes().of(b"\x15\x25").tag(), b"\xfe\x01\x15\x25\x00\x01layer\x00");
    }

    #[test]
    fn a_prefix_is_read_from_any_key_of_its_node() {
        for prefix in [&b"\x15\x00\xff"[..], b"1A", b"\0"] {
            let node = nodes().of(prefix);
            for key in [node.tag(), node.child(""), node.child("x\0y")] {
                assert_eq!(nodes().prefix_of(&key).unwrap(), prefix);
                assert!(node.range().0 < key && key < node.range().1);
            }
            assert_eq!(name(&node.children(), &node.child("x\0y")).unwrap(), "x\0y");
            assert_eq!(name(&node.children(), &node.tag()), Err(Error::foreign(&node.tag())));
        }
        assert_eq!(nodes().prefix_of(b"\xfe\x15\x01"), Err(Error::foreign(b"\xfe\x15\x01")));
        assert_eq!(nodes().prefix_of(b"1A"), Err(Error::foreign(b"1A")));
        let deep = [&b"\xfe"[..], &[0x05; 9_980]].concat();
        assert_eq!(nodes().prefix_of(&deep), Err(Error::foreign(&deep)));
    }

    #[test]
    fn nodes_sort_as_their_prefixes_do() {
        let prefixes = [&b"1"[..], b"1\0", b"1\0\xff", b"1A", b"2"];
        let keys: Vec<_> = prefixes.iter().map(|prefix| nodes().of(prefix).tag()).collect();
        assert!(keys.is_sorted());
        let (begin, end) = nodes().beginning_with(b"1").unwrap();
        let inside = |key: &&Vec<u8>| begin <= **key && **key < end;
        assert_eq!(keys.iter().filter(inside).count(), 4);
        assert_eq!(nodes().beginning_with(b"\xff"), None);
    }

    #[test]
    fn a_version_is_twelve_bytes() {
        assert_eq!(version(b"k", &version_value()), Ok(VERSION));
        assert_eq!(version(b"k", &[0; 11]), Err(Error::foreign(b"k")));
        assert_eq!(version(b"k", &[0; 16]), Err(Error::foreign(b"k")));
    }
}
