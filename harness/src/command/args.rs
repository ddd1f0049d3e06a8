//! The arguments of the command.

use super::{
    Refusal,
    backend::BackendArguments,
    choose::{self, First},
    failures::{self, FailuresArguments},
    files::Files,
    output, refuse,
};
mod regressions;

pub(super) use regressions::*;

use crate::{
    run::plan::Demands,
    search::{entry::Entry, seeds},
};
use clap::{Args, Parser, Subcommand, ValueEnum, error::ErrorKind};
use shaketable_reports::{Conclusion, Scale};
use shaketable_session::{address::Address, topology::Topology};
use shaketable_sim::faults::Profile;
use std::{ffi::OsString, ops::Range, path::PathBuf, time::Duration};

/// The exit codes, for the end of the help page.
pub(super) const SERVE_EXIT_CODES: &str = "\
Exit codes:
  0  it served until Ctrl-C, SIGTERM or SIGHUP
  2  bad usage, an address in use, a file that cannot be written (one line on stderr)
  3  the simulated cluster failed, or its judges object to what it did";

/// The exit codes, for the end of the help page.
pub(super) const WITH_EXIT_CODES: &str = "\
Exit codes:
  0  the command succeeded with every seed
  1  the command failed with a seed: its exit code was not 0, a signal ended it, or it took
     longer than --timeout
  2  bad usage, no library, or a command that cannot be started (one line on stderr)
  3  the simulated cluster failed, or its own judges found that it broke FoundationDB's
     promises; do not rely on what else the run shows
  4  no run used the simulated cluster: the command does not load the library,
     or opens no database
  130, 143, 129
     interrupted (Ctrl-C, SIGTERM, SIGHUP); the command is ended as well";

/// The runs and the CPU time after which a search ends, unless told otherwise.
pub(super) const REPLAYS: u64 = 1_000;

/// The exit codes, for the end of a help page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  every invariant held, and the sweep was not vacuous
  1  a layer or its workload is wrong, a run was stuck, or a planted bug was missed
  2  bad usage, configuration or input file (one line on stderr, nothing written)
  3  the harness failed: its own judges, a simulator that does not repeat, a recording that is
     not reproduced, a real cluster that does not reply; do not rely on its other verdicts
  4  the sweep was vacuous: nothing was violated, but too little happened
  130, 143, 129
     interrupted (Ctrl-C, SIGTERM, SIGHUP); the completed part is reported";

/// Shakes FoundationDB layers on a simulated FoundationDB cluster, reproducibly from a seed.
///
/// Without a subcommand, every workload is run with 200 seeds and standard faults, and the report is
/// written to target/shaketable/report.json and report.html.
#[derive(Debug, Parser)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments<Extra: Subcommand> {
    #[command(subcommand)]
    pub(super) command: Option<Command<Extra>>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command<Extra: Subcommand> {
    /// Run workloads with many seeds and judge every run
    #[command(after_help = EXIT_CODES)]
    Run(RunArguments),
    /// Run workloads as `run` does, and serve a page that shows how it goes
    ///
    /// The page is for a browser on this machine: the address that is printed has a token, without which
    /// nobody gets anything. It shows the progress, the coverage points, the failures as they come and how
    /// far they are shrunk, and distributions. Output, files and exit code are those of `run`.
    #[command(after_help = EXIT_CODES)]
    Watch(WatchArguments),
    /// Replay one seed, or the plan of a repro file
    #[command(after_help = EXIT_CODES)]
    Replay(ReplayArguments),
    /// Cut a failing run down to what its failure needs
    #[command(after_help = EXIT_CODES)]
    Shrink(ShrinkArguments),
    /// Run the outcomes and the orders of a few operations
    #[command(after_help = EXIT_CODES)]
    Explore(ExploreArguments),
    /// Compare traffic with FoundationDB's guidelines
    ///
    /// Runs workloads and prints what the guidelines of FoundationDB's documentation say about their keys,
    /// conflicts, sizes and reads. Advice is no verdict: the exit code is 0, unless the command is used
    /// wrongly or interrupted.
    Advise(AdviseArguments),
    /// Run every planted bug until it is caught
    #[command(after_help = EXIT_CODES)]
    Bugs(BugsArguments),
    /// Work with the reports of earlier sweeps
    #[command(subcommand)]
    Report(ReportCommand),
    /// Keep plans that failed, which every sweep replays first
    #[command(subcommand)]
    Regressions(RegressionsCommand),
    /// List workloads, fault families or planted bugs
    List(ListArguments),
    /// Measure the speed of runs
    Bench(BenchArguments),
    /// Create a crate with a layer, its workload and their tests
    New(NewArguments),
    /// Serve a simulated cluster to programs that use FoundationDB's C library
    ///
    /// Programs find the library of the package shaketable-driver in place of FoundationDB's, and the cluster
    /// through their cluster file or SHAKETABLE_SERVER. When it is ready it prints one line; at the end, the
    /// report of the run. Calls arrive in an order that the seed does not determine, unless one program alone
    /// calls from one thread.
    #[command(after_help = SERVE_EXIT_CODES)]
    Serve(ServeArguments),
    /// Run a program that uses FoundationDB's C library on simulated clusters, a seed each
    ///
    /// The program finds the library of the package shaketable-driver in place of FoundationDB's. Its output
    /// is shown if it fails, with the report of the simulated cluster and the line that runs it again.
    #[command(after_help = WITH_EXIT_CODES)]
    With(WithArguments),
    /// Answer the questions of shaketable-mutants
    #[command(hide = true)]
    MutantRuns(MutantRunsArguments),
    /// Print the completions for a shell
    Completions(CompletionsArguments),
    /// Write the manual pages of this command
    Man(ManArguments),
    #[command(flatten)]
    Extra(Extra),
}

