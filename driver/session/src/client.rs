//! A client of the simulated cluster: performs the commands and calls of one database handle.

use crate::{
    Action, Call, CallId, Command, TransactionId,
    calls::{issue, perform},
    desk::Desk,
};
use futures::{StreamExt, channel::mpsc::UnboundedReceiver, future::BoxFuture};
use shaketable_layers::tx::{Database, Error, Result};
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    rt,
};
use std::{collections::BTreeMap, sync::Arc};

/// How many jobs are done at one instant of virtual time. The simulator takes endless work at one instant for a loop
/// that does not wait.
const JOBS_PER_INSTANT: u32 = 1_000;

/// Work for a client.
pub enum Job {
    /// A command.
    Command(Command),
    /// A call.
    Call(CallId, TransactionId, Call),
}

/// A transaction and the error that its calls return until it is reset.
struct Open {
    tx: SimTransaction,
    deferred: Result<()>,
}

/// Does the jobs of a client in order. Ends when no more can come.
pub async fn serve(db: SimDatabase, mut jobs: UnboundedReceiver<Job>, desk: Arc<Desk>, clock: rt::Clock) {
    let mut client = Client { db, desk, deferred: Ok(()), transactions: BTreeMap::new() };
    let mut done = 0;
    while let Some(job) = jobs.next().await {
        match job {
            Job::Command(command) => client.command(command),
            Job::Call(id, transaction, call) => client.call(id, transaction, call),
        }
        done += 1;
        if done % JOBS_PER_INSTANT == 0 {
            clock.sleep(1).await;
        }
    }
}

struct Client {
    db: SimDatabase,
    desk: Arc<Desk>,
    /// The error of a database option, which every later call returns.
    deferred: Result<()>,
    transactions: BTreeMap<TransactionId, Open>,
}

impl Client {
    fn command(&mut self, command: Command) {
        match command {
            Command::SetDatabaseOption { code, value } => {
                let set = self.db.set_option_raw(code, value.as_deref());
                self.deferred = self.deferred.and(set);
            }
            Command::Create(id) => {
                // A simulated database always creates one.
                if let Ok(tx) = self.db.create_transaction() {
                    self.transactions.insert(id, Open { tx, deferred: self.deferred });
                }
            }
            Command::Transaction(id, action) => self.act(id, action),
        }
    }

    fn act(&mut self, id: TransactionId, action: Action) {
        let Some(open) = self.transactions.get_mut(&id) else { return };
        let performed = perform(&open.tx, &action);
        match action {
            Action::Reset => open.deferred = self.deferred,
            Action::Destroy => drop(self.transactions.remove(&id)),
            _ => open.deferred = open.deferred.and(performed),
        }
    }

    fn call(&mut self, id: CallId, transaction: TransactionId, call: Call) {
        let answer = self.issue(transaction, call);
        let desk = self.desk.clone();
        let task = rt::spawn_task(async move { desk.ended(id, answer.await) });
        self.desk.begun(id, task);
    }

    fn issue(&mut self, transaction: TransactionId, call: Call) -> BoxFuture<'static, Result<crate::Reply>> {
        let refused = |error| Box::pin(std::future::ready(Err(error)));
        let Some(open) = self.transactions.get_mut(&transaction) else {
            return refused(Error::TRANSACTION_CANCELLED);
        };
        if matches!(call, Call::OnError(_)) {
            // It resets the transaction, and the error with it.
            open.deferred = self.deferred;
        }
        match open.deferred {
            Ok(()) => issue(&open.tx, call),
            Err(error) => refused(error),
        }
    }
}
