//! Time and randomness, provided by a backend.
//!
//! A layer that needs neither does not take an [`Env`]. Draw ids *before* a retry loop, never inside it: an
//! id drawn inside the loop differs in each attempt, and an attempt whose commit result is unknown may then
//! leave a duplicate under its own id.

use futures::future::BoxFuture;
use std::{fmt, sync::Arc, time::Duration};

/// The trait through which a backend provides time and randomness.
pub trait Environment: Send + Sync + 'static {
    /// Monotonic time since some fixed point of this process. Two processes have nothing in common.
    fn now(&self) -> Duration;
    /// Fills `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);
    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// A cheap handle to a backend's time and randomness.
#[derive(Clone)]
pub struct Env(Arc<dyn Environment>);

impl Env {
    /// A handle to `environment`.
    pub fn new(environment: impl Environment) -> Env {
        Env(Arc::new(environment))
    }

    /// Monotonic time since some fixed point of this process. Two processes have nothing in common: a time
    /// that one stores means nothing to another, nor to the next incarnation of the same client.
    pub fn now(&self) -> Duration {
        self.0.now()
    }

    /// Completes after `duration`.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }

    /// A random 64-bit number.
    pub fn random_u64(&self) -> u64 {
        u64::from_le_bytes(self.random_bytes())
    }

    /// `N` random bytes.
    pub fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env")
    }
}
