//! Storage servers in a complete cluster: replicas hold what the logs contain, through kills, recoveries,
//! moving shards and lagging servers.

use bytes::Bytes;
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    cluster::Cluster,
    config::{ClusterBug, ClusterConfig},
    faults::{self, Family, FaultPlan, Profile, Strike},
    ids::{ClientId, Endpoint},
    proto::{KeyRange, Message, Mutation, Version, WRONG_SHARD_SERVER},
    rt::{self, MILLISECOND, SECOND},
    seed::{Seed, Stream},
    storage::Replica,
    world::{Class, World},
};
use shaketable_tx::{Database, Error, Isolation, MutationType, Transaction};
use std::collections::BTreeMap;

type Rows = BTreeMap<Bytes, Bytes>;

fn config() -> ClusterConfig {
    ClusterConfig {
        logs: 2,
        storage_servers: 4,
        replicas: 2,
        spares: 2,
        shard_boundaries: vec![Bytes::from_static(b"d"), Bytes::from_static(b"m")],
        storage_lag: 0..400_000,
        storage_durable_interval: 100 * MILLISECOND,
        ..ClusterConfig::smallest()
    }
}

fn key(n: u64) -> Bytes {
    Bytes::from(vec![b'a' + n as u8])
}

/// The replayed committed entries of the logs.
fn replay(world: &World) -> Rows {
    let mut rows = Rows::new();
    let history = world.history.lock();
    for mutation in history.committed().flat_map(|e| &e.transactions).flat_map(|t| &t.mutations) {
        match mutation {
            Mutation::Set(k, v) => drop(rows.insert(k.clone(), v.clone())),
            Mutation::ClearRange(range) => rows.retain(|k, _| !range.contains(k)),
            Mutation::Atomic(k, operand, op) => {
                match shaketable_sim::atomic::apply(*op, rows.get(k), operand) {
                    Some(v) => drop(rows.insert(k.clone(), v)),
                    None => drop(rows.remove(k)),
                }
            }
        }
    }
    rows
}

