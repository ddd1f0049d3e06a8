//! A wakeup pipe: other threads wake the one thread that waits for work.
//!
//! The waiting thread runs the simulation, where the standard library's clock shows virtual time, so that a
//! condition variable with a timeout does not work. `poll` on a pipe does, because the kernel measures the
//! timeout.

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

/// A wakeup for one waiting thread, which any number of threads may signal.
pub struct Wakeup {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Whether the thread waits, or is about to. While it does not, waking it costs no system call.
    waits: AtomicBool,
}

impl Wakeup {
    /// A wakeup that is not signalled. Fails if the process cannot open a pipe.
    pub fn new() -> io::Result<Wakeup> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Wakeup { reader, writer, waits: AtomicBool::new(false) })
    }

    /// Wakes the thread if it waits. The work that it is to find must have been stored before.
    pub fn wake(&self) {
        if self.waits.swap(false, Ordering::SeqCst) {
            // A full pipe wakes the thread as well, so a failed write needs no handling.
            let _ = io::write(&self.writer, &[1]);
        }
    }

    /// Waits until the thread is woken or until the timeout; returns at once if `is_idle` is false.
    pub fn wait(&self, timeout: Option<Duration>, is_idle: impl Fn() -> bool) {
        self.waits.store(true, Ordering::SeqCst);
        if is_idle() {
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            let mut readers = [PollFd::new(&self.reader, PollFlags::IN)];
            // A signal interrupts it: the caller checks for work and waits again.
            let _ = poll(&mut readers, timeout.as_ref());
        }
        self.waits.store(false, Ordering::SeqCst);
        let mut drained = [0; 16];
        while matches!(io::read(&self.reader, &mut drained), Ok(n) if n == drained.len()) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn waking_ends_the_wait_and_so_does_the_timeout() {
        let wakeup = Arc::new(Wakeup::new().expect("a pipe"));
        let found = Arc::new(AtomicBool::new(false));
        let (waker, stored) = (wakeup.clone(), found.clone());
        let thread = std::thread::spawn(move || {
            stored.store(true, Ordering::SeqCst);
            waker.wake();
        });
        while !found.load(Ordering::SeqCst) {
            wakeup.wait(None, || !found.load(Ordering::SeqCst));
        }
        thread.join().expect("it wakes the thread");
        wakeup.wait(Some(Duration::from_millis(1)), || true);
    }
}
