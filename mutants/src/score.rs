//! Runs of the program that has the changes: which mutants a run asks for, and which runs notice that one is
//! on.
//!
//! Runs are made by child processes, because a mutant may never end, take all memory or end its process.

use crate::{
    Refusal,
    compile::{Change, Mutant},
    kept::{self, Results},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a run may take, and how much memory. A run takes tens of milliseconds; this machine may be busy.
const LONGEST: Duration = Duration::from_secs(20);
const MOST_BYTES: u64 = 2 << 30;
const TICK: Duration = Duration::from_millis(100);

/// The run that noticed a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    /// The workload.
    pub workload: String,
    /// Its seed.
    pub seed: u64,
    /// Who noticed it: a judge, or `time`, `memory` or `process`.
    pub judge: String,
    /// The runs until then, this one included.
    pub runs: u64,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scored {
    /// The mutant.
    #[serde(flatten)]
    pub mutant: Mutant,
    /// Whether a run without a mutant asked for it: otherwise no run executes its place.
    pub reached: bool,
    /// The runs.
    pub runs: u64,
    /// The run that noticed it.
    pub killed: Option<Kill>,
    /// The tests that noticed it, if no run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
}

/// A process of the program that answers a line for each line.
pub struct Runner {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    workloads: Vec<String>,
}

enum Answer {
    Line(String),
    /// Why there is none.
    None(&'static str),
}

impl Runner {
    fn start(program: &Path, faults: &str) -> Result<Runner, Refusal> {
        let named = |e| Refusal(format!("{}: {e}", program.display()));
        let mut child = Command::new(program)
            .args(["mutant-runs", "--faults", faults])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(named)?;
        let lost = || Refusal(format!("{} does not answer", program.display()));
        let (input, output) = (child.stdin.take().ok_or_else(lost)?, child.stdout.take().ok_or_else(lost)?);
        let (send, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut runner = Runner { child, input, answers, workloads: Vec::new() };
        match runner.answer() {
            Answer::Line(line) => runner.workloads = line.split_whitespace().map(str::to_owned).collect(),
            Answer::None(_) => return Err(lost()),
        }
        Ok(runner)
    }

    fn ask(&mut self, question: &str) -> Answer {
        if writeln!(self.input, "{question}").and_then(|()| self.input.flush()).is_err() {
            return Answer::None("process");
        }
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let end = Instant::now() + LONGEST;
        loop {
            match self.answers.recv_timeout(TICK) {
                Ok(line) => return Answer::Line(line),
                Err(RecvTimeoutError::Disconnected) => return Answer::None("process"),
                Err(RecvTimeoutError::Timeout) if Instant::now() > end => return Answer::None("time"),
                Err(RecvTimeoutError::Timeout) if self.bytes() > MOST_BYTES => return Answer::None("memory"),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The memory of the process.
    fn bytes(&self) -> u64 {
        let pages = fs::read_to_string(format!("/proc/{}/statm", self.child.id()));
        let pages = pages.ok().and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        pages.unwrap_or_default() * 4_096
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How the program is run.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The program.
    pub program: &'a Path,
    /// The fault profile.
    pub faults: &'a str,
    /// The seeds of a workload, from 0, and the runs of a mutant.
    pub seeds: u64,
    /// The processes at once.
    pub jobs: usize,
    /// When no further mutant is begun.
    pub end: Option<Instant>,
    /// The folder with the results of the program's runs.
    pub results: &'a Path,
}

/// A run without a mutant, and what it asked for.
#[derive(Debug, Serialize, Deserialize)]
struct Reach {
    workload: String,
    seed: u64,
    mutants: Vec<u32>,
}

/// The runs that ask for each mutant, in the order in which they are tried: the workloads take turns.
pub type Reached = BTreeMap<u32, Vec<(usize, u64)>>;

/// The mutants of an earlier report that a run noticed.
#[derive(Debug, Deserialize)]
pub struct Noticed {
    mutants: Vec<Scored>,
}

impl Noticed {
    /// The run that noticed a mutant.
    pub fn of(&self, mutant: &Mutant) -> Option<&Kill> {
        let same = self.mutants.iter().filter(|scored| scored.mutant.change() == mutant.change());
        same.filter_map(|scored| scored.killed.as_ref()).next()
    }

    /// The runs that are tried: the one that noticed it first, because the draws may have changed since.
    pub fn reached(&self, mutants: &[Mutant], workloads: &[String], seeds: u64) -> Reached {
        let mut reached = Reached::new();
        for mutant in mutants {
            let Some(kill) = self.of(mutant) else { continue };
            let Some(workload) = workloads.iter().position(|name| *name == kill.workload) else { continue };
            let others = (0..seeds).filter(|seed| *seed != kill.seed);
            let runs = [kill.seed].into_iter().chain(others).take(seeds as usize);
            reached.insert(mutant.number, runs.map(|seed| (workload, seed)).collect());
        }
        reached
    }

    /// The noticed ones that are not among these.
    pub fn gone<'a>(&'a self, mutants: &[Mutant]) -> Vec<&'a Mutant> {
        let own = self.mutants.iter().filter(|scored| scored.killed.is_some()).map(|scored| &scored.mutant);
        own.filter(|own| !mutants.iter().any(|mutant| mutant.change() == own.change())).collect()
    }
}

impl Runs<'_> {
    /// The names of the workloads.
    pub fn workloads(&self) -> Result<Vec<String>, Refusal> {
        Ok(Runner::start(self.program, self.faults)?.workloads.clone())
    }

    /// Calls `job` for the numbers below `count`, on several threads. Each call has a process of its own:
    /// what a workload keeps for all runs of a process, such as meta-data, would be that of another mutant.
    pub fn each<R: Send>(
        &self,
        count: usize,
        job: impl Fn(&mut Option<Runner>, usize) -> Result<R, Refusal> + Sync,
        done: impl Fn(usize, &R) + Sync,
    ) -> Result<Vec<(usize, R)>, Refusal> {
        let (next, results, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(None));
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let is_late = self.end.is_some_and(|end| Instant::now() > end);
                        if n >= count || is_late {
                            break;
                        }
                        match job(&mut None, n) {
                            Ok(result) => {
                                done(n, &result);
                                if let Ok(mut results) = results.lock() {
                                    results.push((n, result));
                                }
                            }
                            Err(refusal) => {
                                next.store(count, Ordering::Relaxed);
                                if let Ok(mut refused) = refused.lock() {
                                    *refused = Some(refusal);
                                }
                            }
                        }
                    }
                });
            }
        });
        if let Ok(Some(refusal)) = refused.into_inner() {
            return Err(refusal);
        }
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|(n, _)| *n);
        Ok(results)
    }

    fn with<'a>(&self, runner: &'a mut Option<Runner>) -> Result<&'a mut Runner, Refusal> {
        match runner {
            Some(runner) => Ok(runner),
            None => Ok(runner.insert(Runner::start(self.program, self.faults)?)),
        }
    }

    /// Runs every workload without a mutant. All of these runs must pass.
    pub fn reached(&self, workloads: &[String], done: impl Fn() + Sync) -> Result<Reached, Refusal> {
        let kept = Results::open(self.results.join(format!("reached-{}.jsonl", self.faults)))?;
        let earlier: BTreeMap<(&str, u64), &Reach> =
            kept.earlier.iter().map(|reach: &Reach| ((&reach.workload[..], reach.seed), reach)).collect();
        let place = |n: usize| (n % workloads.len(), (n / workloads.len()) as u64);
        let answers = self.each(
            workloads.len() * self.seeds as usize,
            |runner, n| {
                let (workload, seed) = place(n);
                let workload = &workloads[workload];
                if let Some(reach) = earlier.get(&(workload, seed)) {
                    return Ok(reach.mutants.clone());
                }
                let mutants = match self.with(runner)?.ask(&format!("reach {workload} {seed}")) {
                    Answer::Line(line) => match line.strip_prefix("passed") {
                        Some(numbers) => {
                            numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()
                        }
                        None => {
                            return Err(Refusal(format!(
                                "{workload} fails with seed {seed} without a mutant: {line}"
                            )));
                        }
                    },
                    Answer::None(why) => {
                        return Err(Refusal(format!(
                            "{workload} with seed {seed} does not end without a mutant: {why}"
                        )));
                    }
                };
                kept.add(&Reach { workload: workload.clone(), seed, mutants: mutants.clone() })?;
                Ok(mutants)
            },
            |_, _| done(),
        )?;
        let mut of_workloads: BTreeMap<u32, BTreeMap<usize, Vec<u64>>> = BTreeMap::new();
        for (n, numbers) in answers {
            let (workload, seed) = place(n);
            for number in numbers {
                of_workloads.entry(number).or_default().entry(workload).or_default().push(seed);
            }
        }
        let mut reached = Reached::new();
        for (number, of) in of_workloads {
            // Those that ask for it most often come first.
            let mut of: Vec<(usize, Vec<u64>)> = of.into_iter().collect();
            of.sort_by_key(|(workload, seeds)| (std::cmp::Reverse(seeds.len()), *workload));
            let turns = (0..self.seeds as usize)
                .flat_map(|turn| of.iter().filter_map(move |(w, seeds)| Some((*w, *seeds.get(turn)?))));
            reached.insert(number, turns.take(self.seeds as usize).collect());
        }
        Ok(reached)
    }

    /// Runs each mutant until a run notices it.
    pub fn score(
        &self,
        mutants: &[Mutant],
        workloads: &[String],
        reached: &Reached,
        done: impl Fn(&Scored) + Sync,
    ) -> Result<Vec<Scored>, Refusal> {
        let call = kept::hash(&(self.faults, self.seeds, workloads));
        let kept = Results::open(self.results.join(format!("scored-{call:016x}.jsonl")))?;
        let earlier: BTreeMap<u32, &Scored> =
            kept.earlier.iter().map(|scored: &Scored| (scored.mutant.number, scored)).collect();
        let scored = self.each(
            mutants.len(),
            |runner, n| {
                let mutant = &mutants[n];
                if let Some(scored) = earlier.get(&mutant.number) {
                    return Ok((*scored).clone());
                }
                let runs = reached.get(&mutant.number).map(Vec::as_slice).unwrap_or_default();
                let mut scored = Scored {
                    mutant: mutant.clone(),
                    reached: !runs.is_empty(),
                    runs: 0,
                    killed: None,
                    tested: None,
                };
                for (workload, seed) in runs {
                    let name = &workloads[*workload];
                    scored.runs += 1;
                    let judge = match self.with(runner)?.ask(&format!("run {name} {seed} {}", mutant.number))
                    {
                        Answer::Line(line) => match line.strip_prefix("failed ") {
                            Some(judge) => judge.to_owned(),
                            None => continue,
                        },
                        Answer::None(why) => {
                            *runner = None;
                            why.to_owned()
                        }
                    };
                    scored.killed =
                        Some(Kill { workload: name.clone(), seed: *seed, judge, runs: scored.runs });
                    break;
                }
                kept.add(&scored)?;
                Ok(scored)
            },
            |_, scored| done(scored),
        )?;
        Ok(scored.into_iter().map(|(_, scored)| scored).collect())
    }
}

