//! Regressions and the list of failures from a user's point of view: files that are kept, replayed and
//! refused.

use crate::{
    process::{code, folder, names, run, shaketable, stderr, stdout},
    reports::read,
};
use serde_json::{Value, json};
use shaketable_reports::{Body, Conclusion, Document, FailureList, RegressionsReport, Replayed};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

/// A failing seed that little remains of.
const FAILING: [&str; 4] = ["queue", "1", "--bug", "snapshot-dequeue"];

/// Runs the command in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    shaketable(arguments).current_dir(folder).output().expect("the command starts")
}

/// Adds the failing seed in a folder, and returns the path of its file.
fn added(folder: &Path) -> PathBuf {
    let output = run_in(folder, &[&["regressions", "add"], &FAILING[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let printed = stdout(&output);
    let file = printed.split_whitespace().next().expect("a file");
    assert!(file.starts_with("tests/regressions/queue/model-") && file.ends_with(".json"), "{printed}");
    assert!(printed.contains(" (2 operations of 2 clients, 0 faults)\n"), "{printed}");
    folder.join(file)
}

/// Changes a file.
fn edit(path: &Path, changes: &[(&str, &str)]) {
    let mut text = read(path);
    for (from, to) in changes {
        assert!(text.contains(from), "there is {from} in {text}");
        text = text.replace(from, to);
    }
    fs::write(path, text).expect("written");
}

/// Takes the planted bug out of a plan, as if the layer had been mended.
fn mend(path: &Path, bug: &str) {
    edit(
        path,
        &[
            (&format!("\"planted\": \"{bug}\""), "\"planted\": null"),
            (&format!("\"bug\": \"{bug}\""), "\"bug\": null"),
        ],
    );
}

fn checked(folder: &Path, more: &[&str]) -> (i32, RegressionsReport) {
    let output = run_in(folder, &[&["regressions", "check", "--json", "-"], more].concat());
    let document = shaketable_reports::json::parse(&stdout(&output));
    let Ok(Document { body: Body::Regressions(report), .. }) = document else { panic!("{document:?}") };
    assert_eq!(i32::from(report.outcome.exit_code()), code(&output));
    (code(&output), report)
}

#[test]
fn a_failing_seed_is_kept_and_fails_until_its_cause_is_mended() {
    let folder = folder("kept");
    let calm = ["run", "queue", "cycle", "--seeds", "2", "--faults", "calm"];
    let before = run_in(&folder, &calm);
    assert_eq!(code(&before), 0, "{}", stdout(&before));
    assert!(!(stdout(&before) + &stderr(&before)).contains("regression"), "nothing is said without a folder");

    let path = added(&folder);
    let file = path.strip_prefix(&folder).expect("below it").to_str().expect("a plain path");
    let kept: Value = serde_json::from_str(&read(&path)).expect("JSON");
    assert_eq!(kept["regression"]["judge"], "model");
    assert!(kept["regression"]["message"].as_str().expect("a message").len() > 20);
    assert_eq!(kept["regression"]["version"], env!("CARGO_PKG_VERSION"));
    // It is a repro file.
    assert_eq!(code(&run_in(&folder, &["replay", file])), 1);
    let shrunk = run_in(&folder, &["shrink", file, "--output", "again.json"]);
    assert_eq!(code(&shrunk), 1, "{}", stderr(&shrunk));
    assert!(stdout(&shrunk).contains("  to 2 operations of 2 clients, 0 faults"), "{}", stdout(&shrunk));

    let content = read(&path);
    for source in [&FAILING[..], &[file, "--planted"]] {
        let twice = run_in(&folder, &[&["regressions", "add"], source, &["--note", "another"]].concat());
        assert_eq!(code(&twice), 0, "{}", stderr(&twice));
        let printed = stdout(&twice).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.ends_with(&format!("the plan is already in {file}")), "{printed}");
        assert_eq!((names(path.parent().expect("a folder")).len(), read(&path)), (1, content.clone()));
    }
    let listed = stdout(&run_in(&folder, &["regressions", "list"]));
    let name = path.file_name().expect("a name").to_str().expect("a plain path");
    for part in [&format!("queue/{name}  2/2/0 "), "\n  model: operation 0 of client "] {
        assert!(listed.contains(part), "{listed}");
    }

    let (exit, report) = checked(&folder, &[]);
    assert_eq!((exit, report.outcome), (1, Conclusion::Violated));
    let swept = run_in(&folder, &[&calm[..], &["--junit", "junit.xml"]].concat());
    let printed = stdout(&swept);
    assert_eq!(code(&swept), 1, "{printed}");
    for part in [
        "FAILED: every invariant held in 4 runs, but not every regression passed.\n",
        "\nOf 1 regression, 1 failed again.\n",
        &format!("\nREGRESSION {file}\n  it once broke: model: "),
        &format!("\nreplay with\nshaketable replay {file}\n"),
    ] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
    assert!(read(&folder.join("junit.xml")).contains(&format!("<testcase name=\"regression {file}\"")));
    for without in [&["--no-regressions"][..], &["--shard", "2/2"]] {
        assert_eq!(code(&run_in(&folder, &[&calm[..], without].concat())), 0, "{without:?}");
    }
    let other = run_in(&folder, &["run", "cycle", "--seeds", "2", "--faults", "calm"]);
    assert_eq!(code(&other), 0, "{}", stdout(&other));
    let planted = run_in(&folder, &["run", "queue", "--seeds", "1", "--bug", "snapshot-dequeue"]);
    assert!(!stdout(&planted).contains("egression"), "{}", stdout(&planted));

    mend(&path, "snapshot-dequeue");
    let swept = run_in(&folder, &calm);
    assert_eq!(code(&swept), 0, "{}", stdout(&swept));
    assert!(stdout(&swept).contains("1 regression passed.\n"), "{}", stdout(&swept));
    assert_eq!(checked(&folder, &["queue"]).0, 0);
    let passing = run_in(&folder, &["regressions", "add", file, "--regressions", "other"]);
    assert!(stderr(&passing).contains("passes: there is nothing to keep"), "{}", stderr(&passing));
    let passing = run_in(&folder, &["regressions", "add", file, "--regressions", "other", "--passing"]);
    assert_eq!(code(&passing), 0, "{}", stderr(&passing));
    assert!(
        stdout(&passing).contains("other/queue/model-") && stdout(&passing).contains("\n  model: operation")
    );
}

#[test]
fn a_check_that_checks_nothing_is_refused() {
    let folder = folder("vain");
    let place = folder.join("tests/regressions/queue");
    fs::create_dir_all(&place).expect("created");
    fs::write(place.join("old.json"), r#"{"schema": 1, "workload": "queue"}"#).expect("written");
    let pipe = std::process::Command::new("mkfifo").arg(place.join("pipe.json")).status();
    assert!(pipe.expect("there is mkfifo").success());
    let output = run_in(&folder, &["regressions", "check"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 2, "{said}");
    assert!(stdout(&output).contains("of 1 regression, 1 cannot be replayed"), "{}", stdout(&output));
    assert!(said.contains("pipe.json is not a regression: it is not a regular .json file\n"), "{said}");
    assert!(said.ends_with("none of the regressions in tests/regressions can be replayed\n"), "{said}");
}

#[test]
fn a_regression_whose_faults_no_longer_happen_is_named() {
    let folder = folder("unmet");
    let seed = (0..40).find(|seed: &u64| {
        let seed = seed.to_string();
        let bug = ["--bug", "dequeue-as-printed"];
        code(&run_in(&folder, &[&["regressions", "add", "queue", &seed], &bug[..]].concat())) == 0
    });
    assert!(seed.is_some(), "the bug is caught");
    let [name] = &names(&folder.join("tests/regressions/queue"))[..] else { panic!("one file") };
    let path = folder.join("tests/regressions/queue").join(name);
    mend(&path, "dequeue-as-printed");
    let unmet = || match &checked(&folder, &[]).1.workloads[0].regressions[0].replayed {
        Replayed::Passed { unmet } => unmet.clone(),
        other => panic!("{other:?}"),
    };
    let met = unmet();
    let text = read(&path);
    let (before, after) = text.split_once("\"opportunity\": ").expect("a decision");
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    fs::write(&path, format!("{before}\"opportunity\": 77{after}")).expect("written");
    let missed = unmet();
    assert!(met.is_empty() && missed.len() == 1, "{met:?} {missed:?}");
    assert!(missed[0].starts_with("unknown-committed in operation "), "{missed:?}");
    let printed = stdout(&run_in(&folder, &["regressions", "check"]));
    assert!(
        printed.replace('\n', " ").contains("passes, but no longer meets: unknown-committed in"),
        "{printed}"
    );
    assert!(printed.ends_with("\nPASSED: 1 regression passed.\n"), "{printed}");
}

#[test]
fn the_failures_of_a_report_are_kept() {
    let folder = folder("of-report");
    let swept = run_in(
        &folder,
        &[
            &["run", "queue", "--seeds", "2", "--bug", "limit-included"][..],
            &["--no-shrink", "--json", "report.json"],
        ]
        .concat(),
    );
    assert_eq!(code(&swept), 1, "{}", stdout(&swept));
    let refused = run_in(&folder, &["regressions", "add", "report.json"]);
    assert!(stderr(&refused).contains("report.json: queue 0 has a planted bug"), "{}", stderr(&refused));
    assert_eq!((code(&refused), names(&folder).len()), (2, 1));
    let sizes = |arguments: &[&str]| {
        let _ = fs::remove_dir_all(folder.join("tests"));
        let output = run_in(&folder, &[&["regressions", "add"], arguments].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
            .lines()
            .filter(|line| line.ends_with(" faults)"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let shrunk = sizes(&["report.json", "--planted"]);
    assert!(shrunk[0].ends_with(" (1 operation of 1 client, 0 faults)"), "{shrunk:?}");
    let small = shrunk[0].split_whitespace().next().expect("a file").to_owned();
    let small: Value = serde_json::from_str(&read(&folder.join(small))).expect("JSON");
    let whole = sizes(&["report.json", "--planted", "--no-shrink"]);
    assert!(!whole[0].contains("(1 operation"), "{whole:?}");

    // A report with plans: the shrunk plan is kept as it is, another is shrunk unless told otherwise.
    let document: Value = serde_json::from_str(&read(&folder.join("report.json"))).expect("JSON");
    let with = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut document = document.clone();
        let failures = document["workloads"][0]["failures"].as_array_mut().expect("failures");
        failures.truncate(1);
        change(&mut failures[0]);
        fs::write(folder.join(name), document.to_string()).expect("written");
    };
    with("plan.json", &|failure| failure["plan"] = small.clone());
    assert_eq!(sizes(&["plan.json", "--planted", "--no-shrink"]), shrunk[..1]);
    with("shrunk.json", &|failure| {
        let size = json!({"operations": 9, "clients": 3, "faults": 1});
        failure["shrunk"] = json!({
            "plan": small, "before": size, "after": size, "replays": 1, "is_minimal": true, "message": "",
            "event_hash": "", "history": shaketable_reports::RunHistory::default(),
        });
    });
    assert_eq!(sizes(&["shrunk.json", "--planted"]), shrunk[..1]);
    assert_eq!(sizes(&["shrunk.json", "plan.json", "--planted"]), shrunk[..1], "the same plan is added once");
}

#[test]
fn a_finding_is_told_where_its_plan_cannot_be_kept() {
    let folder = folder("no-folder");
    fs::write(folder.join("target"), "").expect("written");
    let shrunk = run_in(&folder, &["shrink", "queue", "0", "--bug", "limit-included"]);
    let told = stdout(&shrunk);
    assert!(
        told.contains("FAILED queue, seed 0") && told.contains("nothing more can be taken away"),
        "{told}"
    );
    let said = "shaketable: cannot write target/shaketable: ";
    assert!(stderr(&shrunk).lines().any(|line| line.starts_with(said)), "{}", stderr(&shrunk));
    assert_eq!((code(&shrunk), names(&folder).len()), (1, 1));
    // Cargo's target folder may be elsewhere.
    let mut command = shaketable(&["shrink", "queue", "0", "--bug", "limit-included", "--replays", "1"]);
    let output = command.current_dir(&folder).env("CARGO_TARGET_DIR", "built").output().expect("it starts");
    assert_eq!((code(&output), names(&folder.join("built/shaketable")).len()), (1, 1), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_kept_is_refused_in_one_line_and_nothing_is_written() {
    let folder = folder("refused");
    let path = added(&folder);
    let good = path.strip_prefix(&folder).expect("below it").to_str().expect("a plain path").to_owned();
    let text = read(&path);
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("torn.json", &text[..text.len() / 2]);
    write("version.json", &text.replace("\"schema\": 3", "\"schema\": 1"));
    write("gone.json", &text.replace("\"enqueue\"", "\"endqueue\""));
    write("workload.json", &text.replace("\"workload\": \"queue\"", "\"workload\": \"queueue\""));
    write("typo.json", &text.replace("\"judge\"", "\"jugde\""));
    write("list.json", "{\"schema\": 1, \"failures\": []}");
    write("half-list.json", "{\"schema\": 1, \"fail");
    write("other-list.json", "{\"schema\": 7, \"failures\": []}");
    write("locked.json", "{\"schema\": 1, \"failures\": []}");
    write("locked.json.lock", "");
    write("a-file", "");
    assert_eq!(code(&run_in(&folder, &["replay", "queue", "0", "--json", "passed.json"])), 0);
    let calm = ["run", "cycle", "--seeds", "1", "--faults", "calm", "--no-regressions"];
    assert_eq!(code(&run_in(&folder, &[&calm[..], &["--json", "calm.json"]].concat())), 0);
    let fails = [&["regressions", "add"], &FAILING[..]].concat();
    let before = (names(&folder), names(&folder.join("tests/regressions/queue")));
    let cases: &[(&[&str], &str)] = &[
        (&["regressions"], "a subcommand is missing"),
        (&["regressions", "add"], "required"),
        (&["regressions", "add", "queue", "0"], "queue 0 passes: there is nothing to keep"),
        (&["regressions", "add", "quue", "0"], "unknown workload \"quue\" (did you mean queue?)"),
        (&["regressions", "add", "queue"], "one seed is required"),
        (&["regressions", "add", "queue", "0", "--bug", "none-such"], "none-such"),
        (&["regressions", "add", "queue", "0", "--shrink-budget", "0s"], "must be greater than zero"),
        (&["regressions", "add", "missing.json"], "cannot read missing.json"),
        (&["regressions", "add", "torn.json"], "torn.json: not a complete repro file"),
        (
            &["regressions", "add", "version.json"],
            "version.json: schema version 1; this program reads version 3",
        ),
        (
            &["regressions", "add", "gone.json", "--planted"],
            "gone.json: not a complete repro file: operations.0.0: unknown variant",
        ),
        (&["regressions", "add", "workload.json"], "workload.json: unknown workload"),
        (
            &["regressions", "add", "typo.json", "--planted", "--regressions", "b"],
            "unknown field regression.jugde",
        ),
        (&["regressions", "add", &good, "--regressions", "b"], "has a planted bug"),
        (&["regressions", "add", &good, "--planted", "--faults", "storm"], "require a workload and a seed"),
        (&["regressions", "add", "calm.json"], "calm.json has no failures"),
        (&["regressions", "add", "passed.json"], "passed.json has no failures"),
        // One that is refused leaves the others unwritten.
        (&["regressions", "add", &good, "torn.json", "--planted", "--regressions", "b"], "torn.json: not a"),
        (&[&fails[..], &["--regressions", "a-file"]].concat(), "a-file"),
        (&[&fails[..], &["--regressions", "a-file/b"]].concat(), "a-file/b"),
        (&["regressions", "list", "--regressions", "missing"], "cannot read missing"),
        (&["regressions", "list", "quue"], "unknown workload"),
        (&["regressions", "check", "--regressions", "a-file"], "a-file is not a folder"),
        (&["regressions", "check", "--json", "missing/report.json"], "cannot write"),
        (&["regressions", "check", "cycle"], "there are no regressions in tests/regressions"),
        (&["run", "cycle", "--regressions", "missing"], "cannot read missing"),
        (&["run", "cycle", "--regressions", "a-file"], "a-file is not a folder"),
        (&["run", "cycle", "--regressions", "tests/regressions", "--no-regressions"], "cannot be used with"),
        (
            &["run", "cycle", "--regressions", "tests/regressions", "--bug", "snapshot-read"],
            "cannot be used with",
        ),
        (&["run", "cycle", "--failures", "half-list.json"], "half-list.json: not a list of failures"),
        (&["run", "cycle", "--failures", "calm.json"], "calm.json: list of failures of schema 3"),
        (&["run", "cycle", "--failures", "."], "cannot write"),
        (&["run", "cycle", "--failures", "-"], "- is not a file"),
        (
            &["run", "cycle", "--failures", "new.json", "--json", "new.json"],
            "--json and --failures are the same file",
        ),
        (&["report", "failures", "list.json"], "required"),
        (&["report", "failures", "list.json", "missing.json"], "cannot read missing.json"),
        (&["report", "failures", "list.json", "torn.json"], "torn.json: "),
        (&["report", "failures", "other-list.json", "calm.json"], "schema 7, this program reads schema 1"),
        (&["report", "failures", "locked.json", "calm.json"], "another process is writing locked.json"),
        (&["report", "failures", "missing/list.json", "calm.json"], "cannot write"),
    ];
    for (arguments, why) in cases {
        let output = run_in(&folder, arguments);
        let line = stderr(&output).replace("shrinking queue 1\n", "");
        assert_eq!((code(&output), line.lines().count()), (2, 1), "{arguments:?}: {line}");
        assert!(line.starts_with("shaketable: ") && line.contains(why), "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let after = (names(&folder), names(&folder.join("tests/regressions/queue")));
        assert_eq!(after, before, "{arguments:?} writes nothing");
    }
    // The first of two plans is written, and removed because the second one cannot be.
    #[cfg(unix)]
    {
        fs::create_dir(folder.join("half")).expect("created");
        std::os::unix::fs::symlink("nowhere", folder.join("half/queue")).expect("a link");
        assert_eq!(code(&run_in(&folder, &["replay", "cycle", "3", "--output", "cycle.json"])), 0);
        let both = ["cycle.json", &good, "--planted", "--passing", "--regressions", "half"];
        let output = run_in(&folder, &[&["regressions", "add"], &both[..]].concat());
        assert_eq!((code(&output), stderr(&output).lines().count()), (2, 1), "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot write half/queue: "), "{}", stderr(&output));
        assert_eq!(names(&folder.join("half")), ["queue"]);
    }
    let mut wrong_date = shaketable(&["report", "failures", "list.json", "calm.json"]);
    let output =
        wrong_date.current_dir(&folder).env("SOURCE_DATE_EPOCH", "soon").output().expect("it starts");
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("SOURCE_DATE_EPOCH is not a number of seconds"), "{}", stderr(&output));
    assert_eq!(
        read(&folder.join("list.json")),
        "{\"schema\": 1, \"failures\": []}",
        "lists are as they were"
    );
}

#[test]
fn foreign_files_are_named_and_fail_nothing() {
    let folder = folder("foreign");
    let path = added(&folder);
    let text = read(&path);
    mend(&path, "snapshot-dequeue");
    let place = folder.join("tests/regressions");
    let write = |name: &str, text: &str| fs::write(place.join(name), text).expect("written");
    fs::create_dir(place.join("no_workload")).expect("created");
    write("README.md", "read me");
    write("no_workload/a.json", &text);
    write("queue/notes.txt", "a note");
    write("queue/version.json", &text.replace("\"schema\": 3", "\"schema\": 1"));
    fs::create_dir(place.join("cycle")).expect("created");
    write("cycle/of-queue.json", &text);
    let calm = ["run", "queue", "cycle", "--seeds", "1", "--faults", "calm"];
    for (arguments, strict) in [(&calm[..], 1), (&["regressions", "check"], 1)] {
        let output = run_in(&folder, arguments);
        assert_eq!(code(&output), 0, "{}", stdout(&output));
        for (name, why) in [
            ("README.md", "it is not in the folder of a workload"),
            ("no_workload", "it is not in the folder of a workload"),
            ("queue/notes.txt", "it is not a regular .json file"),
        ] {
            let line = format!("tests/regressions/{name} is not a regression: {why}\n");
            assert_eq!(stderr(&output).matches(&line).count(), 1, "{}", stderr(&output));
        }
        for (name, why) in [
            ("cycle/of-queue.json", "a repro file of the workload queue, not of cycle"),
            ("queue/version.json", "schema version 1; this program reads version 3"),
        ] {
            let line = format!("  tests/regressions/{name} cannot be replayed: {why}");
            assert_eq!(stdout(&output).matches(&line).count(), 1, "{}", stdout(&output));
        }
        let asked = run_in(&folder, &[arguments, &["--strict-regressions"]].concat());
        assert_eq!(code(&asked), strict, "{}", stdout(&asked));
    }
    // What is damaged has lost what it was kept for.
    write("queue/torn.json", &text[..text.len() / 2]);
    write("queue/data.json", "{\"rows\": []}");
    fs::write(place.join("queue/binary.json"), [0xff, 0xfe, 0x00]).expect("written");
    for arguments in [&calm[..], &["regressions", "check"]] {
        let output = run_in(&folder, arguments);
        let said = "the regression tests/regressions/queue/binary.json is damaged: stream did not contain \
                    valid UTF-8; so are 2 others\n";
        assert!(stderr(&output).ends_with(said) && stdout(&output).is_empty(), "{}", stderr(&output));
        assert_eq!(code(&output), 2);
    }
    let listed =
        stdout(&run(&["regressions", "list", "--regressions", place.to_str().expect("a plain path")]));
    assert_eq!(listed.matches("  cannot be replayed: ").count(), 4, "{listed}");
}

#[test]
fn sweeps_add_their_failures_to_a_list() {
    let folder = folder("failures");
    let at = |seconds: &str, arguments: &[&str]| {
        let mut command = shaketable(arguments);
        command.current_dir(&folder).env("SOURCE_DATE_EPOCH", seconds).output().expect("it starts")
    };
    let list = || FailureList::parse(&read(&folder.join("list.json"))).expect("a list");
    let sweep = ["run", "queue", "--seeds", "3", "--bug", "first-batch", "--failures", "list.json"];
    let first = at("1000000000", &[&sweep[..], &["--json", "report.json"]].concat());
    assert_eq!(code(&first), 1, "{}", stderr(&first));
    let one = list();
    assert!(!one.failures.is_empty());
    let all = one.failures.len();
    let said = format!("{all} of them new, in list.json");
    assert!(stderr(&first).contains(&said), "{}", stderr(&first));
    for entry in &one.failures {
        assert_eq!(
            (entry.workload.as_str(), entry.bug.as_deref(), entry.count),
            ("queue", Some("first-batch"), 1)
        );
        assert_eq!((entry.first.date.as_str(), &entry.first), ("2001-09-09T01:46:40Z", &entry.last));
        assert!(
            entry.replay.contains(&format!("replay queue {} ", entry.seed)) && !entry.message.contains('\n')
        );
    }
    assert_eq!(
        code(&at("1100000000", &["report", "failures", "list.json", "report.json", "report.json"])),
        0
    );
    let two = list();
    assert_eq!(two.failures.len(), all);
    for (before, after) in one.failures.iter().zip(&two.failures) {
        assert_eq!((after.count, &after.first), (3, &before.first));
        assert_eq!(after.last.date, "2004-11-09T11:33:20Z");
    }
    let other = at(
        "1100000000",
        &[
            "run",
            "queue",
            "--seeds",
            "3",
            "--bug",
            "first-batch",
            "--faults",
            "calm",
            "--failures",
            "list.json",
        ],
    );
    assert_eq!(code(&other), 1, "{}", stderr(&other));
    assert!(list().failures.len() > all, "other faults have entries of their own");
    assert_eq!(names(&folder), ["list.json", "report.json"], "neither a lock nor a draft is left");

    // A list that cannot be written at the end: the sweep's own verdict comes first, and the list is as it
    // was.
    let before = read(&folder.join("list.json"));
    fs::write(folder.join("list.json.lock"), "").expect("written");
    let locked = at("1200000000", &sweep);
    assert_eq!((code(&locked), read(&folder.join("list.json"))), (1, before));
    assert!(stderr(&locked).contains("another process is writing list.json"), "{}", stderr(&locked));
}
