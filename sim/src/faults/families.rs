//! The families of faults, by name.

use serde::{Deserialize, Serialize};

macro_rules! families {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)*) => {
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
        }
    };
}

families! {
    /// A machine is killed and comes back.
    Kill = "kill",
    /// Every machine of the cluster restarts at once.
    Reboot = "reboot",
    /// A machine stops for a while.
    Pause = "pause",
    /// A client dies during an operation, and is followed by another incarnation.
    ClientDeath = "client-death",
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
    UnknownCommitted = "unknown-committed",
    /// 1021 and the commit did not happen.
    UnknownNotCommitted = "unknown-not-committed",
    /// 1022, whether the commit happened or not.
    UnknownFatal = "unknown-fatal",
    /// 1031 and the commit happens later.
    LateLanding = "late-landing",
    /// A commit is sent when its read version is about to leave the window.
    WindowEdge = "window-edge",
    /// 1020 without a conflict.
    SpuriousConflict = "spurious-conflict",
    /// 1007 at a fresh version.
    TooOld = "too-old",
    /// A causally risky read version is up to a second old.
    RiskyRead = "risky-read",
    /// 1009 at a version that exists.
    FutureVersion = "future-version",
    /// 1037.
    ProcessBehind = "process-behind",
    /// 1039, before, during or after a commit.
    ClusterVersionChanged = "cluster-version-changed",
    /// 1042.
    ProxyMemory = "proxy-memory",
    /// 1078.
    GrvMemory = "grv-memory",
    /// 1051, 1213, 1223 or 1235.
    Throttled = "throttled",
    /// 1242.
    RangeLocked = "range-locked",
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
    Departure = "departure",
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
