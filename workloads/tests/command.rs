//! The command from a user's point of view: its output, its errors and its exit codes.

mod process;
#[cfg(unix)]
mod serving;

use insta::assert_snapshot;
use process::{code, folder, names, run, shaketable, stderr, stdout};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
};

#[test]
fn help() {
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("help_run", &["run", "--help"]),
        ("help_replay", &["replay", "--help"]),
        ("help_shrink", &["shrink", "--help"]),
        ("help_explore", &["explore", "--help"]),
        ("help_advise", &["advise", "--help"]),
        ("help_bugs", &["bugs", "--help"]),
        ("help_report", &["report", "--help"]),
        ("help_merge", &["report", "merge", "--help"]),
        ("help_failures", &["report", "failures", "--help"]),
        ("help_regressions", &["regressions", "--help"]),
        ("help_add", &["regressions", "add", "--help"]),
        ("help_list_regressions", &["regressions", "list", "--help"]),
        ("help_check", &["regressions", "check", "--help"]),
        ("help_list", &["list", "--help"]),
        ("help_bench", &["bench", "--help"]),
        ("help_new", &["new", "--help"]),
        ("help_serve", &["serve", "--help"]),
        ("help_with", &["with", "--help"]),
        ("help_conformance", &["conformance", "check", "--help"]),
        ("help_record", &["conformance", "record", "--help"]),
        ("help_contract", &["contract", "--help"]),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 0);
        assert_snapshot!(name, stdout(&output));
    }
}

