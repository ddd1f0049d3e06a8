//! `shaketable explore`: the outcomes and the orders of a few operations.

use super::{
    Refusal,
    args::Budget,
    backend::Backend,
    bugs::{self, Planted},
    caught, choose,
    conclude::{folder, make_folder, processors, settle},
    cost,
    interrupt::Interrupt,
    output::{self, Target},
    program,
    progress::Progress,
    report::Origin,
};
use crate::{
    judge::finding::Accused,
    run::plan::Demands,
    search::entry::Entry,
    search::explore::{Exploration, Failure, Found, Part, Subject},
    search::seeds,
};
use clap::Args;
use shaketable_reports::{
    Body, Catch, Conclusion, Ending, ExploreReport, ExploredFailure, ExploredPart, ExploredWorkload, text,
};
use shaketable_sim::seed::Seed;
use std::{
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, Debug, Default, Args)]
#[command(mut_arg("budget", |budget| budget.help(BUDGET_HELP)))]
pub(super) struct ExploreArguments {
    /// The workloads [default: all]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The number of seeds from 0, or a range that excludes B, of whose plans a few operations at a time
    /// are explored [default: 12]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    #[command(flatten)]
    pub budget: Budget,
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

/// The seeds whose plans are explored, unless told otherwise.
const SEEDS: Range<u64> = 0..12;

/// The time for a workload, and for a planted bug.
const BUDGET: Duration = Duration::from_secs(30);
const BUDGET_OF_A_BUG: Duration = Duration::from_secs(10);
/// What `--budget` is here.
const BUDGET_HELP: &str = "Start no further run of a workload, or of a planted bug, after this time: 60s, 5m [default: 30s, \
                           or 10s with --bugs]";
/// The most seeds with drawn faults for a planted bug that was not found.
const SEEDS_OF_A_BUG: u64 = 500;
/// What is explored: a workload with these demands.
struct Piece<'a> {
    entry: &'a dyn Entry,
    demands: Demands,
    /// The planted bug that is to be found.
    sought: Option<Planted>,
}

/// Explores, and prints and writes the report.
pub(super) fn explore(arguments: &ExploreArguments) -> Result<Conclusion, Refusal> {
    let entries = choose::workloads(&arguments.workloads)?;
    let pieces = pieces(&entries, arguments)?;
    if !arguments.bugs {
        make_folder()?;
    }
    let json = Target::check_named(arguments.json.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let report = perform(&entries, &pieces, arguments, &interrupt)?;
    let outcome = report.outcome();
    let interrupted = (report.ending == Ending::Interrupted).then(|| {
        let runs = report.workloads.iter().map(|workload| workload.sum(|part| part.ran)).sum();
        interrupt.refusal(&format!("after {}", text::plural(runs, "run", "runs")))
    });
    let printed = text::explore(&report, program().commit);
    let written = output::publish(&printed, json.as_ref(), Body::Explore(report));
    settle(outcome, written, interrupted)
}

/// The workloads, each without a planted bug or with the one that was named, or with each of its planted
/// bugs.
fn pieces<'a>(
    entries: &'a [Box<dyn Entry>],
    arguments: &ExploreArguments,
) -> Result<Vec<Piece<'a>>, Refusal> {
    let mut pieces = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let entry = entry.as_ref();
        if arguments.bugs {
            pieces.extend(entry.bugs().iter().map(|bug| {
                let planted = Planted::of(number, entry, bug, &Demands::default());
                Piece { entry, demands: planted.demands.clone(), sought: Some(planted) }
            }));
        } else {
            let mut demands = Demands::default();
            if let Some(bug) = &arguments.bug {
                choose::plant(&mut demands, entry, bug)?;
            }
            pieces.push(Piece { entry, demands, sought: None });
        }
    }
    Ok(pieces)
}

