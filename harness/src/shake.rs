//! Running a workload from an ordinary `#[test]`.
//!
//! ```text
//! #[test]
//! fn my_layer_stands() {
//!     Shake::<MyWorkload>::new().seeds(0..100).assert();
//! }
//! ```
//!
//! `SHAKETABLE_SEEDS` (`100` or `..100` for the first hundred, `5..10` for those from 5 to 9, as on the command line)
//! overrides the seeds of every such test. A failure leaves a repro file in `target/shaketable`, and its message ends
//! with the line that replays it.

use crate::{
    finding::{Finding, Kind, Verdict},
    judges::vacuous,
    plan::{Demands, Plan, PlanError},
    pool::{self, News},
    runner::{self, Counters, RunResult},
    seeds,
    workload::Workload,
};
use shaketable_sim::{
    config::ClusterBug,
    faults::{Family, Profile},
    seed::Seed,
};
use std::{
    env, fs,
    marker::PhantomData,
    ops::Range,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// The environment variable that overrides the seeds.
pub const SEEDS_VARIABLE: &str = "SHAKETABLE_SEEDS";

/// A sweep of one workload over a range of seeds.
#[derive(Clone, Debug)]
pub struct Shake<W> {
    seeds: Range<u64>,
    demands: Demands,
    jobs: usize,
    budget: Option<Duration>,
    twice: bool,
    trace: bool,
    regressions: Option<PathBuf>,
    workload: PhantomData<fn() -> W>,
}

/// A sweep that ended.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The seeds that were to be run.
    pub seeds: Range<u64>,
    /// How many of them were run.
    pub ran: u64,
    /// The first run that did not pass, with its seed.
    pub failed: Option<(u64, RunResult)>,
    /// What was counted over all runs.
    pub counters: Counters,
    /// Needed counters that stayed zero.
    pub vacuous: Vec<&'static str>,
}

impl<W: Workload> Default for Shake<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Workload> Shake<W> {
    /// Seeds 0 to 49 with standard faults, on one thread.
    pub fn new() -> Self {
        Shake {
            seeds: 0..50,
            demands: Demands::default(),
            jobs: 1,
            budget: None,
            twice: false,
            trace: false,
            regressions: None,
            workload: PhantomData,
        }
    }

    /// Other seeds.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Another fault profile.
    pub fn faults(mut self, profile: Profile) -> Self {
        self.demands.profile = profile;
        self
    }

    /// Leaves a fault family out.
    pub fn without(mut self, family: Family) -> Self {
        self.demands.without.push(family);
        self
    }

    /// Plants one of the workload's bugs.
    pub fn bug(mut self, name: &str) -> Self {
        self.demands.bug = Some(name.to_owned());
        self
    }

    /// Plants a bug in the simulated cluster.
    pub fn cluster_bug(mut self, bug: ClusterBug) -> Self {
        self.demands.cluster_bug = Some(bug);
        self
    }

    /// How many threads run seeds. Which seed fails first does not depend on it.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// No further seed begins after this time on the wall.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Runs every seed twice: a run that is not the same to the event fails.
    pub fn check_determinism(mut self) -> Self {
        self.twice = true;
        self
    }

    /// Writes the transcript of a failed run into a file beside its repro file.
    pub fn trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// Replays the repro files of this folder first, in the order of their names: runs that once failed. The folder is
    /// relative to the package's own, where `cargo test` runs tests.
    pub fn regressions(mut self, folder: impl Into<PathBuf>) -> Self {
        self.regressions = Some(folder.into());
        self
    }

    /// The run of a repro file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is none of this workload's.
    pub fn replay(file: &Path) -> Result<RunResult, PlanError> {
        let repro = fs::read_to_string(file).map_err(|error| PlanError::Torn(error.to_string()))?;
        Ok(runner::run(&Plan::<W>::from_json(&repro)?, false))
    }

