//! Which prefixes an allocator may have chosen.
//!
//! The sequential model leaves the prefix of a new directory open. It then takes the prefix from what the
//! transaction wrote, unless the allocator was not allowed to give it.

use super::{CONTENT, Known};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack};
use shaketable_fidelity::survey::{Rows, node};
use shaketable_layers::directory::{Error, Nodes, Path};
use shaketable_sim::proto::Mutation;
use shaketable_tx::limits;
use std::{collections::BTreeSet, ops::Range};

/// The prefixes that an allocator has given, including those of directories that were removed, because it
/// must not give a prefix twice. The rows do not contain this, so it is not compared.
#[derive(Clone, Debug, Default)]
pub(super) struct Given(BTreeSet<Vec<u8>>);

impl PartialEq for Given {
    fn eq(&self, _: &Given) -> bool {
        true
    }
}

/// The parameters of a create.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    /// The layer tag.
    pub tag: &'a [u8],
    /// The manual prefix.
    pub prefix: Option<&'a [u8]>,
    /// Whether an existing directory is opened.
    pub opens: bool,
    /// Where the directories are stored.
    pub place: &'a Place,
    /// The message with which the call was refused.
    pub refusal: Option<&'a str>,
}

/// Where the directories of the root's layer are stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    /// The key of the nodes.
    pub nodes: Vec<u8>,
    /// The beginning of allocated prefixes.
    pub content: Vec<u8>,
    /// The candidates that its allocator may draw in a run.
    pub candidates: Range<i64>,
    /// Whether manual prefixes are allowed.
    pub manual: bool,
}

impl Wish<'_> {
    pub(super) fn refused(&self, error: Error) -> Result<(), Error> {
        match self.refusal == Some(&error.to_string()[..]) {
            true => Err(error),
            false => Ok(()),
        }
    }

    /// Refuses a name or a tag that is too long. Long names are drawn at the root only, long tags only with a
    /// manual prefix.
    pub(super) fn fits(&self, path: &[String], manual: Option<&[u8]>) -> Result<(), Error> {
        if let Some(prefix) = manual {
            limits::row(&self.place.root().of(prefix).tag(), self.tag)?;
        }
        self.place.holds(path)
    }
}

impl Place {
    fn root(&self) -> Nodes {
        Nodes::new(Subspace::from_bytes(&self.nodes[..]))
    }

    /// Refuses a name of the root that fits into no key.
    pub(super) fn holds(&self, path: &[String]) -> Result<(), Error> {
        match path {
            [name] => Ok(limits::key(&self.root().root().child(name))?),
            _ => Ok(()),
        }
    }
}

impl Known {
    /// Takes the prefixes of new directories from what their transaction wrote, except for prefixes that the
    /// allocator must not give: those given before, and those that clash with a manual prefix. `nodes` is the
    /// key of the root's nodes.
    pub(super) fn choose(&mut self, nodes: &[u8], mutations: &[Mutation]) {
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

    /// The same within the layer of these nodes, below the directory with this prefix.
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
                // Within a partition all prefixes begin with the partition's own, and none is manual.
                true => directory.choose_in_layer(&[&prefix[..], b"\xfe"].concat(), chosen, &|_| true),
                false => directory.choose_below((nodes, &prefix), given, chosen, free),
            }
        }
    }

    /// Whether this directory, or one below it, has this prefix.
    pub(super) fn gave(&self, prefix: &[u8]) -> bool {
        self.prefix.as_deref() == Some(prefix) || self.below.values().any(|directory| directory.gave(prefix))
    }

    /// The allocator of this layer gives a prefix to something else than a directory, whatever prefixes are
    /// there by hand. Returns whether it has not given it before.
    pub(super) fn gives(&mut self, prefix: Vec<u8>) -> bool {
        self.given.0.insert(prefix)
    }

    /// Whether the prefix of this directory, or of one below it, begins with this one, or is the beginning of
    /// it.
    pub(super) fn has(&self, prefix: &[u8]) -> bool {
        let own = self.prefix.as_ref().is_some_and(|own| own.starts_with(prefix) || prefix.starts_with(own));
        own || self.below.values().any(|directory| directory.has(prefix))
    }

    /// Whether the prefix of a directory below is unknown.
    pub(super) fn has_unknown(&self) -> bool {
        self.below.values().any(|directory| directory.prefix.is_none() || directory.has_unknown())
    }

    /// Whether this directory, or one below it, has stored a key with this prefix. Keys in a partition belong
    /// to the directories within it.
    fn keeps(&self, prefix: &[u8]) -> bool {
        let key = |own: &Vec<u8>, key: u8| [own, CONTENT[usize::from(key)]].concat();
        let own = self.prefix.as_ref();
        own.is_some_and(|own| self.content.keys().any(|k| key(own, *k).starts_with(prefix)))
            || self.below.values().any(|directory| directory.keeps(prefix))
    }

    /// Refuses as the layer did, if the allocator may have chosen a prefix that clashes with a manual one.
    pub(super) fn may_clash(&self, path: &[String], wish: &Wish<'_>) -> Result<(), Error> {
        if !wish.refusal.is_some_and(|words| words.contains("allocated for")) {
            return Ok(());
        }
        let chosen = wish
            .place
            .candidates
            .clone()
            .map(|candidate| [&wish.place.content[..], &pack(&candidate)].concat());
        for prefix in chosen.filter(|prefix| self.has(prefix)) {
            let (at, shown) = (|| Path::from(path), Bytes::from(prefix.clone()));
            let holds = self.keeps(&prefix);
            if holds || self.has_nodes(&prefix) {
                wish.refused(Error::PrefixNotEmpty { path: at(), prefix: shown.clone() })?;
            }
            if !holds {
                wish.refused(Error::PrefixClash { path: at(), prefix: shown })?;
            }
        }
        Ok(())
    }

    /// Whether this directory, or one below it, is a partition that has stored directories at this prefix.
    fn has_nodes(&self, prefix: &[u8]) -> bool {
        let own = self.prefix.as_ref().filter(|_| self.is_partition() && self.version.is_some());
        let nodes = own.map(|own| [own, &b"\xfe"[..]].concat());
        nodes.is_some_and(|nodes| nodes.starts_with(prefix) || prefix.starts_with(&nodes))
            || self.below.values().any(|directory| directory.has_nodes(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_layers::directory::PARTITION;

    #[test]
    fn an_allocated_prefix_may_be_where_a_partition_stores_its_directories() {
        // The prefixes of 0 to 255 begin with the partition's own, and its rows begin with that of 254.
        let place = Place { nodes: vec![0xfe], content: b"c".to_vec(), candidates: 0..256, manual: true };
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let refused = |root: &mut Known, candidate: i64| {
            let prefix = Bytes::from([&place.content[..], &pack(&candidate)].concat());
            let words = Error::PrefixNotEmpty { path: Path::from(&path(&["d"])[..]), prefix }.to_string();
            let refusal = Some(&words[..]);
            let wish = Wish { tag: b"", prefix: None, opens: false, place: &place, refusal };
            root.clone().create(&path(&["d"]), wish).is_err()
        };
        let plain = |tag, prefix| Wish { tag, prefix, opens: false, place: &place, refusal: None };
        let mut root = Known::default();
        root.create(&path(&["p"]), plain(PARTITION, Some(b"c\x15"))).expect("a partition");
        assert!(!refused(&mut root, 254), "nothing is stored in it");
        root.create(&path(&["p", "a"]), plain(b"", None)).expect("a directory in it");
        assert!(refused(&mut root, 254) && !refused(&mut root, 253));
    }
}
