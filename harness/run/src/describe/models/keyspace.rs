//! An ordered map, and one FoundationDB transaction over it: the model of the `api` workload.
//!
//! It is written from the documentation of the API and not from the simulated client, so that errors of the
//! client show as differences. A [`View`] returns what a transaction reads that sees `base` and its own
//! writes; [`apply`] makes its writes permanent with its versionstamp. Conflicts, sizes and errors other than
//! 1036 are not modelled.

use bytes::Bytes;
pub use shaketable_sim::judges::combine;
use shaketable_sim::{
    judges::{Appends, Joined},
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{KeySelector, KeyValue, MutationType, RangeOption};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// The contents of a database.
pub type Space = BTreeMap<Bytes, Bytes>;

/// A write of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Sets the key to the value.
    Set(Bytes, Bytes),
    /// Clears `[begin, end)`.
    Clear(Bytes, Bytes),
    /// Applies an atomic operation with the operand.
    Atomic(MutationType, Bytes, Bytes),
}

impl From<Write> for Mutation {
    fn from(write: Write) -> Mutation {
        match write {
            Write::Set(key, value) => Mutation::Set(key, value),
            Write::Clear(begin, end) => Mutation::ClearRange(KeyRange { begin, end }),
            Write::Atomic(op, key, operand) => Mutation::Atomic(key, operand, op),
        }
    }
}

/// What one transaction sees: a fixed state and its own writes.
pub struct View<'a> {
    base: &'a Space,
    /// The base with the writes applied; created by the first write.
    seen: Option<Space>,
    /// The writes as they are sent.
    writes: Vec<Write>,
    appends: Appends,
    read_your_writes: bool,
    /// Whether snapshot reads see own writes if serializable reads do.
    snapshot_ryw: bool,
    /// Keys whose last write was a versionstamped value, which is not known before the commit.
    unknown: Vec<Bytes>,
    /// Whether there was a versionstamped operation, so that reads may reach unreadable keys.
    stamped: bool,
}

impl<'a> View<'a> {
    /// A transaction that reads `base`.
    pub fn new(base: &'a Space, read_your_writes: bool) -> View<'a> {
        View {
            base,
            seen: None,
            writes: Vec::new(),
            appends: Appends::default(),
            read_your_writes,
            snapshot_ryw: true,
            unknown: Vec::new(),
            stamped: false,
        }
    }

    /// Sets whether snapshot reads see own writes if serializable reads do.
    pub fn snapshots(self, snapshot_ryw: bool) -> View<'a> {
        View { snapshot_ryw, ..self }
    }

