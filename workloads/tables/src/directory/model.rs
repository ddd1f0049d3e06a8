//! The sequential model: the directories as a tree.

use super::{
    Names, Opened, Place, Row,
    prefixes::{Given, Wish},
};
use foundationdb_tuple::unpack;
use shaketable::{prelude::*, specimen::Content};
use shaketable_fidelity::survey::{Layer, Surveyed};
use shaketable_layers::directory::{CandidateSeed, Error, PARTITION, Path, VERSION};
use std::collections::BTreeMap;

/// The directories, and where they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(super) place: Place,
    pub(super) root: Known,
}

impl Model {
    pub(super) fn new(place: Place) -> Model {
        Model { place, root: Known::default() }
    }

    /// Creates a directory, or opens it if that is allowed.
    fn make(
        &mut self,
        names: &[String],
        (tag, prefix, opens): (&[u8], Option<&[u8]>, bool),
        at: &At,
    ) -> Result<Opened, Error> {
        let wish = Wish { tag, prefix, opens, place: &self.place, refusal: at.refusal };
        self.root.create(names, wish).map(Known::opened)
    }

    pub(super) fn create(
        &mut self,
        names: &[String],
        tag: &[u8],
        _: CandidateSeed,
        at: &At,
    ) -> Result<Opened, Error> {
        self.make(names, (tag, None, false), at)
    }

    pub(super) fn create_with_prefix(
        &mut self,
        names: &[String],
        tag: &[u8],
        prefix: &[u8],
        _: CandidateSeed,
        at: &At,
    ) -> Result<Opened, Error> {
        self.make(names, (tag, Some(prefix), false), at)
    }

    pub(super) fn create_or_open(
        &mut self,
        names: &[String],
        tag: &[u8],
        _: CandidateSeed,
        at: &At,
    ) -> Result<Opened, Error> {
        self.make(names, (tag, None, true), at)
    }

    pub(super) fn both(&mut self, paths: [Names; 2], _: [CandidateSeed; 2], at: &At) -> Result<(), Error> {
        paths.iter().try_for_each(|names| self.make(names, (b"", None, true), at).map(drop))
    }

    pub(super) fn open(&self, names: &[String], tag: &[u8]) -> Result<Opened, Error> {
        self.root.open(names, tag).map(Known::opened)
    }

    pub(super) fn rename(&mut self, (from, to): (Names, Names)) -> Result<(), Error> {
        self.root.rename(0, &from, &to, &self.place)
    }

    pub(super) fn remove(&mut self, names: &[String]) -> Result<(), Error> {
        match self.remove_if_exists(names)? {
            true => Ok(()),
            false => Err(Error::NotFound(Path::from(names))),
        }
    }

    pub(super) fn remove_if_exists(&mut self, names: &[String]) -> Result<bool, Error> {
        self.root.remove(0, names)
    }

    pub(super) fn list(&self, names: &[String]) -> Result<Names, Error> {
        self.root.list(names)
    }

    pub(super) fn pages(&self, names: &[String], after: Option<String>, _: usize) -> Result<Names, Error> {
        let mut found = self.list(names)?;
        found.retain(|name| after.as_ref().is_none_or(|after| name > after));
        Ok(found)
    }

    pub(super) fn exists(&self, names: &[String]) -> Result<bool, Error> {
        self.root.exists(names)
    }

    pub(super) fn put(&mut self, names: &[String], (key, byte, length): Row) -> Result<(), Error> {
        self.root.keeper(names)?.content.insert(key, Content::of(byte, length));
        Ok(())
    }

    pub(super) fn put_later(&mut self, names: &[String], row: Row) -> Result<(), Error> {
        self.put(names, row)
    }

    pub(super) fn read(&mut self, names: &[String]) -> Result<Vec<(u8, Content)>, Error> {
        Ok(self.root.keeper(names)?.content.clone().into_iter().collect())
    }

    pub(super) fn allocate(&self, _: CandidateSeed) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    pub(super) fn declare(&mut self, version: [u32; 3]) -> Result<(), Error> {
        self.root.version = Some(version);
        Ok(())
    }

