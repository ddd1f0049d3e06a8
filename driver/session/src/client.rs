//! A client of the simulated cluster: performs the commands and calls of one database handle.

use crate::{Call, CallId, Command, TransactionId, pending::PendingCalls, transactions::Transactions};
use futures::{StreamExt, channel::mpsc::UnboundedReceiver};
use shaketable_sim::{client::SimDatabase, rt};
use std::sync::Arc;

/// Work for a client.
pub enum Job {
    /// A command.
    Command(Command),
    /// A call.
    Call(CallId, TransactionId, Call),
}

/// Does the jobs of a client in order. Ends when no more can come.
pub async fn serve(
    db: SimDatabase,
    mut jobs: UnboundedReceiver<Job>,
    pending: Arc<PendingCalls>,
    clock: rt::Clock,
) {
    let mut transactions = Transactions::new(db);
    while let Some(job) = jobs.next().await {
        clock.asked();
        match job {
            Job::Command(command) => transactions.command(command),
            Job::Call(id, transaction, call) => {
                let answer = transactions.issue(transaction, call);
                let ends = pending.clone();
                pending.begun(id, rt::spawn_task(async move { ends.ended(id, answer.await) }));
            }
        }
    }
}
