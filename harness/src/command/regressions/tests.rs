//! Tests with workloads that need no cluster.

use super::*;
use crate::{
    command::{
        Command, Nothing,
        fake::fake,
        interrupt::Interrupt,
        parse,
        resume::{Earlier, Ran},
        run::RunArguments,
        sweep::Sweep,
    },
    judge::finding::Verdict,
    run::plan::Demands,
};
use shaketable_reports::{SweepReport, text};
use shaketable_sim::seed::Seed;
use std::fs;

/// Two workloads, of which seeds from 5 on fail, and seeds from 8 on by the harness's fault.
fn entries() -> Vec<Box<dyn Entry>> {
    let ends = |seed: u64, _: &Demands| match seed {
        0..5 => Verdict::Passed,
        5..8 => Verdict::Violated,
        _ => Verdict::Harness,
    };
    vec![fake("one", ends), fake("two", ends)]
}

/// The text of a regression: the plan of a seed, changed.
fn plan(workload: usize, seed: u64, change: impl Fn(&str) -> String) -> String {
    let kept = Kept::parse(entries()[workload].plan(Seed(seed), &Demands::default())).expect("a plan");
    let once =
        Regression { judge: Some("model".into()), message: "it was lost".into(), ..Regression::default() };
    change(&kept.with(&once))
}

/// An empty folder of regressions with these files.
fn folder(name: &str, files: &[(&str, String)]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("shaketable-regressions-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    for (file, text) in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, text).expect("written");
    }
    folder
}

fn arguments(words: &[&str]) -> RunArguments {
    let line = [&["shaketable", "run"], words].concat();
    match parse::<Nothing, _>(line).expect("a command line").command {
        Some(Command::Run(arguments)) => arguments,
        other => panic!("{other:?}"),
    }
}

fn sweep(shard: Option<(u64, u64)>) -> Sweep {
    Sweep { shard, jobs: 2, ..Sweep::plain(entries(), 0..4) }
}

fn swept(mut sweep: Sweep, words: &[&str]) -> SweepReport {
    sweep.regressions = Regressions::choose(&sweep, &arguments(words)).expect("a folder");
    sweep.perform(&Interrupt::default())
}

fn same(text: &str) -> String {
    text.to_owned()
}

/// How each regression of a workload ended, by file.
fn results(report: &SweepReport, workload: usize) -> Vec<(String, String)> {
    let result = |one: &RegressionReport| match &one.replayed {
        Replayed::Passed { .. } => "passed".to_owned(),
        Replayed::Failed { run } => run.verdict.judge().expect("a judge").to_owned(),
        Replayed::Unreadable { why, .. } => why.clone(),
    };
    let name = |one: &RegressionReport| one.file.rsplit('/').next().expect("a name").to_owned();
    report.workloads[workload].regressions.iter().map(|one| (name(one), result(one))).collect()
}

