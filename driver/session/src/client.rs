//! A client of the simulated cluster: performs the commands and calls of one database handle.

use crate::{
    Call, CallId, Command, TransactionId, pending::PendingCalls, threads::ThreadNumber,
    transactions::Transactions,
};
use futures::{StreamExt, channel::mpsc::UnboundedReceiver};
use shaketable_sim::{client::SimDatabase, history::Origin, rt};
use std::sync::Arc;

/// Work for a client.
pub enum Job {
    /// A command, and the thread that gave it, if it creates a transaction and this is known.
    Command(Command, Option<ThreadNumber>),
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
    let mut transactions = Transactions::new(db.clone());
    while let Some(job) = jobs.next().await {
        clock.asked();
        match job {
            Job::Command(command, thread) => {
                if let (Command::Create(TransactionId(transaction)), Some(ThreadNumber(thread))) =
                    (&command, thread)
                {
                    db.set_origin(Some(Origin { thread, transaction: *transaction }));
                }
                transactions.command(command);
            }
            Job::Call(id, transaction, call) => {
                let answer = transactions.issue(transaction, call);
                let ends = pending.clone();
                pending.begun(id, rt::spawn_task(async move { ends.ended(id, answer.await) }));
            }
        }
    }
}
