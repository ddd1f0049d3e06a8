//! The cluster's own keys, which begin with `\xff`: their names, and their values in FoundationDB's formats
//! (`fdbclient/SystemData.cpp`).
//!
//! The first recovery writes them with its transaction; the data distributor changes them when a shard has
//! moved. So they are rows like any other, read at a version, and replayed by the judges.

use crate::{
    ids::NodeId,
    proto::{KeyRange, Mutation, Version},
    seed::Seed,
    shards::Shard,
    world::{Class, World},
};
use bytes::Bytes;
use std::fmt;

/// The configuration of the cluster.
pub const CONFIGURATION: &[u8] = b"\xff/conf/";
/// The connection string.
pub const COORDINATORS: &[u8] = b"\xff/coordinators";
/// The servers of each shard.
pub const KEY_SERVERS: &[u8] = b"\xff/keyServers/";
/// The storage servers.
pub const SERVER_LIST: &[u8] = b"\xff/serverList/";
/// The tags of the storage servers.
const SERVER_TAGS: &[u8] = b"\xff/serverTag/";
/// The classes that an operator gave to processes.
pub const PROCESS_CLASSES: &[u8] = b"\xff/processClass/";
/// The zone that is under maintenance.
pub const HEALTHY_ZONE: &[u8] = b"\xff\x02/healthyZone";
/// Whether the consistency check is suspended.
pub const CONSISTENCY_CHECK: &[u8] = b"\xff\x02/ConsistencyCheck/Suspend";
/// What data distribution does.
pub const DATA_DISTRIBUTION_MODE: &[u8] = b"\xff/dataDistributionMode";
/// Whether it leaves the balance of data alone.
pub const REBALANCE_IGNORED: &[u8] = b"\xff\x02/rebalanceDDIgnored";
/// The protocol version of 7.4, and that of the values that have not changed since 6.2
/// (`flow/ProtocolVersions.cmake`).
const PROTOCOL: u64 = 0x0fdb_00b0_7400_0000;
const PROTOCOL_OF_VALUES: u64 = 0x0fdb_00b0_6201_0001;
/// The flag of a value that is written by the object serializer.
const OBJECT_SERIALIZER: u64 = 0x1000_0000_0000_0000;

/// The protocol version as the status document has it.
pub fn protocol_version() -> String {
    format!("{PROTOCOL:x}")
}

/// A 128-bit identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u64, pub u64);

impl Uid {
    /// The identifier that the seed gives to what has this name.
    pub fn of(seed: Seed, name: &str) -> Uid {
        let mut stream = seed.stream(&format!("uid {name}"));
        Uid(stream.u64(), stream.u64())
    }

    /// The identifier of a machine's process.
    pub fn of_process(seed: Seed, node: NodeId) -> Uid {
        Uid::of(seed, &format!("process {}", node.0))
    }

    /// The identifier of a storage server.
    pub fn of_storage(seed: Seed, node: NodeId) -> Uid {
        Uid::of(seed, &format!("storage {}", node.0))
    }

    /// Parses 32 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Uid> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 32 && text.is_ascii())?;
        let part = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Uid(part(&text[..16])?, part(&text[16..])?))
    }

    /// Its bytes in a key or a value.
    pub fn bytes(self) -> [u8; 16] {
        (u128::from(self.0) | u128::from(self.1) << 64).to_le_bytes()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0, self.1)
    }
}

/// A machine's address, as it would be in an IP network.
pub fn address(node: NodeId) -> String {
    let [high, low] = node.0.to_be_bytes();
    format!("10.0.{high}.{low}:4500")
}

/// What clients connect with: the description and id of the cluster, and its coordinator. The controller's
/// disk stands for the coordinators'.
pub fn connection_string(world: &World) -> String {
    format!("{DESCRIPTION}:{}@{}", world.seed.0, coordinators(world).join(","))
}

/// The description in the connection string.
pub const DESCRIPTION: &str = "shaketable";

/// The addresses of the coordinators.
pub fn coordinators(world: &World) -> Vec<String> {
    world.machines(Class::Controller).into_iter().map(address).collect()
}

/// A value in FoundationDB's binary format.
#[derive(Default)]
pub struct Value(Vec<u8>);

impl Value {
    /// A value that begins with a protocol version.
    pub fn versioned() -> Value {
        Value(PROTOCOL_OF_VALUES.to_le_bytes().to_vec())
    }

    /// Appends bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Value {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends a string with its length.
    pub fn text(self, text: &[u8]) -> Value {
        self.raw(&(text.len() as u32).to_le_bytes()).raw(text)
    }

    /// Appends a list of identifiers.
    fn uids(self, uids: &[Uid]) -> Value {
        let counted = self.raw(&(uids.len() as u32).to_le_bytes());
        uids.iter().fold(counted, |value, uid| value.raw(&uid.bytes()))
    }
}

