//! The version of the API that the program selected.

use shaketable_session::output;
use std::{
    ffi::c_int,
    sync::atomic::{AtomicI32, Ordering},
};

/// What a process has before it selects a version, and functions within a simulation without one.
const DEFAULT_API_VERSION: c_int = 740;

/// The selected version, 0 before.
static API_VERSION: AtomicI32 = AtomicI32::new(0);
/// The version that the program was compiled for, 0 before.
static HEADER_VERSION: AtomicI32 = AtomicI32::new(0);

/// The selected version of the API; that of 7.4 if there is none.
pub fn api_version() -> c_int {
    match API_VERSION.load(Ordering::SeqCst) {
        0 => DEFAULT_API_VERSION,
        version => version,
    }
}

/// Ends the process with a sentence if no version of the API is selected: FoundationDB's library crashes in
/// this function then, because it has no client yet (`fdb_c.cpp`, `MultiVersionTransaction.actor.cpp`).
pub(super) fn require_api_version(function: &str) {
    if !is_selected() {
        output::complain(&format!(
            "{function} is called before fdb_select_api_version, where FoundationDB's library crashes"
        ));
        std::process::abort();
    }
}

/// The version that the program was compiled for; that of 7.4 if it has selected none.
pub fn header_version() -> c_int {
    match HEADER_VERSION.load(Ordering::SeqCst) {
        0 => DEFAULT_API_VERSION,
        version => version,
    }
}

/// The version that has removed a function which every version has.
pub(super) const NEVER: c_int = c_int::MAX;

/// Ends a program that calls a function which its header does not have.
pub(super) fn demand(name: &str, removed_in: c_int) {
    if header_version() >= removed_in {
        output::complain(&format!("{name} was removed from the API in version {removed_in}"));
        std::process::abort();
    }
}

/// Whether a version is selected.
pub(super) fn is_selected() -> bool {
    API_VERSION.load(Ordering::SeqCst) != 0
}

/// Selects a version, once. Returns whether this call did.
pub(super) fn select(runtime: c_int, header: c_int) -> bool {
    let selected = API_VERSION.compare_exchange(0, runtime, Ordering::SeqCst, Ordering::SeqCst);
    if selected.is_ok() {
        HEADER_VERSION.store(header, Ordering::SeqCst);
    }
    selected.is_ok()
}
