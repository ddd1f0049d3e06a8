//! The main task of the clusters that serve a session. It runs them, forwards messages to their clients,
//! delivers answers, and advances virtual time while something waits for an answer.

use crate::{
    Action, Call, CallId, ClusterName, Command, DatabaseId, TransactionId,
    client::{self, Job},
    clusters::{Clusters, ProcessVersions, Running},
    inbox::{Inbox, Message},
    journal::{Journal, Script},
    pending::{Demand, PendingCalls},
    quiescence::{Caller, QuiescenceDetector},
    report::{Recording, Report},
    settings::Settings,
    sleepers::Sleepers,
    threads::ThreadNumber,
    timeouts::{Of, Timeouts},
    turns::Turns,
    wall::Pace,
    watchdog::Heartbeat,
};
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use parking_lot::Mutex;
use shaketable_sim::{
    client::{ReadVersions, SimDatabase},
    faults::Family,
    ids::{ClientId, NodeId},
    rt::{self, Alarm, MILLISECOND, Nanos},
    seed::Stream,
    world::{Class, World},
};
use shaketable_tx::Error;
use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

/// How much virtual time passes at most before messages that arrive meanwhile are taken. The longer nothing
/// has arrived and no call has ended, the more it is, because a program that blocks sends nothing.
const TICK: Nanos = MILLISECOND / 5;
const LONGEST_TICK: Nanos = 16 * TICK;

/// How often a program that has timeouts and asks for nothing is checked for being asleep.
const SLEEP_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// How long such a program must be seen asleep before virtual time follows the wall clock. For programs in
/// other processes, whose threads cannot be seen: how long they must have sent nothing.
const ASLEEP: Duration = Duration::from_millis(20);
const SILENT: Duration = Duration::from_millis(100);

/// After how many answers without callbacks of several threads a program is taken for one that calls from one
/// thread at a time. Others must not be, whenever all but one of their threads happen to be busy.
const ANSWERS_ALONE: u32 = 256;

/// The number of steps after which tasks that have ended are forgotten.
const STEPS_BETWEEN_SWEEPS: u64 = 1 << 16;

/// What a run shares with its host, and what it depends on.
pub struct Service {
    /// What the program asks.
    pub inbox: Arc<Inbox>,
    /// The calls in progress.
    pub pending: Arc<PendingCalls>,
    /// Whether the run makes progress.
    pub heartbeat: Arc<Heartbeat>,
    /// Where it stores what the program may know of virtual time: nanoseconds since the start of the cluster.
    pub shown: Arc<AtomicU64>,
    /// What determines the run.
    pub settings: Settings,
    /// What fills the inbox, if this is a replay.
    pub script: Option<Script>,
    /// Whether the programs are other processes.
    pub is_shared: bool,
    /// Lets the threads of the program run one at a time, if the settings ask for it.
    pub turns: Option<Arc<Turns>>,
}

/// Serves the inbox until it is stopped, and reports.
pub async fn serve(service: Service) -> (Report, Option<Recording>) {
    let Service { inbox, pending, heartbeat, shown, settings, script, is_shared, turns } = service;
    let clusters = Clusters::start(&settings).await;
    let mut engine = Engine {
        inbox,
        pending,
        heartbeat,
        origin: clusters.clock().now(),
        clusters,
        journal: settings.journal.as_ref().map(|path| Journal::create(path, &settings)),
        script,
        clients: BTreeMap::new(),
        homes: BTreeMap::new(),
        stamps: Stamps::default(),
        timeouts: Timeouts::default(),
        destroyed: Vec::new(),
        shown,
        sleepers: Sleepers::default(),
        threads: if is_shared { None } else { QuiescenceDetector::new() },
        turns: turns.map(|turns| (turns, settings.seed.stream("turns"))),
        is_called_back: false,
        alone: 0,
        is_quiescent: false,
        is_quiescence_unknown: false,
        steps: 0,
        tick: TICK,
    };
    engine.run().await;
    let is_overrun = engine.turns.as_ref().is_some_and(|(turns, _)| {
        turns.stop();
        turns.is_overrun()
    });
    let ends = engine.clusters.ends(engine.is_quiescence_unknown || is_overrun);
    engine.pending.close(Error::OPERATION_CANCELLED);
    // Judging a long run takes long, but ends: the watchdog must not report it.
    engine.heartbeat.suspend();
    let (report, recording) = engine.clusters.end(ends).await;
    let errors = engine.pending.errors();
    (report, settings.keeps_history.then_some(Recording { errors, ..recording }))
}

