//! A session that performs everything at once, on the thread of the simulation.

use parking_lot::Mutex;
use shaketable_layers::tx::{Error, Result};
use shaketable_session::{
    Call, CallId, Command, Completion, DatabaseId, Reply, Session, TransactionId, transactions::Transactions,
};
use shaketable_sim::{
    client::SimDatabase,
    rt::{self, Task},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
};

/// The session of one database handle with one client. It has one database, whose number is 0.
///
/// A call takes effect when it is made. Its answer is awaited by a task of the machine that made the call, so that it
/// ends with the machine.
pub struct Embedded {
    thread: ThreadId,
    transactions: Mutex<Transactions<SimDatabase>>,
    pending: Arc<Mutex<BTreeMap<CallId, Pending>>>,
    next_transaction: AtomicU64,
    next_call: AtomicU64,
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
            transactions: Mutex::new(Transactions::new(db)),
            pending: Arc::default(),
            next_transaction: AtomicU64::new(0),
            next_call: AtomicU64::new(0),
        }
    }

    /// Whether this thread runs the simulation of the session. Elsewhere nothing can be performed.
    fn is_within(&self) -> bool {
        self.is_here() && rt::is_simulating()
    }
}

impl Session for Embedded {
    fn open(&self) -> DatabaseId {
        DatabaseId(0)
    }

    fn next_transaction(&self) -> TransactionId {
        TransactionId(self.next_transaction.fetch_add(1, Ordering::Relaxed))
    }

    fn command(&self, _: DatabaseId, command: Command) {
        // Handles may be destroyed after the run, or by another thread.
        self.transactions.lock().command(command);
    }

    fn call(&self, _: DatabaseId, transaction: TransactionId, call: Call, completion: Completion) -> CallId {
        let id = CallId(self.next_call.fetch_add(1, Ordering::Relaxed));
        if !self.is_within() {
            completion(Err(Error::CLIENT_INVALID_OPERATION));
            return id;
        }
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