fn perform(
    entries: &[Box<dyn Entry>],
    pieces: &[Piece<'_>],
    arguments: &ExploreArguments,
    interrupt: &Interrupt,
) -> Result<ExploreReport, Refusal> {
    let meter = cost::Meter::start();
    let seeds = arguments.seeds.clone().unwrap_or(SEEDS);
    let (what, failed) = match arguments.bugs {
        true => (("planted bug", "planted bugs"), "found"),
        false => (("workload", "workloads"), "failed"),
    };
    let mut progress = Progress::new(&[("explored", pieces.len() as u64)], what, failed);
    let mut workloads = Vec::new();
    for piece in pieces.iter().take_while(|_| !interrupt.is_set()) {
        let mut explored = explored(piece, seeds.clone(), arguments, interrupt, &mut progress)?;
        if let Some(planted) = piece.sought.as_ref().filter(|_| explored.found().is_none()) {
            explored.drawn = drawn(entries, planted, arguments, interrupt);
        }
        progress.done(0, explored.failures.is_empty());
        workloads.push(explored);
    }
    progress.end();
    let ending = match interrupt.is_set() {
        true => Ending::Interrupted,
        false if workloads.iter().any(|workload| workload.stopped) => Ending::Budget,
        false => Ending::Complete,
    };
    Ok(ExploreReport { seeds, bugs: arguments.bugs, ending, workloads, cost: meter.cost() })
}

/// Explores the plans of some seeds of a workload.
fn explored(
    piece: &Piece<'_>,
    seeds: Range<u64>,
    arguments: &ExploreArguments,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<ExploredWorkload, Refusal> {
    let meter = cost::Meter::start();
    let budget = if arguments.bugs { BUDGET_OF_A_BUG } else { BUDGET };
    let deadline = cost::deadline(arguments.budget.budget.unwrap_or(budget));
    let stop = || interrupt.is_set() || cost::is_past(deadline);
    let subjects: Vec<Box<dyn Subject>> =
        seeds.take_while(|_| !stop()).map(|seed| piece.entry.subject(Seed(seed), &piece.demands)).collect();
    let exploration = Exploration {
        subjects: &subjects,
        jobs: arguments.jobs.unwrap_or_else(processors),
        only_first: arguments.bugs,
        stop: &stop,
    };
    let found = exploration.perform(&mut |_| progress.tick());
    report(piece, &found, (!arguments.bugs).then(folder), meter.cost().cpu_ns)
}

/// A run with drawn faults that catches a planted bug, and what remains of it.
fn drawn(
    entries: &[Box<dyn Entry>],
    planted: &Planted,
    arguments: &ExploreArguments,
    interrupt: &Interrupt,
) -> Option<Catch> {
    let deadline = cost::deadline(arguments.budget.budget.unwrap_or(BUDGET_OF_A_BUG));
    let stop = || interrupt.is_set() || cost::is_past(deadline);
    let mut catch =
        bugs::try_seeds(entries, planted, 0..SEEDS_OF_A_BUG, &Backend::Simulated, interrupt, &stop).caught?;
    catch.shrunk = caught::shrunk(entries, &planted.demands, &catch, interrupt);
    Some(catch)
}

/// The report of an exploration. The plans that fail are written into the folder, if there is one.
fn report(
    piece: &Piece<'_>,
    found: &Found,
    folder: Option<PathBuf>,
    cpu_ns: u64,
) -> Result<ExploredWorkload, Refusal> {
    let part = |part: &Part| {
        let tally = found.tallies.get(part).copied().unwrap_or_default();
        ExploredPart {
            part: part.name().to_owned(),
            known: tally.known,
            ran: tally.ran,
            impossible: tally.impossible,
            failed: tally.failed,
        }
    };
    let mut failures = Vec::new();
    for (number, failure) in found.failures.iter().enumerate() {
        let replay = match &folder {
            Some(folder) => Some(write(
                piece,
                failure,
                &folder.join(format!("explore-{}-{number}.json", piece.entry.name())),
            )?),
            None => None,
        };
        failures.push(ExploredFailure {
            part: failure.part.name().to_owned(),
            seed: failure.seed.0,
            what: failure.what.clone(),
            judge: failure.finding.kind.name().to_owned(),
            message: failure.finding.message.clone(),
            harness: failure.finding.kind.accused() == Accused::Harness,
            replay,
        });
    }
    Ok(ExploredWorkload {
        workload: piece.entry.name().to_owned(),
        bug: choose::planted(&piece.demands).map(str::to_owned),
        kinds: found.kinds.0 as u64,
        kinds_drawn: found.kinds.1 as u64,
        parts: Part::ALL.iter().map(part).collect(),
        failures,
        stopped: found.stopped,
        drawn: None,
        cpu_ns,
    })
}

/// Writes the plan of a failure, and returns the command line that replays it.
fn write(piece: &Piece<'_>, failure: &Failure, path: &Path) -> Result<String, Refusal> {
    Target::check(path)?.write(&failure.repro)?;
    let shown = path.to_string_lossy();
    let origin = Origin {
        repro: Some(&shown),
        ..Origin::of(piece.entry.name(), failure.seed.0, &piece.demands, &Backend::Simulated)
    };
    Ok(origin.replay_line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::fake::fake, judge::finding::Verdict};

    fn arguments(bugs: bool) -> ExploreArguments {
        ExploreArguments { seeds: Some(0..2), jobs: Some(2), bugs, ..ExploreArguments::default() }
    }

    fn performed(entry: Box<dyn Entry>, bugs: bool, interrupt: &Interrupt) -> ExploreReport {
        let (entries, arguments) = ([entry], arguments(bugs));
        let pieces = pieces(&entries, &arguments).expect("pieces");
        perform(&entries, &pieces, &arguments, interrupt).expect("a report")
    }

    #[test]
    fn every_outcome_and_order_is_counted() {
        let report = performed(fake("sound", |_, _| Verdict::Passed), false, &Interrupt::default());
        assert_eq!((report.outcome(), report.ending), (Conclusion::Passed, Ending::Complete));
        let part = |name: &str| {
            let part = report.workloads[0].part(name);
            (part.known, part.ran, part.impossible, part.failed)
        };
        // Two seeds with four operations of one transaction each. A fake operation cannot be dropped, and its
        // client cannot die: 14 ends of each of 8 commits, two of them deaths, and 8 drops at 8 polls each.
        assert_eq!(part("outcome"), (112 + 64, 112 + 64, 16 + 64, 0));
        // In each seed Read and Read, Write and Write, and Read and Write in both ways: six orders of each.
        // The first of each kind also has what was done before.
        assert_eq!(part("order"), (48 + 36, 48 + 36, 0, 0));
        // After each of 12 ends of a commit, 14 of each of the later ones: of 3, 2, 1 and 0 in each seed.
        assert_eq!(part("two-outcomes"), (2_016, 2_016, 288, 0));
        assert_eq!(part("order-of-three"), (0, 0, 0, 0));
        assert_eq!((report.workloads[0].kinds, report.workloads[0].kinds_drawn), (2, 2));
    }

    #[test]
    fn a_planted_bug_is_explored_until_it_is_found() {
        let ends = |seed: u64, demands: &Demands| match demands.bug.as_deref() {
            Some("early") if seed == 1 => Verdict::Violated,
            Some("late") if seed == 40 => Verdict::Violated,
            _ => Verdict::Passed,
        };
        let report = performed(fake("one", ends), true, &Interrupt::default());
        assert_eq!((report.outcome(), report.found()), (Conclusion::Passed, 1));
        let [early, late] = &report.workloads[..] else { panic!("two planted bugs") };
        let failure = &early.failures[0];
        assert_eq!((failure.seed, failure.part.as_str(), failure.judge.as_str()), (1, "outcome", "model"));
        assert_eq!(failure.what, "commit 0 of operation 0 of client 0 is applied, and unknown (1021)");
        assert_eq!((failure.replay.as_deref(), late.failures.len()), (None, 0));
        assert!(early.explored() < late.explored());
        // What is not found is searched with drawn faults.
        let seed = |bug: &ExploredWorkload| bug.drawn.as_ref().map(|drawn| drawn.seed);
        assert_eq!((seed(early), seed(late)), (None, Some(40)));
    }

    #[test]
    fn nothing_to_explore_is_vacuous_and_an_interrupt_ends_it() {
        let empty = performed(fake("empty", |_, _| Verdict::Passed), false, &Interrupt::default());
        assert_eq!(empty.outcome(), Conclusion::Vacuous);
        let report = performed(fake("sound", |_, _| Verdict::Passed), false, &Interrupt::already());
        assert_eq!((report.outcome(), report.workloads.len()), (Conclusion::Interrupted, 0));
    }
}
