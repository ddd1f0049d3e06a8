//! Findings: what went wrong in a run, and the verdict that follows from it.

use crate::describe::erased::AnyValue;
use crate::describe::kinds;
use crate::judge::panics::Panicked;
use serde::{Deserialize, Serialize};
pub use shaketable_sim::judges::{Objection, Witness};
use shaketable_sim::{
    judges::{Judge, Said, truncated},
    rt::Nanos,
};
use shaketable_tx::Error;
use std::fmt;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $name:literal by $accused:ident,)*) => {
        /// The kind of a finding, named after the judge or the part of the runner that reports it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[doc = $doc])* $kind,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),* }
            }

            /// What a finding of this kind accuses.
            pub fn accused(self) -> Accused {
                match self { $(Kind::$kind => Accused::$accused),* }
            }
        }
    };
}

kinds! {
    /// Committed transactions are not equivalent to a serial order.
    Serializable = "serializable" by Harness,
    /// A transaction does not see a commit that was acknowledged before it began.
    RealTime = "real-time" by Harness,
    /// Acknowledged data is lost, or the final keyspace differs from the replay of the log.
    Durable = "durable" by Harness,
    /// Replicas of a shard differ.
    Convergent = "convergent" by Harness,
    /// The workload's setup asks for what FoundationDB refuses, or does not end.
    Setup = "setup" by Workload,
    /// A calm cluster refuses what any cluster must do.
    CalmCluster = "calm cluster" by Harness,
    /// Storage servers do not catch up on a healed cluster.
    Settle = "settle" by Harness,
    /// Two runs of one seed are not identical, and nothing shows that the simulator did it.
    Determinism = "determinism" by Workload,
    /// Two runs of one seed are not identical, although their clients ask for the same.
    Repeatable = "repeatable" by Harness,
    /// The simulator panicked.
    HarnessPanic = "panic" by Harness,
    /// The workload's sequential model panicked.
    WorkloadModel = "workload's model" by Workload,
    /// The real cluster was lost.
    Lost = "cluster" by Harness,
    /// An answer or an effect contradicts the sequential model.
    Model = "model" by Layer,
    /// An answer contradicts the promises of the layer, whatever other clients did.
    Answer = "answer" by Layer,
    /// An invariant is broken.
    Audit = "audit" by Layer,
    /// The database differs from the model, at its end or at an audited version.
    Check = "check" by Layer,
    /// An operation changes keys of other applications.
    Neighbours = "neighbours" by Layer,
    /// Operations that promise not to conflict can conflict.
    ConflictFree = "conflict-free" by Layer,
    /// An `always!` claim in the code of a layer or a workload does not hold.
    Always = "always" by Layer,
    /// An operation fails or stays unknown, and nothing in its run explains it; or it is unknown where it
    /// certainly has no effect.
    Unexplained = "unexplained" by Layer,
    /// A layer or a workload panicked.
    Panic = "panic" by Layer,
    /// An operation overwrote what another one wrote, without having seen it.
    Overwritten = "overwritten" by Layer,
    /// An operation took longer than its workload allows while the cluster served others.
    Slow = "slow" by Layer,
    /// An operation does not finish after faults have ended.
    Live = "live" by Layer,
}

impl From<Judge> for Kind {
    fn from(judge: Judge) -> Kind {
        match judge {
            Judge::Serializable => Kind::Serializable,
            Judge::RealTime => Kind::RealTime,
            Judge::Durable => Kind::Durable,
            Judge::Convergent => Kind::Convergent,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a finding accuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accused {
    /// The layer, or the workload that shakes it.
    Layer,
    /// Code of the user that is no promise of the layer: the workload's setup or model, or what makes its
    /// runs differ. No planted bug is caught by that.
    Workload,
    /// The simulator or the real cluster.
    Harness,
}

/// One thing that went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The details. A message of more than 2,000 characters is truncated, with a note of how many are
    /// missing.
    pub message: String,
    /// What contradicts the claim.
    pub witness: Witness,
    /// When the claim was contradicted, as far as that is known: findings are told in this order.
    pub(crate) at: Nanos,
    /// Which claim is contradicted, and how.
    pub(crate) said: Said,
    /// The kinds of the calls of each operation of the witness, in their order.
    pub(crate) called: Vec<Vec<&'static str>>,
}

impl Finding {
    /// Creates a finding without a witness, and truncates its message if necessary. What is wrong is the
    /// whole message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Finding {
        let message = message.into();
        let said = Said { name: String::new(), why: message.clone() };
        Finding::of(kind, Objection { message, said, ..Objection::default() })
    }

    /// The finding of a judge.
    pub fn of(kind: Kind, objection: Objection) -> Finding {
        let Objection { message, said, witness } = objection;
        let message = truncated(message);
        Finding { kind, message, said, witness: witness.settled(), at: Nanos::MAX, called: Vec::new() }
    }

    /// The finding about a panic, where `during` says during what.
    pub(crate) fn panicked(kind: Kind, during: &str, panicked: &Panicked) -> Finding {
        Finding::new(kind, format!("{during}{panicked}")).saying(panicked.into())
    }

    /// The finding with the claim that it contradicts.
    pub(crate) fn saying(self, said: Said) -> Finding {
        Finding { said, ..self }
    }

    /// The finding with what contradicts the claim: the first [`MOST`](Witness::MOST) of each, in ascending
    /// order.
    pub fn with(self, witness: Witness) -> Finding {
        Finding { witness: witness.settled(), ..self }
    }

    /// The finding with the time at which the claim was contradicted.
    pub(crate) fn at(self, at: Nanos) -> Finding {
        Finding { at, ..self }
    }

    /// Notes the kinds of the operations of the witness.
    pub(crate) fn calls(&mut self, planned: &[Vec<AnyValue>]) {
        let of = |(client, index): &(usize, usize)| planned.get(*client)?.get(*index);
        self.called = self.witness.operations.iter().filter_map(of).map(kinds::of).collect();
    }

    /// The verdict on a run of which this is the only finding.
    pub fn verdict(&self) -> Verdict {
        match (self.kind.accused(), self.kind) {
            (Accused::Harness, _) => Verdict::Harness,
            (Accused::Layer, Kind::Live) => Verdict::Stuck,
            (Accused::Layer | Accused::Workload, _) => Verdict::Violated,
        }
    }
}

/// Whether an error is about how FoundationDB was called, whatever the state of the cluster.
pub(crate) fn is_of_call(error: Error) -> bool {
    (2_000..3_000).contains(&error.code())
}

/// How a run ended, in the order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There are no findings.
    #[default]
    Passed,
    /// An operation did not finish after faults had ended.
    Stuck,
    /// The layer broke a promise, or the workload that shakes it is wrong.
    Violated,
    /// The simulator or the real cluster failed.
    Harness,
}

