//! Running a workload from an ordinary `#[test]`.
//!
//! ```text
//! #[test]
//! fn my_layer_is_sound() {
//!     Shake::<MyWorkload>::new().seeds(0..100).assert();
//! }
//! ```
//!
//! The environment variable `SHAKETABLE_SEEDS` overrides the seeds of every such test. `100` and `..100` are
//! the seeds 0 to 99, `5..10` are the seeds 5 to 9, as on the command line. A failure writes a repro file
//! into `target/shaketable`. Its message tells the shrunk run step by step, and ends with the command that
//! replays it.

use crate::{
    describe::workload::Workload,
    judge::finding::Verdict,
    judge::vacuous,
    run::plan::{Demands, Plan, PlanError, Undrawn},
    run::pool::{self, Update},
    run::regressions,
    run::runner::{self, RunResult},
    search::determinism,
    search::seeds,
    search::shrink::{Shrunk, shrink_plan},
};
use shaketable_reports::{Counters, Outcomes, text};
use shaketable_sim::{
    config::ClusterBug,
    faults::{Family, Profile},
    seed::Seed,
};
use std::{
    collections::BTreeMap,
    env, fs,
    io::Write,
    marker::PhantomData,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// The environment variable that overrides the seeds.
pub const SEEDS_VARIABLE: &str = "SHAKETABLE_SEEDS";

/// How long, and for how many runs, a failed run is shrunk unless told otherwise.
const SHRINK_BUDGET: Duration = Duration::from_secs(10);
const SHRINK_REPLAYS: u64 = 1_000;

/// A sweep of one workload over a range of seeds.
#[derive(Clone, Debug)]
pub struct Shake<W> {
    seeds: Range<u64>,
    demands: Demands,
    jobs: usize,
    budget: Option<Duration>,
    twice: u64,
    trace: bool,
    shrink_budget: Duration,
    regressions: Option<PathBuf>,
    workload: PhantomData<fn() -> W>,
}

/// The result of a sweep.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The seeds of the sweep.
    pub seeds: Range<u64>,
    /// The number of seeds that were run.
    pub ran: u64,
    /// The first run that did not pass, with its seed.
    pub failed: Option<(u64, RunResult)>,
    /// The counters of all runs.
    pub counters: Counters,
    /// How the operations of all runs ended, by kind.
    pub outcomes: BTreeMap<&'static str, Outcomes>,
    /// What was required and did not happen: counters that remained zero, kinds of operations of which none
    /// was done.
    pub vacuous: Vec<String>,
}

impl<W: Workload> Default for Shake<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Workload> Shake<W> {
    /// A sweep of the seeds 0 to 49 with standard faults, on one thread.
    pub fn new() -> Self {
        Shake {
            seeds: 0..50,
            demands: Demands::default(),
            jobs: 1,
            budget: None,
            twice: determinism::USUALLY_TWICE,
            trace: false,
            shrink_budget: SHRINK_BUDGET,
            regressions: None,
            workload: PhantomData,
        }
    }

    /// Sets the seeds.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the fault profile.
    pub fn faults(mut self, profile: Profile) -> Self {
        self.demands.profile = profile;
        self
    }

    /// Switches a fault family off.
    pub fn without(mut self, family: Family) -> Self {
        self.demands.without.push(family);
        self
    }

    /// Switches on one of the workload's planted bugs.
    pub fn bug(mut self, name: &str) -> Self {
        self.demands.bug = Some(name.to_owned());
        self
    }

    /// Switches on a planted bug of the simulated cluster.
    pub fn cluster_bug(mut self, bug: ClusterBug) -> Self {
        self.demands.cluster_bug = Some(bug);
        self
    }

    /// Sets the number of threads. The first failing seed does not depend on it.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Sets a time budget, in real time, after which no further seed is started.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Runs every seed twice. Runs that are not identical fail.
    pub fn check_determinism(mut self) -> Self {
        self.twice = u64::MAX;
        self
    }

    /// Writes the transcript of a failed run into a file next to its repro file.
    pub fn trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// Sets the time, in real time, for which [`assert`](Shake::assert) shrinks the plan of a failed run; 10
    /// seconds unless set. With zero the run is not shrunk.
    pub fn shrink_budget(mut self, budget: Duration) -> Self {
        self.shrink_budget = budget;
        self
    }

    /// Sets the folder of the regressions: repro files of plans that once failed, which are replayed before
    /// the seeds, in the order of their names. The path is relative to the folder of the package, where
    /// `cargo test` runs tests. It is `tests/regressions/WORKLOAD` if it is not set, as
    /// `shaketable regressions add` makes it; that folder need not exist. A plan that can no longer be
    /// replayed is printed, and does not fail the test; a file that is damaged does.
    pub fn regressions(mut self, folder: impl Into<PathBuf>) -> Self {
        self.regressions = Some(folder.into());
        self
    }

