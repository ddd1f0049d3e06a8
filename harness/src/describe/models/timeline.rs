//! A model for transactions with snapshot reads: its state at the commit, and its state at the read version.
//!
//! A serializable read sees the state at the commit. A snapshot read sees the state at the read version,
//! which may be older, and the transaction's own writes.

use crate::describe::specimen::At;
use shaketable_sim::proto::Version;
use std::{fmt, sync::Arc};

/// A model with its past states.
#[derive(Clone)]
pub struct Timeline<M> {
    now: M,
    /// The past states, each with the version from which on it was valid, ascending.
    past: Vec<(Version, Arc<M>)>,
    /// The transaction in progress: its versionstamp, and what its snapshot reads see.
    open: Option<([u8; 10], M)>,
}

/// Compares only the current states.
impl<M: PartialEq> PartialEq for Timeline<M> {
    fn eq(&self, other: &Timeline<M>) -> bool {
        self.now == other.now
    }
}

/// Prints only the current state.
impl<M: fmt::Debug> fmt::Debug for Timeline<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now.fmt(f)
    }
}

impl<M: Clone> Timeline<M> {
    /// Creates a timeline with this initial state.
    pub fn new(now: M) -> Timeline<M> {
        let past = vec![(Version::MIN, Arc::new(now.clone()))];
        Timeline { now, past, open: None }
    }

    /// Begins a transaction, unless it is already in progress. Must be called before each operation.
    pub fn begin(&mut self, at: &At) {
        if let Some((stamp, _)) = &self.open
            && at.stamp != Some(*stamp)
        {
            let [a, b, c, d, e, f, g, h, ..] = *stamp;
            let version = Version::from_be_bytes([a, b, c, d, e, f, g, h]);
            self.past.push((version, Arc::new(self.now.clone())));
            self.open = None;
        }
        if let (None, Some(stamp)) = (&self.open, at.stamp) {
            let read = at.read_version.unwrap_or(0);
            let known = self.past.partition_point(|(version, _)| *version <= read).max(1);
            self.open = Some((stamp, (*self.past[known - 1].1).clone()));
        }
    }

    /// The current state.
    pub fn now(&self) -> &M {
        &self.now
    }

    /// What the snapshot reads of the transaction in progress see. A transaction that does not commit is
    /// replayed at its read version, so that it sees the current state.
    pub fn snapshot(&self) -> &M {
        self.open.as_ref().map_or(&self.now, |(_, seen)| seen)
    }

    /// What a snapshot read or a serializable read sees.
    pub fn seen(&self, snapshot: bool) -> &M {
        if snapshot { self.snapshot() } else { self.now() }
    }

    /// Applies a write of the transaction in progress.
    pub fn write(&mut self, write: impl Fn(&mut M)) {
        if let Some((_, seen)) = &mut self.open {
            write(seen);
        }
        write(&mut self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_state_at_the_read_version_with_own_writes() {
        let at = |version: u8, read| At {
            stamp: Some([0, 0, 0, 0, 0, 0, 0, version, 0, 0]),
            read_version: Some(read),
            ..At::default()
        };
        let mut model = Timeline::new(vec![0]);
        let mut push = |at: At, n| {
            model.begin(&at);
            model.write(|list| list.push(n));
            (model.snapshot().clone(), model.now().clone())
        };
        assert_eq!(push(at(10, 5), 1), (vec![0, 1], vec![0, 1]));
        assert_eq!(push(at(10, 5), 2), (vec![0, 1, 2], vec![0, 1, 2]));
        assert_eq!(push(at(20, 9), 3), (vec![0, 3], vec![0, 1, 2, 3]));
        assert_eq!(push(at(30, 10), 4), (vec![0, 1, 2, 4], vec![0, 1, 2, 3, 4]));
        model.begin(&At { read_version: Some(30), ..At::default() });
        assert_eq!(model.seen(true), model.seen(false));
        assert_eq!(model, Timeline::new(vec![0, 1, 2, 3, 4]));
    }
}
