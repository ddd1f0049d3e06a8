//! `shaketable bench`: how fast runs are, each figure with what it was measured on.
//!
//! CPU time counts, because idle virtual time is free and the machine may be shared.

use super::{
    Refusal,
    args::BenchArguments,
    backend::Backend,
    choose, cost,
    interrupt::Interrupt,
    output::{self, Target},
    program,
    progress::Progress,
    run::{SEEDS, Sweep, processors},
};
use crate::{
    finding::Verdict,
    plan::{Demands, Plan},
    pool::{self, News},
    runner,
    workload::Workload,
};
use shaketable_reports::{BenchReport, Body, Conclusion, Figure, SweepReport, text};

/// Measures, prints and writes.
pub fn bench(arguments: &BenchArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let meter = cost::Meter::start();
    // First, because the process's peak memory shall be that of a sweep.
    let figures = (program().figures)(sweep(&interrupt)?, &interrupt)?;
    let report = BenchReport { processors: processors() as u64, figures, cost: meter.cost() };
    let printed = text::bench(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Bench(report));
    written.map(|()| Conclusion::Passed)
}

/// A figure without an aim.
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

/// The figures of the main job's sweep, every seed of it run twice.
fn sweep(interrupt: &Interrupt) -> Result<Vec<Figure>, Refusal> {
    let report = Sweep {
        entries: choose::workloads(&[])?,
        demands: Demands::default(),
        seeds: 0..SEEDS,
        shard: None,
        run_twice: SEEDS,
        jobs: processors(),
        budget: None,
        backend: Backend::Simulated,
        earlier: None,
    }
    .perform(interrupt);
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
        // The second runs took as long as the first.
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

/// Runs a plan for each seed on one thread; the CPU time they took, nanoseconds, and how many there were.
///
/// # Errors
///
/// A run that did not pass, or an interrupt.
pub fn measure<W: Workload>(
    name: &str,
    runs: u64,
    interrupt: &Interrupt,
    plan: impl Fn(u64) -> Plan<W> + Sync,
    mut hear: impl FnMut(&runner::RunResult),
) -> Result<(u64, u64), Refusal> {
    let mut progress = Progress::new(&[(name, runs)], ("run", "runs"), "failed");
    let (mut cpu, mut failed) = (0, None);
    let done = pool::over(
        runs,
        1,
        || interrupt.is_set(),
        |seed| {
            let plan = plan(seed);
            let before = cost::thread_cpu();
            let result = runner::run(&plan, false);
            (result, cost::thread_cpu() - before)
        },
        |news| match news {
            News::Tick => progress.tick(),
            News::Done(seed, (result, took)) => {
                progress.done(0, result.verdict() == Verdict::Passed);
                cpu += took;
                hear(&result);
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
