//! The complete configuration of a simulated cluster as plain data, drawn from the seed.

use crate::{
    proto::Version,
    rt::{MILLISECOND, Nanos, SECOND},
    seed::Seed,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The first version of most clusters, as long as there were no others.
fn usual_first_version() -> Version {
    100_000_000
}

/// A first version. In some clusters the versions exceed during the run what 31 or 32 bits hold, or have long
/// exceeded it, as those of a cluster that has run for months.
fn draw_first_version(seed: Seed) -> Version {
    let mut rng = seed.stream("first version");
    let soon = rng.range(1..10_000_000) as Version;
    match rng.below(10) {
        0 => (1 << 31) - soon,
        1 | 2 => (1 << 32) - soon,
        3 => 10_000_000_000_000,
        _ => usual_first_version(),
    }
}

/// The components of a simulated cluster and their timing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterConfig {
    /// Transaction logs; every log holds all data, and a commit waits for all of them.
    pub logs: u16,
    /// Storage servers.
    pub storage_servers: u16,
    /// Copies of each shard, at most one per storage server.
    pub replicas: u16,
    /// GRV proxies.
    pub grv_proxies: u16,
    /// Commit proxies.
    pub commit_proxies: u16,
    /// Resolvers, among which the keyspace is partitioned.
    pub resolvers: u16,
    /// Idle machines that a recovery can recruit.
    pub spares: u16,
    /// The boundaries between shards, ascending; without boundaries there is one shard.
    pub shard_boundaries: Vec<Bytes>,
    /// The boundaries between the resolvers' partitions, `resolvers - 1` keys, ascending.
    pub resolver_boundaries: Vec<Bytes>,
    /// The network.
    pub net: NetConfig,
    /// How long a commit proxy collects a batch, nanoseconds.
    pub commit_batch_interval: Nanos,
    /// The maximum number of transactions in a batch.
    pub commit_batch_max: usize,
    /// How long a GRV proxy collects requests, nanoseconds.
    pub grv_batch_interval: Nanos,
    /// How long a log takes to make an entry durable, nanoseconds.
    pub log_sync: Range<Nanos>,
    /// How long a storage server takes to reply to a read, nanoseconds.
    pub storage_read: Range<Nanos>,
    /// How long a storage server waits before it applies pulled entries, nanoseconds.
    pub storage_lag: Range<Nanos>,
    /// How often a storage server makes its state durable, nanoseconds.
    pub storage_durable_interval: Nanos,
    /// Versions per second.
    pub versions_per_second: Version,
    /// The window of reads and conflict detection, in versions (5,000,000 in FoundationDB).
    pub window: Version,
    /// The version of the first commit.
    #[serde(default = "usual_first_version")]
    pub first_version: Version,
    /// How far the version jumps at a recovery (100,000,000 in FoundationDB).
    pub recovery_jump: Version,
    /// The interval at which the controller checks the machines, nanoseconds.
    pub heartbeat: Nanos,
    /// The time without a reply after which it considers a machine dead, nanoseconds.
    pub failure_timeout: Nanos,
    /// The maximum number of bytes in a reply to a range read (80,000 in FoundationDB).
    pub reply_byte_limit: usize,
    /// A bug planted in the cluster itself, to test that the judges detect it.
    pub cluster_bug: Option<ClusterBug>,
}

macro_rules! cluster_bugs {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)*) => {
        /// Planted bugs of the cluster that the judges of the cluster must catch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ClusterBug { $($(#[doc = $doc])+ $name,)* }

        impl ClusterBug {
            /// All of them.
            pub const ALL: &'static [ClusterBug] = &[$(ClusterBug::$name),*];

            /// The name with which it is selected.
            pub const fn name(self) -> &'static str {
                match self { $(ClusterBug::$name => $text),* }
            }

            /// A one-line description.
            pub fn about(self) -> &'static str {
                match self { $(ClusterBug::$name => concat!($($doc),+).trim_ascii()),* }
            }
        }
    };
}

