//! One run: what was requested, what was drawn, what happened, and the judges' verdict.

use crate::{
    history::{RunHistory, ShrunkRun},
    text::count,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// The result of a whole command, reported by its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Every invariant held, and enough happened to make this meaningful.
    Passed,
    /// Required counters are zero: the runs passed, but prove nothing.
    Vacuous,
    /// The command was interrupted before it was complete; the completed part passed.
    Interrupted,
    /// A workload's invariant was violated, or a run was stuck.
    Violated,
    /// The harness itself is at fault, so that none of its other verdicts is reliable.
    Harness,
}

impl Conclusion {
    /// The exit code. 2 is for bad usage, and never the outcome of a run. A command that was interrupted by a
    /// signal exits with 128 plus the signal's number, regardless of what was found before: 130 for Ctrl-C.
    pub const fn exit_code(self) -> u8 {
        match self {
            Conclusion::Passed => 0,
            Conclusion::Violated => 1,
            Conclusion::Harness => 3,
            Conclusion::Vacuous => 4,
            Conclusion::Interrupted => 130,
        }
    }
}

/// The name of the judge that reports that the real cluster no longer responds.
pub const LOST: &str = "cluster";

/// The judges' verdict on one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// No judge objected.
    Passed,
    /// An invariant of the workload was violated.
    Violated {
        /// The judge that objected.
        judge: String,
        /// What it found; may have several lines.
        message: String,
    },
    /// Operations did not end within the bound of virtual time after all faults had ended.
    Stuck {
        /// The operations that wait, and what they wait for.
        message: String,
    },
    /// The simulated cluster or the harness is at fault, not the layer.
    Harness {
        /// The judge that objected.
        judge: String,
        /// What it found; may have several lines.
        message: String,
    },
}

impl Verdict {
    /// The outcome of a command that consists of only this run.
    pub const fn outcome(&self) -> Conclusion {
        match self {
            Verdict::Passed => Conclusion::Passed,
            Verdict::Violated { .. } | Verdict::Stuck { .. } => Conclusion::Violated,
            Verdict::Harness { .. } => Conclusion::Harness,
        }
    }

    /// The judge that objected, if any.
    pub fn judge(&self) -> Option<&str> {
        match self {
            Verdict::Passed => None,
            Verdict::Stuck { .. } => Some("live"),
            Verdict::Violated { judge, .. } | Verdict::Harness { judge, .. } => Some(judge),
        }
    }

    /// What the objecting judge found.
    pub fn message(&self) -> Option<&str> {
        match self {
            Verdict::Passed => None,
            Verdict::Violated { message, .. }
            | Verdict::Stuck { message }
            | Verdict::Harness { message, .. } => Some(message),
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The number of occurrences of various events, in one run or summed over many.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// Every counter with its descriptive name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$(($text, self.$name)),*]
            }

            /// Adds another run's counters.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }
    };
}

counters! {
    /// Operations that clients called.
    operations = "operations",
    /// Operations whose outcome stayed unknown to their client.
    unknown_operations = "operations of unknown outcome",
    /// Attempts at transactions.
    attempts = "attempts",
    /// Transactions committed according to the cluster's log, without read-only ones.
    committed = "commits",
    /// Commits that failed with not_committed (1020).
    conflicts = "conflicts",
    /// Commits that failed with commit_unknown_result (1021) and had happened.
    unknown_committed = "unknown results that committed",
    /// Commits that failed with commit_unknown_result (1021) and had not happened.
    unknown_not_committed = "unknown results that did not commit",
    /// Commits that took effect after a result other than success was reported to the client.
    late_landings = "late landings",
    /// Attempts of a transaction after the first.
    retries = "retries",
    /// Faults delivered, of all families.
    faults = "faults",
    /// Audits evaluated.
    audits = "audits",
    /// Watches that operations set.
    watches = "watches",
    /// Waits of operations that were judged.
    waits = "judged waits",
    /// Recoveries of the cluster into a new generation.
    recoveries = "recoveries",
}

/// How the operations of a kind ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    /// Those that were done.
    pub done: u64,
    /// Those that the layer refused.
    pub refused: u64,
    /// Those that failed with an error and without an effect.
    pub failed: u64,
    /// Those of which their client does not know whether they took effect, or that did not end.
    pub unknown: u64,
    /// Whether the workload says that they need not succeed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rare: bool,
}

impl Outcomes {
    /// All operations.
    pub fn all(&self) -> u64 {
        [self.refused, self.failed, self.unknown].into_iter().fold(self.done, u64::saturating_add)
    }

    /// Adds others.
    pub fn add(&mut self, other: &Outcomes) {
        for (sum, n) in [
            (&mut self.done, other.done),
            (&mut self.refused, other.refused),
            (&mut self.failed, other.failed),
            (&mut self.unknown, other.unknown),
        ] {
            *sum = sum.saturating_add(n);
        }
        self.rare |= other.rare;
    }

    /// The share of those that were done, in per cent with a decimal, rounded down; empty if there are none.
    pub fn share(&self) -> String {
        let all = u128::from(self.all());
        match (u128::from(self.done) * 1_000).checked_div(all) {
            Some(mille) => format!("{}.{} %", mille / 10, mille % 10),
            None => String::new(),
        }
    }

