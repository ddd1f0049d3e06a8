//! A model for transactions with snapshot reads: its state at the commit, and its state at the read version.
//!
//! A serializable read sees the state at the commit. A snapshot read sees the state at the read version,
//! which may be older, and the transaction's own writes.

use crate::describe::specimen::At;
use shaketable_sim::proto::Version;
use std::{fmt, sync::Arc};

/// How many versions later a transaction can commit at most, with room to spare: FoundationDB's window has
/// 5,000,000.
pub(crate) const WINDOW: Version = 20_000_000;

/// A model with its past states, as far back as a transaction can still read. Those that are equal are
/// shared: a clone copies none.
#[derive(Clone)]
pub struct Timeline<M> {
    now: Arc<M>,
    /// The past states, each with the version from which on it was valid, ascending.
    past: Vec<(Version, Arc<M>)>,
    /// The transaction in progress: its versionstamp, and what its snapshot reads see if that is not the
    /// current state.
    open: Option<([u8; 10], Option<Arc<M>>)>,
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
        let now = Arc::new(now);
        Timeline { past: vec![(Version::MIN, now.clone())], now, open: None }
    }

    /// Begins a transaction, unless it is already in progress. Must be called before each operation.
    pub fn begin(&mut self, at: &At) {
        if let Some((stamp, _)) = &self.open
            && at.stamp != Some(*stamp)
        {
            let [a, b, c, d, e, f, g, h, ..] = *stamp;
            let version = Version::from_be_bytes([a, b, c, d, e, f, g, h]);
            let old = self.past.partition_point(|(known, _)| *known < version - WINDOW);
            self.past.drain(..old.saturating_sub(1));
            self.past.push((version, self.now.clone()));
            self.open = None;
        }
        if let (None, Some(stamp)) = (&self.open, at.stamp) {
            let read = at.read_version.unwrap_or(0);
            let known = self.past.partition_point(|(version, _)| *version <= read).max(1);
            let seen = &self.past[known - 1].1;
            self.open = Some((stamp, (!Arc::ptr_eq(seen, &self.now)).then(|| seen.clone())));
        }
    }

    /// The current state.
    pub fn now(&self) -> &M {
        &self.now
    }

    /// What the snapshot reads of the transaction in progress see. A transaction that does not commit is
    /// replayed at its read version, so that it sees the current state.
    pub fn snapshot(&self) -> &M {
        let seen = self.open.as_ref().and_then(|(_, seen)| seen.as_ref());
        seen.unwrap_or(&self.now)
    }

    /// What a snapshot read or a serializable read sees.
    pub fn seen(&self, snapshot: bool) -> &M {
        if snapshot { self.snapshot() } else { self.now() }
    }

    /// Applies a write of the transaction in progress.
    pub fn write(&mut self, write: impl Fn(&mut M)) {
        if let Some((_, Some(seen))) = &mut self.open {
            write(Arc::make_mut(seen));
        }
        write(Arc::make_mut(&mut self.now));
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

    #[test]
    fn states_that_nobody_can_read_any_more_are_forgotten() {
        const SECOND: Version = 1_000_000;
        let begin = |model: &mut Timeline<Version>, version: Version, read| {
            let [a, b, c, d, e, f, g, h] = version.to_be_bytes();
            let stamp = Some([a, b, c, d, e, f, g, h, 0, 0]);
            model.begin(&At { stamp, read_version: Some(read), ..At::default() });
        };
        let mut model = Timeline::new(0);
        for second in 1..=60 {
            begin(&mut model, second * SECOND, second * SECOND);
            model.write(|now| *now = second);
        }
        begin(&mut model, 61 * SECOND, 61 * SECOND - WINDOW);
        assert_eq!((*model.snapshot(), *model.now(), model.past.len()), (41, 60, 22));
    }
}
