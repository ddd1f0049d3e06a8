//! The commit proxy: processes batches of transactions in a pipeline, several at a time, and serves key
//! locations.
//!
//! A batch gets its version from the sequencer and its resolutions from the resolvers, becomes durable on
//! every log, is reported as committed to the sequencer, and is replied to: in that order, so that a commit
//! reported to a client is durable and visible at every read version requested afterwards. If one of these
//! steps fails, the chain of versions has a gap: the proxy ends, and with it the generation.

mod state;

pub use state::{combine, logged, stamp};

use crate::{
    batcher::Batcher,
    config::ClusterBug,
    data_distribution,
    database_lock::effect,
    ids::NodeId,
    net::{Broken, Inbox, ReplyTo},
    proto::{
        CommitData, CommitReply, LogEntry, LoggedTransaction, Message, Resolution, TransactionSystem, Version,
    },
    rt::{Alarm, MILLISECOND, Nanos},
    trace::Kind,
    world::World,
};
use futures::{StreamExt, stream::FuturesUnordered};
use shaketable_tx::{Error, Result};
use std::{cell::Cell, collections::VecDeque, future::poll_fn, sync::Arc, task::Poll};

/// How soon an empty batch follows the last transaction, so that logs and storage servers learn that it is
/// committed.
const SETTLE: Nanos = 100 * MILLISECOND;
/// How often an idle proxy sends an empty batch (`MAX_COMMIT_BATCH_INTERVAL`).
const IDLE: Nanos = 2_000 * MILLISECOND;

struct Request {
    data: Arc<CommitData>,
    reply: ReplyTo<Result<CommitReply>>,
}

struct Proxy {
    world: Arc<World>,
    node: NodeId,
    system: Arc<TransactionSystem>,
    /// The highest version of this proxy that is durable on every log.
    committed: Cell<Version>,
}

/// Serves as a commit proxy of a generation, until a step of a batch fails.
pub async fn serve(world: Arc<World>, inbox: Inbox, system: Arc<TransactionSystem>) {
    let config = &world.config;
    let most = config.commit_batch_max.min(32_768);
    let proxy = Proxy {
        world: world.clone(),
        node: inbox.endpoint().node,
        committed: Cell::new(system.recovery_version),
        system,
    };
    let mut batcher = Batcher::<Request>::new(config.commit_batch_interval, most);
    let mut flights = FuturesUnordered::new();
    let mut failure = Vec::new();
    let mut messages = VecDeque::new();
    let mut alarm = Alarm::default();
    let mut idle_at = world.clock.now() + IDLE;
    poll_fn(|cx| {
        loop {
            let mut progress = inbox.poll_drain(cx, &mut messages).is_ready();
            for envelope in messages.drain(..) {
                match envelope.message {
                    Message::Commit { data, reply } => {
                        batcher.add(world.clock.now(), Request { data, reply });
                    }
                    Message::GetKeyLocations { range, limit, reverse, reply } => {
                        reply.send(data_distribution::locations(&world, &range, limit, reverse));
                    }
                    Message::Ping { reply } => reply.send(()),
                    Message::WaitFailure { reply } => failure.push(reply),
                    _ => {}
                }
            }
            if alarm.poll(&world.clock, batcher.due().unwrap_or(idle_at), cx) {
                let batch = batcher.take();
                idle_at = world.clock.now() + if batch.is_empty() { IDLE } else { SETTLE };
                flights.push(proxy.commit(batch));
                progress = true;
            }
            while let Poll::Ready(Some(done)) = flights.poll_next_unpin(cx) {
                progress = true;
                if let Err(Broken) = done {
                    return Poll::Ready(());
                }
            }
            if !progress {
                return Poll::Pending;
            }
        }
    })
    .await
}

