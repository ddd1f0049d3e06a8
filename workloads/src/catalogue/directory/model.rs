//! Directories as a tree: what the layer should hold, and what the rows of a database say it holds.
//!
//! [`Known`] is the sequential model. [`survey`] reads the raw rows without the layer's help, by the key
//! schema alone, and accepts nothing that has no place in it: neither a node that no path leads to, nor
//! two prefixes of which one begins the other, nor a key that is no directory's.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable::specimen::Content;
use shaketable_layers::directory::{Error, PARTITION, Path, VERSION};
use shaketable_sim::proto::Mutation;
use std::collections::{BTreeMap, BTreeSet};

/// Rows by key.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// One directory layer as its rows have it: the root's, or a partition's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The stored version.
    pub version: Option<[u32; 3]>,
    /// The allocator's windows, and how often each was drawn from.
    pub windows: BTreeMap<i64, i64>,
    /// The candidates that are marked.
    pub marks: BTreeSet<i64>,
    /// The directories, by name.
    pub directories: BTreeMap<String, Surveyed>,
}

/// A directory as its rows have it.
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

/// Reads rows as the directories whose nodes lie below `nodes`.
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
            return Err(format!("the prefix \"{prefix}\" of {other} begins with \"{begin}\", {path}'s"));
        }
    }
    match surveyor.rows.first_key_value() {
        None => Ok(layer),
        Some((key, _)) => Err(format!("the key \"{}\" is no directory's", key.escape_ascii())),
    }
}

/// Takes rows away as it finds their place.
struct Surveyor {
    rows: Rows,
    /// Each prefix, whose it is, and whether that is a partition.
    known: Vec<(Vec<u8>, Path, bool)>,
}

fn node(nodes: &[u8], prefix: &[u8]) -> Subspace {
    Subspace::from_bytes(nodes).subspace(&TupleBytes::from(prefix))
}

fn column(node: &Subspace, name: &str) -> Subspace {
    node.subspace(&TupleBytes::from(name.as_bytes()))
}

impl Surveyor {
    /// All rows whose keys begin so, by the rest of the key.
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
            return Err(format!("{other} and {path} have one prefix, \"{}\"", prefix.escape_ascii()));
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

/// A directory as the model knows it; also the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Its layer tag.
    pub tag: Vec<u8>,
    /// Its prefix. The root has none. That of a directory which is being created is known once the allocator's
    /// choice [is](Known::choose), unless it was against the rules.
    pub prefix: Option<Vec<u8>>,
    /// What was put into it.
    pub content: BTreeMap<u8, Content>,
    /// The directories below it.
    pub below: BTreeMap<String, Known>,
    /// The version of the layer that begins here: the root's, or a partition's.
    pub version: Option<[u32; 3]>,
    /// What the allocator of that layer has given.
    given: Given,
}

/// The prefixes that an allocator has given, also to directories that were removed: it gives none twice. Rows do
/// not say this, so that it is no part of a comparison.
#[derive(Clone, Debug, Default)]
struct Given(BTreeSet<Vec<u8>>);

impl PartialEq for Given {
    fn eq(&self, _: &Given) -> bool {
        true
    }
}

/// What a create has to go by.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The tag.
    pub tag: &'a [u8],
    /// The prefix, by hand.
    pub prefix: Option<&'a [u8]>,
    /// Whether a directory that is there will do.
    pub opens: bool,
    /// Whether prefixes by hand are allowed.
    pub manual: bool,
    /// Where the directories lie.
    pub place: Place<'a>,
    /// The words in which it was refused.
    pub refusal: Option<&'a str>,
}

/// Where the directories of the root's layer lie.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The key of the nodes.
    pub nodes: &'a [u8],
    /// What allocated prefixes begin with.
    pub content: &'a [u8],
}

/// One more than any candidate that an allocator draws in a run: those of its first windows.
const CANDIDATES: i64 = 1_400;

impl Wish<'_> {
    fn refused(&self, error: Error) -> Result<(), Error> {
        match self.refusal == Some(&error.to_string()[..]) {
            true => Err(error),
            false => Ok(()),
        }
    }
}

/// How a call goes about a path.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    Look,
    Write,
}

fn version(place: &Known, path: &[String], aim: Aim) -> Result<(), Error> {
    let path = Path::from(path);
    match place.version {
        Some(version) if version[0] > VERSION[0] => Err(Error::TooNew { path, version }),
        Some(version) if version[1] > VERSION[1] && aim == Aim::Write => {
            Err(Error::ReadOnly { path, version })
        }
        _ => Ok(()),
    }
}

