//! Shrinking, over the workloads of the catalogue: decisions give a run again, and what remains of a failing
//! run fails with the same claim.

use serde_json::{Value, json};
use shaketable::{
    entry::Entry,
    finding::{Finding, Kind, Verdict, deciding},
    plan::Demands,
    shrink::{Claim, Shrunk, Size, schedules},
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
    shrunk_from(0, workload, bug, most_replays)
}

/// Shrinks the first run from this seed on that a planted bug makes fail.
fn shrunk_from(first: u64, workload: &str, bug: &str, most_replays: u64) -> (Box<dyn Entry>, Shrunk) {
    let entry = find(workload).expect("a workload");
    let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
    let fails = |seed: &u64| entry.run(Seed(*seed), &demands, false).verdict() != Verdict::Passed;
    let seed = (first..100).find(fails).expect("the bug is caught");
    let plan = entry.plan(Seed(seed), &demands);
    let found = entry.shrink(&plan, &mut |so_far| so_far.replays < most_replays).expect("a repro file");
    let shrunk = found.expect("it fails");
    let failed = entry.run(Seed(seed), &demands, false);
    let claim = Claim::of(&failed.findings).expect("it fails");
    assert!(claim.is_in(&shrunk.result.findings), "{workload} {bug}: another claim");
    let words = |findings| words_of(deciding(findings).expect("it fails"));
    assert_eq!(words(&shrunk.result.findings), words(&failed.findings), "{workload} {bug}");
    let again = entry.replay(&shrunk.repro, false).expect("a repro file");
    assert_eq!(again.event_hash, shrunk.result.event_hash, "the repro file gives another run");
    (entry, shrunk)
}

/// Who objects, and the plain words of what is said last: a measure of its own, coarser than a claim.
fn words_of(finding: &Finding) -> (Kind, Vec<&str>) {
    let said = match finding.kind {
        // What is compared may be shown with any words.
        Kind::Model | Kind::Check => "",
        _ => finding.message.rsplit(": ").next().unwrap_or_default(),
    };
    let is_word = |word: &&str| word.len() > 3 && word.chars().all(char::is_alphabetic);
    (finding.kind, said.split_whitespace().filter(is_word).collect())
}

#[test]
fn what_remains_is_what_was_found_in_many_workloads() {
    for entry in catalogue() {
        if let Some(bug) = entry.bugs().first().filter(|_| SHRUNK.contains(&entry.name())) {
            shrunk(entry.name(), bug.name, 60);
        }
    }
}

/// Workloads of each kind: with a model, with invariants alone, with audits of their own.
const SHRUNK: [&str; 8] = ["queue", "cycle", "index", "list", "log", "session", "table", "priority_queue"];

#[test]
fn little_remains_of_a_run_that_fails() {
    // The operations, clients and faults that the bugs need: an unknown result, a race of two clients, one
    // operation. The earlier seeds that find the bug of `index` have a crowd of users, which every audit
    // reads.
    for (first, workload, bug, operations, clients, faults) in [
        (3, "queue", "dequeue-as-printed", 2, 2, 1),
        (0, "queue", "snapshot-dequeue", 2, 2, 0),
        (0, "queue", "look-apart", 1, 1, 0),
        (11, "index", "find-at-snapshot", 2, 2, 0),
    ] {
        let (_, shrunk) = shrunk_from(first, workload, bug, 1_000);
        let after = shrunk.after;
        assert!(
            (after.operations, after.clients, after.faults) <= (operations, clients, faults)
                && after.clients <= clients
                && after.faults <= faults,
            "{workload} {bug}: {after}"
        );
        assert!(shrunk.is_minimal && shrunk.before.operations > 10, "{workload} {bug}: {}", shrunk.before);
        let plan: Value = serde_json::from_str(&shrunk.repro).expect("a repro file");
        // Mounted workloads have two clients at least.
        assert_eq!(length(&plan["operations"]), 2, "{workload} {bug}: clients without an operation remain");
    }
}

