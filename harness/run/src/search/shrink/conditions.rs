//! Simplifies the conditions of the remaining plan: the cluster, the schedule and the workload's
//! configuration.

use super::{
    Reduced, Sketch,
    configuration::Parts,
    search::{FEW, MANY, Search},
};
use crate::judge::panics;
use serde_json::Value;
use shaketable_sim::{config::ClusterConfig, faults::Profile};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Search<'_> {
    pub(super) fn simplify_cluster(&mut self) {
        let cluster = &self.best.cluster;
        let mut smallest = ClusterConfig {
            cluster_bug: cluster.cluster_bug,
            window: cluster.window,
            versions_per_second: cluster.versions_per_second,
            ..ClusterConfig::smallest()
        };
        // Durations that are even already remain so.
        for (duration, present) in smallest.durations().into_iter().zip(cluster.clone().durations()) {
            if present.end - present.start == 1 {
                duration.end = duration.start + 1;
            }
        }
        if self.best.cluster != smallest {
            let candidate = Sketch { cluster: smallest, ..self.best.clone() };
            self.fails(candidate, FEW);
        }
        if self.best.pause > 0 {
            let candidate = Sketch { pause: 0, ..self.best.clone() };
            self.fails(candidate, FEW);
        }
    }

    /// Makes durations constant, so that the order of events follows from the plan.
    pub(super) fn simplify_schedule(&mut self) {
        let count = self.best.cluster.durations().len();
        if !self.even(&(0..count).collect::<Vec<_>>(), MANY) && !self.put_in_order() {
            (0..count).for_each(|duration| {
                self.even(&[duration], FEW);
            });
        }
        let schedule = self.subject.whole().schedule;
        if self.best.schedule != schedule {
            self.fails(Sketch { schedule, ..self.best.clone() }, 1);
        }
    }

    /// Makes some kinds of durations constant.
    fn even(&mut self, which: &[usize], schedules: usize) -> bool {
        let candidate = Sketch { cluster: evened(&self.best.cluster, which), ..self.best.clone() };
        candidate.cluster == self.best.cluster || self.fails(candidate, schedules)
    }

    /// Makes all durations constant, and prescribes the order that the requests had in the run that failed.
    fn put_in_order(&mut self) -> bool {
        if !self.best.faults.order.is_empty() || self.subject.profile() == Profile::Calm {
            return false;
        }
        let requests = self.subject.requests(&self.best);
        let order = requests.into_iter().filter_map(|step| self.best.original(step)).collect();
        let all: Vec<usize> = (0..self.best.cluster.durations().len()).collect();
        let mut candidate = Sketch { cluster: evened(&self.best.cluster, &all), ..self.best.clone() };
        candidate.faults.order = order;
        if !self.fails(candidate, FEW) {
            return false;
        }
        self.take_groups(Sketch::faults);
        true
    }

    /// Uses simpler values in the configuration, among those that other seeds have drawn.
    pub(super) fn simplify_configuration(&mut self) {
        if self.claim.is_panic() {
            // A configuration with which the workload cannot be would panic as well.
            return;
        }
        let (whole, others) = self.subject.configurations();
        let present =
            |best: &Sketch| best.configuration.as_ref().map_or(&whole, |reduced| &reduced.value).clone();
        let before = present(&self.best);
        let parts = Parts::new(&before, &others);
        // All at once, then halves of those that cannot be.
        let mut groups = vec![parts.paths().collect::<Vec<_>>()];
        while let Some(paths) = groups.pop() {
            let before = present(&self.best);
            let simplest = parts.simplest(&paths, &before);
            if self.stopped || simplest == before || self.configure(simplest) {
                continue;
            }
            match paths.as_slice() {
                [path] => drop(parts.simpler(path, &before).find(|simpler| self.configure(simpler.clone()))),
                _ => groups.extend(paths.chunks(paths.len().div_ceil(2)).map(<[&str]>::to_vec)),
            }
        }
    }

    /// Tries a configuration, unless its strategy could not draw the remaining operations.
    fn configure(&mut self, value: Value) -> bool {
        let unchecked = Reduced { value: value.clone(), clients: self.best.clients() };
        let unchecked = Sketch { configuration: Some(unchecked), schedule: 0, ..self.best.clone() };
        if self.stopped || self.is_refused(&unchecked) {
            return false;
        }
        // The samples of its strategies can take as long as a run.
        self.report_progress();
        if self.stopped {
            return false;
        }
        let configured = || self.subject.configured(&self.best, value);
        // An impossible one may panic when its operations are drawn.
        let candidate = panics::recorded(|| catch_unwind(AssertUnwindSafe(configured))).ok().flatten();
        let fails = candidate.is_some_and(|candidate| self.fails(candidate, FEW));
        if !fails {
            self.refuse(&unchecked);
        }
        fails
    }
}

/// A cluster with some kinds of durations constant.
fn evened(cluster: &ClusterConfig, which: &[usize]) -> ClusterConfig {
    let mut cluster = cluster.clone();
    for (number, duration) in cluster.durations().into_iter().enumerate() {
        if which.contains(&number) {
            duration.end = duration.start + 1;
        }
    }
    cluster
}
