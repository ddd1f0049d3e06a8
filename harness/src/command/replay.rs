//! `shaketable replay`: repeats one run, from its seed or from a repro file.

use super::{
    Refusal, advise,
    args::Subject,
    backend::{Backend, BackendArguments},
    choose,
    conclude::settle,
    files::Files,
    interrupt::Interrupt,
    output::{self, Outputs, Target},
    program, refuse,
    report::Origin,
};
use crate::{
    judge::panics::print_panics,
    run::{
        plan::{self, PlanError},
        runner::RunResult,
    },
    search::entry::{Entry, Kept},
};
use clap::{Args, ValueEnum};
use shaketable_reports::{
    Body, Conclusion, RunReport,
    text::{self, Details},
};
use shaketable_sim::seed::Seed;
use std::path::PathBuf;

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
    #[command(flatten)]
    pub subject: Subject,
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

/// Performs the run, and prints and writes the report.
pub(super) fn replay(arguments: &ReplayArguments) -> Result<Conclusion, Refusal> {
    print_panics();
    let mut outputs = Outputs::check(arguments.files())?;
    let repro = Target::check_named(arguments.output.as_deref())?;
    if arguments.backend.is_real()?
        && (arguments.subject.seed.is_none() || arguments.trace == Some(Trace::Cluster))
    {
        refuse!("--backend fdb requires a seed, and shows no events of its cluster: omit --trace=cluster");
    }
    let backend =
        Backend::open(&arguments.backend, arguments.subject.shaking.faults.profile.unwrap_or_default())?;
    let wants_plan = outputs.has_page() || repro.is_some();
    let Replayed { entry, mut result, mut report, plan } = match arguments.subject.seed {
        Some(seed) => from_seed(arguments, seed, &backend, wants_plan)?,
        None => from_file(arguments)?,
    };
    let transcript = (arguments.trace == Some(Trace::Operations))
        .then(|| result.history.as_deref().map_or_else(String::new, text::transcript));
    if outputs.has_page() {
        report.history = result.history.take();
        report.plan = serde_json::from_str(&plan).ok();
        if backend.is_simulated() {
            outputs.advice = advise::for_page(&outputs, [entry.as_ref()], 1, &Interrupt::default());
        }
    }
    if let Some(transcript) = transcript {
        output::print(&format!("{transcript}\n"))?;
    }
    if arguments.trace == Some(Trace::Cluster) {
        let events = result.trace.iter().fold(String::new(), |events, event| events + &format!("{event}\n"));
        output::print(&(events + "\n"))?;
    }
    let outcome = report.verdict.outcome();
    let printed = text::replay(&report, program().commit, Details::of(arguments.verbose));
    let saved = match &repro {
        Some(repro) => repro.write(&plan),
        None => Ok(()),
    };
    if let (Ok(()), Some(path)) = (&saved, &arguments.output) {
        output::print_error(&format!("plan in {}", path.display()));
    }
    let published = outputs.publish(&printed, program().commit, Body::Replay(Box::new(report)));
    let written = saved.and(published);
    settle(outcome, written, None)
}

struct Replayed {
    entry: Box<dyn Entry>,
    result: RunResult,
    report: RunReport,
    /// The plan as a repro file; empty if nobody wants it.
    plan: String,
}

/// Replays a seed.
fn from_seed(
    arguments: &ReplayArguments,
    seed: u64,
    backend: &Backend,
    wants_plan: bool,
) -> Result<Replayed, Refusal> {
    let (entry, demands) = arguments.subject.workload()?;
    let interrupt = match backend.is_simulated() {
        true => Interrupt::default(),
        false => Interrupt::listen()?,
    };
    let stop = || interrupt.is_set();
    let trace = arguments.keeps_trace();
    let (result, summary, plan) = match backend.replay(entry.as_ref(), Seed(seed), &demands, trace, &stop) {
        Some(Kept { result, summary, plan }) => (result, summary, wants_plan.then(plan).unwrap_or_default()),
        None => return Err(interrupt.refusal("before the end of the run")),
    };
    let report = Origin::of(entry.name(), seed, &demands, backend).report(&result, summary);
    Ok(Replayed { entry, result, report, plan })
}

/// A repro file, and its workload.
pub(super) struct Source {
    pub(super) entry: Box<dyn Entry>,
    pub(super) repro: String,
}

/// Reads a repro file. It determines the faults and the planted bug.
pub(super) fn read(Subject { what: path, shaking, bug, .. }: &Subject) -> Result<Source, Refusal> {
    let repro = match std::fs::read_to_string(path) {
        Ok(repro) => repro,
        Err(_) if !path.contains(['/', '.']) => {
            choose::workload(path)?;
            refuse!("to replay the workload {path}, a seed is required")
        }
        Err(error) => refuse!("cannot read {path}: {error}"),
    };
    if shaking.is_given() || bug.is_some() {
        refuse!(
            "{path} determines the faults, the scale and the planted bug: omit --faults, --without, --scale and --bug"
        );
    }
    let workload = plan::workload_of(&repro).map_err(|error| Refusal::Usage(format!("{path}: {error}")))?;
    let entry =
        choose::workload(&workload).map_err(|refusal| Refusal::Usage(format!("{path}: {refusal}")))?;
    Ok(Source { entry, repro })
}

/// Replays a repro file.
fn from_file(arguments: &ReplayArguments) -> Result<Replayed, Refusal> {
    let path = &arguments.subject.what;
    let Source { entry, repro } = read(&arguments.subject)?;
    let refusal = |error: PlanError| Refusal::Usage(format!("{path}: {error}"));
    let head = entry.head(&repro).map_err(refusal)?;
    let result = entry.replay(&repro, arguments.keeps_trace()).map_err(refusal)?;
    let origin = Origin {
        repro: Some(path),
        ..Origin::of(entry.name(), head.seed, &head.demands, &Backend::Simulated)
    };
    let report = origin.report(&result, head.summary);
    Ok(Replayed { entry, result, report, plan: repro })
}
