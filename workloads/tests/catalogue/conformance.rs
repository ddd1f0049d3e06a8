//! The simulated client, the directory layer and the tuple layer return the recorded results of a real
//! FoundationDB 7.4 cluster and of the official binding.

use shaketable_fidelity::conformance::{Case, read};
use shaketable_sim::seed::Seed;
use shaketable_workloads::conformance::{KINDS, check, record_simulated};
use std::path::Path;

#[test]
fn every_recorded_case_is_answered_equally() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fidelity/conformance");
    let report = check(read(&folder).expect("recordings")).expect("a calm cluster answers");
    let text = shaketable_reports::text::conformance(&report);
    assert!(report.files.iter().all(|f| f.differences.is_empty()), "{text}");
    let impossible: Vec<&str> =
        report.files.iter().flat_map(|f| f.impossible.iter().map(|case| &*case.case)).collect();
    assert_eq!(impossible, ["tenant", "client status", "tuple-625", "tuple-922"], "{text}");
    let equal: Vec<(&str, u64)> = report.files.iter().map(|f| (&*f.file, f.equal)).collect();
    assert_eq!(
        equal,
        [
            ("atomic.jsonl", 600),
            ("conflict.jsonl", 1500),
            ("directories.jsonl", 400),
            ("errors.jsonl", 93),
            ("range.jsonl", 400),
            ("ryw.jsonl", 1500),
            ("special-keys.txt", 55),
            ("stamp.jsonl", 400),
            ("tuples.jsonl", 998),
        ]
    );
}

#[test]
fn recorded_cases_are_answered_equally() {
    for kind in KINDS {
        let recorded = record_simulated(Seed(1), kind, 60).expect("a calm cluster answers");
        assert_eq!((recorded.cases.len(), recorded.unstable), (60, 0), "{kind}");
        let answers = |case: &Case| case.steps.iter().all(|step| !step.expect.is_null());
        assert!(recorded.cases.iter().all(answers), "{kind}");
    }
}