    /// Opens a directory. Returns where the layer begins that its handle uses: that of its own partition, and
    /// none above it.
    fn handle(&self, names: &[String]) -> Result<usize, Error> {
        self.open(names, b"").map(|_| self.root.partition_of(names))
    }

    pub(super) fn rename_by_handle(&mut self, (from, to): (Names, Names)) -> Result<(), Error> {
        self.root.rename(self.handle(&from)?, &from, &to, &self.place)
    }

    pub(super) fn remove_by_handle(&mut self, names: &[String]) -> Result<(), Error> {
        self.remove_if_exists_by_handle(names).map(drop)
    }

    pub(super) fn remove_if_exists_by_handle(&mut self, names: &[String]) -> Result<bool, Error> {
        self.root.remove(self.handle(names)?, names)
    }

    pub(super) fn list_by_handle(&self, names: &[String]) -> Result<Names, Error> {
        self.handle(names)?;
        self.list(names)
    }

    pub(super) fn exists_by_handle(&self, names: &[String]) -> Result<bool, Error> {
        self.handle(names).map(|_| true)
    }

    pub(super) fn replace_by_handle(
        &mut self,
        names: &[String],
        tag: &[u8],
        chance: CandidateSeed,
        at: &At,
    ) -> Result<Opened, Error> {
        self.remove_by_handle(names)?;
        self.create(names, tag, chance, at)
    }

    pub(super) fn reopen_by_handle(&self, names: &[String]) -> Result<Opened, Error> {
        self.open(names, b"")
    }
}

/// A directory of the model, or the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// Its layer tag.
    pub tag: Vec<u8>,
    /// Its prefix. The root has none. The prefix of a directory that is being created is known after the
    /// allocator's choice [was evaluated](Known::choose), unless that choice was not allowed.
    pub prefix: Option<Vec<u8>>,
    /// The rows that were stored in it.
    pub content: BTreeMap<u8, Content>,
    /// The directories below it.
    pub below: BTreeMap<String, Known>,
    /// The version of the layer that begins here: the root's, or a partition's.
    pub version: Option<[u32; 3]>,
    /// The prefixes that the allocator of that layer has given.
    pub(super) given: Given,
}

