//! The main task of a cluster that serves a session: runs the cluster, hands messages to its clients,
//! delivers answers, and lets virtual time advance when something waits.

use crate::{
    Action, Call, CallId, Command, DatabaseId, TransactionId,
    client::{self, Job},
    desk::{Demand, Desk},
    inbox::{Inbox, Message},
    journal::{Journal, Script},
    report::{End, Report},
    rest::Rest,
    settings::Settings,
    timeouts::Timeouts,
    verdict::Verdict,
    wall::Pace,
    watchdog::Pulse,
    weather,
};
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use parking_lot::Mutex;
use shaketable_sim::{
    client::{ReadVersions, SimDatabase},
    cluster::Cluster,
    config::ClusterConfig,
    faults::Family,
    ids::{ClientId, NodeId},
    rt::{self, Alarm, MILLISECOND, Nanos},
    world::{Class, World},
};
use shaketable_tx::Error;
use std::{collections::BTreeMap, future::poll_fn, sync::Arc, task::Poll, time::Duration};

/// How much virtual time passes at most before messages that arrive meanwhile are taken.
const TICK: Nanos = MILLISECOND / 5;

/// How often it is looked whether a program sleeps that has timeouts and asks for nothing.
const NAP: Duration = Duration::from_millis(2);

/// How long such a program must be seen asleep until the time that it sleeps passes in the cluster. For
/// programs in other processes, which cannot be seen: how long they must be silent.
const ASLEEP: Duration = Duration::from_millis(20);
const SILENT: Duration = Duration::from_millis(100);

/// The number of steps after which tasks that have ended are forgotten.
const STEPS_BETWEEN_SWEEPS: u64 = 1 << 16;

/// Serves the inbox until it is stopped, and reports. A script fills the inbox, if there is one. `is_shared`
/// if the programs are other processes.
pub async fn serve(
    inbox: Arc<Inbox>,
    desk: Arc<Desk>,
    pulse: Arc<Pulse>,
    settings: Settings,
    script: Option<Script>,
    is_shared: bool,
) -> Report {
    let plan = weather::plan(&settings);
    let mut cluster = ClusterConfig::draw(settings.seed, &[]);
    settings.topology.apply(&mut cluster);
    cluster.cluster_bug = settings.bug;
    let world = World::new(settings.seed, cluster, &plan, settings.keeps_events);
    world.history.lock().forgets_unsent = true;
    let cluster = Cluster::start(world.clone()).await;
    weather::begin(&world, settings.clone(), plan);
    let mut engine = Engine {
        inbox,
        desk,
        pulse,
        journal: settings.journal.as_ref().map(|path| Journal::create(path, &settings)),
        script,
        world: world.clone(),
        verdict: Verdict::new(settings.memory),
        cluster,
        clients: BTreeMap::new(),
        stamps: Stamps::default(),
        timeouts: Timeouts::default(),
        sleepers: if is_shared { None } else { Rest::new() },
        rest: None,
        is_rested: false,
        is_restless: false,
        steps: 0,
    };
    engine.run().await;
    let end = End::of(&world, engine.is_restless);
    engine.desk.close(Error::OPERATION_CANCELLED);
    // What is left to do takes long after a long run, and ends.
    engine.pulse.rest();
    let (tally, objections) = engine.verdict.end(&world, &engine.cluster).await;
    let report = Report::of(&settings, &world.history.lock(), end, tally, objections);
    engine.cluster.shutdown().await;
    report
}

struct Engine {
    inbox: Arc<Inbox>,
    desk: Arc<Desk>,
    pulse: Arc<Pulse>,
    /// Keeps what the program asks, if the settings want it.
    journal: Option<Journal>,
    /// What is asked, if the run is one that is performed again.
    script: Option<Script>,
    world: Arc<World>,
    verdict: Verdict,
    cluster: Cluster,
    clients: BTreeMap<DatabaseId, Client>,
    stamps: Stamps,
    timeouts: Timeouts,
    /// Looks whether the program sleeps; none for programs that are other processes.
    sleepers: Option<Rest>,
    /// Looks whether the program rests, once it is called back.
    rest: Option<Rest>,
    /// Whether the program has rested since it was given an answer and since it asked for something.
    is_rested: bool,
    /// Whether it cannot be told when the program rests.
    is_restless: bool,
    /// The answers that were given, and how often virtual time has advanced.
    steps: u64,
}

/// A client of the cluster.
struct Client {
    node: NodeId,
    jobs: UnboundedSender<Job>,
    /// What its machine is to take when it starts.
    next: Arc<Mutex<Option<Start>>>,
}

/// What a client's machine starts with.
struct Start {
    jobs: UnboundedReceiver<Job>,
    /// Shared by the databases of its process.
    versions: ReadVersions,
}

