//! Functions that wait for a lock, a condition or a semaphore until a time.
//!
//! The time is one of a virtual clock: the C library must not be given it. It is asked to wait for a while of
//! real time, again and again.

use crate::{
    clock, cluster, real, turns,
    wait::{Target, Wait},
};
use libc::{
    EAGAIN, EBUSY, ETIMEDOUT, c_int, clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t,
    timespec,
};
use std::convert::identity;

/// How long a thread waits between two looks at the clock, nanoseconds: for what the cluster cannot end, and
/// for what it can.
const LOOK: u64 = 1_000_000;
const CONDITION: u64 = 10 * clock::SECOND;

/// A deadline that is to be virtual, and its clock.
struct Deadline {
    at: u64,
    clock: clockid_t,
}

impl Deadline {
    /// None if it is not virtual, or not valid.
    ///
    /// # Safety
    ///
    /// `until` is readable.
    unsafe fn of(clock: Option<clockid_t>, until: *const timespec) -> Option<Deadline> {
        if !clock::is_on() {
            return None;
        }
        // SAFETY: as the caller promises.
        let until = unsafe { *until };
        let clock = clock.unwrap_or_else(|| clock::clock_of(until));
        Some(Deadline { at: clock::when(clock, until)?, clock })
    }

    fn has_passed(&self) -> bool {
        clock::now() >= self.at
    }

    /// Waits in real time.
    fn really(&self, wait: impl FnOnce(timespec) -> c_int) -> c_int {
        let error = wait(clock::real_after(self.clock, self.at.saturating_sub(clock::now())));
        if error == ETIMEDOUT {
            clock::reach(self.at);
        }
        error
    }

    /// Waits for a lock or a semaphore: `wait` does until a real time, and returns 0 or an error. What can be
    /// had at once is, even if the time has passed: `attempt` does not wait.
    ///
    /// `place` is its address. `in_turn` says whether a signal ends the wait if threads take turns; none for
    /// what they do not wait for in turn.
    fn lock<T>(
        &self,
        place: *mut T,
        in_turn: Option<bool>,
        attempt: impl Fn() -> c_int,
        mut wait: impl FnMut(timespec) -> c_int,
    ) -> c_int {
        if let Some(ends_at_signal) = in_turn.filter(|_| cluster::are_turns_taken()) {
            return turns::wait(place, Some(self.at), ends_at_signal, attempt);
        }
        let mut error = match attempt() {
            EBUSY | EAGAIN => ETIMEDOUT,
            error => error,
        };
        while error == ETIMEDOUT && !self.has_passed() {
            let Some(waits) = Wait::until(self.at, Target::Looks) else { return self.really(wait) };
            while error == ETIMEDOUT && !waits.is_over() {
                error = wait(clock::real_after(self.clock, LOOK));
            }
        }
        error
    }

    /// Waits for a condition. It may return 0 although nobody has signalled it, as all such functions may.
    ///
    /// A signal that came together with the end of the time woke this thread: as the broadcast at that time
    /// woke all others too, none is lost.
    ///
    /// # Safety
    ///
    /// As for the functions that wait for a condition.
    unsafe fn condition(
        &self,
        condition: *mut pthread_cond_t,
        mutex: *mut pthread_mutex_t,
        wait: impl FnOnce(timespec) -> c_int,
    ) -> c_int {
        if self.has_passed() {
            // SAFETY: as the caller promises.
            return unsafe { give_way(mutex) };
        }
        if cluster::are_turns_taken() {
            // SAFETY: as the caller promises.
            return unsafe { turns::condition(condition, mutex, Some(self.at)) };
        }
        let Some(waits) = Wait::until(self.at, Target::Condition(condition)) else {
            return self.really(wait);
        };
        let error = wait(clock::real_after(self.clock, CONDITION));
        drop(waits);
        match error {
            0 | ETIMEDOUT if self.has_passed() => ETIMEDOUT,
            ETIMEDOUT => 0,
            _ => error,
        }
    }
}

/// Lets another thread have a mutex, as a wait until a time that has passed does. The C library would let
/// this thread sleep for a moment, in which virtual time could advance.
///
/// # Safety
///
/// As for the functions that wait for a condition.
unsafe fn give_way(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises, here and below.
    let error = unsafe { turns::pthread_mutex_unlock(mutex) };
    if error != 0 {
        return error;
    }
    cluster::take_turn(true);
    // SAFETY: as above.
    match unsafe { turns::pthread_mutex_lock(mutex) } {
        0 => ETIMEDOUT,
        error => error,
    }
}

/// What a semaphore's function returns.
fn result(error: c_int) -> c_int {
    if error == 0 { 0 } else { real::fail(error) }
}

/// The error of a semaphore's function.
fn error(result: c_int) -> c_int {
    if result == 0 { 0 } else { real::errno() }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as the caller promises, here and below.
    match unsafe { Deadline::of(None, until) } {
        // SAFETY: as above.
        None => unsafe { real::pthread_cond_timedwait(condition, mutex, until) },
        // SAFETY: as above.
        Some(deadline) => unsafe {
            deadline
                .condition(condition, mutex, |until| real::pthread_cond_timedwait(condition, mutex, &until))
        },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as the caller promises, here and below.
    match unsafe { Deadline::of(Some(clock), until) } {
        // SAFETY: as above.
        None => unsafe { real::pthread_cond_clockwait(condition, mutex, clock, until) },
        // SAFETY: as above.
        Some(deadline) => unsafe {
            deadline.condition(condition, mutex, |until| {
                real::pthread_cond_clockwait(condition, mutex, clock, &until)
            })
        },
    }
}

/// Functions that wait for a lock or a semaphore. `$attempt` does not wait. `$make` and `$read` turn an error
/// into the result of the function, and back. A function that names no clock has `CLOCK_REALTIME`.
macro_rules! locks {
    ($($name:ident($lock:ty $(, $clock:ident)?), $attempt:ident, $in_turn:expr, $make:expr, $read:expr;)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut $lock, $($clock: clockid_t,)? until: *const timespec) -> c_int {
            let clock = [$($clock,)? libc::CLOCK_REALTIME][0];
            // SAFETY: as the caller promises, here and below.
            match unsafe { Deadline::of(Some(clock), until) } {
                // SAFETY: as above.
                None => unsafe { real::$name(lock, $($clock,)? until) },
                Some(deadline) => $make(deadline.lock(
                    lock,
                    $in_turn,
                    // SAFETY: as above.
                    || $read(unsafe { libc::$attempt(lock) }),
                    // SAFETY: as above.
                    |until| $read(unsafe { real::$name(lock, $($clock,)? &until) }),
                )),
            }
        }
    )*};
}

locks! {
    sem_timedwait(sem_t), sem_trywait, Some(true), result, error;
    sem_clockwait(sem_t, clock), sem_trywait, Some(true), result, error;
    pthread_mutex_timedlock(pthread_mutex_t), pthread_mutex_trylock, Some(false), identity, identity;
    pthread_mutex_clocklock(pthread_mutex_t, clock), pthread_mutex_trylock, Some(false), identity, identity;
    pthread_rwlock_timedrdlock(pthread_rwlock_t), pthread_rwlock_tryrdlock, None, identity, identity;
    pthread_rwlock_timedwrlock(pthread_rwlock_t), pthread_rwlock_trywrlock, None, identity, identity;
    pthread_rwlock_clockrdlock(pthread_rwlock_t, clock), pthread_rwlock_tryrdlock, None, identity, identity;
    pthread_rwlock_clockwrlock(pthread_rwlock_t, clock), pthread_rwlock_trywrlock, None, identity, identity;
}
