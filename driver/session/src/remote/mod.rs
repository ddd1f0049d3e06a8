//! A session whose cluster is behind a socket: at a [`Server`](crate::server::Server).
//!
//! The thread that calls [`Remote::run`] connects, and delivers answers: it is the network thread of the
//! program. Requests that are made before the connection is established are sent when it is. While no server
//! answers, the thread tries again for [five seconds](CONNECT_TIMEOUT), so that server and programs may be
//! started at the same time.
//!
//! # When there is no server
//!
//! If none answers, if the server ends or refuses the program, or if the connection is lost, [`Remote::run`]
//! says why, and every call that something waits for, now or later, ends with 1031 `transaction_timed_out`.
//! That is what a program with a timeout gets from a cluster of FoundationDB that cannot be reached. Retry
//! loops end on it, because it is not retryable; and it is correct for a commit, which may have happened. The
//! session does not reconnect: when a connection ends, the cluster kills its client.
//!
//! What needs no cluster works as in FoundationDB's client: the timeout of a transaction is measured by the
//! wall clock, and its calls end with 1031 when it is over; a reset, a cancel and the end of a transaction
//! end its calls with 1025.

use crate::{
    Action, Call, CallId, ClusterName, Command, Completion, DatabaseId, Reply, Session, TransactionId,
    address::Address,
    protocol::{
        LONGEST_RESPONSE, Request, Response, VERSION, decode, encode,
        frames::Frames,
        greeting::{Greeting, GreetingError, Side},
        outbox::Outbox,
        wire::Wire,
    },
    timeouts::{Of, Timeouts},
    wall,
};
use parking_lot::{Condvar, Mutex};
use shaketable_tx::{Error, Result};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

/// How long the network thread tries to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the end of a session waits for the server to read what was given before.
const LONGEST_END: Duration = Duration::from_secs(1);

/// The error of calls when there is no server.
pub const UNREACHABLE: Error = Error::TRANSACTION_TIMED_OUT;

/// Whether a server answers at an address, of whatever version.
pub fn is_served(address: &Address) -> bool {
    Wire::connect(address).is_ok_and(|wire| {
        // If it fails, the server's greeting does not come.
        let _ = Greeting::CLIENT.send(&wire);
        Greeting::receive(&wire, Side::Server).is_ok()
    })
}

/// A session with a cluster behind a socket.
pub struct Remote {
    address: Address,
    outbox: Arc<Outbox>,
    calls: Mutex<Calls>,
    /// What the network thread waits for while there is no connection: deadlines may have changed, or the end
    /// has come.
    changed: Condvar,
    databases: Mutex<Numbers>,
    transactions: AtomicU64,
    line: Mutex<Line>,
    /// The network thread, once there is one.
    thread: OnceLock<ThreadId>,
}

/// The calls in progress.
#[derive(Default)]
struct Calls {
    next: u64,
    outstanding: BTreeMap<CallId, Outstanding>,
    timeouts: Timeouts,
    server: Server,
}

/// Whether there is a server.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Server {
    /// None has answered yet.
    #[default]
    Sought,
    /// It answers.
    Here,
    /// None does any more.
    Lost,
    /// The session is over: the error of every call.
    Over(Error),
}

/// A call whose answer is outstanding.
struct Outstanding {
    completion: Completion,
    of: Of,
    is_wanted: bool,
}

impl Calls {
    /// When calls end without a server, if they do at a time.
    fn next_deadline(&self) -> Option<Duration> {
        self.outstanding.values().filter_map(|call| self.timeouts.deadline(call.of)).min()
    }

    /// Takes the calls that end by themselves at this time: those of transactions whose time is over, and, if
    /// no server is sought any more, those without a timeout that something waits for.
    fn take_ended(&mut self, now: Duration) -> Vec<Completion> {
        if self.server == Server::Here {
            return Vec::new();
        }
        let is_lost = self.server == Server::Lost;
        let (outstanding, timeouts) = (&mut self.outstanding, &self.timeouts);
        let ended = outstanding.extract_if(.., |_, call| match timeouts.deadline(call.of) {
            Some(deadline) => deadline <= now,
            None => is_lost && call.is_wanted,
        });
        ended.map(|(_, call)| call.completion).collect()
    }

