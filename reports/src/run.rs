//! One run: what was asked for, what was drawn, what happened and what the judges say.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a whole command says with its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every invariant held, and enough happened for that to mean something.
    Passed,
    /// Needed counters are zero: the runs passed, but show nothing.
    Vacuous,
    /// Somebody asked it to end before it had done what it was to do; what it did, passed.
    Interrupted,
    /// A workload's invariant was violated, or a run was stuck.
    Violated,
    /// The harness itself is at fault, so that none of its other verdicts can be relied on.
    Harness,
}

impl Outcome {
    /// The exit code. 2 is for bad usage and never the outcome of a run. Whatever was found before, a command
    /// that a signal has interrupted exits with 128 and the signal's number: 130 for Ctrl-C.
    pub const fn exit_code(self) -> u8 {
        match self {
            Outcome::Passed => 0,
            Outcome::Violated => 1,
            Outcome::Harness => 3,
            Outcome::Vacuous => 4,
            Outcome::Interrupted => 130,
        }
    }
}

/// The judge by whose name a run tells that the real cluster it ran on does not answer any more.
pub const LOST: &str = "cluster";

/// What the judges say about one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every judge was content.
    Passed,
    /// An invariant of the workload was violated.
    Violated {
        /// Which judge says so.
        judge: String,
        /// What it saw; may have several lines.
        message: String,
    },
    /// Operations did not end within the bound of virtual time after all faults had ended.
    Stuck {
        /// Who waits for what.
        message: String,
    },
    /// The simulated cluster or the harness is at fault, not the layer.
    Harness {
        /// Which judge says so.
        judge: String,
        /// What it saw; may have several lines.
        message: String,
    },
}

impl Verdict {
    /// The outcome of a command that consists of this run alone.
    pub const fn outcome(&self) -> Outcome {
        match self {
            Verdict::Passed => Outcome::Passed,
            Verdict::Violated { .. } | Verdict::Stuck { .. } => Outcome::Violated,
            Verdict::Harness { .. } => Outcome::Harness,
        }
    }

    /// The judge that objected, if one did.
    pub fn judge(&self) -> Option<&str> {
        match self {
            Verdict::Passed => None,
            Verdict::Stuck { .. } => Some("live"),
            Verdict::Violated { judge, .. } | Verdict::Harness { judge, .. } => Some(judge),
        }
    }

    /// What the objecting judge saw.
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
        /// How often what happened, in one run or summed over many.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Counters { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// Every counter with its name in words.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$(($text, self.$name)),*]
            }

            /// Adds another run's counters.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
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
    /// Transactions committed, as the cluster's log says; read-only ones are not among them.
    committed = "commits",
    /// Commits refused with not_committed (1020).
    conflicts = "conflicts",
    /// Commits answered with commit_unknown_result (1021) that had happened.
    unknown_committed = "unknown results that committed",
    /// Commits answered with commit_unknown_result (1021) that had not happened.
    unknown_not_committed = "unknown results that did not commit",
    /// Commits that took effect after the client had been told something else than success.
    late_landings = "late landings",
    /// Attempts after the first of a transaction.
    retries = "retries",
    /// Faults delivered, of all families.
    faults = "faults",
    /// Audits evaluated.
    audits = "audits",
    /// Recoveries of the cluster into a new generation.
    recoveries = "recoveries",
}

/// A point in layer or workload code that says `sometimes!` or `reachable!`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointReport {
    /// Its name.
    pub name: String,
    /// How often it was passed.
    pub passed: u64,
    /// How often its condition was true then; each time, for `reachable!`.
    pub held: u64,
}

impl PointReport {
    /// Whether it happened at all.
    pub fn was_reached(&self) -> bool {
        self.held > 0
    }
}

/// What a judge found beside what decided the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingReport {
    /// The judge.
    pub judge: String,
    /// What it saw.
    pub message: String,
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
    /// The planted bug that was switched on, if one was.
    pub bug: Option<String>,
    /// The repro file that was replayed in place of what the seed draws, if one was.
    pub repro: Option<String>,
    /// What the judges say.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What judges found beside what decided the verdict.
    pub also: Vec<FindingReport>,
    /// The hash over the event stream and the final keyspace, 16 hexadecimal digits.
    pub event_hash: String,
    /// How many events the hash covers.
    pub events: u64,
    /// Virtual time from the run's start to its end, nanoseconds.
    pub virtual_ns: u64,
    /// Counters.
    pub counters: Counters,
    /// Faults delivered, by family; those that never struck are left out.
    pub faults_delivered: BTreeMap<String, u64>,
    /// What the seed drew, as text of one or more lines.
    pub configuration: String,
    /// The command line that reproduces the run.
    pub replay: String,
}
