//! Virtual time in place of the program's clock: what the preloaded library of `shaketable-time` asks of the
//! cluster.

use super::{fork, network::Network};
use shaketable_session::{Host, Session, SleepId, Sleeper, turns};
use std::{
    ffi::c_void,
    sync::{Arc, atomic::AtomicU64},
};

/// Why there is no virtual time.
pub const NOT_PRELOADED: &str = "SHAKETABLE_TIME is 1, but libshaketable_time.so is not in LD_PRELOAD: \
                                 `shaketable with --time` puts it there";

/// Why a program that uses a server has none.
pub const SERVED: &str =
    "SHAKETABLE_TIME is 1, but the cluster of a server has no virtual time for its programs";

/// What a thread is told that waits on the network thread, in a callback.
const HERE: u64 = u64::MAX;

type Wait = extern "C" fn(u64, bool, *mut c_void, Wake) -> u64;
type Wake = extern "C" fn(*mut c_void);
type Cancel = extern "C" fn(u64);
type Turn = extern "C" fn(bool);
type TakeTurns = unsafe extern "C" fn(Turn);
type Attach = unsafe extern "C" fn(*const AtomicU64, Wait, Cancel);

/// The function by which the preloaded library is told of the cluster; none if it is not there.
#[cfg(unix)]
pub fn find() -> Option<impl FnOnce(&Host)> {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"shaketable_time_attach".as_ptr()) };
    // SAFETY: the function of this name, of the package `shaketable-time`, has this type.
    let attach: Attach = (!found.is_null()).then(|| unsafe { std::mem::transmute(found) })?;
    // SAFETY: as above.
    let take_turns = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"shaketable_time_take_turns".as_ptr()) };
    // SAFETY: as above.
    let take_turns: Option<TakeTurns> = unsafe { std::mem::transmute(take_turns) };
    Some(move |host: &Host| {
        if let Some(take_turns) = take_turns.filter(|_| host.takes_turns()) {
            // SAFETY: as below.
            unsafe { take_turns(turn) };
        }
        // The number remains valid: nobody gives this reference back.
        let now = Arc::into_raw(host.now());
        // SAFETY: what it is given remains valid, as long as this library does, which programs do not unload.
        unsafe { attach(now, wait, cancel) };
    })
}

/// Preloading is for Unix.
#[cfg(not(unix))]
pub fn find() -> Option<impl FnOnce(&Host)> {
    None::<fn(&Host)>
}

/// A thread of the program that waits.
struct Waiter(*mut c_void, Wake);

// SAFETY: the pointer is handed back to its function and to nothing else, from any thread, as whoever waits
// expects it.
unsafe impl Send for Waiter {}

impl Drop for Waiter {
    fn drop(&mut self) {
        (self.1)(self.0);
    }
}

/// The session of the process; none in a child, whose parent has it.
fn host() -> Option<&'static Host> {
    if fork::is_child() { None } else { Network::get().ok()?.own_host() }
}

/// A thread waits for its turn, after another one has woken it or before it begins. Before the cluster runs,
/// nobody gives turns.
extern "C" fn turn(after_step: bool) {
    if let Some(host) = host().filter(|host| host.has_turns()) {
        host.wait_for_turn(if after_step { turns::Turn::AfterStep } else { turns::Turn::Next });
    }
}

extern "C" fn wait(until: u64, in_turn: bool, waiter: *mut c_void, wake: Wake) -> u64 {
    let sleeper = || Box::new(Waiter(waiter, wake)) as Sleeper;
    match host() {
        Some(host) if host.is_here() => HERE,
        Some(host) => host.sleep(until, in_turn, sleeper).map_or(0, |SleepId(number)| number),
        None => 0,
    }
}

extern "C" fn cancel(number: u64) {
    if let Some(host) = host() {
        host.wake(SleepId(number));
    }
}
