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
#[derive(Clone, Debug)]
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
    /// How many records are read at once where a row needs one: the cursor waits once for all of them, and
    /// not for one after another. No more are read than [`rows`](Limits::rows) and
    /// [`scanned`](Limits::scanned) leave. With 1, and with a limit on [`bytes`](Limits::bytes), which are
    /// not known before they are read, they are read one by one.
    pub pipeline: usize,
}

/// The records that are read at once, unless a call says otherwise: as in Java's Record Layer.
const PIPELINE: usize = 10;

impl Default for Limits {
    fn default() -> Limits {
        Limits { rows: None, scanned: None, bytes: None, time: None, pipeline: PIPELINE }
    }
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
    /// The rows that were returned.
    given: AtomicUsize,
}

impl Spent {
    /// Nothing read yet; the time begins now.
    pub fn new(limits: Limits) -> Spent {
        let end = limits.time.as_ref().map(|(time, env)| env.now() + *time);
        let (scanned, bytes, given) = Default::default();
        Spent(Arc::new(Inner { limits, end, scanned, bytes, given }))
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Counts a record or an index entry of this many bytes that was read.
    pub fn count(&self, bytes: usize) {
        self.begin();
        self.weigh(bytes);
    }

    /// Counts a record that is going to be read.
    pub(crate) fn begin(&self) {
        self.0.scanned.fetch_add(1, Ordering::Relaxed);
    }

    /// There was no such record.
    pub(crate) fn forgo(&self) {
        self.0.scanned.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the bytes of a record that was counted when its read began.
    pub(crate) fn weigh(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a row that is returned.
    pub(crate) fn give(&self) {
        self.0.given.fetch_add(1, Ordering::Relaxed);
    }

    /// How many rows may be read at once: at least one.
    pub(crate) fn at_once(&self) -> usize {
        let Limits { rows, bytes, pipeline, .. } = &self.0.limits;
        let given = self.0.given.load(Ordering::Relaxed);
        let most = match bytes {
            Some(_) => 1,
            None => rows.map_or(*pipeline, |rows| rows.saturating_sub(given).min(*pipeline)),
        };
        most.max(1)
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