cluster_bugs! {
    /// The resolver checks only the first key of a read range.
    ResolverIgnoresRanges = "resolver-ignores-ranges",
    /// A log acknowledges a push before the entry is durable.
    LogAnswersEarly = "log-answers-early",
    /// A storage server occasionally skips a version.
    StorageSkipsVersion = "storage-skips-version",
    /// A recovery ends the old generation one acknowledged version too early.
    RecoveryForgetsCommit = "recovery-forgets-commit",
    /// A client's range read does not see one of the transaction's own writes.
    ClientLosesOwnWrite = "client-loses-own-write",
    /// A commit proxy gives two transactions of a batch the same versionstamp.
    VersionstampRepeats = "versionstamp-repeats",
    /// A GRV proxy returns a version from before the latest acknowledged commit.
    StaleReadVersion = "stale-read-version",
    /// One replica applies the mutations of a batch in a different order.
    ReplicaReorders = "replica-reorders",
    /// The resolver does not compare a transaction with earlier ones of its batch.
    ResolverIgnoresBatch = "resolver-ignores-batch",
    /// A commit proxy tells the order among the accepted transactions instead of all.
    ProxyMiscounts = "proxy-miscounts",
    /// A commit proxy logs the transactions of a batch in reverse order.
    ProxyReordersBatch = "proxy-reorders-batch",
    /// The resolver takes the keys behind a write range for keys that were never written.
    ResolverForgetsStep = "resolver-forgets-step",
    /// The resolver remembers only the first key of a write range.
    ResolverNarrowsWrites = "resolver-narrows-writes",
    /// A read range that spans resolvers is checked only by the one that has its begin.
    ResolverSplitsRanges = "resolver-splits-ranges",
    /// The resolver accepts a transaction whose read version is before its window.
    ResolverTakesOld = "resolver-takes-old",
    /// The resolver forgets writes long before their window ends.
    ResolverForgetsEarly = "resolver-forgets-early",
    /// The resolver takes batches in the order in which they arrive.
    ResolverIgnoresOrder = "resolver-ignores-order",
    /// The resolver ignores writes of the last part of a read range.
    ResolverForgetsEnd = "resolver-forgets-end",
    /// A commit proxy heeds the first resolver only.
    ProxyAsksOneResolver = "proxy-asks-one-resolver",
    /// A versionstamped key gets no write conflict range.
    ProxyLeavesStampedKeys = "proxy-leaves-stamped-keys",
    /// A commit proxy logs the first eight writes of a transaction.
    ProxyCutsTransactions = "proxy-cuts-transactions",
    /// An atomic operation wakes no watch.
    StorageAtomicsWakeNobody = "storage-atomics-wake-nobody",
    /// A cleared range wakes no watch.
    StorageClearsWakeNobody = "storage-clears-wake-nobody",
    /// A set wakes no watch.
    StorageSetsWakeNobody = "storage-sets-wake-nobody",
    /// A watch that arrives after the change waits for the next one.
    StorageWatchMissesPast = "storage-watch-misses-past",
    /// A server that drops a shard keeps the watches of its keys.
    StorageKeepsWatches = "storage-keeps-watches",
    /// An append that makes a value of exactly the largest size is skipped.
    StorageAppendsLess = "storage-appends-less",
    /// A shard that moves loses what was written while it was copied.
    StorageLosesFetched = "storage-loses-fetched",
    /// A shard that moves loses its last row.
    StorageFetchesLess = "storage-fetches-less",
    /// A point read returns the newest value instead of the one at its version.
    StorageReadsLatest = "storage-reads-latest",
    /// A read does not wait until its version is applied.
    StorageReadsEarly = "storage-reads-early",
    /// A range read that reached its limit says that there is no more.
    StorageHidesMore = "storage-hides-more",
    /// A selector after a key counts the key itself.
    StorageCountsEqual = "storage-counts-equal",
    /// A selector that leaves a shard skips a key.
    StorageMissesBorder = "storage-misses-border",
    /// A range read in reverse misses the first key of the range.
    StorageCutsReverse = "storage-cuts-reverse",
    /// A cleared range keeps its last row.
    StorageClearsLess = "storage-clears-less",
    /// A recovery does not undo what storage servers had applied beyond its end.
    StorageKeepsRolledBack = "storage-keeps-rolled-back",
    /// The committed version outlives on_error.
    ClientKeepsVersion = "client-keeps-version",
    /// Every option outlives on_error.
    ClientKeepsOptions = "client-keeps-options",
    /// No option outlives on_error.
    ClientLosesOptions = "client-loses-options",
    /// Read conflict ranges outlive on_error.
    ClientKeepsReads = "client-keeps-reads",
    /// A client takes a commit with an unknown result for one that did not happen.
    ClientDeniesCommit = "client-denies-commit",
    /// A client may have one watch more than its limit.
    ClientCountsWatches = "client-counts-watches",
    /// A transaction of exactly its size limit is too large.
    ClientSizeLimit = "client-size-limit",
    /// A key of exactly the largest length is too large.
    ClientKeyLimit = "client-key-limit",
    /// A value of exactly the largest length is too large.
    ClientValueLimit = "client-value-limit",
    /// The cached read version does not follow own commits.
    ClientCachesStale = "client-caches-stale",
    /// A commit does not wait for outstanding reads.
    ClientForgetsReads = "client-forgets-reads",
    /// A range read sees what the transaction itself has cleared.
    ClientReadsCleared = "client-reads-cleared",
    /// The conflict range of a range read ends after its last row.
    ClientCutsConflict = "client-cuts-conflict",
    /// The conflict range of a selector ends before the key that it found.
    ClientCutsSelector = "client-cuts-selector",
    /// A read of a key with an own atomic operation has no conflict range.
    ClientTrustsAtomics = "client-trusts-atomics",
    /// Snapshot reads see own writes although that is disabled.
    ClientSeesOwnAtSnapshot = "client-sees-own-at-snapshot",
    /// Of the operations on a key only the last is committed.
    ClientSendsLast = "client-sends-last",
    /// A selector does not heed whether it includes its key.
    ClientForgetsEqual = "client-forgets-equal",
    /// Explicit write conflict ranges are ignored.
    ClientForgetsRanges = "client-forgets-ranges",
    /// A write without a conflict range takes it from all later writes.
    ClientWaivesAll = "client-waives-all",
    /// A client takes a part of a range for all of it.
    ClientBelievesBatches = "client-believes-batches",
    /// Cleared ranges do not count towards the size.
    ClientMiscountsClears = "client-miscounts-clears",
    /// The retry limit permits one retry more.
    ClientRetriesOnceMore = "client-retries-once-more",
    /// A versionstamp is told after its commit.
    ClientStampsLate = "client-stamps-late",
    /// Of two compare_and_clear of one length on a key the first is committed.
    ClientMergesComparisons = "client-merges-comparisons",
    /// The resolver merges an old write behind a newer one into that.
    ResolverMergesNewer = "resolver-merges-newer",
    /// A GRV proxy checks no request of a batch in which one is causally risky.
    ProxySkipsChecks = "proxy-skips-checks",
}

