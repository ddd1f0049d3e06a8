//! The complete configuration of a simulated cluster as plain data, drawn from the seed.

use crate::{
    net::NetConfig,
    proto::Version,
    rt::{MILLISECOND, Nanos, SECOND},
    seed::Seed,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
}

impl ClusterBug {
    /// The planted bug with this name.
    pub fn named(name: &str) -> Option<ClusterBug> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }
}

impl ClusterConfig {
    /// The smallest calm cluster: one of each role, the same latencies in each run. For conformance and unit tests.
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
            ..ClusterConfig::smallest()
        }
    }

    /// The ranges from which the durations of single messages and accesses are drawn. A range of one nanosecond makes
    /// them even.
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
