//! Fetching a shard: the rows at one version from a server that holds them, all later changes from the logs.
//!
//! The version is the last one that the fetching server has applied when it starts, so that all log entries
//! after it are still to arrive; they are buffered in the state until the rows are available. A fetch that
//! fails starts again at a newer version, from another source. It is finished, and reported to the data
//! distributor, once the rows are durable: only then may a source drop them.

use crate::{
    ids::{Endpoint, NodeId},
    proto::{KeyRange, Message, Version},
    reply::ReplyTo,
    rt::{MILLISECOND, Nanos, SECOND},
    world::World,
};
use futures::{
    StreamExt,
    future::{FutureExt, LocalBoxFuture},
    stream::FuturesUnordered,
};
use shaketable_tx::{KeyValue, key_after};
use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
};

/// How long a fetch waits for a source's reply, and when a failed fetch is started again.
const PATIENCE: Nanos = 2 * SECOND;
const RETRY: Nanos = 50 * MILLISECOND;

/// The shards that a server is to fetch.
#[derive(Default)]
pub struct Fetches {
    requested: BTreeMap<KeyRange, Requested>,
    running: FuturesUnordered<LocalBoxFuture<'static, Fetched>>,
}

struct Requested {
    sources: Vec<NodeId>,
    attempts: usize,
    /// When to start the next attempt; `None` while one is running or the rows are available.
    retry: Option<Nanos>,
    replies: Vec<ReplyTo<()>>,
}

/// The result of a fetch: the rows of a shard at a version, or none.
pub struct Fetched {
    /// The shard.
    pub range: KeyRange,
    /// The version.
    pub since: Version,
    /// Its rows; `None` if the source could not be read.
    pub rows: Option<Vec<KeyValue>>,
}

impl Fetches {
    /// Requests that a shard be fetched from one of these servers. A fetch is due immediately, unless the
    /// shard was requested before.
    pub fn request(&mut self, now: Nanos, range: KeyRange, sources: Vec<NodeId>, reply: ReplyTo<()>) {
        let none = || Requested { sources: Vec::new(), attempts: 0, retry: Some(now), replies: Vec::new() };
        let requested = self.requested.entry(range).or_insert_with(none);
        requested.sources = sources;
        requested.replies.push(reply);
    }

    /// Removes a shard that is no longer needed.
    pub fn forget(&mut self, range: &KeyRange) {
        self.requested.remove(range);
    }

    /// Makes the fetches of lost shards due again immediately.
    pub fn restart(&mut self, now: Nanos, lost: impl Fn(&KeyRange) -> bool) {
        for (_, requested) in self.requested.iter_mut().filter(|(range, _)| lost(range)) {
            requested.retry = Some(now);
        }
    }

    /// The shards whose fetch is due at `now`.
    pub fn take_due(&mut self, now: Nanos) -> Vec<KeyRange> {
        let due = self.requested.iter_mut().filter(|(_, r)| r.retry.is_some_and(|at| at <= now));
        due.map(|(range, requested)| {
            requested.retry = None;
            range.clone()
        })
        .collect()
    }

    /// Starts to fetch a requested shard at version `since`.
    pub fn begin(&mut self, world: &Arc<World>, me: NodeId, range: KeyRange, since: Version) {
        let Some(requested) = self.requested.get_mut(&range) else { return };
        requested.attempts += 1;
        let sources: Vec<Endpoint> = requested.sources.iter().filter_map(|s| world.address(*s)).collect();
        let source = (!sources.is_empty()).then(|| sources[requested.attempts % sources.len()]);
        let world = world.clone();
        let fetch = async move {
            let rows = match source {
                Some(source) => rows(&world, me, source, &range, since).await,
                None => None,
            };
            Fetched { range, since, rows }
        };
        self.running.push(fetch.boxed_local());
    }

    /// A finished fetch, if there is one.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Option<Fetched> {
        match self.running.poll_next_unpin(cx) {
            Poll::Ready(fetched) => fetched,
            Poll::Pending => None,
        }
    }

    /// Schedules another attempt after a fetch that failed at `now`.
    pub fn failed(&mut self, now: Nanos, range: &KeyRange) {
        if let Some(requested) = self.requested.get_mut(range) {
            requested.retry = Some(now + RETRY);
        }
    }

    /// Replies to the data distributor for every shard for which `is_durable` returns true.
    pub fn settle(&mut self, is_durable: impl Fn(&KeyRange) -> bool) {
        self.requested.retain(|range, requested| {
            let settled = is_durable(range);
            if settled {
                requested.replies.drain(..).for_each(|reply| reply.send(()));
            }
            !settled
        });
    }

    /// When the next fetch is due.
    pub fn due(&self) -> Option<Nanos> {
        self.requested.values().filter_map(|r| r.retry).min()
    }
}

/// Every row of a shard at a version, read from its source page by page.
async fn rows(
    world: &World,
    me: NodeId,
    source: Endpoint,
    shard: &KeyRange,
    version: Version,
) -> Option<Vec<KeyValue>> {
    let mut rows: Vec<KeyValue> = Vec::new();
    let mut range = shard.clone();
    loop {
        let (page, limit_bytes) = (range.clone(), world.config.reply_byte_limit);
        let ask = |reply| Message::GetKeyValues {
            range: page,
            version,
            limit: usize::MAX,
            limit_bytes,
            reverse: false,
            reply,
        };
        let reply = world.clock.timeout(PATIENCE, world.net.call(me, source, ask)).await?.ok()?.ok()?;
        rows.extend(reply.rows);
        match rows.last() {
            Some(last) if reply.more => range.begin = key_after(&last.key),
            _ => return Some(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_whose_rows_were_lost_begins_again_until_they_are_safe() {
        let shard =
            |begin: &'static str, end: &'static str| KeyRange { begin: begin.into(), end: end.into() };
        let (lost, kept) = (shard("a", "b"), shard("b", "c"));
        let mut fetches = Fetches::default();
        for range in [&lost, &kept] {
            let requested = Requested { sources: Vec::new(), attempts: 1, retry: None, replies: Vec::new() };
            fetches.requested.insert(range.clone(), requested);
        }
        assert!(fetches.take_due(7).is_empty());
        fetches.restart(7, |range| *range == lost);
        assert!(fetches.take_due(6).is_empty());
        assert_eq!(fetches.take_due(7), std::slice::from_ref(&lost));
        assert!(fetches.take_due(8).is_empty(), "each only once");
        fetches.settle(|range| *range == kept);
        fetches.restart(9, |_| true);
        assert_eq!(fetches.take_due(9), [lost], "what is safe is not wanted any more");
    }
}
