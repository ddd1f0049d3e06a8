//! Special and system keys: what a real cluster of one process answered to reads and writes of them, one a
//! line.
//!
//! A line has a call and what came of it: `get NAME -> 16 bytes` (or `None`, or `error 2113`) for the special
//! key `\xff\xff/NAME`, `range NAME -> 2` for the rows of the keys that begin so, `system` and `system range`
//! for keys of the system, `write b'NAME' b'value' -> committed` for a transaction of one write (`None`
//! clears).

use super::{Difference, Replayed};
use serde_json::Value;
use shaketable_tx::{
    Database, Error, Isolation, RangeOption, Result, Transaction, TransactionOption, strinc,
};

/// A recorded line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecialLine {
    /// The call.
    pub call: String,
    /// What came of it.
    pub answer: String,
}

impl SpecialLine {
    /// Parses a line; `None` if it has no answer.
    pub fn parse(line: &str) -> Option<SpecialLine> {
        let (call, answer) = line.split_once(" -> ")?;
        Some(SpecialLine { call: call.to_owned(), answer: answer.to_owned() })
    }
}

/// Calls that are no calls of a transaction, and who makes them.
pub const ELSEWHERE: &[(&str, &str)] = &[("tenant", BINDING), ("client status", BINDING)];

const BINDING: &str = "a call of the C library: driver/tests/python/special.py makes it";

/// Why an answer depends on the cluster, and the form that it has on each.
const FORMS: &[(&str, &str, Form)] = &[
    ("get cluster_file_path", "a path of the client's machine", is_text),
    ("get connection_string", "it has the addresses of the cluster", is_connection_string),
    ("get status/json", "it has every process, and measurements", is_status),
    ("get tracing/token", "a random number, with as many digits as it has", is_number),
    ("get configuration/coordinators/processes", "addresses of the cluster", is_addresses),
    ("get metrics/health/aggregate", "measurements", is_health),
    ("system b'\\xff/coordinators'", "it has the addresses of the cluster", is_connection_string),
];

/// Ranges with a row for each process; the recorded cluster has one.
const PROCESSES: &[&str] = &["range worker_interfaces/", "range configuration/process/class_type/"];

type Form = fn(&[u8]) -> bool;

fn is_text(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| !text.is_empty())
}

fn is_number(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| text.parse::<u64>().is_ok())
}

fn is_addresses(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    text.split(',').all(|address| address.parse::<std::net::SocketAddr>().is_ok())
}

fn is_connection_string(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    text.split_once('@').is_some_and(|(name, addresses)| {
        name.split_once(':').is_some_and(|(description, id)| is_name(description) && is_name(id))
            && is_addresses(addresses.as_bytes())
    })
}

/// The fields of the aggregated health.
const HEALTH: &[&str] = &[
    "batch_limited",
    "limiting_storage_durability_lag",
    "limiting_storage_queue",
    "tps_limit",
    "worst_log_queue",
    "worst_storage_durability_lag",
    "worst_storage_queue",
];

fn is_health(value: &[u8]) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_slice(value) else { return false };
    fields.keys().eq(HEALTH) && fields.values().all(|field| field.is_boolean() || field.is_number())
}