impl Known {
    fn is_partition(&self) -> bool {
        self.tag == PARTITION
    }

    /// The directory at a path that is known to be there.
    fn at(&mut self, path: &[String]) -> &mut Known {
        path.iter().fold(self, |directory, name| directory.below.entry(name.clone()).or_default())
    }

    fn get(&self, path: &[String]) -> Option<&Known> {
        path.iter().try_fold(self, |directory, name| directory.below.get(name))
    }

    /// How far a path leads from a layer's root at depth `from`, up to the next partition.
    fn reach(&self, path: &[String], from: usize) -> usize {
        let mut depth = from;
        while depth < path.len()
            && (depth == from || !self.get(&path[..depth]).is_some_and(Known::is_partition))
        {
            if self.get(&path[..depth + 1]).is_none() {
                break;
            }
            depth += 1;
        }
        depth
    }

    fn partition_at(&self, path: &[String], depth: usize, from: usize) -> bool {
        depth > from && self.get(&path[..depth]).is_some_and(Known::is_partition)
    }

    /// Where the layer begins in which a path ends, how far the path leads there, and the layers on the way.
    fn follow(&self, path: &[String], aim: Aim, enters: bool) -> Result<(usize, usize, Vec<usize>), Error> {
        self.follow_from(0, path, aim, enters)
    }

    /// [`follow`](Known::follow) through the layer that begins at this depth of the path: those above it are not
    /// asked.
    fn follow_from(
        &self,
        mut from: usize,
        path: &[String],
        aim: Aim,
        enters: bool,
    ) -> Result<(usize, usize, Vec<usize>), Error> {
        let mut layers = Vec::new();
        loop {
            let place = self.get(&path[..from]).unwrap_or(self);
            version(place, &path[..from], aim)?;
            layers.push(from);
            if aim == Aim::Write && path.len() == from {
                return Err(Error::Root("removed"));
            }
            let depth = self.reach(path, from);
            if !self.partition_at(path, depth, from) || depth == path.len() && !enters {
                return Ok((from, depth, layers));
            }
            from = depth;
        }
    }

    /// Writes the version where there is none.
    fn stamp(&mut self, path: &[String], layers: &[usize]) {
        for from in layers {
            self.at(&path[..*from]).version.get_or_insert(VERSION);
        }
    }

    /// Opens a directory.
    pub fn open(&self, path: &[String], tag: &[u8]) -> Result<&Known, Error> {
        let (_, depth, _) = self.follow(path, Aim::Look, false)?;
        if path.is_empty() {
            return Err(Error::Root("opened"));
        }
        let found = if depth == path.len() { self.get(path) } else { None };
        let found = found.ok_or_else(|| Error::NotFound(Path::from(path)))?;
        match tag.is_empty() || found.tag == tag {
            true => Ok(found),
            false => Err(Error::WrongTag {
                path: Path::from(path),
                asked: tag.to_vec().into(),
                found: found.tag.clone().into(),
            }),
        }
    }

    /// The directory there to put something into.
    pub fn keeper(&mut self, path: &[String]) -> Result<&mut Known, Error> {
        if self.open(path, b"")?.is_partition() {
            return Err(Error::Partition(Path::from(path)));
        }
        Ok(self.at(path))
    }

    /// Creates a directory.
    pub fn create(&mut self, path: &[String], wish: Wish<'_>) -> Result<&Known, Error> {
        let here = || Path::from(path);
        if wish.prefix.is_some() && !wish.manual {
            version(self, &[], Aim::Look)?;
            return Err(Error::ManualPrefix(here()));
        }
        let (from, depth, layers) = self.follow(path, Aim::Look, false)?;
        if wish.prefix.is_some() && from > 0 {
            return Err(Error::PrefixInPartition(here()));
        }
        if path.is_empty() {
            return Err(Error::Root("opened"));
        }
        if depth == path.len() {
            return match wish.opens {
                true => self.open(path, wish.tag),
                false => Err(Error::AlreadyExists(here())),
            };
        }
        version(self.get(&path[..from]).unwrap_or(self), &path[..from], Aim::Write)?;
        if let Some(prefix) = wish.prefix {
            let in_use = Error::PrefixInUse { path: here(), prefix: prefix.to_vec().into() };
            let nodes = wish.place.nodes;
            let reserved =
                prefix.starts_with(nodes) || nodes.starts_with(prefix) || prefix.first() == Some(&0xff);
            if reserved || self.has(prefix) {
                return Err(in_use);
            }
            if self.has_unknown() {
                wish.refused(in_use)?;
            }
        }
        self.stamp(path, &layers[layers.len() - 1..]);
        for end in depth + 1..=path.len() {
            self.make(&path[..end], end == path.len(), wish)?;
        }
        Ok(self.at(path))
    }

