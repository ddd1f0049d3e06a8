//! The scripts of the workflow and of the Kubernetes manifest, run as they are written, and the files around
//! them.

use crate::{
    process::{code, folder, shaketable, stderr, stdout},
    reports::{read, sweep},
    schema,
};
use serde_yaml_ng::Value;
use shaketable_reports::{Ending, FailureList};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_owned()
}

/// The documents of a YAML file.
fn yaml(path: &str) -> Vec<Value> {
    let text = read(&root().join(path));
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents.map(|document| serde::Deserialize::deserialize(document).expect("YAML")).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => panic!("no text: {other:?}"),
    }
}

/// The steps of a job of a workflow.
fn steps(workflow: &str, job: &str) -> Vec<Value> {
    let [workflow] = &yaml(&format!(".github/workflows/{workflow}.yml"))[..] else { panic!("one document") };
    workflow["jobs"][job]["steps"].as_sequence().expect("steps").clone()
}

/// The step with this identifier: its script and the names of its variables.
fn script(workflow: &str, job: &str, id: &str) -> (String, Vec<String>) {
    let step = steps(workflow, job).into_iter().find(|step| step["id"] == id).expect("the step");
    let variables = step["env"].as_mapping().map(|variables| variables.keys().map(text).collect());
    (text(&step["run"]), variables.unwrap_or_default())
}

/// Runs a script of the workflow as GitHub's runner does.
fn run_script(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(folder);
    command
        .env_remove("CARGO")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", folder.join("step.md"));
    command.envs(variables.iter().copied()).output().expect("bash")
}

#[test]
fn workflows_refer_to_jobs_and_files_that_exist() {
    let mut scripts = 0;
    for name in ["ci", "fdb", "release", "shake", "sweeps"] {
        let [workflow] = &yaml(&format!(".github/workflows/{name}.yml"))[..] else { panic!("one document") };
        let jobs = workflow["jobs"].as_mapping().expect("jobs");
        for (job, content) in jobs {
            let needs = match &content["needs"] {
                Value::Sequence(needs) => needs.iter().map(text).collect(),
                Value::Null => Vec::new(),
                one => vec![text(one)],
            };
            for needed in needs {
                assert!(jobs.contains_key(needed.as_str()), "{name}: {job:?} needs {needed}");
            }
            if let Some(local) = content["uses"].as_str() {
                assert!(root().join(local).is_file(), "{name} uses {local}");
            }
            for step in content["steps"].as_sequence().into_iter().flatten() {
                let Some(script) = step["run"].as_str() else { continue };
                let checked = Command::new("bash").args(["-n", "-c", script]).output().expect("bash");
                assert!(checked.status.success(), "{name}: {}", stderr(&checked));
                scripts += 1;
            }
        }
    }
    assert!(scripts > 10, "{scripts} scripts");
}