impl Proxy {
    /// Processes one batch in the pipeline.
    async fn commit(&self, batch: Vec<Request>) -> std::result::Result<(), Broken> {
        let (net, node, system) = (&self.world.net, self.node, &self.system);
        let (previous, version) =
            net.call(node, system.sequencer, |reply| Message::GetCommitVersion { reply }).await?;
        self.world.event(node, Kind::Batch, version as u64, batch.len() as u64);

        let (mut transactions, mut replies) =
            (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for (i, Request { mut data, reply }) in batch.into_iter().enumerate() {
            stamp(&mut data, version, self.index(i), !self.world.has(ClusterBug::ProxyLeavesStampedKeys));
            transactions.push(data);
            replies.push(reply);
        }
        let transactions = Arc::new(transactions);
        let (lock, ended) = (&self.world.lock, system.recovery_version);
        let changes_lock = transactions.iter().flat_map(|data| &data.mutations).any(|m| effect(m).is_some());
        if changes_lock {
            lock.announce(ended, version);
        }
        let resolutions = self.resolve(previous, version, &transactions).await?;

        let locked = self.world.tunables.locked() || lock.locked_before(ended, version).await;
        let accepted: Vec<_> = transactions
            .iter()
            .zip(&resolutions)
            .enumerate()
            .filter(|(_, (data, resolution))| {
                **resolution == Resolution::Committed && (!locked || data.lock_aware)
            })
            .map(|(i, (data, _))| logged(data, version, i as u16))
            .collect();
        let accepted = self.planted(accepted);
        if changes_lock {
            let mutations = accepted.iter().flat_map(|transaction| &transaction.mutations);
            lock.resolve(ended, version, mutations.filter_map(effect).last());
        }
        let known_committed = self.committed.get();
        let entry = Arc::new(LogEntry { previous, version, known_committed, transactions: accepted });
        let pushes: Vec<_> = system
            .logs
            .iter()
            .map(|log| net.call(node, *log, |reply| Message::Push { entry: entry.clone(), reply }))
            .collect();
        for durable in pushes {
            durable.await?;
        }
        self.committed.set(version.max(known_committed.max(self.committed.get())));
        net.call(node, system.sequencer, |reply| Message::ReportCommitted { version, reply }).await?;

        let mut accepted = 0;
        for (i, ((reply, resolution), data)) in
            replies.into_iter().zip(resolutions).zip(&*transactions).enumerate()
        {
            reply.send(match resolution {
                Resolution::Committed if locked && !data.lock_aware => Err(Error::DATABASE_LOCKED),
                Resolution::Committed => {
                    accepted += 1;
                    let i = if self.world.has(ClusterBug::ProxyMiscounts) { accepted - 1 } else { i };
                    Ok(CommitReply::Committed { version, batch_index: self.index(i) })
                }
                Resolution::Conflict(ranges) => Ok(CommitReply::Conflict(ranges)),
                Resolution::TooOld => Err(Error::TRANSACTION_TOO_OLD),
            });
        }
        Ok(())
    }

    async fn resolve(
        &self,
        previous: Version,
        version: Version,
        transactions: &Arc<Vec<Arc<CommitData>>>,
    ) -> std::result::Result<Vec<Resolution>, Broken> {
        let ask =
            |reply| Message::ResolveBatch { previous, version, transactions: transactions.clone(), reply };
        let asked: Vec<_> = self
            .system
            .resolvers
            .iter()
            .map(|resolver| self.world.net.call(self.node, *resolver, ask))
            .collect();
        let mut all: Option<Vec<Resolution>> = None;
        for resolutions in asked {
            let resolutions = resolutions.await?;
            if all.is_some() && self.world.has(ClusterBug::ProxyAsksOneResolver) {
                continue;
            }
            all = Some(match all {
                None => resolutions,
                Some(all) => {
                    all.into_iter().zip(resolutions).map(|(a, b)| combine([a, b].into_iter())).collect()
                }
            });
        }
        Ok(all.unwrap_or_default())
    }

    /// The accepted transactions of a batch, as a proxy with a planted bug logs them.
    fn planted(&self, mut accepted: Vec<LoggedTransaction>) -> Vec<LoggedTransaction> {
        match self.world.config.cluster_bug {
            Some(ClusterBug::ProxyReordersBatch) => accepted.reverse(),
            Some(ClusterBug::ProxyCutsTransactions) => {
                accepted.iter_mut().for_each(|transaction| transaction.mutations.truncate(8));
            }
            _ => {}
        }
        accepted
    }

    /// The position in the batch that a transaction's versionstamp contains.
    fn index(&self, i: usize) -> u16 {
        match self.world.config.cluster_bug {
            Some(ClusterBug::VersionstampRepeats) => i as u16 & !1,
            _ => i as u16,
        }
    }
}