impl Verdict {
    /// The verdict on a run with these findings. The most severe one decides.
    pub fn of(findings: &[Finding]) -> Verdict {
        findings.iter().map(Finding::verdict).max().unwrap_or_default()
    }
}

/// Puts findings into the order in which the claims were contradicted. Those of which that is not known keep
/// their order, after the others.
pub(crate) fn in_order(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| finding.at);
}

/// The finding that decides the verdict: the first of the most severe ones.
pub fn deciding(findings: &[Finding]) -> Option<&Finding> {
    let verdict = Verdict::of(findings);
    findings.iter().find(|finding| finding.verdict() == verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::ids::AttemptId;

    #[test]
    fn the_most_severe_finding_decides() {
        let found = |kinds: &[Kind]| -> Vec<Finding> {
            kinds.iter().map(|kind| Finding::new(*kind, kind.name())).collect()
        };
        let decided = |kinds: &[Kind]| {
            let findings = found(kinds);
            (Verdict::of(&findings), deciding(&findings).map(|finding| finding.kind))
        };
        assert_eq!(decided(&[]), (Verdict::Passed, None));
        assert_eq!(decided(&[Kind::Live]), (Verdict::Stuck, Some(Kind::Live)));
        assert_eq!(decided(&[Kind::Live, Kind::Audit]), (Verdict::Violated, Some(Kind::Audit)));
        assert_eq!(decided(&[Kind::Panic, Kind::Audit]), (Verdict::Violated, Some(Kind::Panic)));
        assert_eq!(
            decided(&[Kind::Live, Kind::Audit, Kind::Durable]),
            (Verdict::Harness, Some(Kind::Durable))
        );
    }

    #[test]
    fn the_earliest_contradiction_decides() {
        let found = |kind: Kind, at| Finding::new(kind, kind.name()).at(at);
        let mut findings = vec![
            Finding::new(Kind::Check, "it"),
            found(Kind::Audit, 7),
            found(Kind::Model, 5),
            found(Kind::Panic, 5),
        ];
        in_order(&mut findings);
        let kinds: Vec<Kind> = findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [Kind::Model, Kind::Panic, Kind::Audit, Kind::Check]);
        assert_eq!(deciding(&findings).map(|finding| finding.kind), Some(Kind::Model));
    }

    #[test]
    fn names_of_kinds_are_unique_except_panic() {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        // "panic" is the name of two kinds: a panic of the layer, and a panic of the simulator.
        assert_eq!(once.len() + 1, names.len(), "{names:?}");
        assert_eq!(Kind::Lost.name(), shaketable_reports::run::LOST);
    }

    #[test]
    fn a_long_message_is_truncated() {
        let long = "ä".repeat(2_003);
        let message = Finding::new(Kind::Model, long).message;
        assert_eq!(message, format!("{}… (3 characters more)", "ä".repeat(2_000)));
        assert_eq!(Finding::new(Kind::Model, "ä".repeat(2_000)).message.chars().count(), 2_000);
    }

    #[test]
    fn a_witness_keeps_what_is_named_first_in_order() {
        let named = (0..30u32).rev().flat_map(|id| [AttemptId(id), AttemptId(id)]).collect();
        let long = "x".repeat(2_001);
        let witness = Witness { attempts: named, found: Some(long), ..Witness::operation(1, 2) };
        let witness = Finding::new(Kind::Model, "it").with(witness).witness;
        assert_eq!(witness.attempts, (10..30).map(AttemptId).collect::<Vec<_>>());
        assert_eq!(witness.operations, [(1, 2)]);
        assert!(witness.found.is_some_and(|found| found.ends_with("x… (1 characters more)")));
    }
}
