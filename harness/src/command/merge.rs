//! `shaketable report merge`: the reports of all shards of a sweep become the report of the whole sweep,
//! which is the one that a single sweep over all seeds writes, apart from its cost.

use super::{
    Refusal,
    args::Written,
    choose,
    conclude::settle,
    output::Outputs,
    refuse, report,
    resume::{Ran, Share},
    saved::Saved,
    tally::FAILURES_KEPT,
};
use crate::{judge::vacuous, run::plan::Demands};
use clap::Args;
use shaketable_reports::{Body, Conclusion, Cost, Ending, SweepReport, WorkloadReport, text};
use shaketable_sim::faults::{Family, Profile};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::PathBuf,
};

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
    #[command(flatten)]
    pub written: Written,
}

/// The maximum number of missing shards that are listed.
const MISSING_LISTED: usize = 10;

/// Merges the reports, and prints and writes the result.
pub(super) fn merge(arguments: &MergeArguments) -> Result<Conclusion, Refusal> {
    let outputs = Outputs::check(arguments.written.files())?;
    let mut merged = Merged { force: arguments.force, ..Merged::default() };
    arguments.reports.iter().try_for_each(|path| merged.add(Saved::read(path)?))?;
    let commit = merged.commits.join();
    let report = merged.finish(arguments.require_points)?;
    let outcome = report.outcome;
    let printed = text::sweep(&report, &commit);
    let written = outputs.publish(&printed, &commit, Body::Sweep(report));
    settle(outcome, written, None)
}

/// The shard of a report, starting at 1, and the number of shards.
fn shard_of(report: &SweepReport) -> (u64, u64) {
    report.shard.unwrap_or((1, 1))
}

/// The sum of the reports so far. A report is added and forgotten, so that thousands of them need the memory
/// of one.
#[derive(Default)]
struct Merged {
    /// Whether reports may differ in what can be forced.
    force: bool,
    /// The path of each report, by the number of its shard.
    shards: BTreeMap<u64, String>,
    /// The first report that was read, without its figures, and its path.
    first: Option<Saved>,
    /// The least number of a shard, and its folder of regressions.
    regressions: Option<(u64, Option<String>)>,
    commits: Distinct,
    faults: Distinct,
    profiles: BTreeSet<usize>,
    without: BTreeSet<String>,
    require_points: bool,
    strict_regressions: bool,
    run_twice: u64,
    jobs: u64,
    ending: Ending,
    cost: Cost,
    workloads: Vec<Whole>,
}

/// Different values of an option, each with the least number of a shard that has it.
#[derive(Default)]
struct Distinct(BTreeMap<String, u64>);

impl Distinct {
    fn add(&mut self, number: u64, value: &str) {
        match self.0.get_mut(value) {
            Some(least) => *least = number.min(*least),
            None => drop(self.0.insert(value.to_owned(), number)),
        }
    }

    /// The values in the order of the shards.
    fn join(&self) -> String {
        let mut values: Vec<(&u64, &str)> = self.0.iter().map(|(value, least)| (least, &**value)).collect();
        values.sort_unstable();
        values.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(" and ")
    }
}

/// The fault profiles, the mildest first.
const MILDER: [Profile; 3] = [Profile::Calm, Profile::Standard, Profile::Storm];

impl Merged {
    /// Adds a report of the same sweep, of a shard that was not added before.
    fn add(&mut self, saved: Saved) -> Result<(), Refusal> {
        let (number, of) = shard_of(&saved.report);
        if let Some(first) = &self.first {
            let (_, expected) = shard_of(&first.report);
            if of != expected {
                refuse!("{} is one of {expected} shards, and {} is one of {of}", first.shown, saved.shown);
            }
            if let Some(other) = self.shards.get(&number) {
                refuse!("{other} and {} overlap: both are shard {number} of {of}", saved.shown);
            }
            agree(first, &saved, self.force)?;
        }
        let ran = saved.ran()?;
        let report = &saved.report;
        let profile = choose::profile(&report.faults)
            .map_err(|e| Refusal::Usage(format!("{}: the fault profile {e}", saved.shown)))?;
        self.profiles.extend(MILDER.iter().position(|milder| *milder == profile));
        self.without.extend(report.without.iter().cloned());
        self.commits.add(number, &saved.commit);
        self.faults.add(number, &report.faults);
        if self.regressions.as_ref().is_none_or(|(least, _)| number < *least) {
            self.regressions = Some((number, report.regressions.clone()));
        }
        self.require_points |= report.require_points;
        self.strict_regressions |= report.strict_regressions;
        self.run_twice = self.run_twice.max(report.run_twice);
        self.jobs = self.jobs.max(report.jobs);
        self.ending = worse(self.ending, report.ending);
        self.cost = self.cost.and(report.cost);
        self.workloads.resize_with(report.workloads.len(), Whole::default);
        let share = Share::new(&report.seeds, report.shard);
        for ((whole, part), ran) in self.workloads.iter_mut().zip(&report.workloads).zip(ran) {
            whole.add(part);
            if ran != Ran::all(&share) {
                whole.gaps.insert(number, ran);
            }
        }
        self.shards.insert(number, saved.shown.clone());
        if self.first.is_none() {
            let workloads = saved
                .report
                .workloads
                .iter()
                .map(|part| WorkloadReport { workload: part.workload.clone(), ..WorkloadReport::default() });
            let report = SweepReport { workloads: workloads.collect(), ..saved.report };
            self.first = Some(Saved { report, ..saved });
        }
        Ok(())
    }