    /// Takes the calls of a transaction that a command ends, if no server does it.
    fn take_dropped(&mut self, database: DatabaseId, command: &Command) -> Vec<Completion> {
        match command {
            Command::Transaction(id, Action::Reset | Action::Cancel | Action::Destroy)
                if self.server != Server::Here =>
            {
                let of = (database, *id);
                let dropped = self.outstanding.extract_if(.., |_, call| call.of == of);
                dropped.map(|(_, call)| call.completion).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Ends calls with an error. Not to be called with a lock: completions are the program's.
fn end(calls: Vec<Completion>, error: Error) {
    calls.into_iter().for_each(|completion| completion(Err(error)));
}

/// The numbers of database handles. Those that were closed are given again when there are no others, because
/// transactions of theirs may go on for long.
#[derive(Default)]
struct Numbers {
    next: u16,
    closed: VecDeque<DatabaseId>,
}

impl Numbers {
    /// A number that no open database has; the last one again if there is none.
    fn take(&mut self) -> DatabaseId {
        match self.next.checked_add(1) {
            Some(next) => DatabaseId(std::mem::replace(&mut self.next, next)),
            None => self.closed.pop_front().unwrap_or(DatabaseId(u16::MAX)),
        }
    }
}

/// The connection.
#[derive(Default)]
struct Line {
    wire: Option<Arc<Wire>>,
    is_stopped: bool,
}

impl Remote {
    /// A session with the server at an address, not yet connected.
    pub fn new(address: Address) -> Remote {
        Remote {
            address,
            outbox: Arc::default(),
            calls: Mutex::default(),
            changed: Condvar::new(),
            databases: Mutex::default(),
            transactions: AtomicU64::new(0),
            line: Mutex::default(),
            thread: OnceLock::new(),
        }
    }

    /// Where the server is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Connects, and delivers answers on this thread until [`stop`](Remote::stop). If something else ends the
    /// session, `lost` is told what, in one line, before the calls end: the program may exit at once when
    /// they do.
    pub fn run(&self, lost: impl FnOnce(&str)) {
        let _ = self.thread.set(thread::current().id());
        let reason = self.connect().map_or_else(|reason| reason, |wire| self.serve(&wire));
        self.outbox.close();
        if !self.line.lock().is_stopped {
            lost(&reason);
        }
        self.calls.lock().server = Server::Lost;
        while !self.line.lock().is_stopped {
            self.wait(None);
        }
        self.finish(Error::OPERATION_CANCELLED);
    }

    /// Waits without a server, at most until the end of a pause, and lets calls end that end by themselves.
    fn wait(&self, pause: Option<Duration>) {
        let now = wall::now();
        let mut calls = self.calls.lock();
        let due = calls.next_deadline().map(|deadline| deadline.saturating_sub(now));
        let ended = calls.take_ended(now);
        if ended.is_empty() && !self.line.lock().is_stopped {
            match due.into_iter().chain(pause).min() {
                Some(longest) => drop(self.changed.wait_for(&mut calls, longest)),
                None => self.changed.wait(&mut calls),
            }
        }
        drop(calls);
        end(ended, UNREACHABLE);
    }

    /// Tells the network thread to look again, if it waits without a server.
    fn nudge(&self) {
        drop(self.calls.lock());
        self.changed.notify_all();
    }

    /// Ends the session. Calls whose answers are outstanding end with 1101.
    pub fn stop(&self) {
        let mut line = self.line.lock();
        line.is_stopped = true;
        let wire = line.wire.clone();
        drop(line);
        self.nudge();
        match wire {
            Some(wire) => wire.end_reads(),
            None => self.finish_unless_running(),
        }
    }

    /// A session that never ran answers its calls all the same.
    fn finish_unless_running(&self) {
        if self.thread.get().is_none() {
            self.finish(Error::OPERATION_CANCELLED);
        }
    }

    /// Connects and exchanges greetings; tries again until [`CONNECT_TIMEOUT`] is over.
    fn connect(&self) -> Result<Arc<Wire>, String> {
        let mut last = String::new();
        for _ in 0..CONNECT_TIMEOUT.as_millis() / PAUSE.as_millis() {
            if self.line.lock().is_stopped {
                break;
            }
            match Wire::connect(&self.address) {
                Ok(wire) => return self.greet(wire),
                Err(error) => last = error.to_string(),
            }
            let next = wall::now() + PAUSE;
            while wall::now() < next && !self.line.lock().is_stopped {
                self.wait(Some(next.saturating_sub(wall::now())));
            }
        }
        Err(format!("no server at {}: {last}", self.address))
    }

    fn greet(&self, wire: Wire) -> Result<Arc<Wire>, String> {
        let address = &self.address;
        let wire = Arc::new(wire);
        let mut line = self.line.lock();
        line.wire = Some(wire.clone());
        if line.is_stopped {
            return Err(String::new());
        }
        drop(line);
        // If it fails, the server's greeting does not come.
        let _ = Greeting::CLIENT.send(&wire);
        match Greeting::receive(&wire, Side::Server) {
            Ok(Greeting { version, .. }) if version != VERSION => Err(format!(
                "the server at {address} speaks version {version} of the protocol, and this library version {VERSION}: \
                 use both of one release"
            )),
            Ok(greeting) if greeting.longest < Greeting::SERVER.longest => {
                Err(format!("the server at {address} accepts requests of {} bytes only", greeting.longest))
            }
            Ok(_) => Ok(wire),
            Err(GreetingError::Other) => Err(format!("what answers at {address} is no server of shaketable")),
            Err(strange) => Err(format!("the server at {address}: {strange}")),
        }
    }

    /// Delivers answers until the connection ends, and says why it did.
    fn serve(&self, wire: &Arc<Wire>) -> String {
        let writer = {
            let (outbox, wire) = (self.outbox.clone(), wire.clone());
            thread::Builder::new().name("requests".to_owned()).spawn(move || {
                outbox.write(&wire);
                wire.end_writes();
            })
        };
        let writer = match writer {
            Ok(writer) => writer,
            Err(error) => return format!("no thread for requests: {error}"),
        };
        self.calls.lock().server = Server::Here;
        let reason = self.deliver(wire);
        self.outbox.close();
        if self.line.lock().is_stopped {
            // What was given before the end is sent, unless the server does not read it.
            self.outbox.wait_for_end(LONGEST_END);
        }
        wire.end();
        // It has no panic to pass on.
        let _ = writer.join();
        reason
    }

    fn deliver(&self, wire: &Wire) -> String {
        let address = &self.address;
        let mut frames = Frames::new(LONGEST_RESPONSE);
        loop {
            let body = match frames.next(wire) {
                Ok(body) => body,
                Err(torn) => return format!("the server at {address} is gone: {torn}"),
            };
            match decode(body) {
                Some(Response::Answer(id, answer)) => self.answer(id, answer),
                Some(Response::Refused(line)) => {
                    return format!("the server at {address} has closed the connection: {line}");
                }
                None => return format!("the server at {address} sends what is no answer"),
            }
        }
    }

    fn answer(&self, id: CallId, answer: Result<Reply>) {
        let call = self.calls.lock().outstanding.remove(&id);
        if let Some(Outstanding { completion, .. }) = call {
            completion(answer);
        }
    }

    /// Ends every call, now and later, with an error.
    fn finish(&self, error: Error) {
        let mut calls = self.calls.lock();
        calls.server = Server::Over(error);
        let outstanding = std::mem::take(&mut calls.outstanding);
        drop(calls);
        end(outstanding.into_values().map(|call| call.completion).collect(), error);
    }

    /// Sends a request: at once if it `is_timed`, because the server counts time from its arrival.
    fn send(&self, request: Request, is_timed: bool) {
        let request = request.cut();
        // What a program can give has an encoding.
        if let Some(body) = encode(&request) {
            self.outbox.push(&body, !is_timed && request.can_wait());
        }
    }
}

impl Session for Remote {
    fn open(&self, cluster: &ClusterName) -> DatabaseId {
        let id = self.databases.lock().take();
        self.send(Request::Open(id, cluster.clone()), false);
        id
    }

    fn next_transaction(&self) -> TransactionId {
        TransactionId(self.transactions.fetch_add(1, Ordering::SeqCst))
    }

    fn command(&self, database: DatabaseId, command: Command) {
        let is_closed = command == Command::Close;
        let mut calls = self.calls.lock();
        calls.timeouts.see(database, &command, wall::now());
        let dropped = calls.take_dropped(database, &command);
        let is_alone = calls.server != Server::Here;
        let is_timed = calls.timeouts.begins(database, &command);
        drop(calls);
        end(dropped, Error::TRANSACTION_CANCELLED);
        if is_alone {
            self.nudge();
        }
        self.send(Request::Command(database, command), is_timed);
        if is_closed {
            self.databases.lock().closed.push_back(database);
        }
    }

    fn call(
        &self,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
        completion: Completion,
    ) -> CallId {
        let mut calls = self.calls.lock();
        let id = CallId(calls.next);
        calls.next += 1;
        if let Server::Over(error) = calls.server {
            drop(calls);
            completion(Err(error));
            return id;
        }
        let of = (database, transaction);
        calls.outstanding.insert(id, Outstanding { completion, of, is_wanted: false });
        let is_alone = calls.server != Server::Here;
        drop(calls);
        if is_alone {
            self.nudge();
        }
        self.send(Request::Call(id, database, transaction, call), false);
        id
    }

    fn want(&self, call: CallId) {
        let mut calls = self.calls.lock();
        if let Some(outstanding) = calls.outstanding.get_mut(&call) {
            outstanding.is_wanted = true;
        }
        let is_lost = calls.server == Server::Lost;
        drop(calls);
        if is_lost {
            self.nudge();
        }
        self.send(Request::Want(call), false);
    }

    fn cancel(&self, call: CallId) {
        let mut calls = self.calls.lock();
        let cancelled = match calls.server {
            Server::Here => None,
            _ => calls.outstanding.remove(&call),
        };
        drop(calls);
        end(cancelled.into_iter().map(|call| call.completion).collect(), Error::OPERATION_CANCELLED);
        self.send(Request::Cancel(call), false);
    }

    fn is_here(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }
}
