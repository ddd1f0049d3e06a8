//! A simulated cluster as the testbed of a run.

use super::{
    Participants, RunResult,
    acts::perform,
    audit::audit,
    client::{Client, tasks},
    host::Machine,
    observation::{Observation, Observer, done},
    phase,
    run_history::{Recorded, explain, run_history},
    supervise::supervised,
    testbed::{AUDITOR, Act, Job, Testbed},
    watchdog,
};
use crate::{
    describe::erased::AnyValue,
    describe::workload::Operation,
    judge::panics,
    judge::{self, Replica},
    run::plan::Plan,
    run::pool,
};
use futures::FutureExt;
use parking_lot::Mutex;
use shaketable_sim::{
    chance::{self, Reseed},
    client::SimDatabase,
    cluster::Cluster,
    faults::{self, FaultPlan},
    history::{Attempt, History, Reported},
    ids::{ClientId, NodeId},
    judges::{Early, final_at},
    proto::Version,
    rt::{self, MILLISECOND, Nanos, SECOND},
    trace::{Kind, hash_bytes},
    world::{Class, World},
};
use shaketable_tx::{Db, Error, mutants};
use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// How often a waiting act checks whether it is over, nanoseconds.
const POLL_INTERVAL: Nanos = 10 * MILLISECOND;

/// The node number of the run itself in the event stream.
const SUPERVISOR: NodeId = NodeId(0);

/// What a result has in addition.
#[derive(Clone, Copy)]
enum Keep<'a> {
    Nothing,
    /// The history and every event.
    Trace,
    /// Nothing, but somebody observes it.
    Observed(Observer<'a>),
}

impl Keep<'_> {
    fn of(keep_trace: bool) -> Self {
        if keep_trace { Keep::Trace } else { Keep::Nothing }
    }
}

/// Performs a plan on a simulated cluster. With `keep_trace` the result has the history and every event.
/// Never panics: a panic of the simulated cluster is a finding.
pub fn run(plan: &Plan, keep_trace: bool) -> RunResult {
    run_and_keep(plan, Keep::of(keep_trace), None)
}

/// Like [`run`], with other chance from a moment on.
pub fn run_otherwise(plan: &Plan, keep_trace: bool, chance: Reseed) -> RunResult {
    run_and_keep(plan, Keep::of(keep_trace), Some(chance))
}

/// Like [`run`], and `observer` sees the run at its end.
pub fn observe(plan: &Plan, observer: Observer<'_>) -> RunResult {
    run_and_keep(plan, Keep::Observed(observer), None)
}

fn run_and_keep(plan: &Plan, keep: Keep<'_>, chance: Option<Reseed>) -> RunResult {
    let performed = |forgets: Option<&Forgotten>| {
        let simulated = || {
            let _mutant = mutants::switch(plan.demands.mutant);
            let run = async {
                let testbed = Simulated::start(plan, keep, forgets).await;
                perform(plan, testbed).await
            };
            chance::with(chance.clone(), || rt::simulate(plan.run_seed(), run))
        };
        let name = format!("{} with seed {} (replay {0} {1})", plan.workload, plan.seed);
        match watchdog::watched(name, || pool::alone(|| supervised(simulated))) {
            Ok(result) => result,
            Err(never) => match never {},
        }
    };
    let forgotten = Forgotten::default();
    let mut result = performed(matches!(keep, Keep::Nothing).then_some(&forgotten));
    if forgotten.is_missed(&result) {
        result = performed(None);
    }
    if let Some(history) = &mut result.history {
        explain(history, &result.findings, &plan.configuration);
    }
    result
}

/// How much the history of a run may grow until what was judged is forgotten, bytes, about. No run that is as
/// long as usual has so much.
const KEPT: usize = 32 << 20;

/// Whether the history of a run has forgotten calls, and whether some were not judged before.
#[derive(Default)]
struct Forgotten {
    calls: AtomicBool,
    late: AtomicBool,
}

impl Forgotten {
    /// Whether the run must be performed again, without forgetting anything.
    fn is_missed(&self, result: &RunResult) -> bool {
        self.calls.load(Relaxed) && (self.late.load(Relaxed) || !result.findings.is_empty())
    }
}

struct Simulated<'a> {
    plan: &'a Plan,
    keep: Keep<'a>,
    /// Where it is noted that calls are forgotten; `None` if they are all kept.
    forgets: Option<&'a Forgotten>,
    /// What was judged early, and the size of the history at which more is.
    early: Mutex<(Early, usize)>,
    world: Arc<World>,
    cluster: Cluster,
    /// When faults began to strike.
    hurt_since: Mutex<Nanos>,
    auditor: Mutex<Option<NodeId>>,
    /// The machines of the clients, in their order.
    machines: Mutex<Vec<NodeId>>,
}

