//! The command line: what can be said, and how it is read.

use super::{Refusal, backend::BackendArguments, choose, output};
use crate::{plan::Demands, seeds};
use clap::{Args, Parser, Subcommand, ValueEnum, error::ErrorKind};
use shaketable_reports::Conclusion;
use shaketable_sim::faults::Profile;
use std::{ops::Range, path::PathBuf, time::Duration};

/// The exit codes, for the end of a help page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  every invariant held, and the sweep was not vacuous
  1  a workload's invariant was violated, a run was stuck, or a planted bug was missed
  2  bad usage, configuration or input file (one line on stderr, nothing written)
  3  the harness failed: its own judges, non-determinism, a recording answered differently,
     a real cluster that does not answer; none of its other verdicts can be relied on
  4  the sweep was vacuous: nothing was violated, but too little happened
  130, 143, 129
     interrupted (Ctrl-C, SIGTERM, SIGHUP); what was done until then is reported";

/// Shakes FoundationDB layers on a simulated FoundationDB cluster, reproducibly from a seed.
///
/// Without a subcommand every workload is run over some seeds with standard faults, and a report is
/// left in target/shaketable/report.json.
#[derive(Debug, Parser)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments<Further: Subcommand> {
    #[command(subcommand)]
    pub(super) command: Option<Command<Further>>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command<Further: Subcommand> {
    /// Run workloads over many seeds and judge every run
    #[command(after_help = EXIT_CODES)]
    Run(RunArguments),
    /// Run one seed, or the plan of a repro file, once more
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArguments),
    /// Run every planted bug until it is caught
    #[command(after_help = EXIT_CODES)]
    Bugs(BugsArguments),
    /// List workloads, fault families or planted bugs
    List(ListArguments),
    /// Measure how fast runs are
    Bench(BenchArguments),
    /// Write a crate with a layer, its workload and their tests
    New(NewArguments),
    #[command(flatten)]
    Further(Further),
}

/// What decides a run beside its workload and seed.
#[derive(Clone, Debug, Default, Args)]
pub struct Shaking {
    /// How hard to shake: calm, standard or storm [default: standard]
    #[arg(long, value_name = "PROFILE", value_parser = choose::profile)]
    pub faults: Option<Profile>,
    /// Switch a fault family off; may be repeated (`list faults` names them)
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub without: Vec<String>,
}

impl Shaking {
    /// What is asked of each run.
    pub fn demands(&self) -> Result<Demands, Refusal> {
        let without = choose::families(&self.without)?;
        Ok(Demands { profile: self.faults.unwrap_or_default(), without, ..Demands::default() })
    }
}

#[derive(Clone, Debug, Args)]
pub struct RunArguments {
    /// Which workloads; all of them if none is named
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// How many seeds from 0, or a range of them without its end [default: 200, or N of
    /// --check-determinism]
    #[arg(long, value_name = "N|A..B", value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// How many threads [default: one a processor, four with a real cluster]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// Begin no further seed after this time on the wall: 60s, 5m, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch a planted bug on, which every workload named must have (`list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Run the first N seeds of each workload twice and compare every event
    #[arg(long, value_name = "N", value_parser = choose::at_least_one)]
    pub check_determinism: Option<u64>,
    /// Run only the I-th of N shares of the seeds, counted from 1
    #[arg(long, value_name = "I/N", value_parser = choose::shard)]
    pub shard: Option<(u64, u64)>,
    /// Continue the sweep of this report, which ended early, and report on all of it
    #[arg(long, value_name = "REPORT", conflicts_with_all = [
        "workloads", "seeds", "faults", "without", "bug", "check_determinism", "shard"
    ])]
    pub resume: Option<PathBuf>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

/// What `--trace` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Trace {
    /// Operations, their transactions' reads and writes, conflicts and faults
    Operations,
    /// Every event of the simulated cluster
    Cluster,
}

#[derive(Clone, Debug, Args)]
pub struct ReplayArguments {
    /// The workload, or a repro file
    #[arg(value_name = "WORKLOAD|REPRO-FILE")]
    pub what: String,
    /// The seed; none for a repro file
    #[arg(value_name = "SEED", value_parser = seeds::seed)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch a planted bug on (`list bugs` names them)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Print first what happened: operations, reads and writes, conflicts, faults; `--trace=cluster`
    /// prints every event of the simulated cluster instead
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, hide_possible_values = true, default_missing_value = "operations")]
    pub trace: Option<Trace>,
    /// Write the plan, to be edited and replayed
    #[arg(long, short, value_name = "REPRO-FILE")]
    pub output: Option<PathBuf>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

#[derive(Clone, Debug, Args)]
pub struct BugsArguments {
    /// Whose planted bugs; `cluster` for those of the simulated cluster. All of this program's own if
    /// none is named
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Only the bug of this name; may be repeated (`list bugs` names them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub bug: Vec<String>,
    /// How many seeds from 0, or a range of them without its end, to try on each bug before it counts as
    /// missed [default: 500, 20 with a real cluster]
    #[arg(long, alias = "max-seeds", value_name = "N|A..B", value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Begin no further seed after this time on the wall: 60s, 5m, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
    /// Try only the I-th of N shares of the bugs, counted from 1
    #[arg(long, value_name = "I/N", value_parser = choose::shard)]
    pub shard: Option<(u64, u64)>,
    /// How many threads [default: one a processor, four with a real cluster]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Write the score as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    Workloads,
    Faults,
    Bugs,
}

#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    /// What to list; everything if left out
    pub what: Option<Listing>,
    /// Whose planted bugs; `cluster` for those of the simulated cluster. All if none is named
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct BenchArguments {
    /// Write the figures as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub struct NewArguments {
    /// The crate's name, and that of the folder it is written into
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Depend on shaketable's sources in this folder, not on released versions
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
}

/// Answers a command line that is no command: help and version are printed, everything else is
/// refused in one line.
pub(super) fn answer(error: &clap::Error) -> Result<Conclusion, Refusal> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())?;
            Ok(Conclusion::Passed)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Refusal::Usage("a subcommand is missing: --help lists them".to_owned()))
        }
        _ => Err(Refusal::Usage(one_line(&error.render().to_string()))),
    }
}

/// The part of clap's message that says what is wrong, with its hints in brackets.
fn one_line(message: &str) -> String {
    let mut parts: Vec<&str> = message
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    if parts.is_empty() {
        return "bad usage".to_owned();
    }
    let first = parts.remove(0);
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    for part in parts {
        let part = part.strip_prefix("tip: ").unwrap_or(part);
        line.push(' ');
        match part.starts_with('[') {
            true => line.push_str(part),
            false => line.push_str(&format!("[{part}]")),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Nothing, parse};
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::<Nothing>::command().debug_assert();
    }

    #[test]
    fn a_refusal_is_one_line() {
        for line in [
            &["shaketable", "shake"][..],
            &["shaketable", "run", "--seed", "3"],
            &["shaketable", "run", "--seeds", "x"],
            &["shaketable", "run", "--jobs"],
            &["shaketable", "replay"],
            &["shaketable", "list", "judges"],
        ] {
            let error = parse::<Nothing, _>(line.iter().copied()).expect_err("bad usage");
            let refusal = answer(&error).expect_err("refused").to_string();
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
            assert!(!refusal.contains("Usage"), "{refusal}");
        }
    }
}
