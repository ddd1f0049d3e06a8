//! `shaketable advise`: what the documents' guidelines say about the traffic of workloads.

use super::{
    Refusal, choose,
    conclude::{processors, settle},
    cost,
    interrupt::Interrupt,
    output::{self, Outputs, Target},
    program,
    progress::Progress,
};
use crate::{
    advice::{self, Asked},
    run::plan::Demands,
    search::{entry::Entry, seeds},
};
use clap::Args;
use shaketable_reports::{AdviceReport, Body, Conclusion, Ending, WorkloadAdvice, text};
use shaketable_sim::faults::Profile;
use std::{ops::Range, path::PathBuf};

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

/// The seeds that are run, unless told otherwise.
const SEEDS: Range<u64> = 0..20;

/// Runs the workloads, and prints and writes the report. Advice is no verdict: the exit code is 0.
pub(super) fn advise(arguments: &AdviseArguments) -> Result<Conclusion, Refusal> {
    let entries = choose::workloads(&arguments.workloads)?;
    let pieces = pieces(&entries, arguments)?;
    let json = Target::check_named(arguments.json.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let report = perform(&pieces, arguments, &interrupt);
    let interrupted = (report.ending == Ending::Interrupted).then(|| {
        let runs = report.workloads.iter().map(|workload| workload.runs).sum();
        interrupt.refusal(&format!("after {}", text::plural(runs, "run", "runs")))
    });
    let printed = text::advice(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Advice(report));
    settle(Conclusion::Passed, written, interrupted)
}

/// The seeds that are run for the advice on a page.
const SEEDS_OF_PAGE: Range<u64> = 0..5;

/// The advice for an HTML page on these workloads; none if there is no page.
pub(super) fn for_page<'a>(
    outputs: &Outputs,
    entries: impl IntoIterator<Item = &'a dyn Entry>,
    jobs: usize,
    interrupt: &Interrupt,
) -> Vec<WorkloadAdvice> {
    if !outputs.has_page() {
        return Vec::new();
    }
    let demands = Demands { profile: Profile::Calm, ..Demands::default() };
    let stop = || interrupt.is_set();
    let asked = || Asked { seeds: SEEDS_OF_PAGE, demands: &demands, jobs, stop: &stop };
    let entries = entries.into_iter().take_while(|_| !interrupt.is_set());
    entries.map(|entry| advice::advise(entry, &asked(), &mut |_| ())).collect()
}

/// The workloads, each with the demands on its runs.
fn pieces<'a>(
    entries: &'a [Box<dyn Entry>],
    arguments: &AdviseArguments,
) -> Result<Vec<(&'a dyn Entry, Demands)>, Refusal> {
    let mut pieces = Vec::new();
    for entry in entries {
        let profile = arguments.faults.unwrap_or(Profile::Calm);
        let mut demands = Demands { profile, ..Demands::default() };
        if let Some(bug) = &arguments.bug {
            choose::plant(&mut demands, entry.as_ref(), bug)?;
        }
        pieces.push((entry.as_ref(), demands));
    }
    Ok(pieces)
}

fn perform(
    pieces: &[(&dyn Entry, Demands)],
    arguments: &AdviseArguments,
    interrupt: &Interrupt,
) -> AdviceReport {
    let meter = cost::Meter::start();
    let seeds = arguments.seeds.clone().unwrap_or(SEEDS);
    let size = seeds.end - seeds.start;
    let parts: Vec<(&str, u64)> = pieces.iter().map(|(entry, _)| (entry.name(), size)).collect();
    let mut progress = Progress::new(&parts, ("run", "runs"), "failed");
    let mut workloads = Vec::new();
    for (number, (entry, demands)) in pieces.iter().enumerate().take_while(|_| !interrupt.is_set()) {
        let asked = Asked {
            seeds: seeds.clone(),
            demands,
            jobs: arguments.jobs.unwrap_or_else(processors),
            stop: &|| interrupt.is_set(),
        };
        let advice = advice::advise(*entry, &asked, &mut |ended| match ended {
            true => progress.done(number, true),
            false => progress.tick(),
        });
        workloads.push(advice);
    }
    progress.end();
    let ending = if interrupt.is_set() { Ending::Interrupted } else { Ending::Complete };
    AdviceReport {
        seeds,
        faults: choose::name_of(arguments.faults.unwrap_or(Profile::Calm)).to_owned(),
        ending,
        workloads,
        cost: meter.cost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::fake::fake, judge::finding::Verdict};

    fn arguments(jobs: usize) -> AdviseArguments {
        AdviseArguments {
            workloads: Vec::new(),
            seeds: Some(3..8),
            jobs: Some(jobs),
            faults: None,
            bug: None,
            json: None,
        }
    }

    #[test]
    fn every_seed_is_observed_and_calm_unless_asked() {
        let ends = |seed: u64, demands: &Demands| match (seed, demands.profile) {
            (3 | 5, Profile::Calm) => Verdict::Violated,
            _ => Verdict::Passed,
        };
        let entries = [fake("one", ends), fake("two", |_, _| Verdict::Passed)];
        let arguments = arguments(2);
        let report =
            perform(&pieces(&entries, &arguments).expect("pieces"), &arguments, &Interrupt::default());
        assert_eq!((report.faults.as_str(), report.ending), ("calm", Ending::Complete));
        let [one, two] = &report.workloads[..] else { panic!("two workloads") };
        assert_eq!((one.workload.as_str(), one.runs, one.failed), ("one", 5, 2));
        assert_eq!((two.runs, two.failed, two.bug.as_deref()), (5, 0, None));
    }

    #[test]
    fn an_unknown_bug_is_refused_and_an_interrupt_ends_it() {
        let entries = [fake("one", |_, _| Verdict::Passed)];
        let unknown = AdviseArguments { bug: Some("nothing".to_owned()), ..arguments(1) };
        assert!(pieces(&entries, &unknown).is_err());
        let planted = AdviseArguments { bug: Some("late".to_owned()), ..arguments(1) };
        let planted = pieces(&entries, &planted).expect("a planted bug");
        let report = perform(&planted, &arguments(1), &Interrupt::already());
        assert_eq!((report.ending, report.workloads.len()), (Ending::Interrupted, 0));
        let report = perform(&planted, &arguments(1), &Interrupt::default());
        assert_eq!(report.workloads[0].bug.as_deref(), Some("late"));
    }
}