impl<'a> Simulated<'a> {
    /// A cluster that has just been started. The setup act begins with it.
    async fn start(plan: &'a Plan, keep: Keep<'a>, forgets: Option<&'a Forgotten>) -> Simulated<'a> {
        let keep_trace = matches!(keep, Keep::Trace);
        let world =
            phase::set_up(|| World::new(plan.run_seed(), plan.cluster.clone(), &plan.faults, keep_trace));
        world.event(SUPERVISOR, Kind::Act, Act::Setup as u64, 0);
        let cluster = phase::set_up_task(Cluster::start(world.clone()).boxed_local()).await;
        Simulated {
            plan,
            keep,
            forgets,
            early: Mutex::new((Early::default(), KEPT)),
            world,
            cluster,
            hurt_since: Mutex::default(),
            auditor: Mutex::default(),
            machines: Mutex::default(),
        }
    }

    /// Lets go of the clients that have left for good.
    fn part_with(&self, participants: &Participants) {
        let machines = self.machines.lock();
        let clients = participants.clients.iter().zip(&*machines);
        let gone =
            clients.filter(|(client, node)| !client.progress.lock().done && self.world.has_left(**node));
        gone.for_each(|(client, _)| client.leave(self.world.clock.now()));
    }

    /// Judges what was read in a long run, and forgets it.
    fn forget(&self) {
        let Some(forgotten) = self.forgets else { return };
        let mut history = self.world.history.lock();
        let mut early = self.early.lock();
        let (early, due) = &mut *early;
        if history.size < *due {
            return;
        }
        forgotten.calls.store(true, Relaxed);
        let logged = self.world.clock.now().saturating_sub(self.window() + SECOND);
        phase::judge(|| {
            let (until, window) = (final_at(&history, logged), self.world.config.window);
            early.advance(&mut history, until, window, |attempt| self.may_go(attempt));
        });
        *due = history.size + KEPT;
    }

    /// Whether no judge of the layer needs the calls of an attempt.
    fn may_go(&self, attempt: &Attempt) -> bool {
        let Plan { configuration, operations, .. } = self.plan;
        let op = |index: u32| operations.get(usize::from(attempt.client.0))?.get(index as usize);
        attempt.reported != Reported::Nothing
            && attempt.operation.and_then(op).is_none_or(|op| configuration.may_overwrite(op))
            && !judge::neighbours::reads_any(attempt)
    }

    /// How long a transaction may take until its commit, or its read, is too old.
    fn window(&self) -> Nanos {
        let config = &self.world.config;
        config.window as u64 * SECOND / config.versions_per_second.max(1) as u64
    }

    /// Adds what only the cluster knows to the result.
    fn complete(
        &self,
        plan: &Plan,
        operations: &[Vec<Operation<AnyValue>>],
        replicas: &[Replica],
        result: &mut RunResult,
    ) {
        let world = &self.world;
        let rows = replicas.iter().flat_map(|replica| &replica.rows);
        let keyspace = rows.fold(0, |hash, (key, value)| hash_bytes(hash_bytes(hash, key), value));
        let keys = replicas.iter().map(|replica| replica.rows.len() as u64).sum();
        world.event(SUPERVISOR, Kind::Keyspace, keyspace, keys);
        // Generation 0 is the state from which the first generation recovers.
        let generations = world.history.lock().ended.keys().filter(|generation| **generation > 0).count();
        result.counters.recoveries = generations as u64;
        result.faults = world.faults.delivered();
        result.decisions = world.faults.decisions();
        result.requests = world.faults.requests();
        result.counters.faults = result.faults.values().sum();
        (result.event_hash, result.events) = world.trace.hash();
        result.virtual_time = world.clock.now();
        result.trace = world.trace.take();
        let machine = |node| world.name(node);
        match self.keep {
            Keep::Nothing => {}
            Keep::Trace => {
                let history = world.history.lock();
                let recorded = Recorded {
                    history: &history,
                    events: &result.trace,
                    ended: result.virtual_time,
                    machine: &machine,
                };
                result.history = Some(Box::new(run_history(plan, operations, &recorded)));
            }
            Keep::Observed(observer) => {
                observer(&Observation { history: &world.history.lock(), done: &done(plan, operations) });
            }
        }
    }
}

impl Testbed for Simulated<'_> {
    type Lost = Infallible;

    fn now(&self) -> Nanos {
        self.world.clock.now()
    }

    fn begin(&self, act: Act) {
        let world = &self.world;
        world.event(SUPERVISOR, Kind::Act, act as u64, 0);
        match act {
            Act::Setup | Act::Hurt | Act::Check => {}
            Act::Heal => {
                world.faults.switch(false);
                faults::heal(world);
                let is_calm = self.plan.faults == FaultPlan::default() && !world.faults.has_other_chance();
                let faulty = (*self.hurt_since.lock(), world.clock.now());
                world.history.lock().faulty = (!is_calm).then_some(faulty);
            }
        }
    }

