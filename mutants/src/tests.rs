//! Tests with a mutant on. What no run of a workload notices may be for bytes that no layer writes, or for
//! callers that no workload is: then a test of the package's own must notice it.

use crate::{
    Refusal,
    compile::Built,
    kept::{self, Results},
    score::{Runs, Scored},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How often it is looked whether a test has ended.
const TICK: Duration = Duration::from_millis(20);
/// How long tests may take: so many times as without a mutant, and this, because the machine may be busy.
const TIMES: u32 = 5;
const LONGEST: Duration = Duration::from_secs(20);

/// The variable with the mutant of a process: `shaketable_tx::mutants::VARIABLE`. This program needs nothing
/// of the workspace.
const VARIABLE: &str = "SHAKETABLE_MUTANT";

/// The programs of tests.
#[derive(Debug)]
pub struct Tests(Vec<Test>);

#[derive(Debug)]
struct Test {
    built: Built,
    longest: Duration,
}

/// What tests say of a mutant.
#[derive(Debug, Serialize, Deserialize)]
struct Tested {
    mutant: u32,
    noticed: Option<String>,
}

impl Tests {
    /// Runs the programs without a mutant. All must pass.
    pub fn new(built: Vec<Built>) -> Result<Tests, Refusal> {
        let test = |built: Built| {
            let begun = Instant::now();
            match passes(&built, None, Duration::from_secs(3_600))? {
                true => Ok(Test { built, longest: TIMES * begun.elapsed() + LONGEST }),
                false => Err(Refusal(format!("the tests {} fail without a mutant", built.name))),
            }
        };
        Ok(Tests(built.into_iter().map(test).collect::<Result<_, _>>()?))
    }

    /// The first program that fails with a mutant on.
    fn notice(&self, mutant: u32) -> Result<Option<String>, Refusal> {
        for test in &self.0 {
            if !passes(&test.built, Some(mutant), test.longest)? {
                return Ok(Some(test.built.name.clone()));
            }
        }
        Ok(None)
    }

    /// Runs the tests with each mutant that no run noticed.
    pub fn run(&self, runs: &Runs<'_>, scored: &mut [Scored], done: impl Fn() + Sync) -> Result<(), Refusal> {
        let names: Vec<&str> = self.0.iter().map(|test| &*test.built.name).collect();
        let kept = Results::open(runs.results.join(format!("tested-{:016x}.jsonl", kept::hash(&names))))?;
        let earlier: BTreeMap<u32, &Tested> =
            kept.earlier.iter().map(|tested: &Tested| (tested.mutant, tested)).collect();
        let left: Vec<usize> = (0..scored.len()).filter(|n| scored[*n].killed.is_none()).collect();
        let numbers: Vec<u32> = left.iter().map(|n| scored[*n].mutant.number).collect();
        let noticed = runs.each(
            left.len(),
            |_, n| match earlier.get(&numbers[n]) {
                Some(tested) => Ok(tested.noticed.clone()),
                None => {
                    let noticed = self.notice(numbers[n])?;
                    kept.add(&Tested { mutant: numbers[n], noticed: noticed.clone() })?;
                    Ok(noticed)
                }
            },
            |_, _| done(),
        )?;
        for (n, noticed) in noticed {
            scored[left[n]].tested = noticed;
        }
        Ok(())
    }
}

/// Whether a program of tests passes in time.
fn passes(built: &Built, mutant: Option<u32>, longest: Duration) -> Result<bool, Refusal> {
    let named = |e| Refusal(format!("{}: {e}", built.path.display()));
    let mut command = Command::new(&built.path);
    command.current_dir(&built.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("INSTA_UPDATE", "no").env_remove(VARIABLE);
    if let Some(mutant) = mutant {
        command.env(VARIABLE, mutant.to_string());
    }
    let mut child = command.spawn().map_err(named)?;
    let end = Instant::now() + longest;
    loop {
        if let Some(status) = child.try_wait().map_err(named)? {
            return Ok(status.success());
        }
        if Instant::now() > end {
            child.kill().and_then(|()| child.wait()).map_err(named)?;
            return Ok(false);
        }
        thread::sleep(TICK);
    }
}
