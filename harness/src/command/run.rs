//! `shaketable run`, and the command without a subcommand: what its arguments ask for, as a sweep.

use super::{
    Refusal, advise,
    args::{RunArguments, Shaking},
    backend::{Backend, BackendArguments},
    choose,
    conclude::{FOLDER, settle},
    failures,
    interrupt::Interrupt,
    output::{self, Outputs},
    program, refuse,
    regressions::Regressions,
    resume::Earlier,
    shrink,
    sweep::Sweep,
};
use crate::{
    run::plan::Demands,
    search::{determinism, entry::Entry, seeds},
};
use shaketable_reports::{Body, Conclusion, Ending, SweepReport, text};
use std::{path::PathBuf, time::Duration};

/// The default number of seeds.
pub(super) const SEEDS: u64 = 200;
/// Sweeps every workload with the default options, and writes the report into the build folder.
pub(super) fn main_job() -> Result<Conclusion, Refusal> {
    if let Err(error) = std::fs::create_dir_all(FOLDER) {
        refuse!("cannot write {FOLDER}: {error}");
    }
    run(&RunArguments {
        workloads: Vec::new(),
        seeds: None,
        fresh: None,
        require_points: false,
        regressions: None,
        no_regressions: false,
        strict_regressions: false,
        failures: None,
        jobs: None,
        budget: None,
        shaking: Shaking::default(),
        bug: None,
        resume: None,
        check_determinism: None,
        shard: None,
        json: Some(PathBuf::from(FOLDER).join("report.json")),
        junit: None,
        no_shrink: false,
        shrink_budget: shrink::BUDGET,
        html: Some(PathBuf::from(FOLDER).join("report.html")),
        backend: BackendArguments::default(),
    })
}

/// Switches on a planted bug that each of these workloads must have.
fn plant(demands: &mut Demands, entries: &[Box<dyn Entry>], bug: &str) -> Result<(), Refusal> {
    entries.iter().try_for_each(|entry| choose::plant(demands, entry.as_ref(), bug))
}

/// Performs the sweep, and prints and writes the report.
pub(super) fn run(arguments: &RunArguments) -> Result<Conclusion, Refusal> {
    let prepared = Prepared::new(arguments)?;
    let report = prepared.sweep.perform(&prepared.interrupt);
    prepared.conclude(report)
}

/// A sweep that can begin: what it needs was checked.
pub(super) struct Prepared {
    pub(super) sweep: Sweep,
    pub(super) interrupt: Interrupt,
    list: Option<failures::List>,
}

impl Prepared {
    /// The sweep that the arguments ask for.
    pub(super) fn new(arguments: &RunArguments) -> Result<Prepared, Refusal> {
        let mut sweep = match &arguments.resume {
            Some(path) => Sweep::resumed(arguments, Earlier::read(path)?)?,
            None => Sweep::new(arguments)?,
        };
        if sweep.run_twice > 0 && arguments.backend.is_real()? {
            refuse!(
                "--check-determinism requires simulated clusters: runs on a real cluster are never identical"
            );
        }
        if sweep.share().len() == 0 {
            refuse!("this shard has no seeds: there are fewer seeds than shards");
        }
        sweep.outputs = Outputs::check(arguments.files())?;
        let list = arguments.failures.as_deref().map(failures::List::check).transpose()?;
        sweep.regressions = Regressions::choose(&sweep, arguments)?;
        sweep.backend = Backend::open(&arguments.backend, sweep.demands.profile)?;
        Ok(Prepared { sweep, interrupt: Interrupt::listen()?, list })
    }

    /// Prints and writes the report.
    pub(super) fn conclude(self, report: SweepReport) -> Result<Conclusion, Refusal> {
        let Prepared { mut sweep, interrupt, list } = self;
        let outcome = report.outcome;
        let interrupted = (report.ending == Ending::Interrupted).then(|| {
            let all = sweep.share().len().saturating_mul(sweep.entries.len() as u64);
            interrupt.refusal(&format!(
                "after {} of {}",
                text::count(report.runs()),
                text::plural(all, "run", "runs")
            ))
        });
        if sweep.backend.is_simulated() {
            let entries = sweep.entries.iter().map(AsRef::as_ref);
            sweep.outputs.advice = advise::for_page(&sweep.outputs, entries, sweep.jobs, &interrupt);
        }
        let printed = text::sweep(&report, program().commit);
        let listed = list.map_or(Ok(()), |list| list.add(&report, program().commit));
        let ended_by_outputs = report.ending == Ending::Unwritable;
        let mut written = sweep.outputs.publish(&printed, program().commit, Body::Sweep(report));
        if ended_by_outputs {
            written = written.and(Err(output::unwritable()));
        }
        let written = written.and(listed);
        settle(outcome, written, interrupted)
    }
}

/// The CPU time for which failures are shrunk, if they are.
fn shrink_budget(arguments: &RunArguments) -> Option<Duration> {
    (!arguments.no_shrink).then_some(arguments.shrink_budget)
}

impl Sweep {
    /// The sweep that the arguments ask for.
    fn new(arguments: &RunArguments) -> Result<Sweep, Refusal> {
        let entries = choose::workloads(&arguments.workloads)?;
        let mut demands = arguments.shaking.demands(entries.iter().map(Box::as_ref))?;
        if let Some(bug) = &arguments.bug {
            plant(&mut demands, &entries, bug)?;
        }
        let usually = if arguments.backend.is_real()? { 0 } else { determinism::USUALLY_TWICE };
        let run_twice = arguments.check_determinism.unwrap_or(usually);
        let range = arguments.seeds.clone().unwrap_or(0..arguments.check_determinism.unwrap_or(SEEDS));
        let seeds = match &arguments.fresh {
            None => Some(range),
            Some(text) => seeds::fresh(text, &range),
        };
        let Some(seeds) = seeds else { refuse!("the range of seeds is too long for --fresh") };
        Ok(Sweep {
            demands,
            fresh: arguments.fresh.clone(),
            require_points: arguments.require_points,
            shard: arguments.shard,
            run_twice,
            jobs: arguments.jobs.unwrap_or_else(|| arguments.backend.jobs()),
            budget: arguments.budget,
            shrink_budget: shrink_budget(arguments),
            ..Sweep::plain(entries, seeds)
        })
    }

    /// The remaining part of a sweep.
    fn resumed(arguments: &RunArguments, earlier: Earlier) -> Result<Sweep, Refusal> {
        let report = &earlier.report;
        if report.real != arguments.backend.is_real()? {
            refuse!("a sweep must be continued on the same kind of cluster, simulated or real");
        }
        let names: Vec<String> = report.workloads.iter().map(|w| w.workload.clone()).collect();
        let entries = choose::workloads(&names)?;
        let demands = earlier.demands(|demands, bug| plant(demands, &entries, bug))?;
        Ok(Sweep {
            fresh: report.fresh.clone(),
            require_points: arguments.require_points || report.require_points,
            shard: report.shard,
            run_twice: report.run_twice,
            demands,
            jobs: arguments.jobs.unwrap_or_else(|| arguments.backend.jobs()),
            budget: arguments.budget,
            shrink_budget: shrink_budget(arguments),
            ..Sweep::plain(entries, report.seeds.clone())
        }
        .continuing(earlier))
    }
}
