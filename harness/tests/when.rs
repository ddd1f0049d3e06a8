//! When a failure became certain, for a bug whose moment is known: the first commit decides.

use shaketable::{
    Guarded,
    entry::{Entry, entry},
    plan::{Demands, Plan},
    runner::{self, RunResult},
    when::Effort,
};
use shaketable_reports::{RunHistory, When, when};
use shaketable_sim::{
    chance::Reseed,
    rt::Nanos,
    seed::Seed,
    trace::{Event, Kind},
};
use std::collections::BTreeSet;

mod first {
    use shaketable::prelude::*;

    shaketable_tx::refusals! {
        /// Why nothing is written.
        pub enum Refusal { Late = "another was first" }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct First;

    /// Numbers of which the first one stays, and must be even: the clients race.
    #[shaketable::workload(name = "first")]
    impl First {
        #[write]
        async fn write(&self, tx: &Tx, #[draw(0..100u32)] value: u32) -> Result<(), Refusal> {
            if tx.get(b"n", Serializable).await?.is_some() {
                return Err(Refusal::Late);
            }
            tx.set(b"n", value.to_string().as_bytes());
            Ok(())
        }

        #[invariant("it is even")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            Ok(tx.get(b"n", Serializable).await?.is_none_or(|n| n[n.len() - 1] % 2 == 0))
        }
    }
}

type First = Guarded<first::First>;

fn history(entry: &dyn Entry, repro: &str) -> RunHistory {
    *entry.replay(repro, true).expect("a repro file").history.expect("it was kept")
}

fn when(entry: &dyn Entry, repro: &str, jobs: usize) -> When {
    let moments = when::moments(&history(entry, repro));
    let mut effort = Effort { jobs, cpu: u64::MAX, stops: &|| false, progress: &mut |_| () };
    entry.when(repro, &moments, &mut effort).expect("a repro file").expect("it fails")
}

/// The first plan that fails whose clients begin at once, so that delays decide who is first, and of which
/// other chance is as likely to save the run.
fn failing(entry: &dyn Entry) -> (String, When) {
    let plans = (0..200).map(|seed| entry.plan(Seed(seed), &Demands::default()));
    let plans = plans.filter(|plan| plan.contains("\"pause\": 0,"));
    let failing = plans.filter(|plan| !entry.replay(plan, false).expect("a repro file").findings.is_empty());
    let mut looked_at = failing.map(|plan| (plan.clone(), when(entry, &plan, 2)));
    looked_at.find(|(_, when)| (5..=20).contains(&when.moments[0].failed)).expect("a race")
}

/// When the clients began, and when a number was written.
fn written(history: &RunHistory) -> (Nanos, Nanos) {
    let called = history.operations.iter().map(|operation| operation.called).min();
    let written = history.transactions.iter().filter(|tx| tx.operation.is_some() && tx.fate.is_in_effect());
    (called.expect("an operation"), written.filter_map(|tx| tx.durable).min().expect("one was first"))
}

#[test]
fn it_is_certain_from_the_commit_on_that_decides() {
    let entry = entry::<First>();
    let (plan, found) = failing(entry.as_ref());
    let (called, durable) = written(&history(entry.as_ref(), &plan));
    let at = found.moments[found.certain().expect("it is certain")].at;
    assert!(
        (called..=durable).contains(&at),
        "certain at {at}, called at {called}, written at {durable}: {found:?}"
    );
    assert!(found.sentences().last().is_some_and(|told| told.starts_with("It became certain at ")));
    assert_eq!(when(entry.as_ref(), &plan, 1), found, "another number of threads");
    // One odd number is left of it, which no other can forestall.
    let shrunk = entry.shrink(&plan, &mut |_| true).expect("a repro file").expect("it fails");
    assert_eq!(when(entry.as_ref(), &shrunk.repro, 2).certain(), Some(0), "{}", shrunk.repro);
}

/// The events before a time.
fn before(events: &[Event], time: Nanos) -> &[Event] {
    &events[..events.partition_point(|event| event.at < time)]
}

#[test]
fn a_run_with_other_chance_is_the_same_until_its_moment() {
    let entry = entry::<First>();
    let whole = entry.plan(Seed(3), &Demands::default());
    let (failing, _) = failing(entry.as_ref());
    let shrunk = entry.shrink(&failing, &mut |_| true).expect("a repro file").expect("it fails").repro;
    for repro in [whole, shrunk] {
        let plan = Plan::from_json::<First>(&repro).expect("a plan");
        let drawn = Plan::draw::<First>(Seed(plan.seed), &plan.demands);
        let otherwise = |from, seed| -> RunResult {
            let (cluster, rates) = (drawn.cluster.clone(), drawn.faults.rates.clone());
            runner::run_otherwise(&plan, true, Reseed { from, seed: Seed(seed), cluster, rates })
        };
        let own = runner::run(&plan, true);
        let never = otherwise(Nanos::MAX, 7);
        assert_eq!((never.event_hash, never.events), (own.event_hash, own.events));
        // Events from the begin of the clients to their end, evenly spread.
        let acts: Vec<usize> = (0..own.trace.len()).filter(|n| own.trace[*n].kind == Kind::Act).collect();
        let event = |n: usize| own.trace[acts[1] + (acts[2] - acts[1]) * n / 8].at;
        let mut futures = BTreeSet::new();
        for from in (0..8).map(|n| event(n) + 1) {
            let other = otherwise(from, 7);
            assert_eq!(before(&own.trace, from), before(&other.trace, from), "from {from}");
            assert_ne!(own.event_hash, other.event_hash, "from {from}");
            assert_eq!(other.event_hash, otherwise(from, 7).event_hash, "from {from}");
            futures.extend([other.event_hash, otherwise(from, 8).event_hash]);
        }
        assert!(futures.len() > 8, "{} futures", futures.len());
    }
}
