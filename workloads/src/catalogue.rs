//! The workloads of the `shaketable` command, as a plain list, behind a face that does not know
//! their types.

#[cfg(feature = "fdb-client")]
use crate::real;
use crate::{
    plan::{Demands, Plan, PlanError},
    runner::{self, RunResult},
    specimen::Mounted,
    workload::{Bug, Workload},
};
use shaketable_sim::seed::Seed;
use std::marker::PhantomData;

/// A workload of the catalogue.
pub trait Entry: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What it shakes, in a line.
    fn about(&self) -> &'static str;
    /// Its planted bugs.
    fn bugs(&self) -> &'static [Bug];
    /// The claims its sweep is expected to reach.
    fn points(&self) -> &'static [&'static str];
    /// Draws the plan of a seed and performs it.
    fn run(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> RunResult;
    /// Draws the plan of a seed and performs it on a real cluster.
    #[cfg(feature = "fdb-client")]
    fn run_on(
        &self,
        open: real::Open<'_>,
        site: &real::Site,
        seed: Seed,
        demands: &Demands,
        conditions: real::Conditions<'_>,
    ) -> Result<RunResult, real::RunError>;
    /// The plan of a seed as a repro file.
    fn plan(&self, seed: Seed, demands: &Demands) -> String;
    /// The plan of a seed in a few lines: what was drawn.
    fn summary(&self, seed: Seed, demands: &Demands) -> String;
    /// What a repro file is about.
    fn head(&self, repro: &str) -> Result<Head, PlanError>;
    /// Performs the plan of a repro file.
    fn replay(&self, repro: &str, keep_trace: bool) -> Result<RunResult, PlanError>;
}

/// What a repro file is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The seed it was drawn from.
    pub seed: u64,
    /// What was asked for when it was drawn.
    pub demands: Demands,
    /// What it holds, in a few lines.
    pub summary: String,
}

/// A workload's entry.
struct Of<W>(PhantomData<fn() -> W>);

/// The entry of a workload.
pub fn entry<W: Workload>() -> Box<dyn Entry> {
    Box::new(Of::<W>(PhantomData))
}

impl<W: Workload> Entry for Of<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }
    fn about(&self) -> &'static str {
        W::ABOUT
    }
    fn bugs(&self) -> &'static [Bug] {
        W::bugs()
    }
    fn points(&self) -> &'static [&'static str] {
        W::points()
    }
    fn run(&self, seed: Seed, demands: &Demands, keep_trace: bool) -> RunResult {
        runner::run(&Plan::<W>::draw(seed, demands), keep_trace)
    }
    #[cfg(feature = "fdb-client")]
    fn run_on(
        &self,
        open: real::Open<'_>,
        site: &real::Site,
        seed: Seed,
        demands: &Demands,
        conditions: real::Conditions<'_>,
    ) -> Result<RunResult, real::RunError> {
        real::run(&Plan::<W>::draw(seed, demands), open, site, conditions)
    }
    fn plan(&self, seed: Seed, demands: &Demands) -> String {
        Plan::<W>::draw(seed, demands).to_json()
    }
    fn summary(&self, seed: Seed, demands: &Demands) -> String {
        Plan::<W>::draw(seed, demands).summary()
    }
    fn head(&self, repro: &str) -> Result<Head, PlanError> {
        let plan = Plan::<W>::from_json(repro)?;
        Ok(Head { seed: plan.seed, summary: plan.summary(), demands: plan.demands })
    }
    fn replay(&self, repro: &str, keep_trace: bool) -> Result<RunResult, PlanError> {
        Ok(runner::run(&Plan::<W>::from_json(repro)?, keep_trace))
    }
}

/// Every workload, in the order of `shaketable list`.
pub fn catalogue() -> Vec<Box<dyn Entry>> {
    use crate::workloads::*;
    vec![
        entry::<cycle::Cycle>(),
        entry::<api::Api>(),
        entry::<Mounted<queue::Queue>>(),
        entry::<Mounted<signup::Signup>>(),
        entry::<Mounted<index::Index>>(),
        entry::<Mounted<array::Array>>(),
        entry::<Mounted<list::List>>(),
        entry::<Mounted<vector::Vector>>(),
        entry::<Mounted<graph::Graph>>(),
        entry::<Mounted<entity::Entity>>(),
        entry::<Mounted<blob::Blob>>(),
        entry::<upload::Upload>(),
        entry::<Mounted<multimap::Multimap>>(),
        entry::<Mounted<table::Table>>(),
        entry::<Mounted<directory::Directory>>(),
        entry::<Mounted<hierarchy::Hierarchy>>(),
        entry::<Mounted<document::Document>>(),
        entry::<Mounted<priority_queue::Queue>>(),
        entry::<session::Sessions>(),
        entry::<staged_queue::Staged>(),
        entry::<leased_queue::Leased>(),
        entry::<bulk::Bulk>(),
        entry::<Mounted<counter::Counter>>(),
        entry::<Mounted<log::Log>>(),
        entry::<Mounted<encoding::Encoding>>(),
    ]
}

/// The entry of this name.
pub fn find(name: &str) -> Option<Box<dyn Entry>> {
    catalogue().into_iter().find(|e| e.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_file_of_the_folder_is_listed() {
        let listed: Vec<_> = catalogue().iter().map(|e| e.name()).collect();
        let mut unique = listed.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), listed.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/workloads");
        let files = std::fs::read_dir(folder).expect("the folder of workloads");
        for file in files {
            let path = file.expect("a file of it").path();
            let name = path.file_stem().and_then(|s| s.to_str()).expect("a file name");
            if name != "mod" && path.is_file() {
                assert!(listed.contains(&name), "{name} is not in the catalogue");
            }
        }
    }

    #[test]
    fn bugs_have_unique_names_within_their_workload() {
        for entry in catalogue() {
            let mut names: Vec<_> = entry.bugs().iter().map(|b| b.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), entry.bugs().len(), "{}", entry.name());
        }
    }
}
