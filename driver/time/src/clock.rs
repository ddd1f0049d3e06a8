//! The virtual clock, and the functions that read it.
//!
//! Virtual time is counted in nanoseconds since the start of the process. It is the time of the cluster,
//! which advances while something waits for it, and what real waits have added: those before the cluster
//! runs, and after it.

use crate::{cluster, real, sleep};
use libc::{c_int, c_void, clockid_t, time_t, timespec, timeval};
use std::{
    cell::Cell,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

pub const SECOND: u64 = 1_000_000_000;

/// What `CLOCK_REALTIME` shows at the start of a process: the beginning of 2026, UTC.
const REALTIME: u64 = 1_767_225_600 * SECOND;

/// What `CLOCK_MONOTONIC` shows then: an hour.
const MONOTONIC: u64 = 3_600 * SECOND;

/// By how much `CLOCK_TAI` is ahead of `CLOCK_REALTIME`.
const TAI: u64 = 37 * SECOND;

/// A time that is never reached. It can be added to the base of any clock.
const NEVER: u64 = u64::MAX / 4;

/// How often a thread reads the clock while it stands still, before it is taken for one that waits for a time
/// in this way, and how long it then sleeps, nanoseconds.
const MOST_READS: u32 = 10_000;
const MOMENT: u64 = 1_000_000;

/// What real waits have added.
static ADDED: AtomicU64 = AtomicU64::new(0);

/// Whether the environment asks for virtual time.
pub fn is_on() -> bool {
    const UNKNOWN: u8 = 0;
    const OFF: u8 = 1;
    const ON: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => {
            let is_on = is_asked_for();
            STATE.store(if is_on { ON } else { OFF }, Ordering::Relaxed);
            is_on
        }
        state => state == ON,
    }
}

fn is_asked_for() -> bool {
    // SAFETY: the name ends with a zero, and a value is a string until the environment is changed, which no
    // thread does while another reads it.
    unsafe {
        let value = libc::getenv(c"SHAKETABLE_TIME".as_ptr());
        !value.is_null() && std::ffi::CStr::from_ptr(value) == c"1"
    }
}

/// Virtual time.
pub fn now() -> u64 {
    ADDED.load(Ordering::SeqCst) + cluster::now()
}

/// Virtual time for a program that reads a clock. One that reads it again and again sleeps now and then,
/// because time would stand still otherwise.
fn shown() -> u64 {
    thread_local! {
        static LAST: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
    }
    let now = now();
    // A thread whose variables are gone is about to end.
    let reads = LAST.try_with(|last| {
        let (time, reads) = last.get();
        let reads = if time == now { reads + 1 } else { 0 };
        last.set((now, reads));
        reads
    });
    if reads.is_ok_and(|reads| reads >= MOST_READS) {
        sleep::until(now + MOMENT);
    }
    self::now()
}

/// The cluster's time when virtual time is `at`, unless real waits add to it.
pub fn of_cluster(at: u64) -> u64 {
    at.saturating_sub(ADDED.load(Ordering::SeqCst))
}

/// A real wait has ended: virtual time is `at` from now on, unless it is later. One in a callback does not
/// move it: the runtime of a language may wait there, for as long as other threads run.
pub fn reach(at: u64) {
    if !cluster::is_here() {
        ADDED.fetch_max(at.saturating_sub(cluster::now()), Ordering::SeqCst);
    }
}

/// How much later `nanos` from now is.
pub fn after(nanos: u64) -> u64 {
    now() + nanos.min(NEVER)
}

/// How long it takes until then.
pub fn left(at: u64) -> timespec {
    to_timespec(at.saturating_sub(now()))
}

/// What a clock shows at the start of the process; none if it is not virtual, such as that of used processor
/// time.
fn base(clock: clockid_t) -> Option<u64> {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM => Some(REALTIME),
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME
        | libc::CLOCK_BOOTTIME_ALARM => Some(MONOTONIC),
        libc::CLOCK_TAI => Some(REALTIME + TAI),
        _ => None,
    }
}

/// The virtual time at which a clock shows `time`; none if the clock is not virtual or the time not valid.
pub fn when(clock: clockid_t, time: timespec) -> Option<u64> {
    base(clock).zip(length(time)).map(|(base, shown)| shown.saturating_sub(base))
}

/// Nanoseconds; none if it is not valid.
pub fn length(time: timespec) -> Option<u64> {
    let nanos = u64::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < SECOND)?;
    // A time before 1970 has passed.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Some(seconds.saturating_mul(SECOND).saturating_add(nanos).min(NEVER))
}

/// The clock whose time a deadline is: no program names it for a condition. Virtual clocks of both kinds
/// differ by decades.
pub fn clock_of(deadline: timespec) -> clockid_t {
    let between = (REALTIME / SECOND / 2) as time_t;
    if deadline.tv_sec < between { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
}

/// What a real clock shows after so many nanoseconds.
pub fn real_after(clock: clockid_t, nanos: u64) -> timespec {
    let mut time = to_timespec(0);
    // SAFETY: there is room for the time.
    unsafe { real::clock_gettime(clock, &mut time) };
    to_timespec(length(time).unwrap_or(0).saturating_add(nanos))
}

pub fn to_timespec(nanos: u64) -> timespec {
    timespec { tv_sec: (nanos / SECOND) as time_t, tv_nsec: (nanos % SECOND) as libc::c_long }
}

/// As in the C library; the clocks of real time and those that count from a start are virtual.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match base(clock).filter(|_| is_on()) {
        // SAFETY: as the caller promises.
        None => unsafe { real::clock_gettime(clock, time) },
        Some(base) => {
            // SAFETY: as the caller promises.
            unsafe { time.write(to_timespec(base + shown())) };
            0
        }
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    if !is_on() || time.is_null() {
        // SAFETY: as the caller promises.
        return unsafe { real::gettimeofday(time, zone) };
    }
    let now = to_timespec(REALTIME + shown());
    // SAFETY: as the caller promises.
    unsafe { time.write(timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1_000 }) };
    0
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut time_t) -> time_t {
    if !is_on() {
        // SAFETY: as the caller promises.
        return unsafe { real::time(time) };
    }
    let now = ((REALTIME + shown()) / SECOND) as time_t;
    if !time.is_null() {
        // SAFETY: as the caller promises.
        unsafe { time.write(now) };
    }
    now
}
