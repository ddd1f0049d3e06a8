//! The four acts of a run.

use super::{
    Operation, RunResult, Verdict,
    audit::{Audits, audit},
    client::{Job, Progress, live},
    panics,
    reckon::{count, heard, judge, something_may_land},
    stage::Machine,
    watchdog,
};
use crate::{
    judges::{self, Finding},
    plan::Plan,
    workload::Workload,
};
use futures::FutureExt;
use parking_lot::Mutex;
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    faults::{self, FaultPlan},
    history::ClientId,
    net::{Endpoint, NodeId},
    proto::Version,
    rt::{self, MILLISECOND, Nanos, SECOND},
    seed::Seed,
    trace::{Kind, hash_bytes},
    world::{Class, World},
};
use std::{collections::BTreeMap, convert::Infallible, panic::AssertUnwindSafe, sync::Arc};

/// The four acts, as the event stream names them.
#[derive(Clone, Copy)]
enum Act {
    Setup = 1,
    Hurt = 2,
    Heal = 3,
    Check = 4,
}

/// The client numbers of those who audit, set up and check, far from the workload's own.
pub(crate) const AUDITOR: ClientId = ClientId(1_000);
/// See [`AUDITOR`].
pub(crate) const SETTER: ClientId = ClientId(1_001);
/// See [`AUDITOR`].
pub(crate) const CHECKER: ClientId = ClientId(1_002);

/// How often a waiting act looks whether it is over, nanoseconds.
const LOOK: Nanos = 10 * MILLISECOND;

/// Performs a plan. With `keep_trace` the result carries every event. Never panics: a panic of the
/// simulated cluster is a finding about the harness.
pub fn run<W: Workload>(plan: &Plan<W>, keep_trace: bool) -> RunResult {
    let simulated = || Ok::<_, Infallible>(rt::simulate(Seed(plan.seed), perform(plan, keep_trace)));
    let name = format!("{} with seed {} (replay {0} {1})", W::NAME, plan.seed);
    match watchdog::watched(name, || heard(simulated)) {
        Ok(result) => result,
        Err(never) => match never {},
    }
}

async fn perform<W: Workload>(plan: &Plan<W>, keep_trace: bool) -> RunResult {
    let world = World::new(Seed(plan.seed), plan.cluster.clone(), &plan.faults, keep_trace);
    let supervisor = NodeId(0);
    let act = |act: Act| world.event(supervisor, Kind::Act, act as u64, 0);
    let mut findings = Vec::new();

    act(Act::Setup);
    let cluster = Cluster::start(world.clone()).await;
    let observe = Observe { world: &world, controller: cluster.controller() };
    let workload = plan.configuration.clone();
    let set_up = observe.run("setup", SETTER, move |db| {
        let workload = workload.clone();
        async move { workload.setup(&db).await }
    });
    match set_up.await {
        Some(Ok(Ok(()))) => {}
        Some(Ok(Err(error))) => {
            findings.push(Finding::harness("setup", format!("on a calm cluster: {error}")))
        }
        Some(Err(panic)) => findings.push(Finding::layer("panic", format!("in setup: {panic}"))),
        None => findings.push(Finding::harness("setup", "it does not end on a calm cluster")),
    }
    let sound_from = latest_commit(&world);

    act(Act::Hurt);
    let audits = Arc::new(Mutex::new(Audits::default()));
    let progress = start_clients(plan, &world, &cluster);
    let auditor = start_auditor(plan, &world, &cluster, &audits);
    let all_done = || progress.iter().all(|p| p.lock().done);
    world.faults.switch(true);
    faults::begin(&world, &plan.faults);
    let hurt_begins = world.clock.now();
    let hurt_ends = hurt_begins + plan.hurt;
    while !all_done() && world.clock.now() < hurt_ends {
        world.clock.sleep(LOOK).await;
    }

    act(Act::Heal);
    world.faults.switch(false);
    faults::heal(&world);
    let is_calm = plan.faults == FaultPlan::default();
    world.history.lock().faulty = (!is_calm).then(|| (hurt_begins, world.clock.now()));
    let bound = world.clock.now() + judges::live::BOUND;
    while !all_done() && world.clock.now() < bound {
        world.clock.sleep(LOOK).await;
    }

    act(Act::Check);
    world.kill(auditor);
    if something_may_land(&world.history.lock()) {
        let window = plan.cluster.window as u64 * SECOND / plan.cluster.versions_per_second.max(1) as u64;
        world.clock.sleep(window + SECOND).await;
    }
    let operations: Vec<Vec<Operation<W::Answer>>> =
        progress.iter().map(|p| p.lock().operations.clone()).collect();
    findings.extend(progress.iter().flat_map(|p| p.lock().findings.clone()));
    let lengths: Vec<usize> = plan.operations.iter().map(Vec::len).collect();
    if !all_done() {
        let waits = judges::live::judge(&operations, &lengths, world.clock.now());
        findings
            .push(Finding::layer("live", waits.err().unwrap_or_else(|| "a client has not ended".to_owned())));
    }
    let replicas = match world.clock.timeout(judges::live::BOUND, cluster.settle()).await {
        Some(()) => cluster.final_state(),
        None => {
            findings
                .push(Finding::harness("settle", "the storage servers do not catch up on a healed cluster"));
            Vec::new()
        }
    };
    let mut evaluated = audits.lock().evaluated;
    findings.extend(audits.lock().broken.take().map(|why| Finding::layer("audit", why)));
    let model =
        judge(plan, &world.history.lock(), &operations, &replicas, sound_from, &mut evaluated, &mut findings);
    // Only a cluster that is sound itself, with everything finished, is worth a last look.
    if let (Some(model), false) = (model, findings.iter().any(|f| f.harness || f.judge == "live")) {
        let (workload, model) = (plan.configuration.clone(), Arc::new(model));
        let checked = observe.run("check", CHECKER, move |db| {
            let (workload, model) = (workload.clone(), model.clone());
            async move { workload.check(&db, &model).await }
        });
        match checked.await {
            Some(Ok(Ok(Ok(())))) => {}
            Some(Ok(Ok(Err(why)))) => findings.push(Finding::layer("check", why)),
            Some(Ok(Err(error))) => {
                findings.push(Finding::layer("check", format!("could not be read: {error}")));
            }
            Some(Err(panic)) => {
                findings.push(Finding::layer("panic", format!("in the final check: {panic}")))
            }
            None => findings.push(Finding::layer("live", "the final check does not end")),
        }
    }
    let keyspace = replicas
        .iter()
        .flat_map(|r| &r.rows)
        .fold(0, |hash, (key, value)| hash_bytes(hash_bytes(hash, key), value));
    let keys = replicas.iter().map(|r| r.rows.len() as u64).sum();
    world.event(supervisor, Kind::Keyspace, keyspace, keys);
    let mut counters = count(&world.history.lock(), &operations, evaluated);
    // Generation 0 is what the first one recovers from.
    counters.recoveries =
        world.history.lock().ended.keys().filter(|generation| **generation > 0).count() as u64;
    counters.faults = world.faults.delivered();
    let (event_hash, events) = world.trace.hash();
    let virtual_time = world.clock.now();
    let trace = world.trace.take();
    cluster.shutdown().await;
    RunResult {
        verdict: Verdict::Passed,
        findings,
        counters,
        event_hash,
        events,
        virtual_time,
        points: BTreeMap::new(),
        trace,
    }
}

