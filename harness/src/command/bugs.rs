//! `shaketable bugs`: runs every planted bug, seed after seed, until a judge catches it.

use super::{
    Refusal, advise,
    args::{Budget, Shaking, Written},
    backend::{Backend, BackendArguments},
    beyond, caught,
    choose::{self, CLUSTER, First},
    conclude::settle,
    cost,
    interrupt::Interrupt,
    output::{self, Outputs, Watch},
    program,
    progress::Progress,
    refuse,
    report::{self, Origin},
};
use crate::{
    describe::workload::Bug,
    judge::finding::{Accused, Verdict},
    run::{
        plan::Demands,
        pool::{self, Update},
        runner::RunResult,
    },
    search::{entry::Entry, seeds},
};
use clap::Args;
use shaketable_reports::{Body, BugReport, BugsReport, Conclusion, Ending, text};
use shaketable_sim::{config::ClusterBug, seed::Seed};
use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

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
    #[command(flatten)]
    pub budget: Budget,
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
    #[command(flatten)]
    pub written: Written,
    #[command(flatten)]
    pub backend: BackendArguments,
}

/// A planted bug, and the workloads that take turns with it.
#[derive(Clone)]
pub(super) struct Planted {
    place: &'static str,
    name: &'static str,
    about: &'static str,
    workloads: Vec<usize>,
    /// What it takes to show it that only a simulated cluster has, where that is known beforehand.
    pub(super) only_simulated: Option<&'static str>,
    pub(super) demands: Demands,
}