#[test]
fn a_regression_that_fails_again_fails_the_sweep() {
    for (seed, outcome) in [(3, Conclusion::Passed), (5, Conclusion::Violated), (8, Conclusion::Harness)] {
        let folder =
            folder("outcome", &[("two/a.json", plan(1, seed, same)), ("one/b.json", plan(0, 1, same))]);
        let report = swept(sweep(None), &["--regressions", folder.to_str().expect("plain")]);
        assert_eq!(report.outcome, outcome, "seed {seed}");
        assert_eq!((report.runs(), report.total().failed()), (8, 0), "regressions are not among the runs");
        assert_eq!(results(&report, 0), [("b.json".to_owned(), "passed".to_owned())]);
        let one = &report.workloads[1].regressions[0];
        assert_eq!(one.regression.as_ref().expect("what it broke").what(), "model: it was lost");
        let Some(run) = one.failure() else {
            assert_eq!(seed, 3);
            continue;
        };
        let printed = text::sweep(&report, "a");
        assert!(run.replay.ends_with(&format!("replay {}", one.file)), "{}", run.replay);
        for part in
            [&one.file, "it once broke: model: it was lost", &format!("seed {seed} is bad"), &run.replay]
        {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn what_cannot_be_replayed_is_named_and_fails_only_if_asked() {
    let folder = folder(
        "unreadable",
        &[
            ("one/b-gone.json", plan(0, 1, |text| text.replace("Read", "Gone"))),
            ("one/c-version.json", plan(0, 1, |text| text.replace("\"schema\": 3", "\"schema\": 1"))),
            ("one/e-good.json", plan(0, 1, same)),
            ("one/notes.txt", "not one".to_owned()),
            ("one/folder.json/x", "not one".to_owned()),
            ("one/.hidden", "not one".to_owned()),
            ("three/a.json", plan(0, 5, same)),
            ("README.md", "not one".to_owned()),
        ],
    );
    let words = ["--regressions", folder.to_str().expect("plain"), "--strict-regressions"];
    let report = swept(sweep(None), &words[..2]);
    assert_eq!(report.outcome, Conclusion::Passed);
    let found = results(&report, 0);
    let reasons = ["not a complete repro file", "schema version 1", "passed"];
    assert_eq!(found.len(), reasons.len(), "{found:?}");
    for ((name, why), expected) in found.iter().zip(reasons) {
        assert!(why.starts_with(expected) && !why.contains('\n'), "{name}: {why}");
        assert!(text::sweep(&report, "a").contains(name) || expected == "passed", "{name}");
    }
    assert!(found[0].1.contains("unknown variant `Gone`"), "{}", found[0].1);
    let gone = report.workloads[0].regressions[0].regression.as_ref();
    assert_eq!(gone.expect("what it broke").message, "it was lost", "its plan is read as far as possible");

    let strict = swept(sweep(None), &words);
    assert_eq!(strict.outcome, Conclusion::Violated);
    assert!(text::sweep(&strict, "a").contains("Of 3 regressions, 2 cannot be replayed."));
    fs::remove_dir_all(folder).expect("removed");
}

/// What was kept is lost: neither a sweep nor a check passes over it.
#[test]
fn a_damaged_file_is_refused() {
    for (file, damaged) in [
        ("torn.json", plan(0, 1, |text| text[..40].to_owned()).into_bytes()),
        ("empty.json", Vec::new()),
        ("binary.json", vec![0xff, 0, 0xfe]),
        ("list.json", b"[1]".to_vec()),
        ("report.json", br#"{"schema": 3, "report": "sweep"}"#.to_vec()),
    ] {
        let folder = folder("damaged", &[("one/good.json", plan(0, 1, same))]);
        let path = folder.join("one").join(file);
        fs::write(&path, damaged).expect("written");
        let words = ["--regressions", folder.to_str().expect("plain")];
        let refused = Regressions::choose(&sweep(None), &arguments(&words)).err().expect("it is refused");
        let said = format!("the regression {} is damaged: ", path.display());
        assert!(refused.to_string().starts_with(&said), "{refused}");
        assert!(!refused.to_string().contains('\n'), "{refused}");
        fs::remove_dir_all(folder).expect("removed");
    }
    let both = [("one/a.json", String::new()), ("two/a.json", "{".to_owned())];
    let folder = folder("damaged", &both);
    let words = ["--regressions", folder.to_str().expect("plain")];
    let refused = Regressions::choose(&sweep(None), &arguments(&words)).err().expect("it is refused");
    assert!(refused.to_string().ends_with("; so is 1 other"), "{refused}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_first_shard_replays_all_of_them() {
    let folder = folder("shards", &[("one/a.json", plan(0, 1, same)), ("two/a.json", plan(1, 5, same))]);
    let words = ["--regressions", folder.to_str().expect("plain")];
    let count = |shard| swept(sweep(Some(shard)), &words).regressions().len();
    assert_eq!([(1, 3), (2, 3), (3, 3)].map(count), [2, 0, 0]);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_sweep_that_is_continued_replays_those_that_were_not() {
    let folder = folder(
        "resume",
        &[
            ("one/a.json", plan(0, 1, same)),
            ("one/b.json", plan(0, 5, same)),
            ("one/c.json", plan(0, 2, same)),
        ],
    );
    let words = ["--regressions", folder.to_str().expect("plain")];
    let whole = swept(sweep(None), &words);
    let mut report = whole.clone();
    // The middle one was not replayed; the others must not be replayed again.
    report.workloads[0].regressions.remove(1);
    fs::write(folder.join("one/a.json"), plan(0, 6, same)).expect("written");
    let all = || {
        let mut ran = Ran::default();
        (0..4).for_each(|place| ran.insert(place));
        ran
    };
    let earlier = Earlier { workloads: vec![all(), all()], report };
    let resumed = swept(Sweep { earlier: Some(earlier), ..sweep(None) }, &[]);
    assert_eq!(resumed.workloads, whole.workloads);
    assert_eq!((resumed.outcome, &resumed.regressions), (Conclusion::Violated, &whole.regressions));

    // An earlier part without regressions stays without.
    let earlier =
        Earlier { workloads: vec![all(), all()], report: swept(sweep(None), &["--no-regressions"]) };
    let resumed = swept(Sweep { earlier: Some(earlier), ..sweep(None) }, &[]);
    assert_eq!((resumed.regressions().len(), resumed.regressions), (0, None));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_sweep_with_a_planted_bug_or_without_a_folder_replays_none() {
    let folder = folder("none", &[("one/a.json", plan(0, 5, same))]);
    let named = folder.to_str().expect("plain");
    assert_eq!(swept(sweep(None), &["--regressions", named]).outcome, Conclusion::Violated);
    assert_eq!(swept(sweep(None), &["--no-regressions"]).outcome, Conclusion::Passed);
    let planted = |words: &[&str]| {
        let demands = Demands { bug: Some("early".to_owned()), ..Demands::default() };
        Regressions::choose(&Sweep { demands, ..sweep(None) }, &arguments(words)).map(|found| found.folder)
    };
    // That the folder is there makes no difference.
    assert_eq!(planted(&["--regressions", named]), Ok(None));
    let file = folder.join("one/a.json");
    for missing in [folder.join("missing"), file] {
        let words = ["--regressions", missing.to_str().expect("plain")];
        let refused = Regressions::choose(&sweep(None), &arguments(&words)).err().expect("refused");
        assert_eq!(refused.to_string().lines().count(), 1);
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn an_interrupt_leaves_regressions_out() {
    let folder = folder("interrupt", &[("one/a.json", plan(0, 5, same))]);
    let mut sweep = sweep(None);
    let words = ["--regressions", folder.to_str().expect("plain")];
    sweep.regressions = Regressions::choose(&sweep, &arguments(&words)).expect("a folder");
    let report = sweep.perform(&Interrupt::already());
    assert_eq!((report.regressions().len(), report.outcome), (0, Conclusion::Interrupted));
    fs::remove_dir_all(folder).expect("removed");
}
