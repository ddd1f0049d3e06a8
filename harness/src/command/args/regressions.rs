//! The arguments of `shaketable regressions`.

use super::{EXIT_CODES, Shaking};
use crate::command::choose;
use clap::{Args, Subcommand};
use std::{path::PathBuf, time::Duration};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RegressionsCommand {
    /// Add plans that fail: repro files, the failures of a report, or a seed, which is shrunk first
    Add(RegressionsAddArguments),
    /// List the regressions: how large they are, and what they broke
    List(RegressionsListArguments),
    /// Replay the regressions
    #[command(after_help = EXIT_CODES)]
    Check(RegressionsCheckArguments),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsAddArguments {
    /// Repro files and JSON reports of sweeps, or a workload and a seed
    #[arg(value_name = "FILE|REPORT|WORKLOAD SEED", required = true)]
    pub what: Vec<String>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug (see `list bugs`); only with a workload and a seed
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Also add plans of files that have a planted bug, and so fail in every sweep
    #[arg(long)]
    pub planted: bool,
    /// Also add plans that pass, because what they once broke is mended
    #[arg(long)]
    pub passing: bool,
    /// Do not shrink the plan of a seed
    #[arg(long)]
    pub no_shrink: bool,
    /// End shrinking with the smallest plan so far after this CPU time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// A note that is kept with the plans
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsListArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsCheckArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
    /// Fail if a regression cannot be replayed because its version or its operations have changed
    #[arg(long)]
    pub strict_regressions: bool,
    /// The number of threads [default: one per processor]
    #[arg(long, value_name = "N", value_parser = choose::jobs)]
    pub jobs: Option<usize>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
