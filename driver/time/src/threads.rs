//! Threads that begin.

use crate::{chance, cluster, real};
use libc::{c_int, c_void, pthread_attr_t, pthread_t};

/// What a thread begins with.
struct Start {
    function: real::Begin,
    argument: *mut c_void,
    key: Option<u64>,
}

extern "C-unwind" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: it was made for this thread alone.
    let Start { function, argument, key } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    key.into_iter().for_each(chance::begin);
    cluster::take_turn(false);
    function(argument)
}

/// As in the C library. The thread has a stream of random numbers of its own, and begins in its turn.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    function: real::Begin,
    argument: *mut c_void,
) -> c_int {
    let key = chance::of_next_thread();
    if key.is_none() && !cluster::are_turns_taken() {
        // SAFETY: as the caller promises.
        return unsafe { real::pthread_create(thread, attributes, function, argument) };
    }
    let start = Box::into_raw(Box::new(Start { function, argument, key }));
    // SAFETY: as the caller promises.
    let error = unsafe { real::pthread_create(thread, attributes, begin, start.cast()) };
    if error != 0 {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(start) });
    }
    error
}
