//! The content of the controller's disk, and the decisions of a recovery.

use crate::{
    ids::{Endpoint, Generation},
    proto::{KeyRange, LockedLog, LogSeed, Role, Version},
};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// The controller's disk (FoundationDB's coordinated state), which survives a kill.
#[derive(Debug, Default)]
pub struct ControllerDisk(Mutex<Record>);

/// The content of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The last generation that a recovery tried to start. Every attempt has its own number, so that remains
    /// of an abandoned one are never taken for another's.
    pub attempt: Generation,
    /// The last generation that may have accepted commits; 0 before the first.
    pub generation: Generation,
    /// The machines (their workers' endpoints) that hold its logs.
    pub logs: Vec<Endpoint>,
    /// The end of each earlier generation.
    pub ends: BTreeMap<Generation, Version>,
    /// Whether the cluster's own keys are written.
    pub initialized: bool,
}

impl Record {
    /// How many generations followed this version and committed nothing after it. A storage server that hears
    /// of no later generation may be given what one log of them holds, so that their versions are not used
    /// again.
    pub fn abandoned(&self, recovery_version: Version) -> Version {
        self.ends.values().rev().take_while(|end| **end == recovery_version).count() as Version
    }
}

impl ControllerDisk {
    /// Reads the content of the disk.
    pub fn read(&self) -> Record {
        self.0.lock().clone()
    }

    /// Replaces the content of the disk.
    pub fn write(&self, record: Record) {
        *self.0.lock() = record;
    }
}

/// The end of the old generation, and the initial content of the new one's logs, determined from the old logs
/// that could be locked: one is sufficient.
///
/// An acknowledged commit is durable on every log, and therefore on each of these, so that the minimum of
/// their ends is at or after all acknowledged commits; entries beyond it were never acknowledged.
pub fn end_of_generation(locked: &[LockedLog]) -> Option<LogSeed> {
    let recovery_version = locked.iter().map(|log| log.durable).min()?;
    let log = &locked[0];
    let entries = log.entries.iter().filter(|entry| entry.version <= recovery_version).cloned().collect();
    Some(LogSeed { recovery_version, entries, popped: log.popped.clone() })
}

/// Implements [`ClusterBug::RecoveryForgetsCommit`](crate::config::ClusterBug::RecoveryForgetsCommit): ends
/// the generation before its last version that contains a transaction.
pub fn forget_last_commit(seed: &mut LogSeed) {
    if let Some(last) = seed.entries.iter().rposition(|entry| !entry.transactions.is_empty()) {
        seed.recovery_version = seed.entries[last].previous;
        seed.entries.truncate(last);
    }
}

/// The resolvers' roles: the keyspace is partitioned at `boundaries`.
pub fn resolvers(boundaries: &[Bytes], recovery_version: Version) -> Vec<Role> {
    let begins = std::iter::once(Bytes::new()).chain(boundaries.iter().cloned());
    let ends = boundaries.iter().cloned().chain([Bytes::from_static(b"\xff\xff\xff")]);
    begins
        .zip(ends)
        .map(|(begin, end)| Role::Resolver { share: KeyRange { begin, end }, recovery_version })
        .collect()
}

/// Assigns `count` roles to the machines in turn, starting from a different machine in each generation, after
/// the `taken` roles that were assigned before.
pub fn assign(
    machines: &[Endpoint],
    generation: Generation,
    taken: usize,
    count: usize,
) -> impl Iterator<Item = Endpoint> + '_ {
    (0..count).map(move |i| machines[(generation as usize + taken + i) % machines.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::NodeId,
        proto::{LogEntry, LoggedTransaction},
    };
    use std::sync::Arc;

    fn locked(durable: Version, versions: &[Version]) -> LockedLog {
        let entries = versions
            .iter()
            .map(|version| {
                let transaction = LoggedTransaction { attempt: None, batch_index: 0, mutations: Vec::new() };
                Arc::new(LogEntry {
                    previous: version - 1,
                    version: *version,
                    known_committed: 0,
                    transactions: if version % 2 == 0 { vec![transaction] } else { Vec::new() },
                })
            })
            .collect();
        LockedLog { entries, durable, known_committed: 0, popped: vec![0] }
    }

    #[test]
    fn a_generation_ends_where_its_shortest_log_does() {
        let seed = end_of_generation(&[locked(4, &[2, 3, 4]), locked(3, &[2, 3])]).unwrap();
        assert_eq!(seed.recovery_version, 3);
        assert_eq!(seed.entries.iter().map(|e| e.version).collect::<Vec<_>>(), [2, 3]);
        assert!(end_of_generation(&[]).is_none());
    }

    #[test]
    fn generations_that_committed_nothing_are_counted() {
        let record =
            Record { ends: BTreeMap::from([(1, 50), (2, 70), (4, 70), (5, 70)]), ..Record::default() };
        // Those after generation 2, and the last one, if it ends where they do.
        assert_eq!((record.abandoned(70), record.abandoned(90)), (3, 0));
        assert_eq!(Record::default().abandoned(0), 0);
    }

    #[test]
    fn a_recovery_with_a_planted_bug_loses_the_last_commit() {
        let mut seed = end_of_generation(&[locked(5, &[2, 3, 4, 5])]).unwrap();
        forget_last_commit(&mut seed);
        assert_eq!((seed.recovery_version, seed.entries.len()), (3, 2));
    }

    #[test]
    fn resolvers_share_the_keyspace_without_gaps() {
        let roles = resolvers(&[Bytes::from_static(b"g"), Bytes::from_static(b"p")], 0);
        let shares: Vec<_> = roles
            .iter()
            .map(|role| match role {
                Role::Resolver { share, .. } => share.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            shares,
            [KeyRange::new("", "g"), KeyRange::new("g", "p"), KeyRange::new("p", &b"\xff\xff\xff"[..])]
        );
    }

    #[test]
    fn roles_share_machines_when_these_are_few() {
        let machine = |n| Endpoint { node: NodeId(n), token: 0 };
        let machines = [machine(1), machine(2)];
        let nodes = |generation, taken, count| -> Vec<u16> {
            assign(&machines, generation, taken, count).map(|e| e.node.0).collect()
        };
        assert_eq!(nodes(0, 0, 3), [1, 2, 1]);
        assert_eq!(nodes(1, 0, 3), [2, 1, 2]);
        assert_eq!(nodes(0, 3, 1), [2]);
    }
}
