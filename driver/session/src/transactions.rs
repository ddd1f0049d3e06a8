//! Transactions by number: performs commands and calls, and keeps the errors of commands for the next call.

use crate::{
    Action, Call, Command, Reply, TransactionId,
    calls::{issue, perform},
};
use futures::{
    FutureExt,
    channel::oneshot,
    future::{BoxFuture, Shared},
};
use shaketable_tx::{Database, Error, Result};
use std::collections::BTreeMap;

/// A transaction and the error that its calls return until it is reset.
struct Open<T> {
    tx: T,
    deferred: Result<()>,
    /// The versionstamps that were asked for since it was new.
    stamps: Vec<Stamp>,
}

/// A versionstamp that was asked for.
struct Stamp {
    answer: Shared<BoxFuture<'static, Result<Reply>>>,
    /// Ends when the call has, or is not awaited any more.
    given: oneshot::Receiver<()>,
}

/// The answer of a call for the versionstamp, and what its commit knows of it.
fn stamp(
    answer: BoxFuture<'static, Result<Reply>>,
) -> (Stamp, impl Future<Output = Result<Reply>> + Send + 'static) {
    let (sender, given) = oneshot::channel();
    let answer = answer.shared();
    let call = answer.clone().map(move |answer| {
        drop(sender);
        answer
    });
    (Stamp { answer, given }, call)
}

/// The answer of a commit, after those of the versionstamps that it has decided: FoundationDB's client sends
/// them first.
async fn after(stamps: Vec<Stamp>, commit: BoxFuture<'static, Result<Reply>>) -> Result<Reply> {
    let committed = commit.await;
    for Stamp { answer, given } in stamps {
        if answer.now_or_never().is_some() {
            let _ = given.await;
        }
    }
    committed
}

/// The transactions of one database handle, wherever its session performs them.
pub struct Transactions<D: Database> {
    db: D,
    /// The error of a database option, which every later call returns.
    deferred: Result<()>,
    transactions: BTreeMap<TransactionId, Open<D::Transaction>>,
}

impl<D: Database> Transactions<D> {
    /// None yet.
    pub fn new(db: D) -> Transactions<D> {
        Transactions { db, deferred: Ok(()), transactions: BTreeMap::new() }
    }

    /// Performs a command.
    pub fn command(&mut self, command: Command) {
        match command {
            Command::SetDatabaseOption { code, value } => {
                let set = self.db.set_option_raw(code, value.as_deref());
                self.deferred = self.deferred.and(set);
            }
            Command::Create(id) => {
                // A database of this contract always creates one, and a call of one that is not there fails.
                if let Ok(tx) = self.db.create_transaction() {
                    self.transactions.insert(id, Open { tx, deferred: self.deferred, stamps: Vec::new() });
                }
            }
            Command::Transaction(id, action) => self.act(id, action),
            // The client ends with its session.
            Command::Close => {}
        }
    }

    fn act(&mut self, id: TransactionId, action: Action) {
        let Some(open) = self.transactions.get_mut(&id) else { return };
        let performed = perform(&open.tx, &action);
        match action {
            Action::Reset => {
                open.deferred = self.deferred;
                open.stamps.clear();
            }
            Action::Destroy => drop(self.transactions.remove(&id)),
            _ => open.deferred = open.deferred.and(performed),
        }
    }

    /// Issues a call: it takes effect now, and the future returns its answer.
    pub fn issue(&mut self, transaction: TransactionId, call: Call) -> BoxFuture<'static, Result<Reply>> {
        let refused = |error| Box::pin(std::future::ready(Err(error)));
        let Some(open) = self.transactions.get_mut(&transaction) else {
            return refused(Error::TRANSACTION_CANCELLED);
        };
        if matches!(call, Call::OnError(_)) {
            // It resets the transaction, and the error with it.
            open.deferred = self.deferred;
            open.stamps.clear();
        }
        if let Err(error) = open.deferred {
            return refused(error);
        }
        let (is_commit, is_stamp) = (matches!(call, Call::Commit), matches!(call, Call::GetVersionstamp));
        let answer = issue(&open.tx, call);
        if is_stamp {
            let (stamp, answer) = stamp(answer);
            open.stamps.push(stamp);
            return answer.boxed();
        }
        match is_commit && !open.stamps.is_empty() {
            true => after(std::mem::take(&mut open.stamps), answer).boxed(),
            false => answer,
        }
    }
}
