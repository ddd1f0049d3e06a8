//! The transaction system without clients or storage servers: raw messages as input, the logs' content as
//! output.

use bytes::Bytes;
use shaketable_sim::{
    cluster::Cluster,
    config::{ClusterBug, ClusterConfig},
    faults::FaultPlan,
    ids::NodeId,
    net::Broken,
    proto::*,
    rt::{self, MILLISECOND, SECOND},
    seed::Seed,
    world::{Class, World},
};
use shaketable_tx::key_after;
use std::{collections::BTreeMap, sync::Arc};

/// A client that uses the proxies' messages directly.
struct Raw {
    world: Arc<World>,
    node: NodeId,
    info: Arc<ClientInfo>,
    controller: shaketable_sim::ids::Endpoint,
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

    async fn commit(&self, data: CommitData) -> Result<Result<CommitReply, shaketable_tx::Error>, Broken> {
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

/// The last value of each key according to the committed log.
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
                shaketable_tx::MutationType::SetVersionstampedKey,
            )],
            idempotency_id: Some(Bytes::from("0123456789abcdef")),
            ..CommitData::default()
        };
        let Ok(Ok(CommitReply::Committed { version, batch_index })) = raw.commit(stamped).await else {
            panic!("the stamped commit fails")
        };
        let stamp = shaketable_sim::atomic::versionstamp(version, batch_index);
        let state = replay(cluster.world());
        assert_eq!(state.get(&a), Some(&one));
        assert_eq!(state.get(&[&b"s"[..], &stamp].concat()[..]), Some(&two));
        let ids: Vec<_> = state.iter().filter(|(key, _)| key.starts_with(b"\xff\x02")).collect();
        let key = Bytes::from([&b"\xff\x02/idmp/"[..], &stamp].concat());
        assert_eq!(ids, [(&key, &Bytes::from("0123456789abcdef"))], "kept once, where it committed");
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
        assert_eq!(refused, Ok(Err(shaketable_tx::Error::DATABASE_LOCKED)));
        assert_eq!(replay(cluster.world()).get(&key), None);
        let aware = CommitData { lock_aware: true, ..set(raw.read_version().await, &key, &value) };
        assert!(matches!(raw.commit(aware).await, Ok(Ok(CommitReply::Committed { .. }))));
    });
}

/// Commits for a while, during which machines of a class die one after another (or stop for a while) and come
/// back; nothing acknowledged may be lost, and the cluster must recover.
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
                        // Unknown: the key may have either value.
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
    (100..104).for_each(|seed| assert_eq!(chaos(seed), chaos(seed)));
}

/// All faults at once: machines of every class die or stop, links are cut, clogged, slow or lossy, all at
/// random. Afterwards the cluster must commit again soon, with everything acknowledged in its log.
fn chaos(seed: u64) -> u64 {
    let mut config = ClusterConfig::draw(Seed(seed), &[Bytes::from("d"), Bytes::from("m")]);
    config.window = 1_000_000_000;
    let (_, hash) = run(seed, config, async |cluster| {
        let world = cluster.world();
        let mut rng = Seed(seed).stream("chaos");
        let mut raw = Raw::new(cluster);
        let classes = [Class::Stateless, Class::Log, Class::Controller, Class::Storage];
        let nodes: Vec<_> = classes.iter().flat_map(|class| world.machines(*class)).collect();
        let mut acknowledged: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        let mut count = 0u32;
        for _ in 0..12 {
            let (a, b) = (*rng.pick(&nodes), *rng.pick(&nodes));
            let until = world.clock.now() + rng.range(1..1_000) * MILLISECOND;
            match rng.below(7) {
                0 => world.kill(a),
                1 => world.pause(a),
                2 => world.net.cut(a, b, true),
                3 => world.net.lose(a, b, 0.3),
                4 => world.net.clog(a, b, until),
                5 => nodes.iter().filter(|n| n.0 % 3 == a.0 % 3).for_each(|n| world.net.cut(*n, b, true)),
                _ => world.net.slow(a, b, 20 * MILLISECOND),
            }
            while world.clock.now() < until {
                count += 1;
                let key = Bytes::from(format!("{}{}", char::from(b'a' + (count % 26) as u8), count % 5));
                let value = Bytes::from(count.to_string());
                acknowledged.remove(&key);
                let attempt = async {
                    let version = raw.read_version().await;
                    raw.commit(set(version, &key, &value)).await
                };
                let told = world.clock.timeout(until.saturating_sub(world.clock.now()).max(1), attempt).await;
                if let Some(Ok(Ok(CommitReply::Committed { .. }))) = told {
                    acknowledged.insert(key, value);
                } else {
                    raw.refresh().await;
                }
            }
            if rng.chance(0.5) {
                nodes.iter().for_each(|node| world.start(*node));
                nodes.iter().for_each(|node| world.resume(*node));
                world.net.heal();
            }
        }
        nodes.iter().for_each(|node| world.start(*node));
        nodes.iter().for_each(|node| world.resume(*node));
        world.net.heal();
        let healed = world.clock.now();
        let version =
            world.clock.timeout(20 * SECOND, raw.read_version()).await.expect("read versions again");
        let mut last = set(version, &Bytes::from("last"), &Bytes::from("last"));
        while !matches!(raw.commit(last.clone()).await, Ok(Ok(CommitReply::Committed { .. }))) {
            assert!(world.clock.now() < healed + 20 * SECOND, "seed {seed}: no commit after the faults");
            raw.refresh().await;
            last.read_version = raw.read_version().await;
        }
        let state = replay(world);
        assert_eq!(state.get(&b"last"[..]), Some(&Bytes::from("last")));
        // A commit that was acknowledged late, or not at all, may have overwritten a key after its
        // acknowledgement.
        let written: BTreeMap<Bytes, Vec<Bytes>> = {
            let history = world.history.lock();
            let mut written: BTreeMap<Bytes, Vec<Bytes>> = BTreeMap::new();
            for mutation in history.committed().flat_map(|e| &e.transactions).flat_map(|t| &t.mutations) {
                if let Mutation::Set(key, value) = mutation {
                    written.entry(key.clone()).or_default().push(value.clone());
                }
            }
            written
        };
        for (key, value) in &acknowledged {
            assert!(
                written.get(key).is_some_and(|w| w.contains(value)),
                "seed {seed}: {key:?} {value:?} lost"
            );
        }
        assert!(world.history.lock().disagreements.is_empty());
        cluster.settle().await;
    });
    hash
}

