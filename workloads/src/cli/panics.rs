//! Panics: those of a run are findings of its seed and are kept quiet; any other is a bug of the
//! command and is reported in one line.

use std::{cell::Cell, panic};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Replaces the hook that prints.
pub fn install() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !QUIET.get() {
            loud(info);
        }
    }));
}

/// Does `work` with this thread's panics kept quiet: somebody catches them and tells.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before = QUIET.replace(true);
    let done = work();
    QUIET.set(before);
    done
}
