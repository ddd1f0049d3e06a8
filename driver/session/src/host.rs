//! A session whose cluster runs on a thread of this process.

use crate::{
    Call, CallId, ClusterName, Command, Completion, DatabaseId, Session, TransactionId,
    clusters::{self, ProcessVersions},
    engine::{self, Service},
    inbox::{Inbox, Message},
    journal::Script,
    pending::PendingCalls,
    quiescence::Caller,
    report::{self, Recording, Report},
    settings::Settings,
    sleepers::{SleepId, Sleeper},
    threads::ThreadNumbers,
    turns::{Turn, Turns},
    wall,
    watchdog::Heartbeat,
};
use parking_lot::Mutex;
use shaketable_sim::rt::{self, Nanos};
use shaketable_tx::Error;
use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

/// How long a thread that is to sleep waits for the cluster's thread to begin.
const LONGEST_START: Duration = Duration::from_secs(1);

/// The state of a session: numbers, the inbox and the calls in progress.
pub struct Host {
    inbox: Arc<Inbox>,
    pending: Arc<PendingCalls>,
    heartbeat: Arc<Heartbeat>,
    databases: Mutex<Numbers>,
    /// The names of the clusters.
    clusters: Mutex<BTreeSet<ClusterName>>,
    /// The read versions that the databases of this process share.
    versions: ProcessVersions,
    transactions: AtomicU64,
    calls: AtomicU64,
    sleeps: AtomicU64,
    /// Virtual time, as far as the program knows: since the start of the cluster.
    now: Arc<AtomicU64>,
    /// Whether the cluster was asked for something.
    is_asked: AtomicBool,
    /// Whether the cluster's thread was waited for in vain.
    is_late: AtomicBool,
    /// The thread of the cluster, once there is one.
    thread: OnceLock<ThreadId>,
    /// Whether the cluster has ended: no call will be answered.
    is_over: AtomicBool,
    /// Whether its programs are other processes.
    is_shared: AtomicBool,
    /// The threads of the program.
    threads: ThreadNumbers,
    turns: Arc<Turns>,
}

impl Host {
    /// A session without a cluster: what it is given waits for [`run`](Host::run). Fails if the process
    /// cannot open a pipe.
    pub fn new() -> std::io::Result<Host> {
        Ok(Host {
            inbox: Arc::new(Inbox::new()?),
            pending: Arc::default(),
            heartbeat: Arc::default(),
            databases: Mutex::default(),
            clusters: Mutex::default(),
            versions: ProcessVersions::default(),
            transactions: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            now: Arc::default(),
            is_asked: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
            thread: OnceLock::new(),
            is_over: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            threads: ThreadNumbers::default(),
            turns: Arc::default(),
        })
    }