/// The faults of a run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Faults {
    /// The fault profile: calm, standard or storm [default: standard]
    #[arg(id = "faults", long = "faults", value_name = "PROFILE", value_parser = choose::profile)]
    pub profile: Option<Profile>,
    /// Switch a fault family off; may be repeated (see `list faults`)
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub without: Vec<String>,
}

impl Faults {
    /// The demands on each run.
    pub(super) fn demands(&self) -> Result<Demands, Refusal> {
        let without = choose::families(&self.without)?;
        Ok(Demands { profile: self.profile.unwrap_or_default(), without, ..Demands::default() })
    }
}

/// The options of a run of a workload in addition to its seed.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Shaking {
    #[command(flatten)]
    pub faults: Faults,
    /// Make each run N times as long, up to 100: N times the operations, and N times the time in which
    /// faults strike [default: 1]
    #[arg(long, value_name = "N", value_parser = choose::scale)]
    pub scale: Option<Scale>,
    /// Switch on this mutant of a program that shaketable-mutants has built
    #[arg(long, value_name = "N", hide = true)]
    pub mutant: Option<u32>,
}

impl Shaking {
    /// The demands on each run of these workloads.
    pub(super) fn demands<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a dyn Entry>,
    ) -> Result<Demands, Refusal> {
        let scale = self.scale.unwrap_or_default();
        if let Some(entry) = entries.into_iter().find(|entry| !scale.is_usual() && !entry.grows()) {
            refuse!("{} has no longer runs, because it has no Workload::length: omit --scale", entry.name());
        }
        Ok(Demands { scale, mutant: self.mutant, ..self.faults.demands()? })
    }

    /// Whether it says anything that a repro file determines.
    pub(super) fn is_given(&self) -> bool {
        self.faults.profile.is_some()
            || !self.faults.without.is_empty()
            || self.scale.is_some()
            || self.mutant.is_some()
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct MutantRunsArguments {
    #[command(flatten)]
    pub faults: Faults,
}

#[derive(Clone, Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ManArguments {
    /// The folder for the pages, which exists
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(super) struct RunArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B [default: 200, or N of
    /// --check-determinism]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Count the seeds from a number drawn from this text, such as the date, so that sweeps with
    /// different texts have no seed in common
    #[arg(long, value_name = "TEXT", value_parser = seeds::fresh_text)]
    pub fresh: Option<String>,
    /// The number of threads [default: one per processor, four per processor with a real cluster]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// Start no further seed after this time: 60s, 5m, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug that every selected workload has (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Run the first N seeds of each workload twice and compare every event [default: 2 on simulated
    /// clusters]
    #[arg(long, value_name = "N", value_parser = choose::at_least_one)]
    pub check_determinism: Option<u64>,
    /// Run only share I of N of the seeds; I starts at 1
    #[arg(long, value_name = "I/N", value_parser = choose::shard)]
    pub shard: Option<(u64, u64)>,
    /// Fail as vacuous (exit code 4) if a coverage point of a workload was never reached
    #[arg(long)]
    pub require_points: bool,
    /// Replay the regressions in this folder first: a folder of repro files for each workload. Not with
    /// --bug, nor on a real cluster; of several shards, the first one replays them [default:
    /// tests/regressions, if it exists]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["bug", "no_regressions"])]
    pub regressions: Option<PathBuf>,
    /// Replay no regressions
    #[arg(long)]
    pub no_regressions: bool,
    /// Fail if a regression cannot be replayed because its version or its operations have changed
    #[arg(long)]
    pub strict_regressions: bool,
    /// Continue the sweep of this report, which is not complete, and report on the whole sweep
    #[arg(long, value_name = "REPORT", conflicts_with_all = [
        "workloads", "seeds", "fresh", "faults", "without", "scale", "bug", "check_determinism", "shard", "regressions",
        "no_regressions", "strict_regressions"
    ])]
    pub resume: Option<PathBuf>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as JUnit XML: a workload is a suite, a failing seed a test case; - for standard
    /// output
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Do not shrink the first failure of each workload
    #[arg(long)]
    pub no_shrink: bool,
    /// Shrink the first failure of each workload for at most this CPU time: 10s, 2m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// Add the failures to the list in this JSON file, which is made if it does not exist (see `report
    /// failures`)
    #[arg(long, value_name = "FILE")]
    pub failures: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