impl ClusterBug {
    /// Whether the judges of the cluster find it with any workload. The others show only to a workload that
    /// does what they need, or that compares what clients are told with what FoundationDB promises: see
    /// `Workload::cluster_bugs`.
    pub fn shows_everywhere(self) -> bool {
        self < ClusterBug::ResolverForgetsStep
    }

    /// The planted bug with this name.
    pub fn named(name: &str) -> Option<ClusterBug> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }
}

impl ClusterConfig {
    /// The smallest calm cluster: one of each role, the same latencies in each run. For conformance and unit
    /// tests.
    pub fn smallest() -> ClusterConfig {
        ClusterConfig {
            logs: 1,
            storage_servers: 1,
            replicas: 1,
            grv_proxies: 1,
            commit_proxies: 1,
            resolvers: 1,
            spares: 0,
            shard_boundaries: Vec::new(),
            resolver_boundaries: Vec::new(),
            net: NetConfig::default(),
            commit_batch_interval: MILLISECOND / 2,
            commit_batch_max: 1_000,
            grv_batch_interval: MILLISECOND / 4,
            log_sync: 100_000..300_000,
            storage_read: 10_000..50_000,
            storage_lag: 0..1,
            storage_durable_interval: SECOND / 2,
            versions_per_second: 1_000_000,
            window: 5_000_000,
            first_version: usual_first_version(),
            recovery_jump: 100_000_000,
            heartbeat: 100 * MILLISECOND,
            failure_timeout: 400 * MILLISECOND,
            reply_byte_limit: 80_000,
            cluster_bug: None,
        }
    }

