//! Proves that the judges work: every planted bug is caught by a judge of the layer, and every bug planted in
//! the cluster by a judge of the cluster, with fixed seeds.

use shaketable::entry::Entry;
use shaketable::{
    finding::{Kind, Verdict},
    judges::Judge,
    plan::Demands,
};
use shaketable_sim::{config::ClusterBug, seed::Seed};
use shaketable_workloads::catalogue::catalogue;

/// Seeds to try for each; `shaketable bugs` prints how many each needs.
const SEEDS: u64 = 200;

/// The bugs of this entry that are not caught with any seed.
fn missed(entry: &dyn Entry) -> Vec<String> {
    let is_caught = |bug: &str| {
        let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
        (0..SEEDS).any(|seed| {
            let result = entry.run(Seed(seed), &demands, false);
            assert_ne!(
                result.verdict(),
                Verdict::Harness,
                "{} {bug} {seed}: {:?}",
                entry.name(),
                result.findings
            );
            result.verdict() != Verdict::Passed
        })
    };
    let bugs = entry.bugs().iter().filter(|bug| !is_caught(bug.name));
    bugs.map(|bug| format!("{} {}", entry.name(), bug.name)).collect()
}

#[test]
fn every_planted_bug_is_caught() {
    let catalogue = catalogue();
    let planted: usize = catalogue.iter().map(|entry| entry.bugs().len()).sum();
    assert!(planted >= 16, "only {planted} planted bugs");
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
    for entry in catalogue() {
        for bug in entry.bugs() {
            let demands = Demands { bug: Some(bug.name.to_owned()), ..Demands::default() };
            let planted = entry.plan(Seed(3), &demands);
            let named = format!("\"bug\": \"{}\"", bug.name);
            assert!(entry.head(&planted).is_ok(), "{} {}", entry.name(), bug.name);
            let hidden = planted.replacen(&named, "\"without\": []", 1);
            assert!(hidden != planted && entry.head(&hidden).is_err(), "{} {}", entry.name(), bug.name);
            let sound = entry.plan(Seed(3), &Demands::default());
            let claimed = sound.replacen("\"demands\": {", &format!("\"demands\": {{ {named},"), 1);
            assert!(claimed != sound && entry.head(&claimed).is_err(), "{} {}", entry.name(), bug.name);
        }
    }
}

/// Whether some seed catches the bug with workloads that show it, which take turns.
fn is_caught(bug: ClusterBug, catalogue: &[Box<dyn Entry>]) -> bool {
    let of_cluster = |kind| Judge::ALL.iter().any(|judge| Kind::from(*judge) == kind);
    let shows = |entry: &&dyn Entry| bug.shows_everywhere() || entry.cluster_bugs().contains(&bug);
    let entries: Vec<_> = catalogue.iter().map(AsRef::as_ref).filter(shows).collect();
    let demands = Demands { cluster_bug: Some(bug), ..Demands::default() };
    !entries.is_empty()
        && (0..SEEDS).any(|seed| {
            let result = entries[seed as usize % entries.len()].run(Seed(seed), &demands, false);
            match bug.shows_everywhere() {
                true => result.findings.iter().any(|finding| of_cluster(finding.kind)),
                false => result.verdict() != Verdict::Passed,
            }
        })
}

#[test]
fn every_planted_bug_of_the_cluster_is_caught() {
    let catalogue = catalogue();
    let is_shown = |bug: &&ClusterBug| {
        bug.shows_everywhere() || catalogue.iter().any(|entry| entry.cluster_bugs().contains(bug))
    };
    let shown = ClusterBug::ALL.iter().filter(is_shown);
    let missed: Vec<_> = shown.filter(|bug| !is_caught(**bug, &catalogue)).collect();
    assert!(missed.is_empty(), "not caught by {SEEDS} seeds: {missed:?}");
}
