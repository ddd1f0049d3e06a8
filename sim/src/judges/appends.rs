//! Appends in a row on one key, which FoundationDB's client joins to one before it sends them (`coalesceOver`
//! in `fdbclient/WriteMap.cpp`).
//!
//! The joined operand is appended as a whole, or not at all if the value would then be too large; so it makes
//! a difference, as it does with no other operation that the client joins. Judges and models ask here, and
//! replay all else call by call: a client that joins other operations than these is found by what differs.
//! This is written apart from the client, as [`combine`] is, and a property test compares the two
//! (`fidelity/tests/client/own_writes.rs`).

use super::combine;
use crate::{
    atomic::versionstamped_key_range,
    history::Call,
    proto::{KeyRange, Mutation, Version},
};
use bytes::Bytes;
use shaketable_tx::{MutationType, key_after};
use std::collections::{BTreeMap, BTreeSet};

/// The appends of one transaction so far, and which of its keys have no more that could be joined: their
/// values do not depend on the snapshot, or cannot be read before the commit.
#[derive(Clone, Debug, Default)]
pub struct Appends {
    runs: BTreeMap<Bytes, Run>,
    written: BTreeSet<Bytes>,
    ranges: Vec<KeyRange>,
}

/// Appends in a row.
#[derive(Clone, Debug)]
struct Run {
    begun: usize,
    before: Option<Bytes>,
    operand: Bytes,
}

/// An append that the client joins to an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The number of the write that the run of appends began with.
    pub begun: usize,
    /// What the client sends instead of it and of all the others.
    pub sent: Mutation,
    /// The value of the key after it.
    pub value: Option<Bytes>,
}

impl Appends {
    /// Takes the write with this number among those of the transaction. `value` is what the transaction sees
    /// at the key before it, and `read_version` is known to its client, or not. `None` if the client sends
    /// the write as it is.
    pub fn write(
        &mut self,
        number: usize,
        mutation: &Mutation,
        read_version: Option<Version>,
        value: impl FnOnce(&[u8]) -> Option<Bytes>,
    ) -> Option<Joined> {
        match mutation {
            Mutation::Atomic(key, operand, MutationType::AppendIfFits) => {
                return self.append(number, key, operand, value);
            }
            Mutation::Atomic(key, _, MutationType::SetVersionstampedKey) => {
                let end = Bytes::from_static(b"\xff\xff");
                if let Ok(landing) = versionstamped_key_range(key, read_version, &end) {
                    self.close(landing);
                }
            }
            Mutation::Set(key, _) | Mutation::Atomic(key, _, MutationType::SetVersionstampedValue) => {
                self.runs.remove(key);
                self.written.insert(key.clone());
            }
            Mutation::Atomic(key, ..) => drop(self.runs.remove(key)),
            Mutation::ClearRange(range) => self.close(range.clone()),
        }
        None
    }

    fn append(
        &mut self,
        begun: usize,
        key: &Bytes,
        operand: &Bytes,
        value: impl FnOnce(&[u8]) -> Option<Bytes>,
    ) -> Option<Joined> {
        const APPEND: MutationType = MutationType::AppendIfFits;
        if let Some(run) = self.runs.get_mut(key) {
            run.operand = combine(APPEND, Some(&run.operand), operand)?;
            let value = combine(APPEND, run.before.as_ref(), &run.operand);
            let sent = Mutation::Atomic(key.clone(), run.operand.clone(), APPEND);
            return Some(Joined { begun: run.begun, sent, value });
        }
        if !self.written.contains(key) && !self.ranges.iter().any(|range| range.contains(key)) {
            let run = Run { begun, before: value(key), operand: operand.clone() };
            self.runs.insert(key.clone(), run);
        }
        None
    }

    /// Nothing on a key of this range is joined from now on.
    fn close(&mut self, range: KeyRange) {
        if range.end == key_after(&range.begin) {
            self.runs.remove(&range.begin);
            self.written.insert(range.begin);
        } else if range.begin < range.end {
            self.runs.retain(|key, _| !range.contains(key));
            self.ranges.push(range);
        }
    }
}

/// Whether an append among these calls may be joined to another one: if not, nothing needs to be kept.
pub fn may_join(calls: &[Call]) -> bool {
    let is_append = |c: &&Call| matches!(c, Call::Write(Mutation::Atomic(_, _, MutationType::AppendIfFits)));
    calls.iter().filter(is_append).nth(1).is_some()
}