/// The replicas whose content differs from the logs.
fn wrong(replicas: &[Replica], truth: &Rows) -> Vec<String> {
    let expected = |range: &KeyRange| -> Vec<(Bytes, Bytes)> {
        truth.iter().filter(|(k, _)| range.contains(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    replicas.iter().filter(|r| r.rows != expected(&r.range)).map(|r| r.server.clone()).collect()
}

/// Writes and reads until `until`; returns the number of committed transactions.
async fn write(world: &World, db: SimDatabase, mut rng: Stream, until: u64) -> u64 {
    let mut committed = 0;
    while world.clock.now() < until {
        let tx = db.create_transaction().expect("a transaction");
        let (a, b, c) = (rng.below(20), rng.below(20), rng.below(20));
        let done: Result<(), Error> = async {
            tx.get(&key(a), Isolation::Serializable).await?;
            match rng.below(4) {
                0 => tx.clear_range(&key(b.min(c)), &key(b.max(c))),
                1 => tx.clear(&key(b)),
                _ => tx.set(&key(b), &c.to_le_bytes()),
            }
            tx.atomic_op(&key(c), &[1, 0], MutationType::Add);
            tx.atomic_op(&key(c), b"two", MutationType::AppendIfFits);
            tx.commit().await.map(drop)
        }
        .await;
        match done {
            Ok(()) => committed += 1,
            Err(_) => world.clock.sleep(10 * MILLISECOND).await,
        }
    }
    committed
}

struct Ran {
    committed: u64,
    wrong: Vec<String>,
    delivered: BTreeMap<Family, u64>,
    hash: (u64, u64),
}

/// Four clients write for three seconds under a plan; then the cluster heals and settles.
fn run(seed: u64, config: ClusterConfig, plan: FaultPlan) -> Ran {
    rt::simulate(Seed(seed), async move {
        let world = World::new(Seed(seed), config, &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        let until = world.clock.now() + 3 * SECOND;
        let writers: Vec<_> = (0..4)
            .map(|i| {
                let node =
                    world.add_machine(Class::Client, &format!("client {i}"), |_, _| std::future::ready(()));
                let db = SimDatabase::new(world.clone(), node, ClientId(i), cluster.controller());
                write(&world, db, Seed(seed).stream(&format!("writer {i}")), until)
            })
            .collect();
        world.faults.switch(true);
        faults::begin(&world, &plan);
        let committed = futures::future::join_all(writers).await.into_iter().sum();
        world.faults.switch(false);
        faults::heal(&world);
        let settled = world.clock.timeout(30 * SECOND, cluster.settle()).await;
        assert_eq!(settled, Some(()), "seed {seed}: a healed cluster settles");
        let wrong = wrong(&cluster.final_state(), &replay(&world));
        let delivered = world.faults.delivered();
        let hash = world.trace.hash();
        cluster.shutdown().await;
        Ran { committed, wrong, delivered, hash }
    })
}

fn strike(at: u64, family: Family, target: u32, duration: u64, amount: f64) -> Strike {
    let (at, duration) = (at * MILLISECOND, duration * MILLISECOND);
    Strike { at, family, target, other: target + 1, duration, amount }
}

#[test]
fn replicas_hold_what_the_logs_say() {
    let ran = run(1, config(), FaultPlan::default());
    assert!(ran.committed > 300, "{}", ran.committed);
    assert_eq!(ran.wrong, [""; 0]);
}

#[test]
fn replicas_hold_what_the_logs_say_after_moves_kills_and_recoveries() {
    for seed in 0..12 {
        let mut rng = Seed(seed).stream("plan");
        let mut strikes: Vec<Strike> = (0..15)
            .map(|i| {
                let (at, target) = (rng.below(2_800), rng.u64() as u32 >> 1);
                match i {
                    0..6 => strike(at, Family::MoveShard, target, 1, 0.0),
                    6..14 => strike(at, Family::Kill, target, rng.below(400), 0.0),
                    _ => strike(at, Family::LaggingStorage, target, 600, 300.0),
                }
            })
            .collect();
        strikes.sort_by_key(|s| s.at);
        let ran = run(seed, config(), FaultPlan { strikes, ..FaultPlan::default() });
        assert_eq!(ran.wrong, [""; 0], "seed {seed}");
        assert!(ran.delivered.contains_key(&Family::MoveShard), "seed {seed}");
    }
}

#[test]
fn replicas_hold_what_the_logs_say_in_a_storm_which_is_repeatable() {
    for seed in 0..6 {
        let plan = FaultPlan::draw(Seed(seed), Profile::Storm, 3 * SECOND, &[]);
        let first = run(seed, config(), plan.clone());
        assert_eq!(first.wrong, [""; 0], "seed {seed}");
        let second = run(seed, config(), plan);
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
}

#[test]
fn replicas_of_servers_with_a_planted_bug_differ_from_the_logs() {
    for bug in [ClusterBug::StorageSkipsVersion, ClusterBug::ReplicaReorders] {
        let caught = (0..3)
            .filter(|seed| {
                let config = ClusterConfig { cluster_bug: Some(bug), ..config() };
                let wrong = run(*seed, config, FaultPlan::default()).wrong;
                let one = bug != ClusterBug::ReplicaReorders || wrong.iter().all(|name| name == "storage 0");
                assert!(one, "one server reorders, not {wrong:?}");
                !wrong.is_empty()
            })
            .count();
        assert!(caught > 0, "{bug:?}");
    }
}

#[test]
fn a_read_of_the_future_fails_after_a_second_and_one_of_the_past_at_once() {
    rt::simulate(Seed(3), async {
        let world = World::new(Seed(3), config(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
        let storage = world.address(world.machines(Class::Storage)[0]).expect("it has started");
        let get = |version| {
            let ask = |reply| shaketable_sim::proto::Message::GetValue { key: key(0), version, reply };
            world.net.call(node, storage, ask)
        };
        world.clock.sleep(SECOND).await;
        let before = world.clock.now();
        assert_eq!(get(1 << 60).await, Ok(Err(Error::FUTURE_VERSION)));
        let waited = world.clock.now() - before;
        assert!((SECOND..SECOND + 10 * MILLISECOND).contains(&waited), "{waited}");
        assert_eq!(get(-1).await, Ok(Err(Error::TRANSACTION_TOO_OLD)));
        let watch = |reply| Message::WatchValue { key: key(0), value: None, version: 1 << 60, reply };
        assert_eq!(
            world.net.call(node, storage, watch).await,
            Ok(Err(Error::FUTURE_VERSION)),
            "a watch likewise"
        );
        cluster.shutdown().await;
    });
}

#[test]
fn a_server_that_lags_by_more_than_two_windows_says_so() {
    rt::simulate(Seed(4), async {
        let world = World::new(Seed(4), config(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
        let db = SimDatabase::new(world.clone(), node, ClientId(0), cluster.controller());
        let server = world.machines(Class::Storage)[0];
        world.tunables.set_window(20_000);
        world.tunables.machine(server).set_apply_lag(SECOND);
        let mut version = 0;
        let until = world.clock.now() + SECOND / 5;
        while world.clock.now() < until {
            let tx = db.create_transaction().expect("a transaction");
            tx.set(&key(0), b"value");
            if tx.commit().await.is_ok() {
                version = tx.get_committed_version().expect("it has committed");
            }
        }
        let storage = world.address(server).expect("it has started");
        let get = |reply| shaketable_sim::proto::Message::GetValue { key: key(0), version, reply };
        let lag = version - cluster.storage()[0].version();
        for (window, says_so) in [(lag / 4, true), (lag * 3 / 4, false)] {
            world.tunables.set_window(window);
            let reply = world.clock.timeout(10 * MILLISECOND, world.net.call(node, storage, get)).await;
            assert_eq!(reply, says_so.then_some(Ok(Err(Error::PROCESS_BEHIND))));
        }
        world.tunables.heal(world.config.window);
        cluster.shutdown().await;
    });
}

#[test]
fn a_server_applies_what_is_logged_after_both_of_its_lags() {
    for (own, fault) in [(0, 0), (20, 0), (0, 300), (20, 300)] {
        rt::simulate(Seed(4), async move {
            let own = own * MILLISECOND;
            let config = ClusterConfig { storage_lag: own..own + 1, ..ClusterConfig::smallest() };
            let world = World::new(Seed(4), config, &FaultPlan::default(), false);
            let cluster = Cluster::start(world.clone()).await;
            let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
            let db = SimDatabase::new(world.clone(), node, ClientId(0), cluster.controller());
            // The start of the first generation has been applied by then.
            world.clock.sleep(SECOND).await;
            world.tunables.machine(world.machines(Class::Storage)[0]).set_apply_lag(fault * MILLISECOND);
            let version = commit(&db, |tx| tx.set(b"k", b"value")).await;
            let committed = world.clock.now();
            let tx = db.create_transaction().expect("a transaction");
            tx.set_read_version(version);
            tx.get(b"k", Isolation::Snapshot).await.expect("it comes");
            let waited = world.clock.now() - committed;
            let lag = own + fault * MILLISECOND;
            // The lag includes what was logged before the commit's reply arrived, and messages take time.
            let slack = 10 * MILLISECOND;
            assert!(
                (lag.saturating_sub(slack)..lag + slack).contains(&waited),
                "{waited} for a lag of {lag}"
            );
            cluster.shutdown().await;
        });
    }
}

#[test]
fn a_watch_outlives_its_servers() {
    rt::simulate(Seed(5), async {
        let world = World::new(Seed(5), config(), &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
        let db = SimDatabase::new(world.clone(), node, ClientId(0), cluster.controller());
        let tx = db.create_transaction().expect("a transaction");
        let watch = tx.watch(&key(0));
        tx.commit().await.expect("nothing disturbs it");
        world.clock.sleep(100 * MILLISECOND).await;
        for server in world.machines(Class::Storage) {
            world.kill(server);
            world.start(server);
        }
        world.clock.sleep(100 * MILLISECOND).await;
        let tx = db.create_transaction().expect("a transaction");
        tx.set(&key(0), b"changed");
        tx.commit().await.expect("nothing disturbs it");
        assert_eq!(world.clock.timeout(2 * SECOND, watch).await, Some(Ok(())));
        cluster.shutdown().await;
    });
}

/// The smallest cluster, its storage server, and a client of it.
async fn one_server(seed: u64) -> (std::sync::Arc<World>, Cluster, Endpoint, SimDatabase) {
    let world = World::new(Seed(seed), ClusterConfig::smallest(), &FaultPlan::default(), false);
    let cluster = Cluster::start(world.clone()).await;
    let storage = world.address(world.machines(Class::Storage)[0]).expect("it has started");
    let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
    let db = SimDatabase::new(world.clone(), node, ClientId(0), cluster.controller());
    (world, cluster, storage, db)
}

async fn commit(db: &SimDatabase, write: impl Fn(&SimTransaction)) -> Version {
    let tx = db.create_transaction().expect("a transaction");
    write(&tx);
    tx.commit().await.expect("nothing disturbs it");
    tx.get_committed_version().expect("it has committed")
}

/// A change of the key `m`: its value before, and the operation.
type Change = (Option<&'static str>, fn(&SimTransaction));

const CHANGES: &[Change] = &[
    (Some("old"), |tx| tx.set(b"m", b"new")),
    (Some("old"), |tx| tx.set(b"m", b"")),
    (None, |tx| tx.set(b"m", b"new")),
    (Some("old"), |tx| tx.clear(b"m")),
    (Some("old"), |tx| tx.clear_range(b"a", b"z")),
    (Some("old"), |tx| tx.clear_range(b"m", b"z")),
    (Some("old"), |tx| tx.clear_range(b"a", b"m\0")),
    (Some("old"), |tx| tx.atomic_op(b"m", b"!", MutationType::AppendIfFits)),
    (Some("old"), |tx| tx.atomic_op(b"m", b"old", MutationType::CompareAndClear)),
    (None, |tx| tx.atomic_op(b"m", b"\x01", MutationType::Add)),
    (Some("old"), |tx| tx.atomic_op(b"m", &[0; 14], MutationType::SetVersionstampedValue)),
];

/// Operations that do not change it.
const NO_CHANGES: &[fn(&SimTransaction)] = &[
    |tx| tx.set(b"l", b"new"),
    |tx| tx.set(b"m\0", b"new"),
    |tx| tx.clear_range(b"a", b"m"),
    |tx| tx.clear_range(b"m\0", b"z"),
    |tx| tx.atomic_op(b"m", b"other", MutationType::CompareAndClear),
];

#[test]
fn a_server_fires_watches_on_every_kind_of_mutation_that_changes_their_key() {
    rt::simulate(Seed(6), async {
        let (world, cluster, storage, db) = one_server(6).await;
        for (case, (before, change)) in CHANGES.iter().enumerate() {
            commit(&db, |tx| match before {
                Some(value) => tx.set(b"m", value.as_bytes()),
                None => tx.clear(b"m"),
            })
            .await;
            world.clock.sleep(SECOND).await;
            let watch = |key: &'static str, value: Option<&'static str>| {
                let (key, value) = (Bytes::from(key), value.map(Bytes::from));
                let ask = |reply| Message::WatchValue { key, value, version: 0, reply };
                world.net.call(db.node(), storage, ask)
            };
            let (mut first, mut second) = (watch("m", *before), watch("m", *before));
            let mut other = watch("n", None);
            let pause = 100 * MILLISECOND;
            for (other, no_change) in NO_CHANGES.iter().enumerate() {
                commit(&db, no_change).await;
                let fired = world.clock.timeout(pause, &mut first).await;
                assert_eq!(fired, None, "change {case}: fires at what is none, {other}");
            }
            let version = commit(&db, change).await;
            let fired = Some(Ok(Ok(version)));
            assert_eq!(world.clock.timeout(SECOND, &mut first).await, fired, "change {case}");
            assert_eq!(world.clock.timeout(SECOND, &mut second).await, fired, "change {case}: the second");
            assert_eq!(world.clock.timeout(pause, &mut other).await, None, "change {case}: another key's");
        }
        cluster.shutdown().await;
    });
}

#[test]
fn a_server_compares_a_new_watch_with_what_is_there_at_its_version() {
    rt::simulate(Seed(7), async {
        let (world, cluster, storage, db) = one_server(7).await;
        let watch = |value: &'static [u8], version| {
            let (key, value) = (Bytes::from_static(b"m"), Some(Bytes::from_static(value)));
            world.net.call(db.node(), storage, |reply| Message::WatchValue { key, value, version, reply })
        };
        commit(&db, |tx| tx.set(b"m", b"old")).await;
        world.clock.sleep(SECOND).await;
        world.tunables.machine(world.machines(Class::Storage)[0]).set_apply_lag(SECOND / 2);
        let version = commit(&db, |tx| tx.set(b"m", b"new")).await;
        // The server has not applied the write: its current value is not the relevant one.
        let mut late = watch(b"new", version);
        assert_eq!(world.clock.timeout(SECOND, &mut late).await, None);
        assert_eq!(
            world.clock.timeout(SECOND, watch(b"old", 0)).await.map(|fired| fired.is_ok()),
            Some(true)
        );
        cluster.shutdown().await;
    });
}

#[test]
fn a_read_that_waited_until_its_version_was_too_old_fails_and_a_watch_does_not() {
    rt::simulate(Seed(9), async {
        let (world, cluster, storage, db) = one_server(9).await;
        let server = world.machines(Class::Storage)[0];
        world.tunables.machine(server).set_apply_lag(SECOND / 2);
        let version = commit(&db, |tx| tx.set(b"m", b"old")).await;
        let value = Some(Bytes::from_static(b"old"));
        let (key, watched) = (Bytes::from_static(b"m"), Bytes::from_static(b"m"));
        let mut read = world.net.call(db.node(), storage, |reply| Message::GetValue { key, version, reply });
        let ask = |reply| Message::WatchValue { key: watched, value, version, reply };
        let mut watch = world.net.call(db.node(), storage, ask);
        world.clock.sleep(100 * MILLISECOND).await;
        // While it is paused, so much becomes due that it then advances far beyond that version at once.
        world.pause(server);
        world.tunables.set_window(50_000);
        commit(&db, |tx| tx.set(b"l", b"new")).await;
        world.clock.sleep(SECOND).await;
        world.resume(server);
        let pause = 100 * MILLISECOND;
        let answered = world.clock.timeout(pause, &mut read).await;
        assert_eq!(answered, Some(Ok(Err(Error::TRANSACTION_TOO_OLD))));
        assert_eq!(world.clock.timeout(pause, &mut watch).await, None);
        world.tunables.heal(world.config.window);
        let changed = commit(&db, |tx| tx.set(b"m", b"new")).await;
        assert_eq!(world.clock.timeout(SECOND, &mut watch).await, Some(Ok(Ok(changed))));
        cluster.shutdown().await;
    });
}

#[test]
fn a_server_that_drops_a_shard_notifies_its_watches() {
    rt::simulate(Seed(8), async {
        let (world, cluster, storage, db) = one_server(8).await;
        world.clock.sleep(SECOND).await;
        let ask = |reply| Message::WatchValue { key: key(3), value: None, version: 0, reply };
        let mut watch = world.net.call(db.node(), storage, ask);
        assert_eq!(world.clock.timeout(SECOND, &mut watch).await, None);
        let range = cluster.final_state()[0].range.clone();
        world
            .net
            .call(db.node(), storage, |reply| Message::DropShard { range, reply })
            .await
            .expect("it lives");
        assert_eq!(world.clock.timeout(SECOND, &mut watch).await, Some(Ok(Err(WRONG_SHARD_SERVER))));
    });
}