#[test]
fn everything_at_once_loses_nothing_and_ends() {
    (100..140).for_each(|seed| assert_ne!(chaos(seed), 0));
}

/// A run of a cluster with a planted bug, with slow syncs and long batches.
fn with_bug<T>(bug: ClusterBug, main: impl AsyncFnOnce(&Cluster, &mut Raw) -> T) -> T {
    let config = ClusterConfig {
        cluster_bug: Some(bug),
        commit_batch_interval: 5 * MILLISECOND,
        log_sync: 10 * MILLISECOND..20 * MILLISECOND,
        ..ClusterConfig::smallest()
    };
    run(3, config, async |cluster| main(cluster, &mut Raw::new(cluster)).await).0
}

/// Commits `value`, which must be acknowledged.
async fn acknowledged(raw: &mut Raw, key: &Bytes, value: &Bytes) -> (Version, u16) {
    let version = raw.read_version().await;
    match raw.commit(set(version, key, value)).await {
        Ok(Ok(CommitReply::Committed { version, batch_index })) => (version, batch_index),
        other => panic!("{other:?}"),
    }
}

#[test]
fn resolver_misses_conflicts_inside_ranges_with_a_planted_bug() {
    let told = with_bug(ClusterBug::ResolverIgnoresRanges, async |_, raw| {
        let (key, value) = (Bytes::from("m"), Bytes::from("v"));
        let version = raw.read_version().await;
        acknowledged(raw, &key, &value).await;
        let scan = CommitData {
            read_ranges: vec![KeyRange::new("a", "z")],
            ..set(version, &Bytes::from("n"), &value)
        };
        raw.commit(scan).await
    });
    assert!(matches!(told, Ok(Ok(CommitReply::Committed { .. }))));
}

#[test]
fn versionstamps_with_a_planted_bug_repeat() {
    let (one, two) = with_bug(ClusterBug::VersionstampRepeats, async |_, raw| {
        raw.read_version().await;
        futures::join!(raw.commit(CommitData::default()), raw.commit(CommitData::default()))
    });
    assert_eq!(one, two);
}

#[test]
fn grv_proxy_is_stale_now_and_then_with_a_planted_bug() {
    let stale = with_bug(ClusterBug::StaleReadVersion, async |_, raw| {
        let mut stale = 0;
        for i in 0..20 {
            let (version, _) = acknowledged(raw, &Bytes::from(format!("k{i}")), &Bytes::from("v")).await;
            stale += u32::from(raw.read_version().await < version);
        }
        stale
    });
    assert!((1..20).contains(&stale), "{stale}");
}

#[test]
fn recovery_loses_an_acknowledged_commit_with_a_planted_bug() {
    lost(ClusterBug::RecoveryForgetsCommit, Class::Stateless);
}

#[test]
fn a_log_that_answers_early_loses_acknowledged_commits() {
    lost(ClusterBug::LogAnswersEarly, Class::Log);
}

/// Kills the machines of a class directly after an acknowledgement, which loses the acknowledged commit.
fn lost(bug: ClusterBug, class: Class) {
    with_bug(bug, async |cluster, raw| {
        let world = cluster.world();
        let (key, value) = (Bytes::from("k"), Bytes::from("v"));
        acknowledged(raw, &key, &value).await;
        world.machines(class).iter().for_each(|node| world.kill(*node));
        world.machines(class).iter().for_each(|node| world.start(*node));
        raw.info = Arc::default();
        world.clock.sleep(2 * SECOND).await;
        raw.read_version().await;
        assert_eq!(replay(world).get(&key), None);
    });
}

#[test]
fn a_grv_proxy_that_is_cut_off_from_the_logs_is_replaced() {
    let config = ClusterConfig { spares: 2, ..ClusterConfig::smallest() };
    run(5, config, async |cluster| {
        let world = cluster.world();
        let mut raw = Raw::new(cluster);
        raw.read_version().await;
        let (proxy, first) = (raw.info.grv_proxies[0].node, raw.info.generation);
        world.machines(Class::Log).iter().for_each(|log| world.net.cut(proxy, *log, true));
        let again = world.clock.timeout(10 * SECOND, raw.read_version()).await;
        assert!(again.is_some() && raw.info.generation > first);
    });
}
