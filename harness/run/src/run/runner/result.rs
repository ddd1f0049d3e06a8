//! The result of a run, as plain data.

use super::Performed;
use crate::judge::finding::{Accused, Finding, Verdict, deciding};
use shaketable_reports::{Counters, Outcomes, RunHistory};
use shaketable_sim::{
    faults::{Decision, Family, Requests},
    rt::Nanos,
    trace::Event,
};
use shaketable_tx::points::Seen;
use std::collections::BTreeMap;

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// The findings of the judges and of the runner.
    pub findings: Vec<Finding>,
    /// The counters.
    pub counters: Counters,
    /// How the operations ended, by kind.
    pub outcomes: BTreeMap<&'static str, Outcomes>,
    /// What the operations took.
    pub performed: Performed,
    /// Faults delivered, by family.
    pub faults: BTreeMap<Family, u64>,
    /// The faults that the rates gave, or the plan's decisions as far as they were met.
    pub decisions: Vec<Decision>,
    /// The requests of operations, if the plan decides on faults or if events were kept.
    pub requests: Requests,
    /// The hash of the whole event stream, which includes the final keyspace.
    pub event_hash: u64,
    /// The number of events.
    pub events: u64,
    /// The virtual time of the run, nanoseconds.
    pub virtual_time: Nanos,
    /// How often the claims in layer and workload code were evaluated and held.
    pub points: BTreeMap<&'static str, Seen>,
    /// The events, if they were kept.
    pub trace: Vec<Event>,
    /// What happened, as plain data with decoded keys, if events were kept.
    pub history: Option<Box<RunHistory>>,
}

impl RunResult {
    /// Whether the finding that decides the verdict accuses what is no promise of the layer.
    pub fn accuses_workload(&self) -> bool {
        deciding(&self.findings).is_some_and(|finding| finding.kind.accused() == Accused::Workload)
    }

    /// How the run ended.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.findings)
    }
}