#[test]
fn bad_usage_is_one_line_and_exit_code_2() {
    let folder = folder("bad-usage");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("a plain path").to_owned()
    };
    let torn = file("torn.json", "{\"schema\": 2, \"workload\": \"cycle\", \"se");
    let half = file("half.json", "{\"schema\": 2, \"workload\": \"cycle\", \"seed\": 5}");
    let other_schema = file("schema.json", "{\"schema\": 99, \"workload\": \"cycle\"}");
    let other_workload = file("workload.json", "{\"schema\": 2, \"workload\": \"cyclone\"}");
    let binary = folder.join("binary.json");
    fs::write(&binary, [0xff, 0xfe, 0x00]).expect("written");
    fs::create_dir(folder.join("recordings")).expect("created");
    let recordings = folder.join("recordings");
    fs::write(recordings.join("bad.jsonl"), "{\"id\": 3}\n").expect("written");
    let recordings = recordings.to_str().expect("a plain path");
    let before = names(&folder);
    let place = folder.to_str().expect("a plain path");
    let missing = format!("{place}/missing/report.json");
    let report = format!("{place}/report.json");
    let cases: &[&[&str]] = &[
        &["shake"],
        &["run", "cylce"],
        &["run", "zzz", "--json", &report],
        &["run", "--seeds", "0"],
        &["run", "--seeds", "7..7"],
        &["run", "--seeds", "9..7"],
        &["run", "--seeds", "many"],
        &["run", "--seeds", ""],
        &["run", "--jobs", "0"],
        &["run", "--jobs", "two"],
        &["run", "--budget", "soon"],
        &["run", "--budget", "0s"],
        &["run", "--budget", "10"],
        &["run", "queue", "--bug", "snapshot-read"],
        &["run", "--shard", "0/3"],
        &["run", "--shard", "3/3", "--seeds", "2"],
        &["run", "--check-determinism", "0"],
        &["run", "--faults", "strom"],
        &["run", "--without", "klog"],
        &["run", "--seed", "3"],
        &["run", "cycle", "--seeds", "1", "--json", place],
        &["run", "cycle", "--seeds", "1", "--json", &missing],
        &["run", "cycle", "--seeds", "1", "--json", ""],
        &["run", "--keep"],
        &["run", "--fresh", ""],
        &["run", "--fresh", "x", "--seeds", "0..0xffffffffffffffff"],
        &["run", "--fresh", "x", "--resume", &missing],
        &["run", "cycle", "--seeds", "1", "--junit", place],
        &["run", "cycle", "--seeds", "1", "--junit", "-", "--json", "-"],
        &["run", "cycle", "--seeds", "1", "--junit", &report, "--json", &report],
        &["run", "cycle", "--seeds", "1", "--html", place],
        &["replay", "cycle", "1", "--html", &report, "--output", &report],
        &["shrink", "cycle", "1", "--html", "-", "--json", "-"],
        &["report"],
        &["report", "merge"],
        &["report", "merge", &missing],
        &["report", "merge", &torn],
        &["report", "merge", &half],
        &["report", "failures", &report],
        &["report", "failures", &torn, &half],
        &["run", "cycle", "--seeds", "1", "--failures", &torn],
        &["run", "cycle", "--regressions", &missing],
        &["regressions", "add", "cycle", "5"],
        &["regressions", "add", &half],
        &["regressions", "check", "cylce"],
        &["with"],
        &["with", "true"],
        &["with", "--library", place, "--", "true"],
        &["bugs", "--cluster-file", "fdb.cluster"],
        &["run", "--backend", "etcd"],
        &["run", "--backend", "fdb", "--check-determinism", "5"],
        &["contract", "no such promise"],
        &["conformance", "record", "--out", recordings, "--cases", "0"],
        &["replay"],
        &["replay", "cycle"],
        &["replay", "cylce"],
        &["replay", "cycle", "x"],
        &["replay", "cylce", "5"],
        &["replay", "cycle", "5", "--bug", "snapshot-raed"],
        &["replay", "cycle", "5", "--output", &missing],
        &["replay", "missing.json"],
        &["replay", place],
        &["replay", &torn],
        &["replay", &half],
        &["replay", &other_schema],
        &["replay", &half, "--faults", "storm"],
        &["replay", &other_workload],
        &["replay", binary.to_str().expect("a plain path")],
        &["shrink"],
        &["shrink", "cycle"],
        &["shrink", "cycle", "5", "--replays", "0"],
        &["shrink", "cycle", "5", "--shrink-budget", "0s"],
        &["shrink", "cycle", "5", "--output", &missing],
        &["shrink", "cycle", "5", "--output", &report],
        &["shrink", &torn],
        &["shrink", &half, "--faults", "storm"],
        &["shrink", &other_schema],
        &["advise", "quue"],
        &["advise", "queue", "--bug", "snapshot-read"],
        &["advise", "--faults", "strom"],
        &["advise", "queue", "--json", &missing],
        &["explore", "quue"],
        &["explore", "queue", "--bug", "snapshot-read"],
        &["explore", "queue", "--budget", "0s"],
        &["explore", "queue", "--bugs", "--bug", "dequeue-as-printed"],
        &["explore", "queue", "--json", &missing],
        &["bugs", "quue"],
        &["bugs", "--seeds", "0"],
        &["bugs", "cycle", "--budget", "0s"],
        &["bugs", "cycle", "--bug", "snapshot-raed"],
        &["bugs", "cycle", "--shard", "90/100"],
        &["list", "judges"],
        &["list", "bugs", "quue"],
        &["list", "faults", "queue"],
        &["help", "shake"],
        &["conformance"],
        &["conformance", "check"],
        &["conformance", "check", &missing],
        &["conformance", "check", place],
        &["conformance", "check", recordings],
    ];
    let mut refusals = String::new();
    for arguments in cases {
        let output = run(arguments);
        let line = stderr(&output);
        assert_eq!(code(&output), 2, "{arguments:?}: {line}");
        assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        refusals += &format!("{}\n  {line}", arguments.join(" "));
    }
    assert_eq!(names(&folder), before, "a refusal writes nothing");
    assert_snapshot!(refusals.replace(place, "PLACE"));
}