impl From<Value> for Bytes {
    fn from(value: Value) -> Bytes {
        value.0.into()
    }
}

fn set(key: Vec<u8>, value: impl Into<Bytes>) -> Mutation {
    Mutation::Set(key.into(), value.into())
}

/// The row of a shard: the servers that hold it, and none to which it moves.
pub fn key_servers(world: &World, shard: &Shard) -> Mutation {
    let nodes = world.machines(Class::Storage);
    let mut team: Vec<Uid> =
        shard.team.iter().map(|server| Uid::of_storage(world.seed, nodes[usize::from(*server)])).collect();
    team.sort_unstable();
    set([KEY_SERVERS, &shard.range.begin].concat(), Value::versioned().uids(&team).uids(&[]))
}

/// A policy of replication: one copy, or several in different zones.
fn policy(copies: u16) -> Value {
    match copies {
        0 | 1 => Value::versioned().text(b"One"),
        n => Value::versioned().text(b"Across").text(b"zoneid").raw(&u32::from(n).to_le_bytes()).text(b"One"),
    }
}

/// The name of this many copies of each shard; `None` if it has none.
pub fn redundancy(copies: u16) -> Option<&'static str> {
    match copies {
        1 => Some("single"),
        2 => Some("double"),
        3 => Some("triple"),
        _ => None,
    }
}

/// The configuration, as `configure` writes it (`fdbclient/ManagementAPI.actor.cpp`).
fn configuration(world: &World) -> impl Iterator<Item = Mutation> {
    let config = &world.config;
    let replicas = config.replicas.clamp(1, config.storage_servers.max(1));
    // A commit waits for every log.
    let copies = config.logs.max(1);
    let numbers = [
        ("commit_proxies", config.commit_proxies),
        ("grv_proxies", config.grv_proxies),
        ("initialized", 1),
        ("log_anti_quorum", 0),
        ("log_engine", STORAGE_ENGINE_MEMORY),
        ("log_replicas", copies),
        ("logs", config.logs),
        ("resolvers", config.resolvers),
        ("storage_engine", STORAGE_ENGINE_MEMORY),
        ("storage_replicas", replicas),
    ];
    let numbers = numbers.map(|(name, n)| (name, Bytes::from(n.to_string())));
    let policies = [("log_replication_policy", copies), ("storage_replication_policy", replicas)];
    let policies = policies.map(|(name, copies)| (name, policy(copies).into()));
    numbers
        .into_iter()
        .chain(policies)
        .map(|(name, value)| set([CONFIGURATION, name.as_bytes()].concat(), value))
}

/// FoundationDB's number of the storage engine `memory`.
const STORAGE_ENGINE_MEMORY: u16 = 1;

/// What the first recovery of a cluster writes.
pub fn initial(world: &World) -> Vec<Mutation> {
    let mut rows: Vec<Mutation> = configuration(world).collect();
    rows.push(set(COORDINATORS.to_vec(), connection_string(world)));
    for (tag, node) in world.machines(Class::Storage).into_iter().enumerate() {
        let uid = Uid::of_storage(world.seed, node).bytes();
        rows.push(set([SERVER_LIST, &uid].concat(), server_interface(world, node)));
        // A locality of one byte, and the number of the tag.
        let tag = Value::versioned().raw(&[0]).raw(&(tag as u16).to_le_bytes());
        rows.push(set([SERVER_TAGS, &uid].concat(), tag));
    }
    let shards = world.shards.lock();
    rows.extend(shards.shards().iter().map(|shard| key_servers(world, shard)));
    rows.push(set([KEY_SERVERS, b"\xff\xff"].concat(), Bytes::new()));
    rows
}

/// The ranges that mutations change.
pub fn written(mutations: &[Mutation]) -> Vec<KeyRange> {
    let range = |mutation: &Mutation| match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, _, _) => {
            KeyRange { begin: key.clone(), end: shaketable_tx::key_after(key) }
        }
        Mutation::ClearRange(range) => range.clone(),
    };
    mutations.iter().map(range).collect()
}

/// The zone under maintenance until a version.
pub fn healthy_zone(zone: &[u8], until: Version) -> Bytes {
    Value::versioned().text(zone).raw(&until.to_le_bytes()).into()
}

/// Parses [`healthy_zone`].
pub fn parse_healthy_zone(value: &[u8]) -> Option<(&[u8], Version)> {
    let (length, rest) = value.get(8..)?.split_first_chunk()?;
    let (zone, until) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((zone, Version::from_le_bytes(until.try_into().ok()?)))
}

/// What the list of storage servers says about one: its identifier, its process, and its address.
fn server_interface(world: &World, node: NodeId) -> Value {
    Value((PROTOCOL | OBJECT_SERIALIZER).to_le_bytes().to_vec())
        .raw(&Uid::of_storage(world.seed, node).bytes())
        .text(Uid::of_process(world.seed, node).to_string().as_bytes())
        .text(address(node).as_bytes())
}
