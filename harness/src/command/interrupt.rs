//! Requests to end: Ctrl-C, a request to terminate, a terminal that is gone. The first ends what is under way
//! cleanly, the second at once.

use super::{Refusal, refuse};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What a command does that was asked to end exits with this and the signal's number.
const SIGNALLED: u8 = 128;

/// Whether somebody has asked to stop.
#[derive(Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> Result<Interrupt, Refusal> {
        let interrupt = Interrupt::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            // The order matters: at the second signal the flag is already set, and what is set says which it was.
            let listening = signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(SIGNALLED) + signal,
                interrupt.asked.clone(),
            )
            .and_then(|_| {
                signal_hook::flag::register_usize(signal, interrupt.signal.clone(), signal as usize)
            })
            .and_then(|_| signal_hook::flag::register(signal, interrupt.asked.clone()));
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
        interrupt.signal.store(signal_hook::consts::SIGTERM as usize, Ordering::Relaxed);
        interrupt.asked.store(true, Ordering::Relaxed);
        interrupt
    }

    /// Whether it happened.
    pub fn is_set(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// How a command ends that was asked to: with 128 and the number of the signal. `when` says how far it came.
    pub fn refusal(&self, when: &str) -> Refusal {
        let code = SIGNALLED | self.signal.load(Ordering::Relaxed) as u8;
        Refusal::Interrupted(code, format!("interrupted {when}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_which_signal_it_was() {
        assert_eq!(
            Interrupt::already().refusal("after 3 of 7 runs"),
            Refusal::Interrupted(143, "interrupted after 3 of 7 runs".into())
        );
    }
}
