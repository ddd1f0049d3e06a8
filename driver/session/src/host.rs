//! A session whose cluster runs on a thread of this process.

use crate::{
    Call, CallId, Command, Completion, DatabaseId, Session, TransactionId,
    desk::Desk,
    engine,
    inbox::{Inbox, Message},
    report::Report,
    settings::Settings,
};
use shaketable_layers::tx::Error;
use shaketable_sim::rt;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

/// The state of a session: numbers, the inbox and the calls in progress.
pub struct Host {
    inbox: Arc<Inbox>,
    desk: Arc<Desk>,
    databases: AtomicU16,
    transactions: AtomicU64,
    calls: AtomicU64,
    /// The thread of the cluster, once there is one.
    thread: OnceLock<ThreadId>,
    /// Whether the cluster has ended: no call will be answered.
    is_over: AtomicBool,
}

impl Host {
    /// A session without a cluster: what it is given waits for [`run`](Host::run). Fails if the process cannot open a
    /// pipe.
    pub fn new() -> std::io::Result<Host> {
        Ok(Host {
            inbox: Arc::new(Inbox::new()?),
            desk: Arc::default(),
            databases: AtomicU16::new(0),
            transactions: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            thread: OnceLock::new(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Runs a cluster on this thread until [`stop`](Host::stop). It starts with the first message, with the settings
    /// that hold then; `None` if there was none. The error is what the simulator panicked with: every call ends with 4100.
    pub fn run(&self, settings: impl FnOnce() -> Settings) -> Result<Option<Report>, String> {
        let _ = self.thread.set(thread::current().id());
        self.inbox.wait_for_work();
        let report = match self.inbox.is_stopped() {
            true => Ok(None),
            false => self.simulate(settings()),
        };
        self.is_over.store(true, Ordering::SeqCst);
        let error = if report.is_ok() { Error::OPERATION_CANCELLED } else { Error::INTERNAL_ERROR };
        self.desk.close(error);
        self.refuse(error);
        report
    }

    fn simulate(&self, settings: Settings) -> Result<Option<Report>, String> {
        let (inbox, desk) = (self.inbox.clone(), self.desk.clone());
        let run = || rt::simulate(settings.seed, engine::serve(inbox, desk, settings.clone()));
        catch_unwind(AssertUnwindSafe(run)).map(Some).map_err(|panic| message(&*panic))
    }

    /// Ends the calls that the cluster has not taken.
    fn refuse(&self, error: Error) {
        while let Some(message) = self.inbox.pop() {
            if let Message::Call { completion, .. } = message {
                completion(Err(error));
            }
        }
    }

    /// Ends the cluster. Calls whose answers are outstanding end with 1101.
    pub fn stop(&self) {
        self.inbox.stop();
    }

    fn push(&self, message: Message) {
        self.inbox.push(message);
        if self.is_over.load(Ordering::SeqCst) {
            self.refuse(Error::OPERATION_CANCELLED);
        }
    }
}

/// What a panic said.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

impl Session for Host {
    fn open(&self) -> DatabaseId {
        let id = DatabaseId(self.databases.fetch_add(1, Ordering::SeqCst));
        self.push(Message::Open(id));
        id
    }

    fn next_transaction(&self) -> TransactionId {
        TransactionId(self.transactions.fetch_add(1, Ordering::SeqCst))
    }

    fn command(&self, database: DatabaseId, command: Command) {
        self.push(Message::Command(database, command));
    }

    fn call(
        &self,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
        completion: Completion,
    ) -> CallId {
        let id = CallId(self.calls.fetch_add(1, Ordering::SeqCst));
        self.push(Message::Call { id, database, transaction, call, completion });
        id
    }

    fn want(&self, call: CallId) {
        self.push(Message::Want(call));
    }

    fn expect(&self, call: CallId) {
        self.push(Message::Expect(call));
    }

    fn cancel(&self, call: CallId) {
        self.push(Message::Cancel(call));
    }

    fn is_here(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }
}