    /// Runs the seeds up to the first that does not pass.
    #[track_caller]
    pub fn run(&self) -> Swept {
        let seeds = seeds_from_environment().unwrap_or_else(|| self.seeds.clone());
        let deadline = self.budget.map(|budget| now() + budget);
        let failed = AtomicBool::new(false);
        let (mut counters, mut first) = (Counters::default(), None::<(u64, RunResult)>);
        let stop = || failed.load(Ordering::Relaxed) || deadline.is_some_and(|at| now() >= at);
        let ran = pool::over(
            seeds.end.saturating_sub(seeds.start),
            self.jobs,
            stop,
            |place| {
                let seed = seeds.start + place;
                let result = self.one(seed);
                if result.verdict() != Verdict::Passed {
                    failed.store(true, Ordering::Relaxed);
                }
                (seed, result)
            },
            |news| {
                if let News::Done(_, (seed, result)) = news {
                    counters.add(&result.counters);
                    if result.verdict() != Verdict::Passed
                        && first.as_ref().is_none_or(|(before, _)| seed < *before)
                    {
                        first = Some((seed, result));
                    }
                }
            },
        );
        let vacuous = match first {
            Some(_) => Vec::new(),
            None => vacuous::judge(&counters, Some(&self.demands), ran),
        };
        Swept { seeds, ran, failed: first, counters, vacuous }
    }

    fn one(&self, seed: u64) -> RunResult {
        let plan = Plan::<W>::draw(Seed(seed), &self.demands);
        let mut result = runner::run(&plan, false);
        if self.twice && !crate::determinism::same(&result, &runner::run(&plan, false)) {
            let why = "a second run of the seed differed";
            result.findings.insert(0, Finding::new(Kind::Determinism, why));
        }
        result
    }

    /// Runs the seeds and panics if one does not pass, or if the sweep was vacuous.
    #[track_caller]
    pub fn assert(&self) {
        self.assert_regressions();
        let swept = self.run();
        if let Some((seed, result)) = &swept.failed {
            panic!("{}", self.describe(*seed, result));
        }
        assert!(swept.vacuous.is_empty(), "{} was vacuous: no {}", W::NAME, swept.vacuous.join(", no "));
    }

    #[track_caller]
    fn assert_regressions(&self) {
        let Some(folder) = &self.regressions else { return };
        let mut files: Vec<PathBuf> = match fs::read_dir(folder) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(error) => panic!("the regressions in {}: {error}", folder.display()),
        };
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        for file in files {
            match Self::replay(&file) {
                Ok(result) if result.verdict() == Verdict::Passed => {}
                Ok(result) => {
                    panic!("{} failed again, {:?}\n{}", file.display(), result.verdict(), told(&result))
                }
                Err(error) => panic!("{}: {error}", file.display()),
            }
        }
    }

    /// Runs the seeds and panics if none of them catches the planted bug. Gives the seed that did. A run in
    /// which the harness or the workload's own model failed is no catch: it panics as well.
    #[track_caller]
    pub fn assert_caught(&self) -> (u64, RunResult) {
        let swept = self.run();
        let planted = self.demands.bug.as_deref().unwrap_or("nothing planted");
        match swept.failed {
            Some((seed, result)) if result.verdict() == Verdict::Harness => {
                panic!("{planted} was not caught: {}", self.describe(seed, &result))
            }
            Some(caught) => caught,
            None => panic!("{}: {planted} was not caught by seeds {:?}", W::NAME, swept.seeds),
        }
    }

    /// What a person needs to know of a failed run; its last line replays it.
    fn describe(&self, seed: u64, result: &RunResult) -> String {
        let plan = Plan::<W>::draw(Seed(seed), &self.demands);
        let mut text =
            format!("{} failed with seed {seed}, {:?}\n{}", W::NAME, result.verdict(), told(result));
        text += &plan.summary();
        text += &format!("event hash {:016x}\n", result.event_hash);
        let planted = self.demands.bug.as_ref().map_or(String::new(), |bug| format!("-{bug}"));
        let kept = |extension: &str, content: String| match keep(
            &format!("{}{planted}-{seed}.{extension}", W::NAME),
            content,
        ) {
            Ok(path) => path.display().to_string(),
            Err(error) => format!("none could be written: {error}"),
        };
        text += &format!("repro file: {}\n", kept("json", plan.to_json()));
        if self.trace {
            text += &format!("transcript: {}\n", kept("trace", runner::run(&plan, true).transcript));
        }
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        text + &replay_line(seed, &Started::now(), &test)
    }
}