/// The last version that committed so far.
fn latest_commit(world: &World) -> Version {
    world.history.lock().logged.values().map(|e| e.version).max().unwrap_or(0)
}

/// Runs things on machines of their own that no fault touches.
struct Observe<'a> {
    world: &'a Arc<World>,
    controller: Endpoint,
}

impl Observe<'_> {
    /// The job's answer or the words of its panic; `None` if it takes longer than the bound of liveness.
    async fn run<T, F>(
        &self,
        name: &str,
        id: ClientId,
        job: impl Fn(SimDatabase) -> F + Send + Sync + 'static,
    ) -> Option<Result<T, String>>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (answer, job) = (Arc::new(Mutex::new(None)), Arc::new(job));
        let (slot, controller) = (answer.clone(), self.controller);
        self.world.add_machine(Class::Observer, name, move |world, node| {
            let (slot, job) = (slot.clone(), job.clone());
            async move {
                let job = AssertUnwindSafe(job(SimDatabase::new(world, node, id, controller)));
                let done = job.catch_unwind().await;
                *slot.lock() = Some(done.map_err(|panic| panics::words(&*panic)));
            }
        });
        let bound = self.world.clock.now() + judges::live::BOUND;
        while self.world.clock.now() < bound {
            self.world.clock.sleep(MILLISECOND).await;
            if let Some(done) = answer.lock().take() {
                return Some(done);
            }
        }
        None
    }
}

fn start_clients<W: Workload>(
    plan: &Plan<W>,
    world: &Arc<World>,
    cluster: &Cluster,
) -> Vec<Arc<Mutex<Progress<W>>>> {
    let controller = cluster.controller();
    let progress: Vec<_> = (0..plan.operations.len())
        .map(|client| {
            let stream = world.seed.stream(&format!("pace-{client}"));
            Arc::new(Mutex::new(Progress::<W>::new(stream)))
        })
        .collect();
    for (client, (operations, progress)) in plan.operations.iter().zip(&progress).enumerate() {
        let job = Arc::new(Job {
            workload: plan.configuration.clone(),
            client,
            operations: operations.clone(),
            pause: plan.pause,
            progress: progress.clone(),
        });
        world.add_machine(Class::Client, &format!("client-{client}"), move |world, node| {
            let job = job.clone();
            // Boxed: a client is large, and the runtime moves what it starts over the stack several times.
            Box::pin(async move {
                // On the machine, whose death ends what the database has started.
                let db = SimDatabase::new(world.clone(), node, ClientId(client as u16), controller);
                live(Machine { world, node, db }, job).await;
            })
        });
    }
    progress
}

fn start_auditor<W: Workload>(
    plan: &Plan<W>,
    world: &Arc<World>,
    cluster: &Cluster,
    audits: &Arc<Mutex<Audits>>,
) -> NodeId {
    let controller = cluster.controller();
    let (workload, audits) = (plan.configuration.clone(), audits.clone());
    world.add_machine(Class::Client, "auditor", move |world, node| {
        let (workload, audits) = (workload.clone(), audits.clone());
        async move {
            let db = SimDatabase::new(world.clone(), node, AUDITOR, controller);
            audit(Machine { world, node, db }, workload, audits).await;
        }
    })
}
