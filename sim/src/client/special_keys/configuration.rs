//! The configuration of processes, and the coordinators.

use super::{
    parts::{Kind, SpecialKeyRange, part},
    reader::{Reader, named, text},
};
use crate::{
    client::keys::single_key,
    proto::KeyRange,
    system_keys::{self, PROCESS_CLASSES, Uid, Value},
};
use bytes::Bytes;
use shaketable_tx::{KeyValue, Result};
use std::collections::BTreeMap;

type Written = Vec<(KeyRange, Option<Bytes>)>;

/// FoundationDB's classes of processes, by number (`fdbrpc/Locality.h`).
const CLASSES: &[&str] = &[
    "unset",
    "storage",
    "transaction",
    "resolution",
    "test",
    "commit_proxy",
    "master",
    "stateless",
    "log",
    "cluster_controller",
    "router",
    "fast_restore",
    "data_distributor",
    "coordinator",
    "ratekeeper",
    "storage_cache",
    "backup",
    "grv_proxy",
    "blob_manager",
    "blob_worker",
    "encrypt_key_proxy",
    "consistency_scan",
];
/// The sources of a class: the command line, or an operator's call.
const COMMAND_LINE: u16 = 0;
const SET_CLASS: u16 = 2;
const SOURCES: [&str; 3] = ["command_line", "configure_auto", "set_class"];

/// The key of a process's class.
fn class_key(process: Uid) -> Vec<u8> {
    let id: Bytes = Value::default().text(process.to_string().as_bytes()).into();
    [PROCESS_CLASSES, &id].concat()
}

/// A class and its source, from the value of its key.
fn parse_class(value: &[u8]) -> Option<(u16, u16)> {
    let [class, class_high, source, source_high] = *value.get(8..)? else { return None };
    Some((u16::from_le_bytes([class, class_high]), u16::from_le_bytes([source, source_high])))
}

impl Reader {
    /// The class of each process, or where it comes from.
    pub(super) async fn process_classes(&self, part: &SpecialKeyRange) -> Result<Vec<KeyValue>> {
        let classes = self.range(PROCESS_CLASSES).await?;
        let set: BTreeMap<_, _> = classes.into_iter().map(|row| (row.key, row.value)).collect();
        let mut rows: Vec<KeyValue> = Vec::new();
        for (node, _, _) in self.world().processes() {
            let key = class_key(Uid::of_process(self.world().seed, node));
            let (class, source) =
                set.get(&key[..]).and_then(|value| parse_class(value)).unwrap_or((0, COMMAND_LINE));
            let names = if part.kind == Kind::ClassType { CLASSES } else { &SOURCES };
            let at = if part.kind == Kind::ClassType { class } else { source };
            let name = names.get(usize::from(at)).copied().unwrap_or("invalid");
            rows.push(named(part, system_keys::address(node), name));
        }
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(self.with_own_writes(part, rows))
    }

    pub(super) async fn set_classes(&self, part: &SpecialKeyRange, written: Written) -> Result<()> {
        let begin = part.range().begin;
        self.manage();
        // Conflicts with others that change classes.
        self.range(PROCESS_CLASSES).await?;
        for (range, value) in written {
            let Some(class) = value else { continue };
            let name = &range.begin[begin.len()..];
            let address = text(name).filter(|text| {
                text.parse::<std::net::IpAddr>().is_ok() || text.parse::<std::net::SocketAddr>().is_ok()
            });
            let Some(address) = address else {
                let message =
                    format!("ERROR: '{}' is not a valid network endpoint address\n", name.escape_ascii());
                return self.refuse("setclass", message);
            };
            let class = text(&class).unwrap_or_default();
            let number = CLASSES.iter().position(|one| *one == class);
            if number.is_none() && class != "default" {
                return self.refuse("setclass", format!("ERROR: '{class}' is not a valid process class\n"));
            }
            let mut found = false;
            for (node, _, _) in self.world().processes() {
                let its = system_keys::address(node);
                if its != address && its.split(':').next() != Some(address) {
                    continue;
                }
                found = true;
                let key = class_key(Uid::of_process(self.world().seed, node));
                match number {
                    Some(number) => {
                        let value = Value::versioned().raw(&(number as u16).to_le_bytes());
                        self.state().set_system(&key, value.raw(&SET_CLASS.to_le_bytes()));
                    }
                    None => self.state().clear_system(single_key(&key)),
                }
            }
            if found {
                let unique = self.inner.unique();
                self.state().set_system(b"\xff/processClassChanges", unique);
            }
        }
        Ok(())
    }

    pub(super) fn coordinators(&self) -> Vec<KeyValue> {
        let part = part(Kind::Coordinators);
        let rows = vec![
            named(part, "cluster_description", system_keys::DESCRIPTION),
            named(part, "processes", system_keys::coordinators(self.world()).join(",")),
        ];
        self.with_own_writes(part, rows)
    }

    /// No other process can be a coordinator, as if it could not be reached.
    pub(super) fn change_coordinators(&self, part: &SpecialKeyRange, written: Written) -> Result<()> {
        let command = "coordinators";
        let begin = part.range().begin;
        let mut same = true;
        for (range, value) in written {
            let (name, value) = (&range.begin[begin.len()..], value.unwrap_or_default());
            match name {
                b"processes" => {
                    for address in value.split(|byte| *byte == b',') {
                        if text(address).and_then(|text| text.parse::<std::net::SocketAddr>().ok()).is_none()
                        {
                            let address = address.escape_ascii();
                            let message =
                                format!("ERROR: '{address}' is not a valid network endpoint address\n");
                            return self.refuse(command, message);
                        }
                    }
                    same &= value == system_keys::coordinators(self.world()).join(",");
                }
                b"cluster_description" => {
                    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                    if value.is_empty() || !value.iter().all(is_name) {
                        return self.refuse(command, "Cluster description must match [A-Za-z0-9_]+");
                    }
                    same &= value == system_keys::DESCRIPTION;
                }
                _ => {}
            }
        }
        match same {
            true => self.refuse(command, "No change (existing configuration satisfies request)"),
            false => self.refuse(command, "One of the specified coordinators is unreachable"),
        }
    }

    /// The processes of the cluster, by address. The value names a process; it is no interface that could be
    /// called.
    pub(super) fn worker_interfaces(&self) -> Vec<KeyValue> {
        let seed = self.world().seed;
        let interface = |node| Value::versioned().text(Uid::of_process(seed, node).to_string().as_bytes());
        let processes = self.world().processes().into_iter();
        let up = processes.filter(|(node, ..)| self.world().is_up(*node));
        let mut rows: Vec<_> = up
            .map(|(node, ..)| {
                named(part(Kind::WorkerInterfaces), system_keys::address(node), interface(node))
            })
            .collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}
