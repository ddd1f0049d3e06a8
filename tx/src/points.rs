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
    /// Broken `always!` claims, in the order of their moments, the first few only.
    pub broken: Vec<Broken>,
}

/// A broken `always!` claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The text of the message in the code: which claim it is, whatever values it has.
    pub name: &'static str,
    /// Its message.
    pub message: String,
    /// The part of the run that made it.
    pub part: Part,
}

/// A part of a run, of which claims are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The client's operation, if it is one: the client's number, and the index of the operation.
    pub operation: Option<(usize, usize)>,
    /// The moment of the run, as its harness counts: that of the data which are looked at, which may be
    /// long past. `None` if it is not known.
    pub moment: Option<u64>,
}

impl Broken {
    /// Claims of which the moment is not known come last.
    fn moment(&self) -> u64 {
        self.part.moment.unwrap_or(u64::MAX)
    }
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
        let Some(Recorder { broken, .. }) = r else { return };
        let part = PART.get();
        let moment = part.moment.unwrap_or(u64::MAX);
        let at = broken.partition_point(|earlier| earlier.moment() <= moment);
        if at < MOST_BROKEN {
            broken.insert(at, Broken { name, message: message(), part });
            broken.truncate(MOST_BROKEN);
        }
    });
}

thread_local! {
    /// The part of the run that this thread is executing.
    static PART: Cell<Part> = const { Cell::new(Part { operation: None, moment: None }) };
}

/// Runs a future as a part of the run; `part` is asked whenever it proceeds. Claims that it breaks are
/// reported with the part.
pub async fn in_part<F: Future>(part: impl Fn() -> Part, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        let _until_polled = Within::new(part());
        future.as_mut().poll(cx)
    })
    .await
}

/// As long as it exists, this thread executes a part of the run.
pub struct Within(Part);

impl Within {
    /// Begins a part.
    #[must_use]
    pub fn new(part: Part) -> Within {
        Within(PART.replace(part))
    }

    /// Begins to look at the data of a moment.
    #[must_use]
    pub fn moment(moment: u64) -> Within {
        Within::new(Part { moment: Some(moment), ..PART.get() })
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        PART.set(self.0);
    }
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
        assert_eq!(recorded.broken, [Broken { name, message, part: Part::default() }]);
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
    fn claims_are_kept_by_their_moments() {
        install();
        for moment in [Some(7), None, Some(3), Some(7), Some(5)] {
            let _at = Within::new(Part { moment, operation: None });
            broken("n", || format!("{moment:?}"));
        }
        (0..MOST_BROKEN).for_each(|n| broken("n", || n.to_string()));
        {
            let _at = Within::moment(4);
            broken("n", || "late, of an early moment".to_owned());
        }
        let broken: Vec<String> = take().broken.into_iter().map(|claim| claim.message).collect();
        let first = ["Some(3)", "late, of an early moment", "Some(5)", "Some(7)", "Some(7)", "None"];
        assert_eq!(broken[..6], first);
        assert_eq!(broken.len(), MOST_BROKEN);
    }

    #[test]
    fn a_broken_claim_names_the_part_that_made_it() {
        use futures::FutureExt;
        let claim = |message: &'static str| async move { always!(1 > 2, "{message}") };
        install();
        let part = Part { operation: Some((3, 7)), moment: Some(5) };
        in_part(|| part, claim("in an operation")).now_or_never().unwrap();
        claim("afterwards").now_or_never().unwrap();
        let parts: Vec<_> = take().broken.into_iter().map(|claim| claim.part).collect();
        assert_eq!(parts, [part, Part::default()]);
    }
}
