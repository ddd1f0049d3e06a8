//! The state of a log: entries that are being written to the disk, and the disk.

use crate::{
    ids::Generation,
    proto::{LockedLog, LogEntry, LogSeed, Version},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// A log machine's disk, which survives a kill. It stores the logs of several generations until the
/// controller reports that the earlier ones have ended.
#[derive(Debug, Default)]
pub struct LogDisk(Mutex<BTreeMap<Generation, Stored>>);

#[derive(Debug)]
struct Stored {
    entries: VecDeque<Arc<LogEntry>>,
    durable: Version,
    known_committed: Version,
    popped: Vec<Version>,
}

impl LogDisk {
    /// Creates the log of a generation with the entries that it inherits.
    pub fn create(&self, generation: Generation, seed: &LogSeed) {
        let stored = Stored {
            entries: seed.entries.iter().cloned().collect(),
            durable: seed.recovery_version,
            known_committed: seed.recovery_version,
            popped: seed.popped.clone(),
        };
        self.0.lock().insert(generation, stored);
    }

    /// Makes entries durable, in order.
    pub fn append(&self, generation: Generation, entries: impl Iterator<Item = Arc<LogEntry>>) {
        if let Some(stored) = self.0.lock().get_mut(&generation) {
            for entry in entries {
                stored.durable = entry.version;
                stored.known_committed = stored.known_committed.max(entry.known_committed);
                stored.entries.push_back(entry);
            }
        }
    }

    /// Storage server `server` no longer needs entries up to `version`. Entries that no storage server needs
    /// are discarded.
    pub fn pop(&self, generation: Generation, server: u16, version: Version) {
        let mut disk = self.0.lock();
        let Some(stored) = disk.get_mut(&generation) else { return };
        let Some(popped) = stored.popped.get_mut(usize::from(server)) else { return };
        *popped = version.max(*popped);
        let all = stored.popped.iter().copied().min().unwrap_or(0);
        while stored.entries.front().is_some_and(|entry| entry.version <= all) {
            stored.entries.pop_front();
        }
    }

    /// The durable entries after version `from`.
    pub fn entries_after(&self, generation: Generation, from: Version) -> Vec<Arc<LogEntry>> {
        let disk = self.0.lock();
        let Some(stored) = disk.get(&generation) else { return Vec::new() };
        let at = stored.entries.partition_point(|entry| entry.version <= from);
        stored.entries.range(at..).cloned().collect()
    }

    /// The complete content of a generation's log, if it is stored here.
    pub fn read(&self, generation: Generation) -> Option<LockedLog> {
        let disk = self.0.lock();
        let stored = disk.get(&generation)?;
        Some(LockedLog {
            entries: stored.entries.iter().cloned().collect(),
            durable: stored.durable,
            known_committed: stored.known_committed,
            popped: stored.popped.clone(),
        })
    }

    /// Discards the logs of generations before this one.
    pub fn forget(&self, before: Generation) {
        let mut disk = self.0.lock();
        *disk = disk.split_off(&before);
    }
}

/// The entries that a log has received and that are not durable yet. `R` is the handle with which a push is
/// acknowledged.
#[derive(Debug)]
pub struct Queue<R> {
    /// The version of the last entry in order.
    last: Version,
    /// In order, not durable; the first `syncing` of them are being synced.
    pending: VecDeque<(Arc<LogEntry>, Option<R>)>,
    syncing: usize,
    /// Received before their predecessor.
    early: Vec<(Arc<LogEntry>, Option<R>)>,
}

impl<R> Queue<R> {
    /// A queue that waits for the entry that follows `last`.
    pub fn new(last: Version) -> Queue<R> {
        Queue { last, pending: VecDeque::new(), syncing: 0, early: Vec::new() }
    }

    /// Adds a received entry; entries may arrive in any order.
    pub fn push(&mut self, entry: Arc<LogEntry>, reply: Option<R>) {
        let mut next = (entry, reply);
        loop {
            if next.0.previous != self.last {
                self.early.push(next);
                return;
            }
            self.last = next.0.version;
            self.pending.push_back(next);
            match self.early.iter().position(|(entry, _)| entry.previous == self.last) {
                Some(found) => next = self.early.swap_remove(found),
                None => return,
            }
        }
    }

    /// Starts to sync the pending entries, if there are any and no sync is running. Returns whether a sync
    /// was started.
    pub fn begin_sync(&mut self) -> bool {
        let begins = self.syncing == 0 && !self.pending.is_empty();
        if begins {
            self.syncing = self.pending.len();
        }
        begins
    }

    /// Whether a sync is running.
    pub fn is_syncing(&self) -> bool {
        self.syncing > 0
    }

    /// Ends the running sync; returns the entries that are now durable.
    pub fn end_sync(&mut self) -> impl Iterator<Item = (Arc<LogEntry>, Option<R>)> + '_ {
        self.pending.drain(..std::mem::take(&mut self.syncing))
    }

    /// The replies of all entries in order, durable or not.
    pub fn take_replies(&mut self) -> impl Iterator<Item = R> + '_ {
        self.pending.iter_mut().filter_map(|(_, reply)| reply.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(previous: Version, version: Version) -> Arc<LogEntry> {
        Arc::new(LogEntry { previous, version, known_committed: previous, transactions: Vec::new() })
    }

    proptest! {
        #[test]
        fn entries_become_durable_in_order_whatever_the_order_of_arrival(
            order in Just((0..12i64).collect::<Vec<_>>()).prop_shuffle(),
            sync_after in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut queue = Queue::new(0);
            let mut durable = Vec::new();
            let mut arrived = [false; 12];
            for (i, sync) in order.iter().zip(sync_after) {
                queue.push(entry(*i * 10, *i * 10 + 10), Some(*i));
                arrived[*i as usize] = true;
                if sync {
                    durable.extend(queue.end_sync().map(|(entry, reply)| (entry.version, reply)));
                    queue.begin_sync();
                }
            }
            durable.extend(queue.end_sync().map(|(entry, reply)| (entry.version, reply)));
            queue.begin_sync();
            durable.extend(queue.end_sync().map(|(entry, reply)| (entry.version, reply)));
            let expected: Vec<_> = (0..12).map(|i| (i * 10 + 10, Some(i))).collect();
            prop_assert_eq!(durable, expected);
        }
    }

    #[test]
    fn a_sync_covers_what_was_there_when_it_began() {
        let mut queue = Queue::new(0);
        assert!(!queue.begin_sync());
        queue.push(entry(0, 1), Some(()));
        assert!(queue.begin_sync());
        queue.push(entry(1, 2), Some(()));
        assert!(!queue.begin_sync(), "one at a time");
        assert_eq!(queue.end_sync().count(), 1);
        assert!(queue.begin_sync());
        assert_eq!(queue.end_sync().count(), 1);
    }

    #[test]
    fn entries_stay_until_every_storage_server_has_popped_them() {
        let disk = LogDisk::default();
        disk.create(1, &LogSeed { popped: vec![0, 0], ..LogSeed::default() });
        disk.append(1, [entry(0, 1), entry(1, 2), entry(2, 3)].into_iter());
        disk.pop(1, 0, 3);
        assert_eq!(disk.entries_after(1, 0).len(), 3);
        disk.pop(1, 1, 2);
        assert_eq!(disk.entries_after(1, 0).len(), 1);
        disk.create(2, &LogSeed { recovery_version: 3, ..LogSeed::default() });
        disk.forget(2);
        assert!(disk.read(1).is_none());
        assert_eq!(disk.read(2).map(|log| log.durable), Some(3));
    }
}
