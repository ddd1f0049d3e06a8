//! Keys and ranges in readable form: decoded as tuples, with `*` for the elements in which otherwise equal
//! keys differ.

use foundationdb_tuple::Element;
use shaketable_sim::proto::KeyRange;
use shaketable_tx::{nesting, show};
use std::collections::BTreeMap;

/// The most different texts, and the most different numbers before further elements, that are names rather
/// than data.
const NAMES: usize = 4;
/// The most different first elements that are names: a layer has few subspaces.
const FIRST_NAMES: usize = 16;
/// The most characters of an element that are shown.
const MOST_CHARACTERS: usize = 24;

/// An element of a decoded key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyElement {
    Text(String),
    Number(i64),
    /// Null, true or false.
    Word(String),
    /// An element of another type, as text.
    Other(String),
    /// Bytes that are no element.
    Bytes(Vec<u8>),
}

impl KeyElement {
    fn of(of: &Element<'_>) -> KeyElement {
        match of {
            Element::String(text) => KeyElement::Text(text.to_string()),
            Element::Int(number) => KeyElement::Number(*number),
            Element::Nil | Element::Bool(_) => KeyElement::Word(show::element(of)),
            other => KeyElement::Other(show::element(other)),
        }
    }

    fn show(&self) -> String {
        let shown = match self {
            KeyElement::Text(text) => format!("{text:?}"),
            KeyElement::Number(number) => number.to_string(),
            KeyElement::Word(text) | KeyElement::Other(text) => text.clone(),
            KeyElement::Bytes(bytes) => show::raw(bytes),
        };
        match shown.chars().count() > MOST_CHARACTERS {
            true => shown.chars().take(MOST_CHARACTERS - 1).chain(['…']).collect(),
            false => shown,
        }
    }

    /// Parts of different classes are never similar.
    fn class(&self, is_last: bool) -> (u8, bool) {
        match self {
            KeyElement::Text(_) => (0, false),
            KeyElement::Number(_) => (1, is_last),
            KeyElement::Word(_) => (2, false),
            KeyElement::Other(_) => (3, false),
            KeyElement::Bytes(_) => (4, false),
        }
    }
}

/// The elements of a packed tuple as far as it has whole ones, and the bytes that remain.
fn parts(key: &[u8]) -> (Vec<KeyElement>, &[u8]) {
    let (mut parts, mut rest) = (Vec::new(), key);
    // The directory layer's nodes are tuples below this byte.
    if let Some(node) = rest.strip_prefix(b"\xfe") {
        parts.push(KeyElement::Word(show::raw(b"\xfe")));
        rest = node;
    }
    while !rest.is_empty() {
        let length = nesting::first_length(rest).unwrap_or(rest.len());
        let Some(first) = rest.get(..length) else { break };
        let Ok(elements) = nesting::unpack::<Vec<Element<'_>>>(first) else { break };
        parts.extend(elements.iter().map(KeyElement::of));
        rest = &rest[length..];
    }
    (parts, rest)
}

/// All parts of a key. What is no tuple is one part.
fn all_parts(key: &[u8]) -> Vec<KeyElement> {
    let (mut parts, rest) = parts(key);
    if !rest.is_empty() {
        parts.push(KeyElement::Bytes(rest.to_vec()));
    }
    parts
}

#[derive(Debug, Default)]
struct Node(BTreeMap<KeyElement, Node>);

/// The keys of a workload, from which names are told from data.
#[derive(Debug, Default)]
pub(super) struct Names(Node);

impl Names {
    /// Adds a key.
    pub(super) fn add(&mut self, key: &[u8]) {
        let mut node = &mut self.0;
        for part in all_parts(key) {
            node = node.0.entry(part).or_default();
        }
    }

    /// Adds the key of a range of a single key.
    pub(super) fn add_range(&mut self, range: &KeyRange) {
        if range.end.strip_suffix(b"\0") == Some(&range.begin) {
            self.add(&range.begin);
        }
    }

    /// A key, a range of a single key, or what all keys of a range have in common.
    pub(super) fn range(&self, range: &KeyRange) -> String {
        if range.end.strip_suffix(b"\0") == Some(&range.begin) {
            return listed(&self.general(&all_parts(&range.begin)), false);
        }
        let common = range.begin.iter().zip(&range.end).take_while(|(a, b)| a == b).count();
        let common = &range.begin[..common];
        // Keys that are no tuples have bytes in common; those of an element that is not whole mean nothing.
        let shared = match parts(common).0 {
            parts if parts.is_empty() => all_parts(common),
            parts => parts,
        };
        listed(&self.general(&shared), true)
    }