struct Engine {
    inbox: Arc<Inbox>,
    pending: Arc<PendingCalls>,
    heartbeat: Arc<Heartbeat>,
    /// Records what the program asks, if the settings ask for it.
    journal: Option<Journal>,
    /// The recorded requests, if this run is a replay.
    script: Option<Script>,
    clusters: Clusters,
    /// The client of each database handle, by the place of its cluster.
    clients: BTreeMap<(usize, DatabaseId), Client>,
    /// The place of the cluster of each database handle.
    homes: BTreeMap<DatabaseId, usize>,
    stamps: Stamps,
    timeouts: Timeouts,
    /// Transactions that are destroyed with the next request.
    destroyed: Vec<Of>,
    /// The virtual time at which the cluster had started.
    origin: Nanos,
    /// The virtual time since then.
    shown: Arc<AtomicU64>,
    /// The threads of the program that wait for a virtual time.
    sleepers: Sleepers,
    /// Detects whether the program sleeps; none for programs that are other processes, and on systems that
    /// do not show it.
    threads: Option<QuiescenceDetector>,
    /// Lets the threads of the program run one at a time, if the settings ask for it, and chooses the next.
    turns: Option<(Arc<Turns>, Stream)>,
    /// Whether a callback has waited for an answer, or a thread for virtual time: the program must then be
    /// quiescent before virtual time advances.
    is_called_back: bool,
    /// The number of answers since callbacks of several threads waited at once, up to [`ANSWERS_ALONE`].
    alone: u32,
    /// Whether the program has become quiescent since its last answer and its last request.
    is_quiescent: bool,
    /// Whether quiescence cannot be detected.
    is_quiescence_unknown: bool,
    /// The number of answers that were delivered and of advances of virtual time.
    steps: u64,
    /// How far virtual time advances next.
    tick: Nanos,
}

/// A client of a cluster.
struct Client {
    world: Arc<World>,
    node: NodeId,
    jobs: UnboundedSender<Job>,
    /// What its machine takes when it starts.
    next: Arc<Mutex<Option<Start>>>,
}

/// What a client's machine starts with.
struct Start {
    jobs: UnboundedReceiver<Job>,
    /// Shared by the databases of its process and of its cluster.
    versions: ReadVersions,
}

/// The versionstamps that were requested before the commit of their transaction. Such a call is open-ended:
/// it cannot end before the program commits.
#[derive(Default)]
struct Stamps(BTreeMap<(DatabaseId, TransactionId), Vec<CallId>>);

impl Stamps {
    /// A call was made.
    fn see(&mut self, pending: &PendingCalls, of: (DatabaseId, TransactionId), id: CallId, call: &Call) {
        match call {
            Call::GetVersionstamp => self.0.entry(of).or_default().push(id),
            Call::Commit | Call::OnError(_) => self.decide(pending, of),
            _ => {}
        }
    }