    /// The view of its snapshot reads.
    pub fn at_snapshot(&self) -> View<'a> {
        View {
            base: self.base,
            seen: self.seen.clone(),
            writes: self.writes.clone(),
            appends: self.appends.clone(),
            read_your_writes: self.read_your_writes && self.snapshot_ryw,
            snapshot_ryw: self.snapshot_ryw,
            unknown: self.unknown.clone(),
            stamped: self.stamped,
        }
    }

    /// The size of the keys, values and operands that are sent, in bytes, not counting clears.
    pub fn written(&self) -> usize {
        let bytes = |write: &Write| match write {
            Write::Set(key, value) | Write::Atomic(_, key, value) => key.len() + value.len(),
            Write::Clear(..) => 0,
        };
        self.writes.iter().map(bytes).sum()
    }

    /// Adds a write.
    pub fn write(&mut self, write: Write) {
        let seen = self.seen.get_or_insert_with(|| self.base.clone());
        match &write {
            Write::Set(key, _) => self.unknown.retain(|k| k != key),
            Write::Clear(begin, end) => self.unknown.retain(|k| k < begin || k >= end),
            Write::Atomic(MutationType::SetVersionstampedValue, key, _) => {
                self.stamped = true;
                self.unknown.push(key.clone());
            }
            Write::Atomic(MutationType::SetVersionstampedKey, ..) => self.stamped = true,
            Write::Atomic(..) => {}
        }
        let read = |key: &[u8]| seen.get(key).cloned();
        // Without read-your-writes the client sends the calls as they are.
        let joined = self
            .read_your_writes
            .then(|| self.appends.write(self.writes.len(), &Mutation::from(write.clone()), None, read));
        match joined.flatten() {
            Some(Joined { begun, sent: Mutation::Atomic(key, operand, op), value: Some(value) }) => {
                seen.insert(key.clone(), value);
                self.writes[begun] = Write::Atomic(op, key, operand);
            }
            _ => {
                apply_one(seen, &write, None);
                self.writes.push(write);
            }
        }
    }

    /// The writes so far, as they are sent.
    pub fn into_writes(self) -> Vec<Write> {
        self.writes
    }

    /// Whether a read of `key` must fail as unreadable (1036).
    pub fn must_not_read(&self, key: &[u8]) -> bool {
        self.read_your_writes && self.unknown.iter().any(|k| k == key)
    }

    /// Whether reads of this transaction may fail as unreadable (1036).
    pub fn may_be_unreadable(&self) -> bool {
        self.read_your_writes && self.stamped
    }

    fn space(&self) -> &Space {
        match &self.seen {
            Some(seen) if self.read_your_writes => seen,
            _ => self.base,
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.space().get(key).cloned()
    }

    /// The key that `selector` resolves to, clamped to `""` and `\xff`.
    pub fn get_key(&self, selector: &KeySelector) -> Bytes {
        let space = self.space();
        let base = selector.key.as_ref();
        let end = Bytes::from_static(b"\xff");
        if selector.offset > 0 {
            let from = if selector.or_equal { Excluded(base) } else { Included(base) };
            let nth = selector.offset as usize - 1;
            space.range::<[u8], _>((from, Unbounded)).nth(nth).map_or(end, |(k, _)| k.clone())
        } else {
            let to = if selector.or_equal { Included(base) } else { Excluded(base) };
            let nth = selector.offset.unsigned_abs() as usize;
            space.range::<[u8], _>((Unbounded, to)).rev().nth(nth).map_or(Bytes::new(), |(k, _)| k.clone())
        }
    }

    /// Whether FoundationDB's client certainly resolves the selector as this view does. The client treats a
    /// key that the transaction itself has cleared with `CompareAndClear` as present
    /// (`resolveKeySelectorFromCache` checks the kind of the write, not its result).
    pub fn resolves_surely(&self, selector: &KeySelector) -> bool {
        let is_plain = selector.offset == 1 && !selector.or_equal;
        let may_clear = |w: &Write| matches!(w, Write::Atomic(MutationType::CompareAndClear, ..));
        is_plain || !self.read_your_writes || !self.writes.iter().any(may_clear)
    }

    /// All rows of `range`, with its limit and its direction.
    pub fn get_range(&self, range: &RangeOption) -> Vec<KeyValue> {
        let (begin, end) = (self.get_key(&range.begin), self.get_key(&range.end));
        if begin >= end {
            return Vec::new();
        }
        let limit = range.limit.filter(|l| *l > 0).unwrap_or(usize::MAX);
        let rows = self.space().range::<[u8], _>((Included(&begin[..]), Excluded(&end[..])));
        let row = |(k, v): (&Bytes, &Bytes)| KeyValue { key: k.clone(), value: v.clone() };
        if range.reverse {
            rows.rev().take(limit).map(row).collect()
        } else {
            rows.take(limit).map(row).collect()
        }
    }
}

/// Makes `writes` permanent, with their versionstamps filled in.
pub fn apply(space: &mut Space, writes: &[Write], stamp: &[u8; 10]) {
    for write in writes {
        apply_one(space, write, Some(stamp));
    }
}

/// Applies a write. Without a stamp, versionstamped keys are skipped, and versionstamped values keep their
/// placeholders.
fn apply_one(space: &mut Space, write: &Write, stamp: Option<&[u8; 10]>) {
    match write {
        Write::Set(key, value) => {
            space.insert(key.clone(), value.clone());
        }
        Write::Clear(begin, end) => {
            while let Some((key, _)) = space.range::<[u8], _>((Included(&begin[..]), Unbounded)).next()
                && key < end
            {
                let key = key.clone();
                space.remove(&key);
            }
        }
        Write::Atomic(MutationType::SetVersionstampedKey, key, value) => {
            if let Some(stamp) = stamp {
                space.insert(substitute(key, stamp), value.clone());
            }
        }
        Write::Atomic(MutationType::SetVersionstampedValue, key, value) => {
            let value = stamp.map_or_else(|| value.clone(), |stamp| substitute(value, stamp));
            space.insert(key.clone(), value);
        }
        Write::Atomic(op, key, operand) => match combine(*op, space.get(key), operand) {
            Some(value) => {
                space.insert(key.clone(), value);
            }
            None => {
                space.remove(key);
            }
        },
    }
}

