//! Panics inside a run: findings of its seed, told with their place, and not printed.

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
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics inside runs are printed as well, with a backtrace if the environment asks for
/// one: for somebody who looks at a single run.
pub fn print_panics() {
    PRINT.store(true, Ordering::Relaxed);
}

/// Does `work`, which catches its own panics, and listens for what they say.
pub(super) fn listen<T>(work: impl FnOnce() -> T) -> T {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if LISTENING.get() {
                let place =
                    info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
                HEARD.set(Some(format!("{}{place}", payload(info.payload()))));
            }
            if !LISTENING.get() || PRINT.load(Ordering::Relaxed) {
                before(info);
            }
        }));
    });
    HEARD.take();
    let outer = LISTENING.replace(true);
    let done = work();
    LISTENING.set(outer);
    done
}

/// What a caught panic said, and where it happened if it was listened to.
pub(crate) fn words(panic: &(dyn Any + Send)) -> String {
    HEARD.take().unwrap_or_else(|| payload(panic))
}

fn payload(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place() {
        let told = |panic: fn()| listen(|| words(&*panic::catch_unwind(panic).expect_err("it panics")));
        let text = told(|| panic!("seat {} is taken twice", 7));
        assert!(text.starts_with("seat 7 is taken twice (") && text.contains("panics.rs:"), "{text}");
        let text = told(|| assert!(Vec::<u8>::new().remove(3) == 0));
        assert!(text.contains("removal index"), "{text}");
        assert_eq!(
            words(
                &*panic::catch_unwind(|| panic::resume_unwind(Box::new("no hook"))).expect_err("it panics")
            ),
            "no hook"
        );
    }
}
