//! `shaketable shrink`: cuts a failing run down to what its failure needs.

use super::{
    Refusal, advise,
    args::{REPLAYS, Subject},
    backend::Backend,
    choose,
    conclude::{folder, make_folder, processors, settle},
    cost,
    files::Files,
    interrupt::Interrupt,
    output::{self, Outputs, Target},
    program,
    progress::Progress,
    refuse,
    replay::{self, Source},
    report::{self, Origin, quoted},
};
use crate::{
    judge::finding::deciding,
    run::plan::PlanError,
    search::{self, entry::Entry, shrink::Shrunk, when::Effort},
};
use clap::Args;
use shaketable_reports::{
    Body, Conclusion, RunHistory, ShrunkRun, When,
    text::{self, Details},
    when::moments,
};
use shaketable_sim::seed::Seed;
use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, Debug, Args)]
pub(super) struct ShrinkArguments {
    #[command(flatten)]
    pub subject: Subject,
    /// End with the smallest plan so far after this CPU time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// End with the smallest plan so far after this many runs
    #[arg(long, value_name = "N", value_parser = choose::at_least_one, default_value_t = REPLAYS)]
    pub replays: u64,
    /// Then tell when the failure became certain: run the shrunk plan again with other chance from a
    /// moment on, 25 times for each of many moments, within --shrink-budget once more
    #[arg(long)]
    pub when: bool,
    /// The number of threads for --when [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs, requires = "when")]
    pub jobs: Option<usize>,
    /// Print also what was drawn, what happened, and which faults struck
    #[arg(long, short)]
    pub verbose: bool,
    /// Write the shrunk plan to this file [default: in target/shaketable]
    #[arg(long, short, value_name = "REPRO-FILE")]
    pub output: Option<PathBuf>,
    /// Write the report of the shrunk run as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The CPU time after which a search ends, unless told otherwise.
pub(super) const BUDGET: Duration = Duration::from_secs(10);

/// When a search ends although more could be taken away.
pub(super) struct Limits<'a> {
    replays: u64,
    began: u64,
    pace: Cell<Pace>,
    interrupt: &'a Interrupt,
}

/// The CPU time of a search and of its pieces, nanoseconds.
#[derive(Clone, Copy)]
struct Pace {
    budget: u64,
    /// When the last piece ended.
    last: u64,
    /// What the longest piece took.
    longest: u64,
}

impl Pace {
    /// The pace after a piece that ended now, and whether another piece like the longest one fits into the
    /// budget.
    fn after(self, now: u64) -> (Pace, bool) {
        let longest = self.longest.max(now.saturating_sub(self.last));
        (Pace { last: now, longest, ..self }, now.saturating_add(longest) < self.budget)
    }
}

impl Limits<'_> {
    /// The limits of a search that begins now, on this thread.
    pub(super) fn new(replays: u64, budget: Duration, interrupt: &Interrupt) -> Limits<'_> {
        let budget = u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX);
        let pace = Cell::new(Pace { budget, last: 0, longest: 0 });
        Limits { replays, began: cost::thread_cpu(), pace, interrupt }
    }

    /// Whether the search may go on after this many runs: a search ends before a run that could exceed its
    /// budget.
    pub(super) fn allow(&self, replays: u64) -> bool {
        let (pace, fits) = self.pace.get().after(cost::thread_cpu() - self.began);
        self.pace.set(pace);
        replays < self.replays && fits && !self.interrupt.is_set()
    }
}

/// Shrinks the run, and prints and writes what remains.
pub(super) fn shrink(arguments: &ShrinkArguments) -> Result<Conclusion, Refusal> {
    let (entry, repro, named) = match arguments.subject.seed {
        Some(seed) => {
            let (entry, demands) = arguments.subject.workload()?;
            let plan = entry.plan(Seed(seed), &demands);
            let named = format!("{}-{seed}", entry.name());
            (entry, plan, named)
        }
        None => {
            let Source { entry, repro } = replay::read(&arguments.subject)?;
            let stem = Path::new(&arguments.subject.what).file_stem().unwrap_or_default();
            let named = format!("{}-shrunk", stem.to_string_lossy());
            (entry, repro, named)
        }
    };
    let path = arguments.output.clone().unwrap_or_else(|| folder().join(format!("{named}.json")));
    // A folder of one's own choice must exist; the usual one is made when there is something to write.
    let given = Target::check_named(arguments.output.as_deref())?;
    let [json, html] = [&arguments.json, &arguments.html].map(Option::as_deref);
    let mut outputs = Outputs::check(Files { json, html, plan: Some(&path), ..Files::default() })?;
    let interrupt = Interrupt::listen()?;
    let shrunk = shrunk(entry.as_ref(), &repro, arguments, &interrupt);
    let Some(shrunk) =
        shrunk.map_err(|error| Refusal::Usage(format!("{}: {error}", arguments.subject.what)))?
    else {
        if interrupt.is_set() {
            return Err(interrupt.refusal("before the run failed"));
        }
        refuse!("the run passes: there is nothing to shrink");
    };
    let head = entry.head(&shrunk.repro).map_err(|e| Refusal::Usage(e.to_string()))?;
    let shown = path.to_string_lossy();
    let origin = Origin {
        repro: Some(&shown),
        ..Origin::of(entry.name(), head.seed, &head.demands, &Backend::Simulated)
    };
    let mut report = origin.report(&shrunk.result, head.summary);
    report.shrunk = replayed(entry.as_ref(), &shrunk).map(Box::new);
    let plan_written = write_plan(given, &path, &shrunk.repro);
    if plan_written.is_ok() {
        output::print_error(&format!("plan in {}", quoted(&shown)));
    }
    let mut done = "before nothing more could be taken away";
    if let Some(told) = report.shrunk.as_mut().filter(|_| arguments.when && !interrupt.is_set()) {
        done = "before each moment was looked at";
        told.when = when(entry.as_ref(), &shrunk.repro, &told.history, arguments, &interrupt);
    }
    let outcome = report.verdict.outcome();
    let interrupted = interrupt.is_set().then(|| interrupt.refusal(done));
    outputs.advice = advise::for_page(&outputs, [entry.as_ref()], 1, &interrupt);
    let printed = text::replay(&report, program().commit, Details::of(arguments.verbose));
    let written = outputs.publish(&printed, program().commit, Body::Replay(Box::new(report)));
    let written = plan_written.and(written);
    settle(outcome, written, interrupted)
}