    /// How those that were not done ended: `40 refused, 3 failed, 1 unknown`.
    pub fn others(&self) -> String {
        let others = [(self.refused, "refused"), (self.failed, "failed"), (self.unknown, "unknown")];
        let some = others.into_iter().filter(|(n, _)| *n > 0);
        some.map(|(n, how)| format!("{} {how}", count(n))).collect::<Vec<_>>().join(", ")
    }
}

/// A claim in layer or workload code: a `sometimes!` or `reachable!`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointReport {
    /// Its name.
    pub name: String,
    /// How often the line was executed.
    pub passed: u64,
    /// How often its condition was true; each time, for `reachable!`.
    pub held: u64,
}

impl PointReport {
    /// Whether it occurred at all.
    pub fn was_reached(&self) -> bool {
        self.held > 0
    }
}

impl RunReport {
    /// The command line that reproduces the run of another seed of the same sweep. Returns `None` if this run
    /// is not the run of a seed.
    pub fn replay_of(&self, seed: u64) -> Option<String> {
        let (before, after) = self.replay.split_once(&format!(" replay {} {} ", self.workload, self.seed))?;
        Some(format!("{before} replay {} {seed} {after}", self.workload))
    }

    /// The command line that shrinks the run. Returns `None` if the run passed, or was on a real cluster.
    pub fn shrink_line(&self) -> Option<String> {
        if self.verdict == Verdict::Passed || self.replay.contains(" --backend ") {
            return None;
        }
        let what = match &self.repro {
            None => format!("{} {}", self.workload, self.seed),
            Some(_) => String::new(),
        };
        let (before, after) = self.replay.split_once(&format!(" replay {what}"))?;
        Some(format!("{before} shrink {what}{after}"))
    }
}

/// A judge's finding in addition to the one that determined the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingReport {
    /// The judge.
    pub judge: String,
    /// What it found.
    pub message: String,
}

/// How many times as long as usual a run is: from 1 to [`Scale::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Scale(u32);

impl Scale {
    /// The largest scale. Workloads number the calls of a client in 16 bits, and must not name two of them
    /// alike.
    pub const MOST: u32 = 100;
    /// A run that is as long as usual.
    pub const USUAL: Scale = Scale(1);
    /// One of the long runs of a sweep that goes on for long.
    pub const LONG: Scale = Scale(10);

    /// Whether the run is as long as usual.
    pub fn is_usual(&self) -> bool {
        *self == Scale::USUAL
    }
}

impl Default for Scale {
    fn default() -> Scale {
        Scale::USUAL
    }
}

impl TryFrom<u32> for Scale {
    type Error = String;

    fn try_from(times: u32) -> Result<Scale, String> {
        match times {
            1..=Scale::MOST => Ok(Scale(times)),
            _ => Err(format!("a scale is a number from 1 to {}, and not {times}", Scale::MOST)),
        }
    }
}

impl From<Scale> for u32 {
    fn from(scale: Scale) -> u32 {
        scale.0
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The workload's name.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The fault profile: calm, standard or storm.
    pub faults: String,
    /// Fault families that were switched off.
    pub without: Vec<String>,
    /// How many times as long as usual it was.
    #[serde(default, skip_serializing_if = "Scale::is_usual")]
    pub scale: Scale,
    /// The planted bug that was switched on, if any.
    pub bug: Option<String>,
    /// The repro file that was replayed instead of a plan drawn from the seed, if any.
    pub repro: Option<String>,
    /// The judges' verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Findings in addition to the one that determined the verdict.
    pub other_findings: Vec<FindingReport>,
    /// The hash over the event stream and the final keyspace, 16 hexadecimal digits. A real cluster shows no
    /// events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_hash: Option<String>,
    /// The number of events that the hash covers.
    pub events: u64,
    /// Virtual time from the run's start to its end, nanoseconds. A real cluster has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_ns: Option<u64>,
    /// Counters.
    pub counters: Counters,
    /// Faults delivered, by family, without families that did not occur.
    pub faults_delivered: BTreeMap<String, u64>,
    /// What was drawn from the seed, as text of one or more lines.
    pub configuration: String,
    /// The command line that reproduces the run.
    pub replay: String,
    /// The plan of a run that did not pass, as a repro file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<serde_json::Value>,
    /// What remained of the run when it was shrunk, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shrunk: Option<Box<ShrunkRun>>,
    /// What happened in the run, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Box<RunHistory>>,
    /// What else is known of a run of a program, which `shaketable with` made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramReport>>,
}

/// What a program was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramReport {
    /// What FoundationDB does not refuse, and is how a correct program rarely works, most telling first: who
    /// did what, and why it may be wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<[String; 2]>,
    /// The errors that ended its attempts at transactions.
    pub errors: Vec<ErrorReport>,
}

/// An error that a program was given, and why FoundationDB gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// Its name and code.
    pub error: String,
    /// How often it was given.
    pub times: u64,
    /// How often faults gave it without another cause, by fault; `None` if no fault does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected: Option<BTreeMap<String, u64>>,
    /// When FoundationDB gives it, and what it means for the transaction. Empty if nothing is to be said.
    pub meaning: String,
    /// The page of FoundationDB's documentation about it.
    pub link: String,
}