    /// The programs are other processes, so the threads of this one say nothing about them. Must be called
    /// before the first message.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::SeqCst);
    }

    /// Lets the threads of the program run one at a time, until the cluster ends ([`turns`](crate::turns)).
    /// To be called by a thread that may go on to run it.
    pub fn take_turns(&self) {
        self.turns.start();
    }

    /// Whether threads are to run one at a time.
    pub fn takes_turns(&self) -> bool {
        self.turns.are_taken()
    }

    /// Whether the cluster's thread gives threads their turns, and the program has opened a database: before
    /// that, it may not be known what determines the cluster.
    pub fn has_turns(&self) -> bool {
        self.turns.are_given() && self.is_asked.load(Ordering::SeqCst)
    }

    /// Runs a cluster on this thread until [`stop`](Host::stop). It starts with the first message, with the
    /// settings that hold then; `None` if there was none. The error is what the simulator panicked with:
    /// every call ends with 4100.
    pub fn run(&self, settings: impl FnOnce() -> Settings) -> Result<Option<Report>, String> {
        self.turns.begin();
        let _ = self.thread.set(thread::current().id());
        self.heartbeat.suspended(|| self.inbox.wait_for_work());
        // Whether it was stopped before this thread has seen the first message is a matter of luck.
        let report = match self.inbox.is_empty() {
            true => Ok(None),
            false => self.simulate(settings(), None).map(|(report, _)| Some(report)),
        };
        self.is_over.store(true, Ordering::SeqCst);
        self.turns.stop();
        let error = if report.is_ok() { Error::OPERATION_CANCELLED } else { Error::INTERNAL_ERROR };
        self.pending.close(error);
        self.refuse(error);
        report
    }

    fn simulate(
        &self,
        settings: Settings,
        script: Option<Script>,
    ) -> Result<(Report, Option<Recording>), String> {
        let seed = settings.seed;
        let service = Service {
            inbox: self.inbox.clone(),
            pending: self.pending.clone(),
            heartbeat: self.heartbeat.clone(),
            shown: self.now.clone(),
            is_shared: self.is_shared.load(Ordering::SeqCst),
            turns: (script.is_none() && settings.one_at_a_time).then(|| self.turns.clone()),
            settings,
            script,
        };
        let run = || rt::simulate(seed, engine::serve(service));
        catch_unwind(AssertUnwindSafe(run)).map_err(|panic| message(&*panic))
    }

    /// Performs a run again from its [journal](crate::journal), on this thread, and returns the text of its
    /// report; `None` if nothing was asked. Fails if that is no journal, or if the process cannot open a
    /// pipe.
    pub fn replay(journal: Vec<u8>) -> std::io::Result<Option<String>> {
        Ok(Self::perform(journal, false)?.map(|performed| performed.text))
    }

    /// Like [`replay`](Host::replay), with all that is known of the run, and with its history if it is to be
    /// kept.
    pub fn perform(journal: Vec<u8>, keeps_history: bool) -> std::io::Result<Option<Performed>> {
        let Some((settings, script)) = Script::read(journal)? else { return Ok(None) };
        let settings = Settings { keeps_history, ..settings };
        let lack = script.lack();
        let run = Host::new()?.simulate(settings.clone(), Some(script));
        let mut text = match &run {
            Ok((report, _)) => report.to_string(),
            Err(panic) => report::of_panic(&settings, panic),
        };
        if let Some(lack) = &lack {
            text += &format!("{lack}\n");
        }
        Ok(Some(Performed { text, run: run.ok() }))
    }

    /// Ends the calls that the cluster has not taken.
    fn refuse(&self, error: Error) {
        while let Some(message) = self.inbox.pop() {
            if let Message::Call { completion, .. } = message {
                completion(Err(error));
            }
        }
    }

    /// The heartbeat of the cluster's thread: whether it makes progress.
    pub fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    /// The share of its time, from 0 to 1, that the cluster's thread is busy; 0 after the cluster has ended.
    /// It is measured by the wall clock since the last measurement, but over at least one second.
    pub fn busyness(&self) -> f64 {
        match self.is_over.load(Ordering::SeqCst) {
            true => 0.0,
            false => self.inbox.load().share(),
        }
    }

    /// Ends the cluster. Calls whose answers are outstanding end with 1101.
    pub fn stop(&self) {
        self.inbox.stop();
    }

    /// Takes note of the name of a cluster. The error is one line: there are too many, or it is too long.
    pub fn admit(&self, cluster: &ClusterName) -> Result<(), String> {
        let mut names = self.clusters.lock();
        if cluster.0.is_empty() || names.contains(cluster) {
            return Ok(());
        }
        if names.len() == clusters::MOST || cluster.0.len() > clusters::LONGEST_NAME {
            return Err(format!("more than {} clusters, or a name that is too long", clusters::MOST));
        }
        names.insert(cluster.clone());
        Ok(())
    }

    /// Opens a database handle like [`open`](Session::open), unless there are 65,535 already. It belongs to
    /// the process whose databases share `versions`.
    pub fn try_open(&self, cluster: &ClusterName, versions: &ProcessVersions) -> Option<DatabaseId> {
        let id = self.databases.lock().take()?;
        self.push(Message::Open(id, cluster.clone(), versions.clone()));
        Some(id)
    }

    /// The clients behind some database handles die at once, with these calls in progress, which end with
    /// 1101. What they have not committed is gone; a commit that was sent may be there. The handles must not
    /// be used any more.
    pub fn kill(&self, databases: Vec<DatabaseId>, calls: Vec<CallId>) {
        if databases.is_empty() {
            return;
        }
        self.push(Message::Kill(databases.clone(), calls));
        // Only after the message was sent: another program that takes one of the numbers opens it later.
        self.databases.lock().free.extend(databases);
    }

    /// Where virtual time is stored, in nanoseconds since the start of the cluster, whenever the program may
    /// see that it has advanced.
    pub fn now(&self) -> Arc<AtomicU64> {
        self.now.clone()
    }

    /// Wakes `sleeper` at this virtual time since the start of the cluster, or when the cluster ends. `None`
    /// if nothing would: the program has not asked the cluster for anything yet, or it has ended, or this is
    /// its thread. With `in_turn`, this thread waits for its turn first.
    pub fn sleep(&self, until: Nanos, in_turn: bool, sleeper: impl FnOnce() -> Sleeper) -> Option<SleepId> {
        if self.is_here() || !self.is_asked.load(Ordering::SeqCst) || !self.has_begun() {
            return None;
        }
        if in_turn {
            self.wait_for_turn(Turn::Next);
        }
        let id = SleepId(self.sleeps.fetch_add(1, Ordering::SeqCst) + 1);
        self.push(Message::Sleep(id, until, sleeper()));
        Some(id)
    }

    /// Wakes a thread before its time.
    pub fn wake(&self, id: SleepId) {
        self.push(Message::Wake(id));
    }

    /// Whether the cluster runs. It is about to if its thread is about to begin; but this may be the thread
    /// that is to begin it later.
    fn has_begun(&self) -> bool {
        let start = wall::now();
        while self.thread.get().is_none() && !self.is_late.load(Ordering::SeqCst) {
            wall::pause(Duration::from_micros(20));
            if wall::now().saturating_sub(start) > LONGEST_START {
                self.is_late.store(true, Ordering::SeqCst);
            }
        }
        self.thread.get().is_some() && !self.is_over.load(Ordering::SeqCst)
    }

    /// Waits for the cluster's thread to begin, if it is about to: whether the first requests wait for their
    /// turns must not be a matter of luck. If this thread is the one that is to begin it, it waits in vain.
    fn await_turns(&self) {
        if self.turns.are_taken() && !self.turns.are_given() {
            self.has_begun();
        }
    }

    /// Waits for this thread's turn unless it has it: it makes a request that has no answer.
    fn keep_turn(&self) {
        if !self.is_here() {
            self.await_turns();
            self.turns.keep(|| self.push(Message::Turn));
        }
    }

    fn push(&self, message: Message) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.inbox.push(message);
        if self.is_over.load(Ordering::SeqCst) {
            self.refuse(Error::OPERATION_CANCELLED);
        }
    }
}

