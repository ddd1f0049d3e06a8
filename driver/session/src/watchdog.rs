//! Whether the cluster's thread gets on. A loop without an end in the simulator cannot be interrupted, but it
//! can be told: the thread beats whenever it is back in its main task, and whoever watches sees that it does
//! not.

use crate::wall;
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// The beats of a cluster's thread.
#[derive(Default)]
pub struct Pulse {
    beats: AtomicU64,
    /// Whether the thread waits for somebody else, or does what takes long and ends.
    is_resting: AtomicBool,
    /// The last beat that was seen, and when it was seen first.
    seen: Mutex<Option<(u64, Duration)>>,
}

impl Pulse {
    /// The thread gets on.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs what may take any time on the thread, such as waiting for a message.
    pub fn resting<T>(&self, run: impl FnOnce() -> T) -> T {
        self.rest();
        let done = run();
        self.beat();
        self.is_resting.store(false, Ordering::SeqCst);
        done
    }

    /// From here on, the thread does what takes long and ends.
    pub fn rest(&self) {
        self.is_resting.store(true, Ordering::SeqCst);
    }

    /// How long the thread has not got on, as far as it was asked for: to be asked again and again, about as
    /// often as the answer is to be exact.
    pub fn stands_still(&self) -> Duration {
        let (beats, now) = (self.beats.load(Ordering::Relaxed), wall::now());
        let mut seen = self.seen.lock();
        match *seen {
            Some((last, since)) if last == beats && !self.is_resting.load(Ordering::SeqCst) => {
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
    fn a_thread_stands_still_if_it_neither_beats_nor_rests() {
        let pulse = Pulse::default();
        let pause = || std::thread::park_timeout(Duration::from_millis(2));
        assert_eq!(pulse.stands_still(), Duration::ZERO);
        pause();
        let first = pulse.stands_still();
        assert!(first > Duration::ZERO);
        pause();
        assert!(pulse.stands_still() > first);
        pulse.beat();
        assert_eq!(pulse.stands_still(), Duration::ZERO);
        pulse.resting(|| {
            pause();
            assert_eq!(pulse.stands_still(), Duration::ZERO);
        });
        assert_eq!(pulse.stands_still(), Duration::ZERO, "it has just gone on");
    }
}
