//! Every workload passes: the layers that come with the command pass their judges, with a few seeds each,
//! calm and under faults. `shaketable run` tests longer.

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

/// The findings of the first failing seed of this entry.
fn found(entry: &dyn Entry, profile: Profile, seeds: u64) -> Vec<String> {
    let demands = Demands { profile, ..Demands::default() };
    for seed in (0..seeds).take_while(|_| !FAILED.load(Ordering::Relaxed)) {
        let findings = entry.run(Seed(seed), &demands, false).findings;
        if !findings.is_empty() {
            FAILED.store(true, Ordering::Relaxed);
            let text = |finding: &shaketable::finding::Finding| {
                format!("{} {seed}: {}: {}", entry.name(), finding.kind, finding.message)
            };
            return findings.iter().map(text).collect();
        }
    }
    Vec::new()
}

fn passes(profile: Profile, seeds: u64) {
    let catalogue = catalogue();
    let found: Vec<String> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = catalogue
            .iter()
            .map(|entry| scope.spawn(move || found(entry.as_ref(), profile, seeds)))
            .collect();
        sweeps.into_iter().flat_map(|sweep| sweep.join().expect("a sweep ends")).collect()
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn calm() {
    passes(Profile::Calm, 5);
}

#[test]
fn standard_faults() {
    passes(Profile::Standard, 20);
}

#[test]
fn a_storm() {
    passes(Profile::Storm, 10);
}

#[test]
fn clients_pause_as_long_as_the_plan_says_and_audits_are_counted() {
    let (rotations, pause) = (30, 100 * MILLISECOND);
    let run = |pause: Nanos| {
        let demands = Demands { profile: Profile::Calm, ..Demands::default() };
        let mut plan = Plan::around(Cycle::sized(20, 2, rotations), Seed(5), &demands);
        (plan.pause, plan.hurt) = (pause, 600 * SECOND);
        runner::run(&plan, false)
    };
    let (hurried, patient) = (run(0), run(pause));
    assert!(hurried.counters.audits > 0);
    let mean = (patient.virtual_time - hurried.virtual_time) / rotations as Nanos;
    // Each pause is drawn from zero to twice the mean.
    assert!((pause / 2..pause * 3 / 2).contains(&mean), "{mean}");
}

#[test]
fn a_cluster_for_which_no_time_passes_ends_with_a_finding() {
    let demands = Demands { profile: Profile::Calm, ..Demands::default() };
    let mut plan = Plan::around(Cycle::sized(20, 2, 3), Seed(3), &demands);
    // The controller checks the machines again and again, at one instant.
    plan.cluster.heartbeat = 0;
    let result = runner::run(&plan, false);
    assert_eq!(result.verdict(), Verdict::Harness);
    assert!(result.findings.iter().any(|found| found.message.contains("it loops without waiting")));
}