/// The versionstamps that were asked for before the commit of their transaction. Whoever waits for one waits
/// for nothing until then.
#[derive(Default)]
struct Stamps(BTreeMap<(DatabaseId, TransactionId), Vec<CallId>>);

impl Stamps {
    /// A call was made.
    fn see(&mut self, desk: &Desk, of: (DatabaseId, TransactionId), id: CallId, call: &Call) {
        match call {
            Call::GetVersionstamp => self.0.entry(of).or_default().push(id),
            Call::Commit | Call::OnError(_) => self.decide(desk, of),
            _ => {}
        }
    }

    /// What ends a transaction was asked for: its versionstamps are about to be known, or to fail.
    fn decide(&mut self, desk: &Desk, of: (DatabaseId, TransactionId)) {
        self.0.remove(&of).unwrap_or_default().into_iter().for_each(|id| desk.hasten(id));
    }

    /// A client has died.
    fn forget(&mut self, database: DatabaseId) {
        self.0.retain(|(of, _), _| *of != database);
    }
}

impl Engine {
    async fn run(&mut self) {
        let (mut pace, mut sleep) = (None, None);
        self.follow_script();
        while !self.inbox.is_stopped() {
            self.pulse.beat();
            self.journal.iter_mut().for_each(Journal::flush);
            if self.desk.deliver() {
                self.stepped();
                self.let_rest();
                continue;
            }
            while let Some(message) = self.next() {
                (self.is_rested, sleep) = (false, None);
                self.take(message);
            }
            match self.desk.demand() {
                // A script goes on only with what is waited for, and with time that followed the wall clock.
                Demand::Nothing if self.script.is_some() => {
                    pace = None;
                    self.follow().await;
                }
                Demand::Nothing if self.timeouts.is_any_after(self.now()) => {
                    pace = None;
                    self.sleep(&mut sleep).await;
                }
                Demand::Nothing => {
                    pace = None;
                    self.journal.iter_mut().for_each(Journal::flush);
                    // Blocks the thread: neither other tasks nor time proceed.
                    self.pulse.resting(|| self.inbox.wait_for_work());
                }
                _ if !self.is_rested => self.let_rest(),
                Demand::Calls => {
                    pace = None;
                    self.advance(TICK).await;
                }
                Demand::Patience => match pace {
                    Some(pace) => self.keep(&pace).await,
                    None => {
                        // What needs no time is answered at once, whatever the wall clock shows.
                        self.advance(TICK).await;
                        pace = Some(Pace::start(self.now()));
                    }
                },
            }
        }
        self.journal.iter_mut().for_each(Journal::stopped);
    }

    /// The next message, if one is there.
    fn next(&mut self) -> Option<Message> {
        let message = self.inbox.pop()?;
        self.journal.iter_mut().for_each(|journal| journal.asked(&message));
        Some(message)
    }