    /// Makes the directory that is missing at the end of a path.
    fn make(&mut self, path: &[String], last: bool, wish: Wish<'_>) -> Result<(), Error> {
        let by_hand = wish.prefix.filter(|_| last);
        let prefix = match by_hand {
            Some(prefix) => {
                // Those on the way have got theirs in the same call, after this one was seen to be free.
                let clash = Error::PrefixClash { path: Path::from(path), prefix: prefix.to_vec().into() };
                if self.has(prefix) {
                    return Err(clash);
                }
                if self.has_unknown() {
                    wish.refused(clash)?;
                }
                Some(prefix.to_vec())
            }
            None => {
                self.may_clash(path, wish)?;
                None
            }
        };
        let made = self.at(path);
        made.prefix = prefix;
        if last {
            made.tag = wish.tag.to_vec();
        }
        Ok(())
    }

    /// Takes the prefixes of new directories from what their transaction wrote, and leaves out those that the
    /// allocator must not give: one given before, or one that clashes with a prefix by hand. `nodes` is the key
    /// of the root's nodes.
    pub fn choose(&mut self, nodes: &[u8], mutations: &[Mutation]) {
        if self.has_unknown() {
            let chosen = mutations.iter().filter_map(|mutation| match mutation {
                Mutation::Set(key, prefix) => Some((key.to_vec(), prefix.to_vec())),
                _ => None,
            });
            let taken = self.clone();
            self.choose_in_layer(nodes, &chosen.collect(), &|prefix| !taken.has(prefix));
        }
    }

    fn choose_in_layer(&mut self, nodes: &[u8], chosen: &Rows, free: &dyn Fn(&[u8]) -> bool) {
        let mut given = std::mem::take(&mut self.given);
        self.choose_below((nodes, nodes), &mut given, chosen, free);
        self.given = given;
    }

    /// Within the layer of these nodes, below the directory of this prefix.
    fn choose_below(
        &mut self,
        (nodes, parent): (&[u8], &[u8]),
        given: &mut Given,
        chosen: &Rows,
        free: &dyn Fn(&[u8]) -> bool,
    ) {
        for (name, directory) in &mut self.below {
            if directory.prefix.is_none() {
                let prefix = chosen.get(&node(nodes, parent).subspace(&0i64).pack(name));
                let prefix = prefix.filter(|prefix| free(prefix) && given.0.insert(prefix.to_vec()));
                directory.prefix = prefix.cloned();
            }
            let Some(prefix) = directory.prefix.clone() else { continue };
            match directory.is_partition() {
                // Within a partition all prefixes begin with its own, and none is given by hand.
                true => directory.choose_in_layer(&[&prefix[..], b"\xfe"].concat(), chosen, &|_| true),
                false => directory.choose_below((nodes, &prefix), given, chosen, free),
            }
        }
    }

    /// Whether a directory from here on has this very prefix.
    pub fn gave(&self, prefix: &[u8]) -> bool {
        self.prefix.as_deref() == Some(prefix) || self.below.values().any(|directory| directory.gave(prefix))
    }

    /// Whether the prefix of a directory from here on begins so, or begins this one.
    fn has(&self, prefix: &[u8]) -> bool {
        let own = self.prefix.as_ref().is_some_and(|own| own.starts_with(prefix) || prefix.starts_with(own));
        own || self.below.values().any(|directory| directory.has(prefix))
    }

    /// Whether a directory below has a prefix that is not known.
    fn has_unknown(&self) -> bool {
        self.below.values().any(|directory| directory.prefix.is_none() || directory.has_unknown())
    }

    /// Whether a directory from here on has put a key below this prefix. Those of a partition are not counted: they
    /// are the directories' within it.
    fn keeps(&self, prefix: &[u8]) -> bool {
        let key = |own: &Vec<u8>, key: u8| [&own[..], &pack(&i64::from(key))].concat();
        let own = self.prefix.as_ref();
        own.is_some_and(|own| self.content.keys().any(|k| key(own, *k).starts_with(prefix)))
            || self.below.values().any(|directory| directory.keeps(prefix))
    }

