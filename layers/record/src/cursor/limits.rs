//! Limits on the work that the cursors of one call may do together.

use super::Stop;
use shaketable_tx::Env;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What one call may do before it stops; continue in another transaction. Without a limit a call reads to the
/// end.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The rows that are returned. The scans of a store leave it to whoever combines them:
    /// [`CursorExt::limited`](super::CursorExt::limited) applies it.
    pub rows: Option<usize>,
    /// The records and index entries that are read. Each scan reads at least one, so that each call makes
    /// progress.
    pub scanned: Option<usize>,
    /// The bytes of keys and values that are read; the row with which they are reached is returned.
    pub bytes: Option<usize>,
    /// How long the call may read, by this clock.
    pub time: Option<(Duration, Env)>,
}

impl Limits {
    /// At most this number of rows.
    pub fn rows(rows: usize) -> Limits {
        Limits { rows: Some(rows), ..Limits::default() }
    }
}

/// What the cursors of one call have read so far, counted against its [`Limits`]. Its clones count together.
#[derive(Clone)]
pub struct Spent(Arc<Inner>);

struct Inner {
    limits: Limits,
    end: Option<Duration>,
    scanned: AtomicUsize,
    bytes: AtomicUsize,
}

impl Spent {
    /// Nothing read yet; the time begins now.
    pub fn new(limits: Limits) -> Spent {
        let end = limits.time.as_ref().map(|(time, env)| env.now() + *time);
        Spent(Arc::new(Inner { limits, end, scanned: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }))
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Counts a record or an index entry of this many bytes that was read.
    pub fn count(&self, bytes: usize) {
        self.0.scanned.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many records and index entries were read.
    pub fn scanned(&self) -> usize {
        self.0.scanned.load(Ordering::Relaxed)
    }

    /// How many more records and index entries may be read; `None` without a limit.
    pub(crate) fn left(&self) -> Option<usize> {
        self.0.limits.scanned.map(|limit| limit.saturating_sub(self.scanned()))
    }

    /// The limit that is reached, before another record or entry is read. A scan that has not read anything
    /// yet reads one nevertheless.
    pub fn reached(&self) -> Option<Stop> {
        let inner = &*self.0;
        let (scanned, bytes) = (self.scanned(), inner.bytes.load(Ordering::Relaxed));
        if inner.limits.scanned.is_some_and(|limit| scanned >= limit) {
            return Some(Stop::Scanned);
        }
        if inner.limits.bytes.is_some_and(|limit| bytes >= limit) {
            return Some(Stop::Bytes);
        }
        let over = inner.limits.time.as_ref().zip(inner.end).is_some_and(|((_, env), end)| env.now() >= end);
        over.then_some(Stop::Time)
    }
}
