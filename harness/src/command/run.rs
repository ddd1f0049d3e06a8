//! `shaketable run`, and the command without a subcommand: what its arguments ask for, as a sweep.

use super::{
    Refusal, advise,
    args::{Budget, Shaking, Written},
    backend::{Backend, BackendArguments},
    choose,
    conclude::{make_folder, settle},
    failures,
    files::Files,
    interrupt::Interrupt,
    output::{self, Outputs},
    program, refuse,
    regressions::Regressions,
    report::invocation,
    resume::Earlier,
    shrink,
    sweep::Sweep,
};
use crate::{
    run::plan::Demands,
    search::{determinism, entry::Entry, seeds},
};
use clap::Args;
use shaketable_reports::{Body, Conclusion, Ending, SweepReport, text};
use std::{ops::Range, path::PathBuf, time::Duration};

#[derive(Clone, Debug, Default, Args)]
pub(super) struct RunArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B [default: 200, or N of
    /// --check-determinism]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Count the seeds from a number drawn from this text, such as the date, so that sweeps with
    /// different texts have no seed in common
    #[arg(long, value_name = "TEXT", value_parser = seeds::fresh_text)]
    pub fresh: Option<String>,
    /// The number of threads [default: one per processor, four per processor with a real cluster]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    #[command(flatten)]
    pub budget: Budget,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug that every selected workload has (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Run the first N seeds of each workload twice and compare every event [default: 2 on simulated
    /// clusters]
    #[arg(long, value_name = "N", value_parser = choose::at_least_one)]
    pub check_determinism: Option<u64>,
    /// Run only share I of N of the seeds; I starts at 1
    #[arg(long, value_name = "I/N", value_parser = choose::shard)]
    pub shard: Option<(u64, u64)>,
    /// Fail as vacuous (exit code 4) if a coverage point of a workload was never reached
    #[arg(long)]
    pub require_points: bool,
    /// Replay the regressions in this folder first: a folder of repro files for each workload. Not with
    /// --bug, nor on a real cluster; of several shards, the first one replays them [default:
    /// tests/regressions, if it exists]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["bug", "no_regressions"])]
    pub regressions: Option<PathBuf>,
    /// Replay no regressions
    #[arg(long)]
    pub no_regressions: bool,
    /// Fail if a regression cannot be replayed because its version or its operations have changed
    #[arg(long)]
    pub strict_regressions: bool,
    /// Continue the sweep of this report, which is not complete, and report on the whole sweep
    #[arg(long, value_name = "REPORT", conflicts_with_all = [
        "workloads", "seeds", "fresh", "faults", "without", "scale", "bug", "check_determinism", "shard", "regressions",
        "no_regressions", "strict_regressions"
    ])]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub written: Written,
    /// Do not shrink the first failure of each workload
    #[arg(long)]
    pub no_shrink: bool,
    /// Shrink the first failure of each workload for at most this CPU time: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// Add the failures to the list in this JSON file, which is made if it does not exist (see `report
    /// failures`)
    #[arg(long, value_name = "FILE")]
    pub failures: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

impl RunArguments {
    /// The files of the report, and that of the list of failures.
    pub(super) fn files(&self) -> Files<'_> {
        Files { failures: self.failures.as_deref(), ..self.written.files() }
    }
}

/// The default number of seeds.
pub(super) const SEEDS: u64 = 200;

/// The runs of the command without a subcommand, of all workloads together: somebody waits for a first
/// verdict.
const FIRST_RUNS: u64 = 400;
/// The seeds that each workload has of them at least: with fewer, what a workload must meet is not met.
const FIRST_SEEDS: u64 = 25;

/// Sweeps every workload with a few seeds, writes the report into the build folder, and says how to go on.
pub(super) fn main_job() -> Result<Conclusion, Refusal> {
    let folder = make_folder()?;
    let [json, html] = ["report.json", "report.html"].map(|name| Some(folder.join(name)));
    let entries = (program().workloads)();
    let seeds = (FIRST_RUNS / (entries.len() as u64).max(1)).clamp(FIRST_SEEDS, SEEDS);
    let conclusion = run(&RunArguments {
        seeds: Some(0..seeds),
        written: Written { json, html, ..Written::default() },
        shrink_budget: shrink::BUDGET,
        ..RunArguments::default()
    })?;
    if let Some(first) = entries.first().filter(|_| conclusion == Conclusion::Passed) {
        output::print(&how_to_go_on(first.name()))?;
    }
    Ok(conclusion)
}

/// What comes after a first sweep that found nothing.
fn how_to_go_on(workload: &str) -> String {
    let name = invocation();
    let bugs = format!("{name} bugs {workload}");
    let width = bugs.len();
    let others = program().others.map(|line| format!("The other workloads: {line}\n"));
    format!(
        "\nThat was a first part. To go on:\n  {:width$}  # {SEEDS} seeds of each of these workloads\n  \
         {bugs:width$}  # bugs that are planted in one, until each is caught\n{}",
        format!("{name} run"),
        others.unwrap_or_default(),
    )
}

/// Switches on a planted bug that each of these workloads must have.
fn plant(demands: &mut Demands, entries: &[Box<dyn Entry>], bug: &str) -> Result<(), Refusal> {
    entries.iter().try_for_each(|entry| choose::plant(demands, entry.as_ref(), bug))
}

