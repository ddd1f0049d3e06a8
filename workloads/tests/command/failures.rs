//! One failure: found, told, replayed, traced, shrunk and kept as a plan.

use crate::process::{code, folder, run, shaketable, stderr, stdout};
use insta::assert_snapshot;
use std::{fs, process::Command};

/// The line that starts with `name`.
pub fn fact(text: &str, name: &str) -> String {
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

#[cfg(unix)]
#[test]
fn a_replay_line_works_where_it_is_printed() {
    let folder = folder("started");
    let copy = folder.join("my shaketable");
    fs::copy(env!("CARGO_BIN_EXE_shaketable"), &copy).expect("a copy");
    // The book's first failure.
    let arguments = ["replay", "cycle", "1", "--bug", "snapshot-read"];
    assert!(include_str!("../../../docs/src/failures.md").contains(&arguments.join(" ")));
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
fn a_longer_run_is_replayed_as_long_as_it_was() {
    let path = folder("longer").join("long.json");
    let repro = path.to_str().expect("a plain path");
    let planted = ["cycle", "1", "--bug", "snapshot-read"];
    let seed = run(&[&["replay", "--scale", "3", "--output", repro], &planted[..]].concat());
    let told = stdout(&seed);
    assert_eq!(fact(&told, "scale"), "  scale         3");
    let line = told.lines().last().expect("the replay line");
    assert_eq!(line, "shaketable replay cycle 1 --faults standard --scale 3 --bug snapshot-read");
    assert_eq!(fact(&stdout(&run(&["replay", repro])), "event hash"), fact(&told, "event hash"));
    let usual = stdout(&run(&[&["replay"], &planted[..]].concat()));
    assert_ne!(fact(&usual, "event hash"), fact(&told, "event hash"));
    assert!(!usual.contains("scale"));
    let sweep = run(&["run", "cycle", "--seeds", "1", "--scale", "3"]);
    assert!(stdout(&sweep).contains("scale 3"), "{sweep:?}");
}

#[test]
fn a_failing_run_is_shrunk_to_a_repro_file_that_fails_alike() {
    let path = folder("shrunk").join("small.json");
    let small = path.to_str().expect("a plain path");
    let shrunk = run(&["shrink", "queue", "1", "--bug", "snapshot-dequeue", "--output", small]);
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
fn shrink_tells_when_a_failure_became_certain() {
    let folder = folder("when");
    let (plan, report) = (folder.join("small.json"), folder.join("report.json"));
    let [small, json] = [&plan, &report].map(|path| path.to_str().expect("a plain path"));
    let options = ["--when", "--shrink-budget", "1h", "--json", json, "--output", small];
    let seed = run(&[&["shrink", "queue", "1", "--bug", "dequeue-as-printed"], &options[..]].concat());
    assert_eq!(code(&seed), 1, "{}", stderr(&seed));
    let told = |text: String| -> String {
        let from = text.lines().skip_while(|line| !line.contains("fail with other chance"));
        from.take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
    };
    let certain = told(stdout(&seed));
    assert_snapshot!(certain);
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&report).expect("a report")).expect("JSON");
    let when = &report["shrunk"]["when"];
    let moments = when["moments"].as_array().expect("moments");
    assert_eq!((when["runs"].as_u64(), moments[0]["at"].as_u64()), (Some(25), Some(0)));
    let failed: Vec<u64> = moments.iter().filter_map(|moment| moment["failed"].as_u64()).collect();
    assert!(failed[0] < 10 && failed.last() == Some(&25), "{failed:?}");
    // The plan that was written gives the same, with any number of threads.
    let again = folder.join("again.json");
    let options = ["--when", "--shrink-budget", "1h", "--jobs", "1", "--output"];
    let file = run(&[&["shrink", small], &options[..], &[again.to_str().expect("a plain path")]].concat());
    assert_eq!(told(stdout(&file)), certain, "{}", stderr(&file));
    let refused = run(&["shrink", "queue", "3", "--jobs", "2"]);
    assert_eq!((code(&refused), stderr(&refused).lines().count()), (2, 1), "{}", stderr(&refused));
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
        " sets node 40 = 0\n",
        " reads node 4 = 5 [setup]\n",
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
    // A first seed is tried before the others.
    let first = "cycle/snapshot-read=7,queue/interleaved=2";
    let bug = tried(&["--bug", "snapshot-read", "--first", first]).bugs.remove(0);
    assert_eq!((bug.runs, bug.caught.map(|catch| catch.seed)), (1, Some(7)));
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
