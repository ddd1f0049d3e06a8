//! Every family of faults occurs on a small cluster, is counted, and ends when the cluster heals.

use bytes::Bytes;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::{self, Dosage, Family, FaultPlan, Strike, Struck, catalogue},
    ids::ClientId,
    rt::{self, MILLISECOND, SECOND},
    seed::{Seed, Stream},
    trace::Kind,
    world::{Class, World},
};
use shaketable_tx::{Database, Isolation, RangeOption, Result, Transaction, TransactionOption};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

fn config() -> ClusterConfig {
    ClusterConfig {
        logs: 2,
        storage_servers: 3,
        replicas: 2,
        spares: 1,
        shard_boundaries: vec![Bytes::from_static(b"key5")],
        storage_durable_interval: 50 * MILLISECOND,
        ..ClusterConfig::smallest()
    }
}

fn key(n: u64) -> Bytes {
    Bytes::from(format!("key{}", n % 10))
}

/// One transaction with every kind of call, so that each family of the contract has an opportunity.
async fn work(db: &SimDatabase, rng: &mut Stream, watches: bool) -> Result<()> {
    let tx = db.create_transaction()?;
    tx.set_option(TransactionOption::Timeout(2_000))?;
    if rng.chance(0.3) {
        tx.set_option(TransactionOption::CausalReadRisky)?;
    }
    tx.get(&key(rng.u64()), Isolation::Serializable).await?;
    tx.get_range(&RangeOption::from((b"key0".to_vec(), b"key9".to_vec())), 1, Isolation::Serializable)
        .await?;
    tx.set(&key(rng.u64()), &rng.u64().to_le_bytes());
    let watch = (watches && rng.chance(0.3)).then(|| tx.watch(&key(rng.u64())));
    tx.commit().await?;
    if let Some(watch) = watch {
        watch.await?;
    }
    Ok(())
}

/// Works until `until`; a client that is stuck in an operation abandons it after half a second, and one whose
/// operation is to be cut does so within a round trip.
async fn client(world: &World, db: SimDatabase, mut rng: Stream, watches: bool, until: u64) {
    while world.clock.now() < until {
        let cut = db.cut().is_some();
        let patience = if cut { MILLISECOND / 2 } else { SECOND / 2 };
        let worked = world.clock.timeout(patience, work(&db, &mut rng, watches)).await;
        if cut && worked.is_none() {
            world.faults.count(Family::DroppedOperation);
        }
        if !matches!(worked, Some(Ok(()))) {
            world.clock.sleep(5 * MILLISECOND).await;
        }
    }
}