/// The time on the wall, which decides nothing but whether a further seed begins.
#[expect(clippy::disallowed_methods, reason = "a budget is of the wall's time")]
fn now() -> Instant {
    Instant::now()
}

/// What was found, a line each.
fn told(result: &RunResult) -> String {
    result.findings.iter().map(|finding| format!("  {}: {}\n", finding.kind, finding.message)).collect()
}

/// Writes a file into the folder `shaketable` of the build's own.
fn keep(name: &str, content: String) -> std::io::Result<PathBuf> {
    let program = env::current_exe()?;
    // target/PROFILE/deps/PROGRAM, or target/PROFILE/examples/PROGRAM.
    let folder = program.ancestors().nth(3).unwrap_or(Path::new(".")).join("shaketable");
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, content)?;
    Ok(path)
}

/// How cargo started the program of this test.
struct Started {
    package: Option<String>,
    /// The package's folder.
    folder: PathBuf,
    program: PathBuf,
}

impl Started {
    fn now() -> Started {
        Started {
            package: env::var("CARGO_PKG_NAME").ok(),
            folder: env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default(),
            program: env::current_exe().unwrap_or_default(),
        }
    }

    /// Which target of the package this program is, as an argument of cargo; none if it cannot be told.
    fn target(&self) -> Option<String> {
        let stem = self.program.file_stem()?.to_str()?;
        let name = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
        let has = |path: String| self.folder.join(path).exists();
        if self.program.parent()?.ends_with("examples") {
            return Some(format!("--example {name}"));
        }
        if has(format!("tests/{name}.rs")) || has(format!("tests/{name}/main.rs")) {
            return Some(format!("--test {name}"));
        }
        let is_package = self.package.as_ref().is_some_and(|package| package.replace('-', "_") == name);
        match (is_package, has("src/lib.rs".to_owned()), has("src/main.rs".to_owned())) {
            // A library and a program of one name are told apart by nothing.
            (true, true, false) => Some("--lib".to_owned()),
            (true, false, true) => Some(format!("--bin {name}")),
            _ => None,
        }
    }
}

/// The line that runs one test again with one seed.
fn replay_line(seed: u64, started: &Started, test: &str) -> String {
    let mut line = format!("{SEEDS_VARIABLE}={seed}..{} cargo test", seed.saturating_add(1));
    if let Some(package) = &started.package {
        line += &format!(" -p {package}");
    }
    if let Some(target) = started.target() {
        line += &format!(" {target}");
    }
    line + &format!(" {test} -- --exact")
}

#[track_caller]
fn seeds_from_environment() -> Option<Range<u64>> {
    let text = std::env::var(SEEDS_VARIABLE).ok()?;
    match seeds::range(&text) {
        Ok(seeds) => Some(seeds),
        Err(error) => panic!("{SEEDS_VARIABLE}={text}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_package_target_and_test() {
        let line = |package: &str, folder: &str, program: &str| {
            let started = Started {
                package: Some(package.to_owned()),
                folder: Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
                program: PathBuf::from(program),
            };
            replay_line(7, &started, "it_stands")
        };
        assert_eq!(
            line("shaketable", "", "target/debug/deps/shaketable-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --lib it_stands -- --exact"
        );
        assert_eq!(
            line("shaketable", "", "target/debug/deps/deceived-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --test deceived it_stands -- --exact"
        );
        assert_eq!(
            line("shaketable", "", "target/debug/examples/shaken-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --example shaken it_stands -- --exact"
        );
        assert_eq!(
            line("ledger", "../examples/ledger", "target/debug/deps/ledger-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p ledger it_stands -- --exact"
        );
    }
}
