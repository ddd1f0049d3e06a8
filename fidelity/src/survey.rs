//! A survey of the directories, as the rows of a database store them.
//!
//! [`survey`] reads the raw rows by the key schema alone, without the layer, and refuses a node to which no
//! path leads, two prefixes of which one begins with the other, and a key that belongs to no directory.

use foundationdb_tuple::{Bytes as TupleBytes, Subspace, unpack};
use shaketable_layers::directory::{PARTITION, Path};
use std::collections::{BTreeMap, BTreeSet};

/// Rows by key.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// One directory layer, the root's or a partition's, as its rows describe it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The stored version.
    pub version: Option<[u32; 3]>,
    /// The allocator's windows, and the number of candidates drawn from each.
    pub windows: BTreeMap<i64, i64>,
    /// The candidates that are marked.
    pub marks: BTreeSet<i64>,
    /// The directories, by name.
    pub directories: BTreeMap<String, Surveyed>,
}

/// A directory, as its rows describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// Its prefix.
    pub prefix: Vec<u8>,
    /// Its layer tag.
    pub tag: Vec<u8>,
    /// Its keys, without the prefix.
    pub content: Rows,
    /// The directories below it, unless it is a partition.
    pub below: BTreeMap<String, Surveyed>,
    /// The layer within it, if it is a partition.
    pub partition: Option<Layer>,
}

/// Reads rows as the directories whose nodes are stored below `nodes`.
pub fn survey(rows: Rows, nodes: &[u8]) -> Result<Layer, String> {
    let mut surveyor = Surveyor { rows, known: Vec::new() };
    let layer = surveyor.layer(nodes, &Path::default())?;
    for (begin, path, within) in &surveyor.known {
        let nested = |(prefix, other, _): &&(Vec<u8>, Path, bool)| {
            other != path
                && prefix.starts_with(begin)
                && !(*within && other.names().starts_with(path.names()))
        };
        if let Some((prefix, other, _)) = surveyor.known.iter().find(nested) {
            let (begin, prefix) = (begin.escape_ascii(), prefix.escape_ascii());
            return Err(format!(
                "the prefix \"{prefix}\" of {other} begins with \"{begin}\", the prefix of {path}"
            ));
        }
    }
    match surveyor.rows.first_key_value() {
        None => Ok(layer),
        Some((key, _)) => Err(format!("the key \"{}\" belongs to no directory", key.escape_ascii())),
    }
}

/// Removes rows as they are assigned to a directory.
struct Surveyor {
    rows: Rows,
    /// Each prefix, its directory, and whether that is a partition.
    known: Vec<(Vec<u8>, Path, bool)>,
}

impl Surveyor {
    /// Removes and returns all rows with this prefix, by the rest of the key.
    fn take(&mut self, beginning: &[u8]) -> Rows {
        let inside = self.rows.range(beginning.to_vec()..).take_while(|(key, _)| key.starts_with(beginning));
        let keys: Vec<Vec<u8>> = inside.map(|(key, _)| key.clone()).collect();
        let row =
            |key: Vec<u8>| (key[beginning.len()..].to_vec(), self.rows.remove(&key).unwrap_or_default());
        keys.into_iter().map(row).collect()
    }

    fn integers(&mut self, space: &Subspace) -> Result<BTreeMap<i64, Vec<u8>>, String> {
        let rows = self.take(space.bytes()).into_iter();
        let row = |(key, value): (Vec<u8>, Vec<u8>)| Ok((unpack(&key).map_err(|e| e.to_string())?, value));
        rows.map(row).collect::<Result<_, String>>().map_err(|e| format!("the allocator: {e}"))
    }

