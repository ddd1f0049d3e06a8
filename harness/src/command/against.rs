//! `shaketable bench --against`: this program and another build of it, measured alternately. What else the
//! machine does changes its speed by more than most changes of a program do, but hardly from one measurement
//! to the next: the ratio of two neighbours is what is told.

use super::{
    Refusal,
    child::{Child, Ending},
    interrupt::Interrupt,
    progress::Progress,
    refuse,
};
use serde::Deserialize;
use shaketable_reports::{Compared, Comparison, Ratio};
use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// What is compared.
pub(super) struct Against<'a> {
    /// This program and the other one.
    pub(super) programs: [&'a Path; 2],
    pub(super) workloads: Vec<&'a str>,
    pub(super) seeds: Range<u64>,
    /// How often each workload is measured with each of the programs.
    pub(super) rounds: u64,
}

/// What is read of the report of a sweep. Everything else may differ from one version to another.
#[derive(Deserialize)]
struct Report {
    commit: String,
    workloads: Vec<Runs>,
    /// That of the whole sweep, as the system tells it: there are versions whose workloads have a part of it.
    cost: CpuTime,
}

#[derive(Deserialize)]
struct Runs {
    runs: u64,
    passed: u64,
}

#[derive(Deserialize)]
struct CpuTime {
    cpu_ns: u64,
}

/// The runs of a sweep and their CPU time, nanoseconds.
#[derive(Clone, Copy)]
struct Measured {
    runs: u64,
    cpu_ns: u64,
}

/// What this program and the other one measured of a workload, by round; `None` if one of them does not have
/// it.
type Pairs = Option<Vec<[Measured; 2]>>;

impl Against<'_> {
    /// Measures every workload in each round. Returns the CPU time of all sweeps as well, nanoseconds.
    pub(super) fn compare(&self, interrupt: &Interrupt) -> Result<(Comparison, u64), Refusal> {
        let all = self.rounds.saturating_mul(self.workloads.len() as u64);
        let mut progress = Progress::new(&[("comparison", all)], ("pair", "pairs"), "missing");
        let measured = self.take_turns(&mut progress, interrupt);
        progress.end();
        let (pairs, commit) = measured?;
        let cpu = pairs.iter().flatten().flatten().flatten().map(|measured| measured.cpu_ns).sum();
        let compared = self.workloads.iter().zip(&pairs).map(|(workload, pairs)| Compared {
            workload: (*workload).to_owned(),
            ratio: pairs.as_deref().map(|pairs| ratio(pairs.iter().copied())),
        });
        let comparison = Comparison {
            program: self.programs[1].display().to_string(),
            commit,
            seeds: self.seeds.clone(),
            rounds: self.rounds,
            workloads: compared.collect(),
            all: together(&pairs, self.rounds),
        };
        Ok((comparison, cpu))
    }

    /// The pairs of all rounds, by workload, and the commit of the other program.
    fn take_turns(
        &self,
        progress: &mut Progress,
        interrupt: &Interrupt,
    ) -> Result<(Vec<Pairs>, String), Refusal> {
        let folder = TempDir::new().map_err(|error| unusable(&error))?;
        let mut commit = "unknown".to_owned();
        let mut all: Vec<Pairs> = vec![Some(Vec::new()); self.workloads.len()];
        for round in 0..self.rounds {
            for (workload, pairs) in self.workloads.iter().zip(&mut all) {
                if let Some(pairs_so_far) = pairs {
                    let measure = |program| self.measure(program, workload, folder.path(), interrupt);
                    let [ours, theirs] = self.programs;
                    // The other program comes first in the first round: what is wrong with it shows at once.
                    let (ours, theirs) = if round % 2 == 0 {
                        let theirs = measure(theirs)?;
                        (if theirs.is_some() { measure(ours)? } else { None }, theirs)
                    } else {
                        (measure(ours)?, measure(theirs)?)
                    };
                    match (ours, theirs) {
                        (Some((ours, _)), Some((theirs, of_theirs))) => {
                            pairs_so_far.push([ours, theirs]);
                            commit = of_theirs;
                        }
                        _ => *pairs = None,
                    }
                }
                progress.done(0, pairs.is_some());
            }
        }
        Ok((all, commit))
    }

    /// Sweeps a workload with a program, as a process: what it measured, and the program's commit; `None` if
    /// it does not know the workload.
    fn measure(
        &self,
        program: &Path,
        workload: &str,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Option<(Measured, String)>, Refusal> {
        let name = program.display();
        let [report, errors]: [PathBuf; 2] = ["report.json", "errors"].map(|name| folder.join(name));
        let _ = fs::remove_file(&report);
        let written = fs::File::create(&errors).map_err(|error| unusable(&error))?;
        let mut command = Command::new(program);
        command.args(["run", workload, "--jobs", "1", "--seeds"]);
        command.arg(format!("{}..{}", self.seeds.start, self.seeds.end)).arg("--json").arg(&report);
        // In a folder of its own, because a sweep first replays the regressions of its folder.
        command.current_dir(folder).stdout(Stdio::null()).stderr(written);
        // This is no sweep of a job of GitHub's, whose summary it would add to.
        command.env_remove("GITHUB_STEP_SUMMARY");
        let child = match Child::start(command) {
            Ok(child) => child,
            Err(error) => refuse!("cannot run {name}: {error}"),
        };
        let ending = match child.wait(None, || interrupt.is_set()) {
            Some(ending) if !interrupt.is_set() => ending,
            _ => return Err(interrupt.refusal(&format!("before {workload} was measured"))),
        };
        let errors = String::from_utf8_lossy(&fs::read(&errors).unwrap_or_default()).into_owned();
        match fs::read_to_string(&report) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(Report { commit, workloads, cost: CpuTime { cpu_ns } }) => match workloads.first() {
                    // The first failure was shrunk, in the same time.
                    Some(Runs { runs, passed }) if passed < runs => {
                        refuse!("{} of {runs} runs of {workload} fail with {name}", runs - passed)
                    }
                    Some(Runs { runs, .. }) if *runs > 0 && cpu_ns > 0 => {
                        Ok(Some((Measured { runs: *runs, cpu_ns }, commit)))
                    }
                    _ => refuse!("{name} measured no run of {workload}"),
                },
                Err(error) => refuse!("{name} wrote a report of {workload} that cannot be read: {error}"),
            },
            // It is the same message in all versions.
            Err(_) if is_usage(ending) && errors.contains("unknown workload") => Ok(None),
            Err(_) => {
                let last = errors.trim().lines().last().map_or(String::new(), |line| format!(": {line}"));
                refuse!("{name} wrote no report of {workload}: it {ending}{last}")
            }
        }
    }
}

