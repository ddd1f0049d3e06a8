//! The recorded answers of a real cluster, and the contract.

use crate::process::{code, folder, names, run, stderr, stdout};
use std::{fs, path::Path};

#[test]
fn recordings_are_replayed_and_differences_are_reported() {
    let folder = folder("conformance");
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fidelity/conformance");
    let whole = fs::read_to_string(recordings.join("errors.jsonl"));
    let some: Vec<String> =
        whole.expect("recordings").lines().take(5).map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("some.jsonl"), some.concat()).expect("written");
    let place = folder.to_str().expect("a plain path");
    let output = run(&["conformance", "check", place]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).ends_with("PASSED: 5 cases answered as the real cluster did.\n"));

    // The final keyspace of the case is made up.
    let wrong = some[0].replacen("\"final\":[", "\"final\":[[\"7a7a\",\"79\"],", 1);
    let wrong = wrong.replace("],]", "]]");
    assert_ne!(wrong, some[0]);
    fs::write(folder.join("wrong.jsonl"), wrong).expect("written");
    let report = folder.join("report.json");
    let output = run(&["conformance", "check", place, "--json", report.to_str().expect("a plain path")]);
    assert_eq!(code(&output), 3, "{}", stdout(&output));
    assert!(stdout(&output).contains("HARNESS FAULT: of 6 cases, 1 answered differently."));
    assert!(fs::read_to_string(report).expect("a report").contains("\"report\": \"conformance\""));
}

#[test]
fn recordings_can_be_checked_and_are_not_overwritten() {
    let folder = folder("record");
    let recorded = folder.join("recorded");
    let place = recorded.to_str().expect("a plain path");
    let record = ["conformance", "record", "--out", place, "--seed", "9", "--cases", "3"];
    let output = run(&record);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(names(&recorded).len(), 6);
    let output = run(&["conformance", "check", place]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).ends_with("PASSED: 18 cases answered as the real cluster did.\n"));
    let again = run(&record);
    assert_eq!((code(&again), stderr(&again).lines().count()), (2, 1), "{}", stderr(&again));
}

#[test]
fn the_contract_is_kept_by_the_simulated_cluster() {
    let output = run(&["contract", "errors/"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert!(stdout(&output).ends_with("promises kept.\n"), "{}", stdout(&output));
}
