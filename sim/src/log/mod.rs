//! The transaction log: makes the versions of its generation durable, in order, and streams them to
//! storage servers.
//!
//! A push is acknowledged when its entry is durable. A log streams what is durable *locally*; other logs may
//! be late, so that a recovery can end the generation before a version that a storage server has already
//! applied, which must then be rolled back.

mod state;

pub use state::{LogDisk, Queue};

use crate::{
    chance,
    config::ClusterBug,
    ids::{Endpoint, Generation},
    net::Inbox,
    proto::{LogEntry, Message, Version},
    rt::Alarm,
    trace::Kind,
    world::World,
};
use std::{collections::VecDeque, future::poll_fn, sync::Arc, task::Poll};

/// A storage server that receives the stream, and the last version sent to it.
struct Subscriber {
    to: Endpoint,
    sent: Version,
}

/// Serves as a log of `generation`, whose store exists on `disk`.
pub async fn serve(
    world: Arc<World>,
    inbox: Inbox,
    disk: Arc<LogDisk>,
    generation: Generation,
    recovery_version: Version,
) {
    let node = inbox.endpoint().node;
    let early = world.config.cluster_bug == Some(ClusterBug::LogAnswersEarly);
    let tunables = world.tunables.machine(node);
    let mut rng = world.seed.run_stream(&format!("log {} {generation}", node.0));
    let mut queue = Queue::new(recovery_version);
    let mut subscribers: Vec<Subscriber> = Vec::new();
    let mut failure = Vec::new();
    let mut messages = VecDeque::new();
    let mut alarm = Alarm::default();
    let mut sync_ends = 0;
    poll_fn(|cx| {
        loop {
            let received = inbox.poll_drain(cx, &mut messages).is_ready();
            for envelope in messages.drain(..) {
                match envelope.message {
                    Message::Push { entry, reply } => queue.push(entry, Some(reply)),
                    Message::ConfirmRunning { reply } | Message::Ping { reply } => reply.send(()),
                    Message::WaitFailure { reply } => failure.push(reply),
                    Message::Subscribe { from, to } => {
                        subscribers.retain(|s| s.to.node != to.node);
                        let entries = disk.entries_after(generation, from);
                        let sent = entries.last().map_or(from, |entry| entry.version);
                        subscribers.push(Subscriber { to, sent });
                        if !entries.is_empty() {
                            world.net.send(node, to, Message::LogData { generation, entries });
                        }
                    }
                    Message::Pop { server, version } => disk.pop(generation, server, version),
                    _ => {}
                }
            }
            if early {
                queue.take_replies().for_each(|reply| reply.send(()));
            }
            let mut synced = false;
            if queue.is_syncing() && alarm.poll(&world.clock, sync_ends, cx) {
                synced = true;
                let mut entries: Vec<Arc<LogEntry>> = Vec::new();
                let now = world.clock.now();
                {
                    let mut history = world.history.lock();
                    for (entry, reply) in queue.end_sync() {
                        let transactions = entry.transactions.len() as u64;
                        world.trace.event(now, node, Kind::Logged, entry.version as u64, transactions);
                        history.log_durable(generation, node, &entry, now);
                        entries.push(entry);
                        if let Some(reply) = reply {
                            reply.send(());
                        }
                    }
                }
                disk.append(generation, entries.iter().cloned());
                stream(&world, inbox.endpoint(), generation, &mut subscribers, entries);
            }
            if queue.begin_sync() {
                synced = true;
                sync_ends = world.clock.now()
                    + chance::duration(&mut rng, &world.config.log_sync, |other| &other.log_sync)
                    + tunables.sync_delay();
            }
            if !received && !synced {
                return Poll::<()>::Pending;
            }
        }
    })
    .await
}

/// Sends newly durable entries to all subscribers.
fn stream(
    world: &World,
    from: Endpoint,
    generation: Generation,
    subscribers: &mut [Subscriber],
    entries: Vec<Arc<LogEntry>>,
) {
    let Some(last) = entries.last().map(|entry| entry.version) else { return };
    let mut entries = Some(entries);
    let count = subscribers.len();
    for (i, subscriber) in subscribers.iter_mut().enumerate() {
        let mine = if i + 1 == count { entries.take() } else { entries.clone() };
        let Some(mut mine) = mine else { return };
        if mine.first().is_some_and(|entry| entry.version <= subscriber.sent) {
            mine.retain(|entry| entry.version > subscriber.sent);
        }
        if !mine.is_empty() {
            world.net.send(from.node, subscriber.to, Message::LogData { generation, entries: mine });
        }
        subscriber.sent = subscriber.sent.max(last);
    }
}