/// Writes the plan to the given file, or else to this path in the usual folder.
fn write_plan(given: Option<Target>, path: &Path, plan: &str) -> Result<(), Refusal> {
    let target = match given {
        Some(target) => target,
        None => {
            make_folder()?;
            Target::check(path)?
        }
    };
    target.write(plan)
}

/// Shrinks the plan of a failure for its report, as [`Entry::shrink`] does. `None` if it does not fail again:
/// it is not deterministic.
pub(super) fn shrunk_plan(
    entry: &dyn Entry,
    plan: &str,
    should_continue: &mut dyn FnMut(&search::shrink::Progress) -> bool,
) -> Option<ShrunkRun> {
    let shrunk = entry.shrink(plan, should_continue).ok().flatten()?;
    replayed(entry, &shrunk)
}

/// A shrunk run with what happens in it, as data of a report.
fn replayed(entry: &dyn Entry, shrunk: &Shrunk) -> Option<ShrunkRun> {
    let replayed = entry.replay(&shrunk.repro, true).ok()?;
    Some(ShrunkRun {
        plan: serde_json::from_str(&shrunk.repro).ok()?,
        before: shrunk.before,
        after: shrunk.after,
        replays: shrunk.replays,
        is_minimal: shrunk.is_minimal,
        left_out: shrunk.left_out.clone(),
        message: deciding(&replayed.findings).map_or_else(String::new, |finding| finding.message.clone()),
        event_hash: report::hash(&replayed),
        history: replayed.history.map(|history| *history).unwrap_or_default(),
        when: None,
    })
}

/// When the failure of a plan became certain. `None` if its runs ended before each moment was looked at.
fn when(
    entry: &dyn Entry,
    repro: &str,
    history: &RunHistory,
    arguments: &ShrinkArguments,
    interrupt: &Interrupt,
) -> Option<When> {
    let moments = moments(history);
    let total = Effort::most_runs(moments.len());
    let mut shown = Progress::new(&[(entry.name(), total)], ("run", "runs"), "");
    let mut effort = Effort {
        jobs: arguments.jobs.unwrap_or_else(processors),
        cpu: u64::try_from(arguments.shrink_budget.as_nanos()).unwrap_or(u64::MAX),
        stops: &|| interrupt.is_set(),
        progress: &mut |runs| {
            shown.resume(0, runs, 0);
            shown.tick();
        },
    };
    let when = entry.when(repro, &moments, &mut effort).ok().flatten();
    shown.end();
    if when.is_none() && !interrupt.is_set() {
        output::print_error("--when: the CPU time of --shrink-budget ended before each moment was looked at");
    }
    when
}

/// Shrinks the plan of a repro file. `None` if the run passes.
fn shrunk(
    entry: &dyn Entry,
    repro: &str,
    arguments: &ShrinkArguments,
    interrupt: &Interrupt,
) -> Result<Option<Shrunk>, PlanError> {
    let limits = Limits::new(arguments.replays, arguments.shrink_budget, interrupt);
    // A run that passes has no progress to show.
    let mut shown: Option<Progress> = None;
    let shrunk = entry.shrink(repro, &mut |so_far| {
        let new = || Progress::new(&[(entry.name(), arguments.replays)], ("run", "runs"), "");
        let progress = shown.get_or_insert_with(new);
        progress.resume(0, so_far.replays, 0);
        progress.tick();
        limits.allow(so_far.replays)
    });
    if let Some(progress) = shown {
        progress.end();
    }
    shrunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_before_a_run_that_could_exceed_its_budget() {
        let begin = Pace { budget: 100, last: 0, longest: 0 };
        assert!(!Pace { budget: 0, ..begin }.after(0).1, "a budget of zero");
        let (pace, fits) = begin.after(30);
        assert!(fits, "another 30 fit");
        let (pace, fits) = pace.after(40);
        assert!(fits && pace.longest == 30);
        assert!(pace.after(69).1);
        assert!(!pace.after(70).1, "another 30 would not be below 100");
    }
}
