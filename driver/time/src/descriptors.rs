//! Functions that wait for files with a timeout.
//!
//! A thread waits for its files and for one more, which the cluster writes to when the time has come. What
//! the function is to find then, it is asked for without a timeout.

use crate::{
    clock, real,
    wait::{Target, Wait},
};
use libc::{c_int, epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use std::{ptr::null, slice};

/// No time.
const NONE: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// Waits until `ask` finds something, or until a virtual time. `ask` does what the function does, for this
/// long at most; `files` are those that it asks for.
fn until(
    at: u64,
    mask: *const sigset_t,
    files: impl FnOnce() -> Vec<pollfd>,
    mut ask: impl FnMut(timespec) -> c_int,
) -> c_int {
    let found = ask(NONE);
    if found != 0 || clock::now() >= at {
        return found;
    }
    let files = files();
    while clock::now() < at {
        let Some(wait) = Target::file().and_then(|file| Wait::until(at, file)) else {
            let found = ask(clock::left(at));
            if found == 0 {
                clock::reach(at);
            }
            return found;
        };
        if wait.block(&files, mask) < 0 {
            return -1;
        }
        drop(wait);
        let found = ask(NONE);
        if found != 0 {
            return found;
        }
    }
    0
}

/// The virtual time at which a timeout in milliseconds is over; none if it is not one to wait for.
fn after_millis(timeout: c_int) -> Option<u64> {
    let millis = u64::try_from(timeout).ok().filter(|millis| *millis > 0 && clock::is_on())?;
    Some(clock::after(millis * 1_000_000))
}

/// The same for another timeout.
///
/// # Safety
///
/// It is null or readable.
unsafe fn after(timeout: *const timespec) -> Option<u64> {
    // SAFETY: as the caller promises.
    let nanos = clock::length(unsafe { *timeout.as_ref()? })?;
    (nanos > 0 && clock::is_on()).then(|| clock::after(nanos))
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    match after_millis(timeout) {
        // SAFETY: as the caller promises.
        None => unsafe { real::poll(files, count, timeout) },
        // SAFETY: as the caller promises.
        Some(at) => unsafe { poll_until(at, files, count, null()) },
    }
}

/// # Safety
///
/// As for `ppoll`.
unsafe fn poll_until(at: u64, files: *mut pollfd, count: nfds_t, mask: *const sigset_t) -> c_int {
    let all = || match count {
        0 => Vec::new(),
        // SAFETY: these are as many, as the caller promises.
        _ => unsafe { slice::from_raw_parts(files, count as usize) }.to_vec(),
    };
    // SAFETY: as the caller promises.
    until(at, mask, all, |timeout| unsafe { real::ppoll(files, count, &timeout, mask) })
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    files: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller promises, here and below.
    match unsafe { after(timeout) } {
        // SAFETY: as above.
        None => unsafe { real::ppoll(files, count, timeout, mask) },
        // SAFETY: as above.
        Some(at) => unsafe { poll_until(at, files, count, mask) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { epoll_pwait(epoll, events, most, timeout, null()) }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let Some(at) = after_millis(timeout) else {
        // SAFETY: as the caller promises.
        return unsafe { real::epoll_pwait(epoll, events, most, timeout, mask) };
    };
    let all = || vec![pollfd { fd: epoll, events: libc::POLLIN, revents: 0 }];
    until(at, mask, all, |timeout| {
        let millis = clock::length(timeout).unwrap_or(0).div_ceil(1_000_000);
        // SAFETY: as the caller promises.
        unsafe { real::epoll_pwait(epoll, events, most, c_int::try_from(millis).unwrap_or(c_int::MAX), mask) }
    })
}

/// The three sets of `select`, and how many files they have room for.
struct Sets {
    count: c_int,
    sets: [*mut fd_set; 3],
}

/// What is waited for, for a file of each set.
const EVENTS: [libc::c_short; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];

impl Sets {
    /// The bytes of a set that have files; none for one that is null.
    ///
    /// # Safety
    ///
    /// The sets are null or have room for the files.
    unsafe fn bytes(&self) -> [Vec<u8>; 3] {
        let words = usize::try_from(self.count).unwrap_or(0).div_ceil(64);
        self.sets.map(|set| match set.is_null() {
            true => Vec::new(),
            // SAFETY: as the caller promises.
            false => unsafe { slice::from_raw_parts(set.cast::<u8>(), words * 8) }.to_vec(),
        })
    }

    /// Stores what was in them.
    ///
    /// # Safety
    ///
    /// The bytes are those of these sets.
    unsafe fn restore(&self, bytes: &[Vec<u8>; 3]) {
        for (set, bytes) in self.sets.iter().zip(bytes) {
            // SAFETY: as the caller promises; nothing is copied to one that is null.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), set.cast(), bytes.len()) };
        }
    }

    /// Waits until one of the files has something, or until a virtual time.
    ///
    /// # Safety
    ///
    /// As for `pselect`.
    unsafe fn until(&self, at: u64, mask: *const sigset_t) -> c_int {
        // SAFETY: as the caller promises.
        let before = unsafe { self.bytes() };
        until(
            at,
            mask,
            || files(&before),
            |timeout| {
                // SAFETY: these are their bytes.
                unsafe { self.restore(&before) };
                let [read, write, except] = self.sets;
                // SAFETY: as the caller promises.
                unsafe { real::pselect(self.count, read, write, except, &timeout, mask) }
            },
        )
    }
}

/// The files of three sets.
fn files(sets: &[Vec<u8>; 3]) -> Vec<pollfd> {
    let has = |set: &[u8], file: usize| set.get(file / 8).is_some_and(|byte| byte & (1 << (file % 8)) != 0);
    let files = (0..sets.iter().map(Vec::len).max().unwrap_or(0) * 8).map(|file| {
        let of = sets.iter().zip(EVENTS).filter(|(set, _)| has(set, file));
        pollfd { fd: file as c_int, events: of.fold(0, |all, (_, event)| all | event), revents: 0 }
    });
    files.filter(|file| file.events != 0).collect()
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: as the caller promises, here and below.
    let length = unsafe { timeout.as_ref() }
        .map_or(NONE, |time| timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec.saturating_mul(1_000) });
    // SAFETY: it is there.
    let Some(at) = (unsafe { after(&length) }) else {
        // SAFETY: as above.
        return unsafe { real::select(count, read, write, except, timeout) };
    };
    // SAFETY: as above.
    let found = unsafe { Sets { count, sets: [read, write, except] }.until(at, null()) };
    let left = clock::left(at);
    // SAFETY: there was a timeout. Linux stores what is left of it.
    unsafe { timeout.write(timeval { tv_sec: left.tv_sec, tv_usec: left.tv_nsec / 1_000 }) };
    found
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as the caller promises, here and below.
    match unsafe { after(timeout) } {
        // SAFETY: as above.
        None => unsafe { real::pselect(count, read, write, except, timeout, mask) },
        // SAFETY: as above.
        Some(at) => unsafe { Sets { count, sets: [read, write, except] }.until(at, mask) },
    }
}