/// Takes an operation away from the operations of a plan and from its faults, and renumbers those after it.
fn take_operation(plan: &mut Value, client: usize, index: usize) {
    plan["operations"][client].as_array_mut().expect("operations").remove(index);
    for (list, step) in [("decisions", ""), ("deaths", "/step"), ("order", "")] {
        let Some(list) = plan["faults"].get_mut(list).and_then(Value::as_array_mut) else { continue };
        let is_of = |fault: &Value, is: fn(u64, u64) -> bool| {
            let step = fault.pointer(step).expect("a step");
            step["client"] == json!(client)
                && step["operation"].as_u64().is_some_and(|operation| is(operation, index as u64))
        };
        list.retain(|fault| !is_of(fault, |operation, gone| operation == gone));
        for fault in list.iter_mut() {
            if is_of(fault, |operation, gone| operation > gone) {
                let operation = &mut fault.pointer_mut(step).expect("a step")["operation"];
                *operation = json!(operation.as_u64().expect("a number") - 1);
            }
        }
    }
}

fn length(list: &Value) -> usize {
    list.as_array().map_or(0, Vec::len)
}

/// The plan without one of its operations or faults, for each of them.
fn without_one(plan: &Value) -> Vec<Value> {
    let mut less = Vec::new();
    for client in 0..length(&plan["operations"]) {
        for index in 0..length(&plan["operations"][client]) {
            let mut without = plan.clone();
            take_operation(&mut without, client, index);
            less.push(without);
        }
    }
    for list in ["strikes", "decisions", "deaths", "order"] {
        for index in 0..length(&plan["faults"][list]) {
            let mut without = plan.clone();
            without["faults"][list].as_array_mut().expect("faults").remove(index);
            less.push(without);
        }
    }
    less
}

fn size(plan: &Value) -> Size {
    let operations: usize = plan["operations"].as_array().expect("clients").iter().map(length).sum();
    let faults: usize =
        ["strikes", "decisions", "deaths"].map(|list| length(&plan["faults"][list])).iter().sum();
    Size { operations: operations as u64, clients: 0, faults: faults as u64 }
}

/// Sets what plants the bug back.
fn healthy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "planted" || name == "bug" { *field = Value::Null } else { healthy(field) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(healthy),
        _ => {}
    }
}

fn check_that_all_is_needed(workload: &str, bug: &str) -> bool {
    let (entry, shrunk) = shrunk(workload, bug, 2_000);
    let name = format!("{workload} {bug}");
    assert!(shrunk.is_minimal, "{name}: {}", shrunk.after);
    let claim = Claim::of(&shrunk.result.findings).expect("it fails");
    let plan: Value = serde_json::from_str(&shrunk.repro).expect("a repro file");
    let own = plan["schedule"].as_u64().or(plan["seed"].as_u64()).expect("a seed");
    for mut less in without_one(&plan) {
        let size = size(&less);
        for schedule in schedules(own, size).filter(|_| size.operations > 0) {
            less["schedule"] = json!(schedule);
            let run = entry.replay(&less.to_string(), false).expect("a repro file");
            assert!(!claim.is_in(&run.findings), "{name}: less fails, too: {less}");
        }
    }
    // What is left is the bug's failure, and not that of operations which no configuration gives.
    let mut without_bug = plan.clone();
    healthy(&mut without_bug);
    let run = entry.replay(&without_bug.to_string(), false).expect("a repro file");
    assert_eq!(run.verdict(), Verdict::Passed, "{name} fails without the bug: {:?}", run.findings);
    let demands = Demands { bug: Some(bug.to_owned()), ..Demands::default() };
    let drawn: Value =
        serde_json::from_str(&entry.plan(Seed(plan["seed"].as_u64().expect("a seed")), &demands))
            .expect("a plan");
    drawn["configuration"] != plan["configuration"]
}

#[test]
fn all_that_remains_is_needed() {
    let bugs = [
        ("queue", "dequeue-as-printed"),
        ("queue", "snapshot-dequeue"),
        ("queue", "overwritten-flag"),
        ("queue", "id-inside"),
        ("queue", "first-batch"),
        ("queue", "same-rank"),
        ("queue", "count-is-index"),
        ("queue", "item-alone"),
        ("cycle", "two-transactions"),
        ("cycle", "kept-reads"),
    ];
    let simpler: usize = std::thread::scope(|scope| {
        let checks = bugs.map(|(workload, bug)| scope.spawn(move || check_that_all_is_needed(workload, bug)));
        checks.into_iter().map(|check| usize::from(check.join().expect("all is needed"))).sum()
    });
    assert!(simpler >= bugs.len() / 2, "{simpler} configurations became simpler");
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