/// Leaves out the mutants with the same words, in the same function, as one that a run noticed: a report that
/// is read again cannot tell which of them it was.
pub fn without_others(scored: &mut Vec<Scored>) {
    let noticed = |mutant: &Mutant| {
        scored.iter().any(|scored| scored.killed.is_some() && scored.mutant.change() == mutant.change())
    };
    let kept: Vec<Scored> =
        scored.iter().filter(|scored| scored.killed.is_some() || !noticed(&scored.mutant)).cloned().collect();
    *scored = kept;
}

/// The mutants that are known not to differ from the source, with the reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    /// The package; in the file beside its manifest, that one.
    #[serde(default)]
    pub package: String,
    /// The file, relative to the package.
    pub file: String,
    /// The function.
    pub function: String,
    /// The operator.
    pub operator: String,
    /// What is there.
    pub original: String,
    /// What takes its place.
    pub change: String,
    /// Why nobody can notice it.
    pub reason: String,
}

impl Equivalent {
    /// Whether it is this mutant. Lines move, and are not compared.
    pub fn is(&self, mutant: &Mutant) -> bool {
        let own: Change<'_> =
            (&self.package, &self.file, &self.function, &self.operator, &self.original, &self.change);
        own == mutant.change()
    }
}

/// The entries of the list that are wrong: a run noticed the mutant, or it is not among `all` that compile.
/// `all` are those of the places that `is_wanted`, by package, file and function; `scored` may be a part of
/// them.
pub fn wrong<'a>(
    list: &'a [Equivalent],
    all: &[Mutant],
    scored: &[Scored],
    is_wanted: impl Fn(&str, &str, &str) -> bool,
) -> Vec<(&'a Equivalent, Option<Kill>)> {
    let mut wrong = Vec::new();
    for entry in list.iter().filter(|entry| is_wanted(&entry.package, &entry.file, &entry.function)) {
        let is_there = all.iter().any(|mutant| entry.is(mutant));
        let own = scored.iter().filter(|scored| entry.is(&scored.mutant));
        let killed = own.filter_map(|scored| scored.killed.clone()).next();
        if !is_there || killed.is_some() {
            wrong.push((entry, killed));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mutant(number: u32) -> Mutant {
        Mutant {
            number,
            package: "layers".into(),
            file: "src/layer.rs".into(),
            line: 1,
            function: "f".into(),
            operator: "constant".into(),
            original: number.to_string(),
            change: "0".into(),
        }
    }

    #[test]
    fn an_entry_is_wrong_if_it_is_noticed_or_gone_and_not_if_it_is_not_run() {
        let entry = |number: u32| {
            let Mutant { package, file, function, operator, original, change, .. } = mutant(number);
            Equivalent { package, file, function, operator, original, change, reason: "a test".into() }
        };
        let kill = Kill { workload: "w".into(), seed: 4, judge: "model".into(), runs: 1 };
        let scored =
            |number, killed| Scored { mutant: mutant(number), reached: true, runs: 1, killed, tested: None };
        let (all, list) = ([mutant(1), mutant(2), mutant(3)], [entry(1), entry(2), entry(3), entry(4)]);
        // The third one belongs to another shard.
        let run = [scored(1, None), scored(2, Some(kill.clone()))];
        let found = wrong(&list, &all, &run, |_, _, _| true);
        assert_eq!(found, [(&list[1], Some(kill)), (&list[3], None)]);
        assert_eq!(wrong(&list, &all, &run, |_, file, _| file != "src/layer.rs"), []);
    }

    #[test]
    fn one_of_the_places_with_the_same_words_is_enough() {
        let kill = Kill { workload: "w".into(), seed: 4, judge: "model".into(), runs: 1 };
        let scored =
            |number, killed| Scored { mutant: mutant(number), reached: true, runs: 1, killed, tested: None };
        let mut all = vec![scored(1, None), scored(1, Some(kill.clone())), scored(2, None)];
        without_others(&mut all);
        assert_eq!(all, [scored(1, Some(kill)), scored(2, None)]);
    }

    #[test]
    fn what_a_process_keeps_is_that_of_one_mutant() {
        // A process keeps what its first question was. A run fails if that was about another mutant, and says
        // what it asks for only if it is the first one.
        let program = r#"#!/bin/sh
            echo w
            while read -r what workload seed mutant; do
                is_first=${kept+no}
                kept=${kept-$mutant}
                case $what in
                    reach) if [ -z "$is_first" ]; then echo passed 1; else echo passed; fi ;;
                    run) if [ "$kept" = "$mutant" ]; then echo passed; else echo failed model; fi ;;
                esac
            done
        "#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, program).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        let runs =
            Runs { program: &path, faults: "standard", seeds: 3, jobs: 1, end: None, results: folder.path() };
        let workloads = runs.workloads().unwrap();
        let reached = runs.reached(&workloads, || {}).unwrap();
        assert_eq!(reached, BTreeMap::from([(1, vec![(0, 0), (0, 1), (0, 2)])]));
        let reached = BTreeMap::from([1, 2].map(|number| (number, reached[&1].clone())));
        let scored = runs.score(&[mutant(1), mutant(2)], &workloads, &reached, |_| {}).unwrap();
        let told: Vec<_> = scored.iter().map(|scored| (scored.runs, &scored.killed)).collect();
        assert_eq!(told, [(3, &None), (3, &None)]);
    }

    #[test]
    fn what_was_noticed_once_is_run_again_with_that_seed_first() {
        let text = r#"{"packages": ["layers"], "mutants": [
            {"number": 9, "package": "layers", "file": "src/layer.rs", "line": 4, "function": "f",
             "operator": "constant", "original": "1", "change": "0", "reached": true, "runs": 3,
             "killed": {"workload": "w", "seed": 2, "judge": "model", "runs": 3}},
            {"number": 10, "package": "layers", "file": "src/layer.rs", "line": 5, "function": "f",
             "operator": "constant", "original": "2", "change": "0", "reached": true, "runs": 300,
             "killed": null},
            {"number": 11, "package": "layers", "file": "src/layer.rs", "line": 6, "function": "f",
             "operator": "constant", "original": "4", "change": "0", "reached": true, "runs": 1,
             "killed": {"workload": "w", "seed": 0, "judge": "model", "runs": 1}}]}"#;
        let noticed: Noticed = serde_json::from_str(text).unwrap();
        let workloads = ["v".to_owned(), "w".to_owned()];
        let reached = noticed.reached(&[mutant(1), mutant(2), mutant(3)], &workloads, 4);
        assert_eq!(reached, BTreeMap::from([(1, vec![(1, 2), (1, 0), (1, 1), (1, 3)])]));
        let gone: Vec<&str> =
            noticed.gone(&[mutant(1), mutant(2)]).iter().map(|mutant| &*mutant.original).collect();
        assert_eq!(gone, ["4"]);
    }
}
