//! The measurements of `shaketable bench` in addition to the speed of each workload: the simulated cluster,
//! measured with the workload `cycle`, the Record Layer, and the target values of the figures.

mod records;

use crate::catalogue::cycle::Cycle;
use shaketable::{
    command::{
        Refusal,
        bench::{figure, measure},
        choose,
        interrupt::Interrupt,
    },
    plan::{Demands, Plan},
};
use shaketable_reports::{Figure, text};
use shaketable_sim::{config::ClusterConfig, faults::Profile, rt::SECOND, seed::Seed};

/// Clients of the cycle benchmark.
const CLIENTS: usize = 10;
/// Nodes of its ring.
const NODES: u32 = 1_000;
/// The size of the ring for runs in which nothing is done.
const SMALLEST: u32 = 3;
/// Rotations per client.
const ROTATIONS: usize = 1_000;
/// Runs of each cycle benchmark.
const RUNS: u64 = 8;
/// The number of empty runs.
const EMPTY_RUNS: u64 = 50;

/// The figures of the sweep with their targets, and those of the simulated cluster.
pub fn figures(mut figures: Vec<Figure>, interrupt: &Interrupt) -> Result<Vec<Figure>, Refusal> {
    for figure in figures.iter_mut().filter(|figure| figure.name == "queue, seeds per core minute") {
        figure.reach = Some(2_000.0);
    }
    figures.push(cycle("cycle, calm", Profile::Calm, 20_000.0, interrupt)?);
    figures.push(cycle("cycle, standard faults", Profile::Standard, 10_000.0, interrupt)?);
    figures.push(empty(interrupt)?);
    figures.extend(records::figures(interrupt)?);
    Ok(figures)
}

/// Committed transactions of the cycle workload per second of CPU time.
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

/// The cost of a run in which nothing is done.
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

fn cycle_plan(seed: u64, demands: &Demands, nodes: u32, rotations: usize) -> Plan {
    let mut plan = Plan::around(Cycle::sized(nodes, CLIENTS, rotations), Seed(seed), demands);
    plan.pause = 0;
    // No client is to be cut off: the act ends when every client has done its work.
    plan.hurt = 3_600 * SECOND;
    plan
}