/// Writes the stamp at the position given by the trailing little-endian offset, and removes the offset.
fn substitute(bytes: &[u8], stamp: &[u8; 10]) -> Bytes {
    let (content, offset) = bytes.split_at(bytes.len() - 4);
    let at = u32::from_le_bytes(offset.try_into().expect("four bytes were split off")) as usize;
    let mut content = content.to_vec();
    content[at..at + 10].copy_from_slice(stamp);
    content.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use MutationType::*;

    fn b(s: &'static [u8]) -> Bytes {
        Bytes::from_static(s)
    }

    fn space(keys: &[&'static [u8]]) -> Space {
        keys.iter().map(|k| (b(k), b(k))).collect()
    }

    #[test]
    fn selectors_resolve_and_clamp() {
        let space = space(&[b"b", b"d", b"f"]);
        let view = View::new(&space, true);
        let key = |s: KeySelector| view.get_key(&s);
        assert_eq!(key(KeySelector::first_greater_or_equal("b")), "b");
        assert_eq!(key(KeySelector::first_greater_than("b")), "d");
        assert_eq!(key(KeySelector::last_less_or_equal("d")), "d");
        assert_eq!(key(KeySelector::last_less_than("d")), "b");
        assert_eq!(key(KeySelector::new("b", false, 3)), "f");
        assert_eq!(key(KeySelector::new("b", false, 4)), &b"\xff"[..]);
        assert_eq!(key(KeySelector::new("f", true, -2)), "b");
        assert_eq!(key(KeySelector::new("f", true, -3)), "");
    }

    #[test]
    fn ranges_respect_limit_direction_and_inversion() {
        let space = space(&[b"a", b"b", b"c", b"d"]);
        let view = View::new(&space, true);
        let keys = |r: RangeOption| view.get_range(&r).into_iter().map(|r| r.key).collect::<Vec<_>>();
        assert_eq!(keys(RangeOption::new("b", "d")), ["b", "c"]);
        assert_eq!(keys(RangeOption::new("a", "e").limit(2)), ["a", "b"]);
        assert_eq!(keys(RangeOption::new("a", "e").limit(2).reversed()), ["d", "c"]);
        assert!(keys(RangeOption::new("d", "b")).is_empty());
    }

    #[test]
    fn own_writes_are_seen_unless_switched_off() {
        let space = space(&[b"a"]);
        for ryw in [true, false] {
            let mut view = View::new(&space, ryw);
            view.write(Write::Set(b(b"b"), b(b"1")));
            view.write(Write::Clear(b(b"a"), b(b"b")));
            view.write(Write::Atomic(Add, b(b"b"), b(b"\x01")));
            assert_eq!(view.get(b"a"), (!ryw).then(|| b(b"a")));
            assert_eq!(view.get(b"b"), ryw.then(|| b(b"2")));
            let mut after = space.clone();
            apply(&mut after, &view.into_writes(), &[0; 10]);
            assert_eq!(after, Space::from([(b(b"b"), b(b"2"))]));
        }
    }

    #[test]
    fn appends_in_a_row_are_one() {
        let base: Space = [(b(b"k"), Bytes::from(vec![1; 60_000]))].into();
        for (ryw, expected) in [(true, 60_000), (false, 90_000)] {
            let mut view = View::new(&base, ryw);
            (0..2).for_each(|_| view.write(Write::Atomic(AppendIfFits, b(b"k"), vec![2; 30_000].into())));
            assert_eq!(view.get(b"k").map(|value| value.len()), Some(60_000));
            let mut after = base.clone();
            apply(&mut after, &view.into_writes(), &[0; 10]);
            assert_eq!(after[&b"k"[..]].len(), expected);
        }
    }

    #[test]
    fn versionstamps_are_unreadable_until_the_commit_and_then_filled_in() {
        let base = Space::new();
        let mut view = View::new(&base, true);
        view.write(Write::Atomic(SetVersionstampedKey, b(b"k..........\x01\0\0\0"), b(b"v")));
        view.write(Write::Atomic(SetVersionstampedValue, b(b"w"), b(b"..........!\0\0\0\0")));
        assert!(view.must_not_read(b"w") && view.may_be_unreadable());
        assert_eq!(view.get_range(&RangeOption::new("k", "l")), []);
        let mut after = base.clone();
        apply(&mut after, &view.into_writes(), b"0123456789");
        let expected = [(b(b"k0123456789"), b(b"v")), (b(b"w"), b(b"0123456789!"))];
        assert_eq!(after, Space::from(expected));

        let mut view = View::new(&base, true);
        view.write(Write::Atomic(SetVersionstampedValue, b(b"w"), b(b"..........\0\0\0\0")));
        view.write(Write::Set(b(b"w"), b(b"plain")));
        assert!(!view.must_not_read(b"w"));
        assert_eq!(view.get(b"w"), Some(b(b"plain")));
    }
}
