//! The transaction system without clients or storage servers: raw messages in, the logs' truth out.

use bytes::Bytes;
use shaketable_layers::tx::key_after;
use shaketable_sim::{
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    net::{Broken, NodeId},
    proto::*,
    rt::{self, MILLISECOND, SECOND},
    seed::Seed,
    world::{Class, World},
};
use std::{collections::BTreeMap, sync::Arc};

/// A client that speaks the proxies' messages.
struct Raw {
    world: Arc<World>,
    node: NodeId,
    info: Arc<ClientInfo>,
    controller: shaketable_sim::net::Endpoint,
}

impl Raw {
    fn new(cluster: &Cluster) -> Raw {
        let world = cluster.world().clone();
        let node = world.net.add_node();
        Raw { node, info: Arc::default(), controller: cluster.controller(), world }
    }

    async fn refresh(&mut self) {
        let known = self.info.generation;
        let ask = |reply| Message::GetClientInfo { known, reply };
        let wait = self.world.net.call(self.node, self.controller, ask);
        if let Some(Ok(info)) = self.world.clock.timeout(50 * MILLISECOND, wait).await {
            self.info = info;
        }
    }

    async fn read_version(&mut self) -> Version {
        loop {
            let ask = |reply| Message::GetReadVersion {
                priority: Priority::Default,
                causal_read_risky: false,
                lock_aware: false,
                reply,
            };
            if let Some(proxy) = self.info.grv_proxies.first() {
                let call = self.world.net.call(self.node, *proxy, ask);
                if let Some(Ok(Ok(reply))) = self.world.clock.timeout(SECOND, call).await {
                    return reply.version;
                }
            }
            self.refresh().await;
        }
    }

    async fn commit(
        &self,
        data: CommitData,
    ) -> Result<Result<CommitReply, shaketable_layers::tx::Error>, Broken> {
        let data = Arc::new(data);
        let Some(proxy) = self.info.commit_proxies.last() else { return Err(Broken) };
        let call = self.world.net.call(self.node, *proxy, |reply| Message::Commit { data, reply });
        self.world.clock.timeout(5 * SECOND, call).await.unwrap_or(Err(Broken))
    }
}

fn point(key: &Bytes) -> KeyRange {
    KeyRange { begin: key.clone(), end: key_after(key) }
}

fn set(read_version: Version, key: &Bytes, value: &Bytes) -> CommitData {
    CommitData {
        read_version,
        mutations: vec![Mutation::Set(key.clone(), value.clone())],
        read_ranges: vec![point(key)],
        write_ranges: vec![point(key)],
        ..CommitData::default()
    }
}

