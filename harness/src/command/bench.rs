//! `shaketable bench`: the speed of runs; each figure states how it was measured.
//!
//! The figures use CPU time, because idle virtual time costs nothing and the machine may be shared.

use super::{
    Refusal,
    against::Against,
    choose,
    conclude::processors,
    cost,
    interrupt::Interrupt,
    output::{self, Target},
    program,
    progress::Progress,
    refuse,
    run::SEEDS,
    sweep::Sweep,
};
use crate::{
    judge::finding::Verdict,
    run::{
        plan::Plan,
        pool::{self, Update},
        runner,
    },
    search::{entry::Entry, seeds},
};
use clap::Args;
pub use cost::thread_cpu;
use shaketable_reports::{BenchReport, Body, Comparison, Conclusion, Figure, SweepReport, text};
use std::{
    ops::Range,
    path::{self, Path, PathBuf},
};

/// The arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArguments {
    /// Measure only runs of these workloads [default: those of all, and what else the program measures]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B [default: 200, or 40 with --against]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Measure runs with this build of the command and with another one alternately, and print how much
    /// faster this one is
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
    /// How often each workload is measured with each of the two programs
    #[arg(long, value_name = "N", requires = "against", value_parser = choose::at_least_one, default_value_t = 6)]
    pub rounds: u64,
    /// Write the figures as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The number of seeds of a measurement of two programs.
const SEEDS_OF_PAIRS: u64 = 40;

/// Measures the figures, and prints and writes the report.
pub fn bench(arguments: &BenchArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let entries = choose::workloads(&arguments.workloads)?;
    let interrupt = Interrupt::listen()?;
    let meter = cost::Meter::start();
    let (mut figures, mut comparison, mut cpu_of_others) = (Vec::new(), None, 0);
    if let Some(other) = &arguments.against {
        let (compared, cpu) = against(other, &entries, arguments, &interrupt)?;
        (comparison, cpu_of_others) = (Some(compared), cpu);
    } else {
        // The sweep comes first, so that the peak memory of the process is that of the sweep.
        figures = sweep(entries, arguments.seeds.clone().unwrap_or(0..SEEDS), &interrupt)?;
        if arguments.workloads.is_empty() {
            figures = (program().figures)(figures, &interrupt)?;
        }
    }
    let mut cost = meter.cost();
    cost.cpu_ns += cpu_of_others;
    let report = BenchReport { processors: processors() as u64, figures, comparison, cost };
    let printed = text::bench(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Bench(report));
    written.map(|()| Conclusion::Passed)
}

/// Compares this program with another one. Returns the CPU time of their processes as well, nanoseconds.
fn against(
    other: &Path,
    entries: &[Box<dyn Entry>],
    arguments: &BenchArguments,
    interrupt: &Interrupt,
) -> Result<(Comparison, u64), Refusal> {
    let paths = std::env::current_exe().and_then(|this| Ok([this, path::absolute(other)?]));
    let [this, other] = match paths {
        Ok(paths) => paths,
        Err(error) => refuse!("cannot find the programs: {error}"),
    };
    let against = Against {
        programs: [&this, &other],
        workloads: entries.iter().map(|entry| entry.name()).collect(),
        seeds: arguments.seeds.clone().unwrap_or(0..SEEDS_OF_PAIRS),
        rounds: arguments.rounds,
    };
    against.compare(interrupt)
}

/// A figure without a target.
pub fn figure(name: &str, value: f64, unit: &str, profile: &str) -> Figure {
    Figure {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        reach: None,
        at_most: false,
        profile: profile.to_owned(),
    }
}

/// What a sweep does per commit, of one workload.
#[derive(Clone, Copy, Default)]
struct PerCommit {
    commits: u64,
    events: u64,
    allocations: u64,
}

