//! What CI uses of the command: new seeds, required points, JUnit, annotations and summaries.

use crate::{
    process::{code, folder, listens, names, run, shaketable, stderr, stdout},
    schema,
};
use shaketable_reports::{Body, Document, SweepReport, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Output, Stdio},
};

/// The text of a file.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The report of a sweep, without what it cost.
pub fn sweep(path: &Path) -> (SweepReport, String) {
    let Document { body: Body::Sweep(mut sweep), commit, .. } = json::parse(&read(path)).expect("a report")
    else {
        panic!("{} is not the report of a sweep", path.display())
    };
    sweep.cost = Default::default();
    sweep.jobs = 0;
    sweep.workloads.iter_mut().for_each(|workload| workload.cpu_ns = 0);
    (sweep, commit)
}

/// The last line of stderr, which is the error of a command.
fn error(output: &Output) -> String {
    stderr(output).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn fresh_seeds_belong_to_their_text_and_are_stated() {
    let swept = |text: &str| {
        let output =
            run(&["run", "cycle", "--bug", "snapshot-read", "--seeds", "12", "--fresh", text, "--json", "-"]);
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        let Body::Sweep(sweep) = json::parse(&stdout(&output)).expect("a report").body else {
            panic!("a sweep")
        };
        (sweep, stderr(&output))
    };
    let (one, printed) = swept("2026-11-23");
    let (again, _) = swept("2026-11-23");
    let (other, _) = swept("2026-11-24");
    assert_eq!(one.seeds, again.seeds);
    assert_eq!((one.seeds.end - one.seeds.start, one.fresh.as_deref()), (12, Some("2026-11-23")));
    assert!(one.seeds.end <= other.seeds.start || other.seeds.end <= one.seeds.start);
    let head = format!("seeds {}..{}, fresh from \"2026-11-23\"", one.seeds.start, one.seeds.end);
    assert!(printed.replace('\n', " ").contains(&head), "{printed}");
    let failure = one.failures().next().expect("a failure");
    assert!(one.seeds.contains(&failure.seed));
    let line = format!("shaketable replay cycle {} --faults standard --bug snapshot-read", failure.seed);
    assert_eq!(failure.replay, line);
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let replayed = run(&words);
    assert_eq!(code(&replayed), 1);
    assert!(stdout(&replayed).contains(failure.event_hash.as_ref().expect("it was simulated")));
    let summary = printed.split("\nFAILED cycle").next().expect("what precedes the failures");
    let wide = summary.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
}

#[test]
fn required_points_that_were_not_reached_are_named() {
    let arguments = ["run", "queue", "--seeds", "2", "--faults", "calm"];
    let without = run(&arguments);
    assert_eq!(code(&without), 0, "{}", stdout(&without));
    let missed: Vec<String> = stdout(&without)
        .lines()
        .filter_map(|line| line.strip_prefix("  queue: "))
        .map(str::to_owned)
        .collect();
    assert!(!missed.is_empty(), "a calm cluster reaches every point: {}", stdout(&without));
    let required = run(&[&arguments[..], &["--require-points"]].concat());
    assert_eq!(code(&required), 4, "{}", stdout(&required));
    let printed = stdout(&required);
    let verdict = &printed[printed.find("VACUOUS: ").expect("vacuous")..];
    for point in missed {
        assert!(verdict.contains(&format!("\n  queue never reached: {point}\n")), "{point}: {verdict}");
    }
}

#[test]
fn planted_bugs_are_test_cases() {
    let junit = folder("junit-bugs").join("junit.xml");
    let output = run(&["bugs", "cycle", "--junit", junit.to_str().expect("a plain path")]);
    assert_eq!(code(&output), 0, "{}", stdout(&output));
    let text = read(&junit);
    assert_eq!(schema::check(&text), Ok(()));
    assert!(text.contains("name=\"snapshot-read\"") && text.contains("shaketable replay cycle "), "{text}");
    let output =
        run(&["bugs", "cycle", "--bug", "snapshot-read", "--faults", "calm", "--seeds", "1", "--junit", "-"]);
    assert_eq!(schema::check(&stdout(&output)), Ok(()));
}

#[test]
fn reports_are_pages() {
    let folder = folder("pages");
    let bug = ["--bug", "snapshot-read"];
    let commands: [(&str, &[&str], &str); 4] = [
        ("run.html", &["run", "cycle", "--seeds", "10"], "<title>sweep · shaketable</title>"),
        ("replay.html", &["replay", "cycle", "3"], "<title>cycle, seed 3 · shaketable</title>"),
        (
            "shrink.html",
            &["shrink", "cycle", "3", "--replays", "1"],
            "<title>cycle, seed 3 · shaketable</title>",
        ),
        ("bugs.html", &["bugs", "cycle"], "<title>planted bugs · shaketable</title>"),
    ];
    for (name, arguments, title) in commands {
        let page = folder.join(name);
        let plan = folder.join("plan.json");
        let page_arguments = ["--html", page.to_str().expect("a plain path")];
        let plan_arguments = ["--output", plan.to_str().expect("a plain path")];
        let plan_arguments = if name == "shrink.html" { &plan_arguments[..] } else { &[] };
        let output = run(&[arguments, &bug, &page_arguments, plan_arguments].concat());
        let expected = if name == "bugs.html" { 0 } else { 1 };
        assert_eq!(code(&output), expected, "{name}: {}", stderr(&output));
        let text = read(&page);
        assert!(text.contains(title) && text.len() < 2_000_000, "{name}");
        assert!(
            stderr(&output).contains(&format!("HTML report in {}", page.display())),
            "{}",
            stderr(&output)
        );
    }
    // A page is written even if another form of the report is not.
    let page = folder.join("alone.html");
    let page_argument = page.to_str().expect("a plain path");
    if Path::new("/dev/full").exists() {
        let output = run(&[
            "run",
            "cycle",
            "--seeds",
            "1",
            "--faults",
            "calm",
            "--json",
            "/dev/full",
            "--html",
            page_argument,
        ]);
        assert!(error(&output).starts_with("shaketable: cannot write /dev/full"), "{}", stderr(&output));
        assert!(read(&page).ends_with("</html>"));
    }
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let folder = folder("github");
    let summary = folder.join("summary.md");
    fs::write(&summary, "before\n").expect("written");
    let on_github = |arguments: &[&str], summary: &Path| {
        let mut command = shaketable(arguments);
        command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", summary);
        command.output().expect("it starts")
    };
    let failing = ["run", "cycle", "--bug", "snapshot-read", "--seeds", "10"];
    let output = on_github(&failing, &summary);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let printed = stdout(&output);
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("::error ")).collect();
    assert!((1..=10).contains(&lines.len()), "{printed}");
    assert!(lines[0].starts_with("::error title=FAILED cycle%2C seed "), "{}", lines[0]);
    assert!(lines[0].contains("%0Areplay with%0Ashaketable replay cycle "), "{}", lines[0]);
    let text = read(&summary);
    assert!(text.starts_with("before\n## shaketable: FAILED: of 10 runs, "), "{text}");
    assert!(text.contains("\n| cycle | 10 | ") && text.contains("shaketable replay cycle "), "{text}");
    assert!(!stdout(&run(&failing)).contains("::error"));

    let passing = ["run", "cycle", "--seeds", "2", "--faults", "calm"];
    assert!(!stdout(&on_github(&passing, &summary)).contains("::error"));
    // A summary that cannot be written is an error, after everything else.
    let output = on_github(&passing, &folder);
    assert_eq!(code(&output), 2);
    assert!(stdout(&output).contains("PASSED: "), "{}", stdout(&output));
    assert!(error(&output).starts_with("shaketable: cannot write "), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_sweep_whose_report_becomes_unwritable_ends_with_what_it_knows() {
    let folder = folder("unwritable");
    for (name, arguments) in [
        ("run", &["run", "cycle", "--seeds", "1000000000", "--jobs", "1"][..]),
        (
            "bugs",
            &[
                "bugs",
                "cluster",
                "--bug",
                "recovery-forgets-commit",
                "--faults",
                "calm",
                "--seeds",
                "1000000000",
            ],
        ),
    ] {
        let place = folder.join(name);
        fs::create_dir(&place).expect("created");
        let mut command = shaketable(arguments);
        // Without the watch, the budget ends the sweep, and says so.
        command.args(["--budget", "60s"]);
        command.arg("--json").arg(place.join("report.json")).arg("--junit").arg(folder.join("junit.xml"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        listens(&child);
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        fs::remove_dir_all(&place).expect("removed");
        let last = lines.map(|line| line.expect("readable")).last().expect("a last line");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(code(&output), 2, "{last}");
        assert!(last.starts_with("shaketable: cannot write "), "{last}");
        let printed = stdout(&output);
        let known = ["what is known\nso far", "what is known so far"];
        assert!(known.iter().any(|known| printed.contains(known)), "{printed}");
        assert!(!place.exists(), "nothing is written");
        // What can be written is, as a whole.
        assert_eq!(names(&folder), ["junit.xml"]);
        assert_eq!(schema::check(&read(&folder.join("junit.xml"))), Ok(()));
    }
}
