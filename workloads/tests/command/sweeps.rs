//! Sweeps: their tables, reports, endings and exit codes.

use crate::{
    failures::fact,
    process::{code, folder, listens, names, run, shaketable, stderr, stdout},
};
use insta::assert_snapshot;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

/// The table and verdict of a sweep without everything that depends on the machine or changes with the
/// simulator: numbers are replaced by `#`, runs of spaces by one.
fn shape(text: &str) -> String {
    let shape_of = |word: &str| {
        let bare = word.trim_end_matches(['.', ',']);
        let number = bare.starts_with(|c: char| c.is_ascii_digit())
            && bare.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
        if number { word.replacen(bare, "#", 1) } else { word.to_owned() }
    };
    let line = |line: &str| line.split_whitespace().map(shape_of).collect::<Vec<_>>().join(" ") + "\n";
    // Which points three seeds do not reach does not concern the command.
    let text = &match text.split_once("never reached:") {
        Some((before, after)) => format!("{before}{}", after.split_once("\n\n").expect("the block ends").1),
        None => text.to_owned(),
    };
    let head = text.find(", commit ").expect("the commit");
    let rest = head + text[head..].find('\n').expect("a line end");
    format!("{}{}", &text[..head], &text[rest..]).lines().map(line).collect()
}

#[test]
fn a_calm_sweep_passes_and_leaves_a_report() {
    let folder = folder("sweep");
    let path = folder.join("report.json");
    let report = path.to_str().expect("a plain path");
    let arguments = [
        "run",
        "cycle",
        "queue",
        "--seeds",
        "3..6",
        "--faults",
        "calm",
        "--check-determinism",
        "2",
        "--json",
        report,
    ];
    let output = run(&arguments);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    assert_snapshot!("sweep_calm", shape(&stdout(&output)));
    let document = shaketable_reports::json::parse(&fs::read_to_string(&path).expect("a report"));
    let Ok(shaketable_reports::Document { body: shaketable_reports::Body::Sweep(sweep), .. }) = document
    else {
        panic!("no report of a sweep: {document:?}")
    };
    assert_eq!((sweep.runs(), sweep.total().run_twice, sweep.total().differing), (6, 4, 0));
    assert_eq!(names(&folder), ["report.json"]);
}

#[test]
fn a_sweep_without_required_events_is_vacuous() {
    // `cycle` uses no watches, so the remaining family never occurs.
    let families = shaketable_sim::faults::Family::ALL.iter().map(|f| f.name());
    let families: Vec<&str> = families.filter(|name| *name != "late-watch").collect();
    let output = run(&["run", "cycle", "--seeds", "20", "--without", &families.join(",")]);
    assert_eq!(code(&output), 4, "{}", stdout(&output));
    assert!(stdout(&output).contains("VACUOUS"));
    assert!(stdout(&output).contains("cycle saw no"), "{}", stdout(&output));
}

