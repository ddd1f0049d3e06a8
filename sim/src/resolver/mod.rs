//! The resolver: decides, batch by batch in version order, which transactions may commit.

mod state;

pub use state::ConflictSet;

use crate::{
    config::ClusterBug,
    net::{Inbox, ReplyTo},
    proto::{CommitData, KeyRange, Message, Resolution, Version},
    world::World,
};
use std::sync::Arc;

struct Batch {
    previous: Version,
    version: Version,
    transactions: Arc<Vec<Arc<CommitData>>>,
    reply: ReplyTo<Vec<Resolution>>,
}

/// Serves as a resolver of the generation that follows `recovery_version`.
pub async fn serve(world: Arc<World>, inbox: Inbox, share: KeyRange, recovery_version: Version) {
    // Nothing was committed between the recovery version and this generation's first batch.
    let mut set = ConflictSet::new(share, recovery_version);
    set.bug = world.config.cluster_bug;
    let mut last = recovery_version;
    let mut early: Vec<Batch> = Vec::new();
    let mut failure = Vec::new();
    loop {
        let mut next = match inbox.recv().await.message {
            Message::ResolveBatch { previous, version, transactions, reply } => {
                Batch { previous, version, transactions, reply }
            }
            Message::Ping { reply } => {
                reply.send(());
                continue;
            }
            Message::WaitFailure { reply } => {
                failure.push(reply);
                continue;
            }
            _ => continue,
        };
        loop {
            if next.previous != last && !world.has(ClusterBug::ResolverIgnoresOrder) {
                early.push(next);
                break;
            }
            last = last.max(next.version);
            let oldest = last.saturating_sub(world.tunables.window());
            next.reply.send(set.resolve(next.version, oldest, &next.transactions));
            match early.iter().position(|batch| batch.previous == last) {
                Some(found) => next = early.swap_remove(found),
                None => break,
            }
        }
    }
}