    async fn undisturbed<T, F>(
        &self,
        client: ClientId,
        doing: &'static str,
        job: impl Fn(Db) -> F + Send + Sync + 'static,
    ) -> Result<Job<T>, Infallible>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let (answer, job) = (Arc::new(Mutex::new(None)), Arc::new(job));
        let (slot, controller) = (answer.clone(), self.cluster.controller());
        self.world.add_machine(Class::Observer, doing, move |world, node| {
            let (slot, job) = (slot.clone(), job.clone());
            async move {
                let db = SimDatabase::new(world, node, client, controller);
                let job = AssertUnwindSafe(job(Db::new(db)));
                *slot.lock() = Some(match job.catch_unwind().await {
                    Ok(Ok(done)) => Job::Done(done),
                    Ok(Err(error)) => Job::Failed(error),
                    Err(panic) => Job::Panicked(panics::caught(&*panic)),
                });
            }
        });
        let bound = self.world.clock.now() + judge::live::BOUND;
        while self.world.clock.now() < bound {
            self.world.clock.sleep(MILLISECOND).await;
            if let Some(done) = answer.lock().take() {
                return Ok(done);
            }
        }
        Ok(Job::TooLong)
    }

    fn latest_commit(&self) -> Version {
        self.world.history.lock().logged.values().map(|e| e.version).max().unwrap_or(0)
    }

    fn start(&self, participants: &Participants) -> Result<(), Infallible> {
        let controller = self.cluster.controller();
        for process in participants.clients.chunks(participants.tasks) {
            let (name, clients) = (format!("client-{}", process[0].number), process.to_vec());
            let node = self.world.add_machine(Class::Client, &name, move |world, node| {
                let clients = clients.clone();
                async move {
                    // Created on the machine, so that its death ends the tasks of the databases.
                    let host = |client: Arc<Client>| {
                        let id = ClientId(client.number as u16);
                        let db = SimDatabase::new(world.clone(), node, id, controller);
                        (Machine::new(world.clone(), node, db), client)
                    };
                    let mut tasks = tasks(clients.into_iter().map(host).collect()).await;
                    let last = tasks.pop();
                    tasks.into_iter().for_each(rt::spawn);
                    if let Some(last) = last {
                        last.await;
                    }
                }
            });
            self.machines.lock().extend(process.iter().map(|_| node));
        }
        let Participants { workload, scale, audits, .. } = participants;
        let (workload, scale, audits) = (workload.clone(), *scale, audits.clone());
        let auditor = self.world.add_machine(Class::Auditor, "auditor", move |world, node| {
            let (workload, audits) = (workload.clone(), audits.clone());
            async move {
                let db = SimDatabase::new(world.clone(), node, AUDITOR, controller);
                audit(Machine::new(world, node, db), workload, scale, audits).await;
            }
        });
        *self.auditor.lock() = Some(auditor);
        Ok(())
    }

    async fn fill(&self, participants: &Participants, duration: Nanos) -> Result<(), Infallible> {
        for _ in 0..duration.div_ceil(POLL_INTERVAL) {
            if participants.are_filled() {
                break;
            }
            self.world.clock.sleep(POLL_INTERVAL).await;
        }
        self.world.faults.switch(true);
        faults::begin(&self.world, &self.plan.faults);
        *self.hurt_since.lock() = self.world.clock.now();
        Ok(())
    }

    async fn wait(&self, participants: &Participants, duration: Nanos) -> Result<(), Infallible> {
        for _ in 0..duration.div_ceil(POLL_INTERVAL) {
            self.part_with(participants);
            self.forget();
            if participants.are_done() {
                break;
            }
            self.world.clock.sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn bound(&self) -> Nanos {
        judge::live::BOUND
    }

    async fn quiesce(&self, late: bool) -> Result<(), Infallible> {
        let auditor = self.auditor.lock().take();
        // Clients that are done have no transaction in progress.
        let clients = if late { self.world.machines(Class::Client) } else { Vec::new() };
        clients.into_iter().chain(auditor).for_each(|node| self.world.kill(node));
        let may_land = self.world.history.lock().commits_may_land();
        if may_land {
            self.world.clock.sleep(self.window() + SECOND).await;
        }
        Ok(())
    }

    async fn final_state(&self) -> Result<Result<Vec<Replica>, String>, Infallible> {
        let settled = self.world.clock.timeout(judge::live::BOUND, self.cluster.settle()).await;
        Ok(settled
            .map(|()| self.cluster.final_state())
            .ok_or_else(|| "the storage servers do not catch up on a healed cluster".to_owned()))
    }

    fn history<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(&self.world.history.lock())
    }

    fn early(&self) -> Early {
        if let Some(forgotten) = self.forgets {
            forgotten.late.store(self.world.history.lock().late > 0, Relaxed);
        }
        std::mem::take(&mut self.early.lock().0)
    }

    async fn close(
        self,
        plan: &Plan,
        operations: &[Vec<Operation<AnyValue>>],
        replicas: &[Replica],
        mut result: RunResult,
    ) -> RunResult {
        phase::tear_down(|| self.complete(plan, operations, replicas, &mut result));
        phase::tear_down_task(self.cluster.shutdown().boxed_local()).await;
        result
    }
}