    /// The parts of a key, or `*` for what differs between similar keys.
    fn general(&self, parts: &[KeyElement]) -> Vec<String> {
        let mut nodes = vec![&self.0];
        let mut shown = Vec::new();
        for (depth, part) in parts.iter().enumerate() {
            let names = if depth == 0 { FIRST_NAMES } else { NAMES };
            let below = |node: &&'_ Node| node.0.get(part).is_some_and(|below| !below.0.is_empty());
            let class = part.class(!nodes.iter().any(below));
            let mut similar: BTreeMap<&KeyElement, Vec<&Node>> = BTreeMap::new();
            for (other, node) in nodes.iter().flat_map(|node| &node.0) {
                if other.class(node.0.is_empty()) == class {
                    similar.entry(other).or_default().push(node);
                }
            }
            let is_name = match part {
                KeyElement::Word(_) => true,
                KeyElement::Text(_) | KeyElement::Number(_) if class != (1, true) => similar.len() <= names,
                _ => similar.len() <= 1,
            };
            nodes = match is_name {
                true => similar.remove(part).unwrap_or_default(),
                false => similar.into_values().flatten().collect(),
            };
            shown.push(if is_name { part.show() } else { "*".to_owned() });
        }
        shown
    }
}

fn listed(parts: &[String], is_range: bool) -> String {
    match parts {
        [] if is_range => "all keys".to_owned(),
        [one] if !is_range => format!("({one},)"),
        many => format!("({}{})", many.join(", "), if is_range { ", .." } else { "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Versionstamp, pack};
    use shaketable_tx::key_after;

    fn single(key: &[u8]) -> KeyRange {
        KeyRange::new(key.to_vec(), key_after(key))
    }

    fn shown(keys: &[Vec<u8>], key: &[u8]) -> String {
        let mut names = Names::default();
        keys.iter().for_each(|key| names.add(key));
        names.range(&single(key))
    }

    #[test]
    fn data_is_told_from_names() {
        let items: Vec<_> = (0..9).map(|n| pack(&("queue", n, vec![n as u8; 2]))).collect();
        assert_eq!(shown(&items, &items[3]), r#"("queue", *, *)"#);
        let tags: Vec<_> = (0..3).flat_map(|tag| (0..5).map(move |n| pack(&("q", tag, n)))).collect();
        assert_eq!(shown(&tags, &tags[7]), r#"("q", 1, *)"#);
        let stamp = |n| Versionstamp::complete([0, 0, 0, 0, 0, 0, 0, 0, 0, n], 0);
        let log = [pack(&("log", 0, stamp(1))), pack(&("log", 0, stamp(2))), pack(&("log", 1))];
        assert_eq!(shown(&log, &log[1]), r#"("log", 0, *)"#);
        assert_eq!(shown(&log, &log[2]), r#"("log", 1)"#);
        let index =
            [pack(&("t", "records", 1)), pack(&("t", "records", 2)), pack(&("t", "index", "city", 7, 1))];
        assert_eq!(shown(&index, &index[0]), r#"("t", "records", *)"#);
        assert_eq!(shown(&index, &index[2]), r#"("t", "index", "city", 7, 1)"#);
        assert_eq!(shown(&[pack(&("counter",))], &pack(&("counter",))), r#"("counter",)"#);
    }

    #[test]
    fn keys_that_are_no_tuples_are_bytes() {
        assert_eq!(shown(&[b"k".to_vec()], b"k"), r#"("k",)"#);
        let node = [b"\xfe".to_vec(), pack(&("node",))].concat();
        assert_eq!(shown(std::slice::from_ref(&node), &node), r#"("\xfe", "node")"#);
    }

    #[test]
    fn a_range_is_what_its_keys_have_in_common() {
        let mut names = Names::default();
        (0..9).for_each(|n| names.add(&pack(&("queue", n, "a"))));
        let range = |begin: &[u8], end: &[u8]| names.range(&KeyRange::new(begin.to_vec(), end.to_vec()));
        let queue = pack(&("queue",));
        assert_eq!(range(&[&queue[..], b"\0"].concat(), &[&queue[..], b"\xff"].concat()), r#"("queue", ..)"#);
        assert_eq!(range(&pack(&("queue", 2)), &pack(&("queue", 4))), r#"("queue", ..)"#);
        let item = pack(&("queue", 2));
        assert_eq!(range(&item, &[&item[..], b"\xff"].concat()), r#"("queue", *, ..)"#);
        assert_eq!(range(b"", b"\xff"), "all keys");
    }
}
