//! Claims that code makes about its own runs: [`always!`](crate::always), [`sometimes!`](crate::sometimes)
//! and [`reachable!`](crate::reachable).
//!
//! A layer states what must hold whenever a line is passed, what must happen in some run, and
//! which lines some run must reach. A harness installs a [`Recorder`] on its thread and reads it
//! afterwards; without one the claims cost a thread-local look and say nothing, so that layers
//! carry them into production.
//!
//! Beside the claims, every public function of a layer notes that it was [`called!`](crate::called)
//! by a client's operation, so that a test can name the functions that no workload calls.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// What was seen of one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often the line was passed.
    pub passed: u64,
    /// How often its condition held (each time, for `reachable!`).
    pub held: u64,
}

/// What was seen of all claims of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// `sometimes!` and `reachable!` by name.
    pub points: BTreeMap<&'static str, Seen>,
    /// Broken `always!` claims, in order, the first few only.
    pub broken: Vec<String>,
}

/// More broken claims than these say nothing new.
const MOST_BROKEN: usize = 10;

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Begins to record on this thread, forgetting what was recorded before.
pub fn install() {
    RECORDER.with_borrow_mut(|r| *r = Some(Recorder::default()));
}

/// Ends recording on this thread and gives what was recorded.
pub fn take() -> Recorder {
    RECORDER.with_borrow_mut(Option::take).unwrap_or_default()
}

/// Records that a `sometimes!` or `reachable!` was passed.
pub fn record(name: &'static str, held: bool) {
    RECORDER.with_borrow_mut(|r| {
        if let Some(recorder) = r {
            let seen = recorder.points.entry(name).or_default();
            seen.passed += 1;
            seen.held += u64::from(held);
        }
    });
}

/// Records that an `always!` was broken.
pub fn broken(message: impl FnOnce() -> String) {
    RECORDER.with_borrow_mut(|r| {
        if let Some(recorder) = r
            && recorder.broken.len() < MOST_BROKEN
        {
            recorder.broken.push(message());
        }
    });
}

thread_local! {
    /// Whether what runs on this thread now is a client's operation.
    static IN_OPERATION: Cell<bool> = const { Cell::new(false) };
}

/// The public functions that some operation of this process has called.
static CALLED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Polls `operation` as a client's operation: public functions that it calls are noted.
pub async fn in_operation<F: Future>(operation: F) -> F::Output {
    let mut operation = pin!(operation);
    std::future::poll_fn(|cx| {
        let before = IN_OPERATION.replace(true);
        let polled = operation.as_mut().poll(cx);
        IN_OPERATION.set(before);
        polled
    })
    .await
}

/// The public functions that operations of this process have called so far, on any thread: the paths of
/// their source, such as `shaketable_layers::log::ops::Log::append`.
pub fn called() -> BTreeSet<&'static str> {
    CALLED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether a public function was called by an operation already. After the first call it costs one
/// relaxed load.
#[doc(hidden)]
#[derive(Default)]
pub struct Called(AtomicBool);

impl Called {
    /// Not yet.
    pub const fn new() -> Called {
        Called(AtomicBool::new(false))
    }

    /// Notes the call, if it is an operation's. `function` is something declared inside the function.
    pub fn note<F>(&self, _: &F) {
        if self.0.load(Ordering::Relaxed) || !IN_OPERATION.get() {
            return;
        }
        self.0.store(true, Ordering::Relaxed);
        let path = std::any::type_name::<F>();
        let function = path.trim_end_matches("::here").trim_end_matches("::{{closure}}");
        CALLED.lock().unwrap_or_else(PoisonError::into_inner).insert(function);
    }
}

/// Notes that an operation of a workload calls the public function around it. It stands first in each public
/// function of a layer; a test compares what is noted with what the sources declare.
#[macro_export]
macro_rules! called {
    () => {{
        fn here() {}
        static CALLED: $crate::points::Called = $crate::points::Called::new();
        CALLED.note(&here);
    }};
}

/// Claims that a condition holds whenever this line is passed; a run in which it does not fails.
#[macro_export]
macro_rules! always {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::points::broken(|| format!($($message)+));
        }
    };
}

/// Claims that a condition holds in some run of a sweep.
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:literal) => {
        $crate::points::record($name, $condition)
    };
}

/// Claims that some run of a sweep passes this line.
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
    fn claims_are_recorded_only_while_somebody_listens() {
        reachable!("before");
        install();
        reachable!("line");
        sometimes!(1 > 2, "never");
        always!(1 > 2, "{} is not more than {}", 1, 2);
        always!(2 > 1, "fine");
        let recorded = take();
        assert_eq!(recorded.points["line"], Seen { passed: 1, held: 1 });
        assert_eq!(recorded.points["never"], Seen { passed: 1, held: 0 });
        assert_eq!(recorded.broken, ["1 is not more than 2"]);
        assert!(!recorded.points.contains_key("before"));
        assert_eq!(take(), Recorder::default());
    }

    struct Layer;

    impl Layer {
        async fn look<T>(&self, _: T) {
            called!();
        }

        fn change<T>(&self, _: T) -> impl Future<Output = ()> {
            called!();
            async {}
        }
    }

    #[test]
    fn functions_are_noted_when_an_operation_calls_them() {
        use futures::FutureExt;
        let noted = || called().into_iter().filter(|path| path.contains("points::tests")).collect::<Vec<_>>();
        Layer.look(1).now_or_never().unwrap();
        assert!(noted().is_empty(), "{:?}", noted());
        in_operation(async {
            Layer.look("x").await;
            Layer.change(2).await;
        })
        .now_or_never()
        .unwrap();
        let paths = ["change", "look"].map(|name| format!("shaketable_layers::points::tests::Layer::{name}"));
        assert_eq!(noted(), paths);
        assert!(!IN_OPERATION.get());
    }

    #[test]
    fn the_first_broken_claims_are_kept() {
        install();
        (0..2 * MOST_BROKEN).for_each(|n| broken(|| n.to_string()));
        let first: Vec<String> = (0..MOST_BROKEN).map(|n| n.to_string()).collect();
        assert_eq!(take().broken, first);
    }
}
