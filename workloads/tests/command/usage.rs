//! What the command accepts, prints and refuses.

use crate::process::{code, folder, names, run, shaketable, stderr, stdout};
use insta::assert_snapshot;
use std::{fs, process::Stdio};

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
        ("help_completions", &["completions", "--help"]),
        ("help_man", &["man", "--help"]),
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
    let torn = file("torn.json", "{\"schema\": 3, \"workload\": \"cycle\", \"se");
    let half = file("half.json", "{\"schema\": 3, \"workload\": \"cycle\", \"seed\": 5}");
    let other_schema = file("schema.json", "{\"schema\": 99, \"workload\": \"cycle\"}");
    let other_workload = file("workload.json", "{\"schema\": 3, \"workload\": \"cyclone\"}");
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
        &["run", "--seeds", "-3"],
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
        &["run", "--scale", "0"],
        &["run", "--seed", "3"],
        &["run", "cycle", "--seeds", "1", "--json", place],
        &["run", "cycle", "--seeds", "1", "--json", &missing],
        &["run", "cycle", "--seeds", "1", "--json", ""],
        &["run", "--keep"],
        &["run", "--fresh", ""],
        &["run", "--fresh", "x", "--seeds", "0..0xffffffffffffffff"],
        &["run", "--fresh", "x", "--resume", &missing],
        &["run", "--scale", "2", "--resume", &missing],
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
        &["bench", "cylce"],
        &["bench", "cycle", "--rounds", "2"],
        &["bench", "cycle", "--against", &missing],
        &["completions", "cmd"],
        &["man", &missing],
        &["conformance", "record", "--out", recordings, "--cases", "0"],
        &["replay"],
        &["replay", "cycle"],
        &["replay", "cylce"],
        &["replay", "cycle", "x"],
        &["replay", "cycle", "-3"],
        &["replay", "cylce", "5"],
        &["replay", "cycle", "5", "--bug", "snapshot-raed"],
        &["replay", "cycle", "5", "--output", &missing],
        &["replay", "missing.json"],
        &["replay", place],
        &["replay", &torn],
        &["replay", &half],
        &["replay", &other_schema],
        &["replay", &half, "--faults", "storm"],
        &["replay", &half, "--scale", "2"],
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
        &["bugs", "cycle", "--first", "cycle/snapshot-raed=1"],
        &["bugs", "--first", "cycle=1"],
        &["bugs", "--first", "cycle/snapshot-read=x"],
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
fn an_installed_command_has_completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let printed = run(&["completions", shell]);
        assert_eq!(code(&printed), 0, "{}", stderr(&printed));
        let script = stdout(&printed);
        assert!(script.contains("shaketable") && script.contains("check-determinism"), "{shell}: {script}");
    }
    let folder = folder("man");
    let written = run(&["man", folder.to_str().expect("a plain path")]);
    assert_eq!((code(&written), stdout(&written), stderr(&written)), (0, String::new(), String::new()));
    let pages = names(&folder);
    for page in ["shaketable.1", "shaketable-run.1", "shaketable-conformance-check.1"] {
        assert!(pages.iter().any(|name| name == page), "{pages:?}");
    }
    let page = fs::read_to_string(folder.join("shaketable-run.1")).expect("a page");
    assert!(page.contains(".TH shaketable-run 1"), "{page}");
    assert!(page.contains("\\-\\-check\\-determinism"), "{page}");
}

#[test]
fn what_is_printed_fits_a_terminal_of_80_columns() {
    for arguments in [
        &["list"][..],
        // Names as long as there are.
        &["bugs", "cycle", "leased_queue", "--seeds", "1"],
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
