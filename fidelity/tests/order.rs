//! Requests are made in the order of the plan, and clients die exactly where it says.

use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    config::ClusterConfig,
    faults::{self, COMEBACK, Death, Family, FaultPlan, LONGEST_HOLD, Request, Requests, Step},
    history::Attempt,
    ids::ClientId,
    rt::{self, MILLISECOND, SECOND},
    seed::Seed,
    world::{Class, World},
};
use shaketable_tx::{Database, Isolation, Transaction};
use std::{collections::BTreeMap, sync::Arc};

fn step(client: u16, operation: u32, request: Request) -> Step {
    Step { client: ClientId(client), operation, request, index: 0 }
}

fn reads(client: u16) -> Step {
    step(client, 0, Request::ReadVersion)
}

fn commits(client: u16) -> Step {
    step(client, 0, Request::Commit)
}

/// What two clients did, each of which reads a key in its one operation and writes another one in the same
/// transaction.
struct Done {
    attempts: Vec<Attempt>,
    requests: Requests,
    faults: BTreeMap<Family, u64>,
    /// How often each client was started.
    starts: Vec<u32>,
    value: [bool; 2],
    virtual_time: u64,
}

/// Runs two clients, each until its operation has ended; the one that dies does not begin it again.
fn run(plan: FaultPlan) -> Done {
    rt::simulate(Seed(5), async move {
        let world = World::new(Seed(5), ClusterConfig::smallest(), &plan, false);
        let cluster = Cluster::start(world.clone()).await;
        let controller = cluster.controller();
        let starts = Arc::new(Mutex::new(vec![0u32; 2]));
        let done = Arc::new(Mutex::new(0));
        for client in 0..2u16 {
            let (starts, done) = (starts.clone(), done.clone());
            world.add_machine(Class::Client, "client", move |world, node| {
                let (starts, done) = (starts.clone(), done.clone());
                async move {
                    let incarnation = {
                        let mut starts = starts.lock();
                        starts[usize::from(client)] += 1;
                        starts[usize::from(client)]
                    };
                    let db = SimDatabase::new(world.clone(), node, ClientId(client), controller);
                    if incarnation == 1 {
                        world.clock.sleep(MILLISECOND).await;
                        db.set_operation(Some(0));
                        let tx = db.create_transaction().expect("a transaction");
                        tx.get(&[1 - client as u8], Isolation::Snapshot).await.expect("a calm cluster");
                        tx.set(&[client as u8], b"written");
                        tx.commit().await.expect("no conflict");
                        db.set_operation(None);
                    }
                    *done.lock() += 1;
                }
            });
        }
        world.faults.switch(true);
        faults::begin(&world, &plan);
        let from = world.clock.now();
        while *done.lock() < 2 {
            world.clock.sleep(MILLISECOND).await;
            assert!(world.clock.now() < 10 * SECOND, "the clients do not end");
        }
        let virtual_time = world.clock.now() - from;
        let read = Arc::new(Mutex::new(None));
        let slot = read.clone();
        world.add_machine(Class::Observer, "reader", move |world, node| {
            let slot = slot.clone();
            async move {
                let db = SimDatabase::new(world, node, ClientId(9), controller);
                let tx = db.create_transaction().expect("a transaction");
                let mut both = [false; 2];
                for (key, value) in both.iter_mut().enumerate() {
                    *value = tx.get(&[key as u8], Isolation::Snapshot).await.expect("a value").is_some();
                }
                *slot.lock() = Some(both);
            }
        });
        let value = loop {
            if let Some(both) = read.lock().take() {
                break both;
            }
            world.clock.sleep(MILLISECOND).await;
        };
        let attempts = world.history.lock().attempts.iter().flatten().cloned().collect();
        let starts = starts.lock().clone();
        Done {
            attempts,
            requests: world.faults.requests(),
            faults: world.faults.delivered(),
            starts,
            value,
            virtual_time,
        }
    })
}

fn ordered(order: &[Step]) -> Done {
    run(FaultPlan { order: order.to_vec(), ..FaultPlan::default() })
}