/// What a call does at a path.
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
    /// What opening it returns.
    fn opened(&self) -> Opened {
        (self.tag.clone(), self.prefix.clone())
    }

    pub(super) fn is_partition(&self) -> bool {
        self.tag == PARTITION
    }

    /// The directory at a path that is known to exist.
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

    /// The depth at which the layer begins that contains the end of a path, how far the path leads there, and
    /// the depths of the layers on the way.
    fn follow(&self, path: &[String], aim: Aim, enters: bool) -> Result<(usize, usize, Vec<usize>), Error> {
        self.follow_from(0, path, aim, enters)
    }

    /// The same as [`follow`](Known::follow), starting at the layer that begins at this depth of the path:
    /// the layers above it are not checked.
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

    /// Writes the version into those of these layers that have none.
    fn stamp(&mut self, path: &[String], layers: &[usize]) {
        for from in layers {
            self.at(&path[..*from]).version.get_or_insert(VERSION);
        }
    }

    /// Opens a directory.
    pub(super) fn open(&self, path: &[String], tag: &[u8]) -> Result<&Known, Error> {
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

    /// The directory at this path, to store a row in it.
    pub(super) fn keeper(&mut self, path: &[String]) -> Result<&mut Known, Error> {
        if self.open(path, b"")?.is_partition() {
            return Err(Error::Partition(Path::from(path)));
        }
        Ok(self.at(path))
    }

    /// Creates a directory.
    pub(super) fn create(&mut self, path: &[String], wish: Wish<'_>) -> Result<&Known, Error> {
        let here = || Path::from(path);
        if wish.prefix.is_some() && !wish.place.manual {
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
            let nodes = &wish.place.nodes[..];
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
            self.make(&path[..end], end == path.len(), &wish)?;
        }
        Ok(self.at(path))
    }

    /// Creates the directory that is missing at the end of a path.
    fn make(&mut self, path: &[String], last: bool, wish: &Wish<'_>) -> Result<(), Error> {
        let by_hand = wish.prefix.filter(|_| last);
        let prefix = match by_hand {
            Some(prefix) => {
                // The directories on the way got their prefixes in the same call, after this prefix was found
                // to be free.
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
        wish.fits(path, prefix.as_deref())?;
        let made = self.at(path);
        made.prefix = prefix;
        if last {
            made.tag = wish.tag.to_vec();
        }
        Ok(())
    }

    /// Moves a directory, through the layer that begins at depth `start` of its path.
    pub(super) fn rename(
        &mut self,
        mut start: usize,
        from: &[String],
        to: &[String],
        place: &Place,
    ) -> Result<(), Error> {
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
        place.holds(to)?;
        self.stamp(from, &layers);
        if let Some(moved) = self.at(&from[..old - 1]).below.remove(&from[old - 1]) {
            self.at(&to[..new]).below.insert(to[new].clone(), moved);
        }
        Ok(())
    }

    /// The depth of the partition that contains a directory, or 0. The layer of the directory's handle begins
    /// there.
    pub(super) fn partition_of(&self, path: &[String]) -> usize {
        (1..path.len()).rev().find(|depth| self.partition_at(path, *depth, 0)).unwrap_or(0)
    }

    /// Removes a directory if it exists, through the layer that begins at depth `start` of its path. Returns
    /// whether it existed.
    pub(super) fn remove(&mut self, start: usize, path: &[String]) -> Result<bool, Error> {
        let (_, depth, layers) = self.follow_from(start, path, Aim::Write, false)?;
        self.stamp(path, &layers);
        let existed = depth == path.len();
        if existed {
            self.at(&path[..depth - 1]).below.remove(&path[depth - 1]);
        }
        Ok(existed)
    }

    /// Whether a directory exists.
    pub(super) fn exists(&self, path: &[String]) -> Result<bool, Error> {
        let (_, depth, _) = self.follow(path, Aim::Look, false)?;
        Ok(depth == path.len())
    }

    /// The names below a directory.
    pub(super) fn list(&self, path: &[String]) -> Result<Vec<String>, Error> {
        let (_, depth, _) = self.follow(path, Aim::Look, true)?;
        let found = if depth == path.len() { self.get(path) } else { None };
        let found = found.ok_or_else(|| Error::NotFound(Path::from(path)))?;
        Ok(found.below.keys().cloned().collect())
    }

    /// The model for a survey. `allocated` is the beginning of allocated prefixes, `by_hand` returns whether
    /// a prefix may be a manual one, and `read` decodes a row of a directory.
    pub(super) fn surveyed(
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
                format!(
                    "{name:?} has the prefix \"{}\", which was neither allocated nor given",
                    prefix.escape_ascii()
                )
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
                return Err(format!("{name:?} is a partition and has directories outside of itself"));
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

    #[test]
    fn a_directory_does_not_move_below_itself_nor_out_of_its_partition() {
        let names = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let place = &Place { nodes: vec![0xfe], content: Vec::new(), candidates: 0..1, manual: false };
        let wish = |tag| Wish { tag, prefix: None, opens: false, place, refusal: None };
        let mut root = Known::default();
        root.create(&names(&["p"]), wish(PARTITION)).unwrap();
        root.create(&names(&["p", "d"]), wish(b"")).unwrap();
        root.create(&names(&["a", "b"]), wish(b"")).unwrap();
        let before = root.clone();
        let below = root.rename(0, &names(&["a"]), &names(&["a", "b", "c"]), place).unwrap_err();
        assert!(matches!(below, Error::BelowItself { .. }));
        let across = root.rename(0, &names(&["p", "d"]), &names(&["d"]), place).unwrap_err();
        assert!(matches!(across, Error::BetweenPartitions { .. }));
        assert_eq!(root, before);
        root.rename(0, &names(&["p"]), &names(&["a", "p"]), place).unwrap();
        assert_eq!(root.list(&names(&["a", "p"])), Ok(vec!["d".to_owned()]));
    }
}
