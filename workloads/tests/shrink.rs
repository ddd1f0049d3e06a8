//! Shrinking, over the workloads of the catalogue: decisions give a run again, and what remains of a failing run fails
//! with the same claim.

use serde_json::{Value, json};
use shaketable::{
    entry::Entry,
    finding::Verdict,
    plan::Demands,
    shrink::{Claim, Shrunk},
};
use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_workloads::catalogue::{catalogue, find};

/// The plan of a repro file with other faults.
fn edited(repro: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut plan: Value = serde_json::from_str(repro).expect("a repro file");
    edit(&mut plan["faults"]);
    plan.to_string()
}

fn decided(entry: &dyn Entry, seed: u64) -> usize {
    let demands = Demands { profile: Profile::Storm, ..Demands::default() };
    let run = entry.run(Seed(seed), &demands, false);
    let repro = edited(&entry.plan(Seed(seed), &demands), |faults| {
        faults["rates"] = json!({});
        faults["decisions"] = serde_json::to_value(&run.decisions).expect("plain data");
    });
    let again = entry.replay(&repro, false).expect("a repro file");
    let name = entry.name();
    let differs = again.decisions.iter().zip(&run.decisions).find(|(a, b)| a != b);
    assert_eq!(differs, None, "{name} {seed}: other decisions are recorded");
    assert_eq!(again.event_hash, run.event_hash, "{name} {seed}: decisions give another run");
    assert_eq!(again.decisions.len(), run.decisions.len(), "{name} {seed}");
    run.decisions.len()
}

#[test]
fn the_decisions_of_a_run_give_the_run_again() {
    let catalogue = catalogue();
    let decisions: usize = std::thread::scope(|scope| {
        let runs = catalogue
            .iter()
            .map(|entry| scope.spawn(|| (0..4).map(|seed| decided(&**entry, seed)).sum::<usize>()));
        let runs: Vec<_> = runs.collect();
        runs.into_iter().map(|run| run.join().expect("the same run")).sum()
    });
    assert!(decisions > 500, "{decisions}");
}

/// Shrinks the first run that a planted bug makes fail.
fn shrunk(workload: &str, bug: &str, most_replays: u64) -> (Box<dyn Entry>, Shrunk) {
    let entry = find(workload).expect("a workload");
    let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
    let fails = |seed: &u64| entry.run(Seed(*seed), &demands, false).verdict() != Verdict::Passed;
    let seed = (0..100).find(fails).expect("the bug is caught");
    let plan = entry.plan(Seed(seed), &demands);
    let found = entry.shrink(&plan, &mut |so_far| so_far.replays < most_replays).expect("a repro file");
    let shrunk = found.expect("it fails");
    let failed = entry.run(Seed(seed), &demands, false);
    assert_eq!(Claim::of(&shrunk.result.findings), Claim::of(&failed.findings), "another claim");
    let again = entry.replay(&shrunk.repro, false).expect("a repro file");
    assert_eq!(again.event_hash, shrunk.result.event_hash, "the repro file gives another run");
    (entry, shrunk)
}

#[test]
fn little_remains_of_a_run_that_fails() {
    // The operations, clients and faults that the bugs need: an unknown result, a race of two clients, one operation.
    for (workload, bug, operations, clients, faults) in [
        ("queue", "dequeue-as-printed", 1, 1, 1),
        ("queue", "snapshot-dequeue", 2, 2, 0),
        ("queue", "look-apart", 1, 1, 0),
        ("index", "find-at-snapshot", 2, 2, 0),
    ] {
        let (_, shrunk) = shrunk(workload, bug, 1_000);
        let after = shrunk.after;
        assert!(
            (after.operations, after.clients, after.faults) <= (operations, clients, faults)
                && after.clients <= clients
                && after.faults <= faults,
            "{workload} {bug}: {after}"
        );
        assert!(shrunk.is_minimal && shrunk.before.operations > 10, "{workload} {bug}: {}", shrunk.before);
    }
}

#[test]
fn a_search_that_is_ended_keeps_the_smallest_plan_so_far() {
    let (_, all) = shrunk("queue", "snapshot-dequeue", 1_000);
    let (_, some) = shrunk("queue", "snapshot-dequeue", all.replays / 4);
    assert!(!some.is_minimal && some.replays <= all.replays / 4);
    assert!(some.after.operations < some.before.operations);
}

#[test]
fn a_run_that_passes_has_nothing_to_shrink() {
    let entry = find("queue").expect("a workload");
    let plan = entry.plan(Seed(0), &Demands::default());
    assert!(entry.shrink(&plan, &mut |_| true).expect("a repro file").is_none());
}

#[test]
fn a_repro_file_of_a_schedule_is_read_and_has_a_run_of_its_own() {
    let entry = find("cycle").expect("a workload");
    let plan = entry.plan(Seed(1), &Demands::default());
    let other = edited(&plan, |_| ());
    let mut other: Value = serde_json::from_str(&other).expect("a repro file");
    other["schedule"] = json!(77);
    let hash = |repro: &str| entry.replay(repro, false).expect("a repro file").event_hash;
    assert_ne!(hash(&plan), hash(&other.to_string()));
    assert_eq!(hash(&other.to_string()), hash(&other.to_string()));
    let refused = edited(&plan, |faults| {
        faults["decisions"] = json!([{"client": 0, "family": "kill", "opportunity": 0}]);
    });
    let error = entry.replay(&refused, false).expect_err("kills are no decisions").to_string();
    assert_eq!(error, "kill has strikes, and no decisions");
}