/// Performs the sweep, and prints and writes the report.
pub(super) fn run(arguments: &RunArguments) -> Result<Conclusion, Refusal> {
    let prepared = Prepared::new(arguments)?;
    let report = prepared.sweep.perform(&prepared.interrupt);
    prepared.conclude(report)
}

/// A sweep that can begin: what it needs was checked.
pub(super) struct Prepared {
    pub(super) sweep: Sweep,
    pub(super) interrupt: Interrupt,
    list: Option<failures::List>,
}

impl Prepared {
    /// The sweep that the arguments ask for.
    pub(super) fn new(arguments: &RunArguments) -> Result<Prepared, Refusal> {
        let mut sweep = match &arguments.resume {
            Some(path) => Sweep::resumed(arguments, Earlier::read(path)?)?,
            None => Sweep::new(arguments)?,
        };
        if sweep.run_twice > 0 && arguments.backend.is_real()? {
            refuse!(
                "--check-determinism requires simulated clusters: runs on a real cluster are never identical"
            );
        }
        if sweep.share().len() == 0 {
            refuse!("this shard has no seeds: there are fewer seeds than shards");
        }
        sweep.outputs = Outputs::check(arguments.files())?;
        let list = arguments.failures.as_deref().map(failures::List::check).transpose()?;
        sweep.regressions = Regressions::choose(&sweep, arguments)?;
        sweep.backend = Backend::open(&arguments.backend, sweep.demands.profile)?;
        Ok(Prepared { sweep, interrupt: Interrupt::listen()?, list })
    }

    /// Prints and writes the report.
    pub(super) fn conclude(self, report: SweepReport) -> Result<Conclusion, Refusal> {
        let Prepared { mut sweep, interrupt, list } = self;
        let outcome = report.outcome;
        let interrupted = (report.ending == Ending::Interrupted).then(|| {
            let all = sweep.share().len().saturating_mul(sweep.entries.len() as u64);
            interrupt.refusal(&format!(
                "after {} of {}",
                text::count(report.runs()),
                text::plural(all, "run", "runs")
            ))
        });
        if sweep.backend.is_simulated() {
            let entries = sweep.entries.iter().map(AsRef::as_ref);
            sweep.outputs.advice = advise::for_page(&sweep.outputs, entries, sweep.jobs, &interrupt);
        }
        let printed = text::sweep(&report, program().commit);
        let listed = list.map_or(Ok(()), |list| {
            let before = sweep.earlier.as_ref().map(|earlier| &earlier.report);
            list.add(&report, before, program().commit)
        });
        let ended_by_outputs = report.ending == Ending::Unwritable;
        let mut written = sweep.outputs.publish(&printed, program().commit, Body::Sweep(report));
        if ended_by_outputs {
            written = written.and(Err(output::unwritable()));
        }
        let written = written.and(listed);
        settle(outcome, written, interrupted)
    }
}

/// The CPU time for which failures are shrunk, if they are.
fn shrink_budget(arguments: &RunArguments) -> Option<Duration> {
    (!arguments.no_shrink).then_some(arguments.shrink_budget)
}

impl Sweep {
    /// The sweep that the arguments ask for.
    fn new(arguments: &RunArguments) -> Result<Sweep, Refusal> {
        let entries = choose::workloads(&arguments.workloads)?;
        let mut demands = arguments.shaking.demands(entries.iter().map(Box::as_ref))?;
        if let Some(bug) = &arguments.bug {
            plant(&mut demands, &entries, bug)?;
        }
        let usually = if arguments.backend.is_real()? { 0 } else { determinism::USUALLY_TWICE };
        let run_twice = arguments.check_determinism.unwrap_or(usually);
        let range = arguments.seeds.clone().unwrap_or(0..arguments.check_determinism.unwrap_or(SEEDS));
        let seeds = match &arguments.fresh {
            None => Some(range),
            Some(text) => seeds::fresh(text, &range),
        };
        let Some(seeds) = seeds else { refuse!("the range of seeds is too long for --fresh") };
        Ok(Sweep {
            demands,
            fresh: arguments.fresh.clone(),
            require_points: arguments.require_points,
            shard: arguments.shard,
            run_twice,
            jobs: arguments.jobs.unwrap_or_else(|| arguments.backend.jobs()),
            budget: arguments.budget.budget,
            shrink_budget: shrink_budget(arguments),
            ..Sweep::plain(entries, seeds)
        })
    }

    /// The remaining part of a sweep.
    fn resumed(arguments: &RunArguments, earlier: Earlier) -> Result<Sweep, Refusal> {
        let report = &earlier.report;
        if report.real != arguments.backend.is_real()? {
            refuse!("a sweep must be continued on the same kind of cluster, simulated or real");
        }
        let names: Vec<String> = report.workloads.iter().map(|w| w.workload.clone()).collect();
        let entries = choose::workloads(&names)?;
        let demands = earlier.demands(|demands, bug| plant(demands, &entries, bug))?;
        Ok(Sweep {
            fresh: report.fresh.clone(),
            require_points: arguments.require_points || report.require_points,
            shard: report.shard,
            run_twice: report.run_twice,
            demands,
            jobs: arguments.jobs.unwrap_or_else(|| arguments.backend.jobs()),
            budget: arguments.budget.budget,
            shrink_budget: shrink_budget(arguments),
            ..Sweep::plain(entries, report.seeds.clone())
        }
        .continuing(earlier))
    }
}
