//! `syscall`, for the waits of Rust's standard library and of others that use the kernel's futexes: they wait
//! for a word to change, or until a time.
//!
//! Code of `libfdb_c.so` also calls it. What it waits for with a timeout there, a program of its own would
//! notice: it makes such system calls itself.

use crate::{
    chance, clock, real,
    wait::{Target, Wait},
};
use libc::{
    EAGAIN, ETIMEDOUT, FUTEX_CLOCK_REALTIME, FUTEX_CMD_MASK, FUTEX_WAIT, FUTEX_WAIT_BITSET, c_int, c_long,
    timespec,
};
use std::sync::atomic::{AtomicU32, Ordering};

/// How long a thread waits between two looks at the clock, if the cluster does not wake it, nanoseconds.
const LOOK: u64 = 100_000_000;

/// A wait that is to be virtual.
struct Deadline {
    at: u64,
    /// The clock of a deadline; none for a length of time.
    clock: Option<c_int>,
}

impl Deadline {
    /// None if the system call is no such wait.
    ///
    /// # Safety
    ///
    /// As for the system call.
    unsafe fn of(number: c_long, operation: c_int, timeout: *const timespec) -> Option<Deadline> {
        if number != libc::SYS_futex || !clock::is_on() {
            return None;
        }
        let clock = match operation & FUTEX_CMD_MASK {
            FUTEX_WAIT => None,
            FUTEX_WAIT_BITSET if operation & FUTEX_CLOCK_REALTIME != 0 => Some(libc::CLOCK_REALTIME),
            FUTEX_WAIT_BITSET => Some(libc::CLOCK_MONOTONIC),
            _ => return None,
        };
        // SAFETY: these operations have a timeout, or null.
        let timeout = *unsafe { timeout.as_ref()? };
        let at = match clock {
            None => clock::after(clock::length(timeout)?),
            Some(clock) => clock::when(clock, timeout)?,
        };
        Some(Deadline { at, clock })
    }

    /// The timeout that lasts so long in real time.
    fn real(&self, nanos: u64) -> timespec {
        self.clock.map_or_else(|| clock::to_timespec(nanos), |clock| clock::real_after(clock, nanos))
    }

    /// `call` waits with a timeout, unless the word has changed. Between two looks at the clock a thread may
    /// miss that it is woken, but not that the word has changed: it is as if it had begun to wait later.
    ///
    /// # Safety
    ///
    /// As for the system call.
    unsafe fn wait(
        &self,
        word: *const u32,
        value: u32,
        operation: c_int,
        call: impl Fn(timespec) -> c_long,
    ) -> c_long {
        while clock::now() < self.at {
            let target = Target::Word(word, operation & libc::FUTEX_PRIVATE_FLAG);
            let Some(wait) = Wait::until(self.at, target) else { return self.really(call) };
            let result = call(self.real(LOOK));
            drop(wait);
            // As for a condition: whoever else waits is woken at the end of the time as well.
            match result {
                0 if clock::now() < self.at => return 0,
                -1 if real::errno() != ETIMEDOUT => return -1,
                _ => {}
            }
        }
        // The kernel would let the thread sleep for a moment, in which virtual time could advance.
        // SAFETY: the word is one that other threads change, as the caller promises.
        let is_unchanged = unsafe { AtomicU32::from_ptr(word.cast_mut()) }.load(Ordering::SeqCst) == value;
        real::fail(if is_unchanged { ETIMEDOUT } else { EAGAIN }).into()
    }

    fn really(&self, call: impl Fn(timespec) -> c_long) -> c_long {
        let result = call(self.real(self.at.saturating_sub(clock::now())));
        if result < 0 && real::errno() == ETIMEDOUT {
            clock::reach(self.at);
        }
        result
    }
}

/// As in the C library, whose function has as many arguments as the system call, of these six.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: as the caller promises, here and below.
    if let Some(drawn) = unsafe { chance::of_system_call(number, a, b) } {
        return drawn;
    }
    let operation = b as c_int;
    // SAFETY: as above.
    match unsafe { Deadline::of(number, operation, d as *const timespec) } {
        // SAFETY: as above.
        None => unsafe { real::syscall(number, a, b, c, d, e, f) },
        // SAFETY: as above.
        Some(deadline) => unsafe {
            deadline.wait(a as *const u32, c as u32, operation, |timeout| {
                // With another timeout.
                real::syscall(number, a, b, c, (&raw const timeout) as c_long, e, f)
            })
        },
    }
}
