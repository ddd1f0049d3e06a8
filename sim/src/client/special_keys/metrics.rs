//! Metrics: the sizes of shards, and the health of servers.

use super::{
    parts::{Kind, part},
    reader::{Reader, named, row},
};
use crate::{proto::KeyRange, system_keys::Uid, world::Class};
use serde_json::{Value, json};
use shaketable_tx::KeyValue;

impl Reader {
    /// The bytes of each shard; its key is where the shard begins.
    pub(super) fn shard_stats(&self) -> Vec<KeyValue> {
        let part = part(Kind::DataDistributionStats);
        let stats = |bytes: i64| json!({ "shard_bytes": bytes, "shard_bytes_per_ksecond": 0 }).to_string();
        let sizes = self.world().shard_sizes().into_iter();
        sizes.map(|(shard, bytes)| named(part, &shard.range.begin, stats(bytes))).collect()
    }

    /// The health of the cluster, and of its servers unless the client knows only the first.
    pub(super) fn health(&self, range: &KeyRange) -> Vec<KeyValue> {
        let part = part(Kind::Health);
        let world = self.world();
        let servers = |kind: &str| {
            KeyRange::new(named(part, format!("{kind}/"), "").key, named(part, format!("{kind}0"), "").key)
        };
        let detailed = ["log", "storage"].iter().any(|kind| range.intersects(&servers(kind)));
        let known = self.inner.client.health.lock().ask(world.clock.now(), detailed);
        // A storage server keeps the versions of the window in memory.
        let lag = world.tunables.window();
        let mut rows = vec![named(
            part,
            "aggregate",
            json!({
                "batch_limited": false,
                "limiting_storage_durability_lag": lag,
                "limiting_storage_queue": 0,
                "tps_limit": UNLIMITED,
                "worst_log_queue": 0,
                "worst_storage_durability_lag": lag,
                "worst_storage_queue": 0,
            })
            .to_string(),
        )];
        let of_machines = |class, kind: &str, value: Value| {
            let machines = world.machines(class).into_iter();
            let mut rows: Vec<_> = machines
                .map(|node| {
                    let uid = match class {
                        Class::Storage => Uid::of_storage(world.seed, node),
                        _ => Uid::of_process(world.seed, node),
                    };
                    named(part, format!("{kind}/{uid}"), value.to_string())
                })
                .collect();
            rows.sort_by(|a, b| a.key.cmp(&b.key));
            rows
        };
        if known {
            rows.extend(of_machines(Class::Log, "log", json!({ "log_queue": 0 })));
            let storage = json!({
                "cpu_usage": 0.0,
                "disk_usage": 0.0,
                "storage_durability_lag": lag,
                "storage_queue": 0,
            });
            rows.extend(of_machines(Class::Storage, "storage", storage));
        }
        rows
    }

    pub(super) fn fault_tolerance(&self) -> Vec<KeyValue> {
        vec![row(part(Kind::FaultTolerance), super::status::fault_tolerance(self.world()).to_string())]
    }
}

/// The limit of a cluster that is not limited, transactions per second.
const UNLIMITED: f64 = 1e6;
