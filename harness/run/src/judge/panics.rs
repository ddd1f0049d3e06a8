//! Panics inside a run. They are findings of its seed: they are recorded with their source locations and not
//! printed.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

static HOOK: Once = Once::new();
static PRINT: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    static RECORDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Prints panics inside runs as well from now on, with a backtrace if `RUST_BACKTRACE` is set accordingly.
/// For the replay of a single run.
pub fn print_panics() {
    PRINT.store(true, Ordering::Relaxed);
}

/// Calls `work`, which catches its own panics, and records the messages and locations of the panics.
pub(crate) fn recorded<T>(work: impl FnOnce() -> T) -> T {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if RECORDING.get() {
                let place =
                    info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
                RECORDED.set(Some(format!("{}{place}", payload(info.payload()))));
            }
            if !RECORDING.get() || PRINT.load(Ordering::Relaxed) {
                before(info);
            }
        }));
    });
    RECORDED.take();
    let outer = RECORDING.replace(true);
    let done = work();
    RECORDING.set(outer);
    done
}

/// The message of a caught panic, with its source location if it was recorded.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    RECORDED.take().unwrap_or_else(|| payload(panic))
}

fn payload(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_location_of_its_panic() {
        let message_of =
            |panic: fn()| recorded(|| message(&*panic::catch_unwind(panic).expect_err("a panic")));
        let text = message_of(|| panic!("seat {} is taken twice", 7));
        assert!(text.starts_with("seat 7 is taken twice (") && text.contains("panics.rs:"), "{text}");
        let text = message_of(|| assert!(Vec::<u8>::new().remove(3) == 0));
        assert!(text.contains("removal index"), "{text}");
        assert_eq!(
            message(
                &*panic::catch_unwind(|| panic::resume_unwind(Box::new("no hook"))).expect_err("a panic")
            ),
            "no hook"
        );
    }
}