fn run<T>(seed: u64, config: ClusterConfig, main: impl AsyncFnOnce(&Cluster) -> T) -> (T, u64) {
    let (answer, hash, dead) = rt::simulate(Seed(seed), async {
        let world = World::new(Seed(seed), config, &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let answer = main(&cluster).await;
        let hash = world.trace.hash().0;
        let weak = Arc::downgrade(&world);
        drop(world);
        cluster.shutdown().await;
        (answer, hash, weak)
    });
    assert_eq!(dead.strong_count(), 0, "the world outlives its run");
    (answer, hash)
}

/// The last value of each key by the committed log.
fn replay(world: &World) -> BTreeMap<Bytes, Bytes> {
    let history = world.history.lock();
    let mut state = BTreeMap::new();
    let mut last = 0;
    for entry in history.committed() {
        assert!(entry.version > last, "versions ascend across generations");
        last = entry.version;
        for mutation in entry.transactions.iter().flat_map(|t| &t.mutations) {
            match mutation {
                Mutation::Set(key, value) => drop(state.insert(key.clone(), value.clone())),
                other => panic!("{other:?}"),
            }
        }
    }
    state
}

#[test]
fn commits_are_logged_conflict_and_stamp() {
    run(1, ClusterConfig::smallest(), async |cluster| {
        let mut raw = Raw::new(cluster);
        let version = raw.read_version().await;
        let (a, one, two) = (Bytes::from("a"), Bytes::from("1"), Bytes::from("2"));
        let Ok(Ok(CommitReply::Committed { version: first, .. })) = raw.commit(set(version, &a, &one)).await
        else {
            panic!("the first commit fails")
        };
        assert!(first > version);
        assert!(raw.read_version().await >= first);
        let mut again = set(version, &a, &two);
        again.report_conflicting_keys = true;
        assert_eq!(raw.commit(again).await, Ok(Ok(CommitReply::Conflict(vec![0]))));
        let stamped = CommitData {
            mutations: vec![Mutation::Atomic(
                Bytes::from_static(b"s__________\x01\0\0\0"),
                two.clone(),
                shaketable_layers::tx::MutationType::SetVersionstampedKey,
            )],
            idempotency_id: Some(Bytes::from("id")),
            ..CommitData::default()
        };
        let Ok(Ok(CommitReply::Committed { version, batch_index })) = raw.commit(stamped).await else {
            panic!("the stamped commit fails")
        };
        let stamp = shaketable_sim::atomic::versionstamp(version, batch_index);
        let state = replay(cluster.world());
        assert_eq!(state.get(&a), Some(&one));
        assert_eq!(state.get(&[&b"s"[..], &stamp].concat()[..]), Some(&two));
        assert_eq!(state.get(&b"\xff\x02/idmp/id"[..]), Some(&Bytes::copy_from_slice(&stamp)));
    });
}

#[test]
fn a_locked_database_takes_lock_aware_commits_only() {
    run(2, ClusterConfig::smallest(), async |cluster| {
        let mut raw = Raw::new(cluster);
        let version = raw.read_version().await;
        cluster.world().tunables.set_locked(true);
        let (key, value) = (Bytes::from("k"), Bytes::from("v"));
        let refused = raw.commit(set(version, &key, &value)).await;
        assert_eq!(refused, Ok(Err(shaketable_layers::tx::Error::DATABASE_LOCKED)));
        assert!(replay(cluster.world()).is_empty());
        let aware = CommitData { lock_aware: true, ..set(raw.read_version().await, &key, &value) };
        assert!(matches!(raw.commit(aware).await, Ok(Ok(CommitReply::Committed { .. }))));
    });
}

/// Commits for a while, in which machines of a class die one by one (or stop for a while) and come
/// back; nothing acknowledged may be lost, and the cluster must get on its feet again.
fn survives(seed: u64, class: Class, pause: bool) -> u64 {
    let config = ClusterConfig::draw(Seed(seed), &[Bytes::from("d"), Bytes::from("m")]);
    let (_, hash) = run(seed, config, async |cluster| {
        let world = cluster.world();
        let mut raw = Raw::new(cluster);
        let victims = world.machines(class);
        let mut rng = Seed(seed).stream("test");
        let mut acknowledged = BTreeMap::new();
        let mut count = 0u32;
        for round in 0..6 {
            let victim = victims[(rng.u64() as usize) % victims.len()];
            let at = rng.range(0..20);
            let back = world.clock.now() + rng.range(50..1_500) * MILLISECOND;
            for i in 0..20 {
                if i == at {
                    if pause {
                        world.pause(victim)
                    } else {
                        world.kill(victim)
                    }
                    let (world, until) = (world.clone(), back);
                    rt::spawn(async move {
                        world.clock.sleep_until(until).await;
                        if pause { world.resume(victim) } else { world.start(victim) }
                    });
                }
                let version = raw.read_version().await;
                count += 1;
                let key = Bytes::from(format!("{}{}", char::from(b'a' + (count % 26) as u8), count % 5));
                let value = Bytes::from(count.to_string());
                match raw.commit(set(version, &key, &value)).await {
                    Ok(Ok(CommitReply::Committed { version, .. })) => {
                        acknowledged.insert(key, (version, value));
                    }
                    Ok(other) => panic!("alone, yet {other:?}"),
                    Err(Broken) => {
                        // Unknown: the key may hold either.
                        acknowledged.remove(&key);
                        raw.refresh().await;
                    }
                }
            }
            world.clock.sleep_until(back + rng.range(1..300) * MILLISECOND).await;
            assert!(raw.read_version().await > 0, "round {round} ends with a cluster that works");
        }
        let state = replay(world);
        for (key, (_, value)) in &acknowledged {
            assert_eq!(state.get(key), Some(value), "{key:?}");
        }
        assert!(acknowledged.len() > 10);
        assert!(world.history.lock().disagreements.is_empty());
        if class != Class::Controller && !pause {
            assert!(!world.history.lock().ended.is_empty(), "no recovery happened");
        }
    });
    hash
}

#[test]
fn nothing_acknowledged_is_lost_when_workers_die() {
    (0..12).for_each(|seed| assert_ne!(survives(seed, Class::Stateless, seed % 3 == 2), 0));
}

#[test]
fn nothing_acknowledged_is_lost_when_logs_die() {
    (20..32).for_each(|seed| assert_ne!(survives(seed, Class::Log, seed % 3 == 2), 0));
}

#[test]
fn nothing_acknowledged_is_lost_when_the_controller_dies() {
    (40..46).for_each(|seed| assert_ne!(survives(seed, Class::Controller, seed % 3 == 2), 0));
}

#[test]
fn two_runs_of_a_seed_are_the_same_and_others_are_not() {
    assert_eq!(survives(7, Class::Log, false), survives(7, Class::Log, false));
    assert_ne!(survives(7, Class::Log, false), survives(8, Class::Log, false));
}
