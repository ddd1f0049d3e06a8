//! Functions that sleep.

use crate::{
    clock, cluster, real,
    wait::{Target, Wait},
};
use libc::{c_int, c_uint, clockid_t, timespec, useconds_t};
use std::ptr::null;

/// Sleeps until a virtual time. The result is 0, or `EINTR`.
pub fn until(at: u64) -> c_int {
    while clock::now() < at {
        let Some(wait) = Target::file().and_then(|file| Wait::until(at, file)) else {
            return really(at);
        };
        if wait.block(&[], null()) < 0 {
            return real::errno();
        }
    }
    0
}

/// Sleeps in real time.
fn really(at: u64) -> c_int {
    let mut left = clock::to_timespec(0);
    // SAFETY: both times are there.
    let error = unsafe { real::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &clock::left(at), &mut left) };
    clock::reach(at - if error == 0 { 0 } else { clock::length(left).unwrap_or(0) });
    error
}

/// Sleeps, and stores how much is left if a signal interrupts it.
///
/// # Safety
///
/// `left` is null, or has room for a time.
unsafe fn sleep_for(nanos: u64, left: *mut timespec) -> c_int {
    let at = clock::after(nanos);
    let error = until(at);
    if error != 0 && !left.is_null() {
        // SAFETY: as the caller promises.
        unsafe { left.write(clock::left(at)) };
    }
    error
}

/// A sleep without a length lets other threads run. The kernel would let this one sleep for a moment, in
/// which virtual time could advance.
fn give_way() -> c_int {
    match cluster::are_turns_taken() {
        true => cluster::take_turn(true),
        // SAFETY: the function takes nothing.
        false => drop(unsafe { libc::sched_yield() }),
    }
    0
}

fn failing(error: c_int) -> c_int {
    if error == 0 { 0 } else { real::fail(error) }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(length: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: as the caller promises.
    match clock::length(unsafe { *length }).filter(|_| clock::is_on()) {
        Some(0) => give_way(),
        // SAFETY: as the caller promises.
        Some(nanos) => failing(unsafe { sleep_for(nanos, left) }),
        // SAFETY: as the caller promises.
        None => unsafe { real::nanosleep(length, left) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    // SAFETY: as the caller promises.
    let (length, at) = unsafe { (clock::length(*time), clock::when(clock, *time)) };
    match (at, length) {
        (Some(at), _) if clock::is_on() && flags == libc::TIMER_ABSTIME => until(at),
        (Some(_), Some(0)) if clock::is_on() => give_way(),
        // SAFETY: as the caller promises.
        (Some(_), Some(nanos)) if clock::is_on() => unsafe { sleep_for(nanos, left) },
        // SAFETY: as the caller promises.
        _ => unsafe { real::clock_nanosleep(clock, flags, time, left) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// It has none to promise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn usleep(micros: useconds_t) -> c_int {
    match micros {
        0 if clock::is_on() => give_way(),
        _ if clock::is_on() => failing(until(clock::after(u64::from(micros) * 1_000))),
        // SAFETY: it takes any number.
        _ => unsafe { real::usleep(micros) },
    }
}

/// As in the C library: the seconds that are left if a signal interrupts it.
///
/// # Safety
///
/// It has none to promise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sleep(seconds: c_uint) -> c_uint {
    if seconds == 0 || !clock::is_on() {
        // SAFETY: it takes any number.
        return unsafe { real::sleep(seconds) };
    }
    let at = clock::after(u64::from(seconds) * clock::SECOND);
    match until(at) {
        0 => 0,
        _ => at.saturating_sub(clock::now()).div_ceil(clock::SECOND) as c_uint,
    }
}
