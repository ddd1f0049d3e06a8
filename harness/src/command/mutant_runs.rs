//! `shaketable mutant-runs`: the runs that `shaketable-mutants` asks for, a line for each line of the input.
//!
//! The first line of the output has the names of the workloads. Then
//!
//! | question | answer |
//! |---|---|
//! | `reach WORKLOAD SEED` | `passed` and the mutants that the run asked for, or `failed JUDGE` |
//! | `run WORKLOAD SEED MUTANT` | `passed` or `failed JUDGE` |

use super::{Refusal, args::Faults, output, program, refuse, report};
use crate::{
    judge::finding::Verdict,
    run::{plan::Demands, runner::RunResult},
};
use clap::Args;
use shaketable_reports::Conclusion;
use shaketable_sim::seed::Seed;
use shaketable_tx::mutants;
use std::io::{BufRead, stdin};

#[derive(Clone, Debug, Args)]
pub(super) struct MutantRunsArguments {
    #[command(flatten)]
    pub faults: Faults,
}

/// Answers until the input ends.
pub(super) fn mutant_runs(arguments: &MutantRunsArguments) -> Result<Conclusion, Refusal> {
    let entries = (program().workloads)();
    let demands = arguments.faults.demands()?;
    let names: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
    output::print_raw(&(names.join(" ") + "\n"))?;
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split(' ').collect();
        let run = |name: &str, seed: &str, mutant: u32| {
            let entry = entries.iter().find(|entry| entry.name() == name)?;
            Some(entry.run(
                Seed(seed.parse().ok()?),
                &Demands { mutant: Some(mutant), ..demands.clone() },
                false,
            ))
        };
        let answer = match words[..] {
            ["reach", name, seed] => {
                let result = run(name, seed, mutants::RECORDED);
                let reached = mutants::recorded();
                result.map(|result| match result.verdict() {
                    Verdict::Passed => {
                        reached.iter().fold("passed".to_owned(), |line, n| format!("{line} {n}"))
                    }
                    _ => failed(&result),
                })
            }
            ["run", name, seed, mutant] => {
                mutant.parse().ok().and_then(|n| run(name, seed, n)).map(|result| match result.verdict() {
                    Verdict::Passed => "passed".to_owned(),
                    _ => failed(&result),
                })
            }
            _ => None,
        };
        let Some(answer) = answer else { refuse!("mutant-runs does not understand {line:?}") };
        output::print_raw(&(answer + "\n"))?;
    }
    Ok(Conclusion::Passed)
}

fn failed(result: &RunResult) -> String {
    format!("failed {}", report::verdict(result).judge().unwrap_or_default())
}
