//! `shaketable bench`: how fast runs are, each figure with what it was measured on.
//!
//! CPU time counts, because idle virtual time is free and the machine may be shared.

use super::{
    COMMIT, Refusal,
    args::BenchArguments,
    backend::Backend,
    choose, cost,
    interrupt::Interrupt,
    output::{self, Target},
    pool::{self, News},
    progress::Progress,
    run::{SEEDS, Sweep, processors},
};
use shaketable::{
    plan::{Demands, Plan},
    runner::{self, Verdict},
};
use shaketable_reports::{BenchReport, Body, Figure, Outcome, SweepReport, text};
use shaketable_sim::{config::ClusterConfig, faults::Profile, rt::SECOND, seed::Seed};
use shaketable_workloads::catalogue::cycle::Cycle;

/// Clients of the cycle benchmark.
const CLIENTS: usize = 10;
/// Nodes of its ring.
const NODES: u32 = 1_000;
/// The ring of a run in which nothing is done.
const SMALLEST: u32 = 3;
/// Rotations of each of its clients.
const ROTATIONS: usize = 1_000;
/// Runs of each benchmark of cycle.
const RUNS: u64 = 8;
/// Empty runs.
const EMPTY_RUNS: u64 = 50;

/// Measures, prints and writes.
pub fn bench(arguments: &BenchArguments) -> Result<Outcome, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let meter = cost::Meter::start();
    // First, because the process's peak memory shall be that of a sweep.
    let mut figures = sweep(&interrupt)?;
    figures.push(cycle("cycle, calm", Profile::Calm, 20_000.0, &interrupt)?);
    figures.push(cycle("cycle, standard faults", Profile::Standard, 10_000.0, &interrupt)?);
    figures.push(empty(&interrupt)?);
    let report = BenchReport { processors: processors() as u64, figures, cost: meter.cost() };
    let printed = text::bench(&report, COMMIT);
    let written = output::publish(&printed, json.as_ref(), Body::Bench(report));
    written.map(|()| Outcome::Passed)
}

fn figure(name: &str, value: f64, unit: &str, profile: &str) -> Figure {
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
        let mut figure = figure(&name, w.runs_per_core_minute(), "seeds", &profile);
        figure.reach = (w.workload == "queue").then_some(2_000.0);
        figures.push(figure);
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

/// Committed transactions of the cycle workload for a second of CPU time.
fn cycle(name: &str, profile: Profile, reach: f64, interrupt: &Interrupt) -> Result<Figure, Refusal> {
    let demands = Demands { profile, ..Demands::default() };
    let (mut committed, mut virtual_ns) = (0, 0);
    let (cpu, _) = measure(
        name,
        RUNS,
        interrupt,
        |seed| {
            let mut plan = cycle_plan(seed, &demands, NODES, ROTATIONS);
            if profile == Profile::Calm {
                plan.cluster = ClusterConfig::smallest();
            }
            plan
        },
        |result| {
            committed += result.counters.committed;
            virtual_ns += result.virtual_time;
        },
    )?;
    let topology = match profile {
        Profile::Calm => "one of each role",
        _ => "drawn topology",
    };
    let what = format!(
        "{CLIENTS} clients of {ROTATIONS} rotations without pause on a ring of {NODES}, {} faults, {topology},\n\
         {RUNS} seeds from 0, history, judges, start and end included: {} commits in {} virtual seconds",
        choose::name_of(profile),
        text::count(committed),
        text::seconds(virtual_ns)
    );
    let value = committed as f64 * 1e9 / cpu.max(1) as f64;
    Ok(Figure { reach: Some(reach), ..figure(name, value, "commits per CPU s", &what) })
}

/// What a run costs in which nothing is done.
fn empty(interrupt: &Interrupt) -> Result<Figure, Refusal> {
    let demands = Demands { profile: Profile::Calm, ..Demands::default() };
    let name = "start and end of an empty run";
    let (cpu, runs) =
        measure(name, EMPTY_RUNS, interrupt, |seed| cycle_plan(seed, &demands, SMALLEST, 0), |_| {})?;
    let what = format!(
        "{runs} seeds, a drawn topology, {CLIENTS} clients that do nothing, a ring of {SMALLEST} set up and checked"
    );
    let value = cpu as f64 / 1e6 / runs.max(1) as f64;
    Ok(Figure { reach: Some(5.0), at_most: true, ..figure(name, value, "CPU ms", &what) })
}

fn cycle_plan(seed: u64, demands: &Demands, nodes: u32, rotations: usize) -> Plan<Cycle> {
    let mut plan = Plan::around(Cycle::sized(nodes, CLIENTS, rotations), Seed(seed), demands);
    plan.pause = 0;
    // Nobody is to be cut short: the act ends when every client has done its work.
    plan.hurt = 3_600 * SECOND;
    plan
}

/// Runs a plan for each seed on one thread; the CPU time they took, and how many there were.
fn measure(
    name: &str,
    runs: u64,
    interrupt: &Interrupt,
    plan: impl Fn(u64) -> Plan<Cycle> + Sync,
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
                progress.done(0, result.verdict == Verdict::Passed);
                cpu += took;
                hear(&result);
                if let (None, Some(finding)) = (&failed, result.findings.first()) {
                    failed =
                        Some(format!("{name}: seed {seed} failed: {}: {}", finding.judge, finding.message));
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
