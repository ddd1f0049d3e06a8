//! Wakes a thread that waits for work.
//!
//! The waiting thread is within the simulation, where the clock of the standard library shows virtual time,
//! so that waiting with a timeout does not work there. A pipe does, because the kernel measures its timeout.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io,
    pipe::{PipeFlags, pipe_with},
};
use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// A bell with one listener and any number of ringers.
pub struct Bell {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Whether the listener waits, or is about to.
    waits: AtomicBool,
}

impl Bell {
    /// A silent bell. Fails if the process cannot open a pipe.
    pub fn new() -> io::Result<Bell> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Bell { reader, writer, waits: AtomicBool::new(false) })
    }

    /// Wakes the listener if it waits. What it is to find must have been stored before.
    pub fn ring(&self) {
        if self.waits.swap(false, Ordering::SeqCst) {
            // A full pipe wakes the listener as well.
            let _ = io::write(&self.writer, &[1]);
        }
    }

    /// Waits for a ring or until the timeout; returns at once if `is_idle` is false.
    pub fn wait(&self, timeout: Option<Duration>, is_idle: impl Fn() -> bool) {
        self.waits.store(true, Ordering::SeqCst);
        if is_idle() {
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            let mut readers = [PollFd::new(&self.reader, PollFlags::IN)];
            // A signal interrupts it: the caller looks for work and waits again.
            let _ = poll(&mut readers, timeout.as_ref());
        }
        self.waits.store(false, Ordering::SeqCst);
        let mut rung = [0; 16];
        while matches!(io::read(&self.reader, &mut rung), Ok(n) if n == rung.len()) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_ring_ends_the_wait_and_so_does_the_timeout() {
        let bell = Arc::new(Bell::new().expect("a pipe"));
        let found = Arc::new(AtomicBool::new(false));
        let (ringer, stored) = (bell.clone(), found.clone());
        let thread = std::thread::spawn(move || {
            stored.store(true, Ordering::SeqCst);
            ringer.ring();
        });
        while !found.load(Ordering::SeqCst) {
            bell.wait(None, || !found.load(Ordering::SeqCst));
        }
        thread.join().expect("it rings");
        bell.wait(Some(Duration::from_millis(1)), || true);
    }
}