/// Whether a command refused its arguments.
fn is_usage(ending: Ending) -> bool {
    matches!(ending, Ending::Exited(status) if status.code() == Some(2))
}

fn unusable(error: &std::io::Error) -> Refusal {
    Refusal::Usage(format!("cannot use the folder of temporary files: {error}"))
}

/// How fast the programs are in these pairs, as runs per core and minute.
fn ratio(pairs: impl Iterator<Item = [Measured; 2]>) -> Ratio {
    let speed = |Measured { runs, cpu_ns }| runs as f64 * 60e9 / cpu_ns as f64;
    Ratio::of(&pairs.map(|pair| pair.map(speed)).collect::<Vec<_>>())
}

/// The ratio of all workloads that both programs have: each round is one pair.
fn together(pairs: &[Pairs], rounds: u64) -> Option<Ratio> {
    let plus = |a: Measured, b: Measured| Measured { runs: a.runs + b.runs, cpu_ns: a.cpu_ns + b.cpu_ns };
    let round = |round: u64| {
        let of_round = pairs.iter().flatten().map(|pairs| pairs[round as usize]);
        of_round.reduce(|[ours, theirs], [a, b]| [plus(ours, a), plus(theirs, b)])
    };
    Some(ratio((0..rounds).map(round).collect::<Option<Vec<_>>>()?.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Scripts as programs. Each adds its name and the workload to a list.
    struct Programs {
        folder: TempDir,
    }

    /// Does for a comparison what a sweep of ten seeds does: `one` and `two` are the CPU times of workloads.
    const LIKE_A_SWEEP: &str = r#"
        case "$*" in
        "run none "*) echo 'x: unknown workload "none": see `x list workloads`' >&2; exit 2;;
        "run one --jobs 1 --seeds 5..15 --json "*) ns=$one;;
        "run two --jobs 1 --seeds 5..15 --json "*) ns=$two;;
        *) echo "what is $*?" >&2; exit 2;;
        esac
        echo '{"schema": 1, "commit": "abc", "more": 1,
            "workloads": [{"workload": "?", "runs": 10, "passed": 10, "cpu_ns": 7}], "cost": {"cpu_ns": '$ns'}}' > "$8"
        exit 4"#;

    impl Programs {
        fn new() -> Programs {
            Programs { folder: TempDir::new().expect("a folder") }
        }

        fn program(&self, name: &str, script: &str) -> PathBuf {
            let path = self.folder.path().join(name);
            let list = self.folder.path().join("list");
            let script = format!("#!/bin/sh\necho {name} $2 >> {}\n{script}\n", list.display());
            let source = path.with_extension("sh");
            fs::write(&source, script).expect("written");
            // A file that is open for writing cannot be run, and a child that another test starts has this
            // process's files for a moment. So another process writes it.
            let installed = Command::new("install").args(["-m", "755"]).args([&source, &path]).status();
            assert!(installed.expect("install runs").success());
            path
        }

        fn compare(&self, programs: [&Path; 2], interrupt: &Interrupt) -> Result<Comparison, Refusal> {
            let workloads = vec!["one", "none", "two"];
            let against = Against { programs, workloads, seeds: 5..15, rounds: 3 };
            against.compare(interrupt).map(|(comparison, _)| comparison)
        }

        /// Why a program that does this is not compared.
        fn refusal(&self, script: &str) -> String {
            let [a, b] =
                [self.program("a", &format!("one=1 two=1{LIKE_A_SWEEP}")), self.program("b", script)];
            let refusal = self.compare([&a, &b], &Interrupt::default()).expect_err("refused");
            assert_eq!(refusal.exit_code(), 2);
            refusal.to_string().replace(b.to_str().expect("plain"), "b")
        }
    }

    #[test]
    fn programs_take_turns_and_the_ratios_are_those_of_their_speeds() {
        let programs = Programs::new();
        // 10 runs in a second are 600 in a minute.
        let a = programs.program("a", &format!("one=1000000000 two=3000000000{LIKE_A_SWEEP}"));
        let b = programs.program("b", &format!("one=2000000000 two=2000000000{LIKE_A_SWEEP}"));
        let compared = programs.compare([&a, &b], &Interrupt::default()).expect("compared");
        let ratio = |ours, theirs| {
            let same = ours / theirs;
            Some(Ratio { ours, theirs, median: same, lowest: same, highest: same })
        };
        let row = |workload: &str, ratio| Compared { workload: workload.to_owned(), ratio };
        assert_eq!(
            compared.workloads,
            [row("one", ratio(600.0, 300.0)), row("none", None), row("two", ratio(200.0, 300.0))]
        );
        assert_eq!((compared.all, compared.commit.as_str()), (ratio(300.0, 300.0), "abc"));
        let list = fs::read_to_string(programs.folder.path().join("list")).expect("the list");
        let turns: Vec<_> = list.lines().collect();
        let rounds = ["b one", "a one", "b none", "b two", "a two"].into_iter();
        let rounds = rounds.chain(["a one", "b one", "a two", "b two"]);
        assert_eq!(turns, rounds.chain(["b one", "a one", "b two", "a two"]).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_such_a_program_is_refused_in_one_line() {
        let programs = Programs::new();
        let wrote = |script: &str| programs.refusal(script);
        assert_eq!(wrote("exit 0"), "b wrote no report of one: it ended with exit code 0");
        assert_eq!(
            wrote("echo 'b: what is run?' >&2; exit 2"),
            "b wrote no report of one: it ended with exit code 2: b: what is run?"
        );
        assert!(wrote("echo {} > $8").starts_with("b wrote a report of one that cannot be read: missing"));
        let empty = r#"echo '{"commit": "", "workloads": [], "cost": {"cpu_ns": 1}}' > $8"#;
        assert_eq!(wrote(empty), "b measured no run of one");
        let failing = LIKE_A_SWEEP.replace("\"passed\": 10", "\"passed\": 7");
        assert_eq!(wrote(&format!("one=1{failing}")), "3 of 10 runs of one fail with b");
        let plain = programs.program("a", "exit 0");
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("not executable");
        for path in [plain, programs.folder.path().join("missing"), programs.folder.path().to_owned()] {
            let refusal = programs.compare([&path, &path], &Interrupt::default()).expect_err("refused");
            assert_eq!(refusal.exit_code(), 2);
            assert!(
                refusal.to_string().starts_with(&format!("cannot run {}: ", path.display())),
                "{refusal}"
            );
        }
    }

    #[test]
    fn an_interrupt_ends_the_comparison() {
        let programs = Programs::new();
        let sleeps = programs.program("a", "sleep 600");
        let interrupted = programs.compare([&sleeps, &sleeps], &Interrupt::already());
        let refusal = interrupted.expect_err("interrupted");
        assert_eq!(refusal, Refusal::Interrupted(143, "interrupted before one was measured".to_owned()));
    }
}
