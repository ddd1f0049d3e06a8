//! The clients of one connection: checks their requests, hands them to the host, and sends answers back.

use super::limits;
use crate::{
    Action, Call, CallId, Command, Completion, DatabaseId, Host, Reply, Session, TransactionId,
    protocol::{Request, Response, decode, encode, outbox::Outbox},
};
use parking_lot::Mutex;
use shaketable_layers::tx::{Error, RangeOption, Result};
use shaketable_sim::client::ReadVersions;
use std::{collections::BTreeMap, sync::Arc};

/// What is wrong with a request: one line.
type Wrong = String;

/// A program that is connected. When it is dropped, its clients die.
pub struct Guest<'a> {
    host: &'a Host,
    outbox: Arc<Outbox>,
    /// The host's numbers of its databases, by its own.
    databases: Vec<DatabaseId>,
    /// The read versions that they share.
    versions: ReadVersions,
    open: Arc<Mutex<Open>>,
    /// The longest answer that it accepts.
    longest: u32,
}

/// What is open, by the program's numbers.
#[derive(Default)]
struct Open {
    /// The host's numbers of calls whose answers are outstanding, once they are known.
    calls: BTreeMap<CallId, Option<CallId>>,
    /// The steps of transactions since they were new.
    steps: BTreeMap<(DatabaseId, TransactionId), u32>,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let calls = std::mem::take(&mut self.open.lock().calls).into_values().flatten().collect();
        self.host.kill(std::mem::take(&mut self.databases), calls);
    }
}

impl<'a> Guest<'a> {
    /// A program that has no databases yet.
    pub fn new(host: &'a Host, outbox: &Arc<Outbox>, longest: u32) -> Guest<'a> {
        Guest {
            host,
            outbox: outbox.clone(),
            databases: Vec::new(),
            versions: ReadVersions::default(),
            open: Arc::default(),
            longest,
        }
    }

    /// Takes the body of a request.
    pub fn take(&mut self, body: &[u8]) -> Result<(), Wrong> {
        match decode::<Request>(body).ok_or("a frame that is no request")? {
            Request::Open(id) => self.open(id),
            Request::Command(database, command) => self.command(database, command),
            Request::Call(id, database, transaction, call) => self.call(id, database, transaction, call),
            Request::Want(id) => self.with_call(id, |call| self.host.want(call)),
            Request::Cancel(id) => self.with_call(id, |call| self.host.cancel(call)),
        }
    }

    fn open(&mut self, id: DatabaseId) -> Result<(), Wrong> {
        let number = self.databases.len();
        if usize::from(id.0) != number {
            return Err(format!("database {} was opened instead of database {number}", id.0));
        }
        if number == limits::DATABASES {
            return Err(format!("more than {number} databases"));
        }
        let opened =
            self.host.try_open(&self.versions).ok_or("the cluster has no room for another client")?;
        self.databases.push(opened);
        Ok(())
    }

    /// The host's number of a database.
    fn database(&self, id: DatabaseId) -> Result<DatabaseId, Wrong> {
        let opened = self.databases.get(usize::from(id.0)).copied();
        opened.ok_or_else(|| format!("database {} is not open", id.0))
    }

    fn command(&self, id: DatabaseId, command: Command) -> Result<(), Wrong> {
        let database = self.database(id)?;
        match &command {
            Command::SetDatabaseOption { .. } => {}
            Command::Create(transaction) => self.begin(id, *transaction)?,
            Command::Transaction(transaction, action) => {
                self.step(id, *transaction)?;
                let mut open = self.open.lock();
                match action {
                    Action::Destroy => drop(open.steps.remove(&(id, *transaction))),
                    Action::Reset => drop(open.steps.insert((id, *transaction), 0)),
                    _ => {}
                }
            }
        }
        self.host.command(database, command);
        Ok(())
    }

    fn begin(&self, database: DatabaseId, transaction: TransactionId) -> Result<(), Wrong> {
        let steps = &mut self.open.lock().steps;
        if steps.len() == limits::TRANSACTIONS {
            return Err(format!("more than {} transactions at once", limits::TRANSACTIONS));
        }
        match steps.insert((database, transaction), 0) {
            None => Ok(()),
            Some(_) => Err(format!("transaction {} was created twice", transaction.0)),
        }
    }

    /// Counts a command or a call of a transaction. One that does not exist has no steps: its calls fail.
    fn step(&self, database: DatabaseId, transaction: TransactionId) -> Result<(), Wrong> {
        let mut open = self.open.lock();
        let Some(steps) = open.steps.get_mut(&(database, transaction)) else { return Ok(()) };
        *steps += 1;
        match *steps > limits::STEPS {
            true => Err(format!("a transaction with more than {} calls", limits::STEPS)),
            false => Ok(()),
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
        self.step(database, transaction)?;
        self.expect(id)?;
        let restarts = matches!(call, Call::OnError(_));
        let completion = self.answers(id, restarts.then_some((database, transaction)));
        let number = self.host.call(host_database, transaction, call, completion);
        // Unless it was answered meanwhile.
        if let Some(known) = self.open.lock().calls.get_mut(&id) {
            *known = Some(number);
        }
        Ok(())
    }

    fn expect(&self, id: CallId) -> Result<(), Wrong> {
        let calls = &mut self.open.lock().calls;
        if calls.len() == limits::CALLS {
            return Err(format!("more than {} calls without an answer", limits::CALLS));
        }
        match calls.insert(id, None) {
            None => Ok(()),
            Some(_) => Err(format!("two calls with the number {}", id.0)),
        }
    }

    /// What sends the answer of a call. `restarted` is the transaction that is as new after it.
    fn answers(&self, id: CallId, restarted: Option<(DatabaseId, TransactionId)>) -> Completion {
        let (open, outbox, longest) = (self.open.clone(), self.outbox.clone(), self.longest);
        Box::new(move |answer| {
            let mut open = open.lock();
            if open.calls.remove(&id).is_none() {
                // The program is gone.
                return;
            }
            if let Some(steps) = restarted.filter(|_| answer.is_ok()).and_then(|tx| open.steps.get_mut(&tx)) {
                *steps = 0;
            }
            drop(open);
            if let Some(body) = body(id, answer, longest) {
                outbox.push(&body, false);
            }
        })
    }

    /// Does something with a call, unless it was answered.
    fn with_call(&self, id: CallId, act: impl FnOnce(CallId)) -> Result<(), Wrong> {
        let number = self.open.lock().calls.get(&id).copied().flatten();
        if let Some(number) = number {
            act(number);
        }
        Ok(())
    }
}

/// The body of an answer. One that is too long is 2012 `range_limits_invalid` instead: only that of a range with large
/// limits can be.
fn body(id: CallId, answer: Result<Reply>, longest: u32) -> Option<Vec<u8>> {
    let body = encode(&Response::Answer(id, answer))?;
    if body.len() <= longest as usize {
        return Some(body);
    }
    encode(&Response::Answer(id, Err(Error::RANGE_LIMITS_INVALID)))
}

/// Checks what the types of a call allow and the C interface does not: limits beyond its integers.
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
