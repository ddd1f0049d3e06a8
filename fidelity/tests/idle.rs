//! A cluster that nobody uses: what it costs, and that what befalls it in that time is still found.

use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    ids::{ClientId, Generation, NodeId},
    proto::Message,
    rt::{self, MILLISECOND, Nanos, SECOND},
    seed::Seed,
    world::{Class, World},
};
use shaketable_tx::{Database, Transaction};
use std::sync::Arc;

/// How many events the cluster may have in a second of virtual time in which no client acts.
const MOST: u64 = 50;

/// The largest cluster that is drawn.
fn largest(seed: u64) -> ClusterConfig {
    let drawn = ClusterConfig::draw(Seed(seed), &[]);
    ClusterConfig {
        logs: 3,
        storage_servers: 5,
        replicas: 3,
        grv_proxies: 3,
        commit_proxies: 3,
        resolvers: 3,
        resolver_boundaries: vec!["d".into(), "m".into()],
        spares: 3,
        ..drawn
    }
}

/// Starts a cluster, writes, and lets it rest for five seconds.
fn idle(seed: u64, config: ClusterConfig, main: impl AsyncFnOnce(&Arc<World>, &Cluster, &SimDatabase)) {
    rt::simulate(Seed(seed), async {
        let world = World::new(Seed(seed), config, &FaultPlan::default(), false);
        let cluster = Cluster::start(world.clone()).await;
        let node = world.add_machine(Class::Client, "client", |_, _| std::future::ready(()));
        let db = SimDatabase::new(world.clone(), node, ClientId(0), cluster.controller());
        commit(&db, |tx| tx.set(b"k", b"1")).await;
        world.clock.sleep(5 * SECOND).await;
        main(&world, &cluster, &db).await;
        drop((db, world));
        cluster.shutdown().await;
    });
}

async fn commit(db: &SimDatabase, write: impl Fn(&SimTransaction)) {
    let tx = db.create_transaction().expect("a transaction");
    write(&tx);
    tx.commit().await.expect("nothing disturbs it");
}

/// The current generation, once it is newer than `known`; `None` if there is none within `time`.
async fn generation(world: &World, cluster: &Cluster, known: Generation, time: Nanos) -> Option<Generation> {
    let ask = |reply| Message::GetClientInfo { known, reply };
    let call = world.net.call(NodeId(0), cluster.controller(), ask);
    world.clock.timeout(time, call).await.and_then(Result::ok).map(|info| info.generation)
}

#[test]
fn a_second_in_which_nobody_acts_has_few_events() {
    for seed in 0..4 {
        idle(seed, largest(seed), async |world, _, _| {
            let before = world.trace.hash().1;
            world.clock.sleep(20 * SECOND).await;
            let events = (world.trace.hash().1 - before) / 20;
            assert!(events <= MOST, "{events} events a second, seed {seed}");
            assert!(events > 0, "versions go on");
        });
    }
}

/// What befalls a machine that has a role, or ends: the controller, the machine, and which of both.
type Blow = fn(&World, NodeId, NodeId, bool);

const BLOWS: &[(&str, Blow)] = &[
    ("it stops", |world, _, node, struck| if struck { world.pause(node) } else { world.resume(node) }),
    ("it cannot be reached", |world, controller, node, struck| world.net.cut(controller, node, struck)),
    ("it is not heard", |world, controller, node, struck| world.net.cut(node, controller, struck)),
    ("it is far", |world, controller, node, struck| {
        world.net.slow(node, controller, if struck { SECOND } else { 0 });
    }),
    ("its messages are late", |world, controller, node, struck| {
        world.net.clog(node, controller, world.clock.now() + if struck { SECOND } else { 0 });
    }),
    ("it dies", |world, _, node, struck| if struck { world.kill(node) } else { world.start(node) }),
];

#[test]
fn a_machine_that_is_lost_while_nobody_acts_is_replaced() {
    for (seed, (blow, strike)) in BLOWS.iter().enumerate() {
        idle(seed as u64, largest(seed as u64), async |world, cluster, _| {
            let has_role = |(node, class, roles): (NodeId, Class, Vec<_>)| {
                (matches!(class, Class::Stateless | Class::Log) && !roles.is_empty()).then_some(node)
            };
            let controller = cluster.controller().node;
            let known = generation(world, cluster, 0, SECOND).await.expect("the first one");
            let victims: Vec<_> = world.processes().into_iter().filter_map(has_role).collect();
            let victim = victims[seed % victims.len()];
            assert_eq!(generation(world, cluster, known, 5 * SECOND).await, None, "nothing has happened");
            strike(world, controller, victim, true);
            let next = generation(world, cluster, known, 3 * SECOND).await;
            assert!(next.is_some(), "{blow}: {victim:?} is not replaced");
            strike(world, controller, victim, false);
            world.clock.sleep(5 * SECOND).await;
            let settled = generation(world, cluster, 0, SECOND).await.expect("it goes on");
            assert_eq!(generation(world, cluster, settled, 5 * SECOND).await, None, "{blow}: it has ended");
        });
    }
}

/// The stream of a log is lost while nobody acts, and so is the last entry that there was to send: the
/// storage server finds out by itself.
#[test]
fn a_storage_server_that_missed_the_last_entry_asks_for_it() {
    idle(1, largest(1), async |world, cluster, db| {
        let (logs, servers) = (world.machines(Class::Log), world.machines(Class::Storage));
        let cut = |cut| {
            for (log, server) in logs.iter().flat_map(|log| servers.iter().map(move |server| (*log, *server)))
            {
                world.net.cut(log, server, cut);
            }
        };
        cut(true);
        commit(db, |tx| tx.set(b"k", b"2")).await;
        cut(false);
        // Without its question, the next entry would be that of an idle proxy.
        let settled = world.clock.timeout(800 * MILLISECOND, cluster.settle()).await;
        assert!(settled.is_some(), "not every server has applied the commit");
    });
}
