//! Every workload passes: the layers that come with the command pass their judges, with a few seeds each,
//! calm and under faults. `shaketable run` tests longer.

use serde_json::Value;
use shaketable::{entry::Entry, finding::Verdict};
use shaketable::{
    plan::{Demands, Plan},
    runner,
};
use shaketable_sim::{
    faults::Profile,
    rt::{MILLISECOND, Nanos, SECOND},
    seed::Seed,
};
use shaketable_workloads::{catalogue::catalogue, catalogue::cycle::Cycle};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a workload has failed. The remaining ones then need not be waited for.
static FAILED: AtomicBool = AtomicBool::new(false);

/// The runs of an entry.
struct Swept {
    /// Its name, and the end of each seed's event hash.
    hashes: String,
    /// How many of its operations were done, and how many there were.
    done: (u64, u64),
}

/// Runs the first seeds of an entry. The error has the findings of the first failing one.
fn sweep(entry: &dyn Entry, profile: Profile, seeds: u64) -> Result<Swept, Vec<String>> {
    let demands = Demands { profile, ..Demands::default() };
    let mut hashes = format!("{:<14}", entry.name());
    let mut done = (0, 0);
    for seed in (0..seeds).take_while(|_| !FAILED.load(Ordering::Relaxed)) {
        let result = entry.run(Seed(seed), &demands, false);
        if !result.findings.is_empty() {
            FAILED.store(true, Ordering::Relaxed);
            let text = |finding: &shaketable::finding::Finding| {
                format!("{} {seed}: {}: {}", entry.name(), finding.kind, finding.message)
            };
            return Err(result.findings.iter().map(text).collect());
        }
        hashes += &format!(" {:04x}", result.event_hash as u16);
        for of in result.outcomes.values() {
            done.0 += of.done;
            done.1 += of.done + of.refused + of.failed + of.unknown;
        }
    }
    Ok(Swept { hashes, done })
}

/// Of so many operations in a hundred of a sweep under standard faults at least so many are done, and of each
/// workload: where most are refused, little is shaken.
const DONE: (u64, u64) = (84, 50);
/// Every call of `list` names neighbours in a list of a few nodes that all clients change at once.
const LIST: u64 = 40;

/// Runs every workload. Returns the event hashes of their seeds, a line for each workload.
///
/// Seeds must keep their runs: after an upgrade people replay seeds of an earlier version. A change that
/// moves a message, a delay or a draw shows in the snapshot of these lines, and its commit says why it moves
/// them.
fn passes(profile: Profile, seeds: u64) -> String {
    let catalogue = catalogue();
    let ran: Vec<Result<Swept, Vec<String>>> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = catalogue
            .iter()
            .map(|entry| scope.spawn(move || sweep(entry.as_ref(), profile, seeds)))
            .collect();
        sweeps.into_iter().map(|sweep| sweep.join().expect("a sweep ends")).collect()
    });
    let found: Vec<&String> = ran.iter().filter_map(|ran| ran.as_ref().err()).flatten().collect();
    assert!(found.is_empty(), "{found:#?}");
    let ran: Vec<Swept> = ran.into_iter().flatten().collect();
    if profile == Profile::Standard {
        let few = ran.iter().zip(&catalogue).filter(|(swept, entry)| {
            let least = if entry.name() == "list" { LIST } else { DONE.1 };
            100 * swept.done.0 < least * swept.done.1
        });
        let few: Vec<_> = few.map(|(swept, entry)| (entry.name(), swept.done)).collect();
        assert!(few.is_empty(), "few operations are done: {few:?}");
        let all = ran.iter().fold((0, 0), |all, swept| (all.0 + swept.done.0, all.1 + swept.done.1));
        assert!(100 * all.0 >= DONE.0 * all.1, "{} of {} operations are done", all.0, all.1);
    }
    ran.into_iter().map(|swept| swept.hashes).collect::<Vec<String>>().join("\n")
}

#[test]
fn calm() {
    insta::assert_snapshot!(passes(Profile::Calm, 5));
}

#[test]
fn standard_faults() {
    insta::assert_snapshot!(passes(Profile::Standard, 20));
}

#[test]
fn a_storm() {
    insta::assert_snapshot!(passes(Profile::Storm, 10));
}

/// Demands of runs that are this many times as long as usual.
fn longer(times: u32) -> Demands {
    Demands { scale: times.try_into().expect("a scale"), ..Demands::default() }
}

