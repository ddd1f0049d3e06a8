//! The cluster of the process, once `libfdb_c.so` has said that there is one.

use crate::real;
use libc::c_void;
use std::{
    cell::Cell,
    mem::transmute,
    ptr::null_mut,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
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

/// What waits for the turn of a thread. `after_step` says that it would ask again at once: another one should
/// have the turn first, or virtual time should advance.
pub type TakeTurn = extern "C" fn(after_step: bool);

static TURN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Whether this process was forked from one whose threads take turns. It has one thread.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// From now on, threads take turns. A program of Java goes on as before: its threads wait for one another
/// without the C library too.
///
/// # Safety
///
/// The function must remain valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shaketable_time_take_turns(turn: TakeTurn) {
    extern "C" fn in_child() {
        IS_CHILD.store(true, Ordering::SeqCst);
    }
    // SAFETY: the name ends with a zero.
    let is_java = !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"JNI_CreateJavaVM".as_ptr()) }.is_null();
    if !is_java {
        // SAFETY: the function is there as long as the program runs.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        TURN.store(turn as *mut c_void, Ordering::SeqCst);
    }
}

/// Whether threads take turns.
pub fn are_turns_taken() -> bool {
    !TURN.load(Ordering::SeqCst).is_null() && !IS_CHILD.load(Ordering::SeqCst)
}

/// Waits for this thread's turn, if threads take turns.
pub fn take_turn(after_step: bool) {
    let turn = TURN.load(Ordering::SeqCst);
    if !turn.is_null() && !IS_CHILD.load(Ordering::SeqCst) {
        let error = real::errno();
        // SAFETY: only functions of this type are stored.
        let turn = unsafe { std::mem::transmute::<*mut c_void, TakeTurn>(turn) };
        turn(after_step);
        real::fail(error);
    }
}
