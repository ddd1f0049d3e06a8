//! Rows whose keys get the versionstamp of their transaction's commit.
//!
//! FoundationDB cannot take back such a row: its key is not known before the commit, and no clear in the same
//! transaction reaches it. A record that is saved twice in one transaction, or saved and deleted, must not
//! leave the index entry of its first version. These rows are therefore kept here, by their incomplete keys,
//! and are given to the transaction as late as possible. Until then they can be removed, and ranges in which
//! they will be can be read: in the transaction itself, FoundationDB refuses to read where it may put a
//! versionstamped key.

use shaketable_tx::{MutationType, Transaction, reachable};
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included},
};

/// The rows of one context, by the operand of `SET_VERSIONSTAMPED_KEY`: the key, and the offset of the
/// versionstamp in four bytes.
#[derive(Default)]
pub(super) struct Stamped {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    flushed: bool,
}

impl Stamped {
    /// Keeps a row.
    pub fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.rows.insert(key, value);
    }

    /// Removes a row.
    pub fn clear(&mut self, key: &[u8]) {
        if self.rows.remove(key).is_some() {
            reachable!("record: the entry of an incomplete version is taken back");
        }
    }

    /// Removes the rows in a range of keys that does not begin or end within a versionstamp.
    pub fn clear_range(&mut self, begin: &[u8], end: &[u8]) {
        self.rows.retain(|key, _| &key[..] < begin || end <= &key[..]);
    }

    /// Whether there are rows in a range of keys.
    pub fn has_between(&self, begin: &[u8], end: &[u8]) -> bool {
        begin < end && self.rows.range::<[u8], _>((Included(begin), Excluded(end))).next().is_some()
    }

    /// Gives the rows to the transaction. They can no longer be removed.
    pub fn flush<T: Transaction>(&mut self, tx: &T) {
        for (key, value) in std::mem::take(&mut self.rows) {
            self.flushed = true;
            tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
        }
    }

    /// Whether the transaction was given rows.
    pub fn is_flushed(&self) -> bool {
        self.flushed
    }
}
