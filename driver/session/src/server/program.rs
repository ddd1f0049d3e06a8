//! The program at the other end of a connection: checks its requests, forwards them to the host, and sends
//! answers back.

use super::limits;
use crate::{
    Action, Call, CallId, ClusterName, Command, Completion, DatabaseId, Host, Reply, Session, TransactionId,
    clusters::ProcessVersions,
    protocol::{Request, Response, decode, encode, outbox::Outbox},
};
use parking_lot::Mutex;
use shaketable_tx::{Error, RangeOption, Result, StreamingMode};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What is wrong with a request: one line.
type Wrong = String;

/// A program that is connected. When it is dropped, its clients die.
pub struct ConnectedProgram<'a> {
    host: &'a Host,
    outbox: Arc<Outbox>,
    /// The host's numbers of its databases, by its own.
    databases: BTreeMap<DatabaseId, DatabaseId>,
    /// The databases that it has closed, but that transactions or calls still use.
    closed: BTreeSet<DatabaseId>,
    /// The read versions that they share.
    versions: ProcessVersions,
    open: Arc<Mutex<Open>>,
    /// The longest answer that it accepts.
    longest: u32,
}

/// What is open, by the program's numbers.
#[derive(Default)]
struct Open {
    /// The calls whose answers are outstanding.
    calls: BTreeMap<CallId, Outstanding>,
    /// What transactions have done since they were new.
    transactions: BTreeMap<(DatabaseId, TransactionId), Done>,
    /// The sum of what they have written, bytes.
    written: usize,
}

/// A call whose answer is outstanding.
struct Outstanding {
    database: DatabaseId,
    /// The host's number, once it is known.
    number: Option<CallId>,
    /// The room that is reserved for its answer, bytes.
    room: usize,
}

/// What a transaction has done since it was new.
#[derive(Default)]
struct Done {
    steps: u32,
    written: usize,
}

impl Open {
    /// Resets the counts of a transaction that was reset.
    fn restart(&mut self, of: (DatabaseId, TransactionId)) {
        if let Some(done) = self.transactions.get_mut(&of) {
            self.written -= std::mem::take(done).written;
        }
    }

    /// Removes a transaction that was destroyed.
    fn destroy(&mut self, of: (DatabaseId, TransactionId)) {
        self.written -= self.transactions.remove(&of).map_or(0, |done| done.written);
    }

    /// Whether a transaction or a call uses a database.
    fn uses(&self, database: DatabaseId) -> bool {
        let mut transactions = self.transactions.range((database, TransactionId(0))..);
        transactions.next().is_some_and(|((of, _), _)| *of == database)
            || self.calls.values().any(|call| call.database == database)
    }
}

impl Drop for ConnectedProgram<'_> {
    fn drop(&mut self) {
        let calls = std::mem::take(&mut self.open.lock().calls).into_values();
        let calls = calls.filter_map(|call| call.number).collect();
        self.host.kill(std::mem::take(&mut self.databases).into_values().collect(), calls);
    }
}

