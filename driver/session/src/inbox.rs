//! The queue of messages from other threads to the cluster's thread.

use crate::{
    Call, CallId, ClusterName, Command, Completion, DatabaseId, TransactionId,
    clusters::ProcessVersions,
    load::Load,
    quiescence::Caller,
    sleepers::{SleepId, Sleeper},
    spin::Spin,
    threads::ThreadNumber,
    wakeup::Wakeup,
};
use parking_lot::Mutex;
use shaketable_sim::rt::Nanos;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

/// A message to the cluster's thread.
pub enum Message {
    /// A database of a cluster was opened, by the process with these read versions.
    Open(DatabaseId, ClusterName, ProcessVersions),
    /// A command. The thread is known of one that creates a transaction.
    Command(DatabaseId, Command, Option<ThreadNumber>),
    /// A call.
    Call {
        /// Its number.
        id: CallId,
        /// Its database.
        database: DatabaseId,
        /// Its transaction.
        transaction: TransactionId,
        /// The call.
        call: Call,
        /// What receives the answer.
        completion: Completion,
    },
    /// Something waits for a call.
    Want(CallId),
    /// A callback of a thread waits for a call; none if it was set on the cluster's thread.
    Expect(CallId, Option<Caller>),
    /// A call is cancelled.
    Cancel(CallId),
    /// A thread waits for its turn.
    Turn,
    /// A thread waits for a virtual time since the start of the cluster.
    Sleep(SleepId, Nanos, Sleeper),
    /// It does not wait any more.
    Wake(SleepId),
    /// The clients of some databases die, with these calls in progress.
    Kill(Vec<DatabaseId>, Vec<CallId>),
}

/// The messages that the cluster's thread has not taken yet, in order, and the wakeup that announces them.
pub struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    /// Their number, for the thread that waits for one.
    length: AtomicUsize,
    stopped: AtomicBool,
    spin: Spin,
    wakeup: Wakeup,
    load: Load,
}

impl Inbox {
    /// An empty inbox. Fails if the process cannot open a pipe.
    pub fn new() -> std::io::Result<Inbox> {
        Ok(Inbox {
            messages: Mutex::default(),
            length: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            spin: Spin::new(),
            wakeup: Wakeup::new()?,
            load: Load::new(),
        })
    }

    /// Adds a message.
    pub fn push(&self, message: Message) {
        {
            let mut messages = self.messages.lock();
            messages.push_back(message);
            self.length.store(messages.len(), Ordering::SeqCst);
        }
        self.wakeup.wake();
    }

    /// Takes the first message.
    pub fn pop(&self) -> Option<Message> {
        if self.is_empty() {
            return None;
        }
        let mut messages = self.messages.lock();
        let first = messages.pop_front();
        self.length.store(messages.len(), Ordering::SeqCst);
        first
    }

    /// Asks the cluster's thread to end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wakeup.wake();
    }

    /// Whether it was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Blocks the thread until there is a message, until it is asked to end, or until the timeout. A signal
    /// may end it earlier.
    pub fn wait(&self, timeout: Option<Duration>) {
        self.load.waiting(|| {
            if !self.spin.until(|| !self.is_idle()) {
                self.wakeup.wait(timeout, || self.is_idle());
            }
        });
    }

    /// Blocks the thread until there is a message or it is asked to end.
    pub fn wait_for_work(&self) {
        while self.is_idle() {
            self.wait(None);
        }
    }

    /// How busy the cluster's thread is.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    fn is_idle(&self) -> bool {
        !self.is_stopped() && self.is_empty()
    }
}