/// A run that was performed again.
pub struct Performed {
    /// The text of its report.
    pub text: String,
    /// Its report, and its history if it was to be kept; `None` if the simulator panicked.
    pub run: Option<(Report, Option<Recording>)>,
}

/// The numbers of database handles: those of clients that died are given again, for the same machines.
#[derive(Default)]
struct Numbers {
    next: u16,
    free: BTreeSet<DatabaseId>,
}

impl Numbers {
    /// The last number that is given.
    const LAST: DatabaseId = DatabaseId(u16::MAX - 1);

    /// The lowest number that nobody has; none if there is none.
    fn take(&mut self) -> Option<DatabaseId> {
        self.free.pop_first().or_else(|| {
            let id = DatabaseId(self.next);
            self.next = self.next.checked_add(1)?;
            Some(id)
        })
    }
}

/// What a panic said.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl Session for Host {
    /// When all numbers are taken, the last one is shared: nothing says that databases are different clients.
    fn open(&self, cluster: &ClusterName) -> DatabaseId {
        self.wait_for_turn(Turn::Next);
        self.try_open(cluster, &self.versions).unwrap_or(Numbers::LAST)
    }

    fn next_transaction(&self) -> TransactionId {
        self.keep_turn();
        TransactionId(self.transactions.fetch_add(1, Ordering::SeqCst))
    }

    fn command(&self, database: DatabaseId, command: Command) {
        if command == Command::Close {
            // The client's transactions may go on, and it ends with the cluster.
            return;
        }
        self.keep_turn();
        let is_known = matches!(command, Command::Create(_)) && !self.is_shared.load(Ordering::SeqCst);
        let thread = is_known.then(|| self.threads.this());
        self.push(Message::Command(database, command, thread));
    }

    fn call(
        &self,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
        completion: Completion,
    ) -> CallId {
        self.wait_for_turn(Turn::Next);
        let id = CallId(self.calls.fetch_add(1, Ordering::SeqCst));
        self.push(Message::Call { id, database, transaction, call, completion });
        id
    }

    fn want(&self, call: CallId) {
        self.push(Message::Want(call));
    }

    fn expect(&self, call: CallId) {
        self.push(Message::Expect(call, (!self.is_here()).then(Caller::this)));
    }

    fn cancel(&self, call: CallId) {
        self.keep_turn();
        self.push(Message::Cancel(call));
        // Whether the call has ended must not depend on when the cluster's thread takes the message.
        self.wait_for_turn(Turn::Next);
    }

    fn is_here(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    fn wait_for_turn(&self, turn: Turn) {
        if !self.is_here() {
            self.await_turns();
            self.turns.wait(turn, || self.push(Message::Turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_once_until_they_are_free_again() {
        let mut numbers = Numbers::default();
        let given: BTreeSet<_> = std::iter::from_fn(|| numbers.take()).collect();
        assert_eq!((given.len(), given.last()), (65_535, Some(&Numbers::LAST)));
        numbers.free.extend([DatabaseId(7), DatabaseId(3)]);
        assert_eq!(
            [numbers.take(), numbers.take(), numbers.take()],
            [Some(DatabaseId(3)), Some(DatabaseId(7)), None]
        );
    }
}