    /// What every shard was asked for: the mildest faults, without the families that any shard switched off.
    fn demands(&self, first: &SweepReport) -> Result<Demands, Refusal> {
        let profile = self.profiles.first().map(|mildest| MILDER[*mildest]).unwrap_or_default();
        let without: Vec<String> = self.without.iter().cloned().collect();
        Ok(Demands {
            profile,
            without: choose::families(&without)?,
            scale: first.scale,
            ..Demands::default()
        })
    }

    /// The report of the whole sweep. Each shard with seeds must be there.
    fn finish(self, require_points: bool) -> Result<SweepReport, Refusal> {
        let Some(Saved { report: first, .. }) = &self.first else { refuse!("there is no report") };
        let (_, of) = shard_of(first);
        let share = Share::new(&first.seeds, None);
        // If there are fewer seeds than shards, the last shards have none, and cannot be run.
        let needed = of.min(share.len());
        let missing = needed.saturating_sub(self.shards.range(..=needed).count() as u64);
        if missing > 0 {
            let numbers = (1..=needed).filter(|number| !self.shards.contains_key(number));
            let mut listed: Vec<String> =
                numbers.take(MISSING_LISTED).map(|number| number.to_string()).collect();
            if missing > listed.len() as u64 {
                listed.push(format!("{} more", text::count(missing - listed.len() as u64)));
            }
            let (what, are) = if missing == 1 { ("shard", "is") } else { ("shards", "are") };
            refuse!("{what} {} of {of} {are} missing", and(&listed));
        }
        let demands = self.demands(first)?;
        let require_points = require_points || self.require_points;
        let workloads = self.workloads.into_iter().map(|whole| {
            let shards = self.shards.keys().map(|number| {
                let ran = whole.gaps.get(number).cloned();
                (*number, ran.unwrap_or_else(|| Ran::all(&Share::new(&first.seeds, Some((*number, of))))))
            });
            let ran = Ran::merged(shards, of).seeds(&share);
            whole.finish(ran, (!first.real).then_some(&demands), require_points)
        });
        let workloads: Vec<WorkloadReport> = workloads.collect();
        Ok(SweepReport {
            faults: self.faults.join(),
            without: demands.without.iter().map(|family| family.name().to_owned()).collect(),
            scale: first.scale,
            bug: first.bug.clone(),
            real: first.real,
            seeds: first.seeds.clone(),
            fresh: first.fresh.clone(),
            require_points,
            run_twice: self.run_twice,
            // The first shard replays them.
            regressions: self.regressions.and_then(|(_, folder)| folder),
            strict_regressions: self.strict_regressions,
            shard: None,
            jobs: self.jobs,
            ending: self.ending,
            outcome: SweepReport::outcome_of(self.ending, &workloads),
            workloads,
            cost: self.cost,
        })
    }
}

/// `1`, `1 and 2`, `1, 2 and 3`.
fn and(items: &[String]) -> String {
    match items {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        _ => items.concat(),
    }
}

