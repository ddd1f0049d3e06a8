//! The wall clock, as seen from within the simulation.

use std::time::Duration;

/// The time of a clock that only advances. Within the simulation the C library's shows virtual time; this
/// asks the kernel.
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Keeps virtual time at the pace of the wall clock: how far one may be ahead of the other.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    wall: Duration,
    virtual_time: Duration,
}

impl Pace {
    /// A pace at which both clocks show the same time now.
    pub fn start(virtual_time: Duration) -> Pace {
        Pace { wall: now(), virtual_time }
    }

    /// How long ago it started.
    pub fn elapsed(&self) -> Duration {
        now().saturating_sub(self.wall)
    }

    /// How far virtual time is behind.
    pub fn behind(&self, virtual_time: Duration) -> Duration {
        let due = self.virtual_time + self.elapsed();
        due.saturating_sub(virtual_time)
    }
}