#[cfg(unix)]
#[test]
fn the_scripts_of_the_workflow_shake_and_merge() {
    let folder = folder("workflow");
    fs::copy(env!("CARGO_BIN_EXE_shaketable"), folder.join("shaketable")).expect("a copy");
    let (fixed, variables) = script("shake", "fixed", "sweep");
    assert_eq!(variables, ["SEEDS"]);
    let mut add = shaketable(&["regressions", "add", "cycle", "3", "--passing"]);
    assert_eq!(code(&add.current_dir(&folder).output().expect("it starts")), 0);
    let output = run_script(&fixed, &folder, &[("ARGUMENTS", "cycle queue"), ("SEEDS", "0..12")]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let (fixed, _) = sweep(&folder.join("report.json"));
    assert_eq!((fixed.runs(), fixed.regressions().len()), (24, 1), "the usual folder is used");
    assert_eq!(schema::check(&read(&folder.join("junit.xml"))), Ok(()));

    let (shard, variables) = script("shake", "shards", "sweep");
    assert_eq!(variables, ["SEEDS", "FRESH", "SHARD"]);
    let [workflow] = &yaml(".github/workflows/shake.yml")[..] else { panic!("one document") };
    let numbers =
        workflow["jobs"]["shards"]["strategy"]["matrix"]["shard"].as_sequence().expect("shards").clone();
    let (merging, variables) = script("shake", "merge", "merge");
    assert!(variables.is_empty());
    let (listing, variables) = script("shake", "merge", "failures");
    assert!(variables.is_empty());
    // A merge that was refused leaves no report, and so nothing for the list.
    fs::remove_file(folder.join("report.json")).expect("removed");
    assert_eq!(code(&run_script(&listing, &folder, &[])), 0);
    assert!(!folder.join("failures.json").exists());
    for (arguments, seeds, exit) in [("cycle --bug snapshot-read", "80", 1), ("queue --faults calm", "16", 4)]
    {
        for number in &numbers {
            let variables =
                [("ARGUMENTS", arguments), ("SEEDS", seeds), ("FRESH", "o/r 17"), ("SHARD", &text(number))];
            let output = run_script(&shard, &folder, &variables);
            assert_eq!(code(&output), 0, "whatever it found: {}", stderr(&output));
        }
        let output = run_script(&merging, &folder, &[]);
        let printed = stdout(&output);
        // A calm cluster does not reach all points, which only the merge requires.
        assert_eq!(code(&output), exit, "{printed}");
        assert!(printed.contains("\n::error title="), "{printed}");
        let (merged, _) = sweep(&folder.join("report.json"));
        let listed = run_script(&listing, &folder, &[]);
        assert_eq!(code(&listed), 0, "{}", stderr(&listed));
        let list = FailureList::parse(&read(&folder.join("failures.json"))).expect("a list");
        // The second night finds nothing, and keeps what the first one found.
        let failing = merged.failures().map(|failure| failure.seed);
        if exit == 1 {
            assert_eq!(
                list.failures.iter().map(|entry| entry.seed).collect::<Vec<_>>(),
                failing.collect::<Vec<_>>()
            );
        }
        assert!(!list.failures.is_empty());
        assert_eq!(
            (merged.runs().to_string().as_str(), merged.shard, merged.ending),
            (seeds, None, Ending::Complete)
        );
        assert_eq!(merged.fresh.as_deref(), Some("o/r 17"));
        assert!(read(&folder.join("summary.md")).starts_with("## shaketable: "));
        assert!(read(&folder.join("step.md")).ends_with(&read(&folder.join("summary.md"))));
        fs::remove_file(folder.join("summary.md")).expect("removed");
    }
    // A shard without a report fails, and the merge names it.
    let refused = run_script(
        &shard,
        &folder,
        &[("ARGUMENTS", "cylce"), ("SEEDS", "9"), ("FRESH", "x"), ("SHARD", "1")],
    );
    assert_eq!(code(&refused), 2);
    fs::remove_file(folder.join("shard-6.json")).expect("removed");
    let output = run_script(&merging, &folder, &[]);
    assert_eq!(code(&output), 2);
    assert!(read(&folder.join("summary.md")).contains("shard 6 of 8 is missing"));
}

#[test]
fn a_release_has_the_files_of_all_machines_and_the_version_of_its_tag() {
    let (version, variables) = script("release", "crates", "version");
    assert_eq!(variables, ["TAG"]);
    let tag = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(code(&run_script(&version, &root(), &[("TAG", tag)])), 0);
    let refused = run_script(&version, &root(), &[("TAG", "v99.0.0")]);
    assert_eq!((code(&refused), stdout(&refused).lines().count()), (1, 1));

    let folder = folder("release");
    let sums = |file: &str, text: &str| {
        let place = folder.join(format!("dist-{file}"));
        fs::create_dir_all(&place).expect("created");
        fs::write(place.join(file), text).expect("written");
        let sum = Command::new("sha256sum").arg(file).current_dir(&place).output().expect("it starts");
        fs::write(place.join("SHA256SUMS"), &sum.stdout).expect("written");
        stdout(&sum)
    };
    let (gather, _) = script("release", "release", "gather");
    let [one, other] = ["a.whl", "b.whl"].map(|file| sums(file, file));
    let gathered = run_script(&gather, &folder, &[]);
    assert_eq!(code(&gathered), 0, "{}", stderr(&gathered));
    assert_eq!(read(&folder.join("dist/SHA256SUMS")), format!("{one}{other}"));
    assert_eq!(read(&folder.join("dist/b.whl")), "b.whl");
    // A file that came otherwise than it was made is not released.
    fs::remove_dir_all(folder.join("dist")).expect("removed");
    sums("a.whl", "a.whl");
    fs::write(folder.join("dist-a.whl/a.whl"), "changed").expect("written");
    assert_eq!(code(&run_script(&gather, &folder, &[])), 1);
}

#[cfg(unix)]
#[test]
fn the_kubernetes_manifest_shakes_and_merges() {
    use std::os::unix::process::CommandExt;
    let folder = folder("kubernetes");
    // What the manifest calls, with two workloads in place of all. A shell writes it: a file that this
    // process had open for writing could not be started while another test starts a program.
    let write = "printf '#!/bin/sh\ncase $1 in run) shift; set -- run cycle queue \"$@\" ;; esac\nexec \"%s\" \"$@\"\n' \"$1\" >shaketable; chmod +x shaketable";
    let mut shell = Command::new("sh");
    shell.args(["-ec", write, "sh", env!("CARGO_BIN_EXE_shaketable")]).current_dir(&folder);
    assert!(shell.status().expect("a shell").success());
    let documents = yaml("scripts/k8s-sweep.yaml");
    let [claim, sweep_job, merge_job] = &documents[..] else { panic!("three documents") };
    let name = |document: &Value| (text(&document["kind"]), text(&document["metadata"]["name"]));
    assert_eq!(name(claim).0, "PersistentVolumeClaim");
    assert_eq!(text(&sweep_job["spec"]["completionMode"]), "Indexed");
    let shards = text(&sweep_job["spec"]["completions"]);
    assert_eq!(shards, "8");
    assert_eq!(text(&sweep_job["spec"]["parallelism"]), shards);
    let reports = folder.join("reports");
    fs::create_dir(&reports).expect("created");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let start = |job: &Value, changed: &[(&str, &str)]| {
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(text(&pod["volumes"][0]["persistentVolumeClaim"]["claimName"]), name(claim).1);
        let container = &pod["containers"][0];
        let line: Vec<String> =
            container["command"].as_sequence().expect("a command").iter().map(text).collect();
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .env("PATH", &path)
            .env_remove("GITHUB_ACTIONS")
            .env_remove("GITHUB_STEP_SUMMARY");
        for variable in container["env"].as_sequence().expect("variables") {
            let (name, value) = (text(&variable["name"]), text(&variable["value"]));
            if name == "SHARDS" {
                assert_eq!(value, shards);
            }
            command.env(name, value);
        }
        command.env("REPORTS", &reports).envs(changed.iter().copied());
        // A pod of its own: what kills it kills what it has started.
        command.process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
    };
    // The merge may be started before the shards.
    let merging = start(merge_job, &[("WAIT", "0.1")]);
    let shard = |index: u64| {
        let index = index.to_string();
        start(sweep_job, &[("SEEDS", "80"), ("JOB_COMPLETION_INDEX", &index)])
    };
    let run = |index| {
        let output = shard(index).wait_with_output().expect("it ends");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    };
    run(0);
    // A pod that is killed leaves no report. Kubernetes starts it again; what is missing in the end is named.
    let killed = shard(2);
    let group = format!("-{}", killed.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().expect("a program").success());
    assert!(!killed.wait_with_output().expect("it ends").status.success());
    (3..8).for_each(run);
    let given_up = start(merge_job, &[("LONGEST", "0")]).wait_with_output().expect("it ends");
    assert_eq!(code(&given_up), 2);
    assert!(stderr(&given_up).ends_with("shards 2 and 3 of 8 are missing\n"), "{}", stderr(&given_up));
    (1..3).for_each(run);
    let output = merging.wait_with_output().expect("it ends");
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let (merged, _) = sweep(&reports.join("FRESH_TEXT/report.json"));
    assert_eq!((merged.seeds.end - merged.seeds.start, merged.shard, merged.runs()), (80, None, 160));
}

/// What `scripts/fold` makes of the stacks of `perf script`.
fn folded(stacks: &str) -> Output {
    let fold = Command::new(root().join("scripts/fold"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut fold = fold.expect("python3");
    fold.stdin.take().expect("a pipe").write_all(stacks.as_bytes()).expect("it reads");
    fold.wait_with_output().expect("it ends")
}

#[test]
fn a_profile_has_the_time_of_phases_and_functions() {
    let sample = |milliseconds: u32, functions: &[&str]| {
        let frame = |function: &&str| format!("\t   7f12 {function}::h0123456789abcdef\n");
        format!("{}000000 \n{}\n", milliseconds, functions.iter().map(frame).collect::<String>())
    };
    let executor = "shaketable_sim::rt::simulate::block_on";
    let [set_up, judge] =
        ["set_up_poll", "judge_poll"].map(|f| format!("shaketable::run::runner::phase::{f}"));
    let queue = [
        sample(5, &["mi_malloc", "shaketable::run::plan::Plan::draw", "[unknown]"]),
        sample(20, &["shaketable_sim::resolver::resolve", executor, "shaketable_sim::rt::simulate"]),
        // A judge is a task of the simulation, too.
        sample(10, &["mi_malloc", &judge, executor]),
        sample(1, &["shaketable_sim::rt::tear_down"]),
    ];
    let cycle = [
        // Not called by that function: named after it.
        sample(2, &[&format!("core::ptr::drop_in_place<{judge}>")]),
        sample(2, &[&set_up, executor]),
    ];
    let stacks = format!("workload queue 4\n{}workload cycle 2\n{}", queue.concat(), cycle.concat());
    let output = folded(&stacks);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let lines: Vec<Vec<String>> =
        stdout(&output).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    let line = |at: usize| lines[at].join(" ");
    assert_eq!(line(1), "queue 4 9.00 13.9% 0.0% 55.6% 27.8% 2.8% 0.0%");
    assert_eq!(line(2), "cycle 2 2.00 0.0% 50.0% 0.0% 0.0% 0.0% 50.0%");
    assert_eq!(line(3), "all 6 6.67 12.5% 5.0% 50.0% 25.0% 2.5% 5.0%");
    assert_eq!(line(6), "50.0% simulate shaketable_sim::resolver::resolve");
    assert_eq!(line(7), "25.0% judge mi_malloc");
    let output = folded(&format!("workload queue 4\n{}", queue.concat()));
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).starts_with("no sample is in the phase 'set up'"), "{}", stderr(&output));
}