    /// A cluster drawn from the seed. `keys` are samples of the keys that will be used, so that shard and
    /// resolver boundaries can fall between them.
    pub fn draw(seed: Seed, keys: &[Bytes]) -> ClusterConfig {
        let mut rng = seed.stream("cluster");
        let storage_servers = rng.range(2..6) as u16;
        let resolvers = rng.range(1..4) as u16;
        let boundaries = |rng: &mut crate::seed::Stream, n: u64| {
            let mut found: Vec<Bytes> = (0..n)
                .map(|_| match keys.len() {
                    0 => Bytes::copy_from_slice(&[rng.range(1..255) as u8]),
                    len => keys[rng.index(len)].clone(),
                })
                .filter(|key| !key.is_empty())
                .collect();
            found.sort();
            found.dedup();
            found
        };
        let shards = rng.range(0..6);
        let shard_boundaries = boundaries(&mut rng, shards);
        let resolver_boundaries = boundaries(&mut rng, u64::from(resolvers) - 1);
        let fastest = rng.range(20_000..200_000);
        ClusterConfig {
            logs: rng.range(1..4) as u16,
            storage_servers,
            replicas: rng.range(1..4).min(u64::from(storage_servers)) as u16,
            grv_proxies: rng.range(1..4) as u16,
            commit_proxies: rng.range(1..4) as u16,
            resolvers: resolver_boundaries.len() as u16 + 1,
            spares: rng.range(1..4) as u16,
            shard_boundaries,
            resolver_boundaries,
            net: NetConfig {
                latency: fastest..fastest + rng.range(20_000..600_000),
                detection: 5 * MILLISECOND..rng.range(10..100) * MILLISECOND,
            },
            commit_batch_interval: rng.range(100_000..3_000_000),
            commit_batch_max: *rng.pick(&[1, 2, 10, 1_000, 32_768]),
            grv_batch_interval: rng.range(50_000..1_000_000),
            log_sync: 50_000..rng.range(100_000..2_000_000),
            storage_read: 5_000..rng.range(10_000..200_000),
            storage_lag: 0..rng.range(1..500_000),
            storage_durable_interval: rng.range(50..1_000) * MILLISECOND,
            first_version: draw_first_version(seed),
            ..ClusterConfig::smallest()
        }
    }

    /// The ranges from which the durations of single messages and accesses are drawn. A range of one
    /// nanosecond makes them even.
    pub fn durations(&mut self) -> [&mut Range<Nanos>; 5] {
        let net = &mut self.net;
        [
            &mut net.latency,
            &mut net.detection,
            &mut self.log_sync,
            &mut self.storage_read,
            &mut self.storage_lag,
        ]
    }