#[derive(Clone, Debug, Args)]
pub(super) struct WatchArguments {
    #[command(flatten)]
    pub run: RunArguments,
    /// The port of the page on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Serve the last state of the page until Ctrl-C; otherwise the command ends with the sweep
    #[arg(long)]
    pub stay: bool,
    /// Print the data of the page to standard output, as one line of JSON whenever something has
    /// changed, at most one a second; the text goes to standard error
    #[arg(long)]
    pub json_lines: bool,
}

/// What `--trace` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Trace {
    /// Operations, their transactions' reads and writes, conflicts and faults
    Operations,
    /// Every event of the simulated cluster
    Cluster,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ReplayArguments {
    /// The workload, or a repro file
    #[arg(value_name = "WORKLOAD|REPRO-FILE")]
    pub what: String,
    /// The seed; not for a repro file
    #[arg(value_name = "SEED", allow_negative_numbers = true, value_parser = seeds::seed)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Print the operations, reads and writes, conflicts and faults first; `--trace=cluster` prints
    /// every event of the simulated cluster instead
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, hide_possible_values = true, default_missing_value = "operations")]
    pub trace: Option<Trace>,
    /// Print also what was drawn, what happened, and which faults struck
    #[arg(long, short)]
    pub verbose: bool,
    /// Write the plan to a repro file, which can be edited and replayed
    #[arg(long, short, value_name = "REPRO-FILE")]
    pub output: Option<PathBuf>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ShrinkArguments {
    /// The workload, or a repro file
    #[arg(value_name = "WORKLOAD|REPRO-FILE")]
    pub what: String,
    /// The seed; not for a repro file
    #[arg(value_name = "SEED", allow_negative_numbers = true, value_parser = seeds::seed)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// End with the smallest plan so far after this CPU time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// End with the smallest plan so far after this many runs
    #[arg(long, value_name = "N", value_parser = choose::at_least_one, default_value_t = REPLAYS)]
    pub replays: u64,
    /// Then tell when the failure became certain: run the shrunk plan again with other chance from a
    /// moment on, 25 times for each of many moments, within --shrink-budget once more
    #[arg(long)]
    pub when: bool,
    /// The number of threads for --when [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs, requires = "when")]
    pub jobs: Option<usize>,
    /// Print also what was drawn, what happened, and which faults struck
    #[arg(long, short)]
    pub verbose: bool,
    /// Write the shrunk plan to this file [default: in target/shaketable]
    #[arg(long, short, value_name = "REPRO-FILE")]
    pub output: Option<PathBuf>,
    /// Write the report of the shrunk run as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ExploreArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B, of whose plans a few operations at a time
    /// are explored [default: 12]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Start no further run of a workload, or of a planted bug, after this time: 60s, 5m [default: 30s,
    /// or 10s with --bugs]
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
    /// The number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// Switch on a planted bug that every selected workload has (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Explore with each planted bug of the workloads until it is found, and print which were
    #[arg(long, conflicts_with = "bug")]
    pub bugs: bool,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct AdviseArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B [default: 20]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// The number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// The fault profile: calm, standard or storm; the guidelines are about traffic without faults
    /// [default: calm]
    #[arg(long, value_name = "PROFILE", value_parser = choose::profile)]
    pub faults: Option<Profile>,
    /// Switch on a planted bug that every selected workload has (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct BugsArguments {
    /// The workloads with the planted bugs; `cluster` for those of the simulated cluster [default: all
    /// of this program]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Only the bug with this name; may be repeated (see `list bugs`)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub bug: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B, to try on each bug before it counts as
    /// missed [default: 500, or 20 with a real cluster]
    #[arg(long, alias = "max-seeds", value_name = "N|A..B", allow_negative_numbers = true)]
    #[arg(value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Try this seed on a bug before the others, because it caught it before: queue/interleaved=2; may be
    /// repeated
    #[arg(long, value_name = "BUG=SEED", value_delimiter = ',', value_parser = First::parse)]
    pub first: Vec<First>,
    /// Start no further seed after this time: 60s, 5m, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
    /// Shrink the run that catches a bug, and print how much of it is needed
    #[arg(long)]
    pub shrink: bool,
    /// Try only share I of N of the bugs; I starts at 1
    #[arg(long, value_name = "I/N", value_parser = choose::shard)]
    pub shard: Option<(u64, u64)>,
    /// The number of threads [default: one per processor, four per processor with a real cluster]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as JUnit XML: a workload is a suite, a planted bug a test case; - for standard
    /// output
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub backend: BackendArguments,
}