#[test]
fn recordings_are_replayed_and_differences_are_reported() {
    let folder = folder("conformance");
    let whole = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/errors.jsonl"));
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

#[cfg(not(feature = "fdb-client"))]
#[test]
fn a_build_without_the_client_explains_how_to_get_it() {
    let output = run(&["run", "cycle", "--seeds", "1", "--backend", "fdb"]);
    assert_eq!(code(&output), 2);
    assert_eq!(
        stderr(&output),
        "shaketable: this program was built without the FoundationDB client: build it with --features fdb\n"
    );
}

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

/// The line that starts with `name`.
fn fact(text: &str, name: &str) -> String {
    let line = text.lines().find(|l| l.trim_start().starts_with(name));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

#[test]
fn a_planted_bug_is_caught_and_its_replay_line_shows_the_same_failure() {
    let output = run(&["bugs", "cycle"]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    let score = stdout(&output);
    assert!(score.ends_with("planted bugs were caught.\n"), "{score}");
    let lines: Vec<&str> = score.lines().filter(|line| line.starts_with("shaketable replay")).collect();
    let [line] = lines[..] else { panic!("one line, for the first: {score}") };
    let arguments: Vec<&str> = line.split_whitespace().skip(1).collect();
    let (first, second) = (run(&arguments), run(&arguments));
    assert_eq!(code(&first), 1, "{}", stdout(&first));
    assert_eq!(stdout(&first), stdout(&second));
    assert_eq!(stdout(&first).lines().last(), Some(line), "the replay line comes last");
    fact(&stdout(&first), "planted bug");
}

#[test]
fn a_sweep_shrinks_its_first_failure_and_reports_both_plans() {
    let folder = folder("shrinks");
    let path = folder.join("report.json");
    let report = path.to_str().expect("a plain path");
    let arguments = ["run", "queue", "--bug", "snapshot-dequeue", "--seeds", "20", "--json", report];
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
    for (plan, hash) in
        [(first.plan.as_ref().expect("its plan"), &first.event_hash), (&shrunk.plan, &shrunk.event_hash)]
    {
        let path = folder.join("plan.json");
        fs::write(&path, plan.to_string()).expect("a file");
        let replayed = run(&["replay", path.to_str().expect("a plain path")]);
        assert_eq!(code(&replayed), 1);
        assert!(fact(&stdout(&replayed), "event hash").contains(hash), "{}", stdout(&replayed));
    }
    let whole = run(&[&arguments[..6], &["--no-shrink"]].concat());
    assert!(!stdout(&whole).contains("shrunk"), "{}", stdout(&whole));
}

#[test]
fn the_story_of_the_readme_is_what_the_command_tells() {
    let folder = folder("readme-story");
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("```text\n$ shaketable shrink ").expect("a story");
    let (line, rest) = block.split_once('\n').expect("a command line");
    let (story, _) = rest.split_once("```").expect("the end of the block");
    let plan = folder.join("plan.json");
    let mut arguments = vec!["shrink"];
    arguments.extend(line.split(' '));
    arguments.extend(["--output", plan.to_str().expect("a plain path")]);
    let told = stdout(&run(&arguments));
    for line in story.lines() {
        assert!(told.lines().any(|other| other == line), "{line:?} is not in {told}");
    }
}

#[cfg(unix)]
#[test]
fn a_replay_line_works_where_it_is_printed() {
    let folder = folder("started");
    let copy = folder.join("my shaketable");
    fs::copy(env!("CARGO_BIN_EXE_shaketable"), &copy).expect("a copy");
    // The README's first failure.
    let arguments = ["replay", "cycle", "1", "--bug", "snapshot-read"];
    assert!(include_str!("../../README.md").contains(&arguments.join(" ")));
    let direct = Command::new(&copy).args(arguments).env_remove("CARGO").output().expect("it starts");
    assert_eq!(code(&direct), 1, "{}", stdout(&direct));
    let line = stdout(&direct).lines().last().expect("the replay line").to_owned();
    let again = Command::new("sh").args(["-c", &line]).env_remove("CARGO").output().expect("a shell");
    assert_eq!(stdout(&again), stdout(&direct));
    let by_cargo = Command::new(&copy).args(arguments).env("CARGO", "cargo").output().expect("it starts");
    let line = stdout(&by_cargo).lines().last().expect("the replay line").to_owned();
    assert!(line.starts_with("cargo run -- replay cycle 1 "), "{line}");
}

#[test]
fn a_missed_bug_fails() {
    // On a calm cluster whose clients rarely collide, one seed does not reveal every bug.
    let output = run(&["bugs", "queue", "--faults", "calm", "--seeds", "1"]);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    assert!(stdout(&output).contains("MISSED") && stdout(&output).contains("not caught."));
}

#[test]
fn a_saved_plan_replays_like_its_seed() {
    let folder = folder("repro");
    let path = folder.join("small.json");
    let repro = path.to_str().expect("a plain path");
    let seed = run(&["replay", "index", "0x7", "--without", "kill,clog", "--output", repro]);
    let file = run(&["replay", repro]);
    assert_eq!(code(&seed), code(&file));
    assert_eq!(fact(&stdout(&seed), "event hash"), fact(&stdout(&file), "event hash"));
    assert_eq!(fact(&stdout(&file), "faults"), "  faults        standard without kill and clog");
    assert!(fact(&stdout(&file), "repro file").ends_with("small.json"));
    let half = fs::read_to_string(&path).expect("the plan");
    fs::write(&path, &half[..half.len() / 2]).expect("torn");
    let torn = run(&["replay", repro]);
    assert_eq!((code(&torn), stderr(&torn).lines().count()), (2, 1), "{}", stderr(&torn));
}

#[test]
fn a_failing_run_is_shrunk_to_a_repro_file_that_fails_alike() {
    let path = folder("shrunk").join("small.json");
    let small = path.to_str().expect("a plain path");
    let shrunk = run(&["shrink", "queue", "0", "--bug", "snapshot-dequeue", "--output", small]);
    let told = stdout(&shrunk);
    assert_eq!(code(&shrunk), 1, "{}", stderr(&shrunk));
    assert!(told.contains("nothing more can be taken away"), "{told}");
    let header = told.lines().find(|line| line.trim_start().starts_with("ms")).expect("the story");
    assert_eq!(header.matches("client").count(), 2, "{header}");
    let replayed = run(&["replay", small]);
    assert_eq!((code(&replayed), fact(&stdout(&replayed), "event hash")), (1, fact(&told, "event hash")));
    // It is as small as it can be.
    let again =
        run(&["shrink", small, "--output", path.with_extension("again").to_str().expect("a plain path")]);
    assert!(stdout(&again).contains("shrunk from 2 operations of 2 clients, 0 faults"), "{}", stdout(&again));
}

#[test]
fn an_impossible_repro_file_is_refused_in_one_line() {
    let path = folder("impossible").join("plan.json");
    let repro = path.to_str().expect("a plain path");
    assert_eq!(code(&run(&["replay", "cycle", "3", "--output", repro])), 0);
    let plan = fs::read_to_string(&path).expect("the plan");
    let rate = fact(&plan, "\"too-old\": ");
    let mut refusals = String::new();
    for (from, to) in [
        ("\"heartbeat\": 100000000", "\"heartbeat\": 0"),
        ("\"heartbeat\":", "\"hartbeat\": 1, \"heartbeat\":"),
        ("\"seed\":", "\"sead\": 1, \"seed\":"),
        ("\"configuration\": {", "\"configuration\": { \"klients\": 1,"),
        ("\"configuration\": {", "\"configuration\": { \"clients\": 1,"),
        ("\"operations\": [", "\"operations\": [[\"x\"], "),
        ("\"profile\": \"standard\"", "\"profile\": \"calm\""),
        ("\"profile\": \"standard\"", "\"profile\": \"standard\", \"without\": [\"too-old\"]"),
        ("\"profile\": \"standard\"", "\"profile\": \"standard\", \"bug\": \"none such\""),
        ("\"profile\": \"standard\"", "\"profile\": \"standard\", \"cluster_bug\": \"log-answers-early\""),
        (rate.as_str(), "\"too-old\": 1.5,"),
        ("\"replicas\": ", "\"replicas\": 9"),
        ("\"operations\": [", "\"operations\": [[], "),
    ] {
        let edited = plan.replacen(from, to, 1);
        assert!(edited != plan, "there is {from} in {plan}");
        fs::write(&path, edited).expect("written");
        let output = run(&["replay", repro]);
        assert_eq!((code(&output), stderr(&output).lines().count()), (2, 1), "{to}: {}", stderr(&output));
        refusals += &stderr(&output).replace(repro, "PLAN");
    }
    assert_eq!(code(&run(&["replay", "cycle", "3", "--bug", "snapshot-read", "--output", repro])), 1);
    let planted = fs::read_to_string(&path).expect("the plan");
    fs::write(&path, planted.replacen("\"bug\": \"snapshot-read\"", "\"without\": []", 1)).expect("written");
    refusals += &stderr(&run(&["replay", repro])).replace(repro, "PLAN");
    fs::write(&path, plan.replacen("\"demands\": {", "\"demands\": { \"bug\": \"snapshot-read\",", 1))
        .expect("written");
    refusals += &stderr(&run(&["replay", repro])).replace(repro, "PLAN");
    assert_snapshot!(refusals);
}

#[test]
fn a_trace_shows_operations_reads_writes_and_faults() {
    let output = run(&["replay", "cycle", "1", "--trace"]);
    let trace = stdout(&output);
    let begun = trace.lines().filter(|line| line.contains(" begins: ")).count();
    let ended =
        trace.lines().filter(|line| line.contains(" operation ") && line.contains(" returns ")).count();
    assert!(begun > 50 && ended > 40, "{begun} operations, {ended} returns");
    for expected in [
        "-- hurt --",
        " get \"cycle/",
        " set \"cycle/",
        "=> committed at version ",
        "=> failed: not_committed (1020)",
    ] {
        assert!(trace.contains(expected), "no {expected} in\n{trace}");
    }
    assert!(!trace.contains(" s  node "), "events of the cluster are for --trace=cluster");
}

#[test]
fn a_trace_of_the_cluster_has_all_hashed_events() {
    let output = run(&["replay", "cycle", "1", "--trace=cluster"]);
    let events = stdout(&output).lines().filter(|l| l.contains(" s  node ")).count();
    for client_event in [" operation 0 called", " operation 0 returned, answer "] {
        assert!(stdout(&output).contains(client_event), "no {client_event}");
    }
    let hash = fact(&stdout(&output), "event hash");
    let count: String =
        hash.split(" over ").nth(1).expect("how many").chars().filter(char::is_ascii_digit).collect();
    assert_eq!(count, events.to_string());
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

#[test]
fn lists_contain_everything_that_the_command_accepts() {
    let all = stdout(&run(&["list"]));
    let parts: String = ["workloads", "faults", "bugs"].map(|what| stdout(&run(&["list", what]))).join("\n");
    assert_eq!(all, parts);
    for entry in shaketable_workloads::catalogue::catalogue() {
        assert!(all.lines().any(|l| l.trim() == entry.name()), "{} is not listed", entry.name());
        for bug in entry.bugs() {
            assert!(all.contains(bug.name), "{} is not listed", bug.name);
        }
    }
    for family in shaketable_sim::faults::Family::ALL {
        assert!(all.contains(family.name()), "{} is not listed", family.name());
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let mut child =
        shaketable(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
}

/// Starts a command that would take days, signals it after it has started, and returns its output.
#[cfg(unix)]
fn signalled(signal: &str, arguments: &[&str], report: &Path) -> (Output, String) {
    let mut child = shaketable(arguments)
        .arg("--json")
        .arg(report)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = lines.next().expect("a first line").expect("readable");
    assert!(first.starts_with("0 of "), "{first}");
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let last = lines.map(|line| line.expect("readable")).last().expect("a last line");
    assert!(last.starts_with("shaketable: interrupted after "), "{last}");
    let output = child.wait_with_output().expect("it ends");
    (output, fs::read_to_string(report).expect("a report was written"))
}

#[cfg(unix)]
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

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_printed_is_an_error() {
    for arguments in [&["list"][..], &["run", "cycle", "--seeds", "1", "--faults", "calm"]] {
        let full = fs::File::options().write(true).open("/dev/full").expect("a device");
        let output = shaketable(arguments).stdout(full).stderr(Stdio::piped()).output().expect("it starts");
        assert_eq!(code(&output), 2, "{arguments:?}");
        let printed = stderr(&output);
        assert!(printed.lines().last().is_some_and(|line| line.contains("cannot print")), "{printed}");
    }
}

#[test]
fn help_is_a_command_too() {
    for (asked, also) in [(&["help"][..], &["--help"][..]), (&["help", "run"], &["run", "--help"])] {
        let output = run(asked);
        assert_eq!((code(&output), stdout(&output)), (0, stdout(&run(also))));
    }
}

#[test]
fn bugs_are_selected_by_workload_name_seeds_and_share() {
    let listed = stdout(&run(&["list", "bugs", "cycle"]));
    let at = |indent: &str| {
        let of_it = |line: &&str| line.starts_with(indent) && !line[indent.len()..].starts_with(' ');
        listed.lines().filter(of_it).map(str::trim).collect::<Vec<_>>()
    };
    let names = at("    ");
    assert!(names.contains(&"snapshot-read"), "{listed}");
    assert_eq!(at("  "), ["cycle"], "{listed}");

    let tried = |arguments: &[&str]| {
        let output = run(&[&["bugs", "cycle", "--json", "-"][..], arguments].concat());
        let document = shaketable_reports::json::parse(&stdout(&output)).expect("a report");
        let shaketable_reports::Body::Bugs(report) = document.body else { panic!("{document:?}") };
        report
    };
    let named = tried(&["--bug", "snapshot-read", "--seeds", "5..30"]);
    let [bug] = &named.bugs[..] else { panic!("{named:?}") };
    assert_eq!((bug.bug.as_str(), named.seeds.clone()), ("snapshot-read", 5..30));
    assert!(bug.caught.as_ref().is_some_and(|catch| (5..30).contains(&catch.seed)), "{bug:?}");
    let shares: Vec<String> = ["1/2", "2/2"]
        .iter()
        .flat_map(|share| tried(&["--shard", share, "--seeds", "1"]).bugs.into_iter().map(|bug| bug.bug))
        .collect();
    assert_eq!(shares.len(), names.len());
    assert!(names.iter().all(|name| shares.iter().any(|share| share == name)), "{shares:?}");
    let none = tried(&["--budget", "1ms", "--faults", "calm", "--seeds", "1000000000"]);
    assert_eq!(none.ending, shaketable_reports::Ending::Budget);
    assert_eq!(none.missed(), 0);
}

#[test]
fn advice_is_no_verdict() {
    let folder = folder("advise");
    let report = folder.join("advice.json").to_str().expect("a plain path").to_owned();
    let output = run(&["advise", "cycle", "--bug", "snapshot-read", "--seeds", "4", "--json", &report]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    let text = stdout(&output);
    assert!(text.starts_with("cycle with snapshot-read: 4 runs, "), "{text}");
    assert!(text.contains("\nGuidelines\n[1]  "), "{text}");
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(report).expect("written")).expect("JSON");
    assert_eq!(written["report"], "advice");
    assert_eq!(written["workloads"][0]["runs"], 4);
    let sources = written["workloads"][0]["entries"].as_array().expect("a list").iter();
    assert!(sources.clone().count() > 5, "{written}");
    assert!(
        sources.clone().all(|entry| entry["source"].as_str().is_some_and(|of| !of.is_empty())),
        "{written}"
    );
}

#[test]
fn an_exploration_finds_a_planted_bug_and_writes_its_plan() {
    let folder = folder("explore");
    let explored = |arguments: &[&str]| {
        let all = [&["explore", "cycle", "--seeds", "1", "--budget", "1s"][..], arguments].concat();
        shaketable(&all).current_dir(&folder).output().expect("the program starts")
    };
    let sound = explored(&[]);
    assert_eq!(code(&sound), 0, "{}", stdout(&sound));
    assert!(stdout(&sound).ends_with(" failed.\n"), "{}", stdout(&sound));
    let failed = explored(&["--bug", "snapshot-read"]);
    assert_eq!(code(&failed), 1, "{}", stdout(&failed));
    let plan = "target/shaketable/explore-cycle-0.json";
    assert!(stdout(&failed).contains(&format!(" replay {plan}\n")), "{}", stdout(&failed));
    let replayed = shaketable(&["replay", plan]).current_dir(&folder).output().expect("the program starts");
    assert_eq!(code(&replayed), 1, "{}", stdout(&replayed));
    let bugs = explored(&["--bugs", "--json", "-"]);
    assert_eq!(code(&bugs), 0, "{}", stdout(&bugs));
    let report: serde_json::Value = serde_json::from_slice(&bugs.stdout).expect("JSON");
    assert_eq!(report["report"], "explore");
    let found = report["workloads"].as_array().expect("a list").iter();
    let found = found.filter(|bug| bug["failures"].as_array().is_some_and(|failures| !failures.is_empty()));
    assert!(found.count() > 1, "{report}");
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

#[test]
fn what_is_printed_fits_a_terminal_of_80_columns() {
    for arguments in [
        &["list"][..],
        &["bugs", "cycle", "index", "--seeds", "1"],
        &["advise", "cycle", "index", "--seeds", "5"],
        &["explore", "cycle", "--seeds", "1", "--budget", "1s"],
        &["explore", "cycle", "--seeds", "1", "--budget", "1s", "--bugs"],
        &["run", "cycle", "index", "--seeds", "5"],
        &["replay", "index", "3"],
    ] {
        let output = stdout(&run(arguments));
        // Lines that are meant to be copied are not wrapped, and debug output has no spaces at which it could
        // be.
        let copied = |line: &&str| line.starts_with("shaketable replay") || line.contains(" { ");
        let wide: Vec<&str> =
            output.lines().filter(|line| line.chars().count() > 80 && !copied(line)).collect();
        assert!(wide.is_empty(), "{arguments:?}: {wide:#?}");
    }
}
