//! Children of a process whose network runs. Only the thread that forks is in the child: nobody would answer
//! its calls, and locks that other threads held are held for ever. There every call ends with 1101
//! `operation_cancelled` at once, and nothing of the parent's session is touched. (FoundationDB's client
//! hangs in such a child.)

use super::types::fdb_error_t;
use shaketable_tx::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The error of every call in a child.
pub const FORKED: Error = Error::OPERATION_CANCELLED;

/// Why, in the one line that a child writes.
const LINE: &str = "shaketable: this process was forked from one in which FoundationDB's network runs, and has no network: its \
                    calls end with operation_cancelled (1101). Fork before fdb_setup_network, or start another program\n";

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static IS_TOLD: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    IS_CHILD.store(true, SeqCst);
}

/// From now on, children are known. The error is the system's.
pub fn watch() -> std::result::Result<(), fdb_error_t> {
    // SAFETY: the function takes nothing, and only stores to memory that is always there.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        _ => Err(super::errors::PLATFORM_ERROR),
    }
}

/// Whether this process is such a child.
pub fn is_child() -> bool {
    IS_CHILD.load(SeqCst)
}

/// The error of a call in a child, which says once why.
pub fn check() -> Result<()> {
    if !is_child() {
        return Ok(());
    }
    if !IS_TOLD.swap(true, SeqCst) {
        // Not through the standard library, whose lock another thread may have held.
        // SAFETY: the bytes are readable.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, LINE.as_ptr().cast(), LINE.len()) };
    }
    Err(FORKED)
}
