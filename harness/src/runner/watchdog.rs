//! A watchdog on the wall clock: it names the seed of a run that does not end.
//!
//! What loops without waiting while it uses its database, or the simulated cluster's clock, is ended by the
//! simulator itself and becomes a finding of its seed. What loops without either cannot be ended from
//! outside: somebody has to know which run it is. Nothing here decides anything inside a run.

#![allow(clippy::disallowed_methods, reason = "a watchdog that looked at virtual time would stop with it")]

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long a run may take before it is named, on the wall.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runs under way.
struct Watchdog {
    patience: Duration,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    begun: u64,
    under_way: BTreeMap<u64, Run>,
}

struct Run {
    name: String,
    since: Instant,
    told: bool,
}

impl Watchdog {
    fn new(patience: Duration, tell: impl Fn(&str) + Send + Sync + 'static) -> Watchdog {
        Watchdog { patience, tell: Box::new(tell), runs: Mutex::default() }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names each run that has taken too long, once.
    fn look(&self) {
        let mut late = Vec::new();
        for run in self.runs().under_way.values_mut() {
            if !run.told && run.since.elapsed() >= self.patience {
                run.told = true;
                late.push(format!("still running after {} s: {}", self.patience.as_secs(), run.name));
            }
        }
        late.iter().for_each(|line| (self.tell)(line));
    }

    fn watch<T>(&self, name: String, run: impl FnOnce() -> T) -> T {
        let id = {
            let mut runs = self.runs();
            runs.begun += 1;
            let id = runs.begun;
            runs.under_way.insert(id, Run { name, since: Instant::now(), told: false });
            id
        };
        /// Ends the watch, also when the run panics.
        struct Ended<'a>(&'a Watchdog, u64);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.runs().under_way.remove(&self.1);
            }
        }
        let _ended = Ended(self, id);
        run()
    }
}

/// Does a run, and prints a line to standard error if it takes longer than a minute: `name` should be what
/// replays it.
pub(super) fn watched<T>(name: String, run: impl FnOnce() -> T) -> T {
    static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    #[allow(clippy::print_stderr, reason = "whoever waits for the run must learn of it now")]
    let watchdog = WATCHDOG.get_or_init(|| Watchdog::new(PATIENCE, |line| eprintln!("{line}")));
    THREAD.get_or_init(|| {
        // Without a thread nobody is told, and nothing else changes.
        let _ = thread::Builder::new().name("watchdog".into()).spawn(move || {
            loop {
                thread::park_timeout(PATIENCE / 12);
                watchdog.look();
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
    fn a_run_that_takes_too_long_is_named_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let watchdog = Watchdog::new(Duration::ZERO, move |line| {
            heard.lock().unwrap().push(line.to_owned());
        });
        watchdog.watch("replay queue 17".into(), || {
            watchdog.look();
            watchdog.look();
        });
        watchdog.look();
        assert_eq!(*told.lock().unwrap(), ["still running after 0 s: replay queue 17"]);
        let patient = Watchdog::new(Duration::from_secs(3_600), |line| panic!("{line}"));
        patient.watch("replay queue 18".into(), || patient.look());
    }

    #[test]
    fn a_run_that_has_ended_is_not_named() {
        let watchdog = Watchdog::new(Duration::ZERO, |line| panic!("{line}"));
        watchdog.watch("replay queue 17".into(), || {});
        watchdog.look();
    }
}