    /// The transaction is about to end: its versionstamps become known, or fail.
    fn decide(&mut self, pending: &PendingCalls, of: (DatabaseId, TransactionId)) {
        self.0.remove(&of).unwrap_or_default().into_iter().for_each(|id| pending.make_urgent(id));
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
            self.heartbeat.beat();
            self.journal.iter_mut().for_each(Journal::flush);
            if self.pending.deliver() || self.wake_sleeper() {
                (self.alone, self.tick) = ((self.alone + 1).min(ANSWERS_ALONE), TICK);
                pace = None;
                self.stepped();
                self.await_quiescence();
                continue;
            }
            while let Some(message) = self.next() {
                (self.is_quiescent, sleep) = (false, None);
                self.take(message);
            }
            let demand = match self.sleepers.next() {
                Some(_) => Demand::Calls,
                None => self.pending.demand(),
            };
            let turns = self.turns.as_ref().map(|(turns, _)| turns);
            let asks_in_vain = turns.is_some_and(|turns| turns.is_asked_in_vain());
            if asks_in_vain && demand == Demand::Nothing {
                if !self.is_quiescent {
                    self.await_quiescence();
                    continue;
                }
                // There will be no step before the program asks for something.
                turns.iter().for_each(|turns| turns.stepped());
            }
            if self.turns.as_ref().is_some_and(|(turns, _)| turns.is_waited_for()) {
                self.await_quiescence();
                continue;
            }
            match demand {
                // A script continues only after an answer that is waited for, or after a recorded advance of
                // time that followed the wall clock.
                Demand::Nothing if self.script.is_some() => self.follow().await,
                Demand::Nothing => {
                    if self.timeouts.is_any_after(self.now()) {
                        self.sleep(&mut sleep).await;
                    } else {
                        self.journal.iter_mut().for_each(Journal::flush);
                        // Blocks the thread: neither other tasks nor time proceed.
                        self.heartbeat.suspended(|| self.inbox.wait_for_work());
                    }
                    // The wall clock is not caught up with, but virtual time remains tied to it if it was: a
                    // replay, which has all requests between two steps at once, does not see that for a while
                    // nothing waited.
                    pace = pace.map(|_| Pace::start(self.now()));
                }
                _ if !self.is_quiescent => self.await_quiescence(),
                Demand::Calls => {
                    pace = None;
                    let tick = self.tick;
                    self.tick = LONGEST_TICK.min(2 * tick);
                    self.advance(tick).await;
                }
                Demand::OpenEnded => match pace {
                    // Who asks again and again does not sleep: time need not wait for the wall clock. A
                    // replay knows from the journal how far it went.
                    Some(_) if asks_in_vain => {
                        self.catch_up(Duration::from_nanos(TICK)).await;
                        pace = Some(Pace::start(self.now()));
                    }
                    Some(pace) => self.keep(&pace).await,
                    None => {
                        // Calls that need almost no virtual time are answered at once, before virtual time
                        // is tied to the wall clock.
                        self.advance(TICK).await;
                        pace = Some(Pace::start(self.now()));
                    }
                },
            }
        }
        // What was asked before the end belongs to the run, however late it was taken.
        while let Some(message) = self.next() {
            self.take(message);
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
        self.turns.iter().for_each(|(turns, _)| turns.stepped());
        self.heartbeat.suspended(|| self.clusters.keep_up());
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_SWEEPS) {
            rt::forget_ended_tasks();
        }
        self.follow_script();
    }

    fn follow_script(&mut self) {
        self.script.iter_mut().for_each(|script| script.ask(&self.inbox));
    }

    /// If callbacks wait for answers, or threads run one at a time: waits until the program is quiescent, and
    /// takes its messages until then. A thread that waits for its turn is given it.
    fn await_quiescence(&mut self) {
        self.is_quiescent = false;
        while !self.is_quiescent && !self.inbox.is_stopped() {
            let inbox = &self.inbox;
            if (self.is_called_back || self.turns.is_some())
                && !self.is_quiescence_unknown
                && let Some(threads) = &mut self.threads
            {
                let call_at_once = self.turns.is_none() && self.alone < ANSWERS_ALONE;
                self.is_quiescence_unknown =
                    !self.heartbeat.suspended(|| threads.wait(call_at_once, || inbox.is_stopped()));
            }
            self.is_quiescent = true;
            while let Some(message) = self.next() {
                // Calls and commands do not wake the program, but a cancellation completes its call here.
                self.is_quiescent &= !matches!(message, Message::Cancel(_));
                self.take(message);
            }
            if let (true, Some((turns, choice))) = (self.is_quiescent, &mut self.turns) {
                self.is_quiescent = !turns.give(choice);
            }
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.clusters.clock().now())
    }

    /// Lets virtual time advance until a call has ended, at most for `duration`.
    async fn advance(&mut self, duration: Nanos) {
        let clock = self.clusters.clock();
        let until = (clock.now() + duration).min(self.sleepers.next().unwrap_or(Nanos::MAX));
        let mut alarm = Alarm::default();
        let ended = poll_fn(|cx| {
            self.heartbeat.beat();
            match self.pending.has_ended(cx.waker()) || alarm.poll(clock, until, cx) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        ended.await;
        self.show(clock.now().min(self.sleepers.next().unwrap_or(Nanos::MAX)));
        self.stepped();
    }

    /// The program asks for nothing, and has timeouts: while it sleeps, virtual time follows the wall clock.
    /// While it computes, virtual time stands still, so that a program that does not sleep sees the same
    /// times in every run.
    async fn sleep(&mut self, since: &mut Option<Pace>) {
        if self.threads.as_mut().is_some_and(|threads| !threads.is_asleep()) {
            *since = None;
            return self.wait(SLEEP_CHECK_INTERVAL);
        }
        let least = if self.threads.is_some() { ASLEEP } else { SILENT };
        let pace = *since.get_or_insert_with(|| Pace::start(self.now()));
        let behind = pace.behind(self.now());
        match pace.elapsed() < least || behind.is_zero() {
            true => self.wait(SLEEP_CHECK_INTERVAL),
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
        self.heartbeat.suspended(|| self.inbox.wait(Some(duration)));
    }

    /// Lets virtual time follow the wall clock, a millisecond at most.
    async fn catch_up(&mut self, behind: Duration) {
        let nanos = Nanos::try_from(behind.as_nanos()).unwrap_or(Nanos::MAX).min(MILLISECOND);
        self.journal.iter_mut().for_each(|journal| journal.follows(nanos));
        self.advance(nanos).await;
    }

    /// Advances virtual time as it followed the wall clock in the recorded run; at the end of the script, the
    /// run ends.
    async fn follow(&mut self) {
        match self.script.as_mut().and_then(Script::follows) {
            Some(nanos) => self.advance(nanos).await,
            None => self.inbox.stop(),
        }
    }

    fn take(&mut self, message: Message) {
        self.clusters.clock().asked();
        if let Some(destroyed) = self.destroyed_alone(&message) {
            self.destroyed.push(destroyed);
            return;
        }
        // That something waits may be said at any instant of the wall clock while the answer is on its way:
        // it must not change how virtual time advances.
        if !matches!(
            message,
            Message::Want(_) | Message::Expect(..) | Message::Turn | Message::Sleep(..) | Message::Wake(_)
        ) {
            self.tick = TICK;
            for (id, tx) in std::mem::take(&mut self.destroyed) {
                self.command(id, Command::Transaction(tx, Action::Destroy), None);
            }
        }
        match message {
            Message::Open(id, cluster, versions) => self.open(id, &cluster, &versions),
            Message::Command(id, command, thread) => self.command(id, command, thread),
            Message::Call { id, database, transaction, call, completion } => {
                self.pending.add(id, (database, transaction), call.is_open_ended(), completion);
                self.stamps.see(&self.pending, (database, transaction), id, &call);
                self.give(database, Job::Call(id, transaction, call));
            }
            Message::Want(id) => self.pending.want(id, None),
            Message::Expect(id, caller) => self.expect(id, caller),
            Message::Cancel(id) => self.pending.cancel(id),
            Message::Turn => {}
            Message::Sleep(id, until, sleeper) => {
                self.watch_threads();
                self.sleepers.add(id, self.origin + until, sleeper);
            }
            Message::Wake(id) => self.sleepers.remove(id),
            Message::Kill(databases, calls) => self.kill(&databases, &calls),
        }
    }

    /// The transaction that a message destroys, if nothing of it is outstanding. A collector of garbage
    /// destroys transactions at any instant of the wall clock, and it must not be seen when: they are
    /// destroyed with the next request.
    fn destroyed_alone(&self, message: &Message) -> Option<Of> {
        let Message::Command(id, Command::Transaction(tx, Action::Destroy), _) = message else { return None };
        Some((*id, *tx)).filter(|of| !self.pending.has_any_of(*of))
    }

    fn command(&mut self, id: DatabaseId, command: Command, thread: Option<ThreadNumber>) {
        self.timeouts.see(id, &command, self.now());
        if let Command::Transaction(tx, Action::Reset | Action::Cancel | Action::Destroy) = command {
            self.stamps.decide(&self.pending, (id, tx));
        }
        self.give(id, Job::Command(command, thread));
    }

    /// Lets the program know that virtual time has advanced.
    fn show(&self, time: Nanos) {
        self.shown.fetch_max(time.saturating_sub(self.origin), Ordering::SeqCst);
    }

    /// Wakes the first thread whose time has come. It sees that time, and not the few nanoseconds by which
    /// the runtime exceeds it.
    fn wake_sleeper(&mut self) -> bool {
        let Some(until) = self.sleepers.next().filter(|until| *until <= self.clusters.clock().now()) else {
            return false;
        };
        self.show(until);
        self.sleepers.wake()
    }

    /// From now on the program must be quiescent before virtual time advances.
    fn watch_threads(&mut self) {
        // A replay knows when it was.
        if self.script.is_none() && !std::mem::replace(&mut self.is_called_back, true) {
            (self.is_quiescence_unknown, self.alone) = (self.threads.is_none(), ANSWERS_ALONE);
            // So far nobody has looked.
            self.is_quiescent = false;
        }
    }

    /// A callback waits for a call.
    fn expect(&mut self, id: CallId, caller: Option<Caller>) {
        self.watch_threads();
        if let (Some(threads), Some(caller)) = (&mut self.threads, caller) {
            threads.see(caller);
        }
        self.pending.want(id, caller);
        if self.pending.callers() > 1 {
            self.alone = 0;
        }
    }

    /// The client of a database handle.
    fn client(&self, database: DatabaseId) -> Option<&Client> {
        self.clients.get(&(*self.homes.get(&database)?, database))
    }

    fn give(&self, database: DatabaseId, job: Job) {
        if let Some(client) = self.client(database) {
            // A dead client has no receiver.
            let _ = client.jobs.unbounded_send(job);
        }
    }

    /// Adds a client to a cluster, or starts one again that died.
    fn open(&mut self, id: DatabaseId, cluster: &ClusterName, versions: &ProcessVersions) {
        let place = self.clusters.place(cluster);
        self.homes.insert(id, place);
        let (jobs, receiver) = mpsc::unbounded();
        let versions = versions.lock().entry(place).or_default().clone();
        let start = Some(Start { jobs: receiver, versions });
        if let Some(dead) = self.clients.get_mut(&(place, id)) {
            *dead.next.lock() = start;
            dead.jobs = jobs;
            // A rest from faults starts all machines that are down, this one with nothing to do.
            dead.world.kill(dead.node);
            dead.world.start(dead.node);
            return;
        }
        let next = Arc::new(Mutex::new(start));
        let (world, node) = self.add_machine(id, self.clusters.at(place), next.clone());
        self.clients.insert((place, id), Client { world, node, jobs, next });
    }

    fn add_machine(
        &self,
        id: DatabaseId,
        home: &Running,
        next: Arc<Mutex<Option<Start>>>,
    ) -> (Arc<World>, NodeId) {
        let (pending, controller) = (self.pending.clone(), home.cluster().controller());
        let run = move |world: Arc<World>, node| {
            let (start, pending) = (next.lock().take(), pending.clone());
            async move {
                // Without jobs it was started by the end of faults, which starts all machines that are down.
                let Some(Start { jobs, versions }) = start else { return };
                let clock = world.clock.clone();
                let db = SimDatabase::of_process(world, node, ClientId(id.0), controller, versions);
                client::serve(db, jobs, pending, clock).await;
            }
        };
        let node = home.world().add_machine(Class::Client, &format!("client-{}", id.0), run);
        (home.world().clone(), node)
    }

    /// Kills clients. It counts as a fault if one of their calls was in progress.
    fn kill(&mut self, databases: &[DatabaseId], calls: &[CallId]) {
        let died: Vec<_> = databases.iter().filter_map(|id| self.client(*id)).collect();
        died.iter().for_each(|client| client.world.kill(client.node));
        if let (Some(client), true) = (died.first(), calls.iter().any(|call| self.pending.expects(*call))) {
            client.world.faults.count(Family::ClientDeath);
        }
        calls.iter().for_each(|call| self.pending.cancel(*call));
        for id in databases {
            self.stamps.forget(*id);
            self.timeouts.forget(*id);
        }
    }
}
