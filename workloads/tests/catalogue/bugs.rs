//! Proves that the judges work: planted bugs are caught by a judge of the layer, and bugs planted in the
//! cluster by a judge of the cluster, with fixed seeds. `shaketable bugs` catches all of them; it is part of
//! the gate.

use shaketable::entry::Entry;
use shaketable::{
    finding::{Kind, Verdict},
    judge::Judge,
    plan::Demands,
};
use shaketable_sim::{config::ClusterBug, seed::Seed};
use shaketable_workloads::catalogue::catalogue;
use std::collections::BTreeSet;

/// Seeds to try for each; `shaketable bugs` prints how many each needs.
const SEEDS: u64 = 200;

/// The first and the last bug of this entry.
fn ends(entry: &dyn Entry) -> BTreeSet<&'static str> {
    [entry.bugs().first(), entry.bugs().last()].into_iter().flatten().map(|bug| bug.name).collect()
}

/// Those of them that are not caught with any seed.
fn missed(entry: &dyn Entry) -> Vec<String> {
    let is_caught = |bug: &str| {
        let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
        (0..SEEDS).any(|seed| {
            let result = entry.run(Seed(seed), &demands, false);
            let (name, findings) = (entry.name(), &result.findings);
            assert_ne!(result.verdict(), Verdict::Harness, "{name} {bug} {seed}: {findings:?}");
            result.verdict() != Verdict::Passed
        })
    };
    let ends = ends(entry).into_iter();
    ends.filter(|bug| !is_caught(bug)).map(|bug| format!("{} {bug}", entry.name())).collect()
}

#[test]
fn planted_bugs_of_every_workload_are_caught() {
    let catalogue = catalogue();
    let missed: Vec<String> = std::thread::scope(|scope| {
        let hunts: Vec<_> =
            catalogue.iter().map(|entry| scope.spawn(move || missed(entry.as_ref()))).collect();
        hunts.into_iter().flat_map(|hunt| hunt.join().expect("a hunt ends")).collect()
    });
    assert!(missed.is_empty(), "not caught by {SEEDS} seeds: {missed:?}");
}

/// A repro file whose demands and configuration disagree about a planted bug is refused.
#[test]
fn every_planted_bug_shows_in_its_plan() {
    // With other seeds, the plans of `index` have megabytes of values.
    let seed = Seed(2);
    for entry in catalogue() {
        for bug in entry.bugs().iter().map(|bug| bug.name) {
            let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
            let planted = entry.plan(seed, &demands);
            let named = format!("\"bug\": \"{bug}\"");
            assert!(entry.head(&planted).is_ok(), "{} {bug}", entry.name());
            let hidden = planted.replacen(&named, "\"without\": []", 1);
            assert!(hidden != planted && entry.head(&hidden).is_err(), "{} {bug}", entry.name());
        }
        // What shows a bug is not in this plan: one of them stands for all.
        if let Some(bug) = entry.bugs().first().map(|bug| bug.name) {
            let sound = entry.plan(seed, &Demands::default());
            let claimed =
                sound.replacen("\"demands\": {", &format!("\"demands\": {{ \"bug\": \"{bug}\","), 1);
            assert!(claimed != sound && entry.head(&claimed).is_err(), "{} {bug}", entry.name());
        }
    }
}

/// Whether some seed catches the bug with workloads of the catalogue, which take turns.
fn is_caught(bug: ClusterBug, catalogue: &[Box<dyn Entry>]) -> bool {
    let of_cluster = |kind| Judge::ALL.iter().any(|judge| Kind::from(*judge) == kind);
    let demands = Demands { cluster_bug: Some(bug), ..Demands::default() };
    (0..SEEDS).any(|seed| {
        let result = catalogue[seed as usize % catalogue.len()].run(Seed(seed), &demands, false);
        result.findings.iter().any(|finding| of_cluster(finding.kind))
    })
}

#[test]
fn planted_bugs_that_every_workload_shows_are_caught() {
    let catalogue = catalogue();
    let shown = ClusterBug::ALL.iter().filter(|bug| bug.shows_everywhere());
    let missed: Vec<_> = shown.filter(|bug| !is_caught(**bug, &catalogue)).collect();
    assert!(missed.is_empty(), "not caught by {SEEDS} seeds: {missed:?}");
}

/// A bug that no workload claims would be left out by `shaketable bugs`.
#[test]
fn every_planted_bug_of_the_cluster_is_claimed() {
    let catalogue = catalogue();
    let is_claimed = |bug: &ClusterBug| {
        bug.shows_everywhere() || catalogue.iter().any(|entry| entry.cluster_bugs().contains(bug))
    };
    let left: Vec<_> = ClusterBug::ALL.iter().filter(|bug| !is_claimed(bug)).collect();
    assert!(left.is_empty(), "claimed by no workload: {left:?}");
}
