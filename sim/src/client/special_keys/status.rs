//! The status of the cluster as one JSON document, with the fields that programs read
//! (`fdbserver/Status.actor.cpp`, `fdbclient/Schemas.cpp`).
//!
//! A calm cluster is healthy, and times are virtual. What the simulation does not measure is zero or left
//! out.

use super::{
    cluster::CLUSTER_FILE,
    parts::{Kind, part},
    reader::{Reader, row},
};
use crate::{
    client::shared::Client,
    ids::NodeId,
    rt::SECOND,
    system_keys::{self, Uid},
    world::{Class, World},
};
use serde_json::{Map, Value, json};
use shaketable_tx::KeyValue;

/// The version that the simulated processes say they have.
const VERSION: &str = "7.4.0";
const MEMORY: u64 = 8 << 30;
const DISK: u64 = 100 << 30;

impl Reader {
    pub(super) fn status(&self) -> Vec<KeyValue> {
        vec![row(part(Kind::Status), self.document().to_string())]
    }

    fn document(&self) -> Value {
        let world = self.world();
        let info = self.inner.client.connection.info();
        let available = !info.commit_proxies.is_empty() && !info.grv_proxies.is_empty();
        let locked = world.tunables.locked() || world.lock.is_locked();
        let seconds = world.clock.now() / SECOND;
        let coordinators: Vec<Value> = system_keys::coordinators(world)
            .into_iter()
            .map(|address| {
                json!({ "address": address, "protocol": system_keys::protocol_version(), "reachable": true })
            })
            .collect();
        json!({
            "client": {
                "cluster_file": { "path": CLUSTER_FILE, "up_to_date": true },
                "coordinators": { "coordinators": coordinators, "quorum_reachable": true },
                "database_status": { "available": available, "healthy": available },
                "messages": [],
                "timestamp": seconds,
            },
            "cluster": {
                "active_primary_dc": "",
                "active_tss_count": 0,
                "bounce_impact": { "can_clean_bounce": true },
                "clients": clients(&self.inner.client),
                "cluster_controller_timestamp": seconds,
                "configuration": configuration(world),
                "connection_string": system_keys::connection_string(world),
                "data": data(world),
                "database_available": available,
                "database_lock_state": { "locked": locked },
                "datacenter_lag": { "seconds": 0.0, "versions": 0 },
                "degraded_processes": 0,
                "fault_tolerance": fault_tolerance(world),
                "full_replication": world.shards.lock().is_settled(),
                "generation": info.generation,
                "incompatible_connections": [],
                "latency_probe": {},
                "layers": { "_valid": true },
                "logs": [],
                "machines": machines(world),
                "messages": [],
                "page_cache": { "log_hit_rate": 1.0, "storage_hit_rate": 1.0 },
                "processes": self.processes(),
                "protocol_version": system_keys::protocol_version(),
                "qos": {
                    "batch_performance_limited_by": unlimited(),
                    "performance_limited_by": unlimited(),
                    "transactions_per_second_limit": 1e6,
                },
                "recovery_state": {
                    "active_generations": 1,
                    "description": if available { "Recovery complete." } else { "Recruiting new transaction servers." },
                    "name": if available { "fully_recovered" } else { "recruiting_transaction_servers" },
                },
                "workload": {
                    "bytes": {}, "keys": {}, "operations": {}, "transactions": {},
                },
            },
        })
    }

    fn processes(&self) -> Value {
        let world = self.world();
        let processes: Map<String, Value> = world
            .processes()
            .into_iter()
            .map(|(node, class, roles)| {
                let uid = Uid::of_process(world.seed, node);
                let locality: Map<String, Value> = self
                    .locality(node)
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), json!(value)))
                    .collect();
                let roles: Vec<Value> = roles.into_iter().map(|name| role(world, node, name)).collect();
                let process = json!({
                    "address": system_keys::address(node),
                    "class_source": "command_line",
                    "class_type": "unset",
                    "command_line": world.name(node),
                    "cpu": { "usage_cores": 0.0 },
                    "disk": { "busy": 0.0, "free_bytes": DISK, "total_bytes": DISK },
                    "excluded": false,
                    "fault_domain": uid.to_string(),
                    "locality": locality,
                    "machine_id": uid.to_string(),
                    "memory": { "available_bytes": MEMORY, "limit_bytes": MEMORY, "used_bytes": 0 },
                    "messages": [],
                    "network": { "current_connections": 0 },
                    "roles": if world.is_up(node) { roles } else { Vec::new() },
                    "uptime_seconds": world.clock.now() / SECOND,
                    "version": VERSION,
                });
                // A machine that is down is no process of the cluster, except that its storage may come back.
                (uid.to_string(), (process, world.is_up(node) || class == Class::Storage))
            })
            .filter_map(|(uid, (process, shown))| shown.then_some((uid, process)))
            .collect();
        processes.into()
    }
}

