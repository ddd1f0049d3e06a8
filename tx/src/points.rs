//! Assertions that code makes about its own runs: [`always!`](crate::always),
//! [`sometimes!`](crate::sometimes) and [`reachable!`](crate::reachable). Each use is called a claim.
//!
//! A layer states what must hold whenever a line is executed, what must be true in at least one run, and
//! which lines at least one run must reach. A harness installs a [`Recorder`] on its thread and reads it
//! afterwards. Without a recorder, a claim costs one thread-local read and records nothing, so that layers
//! can keep their claims in production.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    pin::pin,
};

/// What was recorded about one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often the line was executed.
    pub passed: u64,
    /// How often its condition held (each time, for `reachable!`).
    pub held: u64,
}

/// What was recorded about all claims of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// `sometimes!` and `reachable!` by name.
    pub points: BTreeMap<&'static str, Seen>,
    /// Broken `always!` claims, in order, the first few only.
    pub broken: Vec<Broken>,
}

/// A broken `always!` claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The text of the message in the code: which claim it is, whatever values it has.
    pub name: &'static str,
    /// Its message.
    pub message: String,
    /// The client's operation that made it, if one did: the client's number, and the index of the operation.
    pub operation: Option<(usize, usize)>,
}

/// The number of broken claims that are kept; further ones add no information.
const MOST_BROKEN: usize = 10;

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Starts recording on this thread and discards earlier records.
pub fn install() {
    RECORDER.with_borrow_mut(|r| *r = Some(Recorder::default()));
}

/// Stops recording on this thread and returns the record.
pub fn take() -> Recorder {
    RECORDER.with_borrow_mut(Option::take).unwrap_or_default()
}

/// Records that a `sometimes!` or `reachable!` was executed.
pub fn record(name: &'static str, held: bool) {
    RECORDER.with_borrow_mut(|r| {
        if let Some(recorder) = r {
            let seen = recorder.points.entry(name).or_default();
            seen.passed += 1;
            seen.held += u64::from(held);
        }
    });
}

/// Records that the `always!` with this text of its message was broken.
pub fn broken(name: &'static str, message: impl FnOnce() -> String) {
    RECORDER.with_borrow_mut(|r| {
        if let Some(recorder) = r
            && recorder.broken.len() < MOST_BROKEN
        {
            recorder.broken.push(Broken { name, message: message(), operation: OPERATION.get() });
        }
    });
}

thread_local! {
    /// The client's operation that this thread is executing, if any: the client's number, and the index of
    /// the operation.
    static OPERATION: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Runs a future as a client's operation. `during` is the client's number and the index of the operation.
/// Claims that the future breaks are reported with it.
pub async fn in_operation<F: Future>(during: (usize, usize), operation: F) -> F::Output {
    let mut operation = pin!(operation);
    std::future::poll_fn(|cx| {
        let before = OPERATION.replace(Some(during));
        let polled = operation.as_mut().poll(cx);
        OPERATION.set(before);
        polled
    })
    .await
}

/// Claims that a condition holds whenever this line is executed; a run in which it does not hold fails.
#[macro_export]
macro_rules! always {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::points::broken(stringify!($($message)+), || format!($($message)+));
        }
    };
}

/// Claims that a condition holds in at least one run of a sweep.
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:literal) => {
        $crate::points::record($name, $condition)
    };
}

/// Claims that at least one run of a sweep executes this line.
#[macro_export]
macro_rules! reachable {
    ($name:literal) => {
        $crate::points::record($name, true)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_recorded_only_while_a_recorder_is_installed() {
        reachable!("before");
        install();
        reachable!("line");
        sometimes!(1 > 2, "never");
        always!(1 > 2, "{} is not more than {}", 1, 2);
        always!(2 > 1, "fine");
        let recorded = take();
        assert_eq!(recorded.points["line"], Seen { passed: 1, held: 1 });
        assert_eq!(recorded.points["never"], Seen { passed: 1, held: 0 });
        let message = "1 is not more than 2".to_owned();
        let name = "\"{} is not more than {}\", 1, 2";
        assert_eq!(recorded.broken, [Broken { name, message, operation: None }]);
        assert!(!recorded.points.contains_key("before"));
        assert_eq!(take(), Recorder::default());
    }

    #[test]
    fn the_first_broken_claims_are_kept() {
        install();
        (0..2 * MOST_BROKEN).for_each(|n| broken("n", || n.to_string()));
        let first: Vec<String> = (0..MOST_BROKEN).map(|n| n.to_string()).collect();
        let broken: Vec<String> = take().broken.into_iter().map(|claim| claim.message).collect();
        assert_eq!(broken, first);
    }

    #[test]
    fn a_broken_claim_names_the_operation_that_made_it() {
        use futures::FutureExt;
        let claim = |message: &'static str| async move { always!(1 > 2, "{message}") };
        install();
        claim("alone").now_or_never().unwrap();
        in_operation((3, 7), claim("in an operation")).now_or_never().unwrap();
        claim("afterwards").now_or_never().unwrap();
        let operations: Vec<_> = take().broken.into_iter().map(|claim| claim.operation).collect();
        assert_eq!(operations, [None, Some((3, 7)), None]);
    }
}