#[derive(Clone, Debug, Subcommand)]
pub(super) enum ReportCommand {
    /// Merge the reports of all shards of a sweep into the report of the whole sweep
    #[command(after_help = EXIT_CODES)]
    Merge(MergeArguments),
    /// Add the failures of sweeps to a list with an entry for each workload, seed, faults and judge
    #[command(after_help = failures::HELP)]
    Failures(FailuresArguments),
}

#[derive(Clone, Debug, Args)]
pub(super) struct MergeArguments {
    /// The JSON reports of the shards, each shard once, in any order
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Fail as vacuous (exit code 4) if a coverage point of a workload was never reached by any shard
    #[arg(long)]
    pub require_points: bool,
    /// Also merge reports of different commits, versions, faults or checks
    #[arg(long)]
    pub force: bool,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as JUnit XML: a workload is a suite, a failing seed a test case; - for standard
    /// output
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Subcommands that write a report in several forms.
macro_rules! files {
    ($($arguments:ident),*) => {
        $(impl $arguments {
            /// The files of the report.
            pub(crate) fn files(&self) -> Files<'_> {
                let [json, junit, html] = [&self.json, &self.junit, &self.html].map(Option::as_deref);
                Files { json, junit, html, ..Files::default() }
            }
        })*
    };
}
files!(BugsArguments, MergeArguments);

impl RunArguments {
    /// The files of the report, and that of the list of failures.
    pub(super) fn files(&self) -> Files<'_> {
        let [json, junit, html, failures] =
            [&self.json, &self.junit, &self.html, &self.failures].map(Option::as_deref);
        Files { json, junit, html, failures, ..Files::default() }
    }
}

impl ReplayArguments {
    /// Whether the events of the run are needed.
    pub(super) fn keeps_trace(&self) -> bool {
        self.trace.is_some() || self.html.is_some()
    }

    /// The files of the report, and that of the plan.
    pub(super) fn files(&self) -> Files<'_> {
        let [json, html, plan] = [&self.json, &self.html, &self.output].map(Option::as_deref);
        Files { json, html, plan, ..Files::default() }
    }
}

/// The things that can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Listing {
    Workloads,
    Faults,
    Bugs,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ListArguments {
    /// What to list [default: everything]
    pub what: Option<Listing>,
    /// The workloads with the planted bugs; `cluster` for those of the simulated cluster [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct BenchArguments {
    /// Measure only runs of these workloads [default: those of all, and what else the program measures]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B [default: 200, or 40 with --against]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    /// Measure runs with this build of the command and with another one alternately, and print how much
    /// faster this one is
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
    /// How often each workload is measured with each of the two programs
    #[arg(long, value_name = "N", requires = "against", value_parser = choose::at_least_one, default_value_t = 6)]
    pub rounds: u64,
    /// Write the figures as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct NewArguments {
    /// The name of the crate and of its folder
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of shaketable's sources [default: those that this program was built from]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Depend on released versions instead of sources
    #[arg(long, conflicts_with = "path")]
    pub released: bool,
}

