//! The state of the database as the judges rebuild it from the log, version by version.

use super::combine;
use crate::proto::Mutation;
use bytes::Bytes;
use shaketable_tx::{KeySelector, MutationType};
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
};

/// The end of the user keys.
const USER_END: &[u8] = b"\xff";

/// All keys and values at one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyspace(pub BTreeMap<Bytes, Bytes>);

/// The keys and values that mutations replaced, newest last.
pub type Undo = Vec<(Bytes, Option<Bytes>)>;

impl Keyspace {
    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Option<&Bytes> {
        self.0.get(key)
    }

    /// Applies a mutation. In the log, versionstamps are already filled in. Versionstamped operations are
    /// ignored here, because a transaction cannot read its own.
    pub fn apply(&mut self, mutation: &Mutation, undo: Option<&mut Undo>) {
        let mut forget = Undo::new();
        let undo = undo.unwrap_or(&mut forget);
        match mutation {
            Mutation::Set(key, value) => self.put(key, Some(value.clone()), undo),
            Mutation::ClearRange(range) => {
                let keys: Vec<Bytes> =
                    self.0.range(range.begin.clone()..range.end.clone()).map(|(k, _)| k.clone()).collect();
                for key in keys {
                    self.put(&key, None, undo);
                }
            }
            Mutation::Atomic(
                _,
                _,
                MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue,
            ) => {}
            Mutation::Atomic(key, operand, op) => {
                let value = combine(*op, self.0.get(key), operand);
                self.put(key, value, undo);
            }
        }
    }

    /// Gives a key a value, or none.
    pub fn put(&mut self, key: &Bytes, value: Option<Bytes>, undo: &mut Undo) {
        let old = match value {
            Some(value) => self.0.insert(key.clone(), value),
            None => self.0.remove(key),
        };
        undo.push((key.clone(), old));
    }

    /// Reverts the mutations that were applied with `undo`.
    pub fn revert(&mut self, undo: &mut Undo) {
        while let Some((key, old)) = undo.pop() {
            match old {
                Some(value) => self.0.insert(key, value),
                None => self.0.remove(&key),
            };
        }
    }

    /// The user key to which a selector resolves: `""` before the first key, and `\xff` after the last one.
    pub fn resolve(&self, selector: &KeySelector) -> Bytes {
        let end = Bytes::from_static(USER_END);
        let base = &selector.key;
        if selector.offset > 0 {
            let from = if selector.or_equal { Excluded(base.clone()) } else { Included(base.clone()) };
            let found = self.0.range((from, Unbounded)).map(|(k, _)| k).nth(selector.offset as usize - 1);
            found.map_or(end.clone(), |key| key.clone().min(end))
        } else {
            let to = if selector.or_equal { Included(base.clone()) } else { Excluded(base.clone()) };
            let back = selector.offset.unsigned_abs() as usize;
            match self.0.range((Unbounded, to)).rev().map(|(k, _)| k).filter(|k| ***k < *USER_END).nth(back) {
                Some(key) => key.clone(),
                None => Bytes::new(),
            }
        }
    }

    /// The rows between two selectors, in descending order if `reverse` is set.
    pub fn range<'a>(
        &'a self,
        begin: &KeySelector,
        end: &KeySelector,
        reverse: bool,
    ) -> Box<dyn Iterator<Item = (&'a Bytes, &'a Bytes)> + 'a> {
        let (begin, end) = (self.resolve(begin), self.resolve(end));
        if begin >= end {
            return Box::new(std::iter::empty());
        }
        let rows = self.0.range(begin..end);
        if reverse { Box::new(rows.rev()) } else { Box::new(rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::KeyRange;

    fn abc() -> Keyspace {
        let mut space = Keyspace::default();
        for key in ["a", "b", "c"] {
            space.apply(&Mutation::Set(key.into(), key.to_uppercase().into()), None);
        }
        space
    }

    #[test]
    fn reverted_mutations_leave_no_trace() {
        let mut space = abc();
        let before = space.clone();
        let mut undo = Undo::new();
        space.apply(&Mutation::ClearRange(KeyRange::new("a", "c")), Some(&mut undo));
        space.apply(&Mutation::Set("a".into(), "x".into()), Some(&mut undo));
        space.apply(&Mutation::Atomic("a".into(), "y".into(), MutationType::AppendIfFits), Some(&mut undo));
        assert_eq!(space.get(b"a").unwrap(), "xy");
        assert_eq!(space.get(b"b"), None);
        space.revert(&mut undo);
        assert_eq!(space, before);
    }

    #[test]
    fn selectors_are_clamped_to_user_keys() {
        let space = abc();
        let resolve = |s: KeySelector| String::from_utf8_lossy(&space.resolve(&s)).into_owned();
        assert_eq!(resolve(KeySelector::first_greater_or_equal("b")), "b");
        assert_eq!(resolve(KeySelector::first_greater_than("b")), "c");
        assert_eq!(resolve(KeySelector::last_less_than("b")), "a");
        assert_eq!(resolve(KeySelector::last_less_or_equal("b")), "b");
        assert_eq!(resolve(KeySelector::last_less_than("a")), "");
        assert_eq!(space.resolve(&KeySelector::new("a", false, 9)), Bytes::from_static(b"\xff"));
        assert_eq!(resolve(KeySelector::new("c", true, -1)), "b");
        let mut space = space;
        for key in [&b"\xff"[..], b"\xff/system"] {
            space.apply(&Mutation::Set(Bytes::from_static(key), "".into()), None);
        }
        assert_eq!(space.resolve(&KeySelector::first_greater_than("c")), Bytes::from_static(b"\xff"));
        assert_eq!(space.resolve(&KeySelector::last_less_than(&b"\xff\xff"[..])), "c");
    }
}
