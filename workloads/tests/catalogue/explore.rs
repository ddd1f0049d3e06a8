//! Exploring, over workloads of the catalogue: nothing fails without a bug, and planted bugs whose cause is
//! one unknown result or a race of two transactions are found without chance.

use shaketable::{
    explore::{Exploration, Found, Part, Subject},
    finding::{Verdict, deciding},
    plan::Demands,
};
use shaketable_sim::seed::Seed;
use shaketable_workloads::catalogue::find;
use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

/// Explores until about `most` runs are done.
fn explored(workload: &str, bug: Option<&str>, seeds: Range<u64>, jobs: usize, most: u64) -> Found {
    let entry = find(workload).expect("a workload");
    let demands = Demands { bug: bug.map(str::to_owned), ..Demands::default() };
    let subjects: Vec<Box<dyn Subject>> = seeds.map(|seed| entry.subject(Seed(seed), &demands)).collect();
    let runs = AtomicU64::new(0);
    let stop = || runs.fetch_add(1, Ordering::Relaxed) >= most;
    let exploration = Exploration { subjects: &subjects, jobs, only_first: bug.is_some(), stop: &stop };
    exploration.perform(&mut |_| ())
}

#[test]
fn nothing_fails_without_a_bug() {
    // With the first seed, `index` has a crowd of users, which every audit reads.
    for (workload, seed) in [("cycle", 0), ("queue", 0), ("index", 1), ("session", 0)] {
        let found = explored(workload, None, seed..seed + 1, 2, 600);
        assert_eq!(found.verdict, Verdict::Passed, "{workload}: {:?}", found.failures);
        let ran = |part: Part| found.tallies.get(&part).map_or(0, |tally| tally.ran - tally.impossible);
        for part in [Part::Outcome, Part::Order] {
            assert!(ran(part) > 5, "{workload}: {:?}", found.tallies);
        }
    }
}

#[test]
fn bugs_of_one_result_or_one_race_are_found() {
    for (workload, bug) in [
        ("queue", "dequeue-as-printed"),
        ("queue", "snapshot-dequeue"),
        ("index", "as-printed"),
        ("cycle", "snapshot-read"),
    ] {
        let found = explored(workload, Some(bug), 0..4, 2, 3_000);
        // Besides it, a whole plan may have failed.
        let Some(failure) = found.failures.last() else { panic!("{bug} of {workload}: {:?}", found.tallies) };
        assert!(
            (Part::Plain..=Part::Order).contains(&failure.part),
            "{bug} of {workload} needs {:?}",
            failure.part
        );
        let entry = find(workload).expect("a workload");
        let replayed = entry.replay(&failure.repro, true).expect("a repro file");
        assert_eq!(
            deciding(&replayed.findings),
            Some(&failure.finding),
            "{bug} of {workload}: another failure"
        );
    }
}

#[test]
fn an_exploration_does_not_depend_on_the_number_of_threads() {
    let shown = |jobs| {
        let found = explored("index", Some("as-printed"), 0..2, jobs, u64::MAX);
        found.failures.iter().map(|failure| (failure.what.clone(), failure.repro.clone())).collect::<Vec<_>>()
    };
    assert_eq!(shown(1), shown(3));
}
