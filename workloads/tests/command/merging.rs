//! Shards that are merged: the result is that of the single run, and what does not fit is refused.

use crate::{
    process::{code, folder, names, run, stderr, stdout},
    reports::{read, sweep},
    schema,
};
use shaketable_reports::{Body, Document, Ending, SweepReport, json};
use std::{fs, path::Path, process::Output};

const SHARDS: u64 = 8;

/// Runs a sweep as shards in a folder, and returns the paths of their reports and their exit codes.
fn shards(folder: &Path, arguments: &[&str]) -> (Vec<String>, Vec<i32>) {
    let shard = |number: u64| {
        let path = folder.join(format!("shard-{number}.json")).to_str().expect("a plain path").to_owned();
        let share = format!("{number}/{SHARDS}");
        let output = run(&[arguments, &["--shard", &share, "--json", &path]].concat());
        (path, code(&output))
    };
    (1..=SHARDS).map(shard).unzip()
}

fn merge(reports: &[String], arguments: &[&str]) -> Output {
    let reports: Vec<&str> = reports.iter().map(String::as_str).collect();
    run(&[&["report", "merge"], &reports[..], arguments].concat())
}

/// A folder of regressions of which one fails again, one passes, and one cannot be replayed.
fn regressions() -> String {
    let folder = folder("kept-regressions").join("kept");
    let place = folder.to_str().expect("a plain path").to_owned();
    for plan in [&["queue", "1", "--bug", "snapshot-dequeue"][..], &["cycle", "3", "--passing"]] {
        let output = run(&[&["regressions", "add", "--regressions", &place], plan].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let old = r#"{"schema": 1, "workload": "cycle"}"#;
    fs::write(folder.join("cycle/version.json"), old).expect("written");
    place
}

#[test]
fn eight_shards_merged_equal_the_single_run() {
    let kept = regressions();
    let sweeps: [(&str, &[&str], i32); 4] = [
        ("regressions", &["run", "cycle", "queue", "--seeds", "8", "--regressions", &kept], 1),
        ("passes", &["run", "cycle", "queue", "--seeds", "3..23", "--check-determinism", "9"], 0),
        ("fails", &["run", "cycle", "--bug", "snapshot-read", "--seeds", "70", "--fresh", "a night"], 1),
        // On a calm cluster, no result is unknown.
        ("points", &["run", "queue", "--seeds", "8", "--faults", "calm", "--require-points"], 4),
    ];
    for (name, arguments, exit) in sweeps {
        let folder = folder(&format!("merge-{name}"));
        let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
        let (single, single_junit) = (path("single.json"), path("single.xml"));
        let alone = run(&[arguments, &["--json", &single, "--junit", &single_junit]].concat());
        let (mut reports, codes) = shards(&folder, arguments);
        assert!(codes.iter().all(|code| [0, exit].contains(code)), "{name}: {codes:?}");
        // The order of the files does not matter.
        reports.rotate_left(3);
        let (whole, whole_junit) = (path("whole.json"), path("whole.xml"));
        let page = path("whole.html");
        let merged = merge(&reports, &["--json", &whole, "--junit", &whole_junit, "--html", &page]);
        assert_eq!((code(&alone), code(&merged)), (exit, exit), "{name}: {}", stdout(&merged));
        let (report, commit) = sweep(Path::new(&whole));
        assert_eq!(
            (&report, &commit),
            (&sweep(Path::new(&single)).0, &sweep(Path::new(&single)).1),
            "{name}"
        );
        // The text is a function of the report; its verdict does not contain the cost.
        let verdict = |output: &Output| {
            let text = stdout(output);
            let at = ["PASSED", "FAILED", "VACUOUS"]
                .iter()
                .filter_map(|word| text.find(&format!("{word}: ")))
                .min();
            text[at.expect("a verdict")..].to_owned()
        };
        assert_eq!(verdict(&merged), verdict(&alone), "{name}");
        if name == "regressions" {
            assert_eq!((report.runs(), report.total().failed(), report.regressions().len()), (16, 0, 3));
            // Without the first shard, none of them is known: it must be there.
            assert_eq!(code(&merge(&reports[..5], &[])), 2);
        }
        assert!(read(Path::new(&page)).starts_with("<!DOCTYPE html>"), "{name}");
        for workload in &report.workloads {
            assert!(workload.latencies.count() > 0, "{name}: operations are answered");
            assert_eq!(workload.attempts.count(), workload.counters.operations, "{name}");
        }
        for junit in [&single_junit, &whole_junit] {
            assert_eq!(schema::check(&read(Path::new(junit))), Ok(()), "{name}");
        }
        if name == "fails" {
            let failed = &report.workloads[0];
            assert!(failed.failing_seeds.len() > failed.failures.len(), "more failures than are kept");
            let junit = read(Path::new(&whole_junit));
            for seed in &failed.failing_seeds {
                let line = format!("shaketable replay cycle {seed} --faults standard --bug snapshot-read");
                assert!(junit.contains(&format!("name=\"seed {seed}\"")) && junit.contains(&line), "{seed}");
            }
        }
    }
}

#[test]
fn shards_that_do_not_fit_are_refused_by_name() {
    let folder = folder("merge-refused");
    let calm = ["run", "cycle", "--seeds", "16", "--faults", "calm"];
    let (reports, _) = shards(&folder, &calm);
    let before = names(&folder);
    let out = folder.join("out.json");
    let refused = |reports: &[String]| {
        let output = merge(reports, &["--json", out.to_str().expect("a plain path")]);
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert!(!out.exists());
        stderr(&output).replace(folder.to_str().expect("a plain path"), "")
    };
    let without = |left_out: &[usize]| {
        let kept = reports.iter().enumerate().filter(|(n, _)| !left_out.contains(n));
        kept.map(|(_, path)| path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(refused(&without(&[2])), "shaketable: shard 3 of 8 is missing\n");
    assert_eq!(refused(&without(&[2, 6, 7])), "shaketable: shards 3, 7 and 8 of 8 are missing\n");
    assert_eq!(
        refused(&[&reports[..], &reports[4..5]].concat()),
        "shaketable: /shard-5.json and /shard-5.json overlap: both are shard 5 of 8\n"
    );

    // The second shard is replaced by one that another program or another sweep wrote.
    let other = folder.join("other.json");
    let mut replaced = reports.clone();
    replaced[1] = other.to_str().expect("a plain path").to_owned();
    let text = read(Path::new(&reports[1]));
    let change = |change: &dyn Fn(&mut Document)| {
        let mut document = json::parse(&text).expect("a report");
        change(&mut document);
        fs::write(&other, json::render(&document)).expect("written");
    };
    fn body(document: &mut Document) -> &mut SweepReport {
        match &mut document.body {
            Body::Sweep(sweep) => sweep,
            other => panic!("{other:?}"),
        }
    }
    change(&|document| document.commit = "another".to_owned());
    assert!(refused(&replaced).contains("/shard-1.json and /other.json differ in commit: "));
    let forced = merge(&replaced, &["--force"]);
    assert_eq!(code(&forced), 0, "{}", stderr(&forced));
    assert!(stdout(&forced).contains(" and another\n"), "{}", stdout(&forced));
    change(&|document| body(document).seeds = 0..17);
    assert!(refused(&replaced).contains("differ in seeds: 0..16, 0..17"));
    assert_eq!(code(&merge(&replaced, &["--force"])), 2, "seeds must be the same");
    change(&|document| body(document).workloads[0].passed += 1);
    assert!(refused(&replaced).contains("/other.json contradicts itself"));
    change(&|document| body(document).faults = "strom".to_owned());
    assert!(refused(&replaced).contains("differ in faults"));
    assert_eq!(code(&merge(&replaced, &["--force"])), 2);
    fs::write(&other, &text[..text.len() / 2]).expect("torn");
    assert!(refused(&replaced).contains("/other.json: not a report"));
    fs::remove_file(&other).expect("removed");
    assert_eq!(names(&folder), before);
}

#[test]
fn an_incomplete_shard_makes_the_merge_incomplete_and_it_can_be_continued() {
    let folder = folder("merge-budget");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let sweep_of = |arguments: &[&str], name: &str| {
        let path = path(name);
        code(&run(&[&["run", "cycle", "--seeds", "40", "--json", &path], arguments].concat()))
    };
    assert_eq!(sweep_of(&["--shard", "1/2"], "1.json"), 0);
    sweep_of(&["--shard", "2/2", "--budget", "1ms"], "2.json");
    let whole = path("whole.json");
    let merged = merge(&[path("1.json"), path("2.json")], &["--json", &whole]);
    assert!(
        stdout(&merged).contains("The budget ended the sweep before its last seed."),
        "{}",
        stdout(&merged)
    );
    assert_eq!(sweep(Path::new(&whole)).0.ending, Ending::Budget);
    assert_eq!(code(&run(&["run", "--resume", &whole, "--json", &whole])), 0);
    assert_eq!(sweep_of(&[], "single.json"), 0);
    assert_eq!(sweep(Path::new(&whole)), sweep(Path::new(&path("single.json"))));
}
