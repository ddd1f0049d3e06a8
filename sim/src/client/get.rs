//! Point reads: answered from the transaction's own writes without a request, otherwise from the snapshot.

use super::{
    guard::{Guard, guard},
    keys::{METADATA_VERSION, max_key_size, single_key},
    read::View,
    shared::Client,
    sizes,
    transaction::{Inner, SimTransaction, State},
    version::{Awaited, read_version},
    write::is_special,
    write_map::{Segment, Stack},
};
use crate::{config::ClusterBug, history::Call, proto::KeyRange};
use bytes::Bytes;
use futures::future::BoxFuture;
use shaketable_tx::{Error, Isolation, Result};
use std::{
    future::Future,
    sync::{Arc, Weak},
};

/// A point read that has been issued.
enum Get {
    /// The result is already known.
    Ready(Result<Option<Bytes>>),
    /// The snapshot must be read.
    Asked(Box<Asked>, Guard),
}

/// A point read that waits for the snapshot.
struct Asked {
    inner: Weak<Inner>,
    client: Arc<Client>,
    epoch: u32,
    range: KeyRange,
    version: Awaited,
    /// The request that was already sent, if the read version was known.
    sent: Option<BoxFuture<'static, Result<Option<Bytes>>>>,
    /// Operations to apply to the value found.
    stack: Stack,
    through: bool,
    conflict: bool,
    call: usize,
    round_trips: u32,
}

impl State {
    /// Adds the conflict range of a point read.
    fn read_key(&mut self, range: KeyRange) {
        self.size += sizes::range(range.begin.len(), range.end.len());
        self.reads.insert(range);
    }
}

/// Issues a point read, which a commit waits for or not.
fn issue_get(inner: &Arc<Inner>, key: &[u8], isolation: Isolation, is_read: bool) -> Get {
    let mut state = inner.state.lock();
    if let Err(e) = state.enter(&inner.client) {
        return Get::Ready(Err(e));
    }
    if *key >= state.max_read()[..] && key != METADATA_VERSION {
        return Get::Ready(Err(Error::KEY_OUTSIDE_LEGAL_RANGE));
    }
    if key.len() > max_key_size(key) {
        return Get::Ready(Ok(None));
    }
    state.has_read = true;
    let range = single_key(key);
    let serializable = isolation == Isolation::Serializable;
    let call = Call::Get { key: range.begin.clone(), isolation, answer: None };
    let own = state.options.own_writes();
    let call = state.record.read(call, own);
    let view = state.view(&inner.client, isolation);
    let mut conflict = serializable;
    let mut stack = Stack::Empty;
    let mut known = None;
    match view {
        View::Bypass => {
            if serializable {
                state.native.read_ranges.push(range.clone());
            }
            conflict = false;
        }
        View::Snapshot => known = state.cache.get(key).map(|value| value.cloned()),
        View::Own => {
            if !state.writes.is_untouched() {
                let segment = state.writes.cursor_at(key);
                if segment.is_unreadable() && !state.options.bypass_unreadable {
                    state.read_failed(Error::ACCESSED_UNREADABLE);
                    return Get::Ready(Err(Error::ACCESSED_UNREADABLE));
                }
                conflict &= segment.reads_snapshot()
                    && !(segment.is_operation() && inner.client.has(ClusterBug::ClientTrustsAtomics));
                match segment.segment() {
                    Segment::Cleared => known = Some(None),
                    Segment::Independent => known = Some(segment.stack().over(None)),
                    Segment::Dependent => stack = segment.stack().clone(),
                    Segment::Unmodified => {}
                }
            }
            if known.is_none() {
                known = state.cache.get(key).map(|value| stack.over(value));
            }
        }
    }
    if let Some(value) = known {
        if conflict {
            state.read_key(range);
        }
        state.record.value(call, &value);
        return Get::Ready(Ok(value));
    }
    let version = read_version(inner, &mut state, false);
    let (epoch, round_trips) = (state.epoch, state.record.round_trips());
    let guarded = match is_read {
        true => Guard::of_read(inner, &mut state),
        false => Guard::new(inner, epoch),
    };
    drop(state);
    let sent = match version {
        Awaited::Known(version) => {
            let value = inner.client.connection.value(range.begin.clone(), version);
            Some(Box::pin(value) as BoxFuture<'static, _>)
        }
        Awaited::Requested(_) => None,
    };
    let asked = Box::new(Asked {
        inner: Arc::downgrade(inner),
        client: inner.client.clone(),
        epoch,
        range,
        version,
        sent,
        stack,
        through: view == View::Bypass,
        conflict,
        call,
        round_trips,
    });
    Get::Asked(asked, guarded)
}

impl Asked {
    async fn value(&mut self) -> Result<Option<Bytes>> {
        if let Some(sent) = self.sent.take() {
            return sent.await;
        }
        let version = std::mem::replace(&mut self.version, Awaited::Known(0)).get().await?;
        self.client.connection.value(self.range.begin.clone(), version).await
    }

    /// Awaits the result.
    async fn finish(mut self, guarded: Guard) -> Result<Option<Bytes>> {
        let is_read = guarded.is_read();
        let answer = guard(guarded, self.value()).await;
        let inner = self.inner.upgrade().ok_or(Error::TRANSACTION_CANCELLED)?;
        let mut state = inner.state.lock();
        state.check(&inner.client, self.epoch)?;
        match answer {
            Ok(below) => {
                let value = self.stack.over(below.as_ref());
                state.record.value(self.call, &value);
                state.record.replied(self.round_trips);
                let found = below.as_ref().map_or(0, Bytes::len);
                state.cost += sizes::read_cost(self.range.begin.len() + found);
                if !self.through {
                    state.cache.insert(self.range.begin.clone(), self.range.end.clone(), below);
                }
                if self.conflict {
                    state.read_key(self.range);
                }
                Ok(value)
            }
            Err(e) => {
                if is_read {
                    state.read_failed(e);
                }
                Err(e)
            }
        }
    }
}

impl SimTransaction {
    pub(super) fn do_get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let special = is_special(key).then(|| self.special_get(key));
        let get = match special {
            Some(_) => None,
            None => Some(issue_get(&self.0, key, isolation, true)),
        };
        async move {
            match (get, special) {
                (Some(Get::Ready(answer)), _) => answer,
                (Some(Get::Asked(asked, guarded)), _) => asked.finish(guarded).await,
                (None, Some(special)) => special.await,
                (None, None) => Ok(None),
            }
        }
    }

    /// A read that ends when the transaction is dropped, and does not make its commit fail.
    pub(super) fn weak_get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let get = issue_get(&self.0, key, isolation, false);
        async move {
            match get {
                Get::Ready(answer) => answer,
                Get::Asked(asked, guarded) => asked.finish(guarded).await,
            }
        }
    }
}