/// Runs the planted bugs, and prints and writes the report.
pub(super) fn bugs(arguments: &BugsArguments) -> Result<Conclusion, Refusal> {
    let entries = (program().workloads)();
    let wanted = choose::places(&arguments.workloads)?;
    let shaken = entries.iter().map(Box::as_ref).filter(|entry| wanted(entry.name()) || wanted(CLUSTER));
    let demands = arguments.shaking.demands(shaken)?;
    known(&planted(&entries, &[], &demands)?, &arguments.first)?;
    let mut planted = planted(&entries, &arguments.workloads, &demands)?;
    if arguments.workloads.is_empty() && arguments.bug.is_empty() && !program().tests_cluster {
        planted.retain(|planted| planted.place != CLUSTER);
    }
    keep_named(&mut planted, &arguments.bug)?;
    if let Some((number, of)) = arguments.shard {
        let mut place = 0..;
        planted.retain(|_| place.next().is_some_and(|place| place % of == number - 1));
        if planted.is_empty() {
            refuse!("this shard has no bugs: there are fewer bugs than shards");
        }
    }
    let real = arguments.backend.is_real()?;
    let seeds = arguments.seeds.clone().unwrap_or(0..if real { 100 } else { 500 });
    if real {
        // They exist only in the simulated cluster.
        planted.retain(|planted| planted.place != CLUSTER);
        if planted.is_empty() {
            refuse!("planted bugs of the simulated cluster cannot be switched on in a real one");
        }
    }
    let mut outputs = Outputs::check(arguments.written.files())?;
    let interrupt = Interrupt::listen()?;
    let backend = Backend::open(&arguments.backend, demands.profile)?;

    let meter = cost::Meter::start();
    let deadline = arguments.budget.budget.map(cost::deadline);
    let over_budget = || deadline.is_some_and(cost::is_past);
    let unwritable = AtomicBool::new(false);
    let mut watch = Watch::start(&outputs, &unwritable);
    let stop =
        || interrupt.is_set() || backend.is_lost() || over_budget() || unwritable.load(Ordering::Relaxed);
    let mut progress =
        Progress::new(&[("bugs", planted.len() as u64)], ("planted bug", "planted bugs"), "missed");
    let jobs = arguments.jobs.unwrap_or_else(|| arguments.backend.jobs());
    let mut found: Vec<Option<BugReport>> = planted.iter().map(|_| None).collect();
    pool::run(
        planted.len() as u64,
        jobs,
        stop,
        |n| {
            let planted = &planted[n as usize];
            let first = arguments
                .first
                .iter()
                .filter(|first| first.is_of(planted.place, planted.name))
                .map(|first| first.seed);
            let seeds = first.chain(seeds.clone());
            let cannot_show = real && planted.only_simulated.is_some();
            let mut bug = match cannot_show {
                true => planted.report(),
                false => try_seeds(&entries, planted, seeds, &backend, &interrupt, &stop),
            };
            if arguments.shrink
                && let Some(catch) = &mut bug.caught
            {
                catch.shrunk = caught::shrunk(&entries, &planted.demands, catch, &interrupt);
            }
            if real && bug.caught.is_none() && bug.wrong_judge.is_none() {
                bug.only_simulated = beyond::takes(&entries, planted, &interrupt, &stop);
            }
            bug
        },
        |update| {
            watch.tick();
            match update {
                Update::Tick => progress.tick(),
                Update::Done(n, bug) => {
                    progress.done(0, bug.caught.is_some() || bug.only_simulated.is_some());
                    found[n as usize] = Some(bug);
                }
            }
        },
    );
    progress.end();
    let mut report = BugsReport {
        faults: choose::name_of(demands.profile).to_owned(),
        seeds,
        real,
        ending: match interrupt.is_set() {
            _ if backend.is_lost() => Ending::Lost,
            true => Ending::Interrupted,
            false if unwritable.load(Ordering::Relaxed) => Ending::Unwritable,
            false => Ending::Budget,
        },
        bugs: found.into_iter().zip(&planted).map(|(bug, p)| bug.unwrap_or_else(|| p.report())).collect(),
        cost: meter.cost(),
    };
    if matches!(report.ending, Ending::Budget | Ending::Unwritable) && report.left() == 0 {
        report.ending = Ending::Complete;
    }
    let outcome = report.outcome();
    let interrupted = (report.ending == Ending::Interrupted).then(|| {
        let all = text::plural(report.bugs.len() as u64, "planted bug", "planted bugs");
        let done = report.caught() + report.only_simulated() + report.missed();
        interrupt.refusal(&format!("after {} of {all}", text::count(done as u64)))
    });
    if backend.is_simulated() {
        let is_in = |entry: &&dyn Entry| planted.iter().any(|planted| planted.place == entry.name());
        let shown = entries.iter().map(AsRef::as_ref).filter(is_in);
        outputs.advice = advise::for_page(&outputs, shown, jobs, &interrupt);
    }
    let printed = text::bugs(&report, program().commit);
    let ended_by_outputs = report.ending == Ending::Unwritable;
    let mut written = outputs.publish(&printed, program().commit, Body::Bugs(report));
    if ended_by_outputs {
        written = written.and(Err(output::unwritable()));
    }
    settle(outcome, written, interrupted)
}

/// The planted bugs of these places, or of all places if there are none.
fn planted(
    entries: &[Box<dyn Entry>],
    places: &[String],
    demands: &Demands,
) -> Result<Vec<Planted>, Refusal> {
    let wanted = choose::places(places)?;
    let mut planted = Vec::new();
    for (n, entry) in entries.iter().enumerate().filter(|(_, entry)| wanted(entry.name())) {
        planted.extend(entry.bugs().iter().map(|bug| Planted::of(n, entry.as_ref(), bug, demands)));
    }
    if wanted(CLUSTER) {
        planted.extend(ClusterBug::ALL.iter().filter_map(|bug| Planted::in_cluster(entries, *bug, demands)));
    }
    Ok(planted)
}

impl Planted {
    /// A planted bug of the workload at this place of the entries.
    pub(super) fn of(entry: usize, of: &dyn Entry, bug: &Bug, demands: &Demands) -> Planted {
        Planted {
            place: of.name(),
            name: bug.name,
            about: bug.about,
            workloads: vec![entry],
            only_simulated: bug.only_simulated,
            demands: Demands { bug: Some(bug.name.to_owned()), ..demands.clone() },
        }
    }

