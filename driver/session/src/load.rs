//! How busy the cluster's thread is, by the wall clock.

use crate::wall;
use parking_lot::Mutex;
use std::time::Duration;

/// The shortest time over which it is measured, as in FoundationDB's client.
const SHORTEST: Duration = Duration::from_secs(1);

/// Measures how a thread divides its time between waiting for work and being busy.
pub struct Load(Mutex<State>);

struct State {
    /// How long the thread has waited in total, without the wait that is in progress.
    waited: Duration,
    /// When the wait began that is in progress, if there is one.
    waits_since: Option<Duration>,
    /// When the measured interval began, and how long the thread had waited by then.
    from: (Duration, Duration),
    /// The result of the last measurement.
    share: f64,
}

impl Load {
    /// The load of a thread that is busy from now on, unless it waits.
    pub fn new() -> Load {
        let from = (wall::now(), Duration::ZERO);
        Load(Mutex::new(State { waited: Duration::ZERO, waits_since: None, from, share: 0.0 }))
    }

    /// Runs `wait`, in which the thread waits for work.
    pub fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.0.lock().waits_since = Some(wall::now());
        let done = wait();
        let mut state = self.0.lock();
        state.waited = state.waited_until(wall::now());
        state.waits_since = None;
        done
    }

    /// The share of its time, from 0 to 1, that the thread is busy. It is measured anew if the last measure
    /// is at least a second old, and covers the time since then.
    pub fn share(&self) -> f64 {
        let mut state = self.0.lock();
        let now = wall::now();
        let ((begun, waited_then), waited) = (state.from, state.waited_until(now));
        let elapsed = now.saturating_sub(begun);
        if elapsed >= SHORTEST {
            let idle = waited.saturating_sub(waited_then).div_duration_f64(elapsed);
            state.share = (1.0 - idle).clamp(0.0, 1.0);
            state.from = (now, waited);
        }
        state.share
    }
}

impl State {
    fn waited_until(&self, now: Duration) -> Duration {
        self.waited + self.waits_since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load whose measure is due.
    fn due(load: &Load) -> &Load {
        let mut state = load.0.lock();
        state.from.0 = wall::now().saturating_sub(SHORTEST);
        drop(state);
        load
    }

    #[test]
    fn a_thread_is_busy_unless_it_waits() {
        let load = Load::new();
        assert!(load.share() <= 0.0, "nothing is measured yet");
        assert!(due(&load).share() > 0.99, "it has not waited");
        load.waiting(|| {
            load.0.lock().waits_since = Some(wall::now().saturating_sub(SHORTEST));
            assert!(due(&load).share() < 0.01, "it waits, and has done nothing else");
        });
        assert!(load.share() < 0.01, "what was measured holds for a second");
        {
            let mut state = load.0.lock();
            state.from.1 = state.waited;
        }
        assert!(due(&load).share() > 0.99, "it is busy again");
    }
}