/// The fields of the status document that programs read, with a value of their type.
const STATUS: &[(&str, Type)] = &[
    ("/client/cluster_file/path", Type::Text),
    ("/client/cluster_file/up_to_date", Type::Bool),
    ("/client/coordinators/coordinators", Type::List),
    ("/client/coordinators/quorum_reachable", Type::Bool),
    ("/client/database_status/available", Type::Bool),
    ("/client/database_status/healthy", Type::Bool),
    ("/client/messages", Type::List),
    ("/client/timestamp", Type::Number),
    ("/cluster/clients/count", Type::Number),
    ("/cluster/clients/supported_versions", Type::List),
    ("/cluster/cluster_controller_timestamp", Type::Number),
    ("/cluster/configuration/commit_proxies", Type::Number),
    ("/cluster/configuration/coordinators_count", Type::Number),
    ("/cluster/configuration/excluded_servers", Type::List),
    ("/cluster/configuration/grv_proxies", Type::Number),
    ("/cluster/configuration/logs", Type::Number),
    ("/cluster/configuration/redundancy_mode", Type::Text),
    ("/cluster/configuration/resolvers", Type::Number),
    ("/cluster/configuration/storage_engine", Type::Text),
    ("/cluster/configuration/usable_regions", Type::Number),
    ("/cluster/connection_string", Type::Text),
    ("/cluster/data/average_partition_size_bytes", Type::Number),
    ("/cluster/data/moving_data/in_flight_bytes", Type::Number),
    ("/cluster/data/partitions_count", Type::Number),
    ("/cluster/data/state/healthy", Type::Bool),
    ("/cluster/data/state/name", Type::Text),
    ("/cluster/data/total_disk_used_bytes", Type::Number),
    ("/cluster/data/total_kv_size_bytes", Type::Number),
    ("/cluster/database_available", Type::Bool),
    ("/cluster/database_lock_state/locked", Type::Bool),
    ("/cluster/fault_tolerance/max_zone_failures_without_losing_data", Type::Number),
    ("/cluster/full_replication", Type::Bool),
    ("/cluster/generation", Type::Number),
    ("/cluster/layers/_valid", Type::Bool),
    ("/cluster/machines", Type::Map),
    ("/cluster/messages", Type::List),
    ("/cluster/processes", Type::Map),
    ("/cluster/protocol_version", Type::Text),
    ("/cluster/qos", Type::Map),
    ("/cluster/recovery_state/name", Type::Text),
    ("/cluster/workload", Type::Map),
];

/// The fields of each process.
const PROCESS: &[(&str, Type)] = &[
    ("/address", Type::Text),
    ("/class_type", Type::Text),
    ("/class_source", Type::Text),
    ("/excluded", Type::Bool),
    ("/locality/processid", Type::Text),
    ("/locality/zoneid", Type::Text),
    ("/machine_id", Type::Text),
    ("/memory/used_bytes", Type::Number),
    ("/messages", Type::List),
    ("/roles", Type::List),
    ("/uptime_seconds", Type::Number),
    ("/version", Type::Text),
];

/// The roles without which a cluster does not work.
const ROLES: &[&str] = &[
    "cluster_controller",
    "commit_proxy",
    "coordinator",
    "grv_proxy",
    "log",
    "master",
    "resolver",
    "storage",
];

#[derive(Clone, Copy)]
enum Type {
    Bool,
    Number,
    Text,
    List,
    Map,
}

impl Type {
    fn has(self, value: &Value) -> bool {
        match self {
            Type::Bool => value.is_boolean(),
            Type::Number => value.is_number(),
            Type::Text => value.is_string(),
            Type::List => value.is_array(),
            Type::Map => value.is_object(),
        }
    }
}

fn is_status(value: &[u8]) -> bool {
    let Ok(status) = serde_json::from_slice::<Value>(value) else { return false };
    let has = |of: &Value, fields: &[(&str, Type)]| {
        fields.iter().all(|(path, kind)| of.pointer(path).is_some_and(|value| kind.has(value)))
    };
    let processes: Vec<&Value> = status["cluster"]["processes"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, process)| process)
        .collect();
    let roles: Vec<&str> = processes
        .iter()
        .flat_map(|process| process["roles"].as_array().into_iter().flatten())
        .filter_map(|role| role["role"].as_str())
        .collect();
    has(&status, STATUS)
        && processes.iter().all(|process| has(process, PROCESS))
        && ROLES.iter().all(|role| roles.contains(role))
}

/// Replays a line, and compares what comes of it with the recording.
pub async fn replay_special<D: Database>(db: &D, line: &SpecialLine) -> Result<Replayed> {
    let found = perform(db, line).await;
    if found == line.answer {
        return Ok(Replayed::Equal);
    }
    Ok(Replayed::Different(Difference {
        step: None,
        what: line.call.clone(),
        expected: line.answer.clone(),
        actual: found,
    }))
}

/// What comes of a line, in the words of the recording.
async fn perform<D: Database>(db: &D, line: &SpecialLine) -> String {
    match attempt(db, line).await {
        Ok(answer) => answer,
        Err(e) => format!("error {}", e.code()),
    }
}