    /// The same bug with other demands.
    pub(super) fn with(&self, demands: Demands) -> Planted {
        Planted { demands, ..self.clone() }
    }

    /// A bug of the cluster, if any of the entries shows it.
    fn in_cluster(entries: &[Box<dyn Entry>], bug: ClusterBug, demands: &Demands) -> Option<Planted> {
        let shows = |entry: &dyn Entry| bug.shows_everywhere() || entry.cluster_bugs().contains(&bug);
        let workloads: Vec<_> = (0..entries.len()).filter(|n| shows(entries[*n].as_ref())).collect();
        (!workloads.is_empty()).then(|| Planted {
            place: CLUSTER,
            name: bug.name(),
            about: bug.about(),
            workloads,
            only_simulated: None,
            demands: Demands { cluster_bug: Some(bug), ..demands.clone() },
        })
    }

    fn report(&self) -> BugReport {
        BugReport {
            place: self.place.to_owned(),
            bug: self.name.to_owned(),
            about: self.about.to_owned(),
            runs: 0,
            cpu_ns: 0,
            caught: None,
            wrong_judge: None,
            accuses_cluster: false,
            only_simulated: None,
        }
    }

    /// Whether a run with this verdict catches the bug: findings about a planted bug of a workload must
    /// accuse the layer, and findings about one of the cluster must accuse the harness, unless only some
    /// workloads show it: their models know what a client must be told.
    fn is_caught_by(&self, verdict: Verdict) -> bool {
        let shows_everywhere = self.demands.cluster_bug.is_none_or(ClusterBug::shows_everywhere);
        match verdict {
            Verdict::Violated | Verdict::Stuck | Verdict::Harness if !shows_everywhere => true,
            Verdict::Passed => false,
            Verdict::Violated | Verdict::Stuck => self.place != CLUSTER,
            Verdict::Harness => self.place == CLUSTER,
        }
    }
}

impl Planted {
    /// Notes what a run has shown. Returns whether no further one is needed, or would prove anything.
    fn tried(&self, bug: &mut BugReport, origin: &Origin<'_>, result: &RunResult, real: bool) -> bool {
        let is_of_workload = result.accuses_workload();
        if !is_of_workload && self.is_caught_by(result.verdict()) {
            bug.caught = Some(caught::catch(origin, result));
            // That the cluster was accused before remains to be explained.
            bug.wrong_judge = bug.wrong_judge.take().filter(|_| bug.accuses_cluster);
            return true;
        }
        let accuses_cluster = result.verdict() == Verdict::Harness;
        let is_explained = || result.findings.iter().any(|it| it.kind.accused() == Accused::Layer);
        if real && accuses_cluster && is_explained() {
            // The layer's bug may be why: another run tells without that.
            return false;
        }
        if result.verdict() != Verdict::Passed
            && (bug.wrong_judge.is_none() || accuses_cluster && !bug.accuses_cluster)
        {
            let verdict = report::verdict(result);
            bug.wrong_judge = Some(format!(
                "seed {} was blamed on {} by {}: {}",
                origin.seed,
                match self.place == CLUSTER {
                    _ if is_of_workload => "the workload",
                    true => "the layer",
                    false => "the cluster",
                },
                verdict.judge().unwrap_or_default(),
                verdict.message().unwrap_or_default()
            ));
            bug.accuses_cluster = real && accuses_cluster;
        }
        // If the harness fails, no later seed proves anything about the layer. On a real cluster, where no
        // run is repeated, a later one may show the bug all the same.
        accuses_cluster && !real
    }
}

