//! Watches: requests to be notified when a key's value changes.
//!
//! A watch fires when the applied value differs from the value with which it was set. A value that changes
//! and changes back in between may go unnoticed; a watch that outlives its server or its shard is broken, and
//! the client sets it again.

use super::state::State;
use crate::{
    config::ClusterBug,
    proto::{KeyRange, LogEntry, Mutation, Version, WRONG_SHARD_SERVER},
    reply::ReplyTo,
};
use bytes::Bytes;
use shaketable_tx::Error;
use std::collections::BTreeMap;

/// The watches set on a server.
#[derive(Default)]
pub struct Watches {
    keys: BTreeMap<Bytes, Vec<Watch>>,
    /// Those of shards that were dropped, with a planted bug: nobody replies to them.
    kept: Vec<Watch>,
}

/// A watch: the value with which it was set, and its reply.
struct Watch {
    value: Option<Bytes>,
    reply: ReplyTo<Result<Version, Error>>,
}

impl Watches {
    /// Sets a watch, which fires immediately if the value already differs.
    pub fn set(
        &mut self,
        state: &State,
        key: Bytes,
        value: Option<Bytes>,
        misses_past: bool,
        reply: ReplyTo<Result<Version, Error>>,
    ) {
        match state.latest(&key) {
            Err(error) => reply.send(Err(error)),
            Ok(current) if current != value.as_ref() && !misses_past => reply.send(Ok(state.version())),
            Ok(_) => self.keys.entry(key).or_default().push(Watch { value, reply }),
        }
    }

    /// Fires the watches of the keys that an applied entry wrote, as a server with this planted bug does.
    pub fn applied(&mut self, state: &State, entry: &LogEntry, bug: Option<ClusterBug>) {
        if self.keys.is_empty() {
            return;
        }
        let is_missed = |mutation: &Mutation| match mutation {
            Mutation::Set(..) => bug == Some(ClusterBug::StorageSetsWakeNobody),
            Mutation::Atomic(..) => bug == Some(ClusterBug::StorageAtomicsWakeNobody),
            Mutation::ClearRange(_) => bug == Some(ClusterBug::StorageClearsWakeNobody),
        };
        for mutation in entry.transactions.iter().flat_map(|t| &t.mutations).filter(|m| !is_missed(m)) {
            match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, _, _) => self.check(state, key),
                Mutation::ClearRange(range) => {
                    self.inside(range).iter().for_each(|key| self.check(state, key))
                }
            }
        }
    }

    /// Fires every watch whose value differs, after a rollback.
    pub fn check_all(&mut self, state: &State) {
        let keys: Vec<Bytes> = self.keys.keys().cloned().collect();
        keys.iter().for_each(|key| self.check(state, key));
    }

    /// Breaks the watches of a shard that the server drops: they must be set elsewhere.
    pub fn forget(&mut self, range: &KeyRange, bug: Option<ClusterBug>) {
        for key in self.inside(range) {
            for watch in self.keys.remove(&key).into_iter().flatten() {
                match bug {
                    Some(ClusterBug::StorageKeepsWatches) => self.kept.push(watch),
                    _ => watch.reply.send(Err(WRONG_SHARD_SERVER)),
                }
            }
        }
    }

    fn inside(&self, range: &KeyRange) -> Vec<Bytes> {
        match range.is_empty() {
            true => Vec::new(),
            false => {
                self.keys.range::<Bytes, _>(&range.begin..&range.end).map(|(key, _)| key.clone()).collect()
            }
        }
    }

    fn check(&mut self, state: &State, key: &Bytes) {
        let Some(watches) = self.keys.get_mut(key) else { return };
        let current = state.latest(key);
        for watch in watches.extract_if(.., |watch| current != Ok(watch.value.as_ref())) {
            watch.reply.send(current.map(|_| state.version()));
        }
        if watches.is_empty() {
            self.keys.remove(key);
        }
    }
}
