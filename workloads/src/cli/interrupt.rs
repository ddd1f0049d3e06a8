//! Ctrl-C and a request to terminate: the first ends what is under way cleanly, the second at once.

use super::{Refusal, refuse};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Whether somebody has asked to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> Result<Interrupt, Refusal> {
        let interrupt = Interrupt::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order matters: at the second signal the flag is already set.
            let listening =
                signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, interrupt.0.clone())
                    .and_then(|_| signal_hook::flag::register(signal, interrupt.0.clone()));
            if let Err(error) = listening {
                refuse!("cannot listen for Ctrl-C: {error}");
            }
        }
        Ok(interrupt)
    }

    /// One that has happened.
    #[cfg(test)]
    pub fn already() -> Interrupt {
        let interrupt = Interrupt::default();
        interrupt.0.store(true, Ordering::Relaxed);
        interrupt
    }

    /// Whether it happened.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
