//! Whether the database is locked: a key of the database, `\xff/dbLocked`, that commit proxies obey.
//!
//! A commit that locks the database, or unlocks it, takes effect from the next version on. FoundationDB's
//! resolvers tell each proxy what others have changed at earlier versions; here the proxies share a record. A
//! proxy announces a change before it asks the resolvers, whose replies are in the order of versions, so that
//! no later batch overtakes it.

use crate::proto::{Mutation, Version};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    future::poll_fn,
    task::{Poll, Waker},
};

/// Who has locked the database.
pub const DATABASE_LOCKED: &[u8] = b"\xff/dbLocked";

/// The record of changes.
#[derive(Debug, Default)]
pub struct DatabaseLock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The versions at which it was locked or unlocked, ascending.
    changes: Vec<(Version, bool)>,
    /// The versions whose changes are not resolved, each with the end of the generation before its own.
    pending: BTreeSet<(Version, Version)>,
    waiting: Vec<Waker>,
}

impl State {
    fn locked_before(&self, version: Version) -> bool {
        self.changes.iter().rfind(|(at, _)| *at < version).is_some_and(|(_, locked)| *locked)
    }

    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

/// What a mutation makes of the lock, if anything.
pub fn effect(mutation: &Mutation) -> Option<bool> {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, _, _) if *key == DATABASE_LOCKED => Some(true),
        Mutation::ClearRange(range) if range.contains(DATABASE_LOCKED) => Some(false),
        _ => None,
    }
}

impl DatabaseLock {
    /// A batch of the generation that follows `ended` may change the lock at `version`.
    pub fn announce(&self, ended: Version, version: Version) {
        self.0.lock().pending.insert((ended, version));
    }

    /// What an announced batch has done.
    pub fn resolve(&self, ended: Version, version: Version, locked: Option<bool>) {
        let mut state = self.0.lock();
        state.pending.remove(&(ended, version));
        if let Some(locked) = locked {
            let at = state.changes.partition_point(|(other, _)| *other < version);
            state.changes.insert(at, (version, locked));
        }
        state.wake();
    }

    /// Whether a batch at `version` finds the database locked. Waits for batches that may have changed that.
    pub async fn locked_before(&self, ended: Version, version: Version) -> bool {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.pending.range((ended, Version::MIN)..(ended, version)).next().is_some() {
                state.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(state.locked_before(version))
        })
        .await
    }

    /// Whether it is locked for a transaction that reads at `version`.
    pub fn locked_at(&self, version: Version) -> bool {
        self.0.lock().locked_before(version.saturating_add(1))
    }

    /// Whether the last change has locked it.
    pub fn is_locked(&self) -> bool {
        self.locked_at(Version::MAX)
    }

    /// A generation has ended at `end`: later changes never happened.
    pub fn recovered(&self, end: Version) {
        let mut state = self.0.lock();
        state.changes.retain(|(at, _)| *at <= end);
        state.pending.clear();
        state.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::KeyRange;
    use bytes::Bytes;
    use futures::{FutureExt, poll};
    use std::pin::pin;

    #[test]
    fn a_batch_waits_for_a_change_before_it_and_for_no_other() {
        let lock = DatabaseLock::default();
        lock.announce(1, 20);
        lock.announce(7, 5);
        assert_eq!(lock.locked_before(1, 20).now_or_never(), Some(false), "its own change is for later ones");
        let mut later = pin!(lock.locked_before(1, 30));
        let mut pending = || async { poll!(later.as_mut()) }.now_or_never().expect("at once");
        assert!(pending().is_pending());
        lock.resolve(1, 20, Some(true));
        assert_eq!(pending(), Poll::Ready(true));
        assert_eq!([19, 20].map(|version| lock.locked_at(version)), [false, true]);
        lock.resolve(7, 5, None);
        assert!(lock.is_locked());
    }

    #[test]
    fn what_a_recovery_drops_has_not_locked() {
        let lock = DatabaseLock::default();
        lock.resolve(0, 10, Some(true));
        lock.resolve(0, 20, Some(false));
        assert!(!lock.is_locked());
        lock.announce(0, 30);
        lock.recovered(15);
        assert!(lock.is_locked());
        assert_eq!(lock.locked_before(0, 40).now_or_never(), Some(true), "nothing is pending any more");
    }

    #[test]
    fn setting_the_key_locks_and_clearing_it_unlocks() {
        let key = Bytes::from_static(DATABASE_LOCKED);
        assert_eq!(effect(&Mutation::Set(key.clone(), Bytes::new())), Some(true));
        assert_eq!(effect(&Mutation::ClearRange(KeyRange::new(&b"\xff"[..], &b"\xff\xff"[..]))), Some(false));
        assert_eq!(effect(&Mutation::ClearRange(KeyRange::new("", key))), None);
    }
}
