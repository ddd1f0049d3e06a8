//! The cluster of the process, once `libfdb_c.so` has said that there is one.

use libc::c_void;
use std::{
    cell::Cell,
    mem::transmute,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

/// Asks the cluster to wake a thread when its time is `until`. `wake` is called once with `waiter`: then, or
/// earlier if the cluster ends or the wait is cancelled; from any thread, and perhaps before this returns.
/// `in_turn` says that the thread holds nothing for which another one may wait: it may wait for its turn. The
/// result is the number of the wait; 0 if there is no cluster to wait with, and [`HERE`] on its own thread:
/// `wake` is then never called.
pub type Wait = extern "C" fn(until: u64, in_turn: bool, waiter: *mut c_void, wake: Wake) -> u64;

/// What is returned on the thread of the cluster.
const HERE: u64 = u64::MAX;

/// Wakes a thread that waits.
pub type Wake = extern "C" fn(waiter: *mut c_void);

/// Ends a wait.
pub type Cancel = extern "C" fn(number: u64);

static NOW: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
static WAIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static CANCEL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The process has a cluster: where its time is stored, in nanoseconds since its start, and how threads wait
/// for it.
///
/// # Safety
///
/// `now` and the functions must remain valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shaketable_time_attach(now: *const AtomicU64, wait: Wait, cancel: Cancel) {
    NOW.store(now.cast_mut(), Ordering::SeqCst);
    CANCEL.store(cancel as *mut c_void, Ordering::SeqCst);
    WAIT.store(wait as *mut c_void, Ordering::SeqCst);
}

/// The cluster's time; 0 before it starts.
pub fn now() -> u64 {
    let now = NOW.load(Ordering::SeqCst);
    // SAFETY: it is null, or what remains valid.
    unsafe { now.as_ref() }.map_or(0, |now| now.load(Ordering::SeqCst))
}

/// Calls [`Wait`], if there is a cluster.
pub fn wait(until: u64, in_turn: bool, waiter: *mut c_void, wake: Wake) -> Option<u64> {
    let wait = WAIT.load(Ordering::SeqCst);
    if wait.is_null() {
        return None;
    }
    // SAFETY: only functions of this type are stored.
    let wait = unsafe { transmute::<*mut c_void, Wait>(wait) };
    let number = wait(until, in_turn, waiter, wake);
    IS_HERE.set(number == HERE);
    Some(number).filter(|number| ![0, HERE].contains(number))
}

thread_local! {
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the last wait of this thread was one of the cluster's own thread, in a callback of the program.
pub fn is_here() -> bool {
    IS_HERE.get()
}

/// Calls [`Cancel`] for a wait.
pub fn cancel(number: u64) {
    let cancel = CANCEL.load(Ordering::SeqCst);
    if !cancel.is_null() {
        // SAFETY: only functions of this type are stored.
        let cancel = unsafe { transmute::<*mut c_void, Cancel>(cancel) };
        cancel(number);
    }
}
