//! Writes and explicit conflict ranges. Their errors are returned by the next call that returns a result.

use super::{
    conflict::{self, add_read},
    keys::{
        ALL_END, METADATA_VERSION, METADATA_VERSION_END, METADATA_VERSION_OPERAND, SPECIAL_END, max_key_size,
        max_write_key_size, single_key,
    },
    shared::Client,
    sizes,
    transaction::{SimTransaction, State},
    watch,
    write_map::Op,
};
use crate::{
    atomic,
    config::ClusterBug,
    history::Aside,
    proto::{KeyRange, Mutation},
};
use bytes::Bytes;
use shaketable_tx::{ConflictRangeType, Error, MutationType, Result, VALUE_SIZE_LIMIT};
use std::sync::Arc;

/// Whether `key` is a special key.
pub fn is_special(key: &[u8]) -> bool {
    *key >= ALL_END[..] && *key < SPECIAL_END[..]
}

impl State {
    fn takes_conflict(&mut self, client: &Client) -> bool {
        let waived = self.options.next_write_no_conflict;
        self.options.next_write_no_conflict = waived && client.has(ClusterBug::ClientWaivesAll);
        if waived {
            self.record.omits_conflict_range();
        }
        !waived
    }

    fn set(&mut self, client: &Client, key: &[u8], value: &[u8]) -> Result<()> {
        if key == METADATA_VERSION {
            return Err(Error::CLIENT_INVALID_OPERATION);
        }
        if is_special(key) {
            return self.special_set(key, value);
        }
        let conflict = self.takes_conflict(client);
        self.unused(client)?;
        if *key >= self.max_write()[..] {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        self.size +=
            sizes::mutation(key.len(), value.len()) + if conflict { sizes::single_key(key.len()) } else { 0 };
        self.check_sizes(client, key, value)?;
        let range = single_key(key);
        let (key, value) = (range.begin.clone(), Bytes::copy_from_slice(value));
        let mutation = Mutation::Set(key.clone(), value.clone());
        self.record.write(mutation.clone());
        if self.options.ryw_disabled {
            self.write_through(mutation, conflict.then_some(range));
            return Ok(());
        }
        watch::trigger(self, &range, Some(&Some(value.clone())));
        Arc::make_mut(&mut self.writes).mutate(key, Op::Set(Some(value)), conflict);
        Ok(())
    }

    fn check_sizes(&self, client: &Client, key: &[u8], value: &[u8]) -> Result<()> {
        let less = |bug| usize::from(client.has(bug));
        if key.len() > max_write_key_size(key, self.options.raw_access) - less(ClusterBug::ClientKeyLimit) {
            return Err(Error::KEY_TOO_LARGE);
        }
        if value.len() > VALUE_SIZE_LIMIT - less(ClusterBug::ClientValueLimit) {
            return Err(Error::VALUE_TOO_LARGE);
        }
        Ok(())
    }

    fn write_through(&mut self, mutation: Mutation, conflict: Option<KeyRange>) {
        self.cost += sizes::write_cost(&mutation);
        self.native.mutations.push(mutation);
        self.native.write_ranges.extend(conflict);
    }

    fn clear(&mut self, client: &Client, key: &[u8]) -> Result<()> {
        let conflict = self.takes_conflict(client);
        self.unused(client)?;
        if is_special(key) {
            return self.special_clear(&single_key(key));
        }
        if *key >= self.max_write()[..] {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        if key.len() > max_key_size(key) {
            return Ok(());
        }
        let range = single_key(key);
        if !self.options.ryw_disabled {
            self.size += sizes::single_key(key.len()) * if conflict { 2 } else { 1 };
        }
        self.clear_keys(range, conflict);
        Ok(())
    }

    fn clear_range(&mut self, client: &Client, begin: &[u8], end: &[u8]) -> Result<()> {
        if begin > end {
            return Err(Error::INVERTED_RANGE);
        }
        let conflict = self.takes_conflict(client);
        self.unused(client)?;
        if *begin >= ALL_END[..] && *end <= SPECIAL_END[..] {
            return self.special_clear(&KeyRange::new(begin.to_vec(), end.to_vec()));
        }
        let max = self.max_write();
        if *begin > max[..] || *end > max[..] {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let mutation = match client.has(ClusterBug::ClientMiscountsClears) {
            true => 0,
            false => sizes::mutation(begin.len(), end.len()),
        };
        self.size += mutation + if conflict { sizes::range(begin.len(), end.len()) } else { 0 };
        if let Some(range) = conflict::clip(begin, end) {
            self.clear_keys(range, conflict);
        }
        Ok(())
    }

    fn clear_keys(&mut self, range: KeyRange, conflict: bool) {
        let mutation = Mutation::ClearRange(range.clone());
        self.record.write(mutation.clone());
        if self.options.ryw_disabled {
            return self.write_through(mutation, conflict.then_some(range));
        }
        watch::trigger(self, &range, Some(&None));
        Arc::make_mut(&mut self.writes).clear(range.begin, range.end, conflict);
    }

    fn atomic_op(
        &mut self,
        client: &Client,
        key: &[u8],
        operand: &[u8],
        op: Option<MutationType>,
    ) -> Result<()> {
        let mut conflict = self.takes_conflict(client);
        self.unused(client)?;
        if key == METADATA_VERSION {
            if op != Some(MutationType::SetVersionstampedValue) || operand != METADATA_VERSION_OPERAND {
                return Err(Error::CLIENT_INVALID_OPERATION);
            }
        } else if *key >= self.max_write()[..] {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let op = op.ok_or(Error::INVALID_MUTATION_TYPE)?;
        self.check_sizes(client, key, operand)?;
        let mut range = single_key(key);
        let operand = Bytes::copy_from_slice(operand);
        let asked = Mutation::Atomic(range.begin.clone(), operand.clone(), op);
        if op == MutationType::SetVersionstampedKey {
            conflict = false;
            let version = self.version.known();
            let landing = atomic::versionstamped_key_range(&range.begin, version, &self.max_read())?;
            self.stamp_keys.push(range.begin.clone());
            if !self.options.ryw_disabled {
                self.flush(&landing, client.has(ClusterBug::ClientSendsLast));
                Arc::make_mut(&mut self.writes).make_unreadable(landing.begin, landing.end);
            }
            range = single_key(&with_least_stamp(key, version.map_or(0, |v| v + 1)));
        }
        if op == MutationType::SetVersionstampedValue && atomic::stamp_offset(&operand).is_none() {
            return Err(Error::CLIENT_INVALID_OPERATION);
        }
        self.size += sizes::mutation(key.len(), operand.len())
            + if conflict { sizes::single_key(key.len()) } else { 0 };
        self.record.write(asked);
        if self.options.ryw_disabled {
            let mutation = Mutation::Atomic(range.begin.clone(), operand, op);
            self.write_through(mutation, conflict.then_some(range));
            return Ok(());
        }
        watch::trigger(self, &range, None);
        if client.has(ClusterBug::ClientMergesComparisons) && self.compares(&range.begin, &operand, op) {
            return Ok(());
        }
        Arc::make_mut(&mut self.writes).mutate(range.begin, Op::Atomic(op, operand), conflict);
        Ok(())
    }

    /// Whether the operation is a `CompareAndClear` with an operand as long as that of the one before it.
    fn compares(&self, key: &[u8], operand: &[u8], op: MutationType) -> bool {
        let cursor = self.writes.cursor_at(key);
        let last = if cursor.is_operation() { cursor.stack().ops().last() } else { None };
        let is_alike = |last: &Op| matches!(last, Op::Atomic(before, old) if *before == op && old.len() == operand.len());
        op == MutationType::CompareAndClear && last.is_some_and(is_alike)
    }

    fn add_conflict_range(
        &mut self,
        client: &Client,
        begin: &[u8],
        end: &[u8],
        kind: ConflictRangeType,
    ) -> Result<()> {
        self.unused(client)?;
        let max = match kind {
            ConflictRangeType::Read => self.max_read(),
            ConflictRangeType::Write => self.max_write(),
        };
        let metadata =
            kind == ConflictRangeType::Read && begin == METADATA_VERSION && end == METADATA_VERSION_END;
        if (*begin > max[..] || *end > max[..]) && !metadata {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let Some(range) = conflict::clip(begin, end) else { return Ok(()) };
        self.record.aside(Aside::ConflictRange(kind, range.clone()));
        let size = sizes::range(range.begin.len(), range.end.len());
        match (kind, self.options.ryw_disabled) {
            (ConflictRangeType::Read, true) => self.native.read_ranges.push(range),
            (ConflictRangeType::Write, true) => self.native.write_ranges.push(range),
            (ConflictRangeType::Read, false) => {
                self.size += add_read(&mut self.reads, &self.writes, range);
                return Ok(());
            }
            (ConflictRangeType::Write, false) if client.has(ClusterBug::ClientForgetsRanges) => {}
            (ConflictRangeType::Write, false) => {
                Arc::make_mut(&mut self.writes).add_conflict(range.begin, range.end);
            }
        }
        self.size += size;
        Ok(())
    }
}

/// The versionstamped key `key`, with its offset, with the smallest possible stamp.
fn with_least_stamp(key: &[u8], version: i64) -> Vec<u8> {
    let mut filled = key.to_vec();
    if let Some(at) = atomic::stamp_offset(key) {
        filled[at..at + 10].copy_from_slice(&atomic::versionstamp(version, 0));
    }
    filled
}

impl SimTransaction {
    fn write(&self, write: impl FnOnce(&mut State, &Client) -> Result<()>) -> Result<()> {
        let mut state = self.0.state.lock();
        let answer = write(&mut state, &self.0.client);
        if let Err(e) = answer {
            state.defer(e);
        }
        answer
    }

    pub(super) fn do_set(&self, key: &[u8], value: &[u8]) {
        // Deferred to the next call that returns a result.
        let _ = self.write(|state, client| state.set(client, key, value));
    }

    pub(super) fn do_clear(&self, key: &[u8]) {
        let _ = self.write(|state, client| state.clear(client, key));
    }

    pub(super) fn do_clear_range(&self, begin: &[u8], end: &[u8]) {
        let _ = self.write(|state, client| state.clear_range(client, begin, end));
    }

    pub(super) fn do_atomic_op(&self, key: &[u8], operand: &[u8], op: Option<MutationType>) -> Result<()> {
        self.write(|state, client| state.atomic_op(client, key, operand, op))
    }

    pub(super) fn do_add_conflict_range(
        &self,
        begin: &[u8],
        end: &[u8],
        kind: ConflictRangeType,
    ) -> Result<()> {
        if begin > end {
            // The only error of this call that the C API returns immediately.
            return Err(Error::INVERTED_RANGE);
        }
        self.write(|state, client| state.add_conflict_range(client, begin, end, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_versionstamped_key_is_sent_with_its_least_stamp() {
        let key = b"k0123456789!\x01\0\0\0";
        assert_eq!(with_least_stamp(key, 2), b"k\0\0\0\0\0\0\0\x02\0\0!\x01\0\0\0");
    }
}