#[derive(Clone, Debug, Args)]
pub(super) struct ServeArguments {
    /// The seed of the cluster
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = seeds::seed)]
    #[arg(default_value_t = 0)]
    pub seed: u64,
    /// The fault profile: calm, standard or storm [default: calm, as in a process of its own]
    #[arg(long, value_name = "PROFILE", value_parser = choose::profile)]
    pub faults: Option<Profile>,
    /// Switch a fault family off; may be repeated (see `list faults`)
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub without: Vec<String>,
    /// How much of its history the cluster keeps before it is judged, megabytes
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 1_000)]
    pub memory: u32,
    /// Numbers of machines and copies that are not drawn: storage_servers=5,replicas=3
    #[arg(long, value_name = "NAME=N,..", value_parser = Topology::parse)]
    pub topology: Option<Topology>,
    /// Where to listen: HOST:PORT, where port 0 is any that is free, or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: Address,
    /// Listen at an address that other machines can reach: whoever connects can use the cluster
    #[arg(long)]
    pub public: bool,
    /// Write a cluster file that names the server; it is removed in the end
    #[arg(long, value_name = "FILE")]
    pub cluster_file: Option<PathBuf>,
    /// Write the report to a file; - for standard output, as without it
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Begin with the data of this snapshot
    #[arg(long, value_name = "FILE")]
    pub restore: Option<PathBuf>,
    /// Write a snapshot of the data in the end: what `--restore` reads; - for standard output
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct WithArguments {
    /// The number of seeds from 0, or a range that excludes B [default: 50]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    #[command(flatten)]
    pub faults: Faults,
    /// The folder of libfdb_c.so [default: that of this program]
    #[arg(long, value_name = "DIR")]
    pub library: Option<PathBuf>,
    /// A run fails if it takes longer than this: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub timeout: Option<Duration>,
    /// Let the threads of a program run one at a time between their calls, in an order that the seed
    /// chooses, so that a seed repeats the run of most programs with several threads
    #[arg(long)]
    pub one_at_a_time: bool,
    /// Show the program virtual time in place of the clock, so that sleeping takes no time and a seed repeats
    /// what it sees; needs libshaketable_time.so beside libfdb_c.so
    #[arg(long)]
    pub time: bool,
    /// Write a page about the failing run, as HTML, for who maintains the program
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Let every run write to the terminal, instead of showing the output of the one that fails
    #[arg(long)]
    pub show_output: bool,
    /// The program and its arguments; it has no standard input
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Handles a clap error: help and version are printed, and everything else is refused in one line.
pub(super) fn handle(error: &clap::Error) -> Result<Conclusion, Refusal> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())?;
            Ok(Conclusion::Passed)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Refusal::Usage("a subcommand is missing: see --help".to_owned()))
        }
        _ => Err(Refusal::Usage(one_line(&error.render().to_string()))),
    }
}

/// The part of clap's message that describes what is wrong, with its hints in brackets.
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
    use crate::{
        command::{Nothing, fake::fake, parse},
        judge::finding::Verdict,
    };
    use clap::CommandFactory;

    #[test]
    fn only_a_workload_with_a_length_has_longer_runs() {
        let [sound, broken] = ["sound", "broken"].map(|name| fake(name, |_, _| Verdict::Passed));
        let three = Scale::try_from(3).expect("a scale");
        let demands = |scale, entry: &dyn Entry| Shaking { scale, ..Shaking::default() }.demands([entry]);
        assert_eq!(demands(Some(three), sound.as_ref()).expect("it grows").scale, three);
        assert_eq!(demands(None, broken.as_ref()).expect("it is as long as ever").scale, Scale::USUAL);
        let refusal = demands(Some(three), broken.as_ref()).expect_err("it does not grow").to_string();
        assert!(refusal.starts_with("broken has no longer runs"), "{refusal}");
        // A repro file or a report may say anything.
        for (text, is_scale) in [("0", false), ("1", true), ("100", true), ("101", false)] {
            assert_eq!(serde_json::from_str::<Scale>(text).is_ok(), is_scale, "{text}");
        }
    }

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
            &["shaketable", "bench", "--rounds", "2"],
        ] {
            let error = parse::<Nothing, _>(line.iter().copied()).expect_err("bad usage");
            let refusal = handle(&error).expect_err("refused").to_string();
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
            assert!(!refusal.contains("Usage"), "{refusal}");
        }
    }
}
