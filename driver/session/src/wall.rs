//! The wall clock, as seen from within the simulation.

use rustix::event::{Timespec, poll};
use std::time::Duration;

/// The time of the kernel's monotonic clock. It is read by a system call, because the C library's functions
/// return virtual time within the simulation.
pub fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Sleeps for a moment of real time. The standard library would sleep in virtual time.
pub fn pause(duration: Duration) {
    let _ = poll(&mut [], Timespec::try_from(duration).ok().as_ref());
}

/// Keeps virtual time at the pace of the wall clock: computes how far virtual time is behind.
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

    /// How far this virtual time is behind the wall clock.
    pub fn behind(&self, virtual_time: Duration) -> Duration {
        let due = self.virtual_time + self.elapsed();
        due.saturating_sub(virtual_time)
    }
}
