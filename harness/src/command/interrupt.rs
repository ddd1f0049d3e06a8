//! Interrupts: SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first signal ends the command cleanly, the second one
//! ends it immediately.

use super::{Refusal, refuse};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// The exit code of an interrupted command is this plus the number of the signal.
const SIGNALLED: u8 = 128;

/// Whether the command has been interrupted.
#[derive(Clone, Default)]
pub struct Interrupt {
    is_set: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Starts to listen for signals.
    pub fn listen() -> Result<Interrupt, Refusal> {
        let interrupt = Interrupt::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            // The order matters: at the second signal the flag is already set, and whenever the flag is set,
            // the number of the signal is set as well.
            let listening = signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(SIGNALLED) + signal,
                interrupt.is_set.clone(),
            )
            .and_then(|_| {
                signal_hook::flag::register_usize(signal, interrupt.signal.clone(), signal as usize)
            })
            .and_then(|_| signal_hook::flag::register(signal, interrupt.is_set.clone()));
            if let Err(error) = listening {
                refuse!("cannot listen for Ctrl-C: {error}");
            }
        }
        Ok(interrupt)
    }

    /// An interrupt that is already set.
    #[cfg(test)]
    pub fn already() -> Interrupt {
        let interrupt = Interrupt::default();
        interrupt.set();
        interrupt
    }

    /// Interrupts, as SIGTERM does.
    #[cfg(test)]
    pub fn set(&self) {
        self.signal.store(signal_hook::consts::SIGTERM as usize, Ordering::Relaxed);
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether there was a signal.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// The refusal with which an interrupted command ends. Its exit code is 128 plus the number of the
    /// signal. `when` describes how far the command came.
    pub fn refusal(&self, when: &str) -> Refusal {
        let code = SIGNALLED | self.signal.load(Ordering::Relaxed) as u8;
        Refusal::Interrupted(code, format!("interrupted {when}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_contains_the_signal() {
        assert_eq!(
            Interrupt::already().refusal("after 3 of 7 runs"),
            Refusal::Interrupted(143, "interrupted after 3 of 7 runs".into())
        );
    }
}