fn unlimited() -> Value {
    json!({ "description": "The database is not being saturated by the workload.", "name": "workload", "reason_id": 2 })
}

fn role(world: &World, node: NodeId, name: &str) -> Value {
    let id = |uid: Uid| format!("{:016x}", uid.0);
    match name {
        "storage" => json!({
            "data_lag": { "seconds": 0.0, "versions": 0 },
            "id": id(Uid::of_storage(world.seed, node)),
            "kvstore_available_bytes": DISK,
            "kvstore_free_bytes": DISK,
            "kvstore_total_bytes": DISK,
            "kvstore_used_bytes": 0,
            "role": name,
            "storage_metadata": { "storage_engine": "memory" },
        }),
        "log" => json!({
            "id": id(Uid::of_process(world.seed, node)),
            "kvstore_available_bytes": DISK,
            "kvstore_free_bytes": DISK,
            "kvstore_total_bytes": DISK,
            "kvstore_used_bytes": 0,
            "role": name,
        }),
        name => json!({ "id": id(Uid::of_process(world.seed, node)), "role": name }),
    }
}

fn machines(world: &World) -> Map<String, Value> {
    let processes = world.processes().into_iter().filter(|(node, ..)| world.is_up(*node));
    processes
        .map(|(node, ..)| {
            let uid = Uid::of_process(world.seed, node).to_string();
            let address = system_keys::address(node);
            let machine = json!({
                "address": address.split(':').next(),
                "contributing_workers": 1,
                "cpu": { "logical_core_utilization": 0.0 },
                "excluded": false,
                "locality": { "machineid": uid, "zoneid": uid },
                "machine_id": uid,
                "memory": { "committed_bytes": 0, "free_bytes": MEMORY, "total_bytes": MEMORY },
                "network": { "megabits_received": { "hz": 0.0 }, "megabits_sent": { "hz": 0.0 } },
            });
            (uid, machine)
        })
        .collect()
}

fn clients(client: &Client) -> Value {
    let address = system_keys::address(client.connection.node);
    let connected = json!([{ "address": address, "log_group": "default" }]);
    json!({
        "count": 1,
        "supported_versions": [{
            "client_version": VERSION,
            "connected_clients": connected,
            "count": 1,
            "max_protocol_clients": connected,
            "max_protocol_count": 1,
            "protocol_version": system_keys::protocol_version(),
            "source_version": "",
        }],
    })
}

fn configuration(world: &World) -> Value {
    let config = &world.config;
    let replicas = config.replicas.clamp(1, config.storage_servers.max(1));
    let mut configuration = json!({
        "commit_proxies": config.commit_proxies,
        "coordinators_count": system_keys::coordinators(world).len(),
        "excluded_servers": [],
        "grv_proxies": config.grv_proxies,
        "log_replicas": config.logs.max(1),
        "log_spill": 2,
        "logs": config.logs,
        "resolvers": config.resolvers,
        "storage_engine": "memory",
        "storage_replicas": replicas,
        "usable_regions": 1,
    });
    if let Some(redundancy) = system_keys::redundancy(replicas) {
        configuration["redundancy_mode"] = json!(redundancy);
    }
    configuration
}

fn data(world: &World) -> Value {
    let sizes = world.shard_sizes();
    let bytes: i64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    let copies: i64 = sizes.iter().map(|(shard, bytes)| bytes * shard.team.len() as i64).sum();
    let moving: i64 =
        sizes.iter().filter(|(shard, _)| shard.moving_to.is_some()).map(|(_, bytes)| bytes).sum();
    let name = if world.shards.lock().is_settled() { "healthy" } else { "healthy_repartitioning" };
    json!({
        "average_partition_size_bytes": bytes / sizes.len().max(1) as i64,
        "least_operating_space_bytes_log_server": DISK,
        "least_operating_space_bytes_storage_server": DISK,
        "moving_data": { "in_flight_bytes": moving, "in_queue_bytes": 0, "total_written_bytes": 0 },
        "partitions_count": sizes.len(),
        "state": { "healthy": true, "name": name },
        "system_kv_size_bytes": 0,
        "total_disk_used_bytes": copies,
        "total_kv_size_bytes": bytes,
    })
}

/// How many machines may fail before data, or the cluster, is lost: the one coordinator bounds both.
pub(super) fn fault_tolerance(world: &World) -> Value {
    let coordinators = (system_keys::coordinators(world).len().max(1) - 1) / 2;
    let copies = usize::from(world.config.replicas.clamp(1, world.config.storage_servers.max(1)) - 1);
    json!({
        "max_zone_failures_without_losing_availability": copies.min(coordinators),
        "max_zone_failures_without_losing_data": copies.min(coordinators),
    })
}