    /// An answer was given, or virtual time has advanced.
    fn stepped(&mut self) {
        self.journal.iter_mut().for_each(Journal::stepped);
        self.script.iter_mut().for_each(Script::stepped);
        self.pulse.resting(|| self.verdict.keep_up(&self.world));
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_SWEEPS) {
            rt::forget_ended_tasks();
        }
        self.follow_script();
    }

    fn follow_script(&mut self) {
        self.script.iter_mut().for_each(|script| script.ask(&self.inbox));
    }

    /// Waits until the program rests, if it is called back, and takes what it has asked for until then.
    fn let_rest(&mut self) {
        self.is_rested = false;
        while !self.is_rested && !self.inbox.is_stopped() {
            let inbox = &self.inbox;
            if let Some(rest) = &mut self.rest
                && !self.pulse.resting(|| rest.wait(|| inbox.is_stopped()))
            {
                self.rest = None;
                self.is_restless = true;
            }
            self.is_rested = true;
            while let Some(message) = self.next() {
                // Calls and commands wake nobody, but a call that is cancelled here ends here.
                self.is_rested &= !matches!(message, Message::Cancel(_));
                self.take(message);
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.world.clock.now())
    }

    /// Lets virtual time advance until a call has ended, at most for `duration`.
    async fn advance(&mut self, duration: Nanos) {
        let clock = &self.world.clock;
        let (until, mut alarm) = (clock.now() + duration, Alarm::default());
        let ended = poll_fn(|cx| {
            self.pulse.beat();
            match self.desk.has_ended(cx.waker()) || alarm.poll(clock, until, cx) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        ended.await;
        self.stepped();
    }

    /// The program asks for nothing, and has timeouts: the time that it sleeps is the cluster's too. The time
    /// that it computes is not, so that a program that does not sleep finds the same times in every run.
    async fn sleep(&mut self, since: &mut Option<Pace>) {
        if self.sleepers.as_mut().is_some_and(|threads| !threads.is_asleep()) {
            *since = None;
            return self.wait(NAP);
        }
        let least = if self.sleepers.is_some() { ASLEEP } else { SILENT };
        let pace = *since.get_or_insert_with(|| Pace::start(self.now()));
        let behind = pace.behind(self.now());
        match pace.elapsed() < least || behind.is_zero() {
            true => self.wait(NAP),
            false => self.catch_up(behind).await,
        }
    }

    /// Advances virtual time to where the wall clock is, or waits for the wall clock.
    async fn keep(&mut self, pace: &Pace) {
        if self.script.is_some() {
            return self.follow().await;
        }
        let (behind, tick) = (pace.behind(self.now()), Duration::from_nanos(TICK));
        match behind < tick {
            true => self.wait(tick),
            false => self.catch_up(behind).await,
        }
    }

    /// Waits for the program, at most for `duration` of the wall clock.
    fn wait(&mut self, duration: Duration) {
        self.journal.iter_mut().for_each(Journal::flush);
        self.pulse.resting(|| self.inbox.wait(Some(duration)));
    }

    /// Lets virtual time follow the wall clock, a millisecond at most.
    async fn catch_up(&mut self, behind: Duration) {
        let nanos = Nanos::try_from(behind.as_nanos()).unwrap_or(Nanos::MAX).min(MILLISECOND);
        self.journal.iter_mut().for_each(|journal| journal.follows(nanos));
        self.advance(nanos).await;
    }

    /// Lets virtual time advance as it followed the wall clock in the run that the script repeats; at its
    /// end, the run ends.
    async fn follow(&mut self) {
        match self.script.as_mut().and_then(Script::follows) {
            Some(nanos) => self.advance(nanos).await,
            None => self.inbox.stop(),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Open(id, versions) => self.open(id, versions),
            Message::Command(id, command) => {
                self.timeouts.see(id, &command, self.now());
                if let Command::Transaction(tx, Action::Reset | Action::Cancel | Action::Destroy) = command {
                    self.stamps.decide(&self.desk, (id, tx));
                }
                self.give(id, Job::Command(command));
            }
            Message::Call { id, database, transaction, call, completion } => {
                self.desk.add(id, call.is_patient(), completion);
                self.stamps.see(&self.desk, (database, transaction), id, &call);
                self.give(database, Job::Call(id, transaction, call));
            }
            Message::Want(id) => self.desk.want(id),
            Message::Expect(id) => {
                if self.rest.is_none() && !self.is_restless {
                    self.rest = Rest::new();
                    self.is_restless = self.rest.is_none();
                }
                self.desk.want(id);
            }
            Message::Cancel(id) => self.desk.cancel(id),
            Message::Kill(databases, calls) => self.kill(&databases, &calls),
        }
    }

    fn give(&self, database: DatabaseId, job: Job) {
        if let Some(client) = self.clients.get(&database) {
            // A client that is dead is given nothing.
            let _ = client.jobs.unbounded_send(job);
        }
    }

    /// Adds a client to the cluster, or starts one again that died.
    fn open(&mut self, id: DatabaseId, versions: ReadVersions) {
        let (jobs, receiver) = mpsc::unbounded();
        let start = Some(Start { jobs: receiver, versions });
        if let Some(dead) = self.clients.get_mut(&id) {
            *dead.next.lock() = start;
            dead.jobs = jobs;
            self.world.start(dead.node);
            return;
        }
        let next = Arc::new(Mutex::new(start));
        let node = self.add_machine(id, next.clone());
        self.clients.insert(id, Client { node, jobs, next });
    }

    fn add_machine(&self, id: DatabaseId, next: Arc<Mutex<Option<Start>>>) -> NodeId {
        let (desk, controller) = (self.desk.clone(), self.cluster.controller());
        self.world.add_machine(Class::Client, &format!("client-{}", id.0), move |world, node| {
            let (start, desk) = (next.lock().take(), desk.clone());
            async move {
                // Faults kill no client: each start has been given jobs.
                let Some(Start { jobs, versions }) = start else { return };
                let clock = world.clock.clone();
                let db = SimDatabase::of_process(world, node, ClientId(id.0), controller, versions);
                client::serve(db, jobs, desk, clock).await;
            }
        })
    }

    /// Clients die. It counts as a fault if something was under way.
    fn kill(&mut self, databases: &[DatabaseId], calls: &[CallId]) {
        for client in databases.iter().filter_map(|id| self.clients.get(id)) {
            self.world.kill(client.node);
        }
        if calls.iter().any(|call| self.desk.expects(*call)) {
            self.world.faults.count(Family::ClientDeath);
        }
        calls.iter().for_each(|call| self.desk.cancel(*call));
        for id in databases {
            self.stamps.forget(*id);
            self.timeouts.forget(*id);
        }
    }
}