impl<'a> ConnectedProgram<'a> {
    /// A program that has no databases yet.
    pub fn new(host: &'a Host, outbox: &Arc<Outbox>, longest: u32) -> ConnectedProgram<'a> {
        ConnectedProgram {
            host,
            outbox: outbox.clone(),
            databases: BTreeMap::new(),
            closed: BTreeSet::new(),
            versions: ProcessVersions::default(),
            open: Arc::default(),
            longest,
        }
    }

    /// Takes the body of a request.
    pub fn take(&mut self, body: &[u8]) -> Result<(), Wrong> {
        match decode::<Request>(body).ok_or("a frame that is no request")? {
            Request::Open(id, cluster) => self.open(id, &cluster),
            Request::Command(database, command) => self.command(database, command),
            Request::Call(id, database, transaction, call) => self.call(id, database, transaction, call),
            Request::Want(id) => self.with_call(id, |call| self.host.want(call)),
            Request::Cancel(id) => self.with_call(id, |call| self.host.cancel(call)),
        }
    }

    fn open(&mut self, id: DatabaseId, cluster: &ClusterName) -> Result<(), Wrong> {
        self.end_closed();
        if self.databases.contains_key(&id) {
            return Err(format!("database {} was opened twice", id.0));
        }
        if self.databases.len() == limits::DATABASES {
            return Err(format!("more than {} databases", limits::DATABASES));
        }
        self.host.admit(cluster)?;
        let opened = self.host.try_open(cluster, &self.versions);
        let opened = opened.ok_or("the cluster has no room for another client")?;
        self.databases.insert(id, opened);
        Ok(())
    }

    /// The client of a database that was closed ends when nothing uses it any more.
    fn end_closed(&mut self) {
        let open = self.open.lock();
        let closed = std::mem::take(&mut self.closed).into_iter();
        let (used, ended): (BTreeSet<_>, BTreeSet<_>) = closed.partition(|id| open.uses(*id));
        drop(open);
        self.closed = used;
        let ended = ended.into_iter().filter_map(|id| self.databases.remove(&id)).collect();
        self.host.kill(ended, Vec::new());
    }

    /// The host's number of a database.
    fn database(&self, id: DatabaseId) -> Result<DatabaseId, Wrong> {
        let opened = self.databases.get(&id).copied();
        opened.ok_or_else(|| format!("database {} is not open", id.0))
    }

    fn command(&mut self, id: DatabaseId, command: Command) -> Result<(), Wrong> {
        let database = self.database(id)?;
        match &command {
            Command::SetDatabaseOption { .. } => {}
            Command::Create(transaction) => self.begin(id, *transaction)?,
            Command::Transaction(transaction, action) => {
                self.step(id, *transaction, written(action))?;
                match action {
                    Action::Destroy => self.open.lock().destroy((id, *transaction)),
                    Action::Reset => self.open.lock().restart((id, *transaction)),
                    _ => {}
                }
            }
            Command::Close => {
                self.closed.insert(id);
                self.end_closed();
                return Ok(());
            }
        }
        self.host.command(database, command);
        Ok(())
    }

    fn begin(&self, database: DatabaseId, transaction: TransactionId) -> Result<(), Wrong> {
        let transactions = &mut self.open.lock().transactions;
        if transactions.len() == limits::TRANSACTIONS {
            return Err(format!("more than {} transactions at once", limits::TRANSACTIONS));
        }
        match transactions.insert((database, transaction), Done::default()) {
            None => Ok(()),
            Some(_) => Err(format!("transaction {} was created twice", transaction.0)),
        }
    }

    /// Counts a command or a call of a transaction, and the bytes that it writes. For a transaction that does
    /// not exist nothing is counted, because its calls fail.
    fn step(&self, database: DatabaseId, transaction: TransactionId, written: usize) -> Result<(), Wrong> {
        let mut open = self.open.lock();
        let Some(done) = open.transactions.get_mut(&(database, transaction)) else { return Ok(()) };
        done.steps += 1;
        done.written += written;
        let steps = done.steps;
        open.written += written;
        match (steps > limits::STEPS, open.written > limits::WRITES) {
            (true, _) => Err(format!("a transaction with more than {} calls", limits::STEPS)),
            (_, true) => Err(format!("more than {} bytes in transactions at once", limits::WRITES)),
            _ => Ok(()),
        }
    }

    fn call(
        &self,
        id: CallId,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
    ) -> Result<(), Wrong> {
        let host_database = self.database(database)?;
        check(&call)?;
        self.step(database, transaction, 0)?;
        let room = room(&call).min(self.longest as usize);
        self.expect(id, database, room)?;
        self.wait_for_room(room);
        let restarts = matches!(call, Call::OnError(_));
        let completion = self.answers(id, restarts.then_some((database, transaction)));
        let number = self.host.call(host_database, transaction, call, completion);
        // Unless it was answered meanwhile.
        if let Some(known) = self.open.lock().calls.get_mut(&id) {
            known.number = Some(number);
        }
        Ok(())
    }

    /// Waits until there is room for an answer. It marks the outstanding reads as wanted, because only their
    /// answers make room, and the program's own `Want` may come after the request that is blocked here.
    fn wait_for_room(&self, room: usize) {
        if self.outbox.try_reserve(room, limits::ANSWERS) {
            return;
        }
        let reads: Vec<CallId> = {
            let open = self.open.lock();
            open.calls.values().filter(|call| call.room > 0).filter_map(|call| call.number).collect()
        };
        reads.into_iter().for_each(|call| self.host.want(call));
        self.outbox.reserve(room, limits::ANSWERS);
    }

    fn expect(&self, id: CallId, database: DatabaseId, room: usize) -> Result<(), Wrong> {
        let calls = &mut self.open.lock().calls;
        if calls.len() == limits::CALLS {
            return Err(format!("more than {} calls without an answer", limits::CALLS));
        }
        match calls.insert(id, Outstanding { database, number: None, room }) {
            None => Ok(()),
            Some(_) => Err(format!("two calls with the number {}", id.0)),
        }
    }

    /// The completion that sends the answer of a call. `restarted` is the transaction that the call resets.
    fn answers(&self, id: CallId, restarted: Option<(DatabaseId, TransactionId)>) -> Completion {
        let (open, outbox, longest) = (self.open.clone(), self.outbox.clone(), self.longest);
        Box::new(move |answer| {
            let mut open = open.lock();
            let Some(Outstanding { room, .. }) = open.calls.remove(&id) else {
                // The program is gone.
                return;
            };
            if let (Some(restarted), true) = (restarted, answer.is_ok()) {
                open.restart(restarted);
            }
            drop(open);
            if let Some(body) = body(id, answer, longest) {
                outbox.push(&body, false);
            }
            outbox.release(room);
        })
    }

    /// Calls `act` with the host's number of a call, unless it was answered.
    fn with_call(&self, id: CallId, act: impl FnOnce(CallId)) -> Result<(), Wrong> {
        let number = self.open.lock().calls.get(&id).and_then(|call| call.number);
        if let Some(number) = number {
            act(number);
        }
        Ok(())
    }
}

/// The body of an answer. One that is too long is 2012 `range_limits_invalid` instead: only that of a range
/// with large limits can be.
fn body(id: CallId, answer: Result<Reply>, longest: u32) -> Option<Vec<u8>> {
    let body = encode(&Response::Answer(id, answer))?;
    if body.len() <= longest as usize {
        return Some(body);
    }
    encode(&Response::Answer(id, Err(Error::RANGE_LIMITS_INVALID)))
}

/// The bytes that an action writes.
fn written(action: &Action) -> usize {
    match action {
        Action::Set(key, text) | Action::Atomic { key, operand: text, .. } => key.len() + text.len(),
        Action::ClearRange(begin, end) | Action::AddConflictRange(begin, end, _) => begin.len() + end.len(),
        Action::Clear(key) => 2 * key.len(),
        _ => 0,
    }
}

/// About how large the answer of a read may be, bytes; 0 for answers that are small, or may never come.
fn room(call: &Call) -> usize {
    const VALUE: usize = 100_000;
    const BATCH: usize = 120_000 + VALUE;
    match call {
        Call::Get(..) | Call::GetKey(..) => VALUE,
        Call::GetRange(range, ..) | Call::GetMappedRange(range, ..) if range.mode == StreamingMode::Exact => {
            match (range.target_bytes, range.limit.unwrap_or(0)) {
                (0, rows) => rows.saturating_mul(VALUE),
                (bytes, _) => bytes.saturating_add(VALUE),
            }
        }
        Call::GetRange(..) => BATCH,
        Call::GetMappedRange(..) | Call::GetRangeSplitPoints(..) => 10 * BATCH,
        _ => 0,
    }
}

/// Refuses calls that the types allow but the C interface does not: limits beyond the range of its integers.
fn check(call: &Call) -> Result<(), Wrong> {
    let most = i32::MAX as usize;
    let within = |range: &RangeOption, iteration: usize| {
        range.limit.unwrap_or(0) <= most && range.target_bytes <= most && (1..=most).contains(&iteration)
    };
    match call {
        Call::GetRange(range, iteration, _) | Call::GetMappedRange(range, _, iteration, _)
            if !within(range, *iteration) =>
        {
            Err("limits of a range beyond those of the C interface".to_owned())
        }
        _ => Ok(()),
    }
}