/// Each bug that has a first seed must exist. It need not be run: one list serves for all choices of bugs.
fn known(planted: &[Planted], first: &[First]) -> Result<(), Refusal> {
    let is_planted = |first: &&First| planted.iter().any(|planted| first.is_of(planted.place, planted.name));
    let Some(First { place, bug, .. }) = first.iter().find(|first| !is_planted(first)) else { return Ok(()) };
    let near = choose::did_you_mean(bug, planted.iter().filter(|p| p.place == place).map(|p| p.name));
    refuse!("{place} has no planted bug {bug:?}{near}: see `{} list bugs`", program().name)
}

/// Keeps only the bugs with these names, if there are any names. Each bug must exist.
fn keep_named(planted: &mut Vec<Planted>, names: &[String]) -> Result<(), Refusal> {
    for name in names {
        if planted.iter().all(|planted| planted.name != name) {
            let near = choose::did_you_mean(name, planted.iter().map(|planted| planted.name));
            refuse!("there is no planted bug {name:?}{near}: see `{} list bugs`", program().name);
        }
    }
    if !names.is_empty() {
        planted.retain(|planted| names.iter().any(|name| name == planted.name));
    }
    Ok(())
}

/// Runs seed after seed until the bug is caught or `stop` returns true.
pub(super) fn try_seeds(
    entries: &[Box<dyn Entry>],
    planted: &Planted,
    seeds: impl IntoIterator<Item = u64>,
    backend: &Backend,
    interrupt: &Interrupt,
    stop: &dyn Fn() -> bool,
) -> BugReport {
    let mut bug = planted.report();
    let before = cost::thread_cpu();
    for seed in seeds.into_iter().take_while(|_| !stop()) {
        let turn = (seed % planted.workloads.len() as u64) as usize;
        let entry = entries[planted.workloads[turn]].as_ref();
        let Some(result) = backend.run(entry, Seed(seed), &planted.demands, &|| interrupt.is_set()) else {
            break;
        };
        bug.runs += 1;
        let origin = Origin::of(entry.name(), seed, &planted.demands, backend);
        if planted.tried(&mut bug, &origin, &result, matches!(backend, Backend::Real(_))) {
            break;
        }
    }
    bug.cpu_ns = cost::thread_cpu() - before;
    bug
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::fake::fake,
        judge::finding::{Finding, Kind},
    };

    fn entries() -> Vec<Box<dyn Entry>> {
        let layer = |seed: u64, demands: &Demands| match (demands.bug.as_deref(), demands.cluster_bug) {
            (Some("early"), _) if seed == 2 => Verdict::Violated,
            (Some("late"), _) if seed == 40 => Verdict::Stuck,
            (None, Some(ClusterBug::LogAnswersEarly)) if seed == 3 => Verdict::Harness,
            (None, Some(ClusterBug::StaleReadVersion)) if seed == 6 => Verdict::Violated,
            _ => Verdict::Passed,
        };
        vec![fake("one", layer), fake("two", |_, _| Verdict::Passed), fake("three", |_, _| Verdict::Passed)]
    }

    fn tried(place: &str, name: &str, max_seeds: u64) -> BugReport {
        let entries = entries();
        let all = planted(&entries, &[], &Demands::default()).expect("all");
        let planted = all.iter().find(|p| p.place == place && p.name == name).expect("planted");
        try_seeds(&entries, planted, 0..max_seeds, &Backend::Simulated, &Interrupt::default(), &|| false)
    }

    #[test]
    fn a_bug_is_tried_until_its_first_catch() {
        let bug = tried("one", "early", 500);
        let caught = bug.caught.expect("caught");
        assert_eq!((bug.runs, caught.seed, caught.judge.as_str()), (3, 2, "model"));
        assert!(caught.replay.ends_with(" replay one 2 --faults standard --bug early"), "{}", caught.replay);
        assert_eq!(tried("one", "late", 500).caught.expect("caught").judge, "live");
    }

    #[test]
    fn a_first_seed_that_catches_nothing_is_followed_by_the_others() {
        let entries = entries();
        let all = planted(&entries, &[], &Demands::default()).expect("all");
        let early = all.iter().find(|planted| planted.name == "early").expect("planted");
        let first = First::parse("one/early=9").expect("a first seed");
        assert!(first.is_of(early.place, early.name) && known(&all, std::slice::from_ref(&first)).is_ok());
        let seeds = [first.seed].into_iter().chain(0..500);
        let bug = try_seeds(&entries, early, seeds, &Backend::Simulated, &Interrupt::default(), &|| false);
        assert_eq!((bug.runs, bug.caught.map(|catch| catch.seed)), (4, Some(2)));
        assert!(known(&all, &[First { place: "none".to_owned(), ..first }]).is_err(), "of no workload");
    }

    #[test]
    fn a_bug_that_no_seed_catches_is_missed() {
        let bug = tried("one", "late", 40);
        assert_eq!((bug.runs, bug.caught, bug.wrong_judge), (40, None, None));
    }

    #[test]
    fn a_bug_of_the_cluster_must_be_caught_by_the_cluster_s_judges() {
        let bug = tried(CLUSTER, "log-answers-early", 100);
        let caught = bug.caught.expect("caught");
        assert_eq!((caught.seed, caught.workload.as_str()), (3, "one"), "workloads take turns");
        let bug = tried(CLUSTER, "stale-read-version", 100);
        assert_eq!((bug.runs, &bug.caught), (100, &None));
        assert!(bug.wrong_judge.expect("a reason").contains("blamed on the layer by model"));
    }

    #[test]
    fn a_real_cluster_is_accused_only_by_a_run_that_says_nothing_of_the_layer() {
        let entries = entries();
        let all = planted(&entries, &[], &Demands::default()).expect("all");
        let (planted, demands) = (&all[0], &all[0].demands);
        let tried = |runs: &[&[Kind]], real| {
            let mut bug = planted.report();
            let ended = runs.iter().enumerate().position(|(seed, kinds)| {
                let findings = kinds.iter().map(|kind| Finding::new(*kind, kind.name())).collect();
                let origin = Origin::of("one", seed as u64, demands, &Backend::Simulated);
                planted.tried(&mut bug, &origin, &RunResult { findings, ..RunResult::default() }, real)
            });
            (ended, bug.caught.map(|catch| catch.seed), bug.accuses_cluster, bug.wrong_judge.is_some())
        };
        let (explained, accuses, shows) =
            (&[Kind::RealTime, Kind::Audit][..], &[Kind::RealTime][..], &[Kind::Audit][..]);
        assert_eq!(tried(&[explained, explained], true), (None, None, false, false));
        assert_eq!(tried(&[explained, shows], true), (Some(1), Some(1), false, false));
        assert_eq!(tried(&[accuses, shows], true), (Some(1), Some(1), true, true));
        assert_eq!(tried(&[&[Kind::Setup], accuses, explained], true), (None, None, true, true));
        // A simulated run can be repeated: what the harness does is known at once.
        assert_eq!(tried(&[explained, shows], false), (Some(0), None, false, true));
    }

    #[test]
    fn a_harness_that_fails_does_not_catch_a_bug_of_a_layer() {
        let ends = |_: u64, _: &Demands| Verdict::Harness;
        let entries = vec![fake("failing", ends)];
        let all = planted(&entries, &["failing".to_owned()], &Demands::default());
        assert!(all.is_err(), "not in the catalogue");
        let all = planted(&entries, &[], &Demands::default()).expect("all");
        let bug = try_seeds(&entries, &all[0], 0..100, &Backend::Simulated, &Interrupt::default(), &|| false);
        assert_eq!((bug.runs, &bug.caught), (1, &None));
        assert!(bug.wrong_judge.expect("a reason").contains("blamed on the cluster by durable"));
    }
}
