//! Panics inside a run. They are findings of its seed: they are recorded with their source locations and not
//! printed.

use crate::describe::invariants::InInvariant;
use shaketable_sim::judges::Said;
use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt, panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

static HOOK: Once = Once::new();
static PRINT: AtomicBool = AtomicBool::new(false);

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    static RECORDED: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// A panic.
#[derive(Clone, Debug)]
pub(crate) struct Panicked {
    message: String,
    /// The file and the line in the source, if it was recorded.
    place: Option<String>,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.place.iter().try_for_each(|place| write!(f, " ({place})"))
    }
}

impl From<&Panicked> for Said {
    fn from(panicked: &Panicked) -> Said {
        Said { name: panicked.place.clone().unwrap_or_default(), why: panicked.message.clone() }
    }
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
                let place = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
                RECORDED.set(Some(Panicked { message: explained(payload(info.payload())), place }));
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

/// A caught panic. If it was in the body of an invariant, that is told before its message.
pub(crate) fn caught(panic: &(dyn Any + Send)) -> Panicked {
    if let Some(InInvariant { name, panic }) = panic.downcast_ref() {
        let panicked = caught(&**panic);
        return Panicked { message: format!("{name}: {}", panicked.message), ..panicked };
    }
    RECORDED.take().unwrap_or_else(|| Panicked { message: payload(panic), place: None })
}

/// A message, with what to do if it is tokio's own about a runtime that is not there.
fn explained(message: String) -> String {
    match message.contains("Tokio 1.x runtime") {
        true => {
            message
                + ": a run has madsim's runtime; take tokio from the package madsim-tokio (docs/src/programs.md, Rust)"
        }
        false => message,
    }
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
            |panic: fn()| recorded(|| caught(&*panic::catch_unwind(panic).expect_err("a panic")).to_string());
        let text = message_of(|| panic!("seat {} is taken twice", 7));
        assert!(text.starts_with("seat 7 is taken twice (") && text.contains("panics.rs:"), "{text}");
        let text = message_of(|| assert!(Vec::<u8>::new().remove(3) == 0));
        assert!(text.contains("removal index"), "{text}");
        let text = message_of(|| drop(tokio::runtime::Handle::current()));
        assert!(text.contains("there is no reactor running") && text.contains("madsim-tokio ("), "{text}");
        let text = message_of(|| {
            let panic = panic::catch_unwind(|| panic!("taken")).expect_err("a panic");
            panic::resume_unwind(Box::new(InInvariant { name: "seats".to_owned(), panic }))
        });
        assert!(text.starts_with("seats: taken ("), "{text}");
        assert_eq!(
            caught(&*panic::catch_unwind(|| panic::resume_unwind(Box::new("no hook"))).expect_err("a panic"))
                .to_string(),
            "no hook"
        );
    }
}