/// Three clients work for `length` under a plan, then the cluster heals and one more transaction must commit.
/// Returns what was delivered, and the hash over all events.
fn shake(seed: u64, plan: FaultPlan, length: u64) -> (BTreeMap<Family, u64>, (u64, u64)) {
    rt::simulate(Seed(seed), async move {
        let world = World::new(Seed(seed), config(), &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        let until = world.clock.now() + length;
        let open = |i: u16, class| {
            let node = world.add_machine(class, &format!("client {i}"), |_, _| std::future::ready(()));
            SimDatabase::new(world.clone(), node, ClientId(i), cluster.controller())
        };
        let clients: Vec<_> = (0..3)
            .map(|i| {
                let rng = Seed(seed).stream(&format!("client {i}"));
                client(&world, open(i, Class::Client), rng, i > 0, until)
            })
            .collect();
        world.faults.switch(true);
        faults::begin(&world, &plan);
        futures::future::join_all(clients).await;
        world.faults.switch(false);
        faults::heal(&world);
        let db = open(9, Class::Observer);
        let healed = db.run(|tx, _| async move {
            tx.set(b"healed", b"yes");
            Ok::<(), shaketable_tx::Error>(())
        });
        let healed = world.clock.timeout(20 * SECOND, healed).await;
        assert!(matches!(healed, Some(Ok(()))), "{plan:?}");
        assert_eq!(world.clock.timeout(20 * SECOND, cluster.settle()).await, Some(()), "{plan:?}");
        let (delivered, hash) = (world.faults.delivered(), world.trace.hash());
        cluster.shutdown().await;
        (delivered, hash)
    })
}

/// A plan with only this family, at its maximum strength.
fn alone(family: &dyn faults::FaultFamily) -> FaultPlan {
    let name = family.family();
    let mut plan = FaultPlan::default();
    match family.dosage() {
        Dosage::Rate(_) => drop(plan.rates.insert(name, 0.15)),
        Dosage::Timed { lasts, amount, .. } => plan.strikes.extend((0..4).map(|i| Strike {
            at: i * 300 * MILLISECOND,
            family: name,
            target: 7 * i as u32 + 3,
            other: 5 * i as u32 + 1,
            duration: lasts.end * MILLISECOND,
            amount: amount.end,
        })),
    }
    plan
}

#[test]
fn each_family_strikes_is_counted_repeats_itself_and_heals() {
    for family in catalogue() {
        let plan = alone(family);
        let (delivered, hash) = shake(11, plan.clone(), 3 * SECOND / 2);
        assert_eq!(delivered.keys().collect::<Vec<_>>(), [&family.family()]);
        assert_eq!(shake(11, plan, 3 * SECOND / 2).1, hash, "{}", family.family().name());
    }
}

#[test]
fn all_families_at_once_heal() {
    let mut plan = FaultPlan::default();
    for family in catalogue() {
        let one = alone(family);
        plan.strikes.extend(one.strikes);
        plan.rates.extend(one.rates);
    }
    plan.strikes.sort_by_key(|s| (s.at, s.family));
    for seed in 0..4 {
        let (delivered, _) = shake(seed, plan.clone(), 3 * SECOND);
        assert!(delivered.len() > 20, "{delivered:?}");
    }
}

/// A task of the supervisor that sleeps beyond the end of its run must not keep the run's world alive.
#[test]
fn a_run_frees_its_world_though_a_strike_is_still_to_come() {
    let mut plan = FaultPlan::default();
    for (family, at) in [(Family::Kill, 3_600 * SECOND), (Family::Swizzle, 0)] {
        let duration = 3_600 * SECOND;
        plan.strikes.push(Strike { at, family, target: 0, other: 1, duration, amount: 1.0 });
    }
    let world = rt::simulate(Seed(1), async move {
        let world = World::new(Seed(1), config(), &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        world.faults.switch(true);
        faults::begin(&world, &plan);
        world.clock.sleep(SECOND).await;
        cluster.shutdown().await;
        Arc::downgrade(&world)
    });
    assert!(world.upgrade().is_none());
}

/// A program opens databases, each with a machine of its own, while another one is paused.
#[test]
fn the_end_of_a_strike_concerns_the_machines_of_its_beginning() {
    for target in 0..20 {
        let mut plan = FaultPlan::default();
        let (at, duration) = (MILLISECOND, 5 * MILLISECOND);
        plan.strikes.push(Strike { at, family: Family::Pause, target, other: 1, duration, amount: 1.0 });
        let events = rt::simulate(Seed(1), async move {
            let world = World::new(Seed(1), config(), &plan, true);
            let cluster = Cluster::start(world.clone()).await;
            world.faults.switch(true);
            faults::begin(&world, &plan);
            world.clock.sleep(2 * MILLISECOND).await;
            for _ in 0..3 {
                world.add_machine(Class::Client, "client", |_, _| async {});
            }
            world.clock.sleep(10 * MILLISECOND).await;
            let events = world.trace.take();
            cluster.shutdown().await;
            events
        });
        let of = |kind| events.iter().filter(move |e| e.kind == kind).map(|e| e.node).collect::<Vec<_>>();
        assert_eq!(of(Kind::Pause).len(), 1);
        assert_eq!(of(Kind::Resume), of(Kind::Pause), "target {target}");
    }
}

/// A strike of an hour whose end would come while another one lasts that began after the faults had ended.
#[test]
fn what_began_before_faults_were_switched_off_ends_nothing_that_began_since() {
    let strike = |family, duration| {
        let strike = Strike { at: 0, family, target: 0, other: 1, duration, amount: 0.1 };
        FaultPlan { strikes: vec![strike], ..FaultPlan::default() }
    };
    for family in [Family::Locked, Family::ShortLifetime, Family::Partition] {
        rt::simulate(Seed(1), async move {
            let world = World::new(Seed(1), config(), &FaultPlan::default(), false);
            let cluster = Cluster::start(world.clone()).await;
            let is_calm = || {
                let tunables = &world.tunables;
                let is_net_calm = world.net.disturbed_until() <= world.clock.now();
                !tunables.locked() && tunables.window() == world.config.window && is_net_calm
            };
            for duration in [10 * SECOND, 20 * SECOND] {
                assert!(is_calm());
                world.faults.switch(true);
                faults::begin(&world, &strike(family, duration));
                world.clock.sleep(SECOND).await;
                assert!(!is_calm(), "{}", family.name());
                if duration == 10 * SECOND {
                    world.faults.switch(false);
                    faults::heal(&world);
                    world.clock.sleep(SECOND).await;
                }
            }
            world.clock.sleep(10 * SECOND).await;
            assert!(!is_calm(), "{}", family.name());
            world.clock.sleep(10 * SECOND).await;
            assert!(is_calm(), "{}", family.name());
            cluster.shutdown().await;
        });
    }
}

#[test]
fn a_strike_without_a_victim_is_not_counted() {
    let config = ClusterConfig { storage_servers: 2, ..config() };
    rt::simulate(Seed(1), async {
        let world = World::new(Seed(1), config, &FaultPlan::default(), false);
        for family in catalogue().filter(|f| !matches!(f.family(), Family::Locked | Family::ShortLifetime)) {
            let strike =
                Strike { at: 0, family: family.family(), target: 0, other: 1, duration: 1, amount: 0.5 };
            let strike = Struck::now(&world, strike);
            assert!(!family.strike(&world, &strike), "{} has nobody to strike", family.family().name());
        }
    });
}

#[test]
fn every_timed_family_has_its_file() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/src/faults");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .expect("the folder of families")
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".rs").map(str::to_owned)
        })
        .filter(|name| {
            // The last two also have a rate.
            let others = [
                "mod",
                "catalogue",
                "contract",
                "decision",
                "draws",
                "driver",
                "families",
                "family",
                "order",
                "plan",
                "state",
                "strikes",
                "turn",
                "victims",
                "dropped_operation",
                "window_edge",
            ];
            !others.contains(&name.as_str())
        })
        .collect();
    let timed: BTreeSet<String> = catalogue()
        .filter(|f| matches!(f.dosage(), Dosage::Timed { .. }))
        .map(|f| f.family().name().replace('-', "_"))
        .collect();
    assert_eq!(files, timed);
}
