//! `shaketable report merge`: the reports of all shards of a sweep become the report of the whole sweep,
//! which is the one that a single sweep over all seeds writes, apart from its cost.

use super::{
    Refusal,
    args::MergeArguments,
    choose,
    conclude::settle,
    output::Outputs,
    refuse, report,
    resume::{Ran, Share},
    saved::Saved,
    sweep::FAILURES_KEPT,
};
use crate::{judge::vacuous, run::plan::Demands};
use shaketable_reports::{Body, Conclusion, Cost, Ending, SweepReport, WorkloadReport, text};
use shaketable_sim::faults::{Family, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of missing shards that are listed.
const MISSING_LISTED: usize = 10;

/// Merges the reports, and prints and writes the result.
pub(super) fn merge(arguments: &MergeArguments) -> Result<Conclusion, Refusal> {
    let outputs = Outputs::check(arguments.files())?;
    let saved = arguments.reports.iter().map(|path| Saved::read(path)).collect::<Result<Vec<_>, _>>()?;
    let shards = by_number(saved)?;
    agree(&shards, arguments.force)?;
    let report = merged(&shards, arguments.require_points)?;
    let commit = distinct(&shards, |saved| saved.commit.clone()).join(" and ");
    let outcome = report.outcome;
    let printed = text::sweep(&report, &commit);
    let written = outputs.publish(&printed, &commit, Body::Sweep(report));
    settle(outcome, written, None)
}

/// The shard of a report, starting at 1, and the number of shards.
fn shard_of(report: &SweepReport) -> (u64, u64) {
    report.shard.unwrap_or((1, 1))
}

/// The reports by the numbers of their shards. Each shard with seeds must be there once.
fn by_number(saved: Vec<Saved>) -> Result<BTreeMap<u64, Saved>, Refusal> {
    let mut shards: BTreeMap<u64, Saved> = BTreeMap::new();
    let mut total = None;
    for saved in saved {
        let (number, of) = shard_of(&saved.report);
        let expected = *total.get_or_insert(of);
        if of != expected {
            let first = shards.values().next().map_or("", |first| first.shown.as_str());
            refuse!("{first} is one of {expected} shards, and {} is one of {of}", saved.shown);
        }
        if let Some(other) = shards.get(&number) {
            refuse!("{} and {} overlap: both are shard {number} of {of}", other.shown, saved.shown);
        }
        shards.insert(number, saved);
    }
    let (Some(of), Some(first)) = (total, shards.values().next()) else { refuse!("there is no report") };
    // If there are fewer seeds than shards, the last shards have none, and cannot be run.
    let needed = of.min(Share::new(&first.report.seeds, None).len());
    let missing = needed.saturating_sub(shards.range(..=needed).count() as u64);
    if missing > 0 {
        let numbers = (1..=needed).filter(|number| !shards.contains_key(number));
        let mut listed: Vec<String> = numbers.take(MISSING_LISTED).map(|number| number.to_string()).collect();
        if missing > listed.len() as u64 {
            listed.push(format!("{} more", text::count(missing - listed.len() as u64)));
        }
        let (what, are) = if missing == 1 { ("shard", "is") } else { ("shards", "are") };
        refuse!("{what} {} of {of} {are} missing", and(&listed));
    }
    Ok(shards)
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
fn agree(shards: &BTreeMap<u64, Saved>, force: bool) -> Result<(), Refusal> {
    let mut saved = shards.values();
    let Some(first) = saved.next() else { return Ok(()) };
    let expected = choices(first);
    for other in saved {
        for ((name, one, can_be_forced), (_, another, _)) in expected.iter().zip(choices(other)) {
            if *one == another || (force && *can_be_forced) {
                continue;
            }
            let hint = if *can_be_forced { " (--force merges them)" } else { "" };
            refuse!("{} and {} differ in {name}: {one}, {another}{hint}", first.shown, other.shown);
        }
    }
    Ok(())
}

/// The different values of an option, in the order of the shards.
fn distinct(shards: &BTreeMap<u64, Saved>, of: impl Fn(&Saved) -> String) -> Vec<String> {
    let mut seen = BTreeSet::new();
    shards.values().map(of).filter(|value| seen.insert(value.clone())).collect()
}

/// What every shard was asked for: the mildest faults, without the families that any shard switched off.
fn demands(shards: &BTreeMap<u64, Saved>) -> Result<Demands, Refusal> {
    let mut profiles = Vec::new();
    let mut without = Vec::new();
    for saved in shards.values() {
        profiles.push(
            choose::profile(&saved.report.faults)
                .map_err(|e| Refusal::Usage(format!("{}: the fault profile {e}", saved.shown)))?,
        );
        without.extend(saved.report.without.iter().cloned());
    }
    let milder = [Profile::Calm, Profile::Standard, Profile::Storm];
    let profile = milder.into_iter().find(|profile| profiles.contains(profile)).unwrap_or_default();
    let scale = shards.values().next().map(|saved| saved.report.scale).unwrap_or_default();
    Ok(Demands { profile, without: choose::families(&without)?, scale, ..Demands::default() })
}

/// The report of the whole sweep.
fn merged(shards: &BTreeMap<u64, Saved>, require_points: bool) -> Result<SweepReport, Refusal> {
    let demands = demands(shards)?;
    let ran = shards.values().map(Saved::ran).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = shards.values().next().map(|saved| &saved.report) else {
        refuse!("there is no report")
    };
    let reports = || shards.values().map(|saved| &saved.report);
    let require_points = require_points || reports().any(|report| report.require_points);
    let share = Share::new(&first.seeds, None);
    let workload = |at: usize| {
        let parts: Vec<&WorkloadReport> = reports().map(|report| &report.workloads[at]).collect();
        let ran = shards.keys().copied().zip(ran.iter().map(|ran| &ran[at]));
        let ran = Ran::merged(ran, shard_of(first).1).seeds(&share);
        whole(&parts, ran, (!first.real).then_some(&demands), require_points)
    };
    let workloads: Vec<WorkloadReport> = (0..first.workloads.len()).map(workload).collect();
    let ending = ending(reports().map(|report| report.ending));
    Ok(SweepReport {
        faults: distinct(shards, |saved| saved.report.faults.clone()).join(" and "),
        without: demands.without.iter().map(|family| family.name().to_owned()).collect(),
        scale: first.scale,
        bug: first.bug.clone(),
        real: first.real,
        seeds: first.seeds.clone(),
        fresh: first.fresh.clone(),
        require_points,
        run_twice: reports().map(|report| report.run_twice).max().unwrap_or(0),
        // The first shard replays them.
        regressions: first.regressions.clone(),
        strict_regressions: reports().any(|report| report.strict_regressions),
        shard: None,
        jobs: reports().map(|report| report.jobs).max().unwrap_or(0),
        ending,
        outcome: SweepReport::outcome_of(ending, &workloads),
        workloads,
        cost: reports().fold(Cost::default(), |sum, report| sum.and(report.cost)),
    })
}

/// The worst of the endings.
fn ending(endings: impl Iterator<Item = Ending>) -> Ending {
    let rank = |ending: &Ending| match ending {
        Ending::Complete => 0,
        Ending::Budget => 1,
        Ending::Unwritable => 2,
        Ending::Interrupted => 3,
        Ending::Lost => 4,
    };
    endings.max_by_key(rank).unwrap_or(Ending::Complete)
}

/// The report of one workload from those of all shards.
fn whole(
    parts: &[&WorkloadReport],
    ran: Vec<std::ops::Range<u64>>,
    demands: Option<&Demands>,
    require_points: bool,
) -> WorkloadReport {
    let mut sum = WorkloadReport::default();
    let mut points: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for part in parts {
        sum.add_figures(part);
        sum.workload.clone_from(&part.workload);
        sum.failing_seeds.extend(&part.failing_seeds);
        sum.failures.extend(part.failures.iter().cloned());
        sum.add_regressions(part.regressions.iter().cloned());
        for point in &part.points {
            let (passed, held) = points.entry(point.name.clone()).or_default();
            *passed = passed.saturating_add(point.passed);
            *held = held.saturating_add(point.held);
        }
    }
    sum.failing_seeds.sort_unstable();
    sum.failures.sort_by_key(|failure| failure.seed);
    sum.failures.truncate(FAILURES_KEPT);
    // As in one sweep, only the first failure has its plans: each shard shrank the first of its own.
    for later in sum.failures.iter_mut().skip(1) {
        (later.plan, later.shrunk) = (None, None);
    }
    sum.ran = ran;
    let delivered = |family: Family| sum.faults_delivered.get(family.name()).copied().unwrap_or(0);
    let outcomes = sum.outcomes.iter().map(|(kind, of_kind)| (&**kind, of_kind));
    sum.vacuous = vacuous::judge(&sum.counters, outcomes, delivered, demands.map(Demands::faults), sum.runs);
    sum.points = report::points(&[], &points);
    if require_points {
        sum.missed_points = report::unreached(&sum.points);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

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

    fn shards(numbers: &[u64], of: u64) -> Result<BTreeMap<u64, Saved>, String> {
        let saved = numbers.iter().map(|n| saved(&format!("{n}.json"), 0..100, Some((*n, of)))).collect();
        by_number(saved).map_err(|refusal| refusal.to_string())
    }

    fn refusal<T>(result: Result<T, String>) -> String {
        result.err().expect("refused")
    }

    #[test]
    fn missing_and_overlapping_shards_are_named() {
        assert!(shards(&[3, 1, 2], 3).is_ok());
        assert_eq!(refusal(shards(&[1, 3], 3)), "shard 2 of 3 is missing");
        assert_eq!(refusal(shards(&[2, 4], 5)), "shards 1, 3 and 5 of 5 are missing");
        assert_eq!(refusal(shards(&[1, 2, 1], 3)), "1.json and 1.json overlap: both are shard 1 of 3");
        assert!(
            refusal(shards(&[1], u64::MAX))
                .ends_with("10, 11 and 89 more of 18446744073709551615 are missing")
        );
        let other = vec![saved("a", 0..9, Some((1, 2))), saved("b", 0..9, None)];
        assert_eq!(
            refusal(by_number(other).map_err(|r| r.to_string())),
            "a is one of 2 shards, and b is one of 1"
        );
    }

    #[test]
    fn shards_without_seeds_need_no_report() {
        let few = |numbers: &[u64]| {
            by_number(numbers.iter().map(|n| saved("x", 4..6, Some((*n, 4)))).collect()).map(drop)
        };
        assert_eq!(few(&[1, 2]), Ok(()));
        assert!(few(&[1]).is_err());
    }

    type Change = fn(&mut Saved);

    #[test]
    fn reports_of_different_sweeps_are_refused() {
        let refused = |change: Change, force: bool| {
            let mut shards = shards(&[1, 2], 2).expect("both");
            change(shards.get_mut(&2).expect("the second"));
            agree(&shards, force).map_err(|refusal| refusal.to_string())
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
        let mut mixed = shards(&[1, 2], 2).expect("both");
        let report = &mut mixed.get_mut(&2).expect("the second").report;
        (report.faults, report.without) = ("calm".to_owned(), vec!["kill".to_owned()]);
        let demands = demands(&mixed).expect("possible");
        assert_eq!((demands.profile, demands.without), (Profile::Calm, vec![Family::Kill]));
        assert_eq!(merged(&mixed, false).expect("merged").faults, "standard and calm");
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
            assert_eq!(ending(endings.iter().copied()), worst);
        }
    }
}
