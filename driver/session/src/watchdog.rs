//! A heartbeat of the cluster's thread. An infinite loop in the simulator cannot be interrupted, but it can
//! be detected: the thread beats whenever it returns to its main task, and other threads see when it stops
//! to.

use crate::wall;
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The heartbeat of a cluster's thread.
#[derive(Default)]
pub struct Heartbeat {
    beats: AtomicU64,
    /// Whether no beats are expected: the thread waits for another one, or does long work that is known to
    /// end.
    is_suspended: AtomicBool,
    /// The last beat that was seen, and when it was seen first.
    seen: Mutex<Option<(u64, Duration)>>,
}

impl Heartbeat {
    /// The thread makes progress.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs what may take any time, such as waiting for a message. No beats are expected meanwhile.
    pub fn suspended<T>(&self, run: impl FnOnce() -> T) -> T {
        self.suspend();
        let done = run();
        self.beat();
        self.is_suspended.store(false, Ordering::SeqCst);
        done
    }

    /// From here on no beats are expected: the thread does long work that is known to end.
    pub fn suspend(&self) {
        self.is_suspended.store(true, Ordering::SeqCst);
    }

    /// How long the thread has made no progress, counted from the first call that saw the last beat. It must
    /// be called repeatedly: the interval between calls is the precision of the answer.
    pub fn stalled_for(&self) -> Duration {
        let (beats, now) = (self.beats.load(Ordering::Relaxed), wall::now());
        let mut seen = self.seen.lock();
        match *seen {
            Some((last, since)) if last == beats && !self.is_suspended.load(Ordering::SeqCst) => {
                now.saturating_sub(since)
            }
            _ => {
                *seen = Some((beats, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stalls_if_it_neither_beats_nor_is_suspended() {
        let heartbeat = Heartbeat::default();
        let pause = || std::thread::park_timeout(Duration::from_millis(2));
        assert_eq!(heartbeat.stalled_for(), Duration::ZERO);
        pause();
        let first = heartbeat.stalled_for();
        assert!(first > Duration::ZERO);
        pause();
        assert!(heartbeat.stalled_for() > first);
        heartbeat.beat();
        assert_eq!(heartbeat.stalled_for(), Duration::ZERO);
        heartbeat.suspended(|| {
            pause();
            assert_eq!(heartbeat.stalled_for(), Duration::ZERO);
        });
        assert_eq!(heartbeat.stalled_for(), Duration::ZERO, "it has just made progress");
    }
}
