//! Claims that code makes about its own runs: [`always!`](crate::always), [`sometimes!`](crate::sometimes)
//! and [`reachable!`](crate::reachable).
//!
//! A layer states what must hold whenever a line is passed, what must happen in some run, and
//! which lines some run must reach. A harness installs a [`Recorder`] on its thread and reads it
//! afterwards; without one the claims cost a thread-local look and say nothing, so that layers
//! carry them into production.

use std::{cell::RefCell, collections::BTreeMap};

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

    #[test]
    fn the_first_broken_claims_are_kept() {
        install();
        (0..2 * MOST_BROKEN).for_each(|n| broken(|| n.to_string()));
        let first: Vec<String> = (0..MOST_BROKEN).map(|n| n.to_string()).collect();
        assert_eq!(take().broken, first);
    }
}