    fn layer(&mut self, nodes: &[u8], path: &Path) -> Result<Layer, String> {
        let root = node(nodes, nodes);
        let version = match self.rows.remove(column(&root, "version").bytes()) {
            None => None,
            Some(value) if value.len() == 12 => {
                let number = |i: usize| {
                    value[4 * i..4 * i + 4].iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte))
                };
                Some([number(0), number(1), number(2)])
            }
            Some(value) => return Err(format!("{path} has a version of {} bytes", value.len())),
        };
        let allocator = column(&root, "hca");
        let windows = self.integers(&allocator.subspace(&0i64))?.into_iter().map(|(start, count)| {
            let count = count.try_into().map_err(|_| format!("the window {start} of {path} has no count"))?;
            Ok((start, i64::from_le_bytes(count)))
        });
        let windows = windows.collect::<Result<_, String>>()?;
        let marks =
            self.integers(&allocator.subspace(&1i64))?.into_iter().map(|(n, value)| match &value[..] {
                [] => Ok(n),
                _ => Err(format!("the mark {n} of {path} is not empty")),
            });
        let marks = marks.collect::<Result<_, String>>()?;
        Ok(Layer { version, windows, marks, directories: self.below(nodes, &root, path)? })
    }

    fn below(
        &mut self,
        nodes: &[u8],
        node: &Subspace,
        path: &Path,
    ) -> Result<BTreeMap<String, Surveyed>, String> {
        let mut found = BTreeMap::new();
        for (name, prefix) in self.take(node.subspace(&0i64).bytes()) {
            let name: String = unpack(&name).map_err(|e| format!("a name in {path}: {e}"))?;
            let directory = self.directory(nodes, prefix, path.join(&[&name]))?;
            found.insert(name, directory);
        }
        Ok(found)
    }

    fn directory(&mut self, nodes: &[u8], prefix: Vec<u8>, path: Path) -> Result<Surveyed, String> {
        if let Some((_, other, _)) = self.known.iter().find(|(known, ..)| *known == prefix) {
            return Err(format!("{other} and {path} have the same prefix, \"{}\"", prefix.escape_ascii()));
        }
        let node = node(nodes, &prefix);
        let Some(tag) = self.rows.remove(column(&node, "layer").bytes()) else {
            return Err(format!("the node of {path} has no layer tag"));
        };
        let is_partition = tag == PARTITION;
        self.known.push((prefix.clone(), path.clone(), is_partition));
        let below = self.below(nodes, &node, &path)?;
        let partition = match is_partition {
            true => Some(self.layer(&[&prefix[..], b"\xfe"].concat(), &path)?),
            false => None,
        };
        let content = if is_partition { Rows::new() } else { self.take(&prefix) };
        Ok(Surveyed { prefix, tag, content, below, partition })
    }
}

/// The subspace of the node of the directory with this prefix, whose nodes are stored below `nodes`.
pub fn node(nodes: &[u8], prefix: &[u8]) -> Subspace {
    Subspace::from_bytes(nodes).subspace(&TupleBytes::from(prefix))
}

fn column(node: &Subspace, name: &str) -> Subspace {
    node.subspace(&TupleBytes::from(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory `a` with the prefix 15 01 that contains one key.
    fn rows() -> Rows {
        let root = node(b"\xfe", b"\xfe");
        Rows::from([
            (root.subspace(&0i64).pack(&"a"), b"\x15\x01".to_vec()),
            (column(&node(b"\xfe", b"\x15\x01"), "layer").into_bytes(), b"t".to_vec()),
            (b"\x15\x01k".to_vec(), b"v".to_vec()),
            (column(&root, "version").into_bytes(), vec![1, 0, 0, 0, 2, 1, 0, 0, 3, 0, 0, 0]),
        ])
    }

    #[test]
    fn rows_become_directories() {
        let layer = survey(rows(), b"\xfe").unwrap();
        assert_eq!(layer.version, Some([1, 258, 3]));
        let a = &layer.directories["a"];
        assert_eq!((&a.tag[..], &a.content[&b"k"[..]][..]), (&b"t"[..], &b"v"[..]));
    }

    #[test]
    fn rows_without_a_place_are_refused() {
        let root = node(b"\xfe", b"\xfe");
        let with = |key: &[u8], value: &[u8]| {
            let mut rows = rows();
            rows.insert(key.to_vec(), value.to_vec());
            survey(rows, b"\xfe").unwrap_err()
        };
        assert!(with(b"\x15\x02", b"").contains("belongs to no directory"));
        let orphan = column(&node(b"\xfe", b"\x15\x02"), "layer").into_bytes();
        assert!(with(&orphan, b"").contains("belongs to no directory"));
        let twin = root.subspace(&0i64).pack(&"b");
        assert!(with(&twin, b"\x15\x01").contains("have the same prefix"));
        assert!(with(&twin, b"\x15\x02").contains("no layer tag"));
        let mut nested = rows();
        nested.insert(twin, b"\x15\x01\x02".to_vec());
        nested.insert(column(&node(b"\xfe", b"\x15\x01\x02"), "layer").into_bytes(), Vec::new());
        assert!(survey(nested, b"\xfe").unwrap_err().contains("begins with"));
    }
}