#[test]
fn a_plan_at_scale_n_is_n_times_as_long() {
    for entry in catalogue() {
        assert!(entry.grows(), "{} has no length", entry.name());
        let total = |scale: u32| {
            let demands = longer(scale);
            let extents = (0..2).map(|seed| {
                let plan: Value = serde_json::from_str(&entry.plan(Seed(seed), &demands)).expect("a plan");
                let operations = plan["operations"].as_array().expect("clients").iter();
                let operations: usize = operations.map(|list| list.as_array().expect("a list").len()).sum();
                (operations, plan["hurt"].as_u64().expect("nanoseconds"))
            });
            extents.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
        };
        let (usual, long) = (total(1), total(3));
        assert_eq!(long.1, 3 * usual.1, "{}", entry.name());
        assert!((3 * usual.0 / 2..8 * usual.0).contains(&long.0), "{}: {usual:?}, {long:?}", entry.name());
    }
    let [usual, long] = [1, 4].map(|scale| {
        let plan = Plan::draw::<Cycle>(Seed(1), &Demands { profile: Profile::Storm, ..longer(scale) });
        let strikes = plan.faults.strikes;
        let last = strikes.last().map_or(0, |strike| strike.at);
        assert!(last < plan.hurt && strikes.is_sorted_by_key(|strike| strike.at));
        strikes.len()
    });
    assert!((2 * usual..7 * usual).contains(&long), "{usual}, {long}");
}

#[test]
fn a_run_at_scale_n_passes() {
    let demands = longer(5);
    for entry in catalogue().iter().filter(|entry| ["cycle", "queue", "bulk"].contains(&entry.name())) {
        let (usual, long) =
            (entry.run(Seed(2), &Demands::default(), false), entry.run(Seed(2), &demands, false));
        assert_eq!(long.findings, [], "{}", entry.name());
        assert!(long.counters.operations > 3 * usual.counters.operations, "{}", entry.name());
    }
}

#[test]
fn clients_pause_as_long_as_the_plan_says_and_audits_are_counted() {
    let (rotations, pause) = (30, 100 * MILLISECOND);
    let run = |seed: u64, pause: Nanos| {
        let demands = Demands { profile: Profile::Calm, ..Demands::default() };
        let mut plan = Plan::around(Cycle::sized(20, 2, rotations), Seed(seed), &demands);
        (plan.pause, plan.hurt) = (pause, 600 * SECOND);
        runner::run(&plan, false)
    };
    let mut means = [4, 5, 6].map(|seed| {
        let (hurried, patient) = (run(seed, 0), run(seed, pause));
        assert!(hurried.counters.audits > 0);
        (patient.virtual_time - hurried.virtual_time) / rotations as Nanos
    });
    // A run takes six seconds more if its auditor ended within a commit, which might have landed late.
    means.sort();
    // Each pause is drawn from zero to twice the mean.
    assert!((pause / 2..pause * 3 / 2).contains(&means[1]), "{means:?}");
}

#[test]
fn nobody_begins_before_the_store_is_filled() {
    let (filling, demands) = (4, Demands::default());
    let run = |filling| {
        let mut plan = Plan::around(Cycle::sized(20, 3, 10), Seed(1), &demands);
        (plan.filling, plan.pause) = (filling, 0);
        let result = runner::run(&plan, true);
        assert_eq!(result.verdict(), Verdict::Passed);
        let history = result.history.expect("it was kept");
        let of_first = |own: bool| history.operations.iter().filter(move |op| (op.client == 0) == own);
        let filled = of_first(true).nth(3).and_then(|op| op.returned).expect("it returned");
        let first = of_first(true).map(|op| op.called).min().expect("an operation");
        // The cluster's own recovery is over by then.
        let events = history.events.iter().map(|event| event.at).filter(|at| *at >= first);
        let begun = of_first(false).map(|op| op.called).chain(events);
        (filled, begun.min().expect("another client"))
    };
    let (filled, begun) = run(filling);
    assert!(filled <= begun, "filled at {filled}, begun at {begun}");
    let (filled, begun) = run(0);
    assert!(begun < filled, "without filling they begin together: {filled} {begun}");
}

#[test]
fn a_cluster_for_which_no_time_passes_ends_with_a_finding() {
    let demands = Demands { profile: Profile::Calm, ..Demands::default() };
    let mut plan = Plan::around(Cycle::sized(20, 2, 3), Seed(3), &demands);
    // A storage server makes its state durable again and again, at one instant.
    plan.cluster.storage_durable_interval = 0;
    let result = runner::run(&plan, false);
    assert_eq!(result.verdict(), Verdict::Harness);
    assert!(result.findings.iter().any(|found| found.message.contains("it loops without waiting")));
}
