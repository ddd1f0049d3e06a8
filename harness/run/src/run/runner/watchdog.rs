//! A watchdog on the wall clock, which prints the seed of a run that does not end.
//!
//! The simulator ends code that loops without waiting while it uses its database or the clock of the
//! simulated cluster, and reports it as a finding of the seed. A loop that uses neither cannot be
//! interrupted; the watchdog then shows which run it is in. It has no effect on runs.

#![allow(clippy::disallowed_methods, reason = "virtual time stops when a run loops")]

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long a run may take, in real time, before it is reported.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How often runs are checked.
const INTERVAL: Duration = Duration::from_secs(5);

/// The runs in progress.
struct Watchdog {
    time_limit: Duration,
    report: Box<dyn Fn(&str) + Send + Sync>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    started: u64,
    running: BTreeMap<u64, Run>,
}

struct Run {
    name: String,
    since: Instant,
    reported: bool,
}

impl Watchdog {
    fn new(time_limit: Duration, report: impl Fn(&str) + Send + Sync + 'static) -> Watchdog {
        Watchdog { time_limit, report: Box::new(report), runs: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports each run that takes too long, once.
    fn check(&self) {
        let mut late = Vec::new();
        for run in self.runs().running.values_mut() {
            if !run.reported && run.since.elapsed() >= self.time_limit {
                run.reported = true;
                late.push(format!("still running after {} s: {}", self.time_limit.as_secs(), run.name));
            }
        }
        late.iter().for_each(|line| (self.report)(line));
    }

    fn watch<T>(&self, name: String, run: impl FnOnce() -> T) -> T {
        let id = {
            let mut runs = self.runs();
            runs.started += 1;
            let id = runs.started;
            runs.running.insert(id, Run { name, since: Instant::now(), reported: false });
            id
        };
        /// Ends the watch, also when the run panics.
        struct Ended<'a>(&'a Watchdog, u64);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.runs().running.remove(&self.1);
            }
        }
        let _ended = Ended(self, id);
        run()
    }
}

/// Performs a run, and prints a line to standard error if it takes longer than a minute. `name` should
/// contain the command that replays the run.
pub(crate) fn watched<T>(name: String, run: impl FnOnce() -> T) -> T {
    static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    #[allow(clippy::print_stderr, reason = "the user who waits for the run needs the message now")]
    let watchdog = WATCHDOG.get_or_init(|| Watchdog::new(TIME_LIMIT, |line| eprintln!("{line}")));
    THREAD.get_or_init(|| {
        // If the thread cannot be started, only the message is missing.
        let _ = thread::Builder::new().name("watchdog".into()).spawn(move || {
            loop {
                thread::park_timeout(INTERVAL);
                watchdog.check();
            }
        });
    });
    watchdog.watch(name, run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_run_that_takes_too_long_is_reported_once() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let lines = reported.clone();
        let watchdog = Watchdog::new(Duration::ZERO, move |line| {
            lines.lock().unwrap().push(line.to_owned());
        });
        watchdog.watch("replay queue 17".into(), || {
            watchdog.check();
            watchdog.check();
        });
        watchdog.check();
        assert_eq!(*reported.lock().unwrap(), ["still running after 0 s: replay queue 17"]);
        let watchdog = Watchdog::new(Duration::from_secs(3_600), |line| panic!("{line}"));
        watchdog.watch("replay queue 18".into(), || watchdog.check());
    }

    #[test]
    fn runs_at_the_same_time_are_watched_separately() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let lines = reported.clone();
        let watchdog = Watchdog::new(Duration::ZERO, move |line| {
            lines.lock().unwrap().push(line.to_owned());
        });
        watchdog.watch("a".into(), || {
            watchdog.watch("b".into(), || {});
            watchdog.watch("c".into(), || watchdog.check());
        });
        let line = |name: &str| format!("still running after 0 s: {name}");
        assert_eq!(*reported.lock().unwrap(), [line("a"), line("c")]);
    }

    #[test]
    fn a_run_that_has_ended_is_not_reported() {
        let watchdog = Watchdog::new(Duration::ZERO, |line| panic!("{line}"));
        watchdog.watch("replay queue 17".into(), || {});
        watchdog.check();
    }
}
