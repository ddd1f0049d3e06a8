//! The four acts of a run.

use super::{
    Counters, Operation, RunResult, Verdict,
    client::{Job, Progress, live},
    panics,
};
use crate::{
    judges::{self, Evidence, Finding, Replica, Truth},
    plan::Plan,
    workload::{Outcome, Workload},
};
use futures::FutureExt;
use parking_lot::Mutex;
use shaketable_layers::{
    points,
    tx::{Database, DatabaseOption, Error, Transaction},
};
use shaketable_sim::{
    client::SimDatabase,
    cluster::Cluster,
    faults,
    history::{ClientId, History, Told},
    net::{Endpoint, NodeId},
    proto::Version,
    rt::{self, MILLISECOND, Nanos, SECOND},
    seed::Seed,
    trace::{Kind, hash_bytes},
    world::{Class, World},
};
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

/// The four acts, as the event stream names them.
#[derive(Clone, Copy)]
enum Act {
    Setup = 1,
    Hurt = 2,
    Heal = 3,
    Check = 4,
}

/// The client numbers of those who audit, set up and check, far from the workload's own.
const AUDITOR: ClientId = ClientId(1_000);
/// See [`AUDITOR`].
const SETTER: ClientId = ClientId(1_001);
/// See [`AUDITOR`].
const CHECKER: ClientId = ClientId(1_002);

/// How long the auditor rests between two audits, nanoseconds.
const AUDIT_PAUSE: Nanos = 100 * MILLISECOND;
/// How often a waiting act looks whether it is over, nanoseconds.
const LOOK: Nanos = 10 * MILLISECOND;

/// Performs a plan. With `keep_trace` the result carries every event. Never panics: a panic of the
/// simulated cluster is a finding about the harness.
pub fn run<W: Workload>(plan: &Plan<W>, keep_trace: bool) -> RunResult {
    points::install();
    let performed = panics::listen(|| {
        std::panic::catch_unwind(AssertUnwindSafe(|| {
            rt::simulate(Seed(plan.seed), perform(plan, keep_trace))
        }))
    });
    let recorder = points::take();
    let mut result = performed.unwrap_or_else(|panic| RunResult {
        verdict: Verdict::Harness,
        findings: vec![Finding::harness("panic", panics::words(&*panic))],
        counters: Counters::default(),
        event_hash: 0,
        events: 0,
        virtual_time: 0,
        points: BTreeMap::new(),
        trace: Vec::new(),
    });
    result.points = recorder.points;
    result.findings.extend(recorder.broken.into_iter().map(|claim| Finding::layer("always", claim)));
    result.verdict = verdict(&result.findings);
    result
}

fn verdict(findings: &[Finding]) -> Verdict {
    if findings.iter().any(|f| f.harness) {
        Verdict::Harness
    } else if findings.iter().any(|f| f.judge != "live") {
        Verdict::Violated
    } else if findings.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Stuck
    }
}

/// What the auditor has to say.
#[derive(Default)]
struct Audits {
    evaluated: u64,
    broken: Option<String>,
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
    let hurt_ends = world.clock.now() + plan.hurt;
    while !all_done() && world.clock.now() < hurt_ends {
        world.clock.sleep(LOOK).await;
    }

    act(Act::Heal);
    world.faults.switch(false);
    faults::heal(&world);
    let bound = world.clock.now() + judges::live::BOUND;
    while !all_done() && world.clock.now() < bound {
        world.clock.sleep(LOOK).await;
    }

    act(Act::Check);
    world.kill(auditor);
    if something_may_land(&world) {
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
    let model = judge(plan, &world, &operations, &replicas, sound_from, &mut evaluated, &mut findings);
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
    let counters = count(&world, &operations, evaluated);
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

/// Whether some commit was left to its fate: it may land until its read version has left the window.
/// Not so after 1021, which is told only once the outcome is decided.
fn something_may_land(world: &World) -> bool {
    world.history.lock().attempts.iter().any(|attempt| match attempt {
        // Its client died before it could record it.
        None => true,
        Some(attempt) => match attempt.told {
            Told::Nothing => attempt.commit_sent.is_some(),
            Told::Failed(error) => error.leaves_commit_unknown() && error != Error::COMMIT_UNKNOWN_RESULT,
            Told::ReadOnly | Told::Committed { .. } => false,
        },
    })
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
            // Boxed: a client is large, and the runtime moves what it starts over the stack several times.
            Box::pin(live(world, node, controller, job.clone()))
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
            audit(world, node, db, workload, audits).await;
        }
    })
}