/// The read version and the commit version of a client.
fn versions(done: &Done, client: u16) -> (i64, i64) {
    use shaketable_sim::history::Reported;
    let attempt =
        done.attempts.iter().find(|attempt| attempt.client == ClientId(client)).expect("an attempt");
    let Reported::Committed { version, .. } = attempt.reported else { panic!("{attempt:?}") };
    (attempt.read_version.expect("a read version"), version)
}

#[test]
fn all_orders_of_two_transactions_are_possible() {
    let mut orders = Vec::new();
    for first in [0, 1] {
        let second = 1 - first;
        orders.push([reads(first), commits(first), reads(second), commits(second)]);
        orders.push([reads(first), reads(second), commits(first), commits(second)]);
        orders.push([reads(first), reads(second), commits(second), commits(first)]);
    }
    for order in orders {
        let done = ordered(&order);
        assert_eq!(done.requests.overdue, 0, "{order:?}");
        assert_eq!(done.value, [true, true]);
        let version = |step: &Step| match (versions(&done, step.client.0), step.request) {
            ((read, _), Request::ReadVersion) => read,
            ((_, commit), Request::Commit) => commit,
        };
        for pair in order.windows(2) {
            let (before, after) = (version(&pair[0]), version(&pair[1]));
            // A read version sees all commits that were answered before it was requested.
            assert!(before <= after, "{order:?}: {before} and {after}");
            if pair.iter().all(|step| step.request == Request::Commit) {
                assert!(before < after, "{order:?}");
            }
            if pair[0].request == Request::ReadVersion && pair[1].request == Request::Commit {
                assert!(before < after, "{order:?}");
            }
        }
    }
}

#[test]
fn a_request_is_not_held_back_for_what_never_comes() {
    // Client 1 has no second operation.
    let done = ordered(&[step(1, 1, Request::Commit), reads(0)]);
    assert_eq!((done.requests.overdue, done.value), (1, [true, true]));
    assert!(done.virtual_time >= LONGEST_HOLD);
    // An operation that has ended makes no second commit.
    let second = Step { index: 1, ..commits(1) };
    let done = ordered(&[second, reads(0)]);
    assert_eq!((done.requests.overdue, done.value), (0, [true, true]));
    assert!(done.virtual_time < LONGEST_HOLD / 2);
    assert!(versions(&done, 1).1 <= versions(&done, 0).0);
}

#[test]
fn a_client_dies_before_or_after_its_commit() {
    for after in [false, true] {
        let deaths = vec![Death { step: commits(1), after }];
        // The other client waits for the commit that is not made.
        let order = vec![commits(1), commits(0)];
        let done = run(FaultPlan { deaths, order, ..FaultPlan::default() });
        assert_eq!(done.value, [true, after]);
        assert_eq!((done.starts, done.requests.overdue), (vec![1, 2], 0));
        assert_eq!(done.faults, BTreeMap::from([(Family::ClientDeath, 1)]));
        assert!((COMEBACK..LONGEST_HOLD / 2).contains(&done.virtual_time));
    }
}

#[test]
fn requests_are_counted_only_where_they_matter() {
    assert_eq!(ordered(&[]).requests, Requests::default());
    let deaths = vec![Death { step: step(1, 5, Request::Commit), after: true }];
    let mut made = run(FaultPlan { deaths, ..FaultPlan::default() }).requests.made;
    made.sort_unstable();
    assert_eq!(made, [reads(0), commits(0), reads(1), commits(1)]);
}

#[test]
fn an_impossible_order_is_refused() {
    let twice = FaultPlan { order: vec![reads(0), commits(0), reads(0)], ..FaultPlan::default() };
    assert_eq!(twice.check(), Err("a request is in the order twice".to_owned()));
    let deaths = vec![Death { step: reads(0), after: true }];
    let at_read = FaultPlan { deaths, ..FaultPlan::default() };
    assert_eq!(at_read.check(), Err("a client dies at a request that is no commit".to_owned()));
    assert_eq!(at_read.families().collect::<Vec<_>>(), [Family::ClientDeath]);
}
