//! Texts on sweeps, and their outcomes.

use crate::samples::small::{COMMIT, failing, run, sweep, workload};
use insta::assert_snapshot;
use shaketable_reports::{Conclusion, Cost, Ending, SweepReport, Verdict, WorkloadReport, run::LOST, text};

#[test]
fn a_sweep_that_passed() {
    let mut report = sweep(Conclusion::Passed, vec![workload("cycle", 200), workload("queue", 200)]);
    report.workloads.iter_mut().for_each(|w| w.run_twice = 20);
    assert_snapshot!(text::sweep(&report, COMMIT));
}

/// What its processor does is mostly not known: 400 runs in two minutes are 200 in one.
#[test]
fn a_sweep_on_a_real_cluster_has_the_speed_of_the_wall_clock_and_no_virtual_time() {
    let mut report = sweep(Conclusion::Passed, vec![workload("cycle", 200), workload("queue", 200)]);
    (report.real, report.cost.wall_ns) = (true, 120_000_000_000);
    let told = text::sweep(&report, COMMIT);
    assert!(told.contains(" 200 seeds per minute"), "{told}");
    assert!(!told.contains("virtual") && !told.contains("core minute"), "{told}");
}

#[test]
fn a_sweep_that_failed() {
    assert_snapshot!(text::sweep(&failing(), COMMIT));
}

#[test]
fn a_vacuous_shard_whose_budget_ran_out() {
    let mut quiet = workload("index", 3);
    quiet.vacuous = vec!["conflicts".into(), "late landings".into()];
    quiet.points.clear();
    let mut report = sweep(Conclusion::Vacuous, vec![quiet]);
    report.shard = Some((2, 8));
    report.ending = Ending::Budget;
    report.without = vec!["kill".into(), "late-landing".into()];
    assert_snapshot!(text::sweep(&report, COMMIT));
}

#[test]
fn an_interrupted_sweep_before_its_first_run() {
    let mut report = sweep(Conclusion::Vacuous, vec![WorkloadReport::default()]);
    report.workloads[0].workload = "cycle".into();
    report.ending = Ending::Interrupted;
    report.cost = Cost::default();
    assert_snapshot!(text::sweep(&report, COMMIT));
}

#[test]
fn a_sweep_whose_harness_failed() {
    let verdict = Verdict::Harness {
        judge: "determinism".into(),
        message: "the second run differs at event 1,204".into(),
    };
    let broken = WorkloadReport {
        passed: 199,
        harness: 1,
        run_twice: 200,
        differing: 1,
        failing_seeds: vec![5],
        failures: vec![run(5, verdict)],
        ..workload("queue", 200)
    };
    assert_snapshot!(text::sweep(&sweep(Conclusion::Harness, vec![broken]), COMMIT));
}

#[test]
fn the_outcome_is_the_worst_of_a_workload() {
    let mut w = workload("queue", 10);
    assert_eq!(w.outcome(), Conclusion::Passed);
    w.vacuous = vec!["conflicts".into()];
    assert_eq!(w.outcome(), Conclusion::Vacuous);
    w.stuck = 1;
    assert_eq!(w.outcome(), Conclusion::Violated);
    w.harness = 1;
    assert_eq!(w.outcome(), Conclusion::Harness);
    assert!([Conclusion::Passed, Conclusion::Vacuous, Conclusion::Violated, Conclusion::Harness].is_sorted());
}

#[test]
fn a_sweep_whose_cluster_was_lost() {
    let report = SweepReport { ending: Ending::Lost, ..failing() };
    assert!(text::sweep(&report, COMMIT).contains("\nThe cluster was lost; no further seed was run.\n"));
    let verdict = Verdict::Harness { judge: LOST.into(), message: "no answer within 30 s".into() };
    assert!(
        text::replay(&run(7, verdict), COMMIT, text::Details::Brief)
            .starts_with("CLUSTER LOST queue, seed 7\n  no answer")
    );
}
