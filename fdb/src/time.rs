//! Time and randomness outside of a simulation.

use futures::future::BoxFuture;
use shaketable_tx::Environment;
use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

/// The process's clock and timers, and the system's randomness. Works on any executor. All values of a
/// process measure time from the same instant, so that times of several databases can be compared.
#[derive(Clone, Copy, Debug)]
pub struct RealTime(());

/// The instant from which times are measured.
#[allow(clippy::disallowed_methods, reason = "a real cluster's time is the wall's")]
fn began() -> Instant {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    *BEGAN.get_or_init(Instant::now)
}

impl RealTime {
    /// The process's time, measured from this call at the latest.
    pub fn new() -> RealTime {
        began();
        RealTime(())
    }
}

impl Default for RealTime {
    fn default() -> RealTime {
        RealTime::new()
    }
}

impl Environment for RealTime {
    fn now(&self) -> Duration {
        began().elapsed()
    }

    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has randomness");
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(futures_timer::Delay::new(duration))
    }
}
