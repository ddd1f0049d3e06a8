//! Running a workload from an ordinary `#[test]`.
//!
//! ```text
//! #[test]
//! fn my_layer_stands() {
//!     Shake::<MyWorkload>::new().seeds(0..100).assert();
//! }
//! ```
//!
//! `SHAKETABLE_SEEDS` (`100` or `..100` for the first hundred, `5..10` for those from 5 to 9, as on the command line)
//! overrides the seeds of every such test; a failure's message ends with the line that replays it.

use crate::{
    judges::vacuous,
    plan::{Demands, Plan},
    runner::{self, Counters, RunResult, Verdict},
    seeds,
    workload::Workload,
};
use shaketable_sim::{
    config::Sabotage,
    faults::{Family, Profile},
    seed::Seed,
};
use std::{marker::PhantomData, ops::Range};

/// The environment variable that overrides the seeds.
pub const SEEDS_VARIABLE: &str = "SHAKETABLE_SEEDS";

/// A sweep of one workload over a range of seeds.
#[derive(Clone, Debug)]
pub struct Shake<W> {
    seeds: Range<u64>,
    demands: Demands,
    workload: PhantomData<fn() -> W>,
}

/// A sweep that ended.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The seeds that were run.
    pub seeds: Range<u64>,
    /// The first run that did not pass, with its seed.
    pub failed: Option<(u64, RunResult)>,
    /// What was counted over all runs.
    pub counters: Counters,
    /// Needed counters that stayed zero.
    pub vacuous: Vec<&'static str>,
}

impl<W: Workload> Default for Shake<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Workload> Shake<W> {
    /// Seeds 0 to 49 with standard faults.
    pub fn new() -> Self {
        Shake { seeds: 0..50, demands: Demands::default(), workload: PhantomData }
    }

    /// Other seeds.
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Another fault profile.
    pub fn faults(mut self, profile: Profile) -> Self {
        self.demands.profile = profile;
        self
    }

    /// Leaves a fault family out.
    pub fn without(mut self, family: Family) -> Self {
        self.demands.without.push(family);
        self
    }

    /// Plants one of the workload's bugs.
    pub fn bug(mut self, name: &str) -> Self {
        self.demands.bug = Some(name.to_owned());
        self
    }

    /// Plants a defect in the simulated cluster.
    pub fn sabotage(mut self, sabotage: Sabotage) -> Self {
        self.demands.sabotage = Some(sabotage);
        self
    }

    /// Runs the seeds up to the first that does not pass.
    pub fn run(&self) -> Swept {
        let seeds = seeds_from_environment().unwrap_or_else(|| self.seeds.clone());
        let mut counters = Counters::default();
        for seed in seeds.clone() {
            let result = runner::run(&Plan::<W>::draw(Seed(seed), &self.demands), false);
            counters.add(&result.counters);
            if result.verdict != Verdict::Passed {
                return Swept { seeds, failed: Some((seed, result)), counters, vacuous: Vec::new() };
            }
        }
        let vacuous = vacuous::judge(&counters, Some(&self.demands), seeds.end.saturating_sub(seeds.start));
        Swept { seeds, failed: None, counters, vacuous }
    }

    /// Runs the seeds and panics if one does not pass, or if the sweep was vacuous.
    pub fn assert(&self) {
        let swept = self.run();
        if let Some((seed, result)) = &swept.failed {
            panic!("{}", self.describe(*seed, result));
        }
        assert!(swept.vacuous.is_empty(), "{} was vacuous: no {}", W::NAME, swept.vacuous.join(", no "));
    }

    /// Runs the seeds and panics if none of them catches the planted bug. Gives the seed that did. A run in
    /// which the harness or the workload's own model failed is no catch: it panics as well.
    pub fn assert_caught(&self) -> (u64, RunResult) {
        let swept = self.run();
        let planted = self.demands.bug.as_deref().unwrap_or("nothing planted");
        match swept.failed {
            Some((seed, result)) if result.verdict == Verdict::Harness => {
                panic!("{planted} was not caught: {}", self.describe(seed, &result))
            }
            Some(caught) => caught,
            None => panic!("{}: {planted} was not caught by seeds {:?}", W::NAME, swept.seeds),
        }
    }

    /// What a person needs to know of a failed run; its last line replays it.
    fn describe(&self, seed: u64, result: &RunResult) -> String {
        let mut text = format!("{} failed with seed {seed}, {:?}\n", W::NAME, result.verdict);
        for finding in &result.findings {
            text += &format!("  {}: {}\n", finding.judge, finding.message);
        }
        text += &Plan::<W>::draw(Seed(seed), &self.demands).summary();
        text += &format!("event hash {:016x}\n", result.event_hash);
        let test = std::thread::current().name().unwrap_or("").to_owned();
        text += &format!("{SEEDS_VARIABLE}={seed}..{} cargo test {test}", seed.saturating_add(1));
        text
    }
}

fn seeds_from_environment() -> Option<Range<u64>> {
    let text = std::env::var(SEEDS_VARIABLE).ok()?;
    match seeds::range(&text) {
        Ok(seeds) => Some(seeds),
        Err(error) => panic!("{SEEDS_VARIABLE}={text}: {error}"),
    }
}