    /// Whether such a cluster is possible. A drawn configuration always is; an edited one may not be. The
    /// error is a sentence fragment.
    pub fn check(&self) -> Result<(), String> {
        let at_least_one = [
            ("logs", u64::from(self.logs)),
            ("storage_servers", u64::from(self.storage_servers)),
            ("replicas", u64::from(self.replicas)),
            ("grv_proxies", u64::from(self.grv_proxies)),
            ("commit_proxies", u64::from(self.commit_proxies)),
            ("resolvers", u64::from(self.resolvers)),
            ("commit_batch_interval", self.commit_batch_interval),
            ("commit_batch_max", self.commit_batch_max as u64),
            ("grv_batch_interval", self.grv_batch_interval),
            ("storage_durable_interval", self.storage_durable_interval),
            ("versions_per_second", self.versions_per_second.max(0) as u64),
            ("window", self.window.max(0) as u64),
            ("first_version", self.first_version.max(0) as u64),
            ("recovery_jump", self.recovery_jump.max(0) as u64),
            ("heartbeat", self.heartbeat),
            ("failure_timeout", self.failure_timeout),
            ("reply_byte_limit", self.reply_byte_limit as u64),
        ];
        if let Some((name, _)) = at_least_one.iter().find(|(_, n)| *n == 0) {
            return Err(format!("{name} is less than 1"));
        }
        if self.replicas > self.storage_servers {
            return Err(format!("{} replicas for {} storage servers", self.replicas, self.storage_servers));
        }
        let ranges = [
            ("latency", &self.net.latency),
            ("detection", &self.net.detection),
            ("log_sync", &self.log_sync),
            ("storage_read", &self.storage_read),
            ("storage_lag", &self.storage_lag),
        ];
        if let Some((name, _)) = ranges.iter().find(|(_, range)| range.is_empty()) {
            return Err(format!("{name} is an empty range"));
        }
        for (name, boundaries) in
            [("shard_boundaries", &self.shard_boundaries), ("resolver_boundaries", &self.resolver_boundaries)]
        {
            let ascend = boundaries.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascend || boundaries.first().is_some_and(Bytes::is_empty) {
                return Err(format!("{name} do not ascend from a key that is not empty"));
            }
        }
        if self.resolver_boundaries.len() + 1 != usize::from(self.resolvers) {
            let boundaries = self.resolver_boundaries.len();
            return Err(format!("{boundaries} resolver_boundaries for {} resolvers", self.resolvers));
        }
        Ok(())
    }
}

/// Latencies of an undisturbed link, and the time until broken connections are detected.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NetConfig {
    /// One-way latency, nanoseconds.
    pub latency: Range<Nanos>,
    /// Time until a caller detects a lost message or a dead server, nanoseconds.
    pub detection: Range<Nanos>,
}

impl Default for NetConfig {
    fn default() -> Self {
        NetConfig { latency: 50_000..400_000, detection: 5 * MILLISECOND..50 * MILLISECOND }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_configuration_is_valid() {
        let keys = ["a", "b", "c", ""].map(Bytes::from);
        for seed in 0..500 {
            assert_eq!(ClusterConfig::draw(Seed(seed), &keys).check(), Ok(()));
            assert_eq!(ClusterConfig::draw(Seed(seed), &[]).check(), Ok(()));
        }
        let first = |seed| ClusterConfig::draw(Seed(seed), &keys).first_version;
        let firsts: Vec<Version> = (0..50).map(first).collect();
        for bits in [26, 30, 31, 43] {
            let magnitude = |version: &&Version| version.ilog2() == bits;
            assert!(firsts.iter().filter(magnitude).count() >= 2, "of {bits} bits: {firsts:?}");
        }
        assert_eq!(ClusterConfig::smallest().check(), Ok(()));
    }

    #[test]
    fn an_invalid_configuration_is_refused_with_a_message() {
        let refused = |change: &dyn Fn(&mut ClusterConfig)| {
            let mut config = ClusterConfig::smallest();
            change(&mut config);
            config.check().expect_err("there is no such cluster")
        };
        assert_eq!(refused(&|c| c.logs = 0), "logs is less than 1");
        assert_eq!(refused(&|c| c.heartbeat = 0), "heartbeat is less than 1");
        assert_eq!(refused(&|c| c.versions_per_second = -5), "versions_per_second is less than 1");
        assert_eq!(refused(&|c| c.replicas = 2), "2 replicas for 1 storage servers");
        #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        let reversed = |c: &mut ClusterConfig| c.net.latency = 9..3;
        assert_eq!(refused(&reversed), "latency is an empty range");
        let not_ascending = |c: &mut ClusterConfig| c.shard_boundaries = vec!["b".into(), "a".into()];
        assert_eq!(refused(&not_ascending), "shard_boundaries do not ascend from a key that is not empty");
        assert_eq!(refused(&|c| c.resolvers = 3), "0 resolver_boundaries for 3 resolvers");
    }
}
