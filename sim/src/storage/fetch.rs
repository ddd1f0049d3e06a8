//! Taking over a shard: the rows of one version from a server that has them, everything later from
//! the logs.
//!
//! The version is the one that the fetching server has applied when it begins, so that the log
//! entries behind it are all still to come; they wait in the state until the rows are there. A fetch
//! that fails begins again at a newer version, from another source. It is over, and the data
//! distributor is told, once the rows are durable: only then may a source forget them.

use crate::{
    net::{Endpoint, NodeId, ReplyTo},
    proto::{KeyRange, Message, Version},
    rt::{MILLISECOND, Nanos, SECOND},
    world::World,
};
use futures::{
    StreamExt,
    future::{FutureExt, LocalBoxFuture},
    stream::FuturesUnordered,
};
use shaketable_layers::tx::{KeyValue, key_after};
use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
};

/// How long a fetch waits for a source's answer, and after how long one that failed is begun again.
const PATIENCE: Nanos = 2 * SECOND;
const RETRY: Nanos = 50 * MILLISECOND;

/// The shards that a server is to take over.
#[derive(Default)]
pub struct Fetches {
    wanted: BTreeMap<KeyRange, Wanted>,
    running: FuturesUnordered<LocalBoxFuture<'static, Fetched>>,
}

struct Wanted {
    sources: Vec<NodeId>,
    attempts: usize,
    /// When to begin the next attempt; `None` while one is under way or the rows are there.
    retry: Option<Nanos>,
    replies: Vec<ReplyTo<()>>,
}

/// How a fetch ended: the rows of a shard at a version, or nothing.
pub struct Fetched {
    /// The shard.
    pub range: KeyRange,
    /// The version.
    pub since: Version,
    /// Its rows; `None` when the source could not be read.
    pub rows: Option<Vec<KeyValue>>,
}

impl Fetches {
    /// The data distributor wants a shard to be taken over from one of these servers. A fetch is due
    /// at once, unless the shard was wanted already.
    pub fn want(&mut self, now: Nanos, range: KeyRange, sources: Vec<NodeId>, reply: ReplyTo<()>) {
        let none = || Wanted { sources: Vec::new(), attempts: 0, retry: Some(now), replies: Vec::new() };
        let wanted = self.wanted.entry(range).or_insert_with(none);
        wanted.sources = sources;
        wanted.replies.push(reply);
    }

    /// The shard is not wanted any more.
    pub fn forget(&mut self, range: &KeyRange) {
        self.wanted.remove(range);
    }

    /// A fetch has to begin again at once: what it had is gone.
    pub fn again(&mut self, now: Nanos, lost: impl Fn(&KeyRange) -> bool) {
        for (_, wanted) in self.wanted.iter_mut().filter(|(range, _)| lost(range)) {
            wanted.retry = Some(now);
        }
    }

    /// The shards whose fetch is to begin at `now`.
    pub fn take_due(&mut self, now: Nanos) -> Vec<KeyRange> {
        let due = self.wanted.iter_mut().filter(|(_, w)| w.retry.is_some_and(|at| at <= now));
        due.map(|(range, wanted)| {
            wanted.retry = None;
            range.clone()
        })
        .collect()
    }

    /// Begins a fetch of a wanted shard at version `since`.
    pub fn begin(&mut self, world: &Arc<World>, me: NodeId, range: KeyRange, since: Version) {
        let Some(wanted) = self.wanted.get_mut(&range) else { return };
        wanted.attempts += 1;
        let sources: Vec<Endpoint> = wanted.sources.iter().filter_map(|s| world.address(*s)).collect();
        let source = (!sources.is_empty()).then(|| sources[wanted.attempts % sources.len()]);
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

    /// A fetch that has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Option<Fetched> {
        match self.running.poll_next_unpin(cx) {
            Poll::Ready(fetched) => fetched,
            Poll::Pending => None,
        }
    }

    /// A fetch has failed at `now`.
    pub fn failed(&mut self, now: Nanos, range: &KeyRange) {
        if let Some(wanted) = self.wanted.get_mut(range) {
            wanted.retry = Some(now + RETRY);
        }
    }

    /// Answers the data distributor for every shard that `is_durable` says is safe.
    pub fn settle(&mut self, is_durable: impl Fn(&KeyRange) -> bool) {
        self.wanted.retain(|range, wanted| {
            let settled = is_durable(range);
            if settled {
                wanted.replies.drain(..).for_each(|reply| reply.send(()));
            }
            !settled
        });
    }

    /// When the next fetch is to begin.
    pub fn due(&self) -> Option<Nanos> {
        self.wanted.values().filter_map(|w| w.retry).min()
    }
}

/// Every row of a shard at a version, as its source answers it page by page.
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
            let wanted = Wanted { sources: Vec::new(), attempts: 1, retry: None, replies: Vec::new() };
            fetches.wanted.insert(range.clone(), wanted);
        }
        assert!(fetches.take_due(7).is_empty());
        fetches.again(7, |range| *range == lost);
        assert!(fetches.take_due(6).is_empty());
        assert_eq!(fetches.take_due(7), std::slice::from_ref(&lost));
        assert!(fetches.take_due(8).is_empty(), "each only once");
        fetches.settle(|range| *range == kept);
        fetches.again(9, |_| true);
        assert_eq!(fetches.take_due(9), [lost], "what is safe is not wanted any more");
    }
}