/// The figures of the sweep that the command does without a subcommand, with every seed run twice.
fn sweep(
    entries: Vec<Box<dyn Entry>>,
    seeds: Range<u64>,
    interrupt: &Interrupt,
) -> Result<Vec<Figure>, Refusal> {
    let setting = format!("standard faults, seeds {}..{}", seeds.start, seeds.end);
    let sweep =
        Sweep { run_twice: seeds.end - seeds.start, jobs: processors(), ..Sweep::plain(entries, seeds) };
    let mut per_commit = vec![PerCommit::default(); sweep.entries.len()];
    let report = sweep.observed(interrupt, |workload, ran| {
        let sums = &mut per_commit[workload];
        // The second run of the seed was the same.
        sums.commits += 2 * ran.result.counters.committed;
        sums.events += 2 * ran.result.events;
        sums.allocations += ran.allocations;
    });
    if report.ending != shaketable_reports::Ending::Complete {
        return Err(interrupt.refusal("before anything was measured"));
    }
    let SweepReport { workloads, jobs, cost, .. } = &report;
    let mut figures = Vec::new();
    let profile = format!("{setting}, each run twice, drawn topology, clients and load");
    for w in workloads {
        let name = format!("{}, seeds per core minute", w.workload);
        figures.push(figure(&name, w.runs_per_core_minute(), "seeds", &profile));
    }
    let mut of_commits = |unit: &str, of: fn(&PerCommit) -> u64, profile: &str| {
        for (w, sums) in workloads.iter().zip(&per_commit).filter(|(_, sums)| of(sums) > 0) {
            let name = format!("{}, {unit} per commit", w.workload);
            figures.push(figure(&name, of(sums) as f64 / sums.commits.max(1) as f64, unit, profile));
        }
    };
    of_commits("events", |sums| sums.events, &format!("{setting}: the events that make the hash of a run"));
    // A program whose allocator does not count has none.
    let whole_runs = format!("{setting}: requests for memory of whole runs, plan and judges included");
    of_commits("allocations", |sums| sums.allocations, &whole_runs);
    let total = report.total();
    let whole = match workloads.len() == (program().workloads)().len() {
        true => format!("a sweep of every workload, {setting}"),
        false => format!("a sweep of these workloads, {setting}"),
    };
    figures.push(figure(
        "virtual seconds per CPU second",
        // The virtual time is that of the first runs; the second runs took as long.
        2.0 * total.virtual_ns as f64 / total.cpu_ns.max(1) as f64,
        "",
        &whole,
    ));
    figures.push(figure(
        "one run",
        total.cpu_ns as f64 / 1e6 / (total.runs + total.run_twice).max(1) as f64,
        "CPU ms",
        &whole,
    ));
    figures.push(Figure {
        reach: Some(300.0),
        at_most: true,
        ..figure("peak memory", cost.peak_memory as f64 / 1e6, "MB", &format!("{whole}, {jobs} jobs"))
    });
    let mut at_most_none = |name: String, count: u64| {
        let figure = figure(&name, count as f64, "runs", &whole);
        figures.push(Figure { reach: Some(0.0), at_most: true, ..figure });
    };
    at_most_none(format!("differing in {} double runs", text::count(total.run_twice)), total.differing);
    at_most_none(format!("failing in {} runs", text::count(total.runs)), total.failed());
    Ok(figures)
}

/// Runs the plans of the seeds 0 to `runs` - 1 on one thread. Returns their CPU time, in nanoseconds, and
/// their number. `each` is called with the result of each run.
///
/// # Errors
///
/// If a run does not pass or the measurement is interrupted.
pub fn measure(
    name: &str,
    runs: u64,
    interrupt: &Interrupt,
    plan: impl Fn(u64) -> Plan + Sync,
    mut each: impl FnMut(&runner::RunResult),
) -> Result<(u64, u64), Refusal> {
    let mut progress = Progress::new(&[(name, runs)], ("run", "runs"), "failed");
    let (mut cpu, mut failed) = (0, None);
    let done = pool::run(
        runs,
        1,
        || interrupt.is_set(),
        |seed| {
            let plan = plan(seed);
            let before = cost::thread_cpu();
            let result = runner::run(&plan, false);
            (result, cost::thread_cpu() - before)
        },
        |update| match update {
            Update::Tick => progress.tick(),
            Update::Done(seed, (result, took)) => {
                progress.done(0, result.verdict() == Verdict::Passed);
                cpu += took;
                each(&result);
                if let (None, Some(finding)) = (&failed, result.findings.first()) {
                    failed =
                        Some(format!("{name}: seed {seed} failed: {}: {}", finding.kind, finding.message));
                }
            }
        },
    );
    progress.end();
    match failed {
        Some(failed) => Err(Refusal::Usage(failed)),
        None if done < runs => Err(interrupt.refusal(&format!("before {name} was measured"))),
        None => Ok((cpu, done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::fake::{fake, nondeterministic},
        run::allocations::Counting,
    };
    use std::alloc::System;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn a_sweep_tells_what_commits_cost() {
        let entries = vec![fake("one", |_, _| Verdict::Passed), nondeterministic("two", 2)];
        let figures = sweep(entries, 3..7, &Interrupt::default()).expect("measured");
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        // A run of a fake has 100 events and 10 commits.
        assert_eq!(["one", "two"].map(|w| value(&format!("{w}, events per commit"))), [Some(10.0); 2]);
        // The allocator of this program counts.
        let allocations = value("one, allocations per commit").expect("counted");
        assert!((0.1..1_000.0).contains(&allocations), "{allocations}");
        assert_eq!(value("differing in 8 double runs"), Some(4.0));
        let entries = vec![fake("one", |_, _| Verdict::Passed)];
        let refusal = sweep(entries, 3..7, &Interrupt::already()).expect_err("interrupted");
        assert_eq!(refusal.to_string(), "interrupted before anything was measured");
    }
}
