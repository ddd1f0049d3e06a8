//! The families of faults: their names, the errors that they give, and which of them a real cluster has.

use serde::{Deserialize, Serialize};
use shaketable_tx::Error;

macro_rules! families {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal $(gives $error:ident)? $(($real:ident))?,)*) => {
        /// A family of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Family { $($(#[doc = $doc])+ $name,)* }

        impl Family {
            /// Every family.
            pub const ALL: &'static [Family] = &[$(Family::$name),*];

            /// The name with which it is switched off.
            pub const fn name(self) -> &'static str {
                match self { $(Family::$name => $text),* }
            }

            /// A description of one or two lines.
            pub fn about(self) -> &'static str {
                match self { $(Family::$name => concat!($($doc),+).trim_ascii()),* }
            }

            /// The error that it gives to a call. None if it gives no error, or one of several.
            pub fn error(self) -> Option<Error> {
                match self { $(Family::$name => families!(@error $($error)?)),* }
            }

            /// Whether a real cluster has it as well: a run there delivers the deaths of clients, and the
            /// fault injection of FoundationDB's client ends calls with errors (`CLIENT_BUGGIFY` in its
            /// `NativeAPI.actor.cpp`).
            pub fn is_real(self) -> bool {
                match self { $(Family::$name => families!(@real $($real)?)),* }
            }
        }
    };
    (@error $error:ident) => { Some(Error::$error) };
    (@error) => { None };
    (@real real) => { true };
    (@real) => { false };
}

families! {
    /// A machine is killed and comes back.
    Kill = "kill",
    /// Every machine of the cluster restarts at once.
    Reboot = "reboot",
    /// A machine stops for a while.
    Pause = "pause",
    /// A client dies during an operation, and is followed by another incarnation.
    ClientDeath = "client-death" (real),
    /// An operation's future is dropped, and its client continues.
    DroppedOperation = "dropped-operation",
    /// Messages between two machines are delayed, in one direction or both.
    Clog = "clog",
    /// Some machines cannot reach the others.
    Partition = "partition",
    /// Many links are clogged one after another and unclogged in a different order.
    Swizzle = "swizzle",
    /// A link loses messages.
    Loss = "loss",
    /// A link becomes slow.
    Latency = "latency",
    /// A storage server replies slowly.
    SlowStorage = "slow-storage",
    /// A storage server applies entries late.
    LaggingStorage = "lagging-storage",
    /// A log takes long to make entries durable.
    SlowLogSync = "slow-log-sync",
    /// A machine's clock is inaccurate.
    ClockSkew = "clock-skew",
    /// A shard moves to another team.
    MoveShard = "move-shard",
    /// 1021 although the commit happened.
    UnknownCommitted = "unknown-committed" gives COMMIT_UNKNOWN_RESULT (real),
    /// 1021 and the commit did not happen.
    UnknownNotCommitted = "unknown-not-committed" gives COMMIT_UNKNOWN_RESULT (real),
    /// 1022, whether the commit happened or not.
    UnknownFatal = "unknown-fatal" gives COMMIT_UNKNOWN_RESULT_FATAL,
    /// 1031 and the commit happens later.
    LateLanding = "late-landing" gives TRANSACTION_TIMED_OUT (real),
    /// A commit is sent when its read version is about to leave the window.
    WindowEdge = "window-edge",
    /// 1020 without a conflict.
    SpuriousConflict = "spurious-conflict" gives NOT_COMMITTED (real),
    /// 1007 at a fresh version.
    TooOld = "too-old" gives TRANSACTION_TOO_OLD (real),
    /// A causally risky read version is up to a second old.
    RiskyRead = "risky-read",
    /// 1009 at a version that exists.
    FutureVersion = "future-version" gives FUTURE_VERSION,
    /// 1037.
    ProcessBehind = "process-behind" gives PROCESS_BEHIND,
    /// 1039, before, during or after a commit.
    ClusterVersionChanged = "cluster-version-changed" gives CLUSTER_VERSION_CHANGED,
    /// 1042.
    ProxyMemory = "proxy-memory" gives COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED (real),
    /// 1078.
    GrvMemory = "grv-memory" gives GRV_PROXY_MEMORY_LIMIT_EXCEEDED (real),
    /// 1051, 1213, 1223 or 1235.
    Throttled = "throttled",
    /// 1242.
    RangeLocked = "range-locked" gives TRANSACTION_REJECTED_RANGE_LOCKED,
    /// 1038 for a while.
    Locked = "locked",
    /// Range reads return one row per batch.
    OneRowBatches = "one-row-batches",
    /// A watch fires before anything changed.
    EarlyWatch = "early-watch",
    /// A watch fires late.
    LateWatch = "late-watch",
    /// A watch fires with an error.
    SpuriousWatch = "spurious-watch",
    /// Read versions live for a fraction of five seconds.
    ShortLifetime = "short-lifetime",
    /// A client dies for good: nobody takes up its session.
    Departure = "departure" (real),
}

impl Family {
    /// The maximum number of times that it occurs in a run.
    pub(crate) fn max_occurrences(self) -> u64 {
        match self {
            // Each costs its client about five seconds of virtual time: a few are as informative as many.
            Family::WindowEdge => 8,
            _ => u64::MAX,
        }
    }

    /// The family with this name.
    pub fn named(name: &str) -> Option<Family> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_agree_with_serde() {
        for family in Family::ALL {
            assert_eq!(Family::named(family.name()), Some(*family));
        }
    }
}