    /// Refuses as the layer did, if the allocator can have chosen a prefix that clashes with a manual one.
    fn may_clash(&self, path: &[String], wish: Wish<'_>) -> Result<(), Error> {
        if !wish.refusal.is_some_and(|words| words.contains("allocated for")) {
            return Ok(());
        }
        let chosen = (0..CANDIDATES).map(|candidate| [wish.place.content, &pack(&candidate)].concat());
        for prefix in chosen.filter(|prefix| self.has(prefix)) {
            let (at, shown) = (|| Path::from(path), Bytes::from(prefix.clone()));
            let holds = self.keeps(&prefix);
            if holds || self.has_partition(&prefix) {
                wish.refused(Error::PrefixNotEmpty { path: at(), prefix: shown.clone() })?;
            }
            if !holds {
                wish.refused(Error::PrefixClash { path: at(), prefix: shown })?;
            }
        }
        Ok(())
    }

    /// Whether a partition from here on has a prefix that begins so.
    fn has_partition(&self, prefix: &[u8]) -> bool {
        let own = self.is_partition() && self.prefix.as_ref().is_some_and(|own| own.starts_with(prefix));
        own || self.below.values().any(|directory| directory.has_partition(prefix))
    }

    /// Moves a directory, through the layer that begins at depth `start` of its path.
    pub fn rename(&mut self, mut start: usize, from: &[String], to: &[String]) -> Result<(), Error> {
        let (source, destination) = (Path::from(from), Path::from(to));
        if !to.starts_with(&from[..start]) {
            return Err(Error::BetweenPartitions { from: source, to: destination });
        }
        let mut layers = Vec::new();
        let (old, new) = loop {
            version(self.get(&from[..start]).unwrap_or(self), &from[..start], Aim::Write)?;
            layers.push(start);
            if to.starts_with(from) {
                return Err(Error::BelowItself { from: source, to: destination });
            }
            let (old, new) = (self.reach(from, start), self.reach(to, start));
            let leaves =
                |path: &[String], depth: usize| depth < path.len() && self.partition_at(path, depth, start);
            match (leaves(from, old), leaves(to, new)) {
                (false, _) if old < from.len() => return Err(Error::NotFound(source)),
                (false, false) => break (old, new),
                (true, true) if from[..old] == to[..new] => start = old,
                _ => return Err(Error::BetweenPartitions { from: source, to: destination }),
            }
        };
        if new == to.len() {
            return Err(Error::AlreadyExists(destination));
        }
        if new + 1 < to.len() {
            return Err(Error::NoParent(destination));
        }
        self.stamp(from, &layers);
        if let Some(moved) = self.at(&from[..old - 1]).below.remove(&from[old - 1]) {
            self.at(&to[..new]).below.insert(to[new].clone(), moved);
        }
        Ok(())
    }

    /// The depth of the partition in which a directory is; 0 for none. The layer of its handle begins there.
    pub fn partition_of(&self, path: &[String]) -> usize {
        (1..path.len()).rev().find(|depth| self.partition_at(path, *depth, 0)).unwrap_or(0)
    }

    /// Removes a directory if it is there, through the layer that begins at depth `start` of its path, and says
    /// whether it was.
    pub fn remove(&mut self, start: usize, path: &[String]) -> Result<bool, Error> {
        let (_, depth, layers) = self.follow_from(start, path, Aim::Write, false)?;
        self.stamp(path, &layers);
        let existed = depth == path.len();
        if existed {
            self.at(&path[..depth - 1]).below.remove(&path[depth - 1]);
        }
        Ok(existed)
    }

    /// Whether there is a directory.
    pub fn exists(&self, path: &[String]) -> Result<bool, Error> {
        let (_, depth, _) = self.follow(path, Aim::Look, false)?;
        Ok(depth == path.len())
    }

    /// The names below a directory.
    pub fn list(&self, path: &[String]) -> Result<Vec<String>, Error> {
        let (_, depth, _) = self.follow(path, Aim::Look, true)?;
        let found = if depth == path.len() { self.get(path) } else { None };
        let found = found.ok_or_else(|| Error::NotFound(Path::from(path)))?;
        Ok(found.below.keys().cloned().collect())
    }