async fn attempt<D: Database>(db: &D, line: &SpecialLine) -> Result<String> {
    let call = &*line.call;
    let tx = db.create_transaction()?;
    let special = |name: &str| [b"\xff\xff/", name.as_bytes()].concat();
    if let Some(name) = call.strip_prefix("get ") {
        return Ok(shown(line, tx.get(&special(name), Isolation::Serializable).await?.as_deref()));
    }
    if let Some(name) = call.strip_prefix("range ") {
        let rows = tx.get_range_all(beginning(special(name)), Isolation::Serializable).await?;
        return Ok(match PROCESSES.contains(&call) && rows.len() == processes(db).await? {
            true => line.answer.clone(),
            false => rows.len().to_string(),
        });
    }
    if let Some(option) = call.strip_prefix("cross-module") {
        if option.is_empty() {
            tx.set_option(TransactionOption::SpecialKeySpaceRelaxed)?;
        }
        let all = RangeOption::new(&b"\xff\xff"[..], &b"\xff\xff\xff"[..]);
        return Ok(tx.get_range_all(all, Isolation::Serializable).await?.len().to_string());
    }
    tx.set_option(TransactionOption::ReadSystemKeys)?;
    if let Some(key) = call.strip_prefix("system range ") {
        let rows = tx.get_range_all(beginning(bytes(key)), Isolation::Serializable).await?;
        return Ok(if rows.is_empty() { "False" } else { "True" }.to_owned());
    }
    if let Some(key) = call.strip_prefix("system ") {
        return Ok(shown(line, tx.get(&bytes(key), Isolation::Serializable).await?.as_deref()));
    }
    let Some((key, value)) = call.strip_prefix("write ").and_then(|write| write.split_once(' ')) else {
        return Err(Error::UNSUPPORTED_OPERATION);
    };
    tx.set_option(TransactionOption::SpecialKeySpaceEnableWrites)?;
    let key = [b"\xff\xff/", &bytes(key)[..]].concat();
    match value {
        "None" => tx.clear(&key),
        value => tx.set(&key, &bytes(value)),
    }
    tx.commit().await?;
    Ok("committed".to_owned())
}

/// The keys that begin so.
fn beginning(prefix: Vec<u8>) -> RangeOption {
    let end = strinc(&prefix).unwrap_or_default();
    RangeOption::new(prefix, end)
}

/// A value in the words of the recording: its size, unless that depends on the cluster and the value has its
/// form.
fn shown(line: &SpecialLine, value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "None".to_owned() };
    match FORMS.iter().find(|(call, ..)| *call == line.call) {
        Some((_, _, has_form)) if has_form(value) => line.answer.clone(),
        Some((_, why, _)) => format!("a value that has not its form ({why}): {}", value.escape_ascii()),
        None => format!("{} bytes", value.len()),
    }
}

/// The number of processes in the status document.
async fn processes<D: Database>(db: &D) -> Result<usize> {
    let tx = db.create_transaction()?;
    let status = tx.get(b"\xff\xff/status/json", Isolation::Serializable).await?.unwrap_or_default();
    let status: Value = serde_json::from_slice(&status).unwrap_or_default();
    Ok(status["cluster"]["processes"].as_object().map_or(0, serde_json::Map::len))
}

/// Bytes as Python writes them, such as `b'\xff/conf/'`.
fn bytes(text: &str) -> Vec<u8> {
    let text = text.strip_prefix("b'").and_then(|text| text.strip_suffix('\'')).unwrap_or(text);
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let escaped = rest.strip_prefix("\\x").and_then(|digits| digits.get(..2));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(first);
                rest = &rest[1..];
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_python_writes_them() {
        assert_eq!(bytes("b'\\xff\\x02/status/'"), b"\xff\x02/status/");
        assert_eq!(bytes("b''"), b"");
    }

    #[test]
    fn a_form_is_more_than_any_text() {
        assert!(is_connection_string(b"docker:docker@127.0.0.1:4500"));
        for wrong in ["docker@127.0.0.1:4500", "a:b@127.0.0.1", "a:@127.0.0.1:4500", ""] {
            assert!(!is_connection_string(wrong.as_bytes()), "{wrong}");
        }
        assert!(!is_status(b"{}") && !is_health(b"{}") && !is_number(b"-") && !is_addresses(b""));
    }
}