#[test]
fn a_sweep_shrinks_its_first_failure_and_reports_both_plans() {
    let folder = folder("shrinks");
    let path = folder.join("report.json");
    let report = path.to_str().expect("a plain path");
    let arguments = ["run", "queue", "--bug", "snapshot-dequeue", "--seeds", "6", "--json", report];
    let output = run(&arguments);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    assert!(
        stdout(&output).contains("\n  shrunk from ") && stdout(&output).contains("(snapshot)"),
        "a story"
    );
    let document = shaketable_reports::json::parse(&fs::read_to_string(&path).expect("a report"));
    let Ok(shaketable_reports::Document { body: shaketable_reports::Body::Sweep(sweep), .. }) = document
    else {
        panic!("no report of a sweep: {document:?}")
    };
    let first = sweep.failures().next().expect("a failure");
    let shrunk = first.shrunk.as_ref().expect("it is shrunk");
    assert!(shrunk.after.operations <= 4 && shrunk.after.clients <= 2, "{}", shrunk.after);
    for (plan, hash) in [
        (first.plan.as_ref().expect("its plan"), first.event_hash.as_ref().expect("its hash")),
        (&shrunk.plan, &shrunk.event_hash),
    ] {
        let path = folder.join("plan.json");
        fs::write(&path, plan.to_string()).expect("a file");
        let replayed = run(&["replay", path.to_str().expect("a plain path")]);
        assert_eq!(code(&replayed), 1);
        assert!(fact(&stdout(&replayed), "event hash").contains(hash), "{}", stdout(&replayed));
    }
    let whole = run(&[&arguments[..6], &["--no-shrink"]].concat());
    assert!(!stdout(&whole).contains("shrunk"), "{}", stdout(&whole));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_after_the_verdict() {
    let output = run(&["replay", "cycle", "1", "--faults", "calm", "--json", "/dev/full"]);
    assert_eq!(code(&output), 2);
    assert!(stdout(&output).starts_with("PASSED cycle, seed 1"));
    assert_eq!(
        stderr(&output),
        "shaketable: cannot write /dev/full: No space left on device (os error 28)\n"
    );
}

/// Starts a command that would take days, signals it after it has started, and returns its output.
#[cfg(target_os = "linux")]
fn signalled(signal: &str, arguments: &[&str], report: &Path) -> (Output, String) {
    let mut child = shaketable(arguments)
        .arg("--json")
        .arg(report)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    listens(&child);
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let last = lines.map(|line| line.expect("readable")).last().expect("a last line");
    assert!(last.starts_with("shaketable: interrupted after "), "{last}");
    let output = child.wait_with_output().expect("it ends");
    (output, fs::read_to_string(report).expect("a report was written"))
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_command_reports_what_it_did_and_exits_with_the_signal() {
    let folder = folder("interrupted");
    for (signal, exit) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let sweep = ["run", "cycle", "--seeds", "1000000000", "--jobs", "1"];
        let (output, report) = signalled(signal, &sweep, &folder.join("sweep.json"));
        assert_eq!(code(&output), exit);
        let printed = stdout(&output);
        assert!(printed.contains("interrupted; this is what is known so far"), "{printed}");
        assert!(printed.contains("INTERRUPTED: ") && !printed.contains("PASSED"), "{printed}");
        assert!(report.contains("\"ending\": \"interrupted\""));
        assert!(report.contains("\"outcome\": \"interrupted\""));
    }
    let bugs = ["bugs", "cycle", "--faults", "calm", "--seeds", "1000000000", "--jobs", "1"];
    let (output, report) = signalled("-INT", &bugs, &folder.join("bugs.json"));
    assert_eq!(code(&output), 130);
    let printed = stdout(&output);
    assert!(printed.contains("INTERRUPTED: of ") && !printed.contains("MISSED"), "{printed}");
    assert!(report.contains("\"ending\": \"interrupted\""));
}

#[test]
fn a_report_can_go_to_standard_output() {
    let output = run(&["run", "cycle", "--seeds", "2", "--faults", "calm", "--json", "-"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = shaketable_reports::json::parse(&stdout(&output)).expect("nothing but the report");
    assert!(matches!(document.body, shaketable_reports::Body::Sweep(_)));
    assert!(stderr(&output).contains("PASSED"), "{}", stderr(&output));
}

#[test]
fn a_sweep_with_a_planted_bug_fails_and_names_it() {
    let output = run(&["run", "cycle", "--bug", "snapshot-read", "--seeds", "20"]);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    let printed = stdout(&output);
    let head = "faults standard, seeds 0..20, planted bug snapshot-read, commit ";
    assert!(printed.replace('\n', " ").starts_with(head), "{printed}");
}

#[test]
fn a_sweep_that_ended_early_can_be_continued_with_the_same_result() {
    let folder = folder("resume");
    let path = |name: &str| folder.join(name).to_str().expect("a plain path").to_owned();
    let sweep = ["run", "cycle", "counter", "--seeds", "3..33", "--without", "kill", "--shard", "1/2"];
    let swept = |arguments: &[&str], name: &str| {
        let output = run(&[arguments, &["--json", &path(name)]].concat());
        let text = fs::read_to_string(path(name)).expect("a report");
        let document = shaketable_reports::json::parse(&text).expect("a report");
        let shaketable_reports::Body::Sweep(mut report) = document.body else { panic!("{document:?}") };
        report.cost = Default::default();
        report.workloads.iter_mut().for_each(|workload| workload.cpu_ns = 0);
        (code(&output), report)
    };
    let whole = swept(&sweep, "whole.json");
    let (_, part) = swept(&[&sweep[..], &["--budget", "1ms"]].concat(), "part.json");
    assert_eq!(part.ending, shaketable_reports::Ending::Budget);
    assert!(part.runs() < whole.1.runs(), "{} runs", part.runs());
    assert_eq!(swept(&["run", "--resume", &path("part.json")], "rest.json"), whole);
    assert_eq!(whole.1.workloads[0].ran, std::iter::once(3..32).collect::<Vec<_>>());

    // A report that no sweep of this program can have written is refused.
    let text = fs::read_to_string(path("part.json")).expect("a report");
    let torn = [
        text[..text.len() / 2].to_owned(),
        text.replacen("\"runs\": ", "\"runs\": 1", 1),
        text.replacen("\"commit\": \"", "\"commit\": \"other ", 1),
        text.replacen("\"start\": 3", "\"start\": 300", 1),
        text.replacen("\"counter\"", "\"cycle\"", 1),
        text.replacen("\"real\": false", "\"real\": true", 1),
        {
            let mut document = shaketable_reports::json::parse(&text).expect("a report");
            let shaketable_reports::Body::Sweep(sweep) = &mut document.body else { panic!("a sweep") };
            sweep.shard = Some((0, 0));
            shaketable_reports::json::render(&document)
        },
        {
            let mut document = shaketable_reports::json::parse(&text).expect("a report");
            let shaketable_reports::Body::Sweep(sweep) = &mut document.body else { panic!("a sweep") };
            sweep.workloads.clear();
            shaketable_reports::json::render(&document)
        },
    ];
    assert!(torn.iter().all(|torn| *torn != text));
    for torn in torn {
        fs::write(path("torn.json"), torn).expect("written");
        let output = run(&["run", "--resume", &path("torn.json")]);
        assert_eq!((code(&output), stderr(&output).lines().count()), (2, 1), "{}", stderr(&output));
    }
    let output = run(&["run", "cycle", "--resume", &path("part.json")]);
    assert_eq!((code(&output), stderr(&output).lines().count()), (2, 1), "{}", stderr(&output));
}
