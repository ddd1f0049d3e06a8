//! A session that performs everything at once, on the thread of the simulation.

use parking_lot::Mutex;
use shaketable_session::{
    Action, Call, CallId, ClusterName, Command, Completion, DatabaseId, Reply, Session, TransactionId,
    transactions::Transactions,
};
use shaketable_sim::{
    client::SimDatabase,
    rt::{self, Task},
    trace::hash_bytes,
};
use shaketable_tx::{Error, Result};
use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

/// The session of one database handle with one client. It has one database, whose number is 0.
///
/// A call takes effect when it is made. Its answer is awaited by a task of the machine that made the call, so
/// that it ends with the machine.
pub struct Embedded {
    thread: ThreadId,
    db: SimDatabase,
    transactions: Mutex<Transactions<SimDatabase>>,
    pending: Arc<Mutex<BTreeMap<CallId, Pending>>>,
    next_transaction: AtomicU64,
    next_call: AtomicU64,
}

/// A hash of what is written to it.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = hash_bytes(self.0, text.as_bytes());
        Ok(())
    }
}

/// A call whose answer is outstanding.
struct Pending {
    completion: Completion,
    /// The task that awaits the answer, once it is there. Dropping it ends the task.
    task: Option<Task>,
}

/// Ends a call when it is dropped, also if its machine dies.
struct Ending {
    id: CallId,
    answer: Result<Reply>,
    pending: Arc<Mutex<BTreeMap<CallId, Pending>>>,
}

impl Ending {
    /// The call has this answer, and ends.
    fn with(mut self, answer: Result<Reply>) {
        self.answer = answer;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let ended = self.pending.lock().remove(&self.id);
        if let Some(Pending { completion, .. }) = ended {
            completion(std::mem::replace(&mut self.answer, Err(Error::OPERATION_CANCELLED)));
        }
    }
}

impl Embedded {
    /// A session with a database, on the thread of its simulation.
    pub fn new(db: SimDatabase) -> Embedded {
        Embedded {
            thread: thread::current().id(),
            transactions: Mutex::new(Transactions::new(db.clone())),
            db,
            pending: Arc::default(),
            next_transaction: AtomicU64::new(0),
            next_call: AtomicU64::new(0),
        }
    }

    /// Adds what the program asks for to the events of the run.
    fn asked(&self, what: &dyn Debug) {
        let mut digest = Digest(0);
        if write!(digest, "{what:?}").is_ok() {
            self.db.called(digest.0);
        }
    }

    /// Whether this thread runs the simulation of the session. Elsewhere nothing can be performed.
    fn is_within(&self) -> bool {
        self.is_here() && rt::is_simulating()
    }
}

impl Session for Embedded {
    fn open(&self, _: &ClusterName) -> DatabaseId {
        DatabaseId(0)
    }

    fn next_transaction(&self) -> TransactionId {
        TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    fn command(&self, _: DatabaseId, command: Command) {
        // Handles may be destroyed after the run, or by another thread: that is no event of it.
        if self.is_here() && !matches!(command, Command::Transaction(_, Action::Destroy)) {
            self.asked(&command);
        }
        self.transactions.lock().command(command);
    }

    fn call(&self, _: DatabaseId, transaction: TransactionId, call: Call, completion: Completion) -> CallId {
        let id = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
        if !self.is_within() {
            completion(Err(Error::CLIENT_INVALID_OPERATION));
            return id;
        }
        self.asked(&(transaction, &call));
        let answer = self.transactions.lock().issue(transaction, call);
        self.pending.lock().insert(id, Pending { completion, task: None });
        let cancelled = Err(Error::OPERATION_CANCELLED);
        let ending = Ending { id, answer: cancelled, pending: self.pending.clone() };
        let task = rt::spawn_task(async move { ending.with(answer.await) });
        if let Some(pending) = self.pending.lock().get_mut(&id) {
            pending.task = Some(task);
        }
        id
    }

    /// Nothing: virtual time advances by itself.
    fn want(&self, _: CallId) {}

    fn cancel(&self, call: CallId) {
        let ended = self.pending.lock().remove(&call);
        if let Some(Pending { completion, task }) = ended {
            drop(task);
            completion(Err(Error::OPERATION_CANCELLED));
        }
    }

    fn is_here(&self) -> bool {
        thread::current().id() == self.thread
    }
}
