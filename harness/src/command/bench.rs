//! `shaketable bench`: the speed of runs; each figure states how it was measured.
//!
//! The figures use CPU time, because idle virtual time costs nothing and the machine may be shared.

use super::{
    Refusal,
    args::BenchArguments,
    choose,
    conclude::processors,
    cost,
    interrupt::Interrupt,
    output::{self, Target},
    program,
    progress::Progress,
    run::SEEDS,
    sweep::Sweep,
};
pub use cost::thread_cpu;

use crate::{
    judge::finding::Verdict,
    run::plan::Plan,
    run::pool::{self, Update},
    run::runner,
};
use shaketable_reports::{BenchReport, Body, Conclusion, Figure, SweepReport, text};

/// Measures the figures, and prints and writes the report.
pub fn bench(arguments: &BenchArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let meter = cost::Meter::start();
    // The sweep comes first, so that the peak memory of the process is that of the sweep.
    let figures = (program().figures)(sweep(&interrupt)?, &interrupt)?;
    let report = BenchReport { processors: processors() as u64, figures, cost: meter.cost() };
    let printed = text::bench(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Bench(report));
    written.map(|()| Conclusion::Passed)
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

/// The figures of the sweep that the command does without a subcommand, with every seed run twice.
fn sweep(interrupt: &Interrupt) -> Result<Vec<Figure>, Refusal> {
    let sweep =
        Sweep { run_twice: SEEDS, jobs: processors(), ..Sweep::plain(choose::workloads(&[])?, 0..SEEDS) };
    let report = sweep.perform(interrupt);
    if report.ending != shaketable_reports::Ending::Complete {
        return Err(interrupt.refusal("before anything was measured"));
    }
    let SweepReport { workloads, jobs, cost, .. } = &report;
    let mut figures = Vec::new();
    for w in workloads {
        let name = format!("{}, seeds per core minute", w.workload);
        let profile =
            format!("standard faults, seeds 0..{SEEDS}, each run twice, drawn topology, clients and load");
        figures.push(figure(&name, w.runs_per_core_minute(), "seeds", &profile));
    }
    let total = report.total();
    let whole = format!("the sweep of the main job: every workload, standard faults, seeds 0..{SEEDS}");
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