/// An option of a report: its name and value, and whether reports that differ in it can be merged at all.
type Choice = (&'static str, String, bool);

/// What the reports of one sweep have in common.
fn choices(saved: &Saved) -> Vec<Choice> {
    let report = &saved.report;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let names: Vec<&str> = report.workloads.iter().map(|w| w.workload.as_str()).collect();
    vec![
        ("commit", saved.commit.clone(), true),
        ("version", saved.version.clone(), true),
        ("faults", format!("{} without [{}]", report.faults, report.without.join(", ")), true),
        ("scale", report.scale.to_string(), false),
        ("seeds that run twice", report.run_twice.to_string(), true),
        ("required points", yes(report.require_points), true),
        ("strict regressions", yes(report.strict_regressions), true),
        ("seeds", format!("{}..{}", report.seeds.start, report.seeds.end), false),
        ("text of fresh seeds", report.fresh.clone().unwrap_or_else(|| "none".to_owned()), false),
        ("planted bug", report.bug.clone().unwrap_or_else(|| "none".to_owned()), false),
        ("real cluster", yes(report.real), false),
        ("workloads", names.join(", "), false),
    ]
}

/// Refuses reports of different sweeps.
fn agree(first: &Saved, other: &Saved, force: bool) -> Result<(), Refusal> {
    for ((name, one, can_be_forced), (_, another, _)) in choices(first).iter().zip(choices(other)) {
        if *one == another || (force && *can_be_forced) {
            continue;
        }
        let hint = if *can_be_forced { " (--force merges them)" } else { "" };
        refuse!("{} and {} differ in {name}: {one}, {another}{hint}", first.shown, other.shown);
    }
    Ok(())
}

/// The worse of two endings.
fn worse(one: Ending, other: Ending) -> Ending {
    let rank = |ending: &Ending| match ending {
        Ending::Complete => 0,
        Ending::Budget => 1,
        Ending::Unwritable => 2,
        Ending::Interrupted => 3,
        Ending::Lost => 4,
    };
    std::cmp::max_by_key(one, other, rank)
}

/// The report of one workload from those of all shards.
#[derive(Default)]
struct Whole {
    sum: WorkloadReport,
    points: BTreeMap<String, (u64, u64)>,
    /// What was run by each shard that did not run all its seeds.
    gaps: BTreeMap<u64, Ran>,
}

impl Whole {
    /// Adds the report of a shard, apart from the seeds that it ran.
    fn add(&mut self, part: &WorkloadReport) {
        let sum = &mut self.sum;
        sum.add_figures(part);
        sum.workload.clone_from(&part.workload);
        sum.failing_seeds.extend(&part.failing_seeds);
        sum.failures.extend(part.failures.iter().cloned());
        sum.failures.sort_by_key(|failure| failure.seed);
        sum.failures.truncate(FAILURES_KEPT);
        sum.add_regressions(part.regressions.iter().cloned());
        for point in &part.points {
            let (passed, held) = self.points.entry(point.name.clone()).or_default();
            *passed = passed.saturating_add(point.passed);
            *held = held.saturating_add(point.held);
        }
    }

    fn finish(self, ran: Vec<Range<u64>>, demands: Option<&Demands>, require_points: bool) -> WorkloadReport {
        let Whole { mut sum, points, .. } = self;
        sum.failing_seeds.sort_unstable();
        // As in one sweep, only the first failure has its plans: each shard shrank the first of its own.
        for later in sum.failures.iter_mut().skip(1) {
            (later.plan, later.shrunk) = (None, None);
        }
        sum.ran = ran;
        let delivered = |family: Family| sum.faults_delivered.get(family.name()).copied().unwrap_or(0);
        let outcomes = sum.outcomes.iter().map(|(kind, of_kind)| (&**kind, of_kind));
        sum.vacuous =
            vacuous::judge(&sum.counters, outcomes, delivered, demands.map(Demands::faults), sum.runs);
        sum.points = report::points(&[], &points);
        if require_points {
            sum.missed_points = report::unreached(&sum.points);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(shown: &str, seeds: Range<u64>, shard: Option<(u64, u64)>) -> Saved {
        let report = SweepReport {
            faults: "standard".to_owned(),
            without: Vec::new(),
            scale: shaketable_reports::Scale::default(),
            bug: None,
            real: false,
            seeds,
            fresh: None,
            require_points: false,
            run_twice: 0,
            regressions: None,
            strict_regressions: false,
            shard,
            jobs: 1,
            ending: Ending::Complete,
            outcome: Conclusion::Passed,
            workloads: vec![WorkloadReport { workload: "one".to_owned(), ..WorkloadReport::default() }],
            cost: Cost::default(),
        };
        Saved { shown: shown.to_owned(), version: "1".to_owned(), commit: "a".to_owned(), report }
    }

    fn shards(numbers: &[u64], of: u64) -> Vec<Saved> {
        numbers.iter().map(|n| saved(&format!("{n}.json"), 0..100, Some((*n, of)))).collect()
    }

    /// The report of these shards, or why there is none.
    fn merged(shards: Vec<Saved>, force: bool) -> Result<SweepReport, String> {
        let mut merged = Merged { force, ..Merged::default() };
        let added = shards.into_iter().try_for_each(|saved| merged.add(saved));
        added.and_then(|()| merged.finish(false)).map_err(|refusal| refusal.to_string())
    }

    fn refusal<T>(result: Result<T, String>) -> String {
        result.err().expect("refused")
    }

    #[test]
    fn missing_and_overlapping_shards_are_named() {
        let refused = |numbers: &[u64], of| refusal(merged(shards(numbers, of), false));
        assert!(merged(shards(&[3, 1, 2], 3), false).is_ok());
        assert_eq!(refused(&[1, 3], 3), "shard 2 of 3 is missing");
        assert_eq!(refused(&[2, 4], 5), "shards 1, 3 and 5 of 5 are missing");
        assert_eq!(refused(&[1, 2, 1], 3), "1.json and 1.json overlap: both are shard 1 of 3");
        let many = refused(&[1], u64::MAX);
        assert!(many.ends_with("10, 11 and 89 more of 18446744073709551615 are missing"), "{many}");
        let other = vec![saved("a", 0..9, Some((1, 2))), saved("b", 0..9, None)];
        assert_eq!(refusal(merged(other, false)), "a is one of 2 shards, and b is one of 1");
    }

    #[test]
    fn shards_without_seeds_need_no_report() {
        let few = |numbers: &[u64]| {
            merged(numbers.iter().map(|n| saved("x", 4..6, Some((*n, 4)))).collect(), false).map(drop)
        };
        assert_eq!(few(&[1, 2]), Ok(()));
        assert_eq!(few(&[1]), Err("shard 2 of 4 is missing".to_owned()));
    }

    type Change = fn(&mut Saved);

    #[test]
    fn reports_of_different_sweeps_are_refused() {
        let refused = |change: Change, force: bool| {
            let mut shards = shards(&[1, 2], 2);
            change(&mut shards[1]);
            merged(shards, force).map(drop)
        };
        assert_eq!(refused(|_| {}, false), Ok(()));
        let can_be_forced: &[(Change, &str)] = &[
            (|saved| saved.commit = "b".to_owned(), "commit: a, b"),
            (|saved| saved.version = "2".to_owned(), "version: 1, 2"),
            (|saved| saved.report.faults = "calm".to_owned(), "faults: standard without [], calm without []"),
            (|saved| saved.report.run_twice = 5, "seeds that run twice: 0, 5"),
            (|saved| saved.report.require_points = true, "required points: no, yes"),
            (|saved| saved.report.strict_regressions = true, "strict regressions: no, yes"),
        ];
        for (change, why) in can_be_forced {
            let expected = format!("1.json and 2.json differ in {why} (--force merges them)");
            assert_eq!(refused(*change, false), Err(expected));
            assert_eq!(refused(*change, true), Ok(()));
        }
        let cannot: &[(Change, &str)] = &[
            (|saved| saved.report.seeds = 0..101, "seeds: 0..100, 0..101"),
            (|saved| saved.report.fresh = Some("night".to_owned()), "text of fresh seeds: none, night"),
            (|saved| saved.report.bug = Some("b".to_owned()), "planted bug: none, b"),
            (|saved| saved.report.real = true, "real cluster: no, yes"),
            (|saved| saved.report.workloads[0].workload = "two".to_owned(), "workloads: one, two"),
        ];
        for (change, why) in cannot {
            let expected = format!("1.json and 2.json differ in {why}");
            assert_eq!(refused(*change, true), Err(expected));
        }
    }

    #[test]
    fn a_forced_merge_requires_what_every_shard_could_meet() {
        let mut mixed = shards(&[1, 2], 2);
        let report = &mut mixed[1].report;
        (report.faults, report.without) = ("calm".to_owned(), vec!["kill".to_owned()]);
        mixed.reverse();
        let whole = merged(mixed, true).expect("merged");
        assert_eq!((&*whole.faults, whole.without), ("standard and calm", vec!["kill".to_owned()]));
    }

    #[test]
    fn the_worst_ending_is_that_of_the_sweep() {
        use Ending::{Budget, Complete, Interrupted, Lost, Unwritable};
        for (endings, worst) in [
            (&[Complete, Complete][..], Complete),
            (&[Complete, Budget], Budget),
            (&[Budget, Unwritable, Complete], Unwritable),
            (&[Interrupted, Unwritable], Interrupted),
            (&[Lost, Interrupted], Lost),
        ] {
            assert_eq!(endings.iter().copied().fold(Complete, worse), worst);
        }
    }
}