    /// Replays a repro file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a repro file of this workload.
    pub fn replay(file: &Path) -> Result<RunResult, PlanError> {
        let repro = fs::read_to_string(file).map_err(|error| PlanError::Incomplete(error.to_string()))?;
        Ok(runner::run(&Plan::from_json::<W>(&repro)?, false))
    }

    /// Runs the seeds up to the first one that does not pass.
    #[track_caller]
    pub fn run(&self) -> SweepResult {
        let seeds = seeds_from_environment().unwrap_or_else(|| self.seeds.clone());
        let deadline = self.budget.map(|budget| now() + budget);
        let failed = AtomicBool::new(false);
        let (mut counters, mut faults) = (Counters::default(), BTreeMap::new());
        let mut outcomes: BTreeMap<&'static str, Outcomes> = BTreeMap::new();
        let mut first = None::<(u64, RunResult)>;
        let stop = || failed.load(Ordering::Relaxed) || deadline.is_some_and(|at| now() >= at);
        let ran = pool::run(
            seeds.end.saturating_sub(seeds.start),
            self.jobs,
            stop,
            |place| {
                let seed = seeds.start + place;
                let result = self.one(seed, place < self.twice);
                if result.verdict() != Verdict::Passed {
                    failed.store(true, Ordering::Relaxed);
                }
                (seed, result)
            },
            |update| {
                if let Update::Done(_, (seed, result)) = update {
                    counters.add(&result.counters);
                    for (kind, of_kind) in &result.outcomes {
                        outcomes.entry(kind).or_default().add(of_kind);
                    }
                    result.faults.iter().for_each(|(family, n)| *faults.entry(*family).or_default() += n);
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
            None => {
                let delivered = |family| faults.get(&family).copied().unwrap_or(0);
                let outcomes = outcomes.iter().map(|(kind, of_kind)| (*kind, of_kind));
                vacuous::judge(&counters, outcomes, delivered, Some(self.demands.faults()), ran)
            }
        };
        SweepResult { seeds, ran, failed: first, counters, outcomes, vacuous }
    }

    /// The plan of a seed. A test has a message.
    fn drawn(&self, seed: u64) -> Plan {
        let drawn = catch_unwind(AssertUnwindSafe(|| Plan::draw::<W>(Seed(seed), &self.demands)));
        drawn.unwrap_or_else(|panic| match panic.downcast_ref::<Undrawn>() {
            Some(undrawn) => panic!("{undrawn}"),
            None => resume_unwind(panic),
        })
    }

    fn one(&self, seed: u64, twice: bool) -> RunResult {
        let plan = self.drawn(seed);
        let mut result = runner::run(&plan, false);
        // A failure is described with a second run, unless every seed is run twice.
        let twice = twice && (self.twice == u64::MAX || result.verdict() == Verdict::Passed);
        if twice && !determinism::same(&result, &runner::run(&plan, false)) {
            result.findings.insert(0, determinism::explained(|| runner::run(&plan, true)));
        }
        result
    }

    /// Replays the regressions, runs the seeds, and panics if a run does not pass or the sweep was vacuous.
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
        let usual = Path::new(regressions::FOLDER).join(W::NAME);
        let folder = match &self.regressions {
            Some(folder) => folder,
            None if usual.is_dir() => &usual,
            None => return,
        };
        let files = match regressions::files(folder) {
            Ok(files) => files,
            Err(error) => panic!("the regressions in {}: {error}", folder.display()),
        };
        for file in files.foreign {
            note(&format!("{} is not a regression", file.display()));
        }
        for file in files.regressions {
            if let Some(why) = regressions::damage(&file) {
                panic!("the regression {} is damaged: {why}", file.display());
            }
            let replayed =
                regressions::replay(&file, |repro| Ok(runner::run(&Plan::from_json::<W>(repro)?, false)));
            match replayed {
                Ok((_, regressions::Outcome::Passed(_))) => {}
                Ok((_, regressions::Outcome::Failed(result))) => {
                    panic!("{} failed again, {:?}\n{}", file.display(), result.verdict(), findings(&result))
                }
                Err(error) => note(&format!("{} cannot be replayed: {error}", file.display())),
            }
        }
    }

    /// Runs the seeds and panics if none of them catches the planted bug. Returns the seed that caught it. A
    /// run in which the harness, or the workload's own setup or model, failed does not catch the bug: this
    /// panics as well.
    #[track_caller]
    pub fn assert_caught(&self) -> (u64, RunResult) {
        let swept = self.run();
        let planted = self.demands.bug.as_deref().unwrap_or("the planted bug");
        match swept.failed {
            Some((seed, result)) if result.verdict() == Verdict::Harness || result.accuses_workload() => {
                panic!("{planted} was not caught: {}", self.describe(seed, &result))
            }
            Some(caught) => caught,
            None => panic!("{}: {planted} was not caught by seeds {:?}", W::NAME, swept.seeds),
        }
    }

    /// What the failure of a plan needs. `None` if it is not to be shrunk, or does not fail again.
    fn shrunk(&self, plan: &Plan) -> Option<Shrunk> {
        if self.shrink_budget.is_zero() {
            return None;
        }
        let until = now() + self.shrink_budget;
        shrink_plan(plan.clone(), &mut |so_far| so_far.replays < SHRINK_REPLAYS && now() < until)
    }

    /// The description of a failed run for its user. Its last line is the command that replays the run.
    fn describe(&self, seed: u64, result: &RunResult) -> String {
        let plan = self.drawn(seed);
        let mut text = format!("{} failed with seed {seed}, {:?}\n", W::NAME, result.verdict());
        let mut differs = String::new();
        let again = runner::run(&plan, false);
        if !determinism::same(result, &again) && !result.findings.iter().any(determinism::is_about) {
            let how = match again.verdict() {
                Verdict::Passed => "did not fail again",
                _ => "failed in another way",
            };
            let why = determinism::explained(|| runner::run(&plan, true)).message;
            differs = format!("it {how}: not deterministic: {why}\n");
        }
        let shrunk = self.shrunk(&plan).and_then(|shrunk| {
            let plan = Plan::from_json::<W>(&shrunk.repro).ok()?;
            Some((runner::run(&plan, true), shrunk))
        });
        let planted = self.demands.bug.as_ref().map_or(String::new(), |bug| format!("-{bug}"));
        let write = |extension: &str, content: String| match write_file(
            &format!("{}{planted}-{seed}.{extension}", W::NAME),
            content,
        ) {
            Ok(path) => path.display().to_string(),
            Err(error) => format!("could not be written: {error}"),
        };
        // A finding that remained is told once, with the operations that the story shows.
        let first = |result: &RunResult| result.findings.first().map(|finding| finding.kind);
        let remains =
            shrunk.as_ref().filter(|(shown, _)| differs.is_empty() && first(shown) == first(result));
        text += &findings(remains.map_or(result, |(shown, _)| shown));
        text += &differs;
        if let Some((shown, shrunk)) = &shrunk {
            text += &format!("\n  shrunk from {}\n  to {}\n", shrunk.before, shrunk.after);
            if remains.is_none() {
                text += &findings(shown);
            }
            let story = shown.history.as_deref().map_or_else(String::new, text::story);
            text += &format!("\n{story}\n");
        }
        text += &format!("repro file: {}\n", write("json", plan.to_json()));
        if let Some((_, shrunk)) = shrunk {
            text += &format!("shrunk to: {}\n", write("shrunk.json", shrunk.repro));
        }
        if self.trace {
            let history = runner::run(&plan, true).history;
            let transcript = history.as_deref().map_or_else(String::new, text::transcript);
            text += &format!("transcript: {}\n", write("trace", transcript));
        }
        text + &replay_line_now(seed)
    }
}

/// The real time. It only decides whether a further seed is started, and how long a failure is shrunk.
#[expect(clippy::disallowed_methods, reason = "a budget is in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Prints a line, which the test runner shows also if the test passes.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The findings, one per line.
fn findings(result: &RunResult) -> String {
    result.findings.iter().map(|finding| format!("  {}: {}\n", finding.kind, finding.message)).collect()
}

/// Writes a file into the folder `shaketable` of cargo's target folder.
fn write_file(name: &str, content: String) -> std::io::Result<PathBuf> {
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
    /// The folder of the package.
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

    /// The cargo argument that selects this program among the targets of the package; `None` if it is
    /// ambiguous.
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
            // A library and a program with the same name cannot be distinguished.
            (true, true, false) => Some("--lib".to_owned()),
            (true, false, true) => Some(format!("--bin {name}")),
            _ => None,
        }
    }
}

/// The line that runs the test of this thread again with one seed.
pub(crate) fn replay_line_now(seed: u64) -> String {
    replay_line(seed, &Started::now(), std::thread::current().name().unwrap_or_default())
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

/// The seeds that the environment variable names.
#[track_caller]
pub(crate) fn seeds_from_environment() -> Option<Range<u64>> {
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
            replay_line(7, &started, "it_is_sound")
        };
        assert_eq!(
            line("shaketable", "..", "target/debug/deps/shaketable-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --lib it_is_sound -- --exact"
        );
        assert_eq!(
            line("shaketable", "..", "target/debug/deps/deceived-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --test deceived it_is_sound -- --exact"
        );
        assert_eq!(
            line("shaketable", "..", "target/debug/examples/shaken-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p shaketable --example shaken it_is_sound -- --exact"
        );
        assert_eq!(
            line("ledger", "../../examples/ledger", "target/debug/deps/ledger-0123456789abcdef"),
            "SHAKETABLE_SEEDS=7..8 cargo test -p ledger it_is_sound -- --exact"
        );
    }
}