/// Audits the cluster again and again, until an invariant is broken.
async fn audit<W: Workload>(
    world: Arc<World>,
    node: NodeId,
    db: SimDatabase,
    workload: W,
    audits: Arc<Mutex<Audits>>,
) {
    // An auditor that cannot read gives up on this audit, not on its work.
    if db.set_option(DatabaseOption::TransactionRetryLimit(20)).is_err() {
        return;
    }
    while audits.lock().broken.is_none() {
        world.clock.sleep(AUDIT_PAUSE).await;
        let Ok(tx) = db.create_transaction() else { return };
        let verdict = loop {
            match AssertUnwindSafe(workload.audit::<SimDatabase>(&tx)).catch_unwind().await {
                Ok(Ok(verdict)) => break Some(verdict),
                Err(panic) => break Some(Err(format!("the audit panicked: {}", panics::words(&*panic)))),
                Ok(Err(error)) => {
                    if tx.on_error(error).await.is_err() {
                        break None;
                    }
                }
            }
        };
        let Some(verdict) = verdict else { continue };
        let version = tx.get_read_version().await.unwrap_or(-1);
        world.event(node, Kind::Audit, version as u64, u64::from(verdict.is_err()));
        let mut audits = audits.lock();
        audits.evaluated += 1;
        audits.broken = verdict.err().map(|why| format!("at version {version}: {why}"));
    }
}

/// Lets the judges read the history. Gives the final model if the workload's model agreed.
fn judge<W: Workload>(
    plan: &Plan<W>,
    world: &World,
    operations: &[Vec<Operation<W::Answer>>],
    replicas: &[Replica],
    sound_from: Version,
    audited: &mut u64,
    findings: &mut Vec<Finding>,
) -> Option<W::Model> {
    let history = world.history.lock();
    let truth = Truth::of(&history);
    let evidence = Evidence { history: &history, truth: &truth, replicas };
    for judge in judges::CLUSTER {
        if let Err(why) = (judge.judge)(&evidence) {
            findings.push(Finding::harness(judge.name, why));
        }
    }
    let (workload, plan) = (&plan.configuration, &plan.operations);
    let model = caught(|| judges::model::judge(workload, plan, operations, &history, &truth), findings);
    let conflicts = caught(|| judges::conflict_free::judge(workload, plan, &history, &truth), findings);
    findings.extend(conflicts.and_then(Result::err).map(|why| Finding::layer("conflict-free", why)));
    let audits = caught(|| judges::audits::judge(workload, &truth, sound_from), findings);
    if let Some((evaluated, audits)) = audits {
        *audited += evaluated;
        findings.extend(audits.err().map(|why| Finding::layer("audit", why)));
    }
    match model? {
        Ok(model) => Some(model),
        Err(why) => {
            findings.push(Finding::layer("model", why));
            None
        }
    }
}

/// What the workload's own judging says; a panic in it is the workload's, not the harness's.
fn caught<T>(judge: impl FnOnce() -> T, findings: &mut Vec<Finding>) -> Option<T> {
    match std::panic::catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judged) => Some(judged),
        Err(panic) => {
            findings.push(Finding::layer("panic", panics::words(&*panic)));
            None
        }
    }
}

fn count<A>(world: &World, operations: &[Vec<Operation<A>>], audits: u64) -> Counters {
    let history: &History = &world.history.lock();
    let truth = Truth::of(history);
    let mut counters = Counters {
        operations: operations.iter().map(|o| o.len() as u64).sum(),
        audits,
        // Generation 0 is what the first one recovers from.
        recoveries: history.ended.keys().filter(|generation| **generation > 0).count() as u64,
        faults: world.faults.delivered(),
        ..Counters::default()
    };
    let unknown = |o: &&Operation<A>| matches!(o.outcome, Some(Outcome::Unknown(_)) | None);
    counters.unknown_operations = operations.iter().flatten().filter(unknown).count() as u64;
    counters.committed = truth.entries.iter().map(|e| e.transactions.len() as u64).sum();
    let mut last = None;
    for (i, attempt) in history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        counters.attempts += 1;
        let operation = attempt.operation.map(|op| (attempt.client, op));
        counters.retries += u64::from(operation.is_some() && operation == last);
        last = operation;
        let committed = truth.place(shaketable_sim::history::AttemptId(i as u32)).is_some();
        match (attempt.told, committed) {
            (Told::Failed(Error::NOT_COMMITTED), _) => counters.conflicts += 1,
            (Told::Failed(Error::COMMIT_UNKNOWN_RESULT), true) => counters.unknown_committed += 1,
            (Told::Failed(Error::COMMIT_UNKNOWN_RESULT), false) => counters.unknown_not_committed += 1,
            (Told::Failed(error), true) if error.leaves_commit_unknown() => counters.late_landings += 1,
            (Told::Nothing, true) => counters.late_landings += 1,
            _ => {}
        }
    }
    counters
}