    /// The model that a survey amounts to. `allocated` is what allocated prefixes begin with, `by_hand` says
    /// which may have been given by hand, and `read` makes sense of a directory's row.
    pub fn surveyed(
        layer: &Layer,
        allocated: &[u8],
        by_hand: &dyn Fn(&[u8]) -> bool,
        read: &impl Fn(&[u8], &[u8]) -> Option<(u8, Content)>,
    ) -> Result<Known, String> {
        Ok(Known {
            version: layer.version,
            below: all(&layer.directories, layer, allocated, by_hand, read)?,
            ..Known::default()
        })
    }
}

fn all(
    directories: &BTreeMap<String, Surveyed>,
    layer: &Layer,
    allocated: &[u8],
    by_hand: &dyn Fn(&[u8]) -> bool,
    read: &impl Fn(&[u8], &[u8]) -> Option<(u8, Content)>,
) -> Result<BTreeMap<String, Known>, String> {
    let mut known = BTreeMap::new();
    for (name, directory) in directories {
        let prefix = &directory.prefix;
        if !by_hand(prefix) {
            let candidate = prefix.strip_prefix(allocated).and_then(|rest| unpack::<i64>(rest).ok());
            let candidate = candidate.ok_or_else(|| {
                format!("{name:?} has the prefix \"{}\", which nobody gave it", prefix.escape_ascii())
            })?;
            let window = layer.windows.keys().next_back().copied().unwrap_or(0);
            if candidate >= window && !layer.marks.contains(&candidate) {
                return Err(format!("{name:?} has the candidate {candidate}, which is not marked"));
            }
        }
        let rows = directory.content.iter().map(|(key, value)| {
            read(key, value).ok_or_else(|| format!("{name:?} holds \"{}\"", key.escape_ascii()))
        });
        let content = rows.collect::<Result<_, String>>()?;
        let mut this = Known {
            tag: directory.tag.clone(),
            prefix: Some(prefix.clone()),
            content,
            below: all(&directory.below, layer, allocated, by_hand, read)?,
            ..Known::default()
        };
        if let Some(within) = &directory.partition {
            let inner = Known::surveyed(within, prefix, &|_| false, read)?;
            if !this.below.is_empty() {
                return Err(format!("{name:?} is a partition and has directories outside of it"));
            }
            (this.below, this.version) = (inner.below, inner.version);
        }
        known.insert(name.clone(), this);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory `a` with the prefix 15 01 that holds one key.
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
    fn what_has_no_place_is_told() {
        let root = node(b"\xfe", b"\xfe");
        let with = |key: &[u8], value: &[u8]| {
            let mut rows = rows();
            rows.insert(key.to_vec(), value.to_vec());
            survey(rows, b"\xfe").unwrap_err()
        };
        assert!(with(b"\x15\x02", b"").contains("is no directory's"));
        let orphan = column(&node(b"\xfe", b"\x15\x02"), "layer").into_bytes();
        assert!(with(&orphan, b"").contains("is no directory's"));
        let twin = root.subspace(&0i64).pack(&"b");
        assert!(with(&twin, b"\x15\x01").contains("have one prefix"));
        assert!(with(&twin, b"\x15\x02").contains("no layer tag"));
        let mut nested = rows();
        nested.insert(twin, b"\x15\x01\x02".to_vec());
        nested.insert(column(&node(b"\xfe", b"\x15\x01\x02"), "layer").into_bytes(), Vec::new());
        assert!(survey(nested, b"\xfe").unwrap_err().contains("begins with"));
    }

    #[test]
    fn a_directory_does_not_move_below_itself_nor_out_of_its_partition() {
        let names = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let place = Place { nodes: b"\xfe", content: b"" };
        let wish = |tag| Wish { tag, prefix: None, opens: false, manual: false, place, refusal: None };
        let mut root = Known::default();
        root.create(&names(&["p"]), wish(PARTITION)).unwrap();
        root.create(&names(&["p", "d"]), wish(b"")).unwrap();
        root.create(&names(&["a", "b"]), wish(b"")).unwrap();
        let before = root.clone();
        let below = root.rename(0, &names(&["a"]), &names(&["a", "b", "c"])).unwrap_err();
        assert!(matches!(below, Error::BelowItself { .. }));
        let across = root.rename(0, &names(&["p", "d"]), &names(&["d"])).unwrap_err();
        assert!(matches!(across, Error::BetweenPartitions { .. }));
        assert_eq!(root, before);
        root.rename(0, &names(&["p"]), &names(&["a", "p"])).unwrap();
        assert_eq!(root.list(&names(&["a", "p"])), Ok(vec!["d".to_owned()]));
    }
}
