//! Point reads, selectors and ranges: own writes over the snapshot, conflict ranges, history.

use super::{
    conflict,
    database::Client,
    guard::{Guard, guard, guarded},
    keys::{METADATA_VERSION, max_key_size, single_key},
    limits::Limits,
    range::{Batch, Fetch, RangeRead, Step, key_of},
    selector::Selector,
    transaction::{Inner, SimTransaction, State},
    version::{Awaited, read_version},
    write::is_special,
    write_map::{Segment, Stack, WriteMap},
};
use crate::{
    config::Sabotage,
    history::Call,
    proto::{KeyRange, Version},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use shaketable_layers::tx::{Error, Isolation, KeySelector, KeyValue, RangeBatch, RangeOption, Result};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
};

/// A point read that has been issued.
pub enum Get {
    /// It is answered already.
    Ready(Result<Option<Bytes>>),
    /// The snapshot has to be asked.
    Asked(Box<Asked>),
}

/// A point read that waits for the snapshot.
pub struct Asked {
    inner: Weak<Inner>,
    client: Arc<Client>,
    epoch: u32,
    range: KeyRange,
    version: Awaited,
    /// Sent already, when the read version was known.
    sent: Option<BoxFuture<'static, Result<Option<Bytes>>>>,
    /// Operations to apply to what is found.
    stack: Stack,
    through: bool,
    conflict: bool,
    call: usize,
}

/// How a read sees own writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Not, and the client keeps nothing of it: read-your-writes is off.
    Through,
    /// Not, but what was read before is known.
    Snapshot,
    /// As if they had happened.
    Own,
}

impl State {
    fn view(&self, isolation: Isolation) -> View {
        match isolation {
            _ if self.options.ryw_disabled => View::Through,
            Isolation::Snapshot if !self.options.snapshot_ryw() => View::Snapshot,
            _ => View::Own,
        }
    }

    /// Adds the conflict range of a point read.
    fn read_key(&mut self, range: KeyRange) {
        self.size += super::sizes::range(range.begin.len(), range.end.len());
        self.reads.insert(range);
    }
}

/// Issues a point read.
fn issue_get(inner: &Arc<Inner>, key: &[u8], isolation: Isolation) -> Get {
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
    let call = state.record.call(Call::Get { key: range.begin.clone(), isolation, answer: None });
    let view = state.view(isolation);
    let mut conflict = serializable;
    let mut stack = Stack::Empty;
    let mut known = None;
    match view {
        View::Through => {
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
                conflict &= segment.reads_snapshot();
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
    let epoch = state.epoch;
    drop(state);
    let sent = match version {
        Awaited::Known(version) => {
            let value = inner.client.connection.value(range.begin.clone(), version);
            Some(Box::pin(value) as BoxFuture<'static, _>)
        }
        Awaited::Asked(_) => None,
    };
    Get::Asked(Box::new(Asked {
        inner: Arc::downgrade(inner),
        client: inner.client.clone(),
        epoch,
        range,
        version,
        sent,
        stack,
        through: view == View::Through,
        conflict,
        call,
    }))
}

impl Asked {
    async fn value(&mut self) -> Result<Option<Bytes>> {
        if let Some(sent) = self.sent.take() {
            return sent.await;
        }
        let version = std::mem::replace(&mut self.version, Awaited::Known(0)).get().await?;
        self.client.connection.value(self.range.begin.clone(), version).await
    }

    /// The answer, once it is there.
    async fn finish(mut self, reading: bool) -> Result<Option<Bytes>> {
        let guarded = Guard::weak(self.inner.clone(), self.epoch, reading);
        let answer = guard(guarded, self.value()).await;
        let inner = self.inner.upgrade().ok_or(Error::TRANSACTION_CANCELLED)?;
        let mut state = inner.state.lock();
        state.check(&inner.client, self.epoch)?;
        match answer {
            Ok(below) => {
                let value = self.stack.over(below.as_ref());
                state.record.value(self.call, &value);
                if !self.through {
                    state.cache.insert(self.range.begin.clone(), self.range.end.clone(), below);
                }
                if self.conflict {
                    state.read_key(self.range);
                }
                Ok(value)
            }
            Err(e) => {
                if reading {
                    state.read_failed(e);
                }
                Err(e)
            }
        }
    }
}

/// A selector or range read that has been issued.
struct Issued {
    inner: Arc<Inner>,
    epoch: u32,
    writes: Arc<WriteMap>,
    max: Bytes,
    call: usize,
    view: View,
    serializable: bool,
}

impl Issued {
    /// Runs a range read to its end over what is known, reading what is not.
    async fn run(&self, mut read: RangeRead) -> Result<Batch> {
        loop {
            let step = {
                let mut state = self.inner.state.lock();
                state.check(&self.inner.client, self.epoch)?;
                read.advance((&state.cache, &self.writes))?
            };
            match step {
                Step::Done(batch) => return Ok(batch),
                Step::Fetch(fetch) => {
                    let batch = self.fetch(fetch).await?;
                    let mut state = self.inner.state.lock();
                    state.check(&self.inner.client, self.epoch)?;
                    read.fetched(&mut state.cache, batch);
                }
                Step::Resolve(selector) => {
                    read.resolved(self.key(selector).await?);
                }
            }
        }
    }

    /// The key of a selector, own writes included. A range read may need one, and it is one itself.
    fn key(&self, selector: Selector) -> Pin<Box<dyn Future<Output = Result<Bytes>> + Send + '_>> {
        Box::pin(async move {
            let forward = selector.offset > 0;
            let batch = self.run(RangeRead::of_key(selector, self.max.clone())).await?;
            Ok(key_of(&batch, forward, &self.max))
        })
    }

    async fn version(&self) -> Result<Version> {
        let version = {
            let mut state = self.inner.state.lock();
            state.check(&self.inner.client, self.epoch)?;
            read_version(&self.inner, &mut state, false)
        };
        version.get().await
    }

    async fn fetch(&self, fetch: Fetch) -> Result<Batch> {
        let version = self.version().await?;
        self.inner.client.connection.range(fetch, version).await
    }

    /// Notes a conflict range of a read that went past the write map.
    fn read_through(&self, state: &mut State, range: KeyRange) {
        if self.serializable && range.begin < range.end {
            state.native.extra_reads.push(range);
        }
    }

    /// Ends the read: its answer goes through `note`, its error into the transaction.
    fn end<T>(&self, answer: Result<T>, note: impl FnOnce(&mut State, &T)) -> Result<T> {
        let mut state = self.inner.state.lock();
        state.check(&self.inner.client, self.epoch)?;
        match &answer {
            Ok(value) => note(&mut state, value),
            Err(e) => state.read_failed(*e),
        }
        answer
    }

    async fn get_key(self, selector: KeySelector) -> Result<Bytes> {
        let read = async {
            match self.view {
                View::Through => {
                    let version = self.version().await?;
                    self.inner.client.connection.key(selector.clone(), version).await
                }
                _ => self.key(Selector::plain(&selector)).await,
            }
        };
        let found = guarded(&self.inner, self.epoch, true, read).await;
        self.end(found, |state, key| match self.view {
            View::Through => self.read_through(state, conflict::of_key(&selector, key)),
            View::Own if self.serializable => {
                let range = conflict::of_key(&selector, key);
                state.size += conflict::add_read(&mut state.reads, &self.writes, range);
            }
            _ => {}
        })
        .map(|key| key.min(self.max.clone()))
        .inspect(|key| {
            self.inner.state.lock().record.key(self.call, key);
        })
    }

    async fn get_range(
        self,
        begin: Selector,
        end: Selector,
        limits: Limits,
        reverse: bool,
    ) -> Result<RangeBatch> {
        let read = async {
            match self.view {
                View::Through => self.range_through(&begin, &end, limits, reverse).await,
                _ => {
                    let (begin, end) = (begin.clone(), end.clone());
                    self.run(RangeRead::new(begin, end, limits, reverse, self.max.clone())).await
                }
            }
        };
        let batch = guarded(&self.inner, self.epoch, true, read).await;
        let batch = self.end(batch, |state, batch| {
            if self.view == View::Own && self.serializable {
                let range = conflict::of_range(&begin, &end, reverse, batch, &self.max);
                state.size += conflict::add_read(&mut state.reads, &self.writes, range);
            }
            state.record.rows(self.call, &batch.rows, batch.more);
        })?;
        Ok(RangeBatch { rows: batch.rows, more: batch.more })
    }

    /// A range read while read-your-writes is off.
    async fn range_through(
        &self,
        begin: &Selector,
        end: &Selector,
        limits: Limits,
        reverse: bool,
    ) -> Result<Batch> {
        let mut end = end.clone();
        if reverse && end.offset > 1 {
            let version = self.version().await?;
            let asked = KeySelector { key: end.key.clone(), or_equal: false, offset: end.offset };
            let key = self.inner.client.connection.key(asked.clone(), version).await?;
            self.read_through(&mut self.inner.state.lock(), conflict::of_key(&asked, &key));
            end = Selector::first_at(key.min(self.max.clone()));
            if begin.offset >= end.offset && begin.key >= end.key {
                return Ok(Batch::default());
            }
        }
        let fetch = Fetch { begin: begin.clone(), end: end.clone(), limits, reverse };
        let mut batch = self.fetch(fetch).await?;
        let range = conflict::of_native_range(begin, &end, reverse, &batch);
        self.read_through(&mut self.inner.state.lock(), range);
        let beyond = batch.rows.last().is_some_and(|row| row.key >= self.max);
        if !reverse && beyond {
            batch.rows.retain(|row| row.key < self.max);
            batch.more = false;
        }
        Ok(batch)
    }
}

/// The writes without one key's, now and then: the defect that judges must find.
fn lose_own_write(client: &Client, writes: &Arc<WriteMap>) -> Arc<WriteMap> {
    if client.connection.world.config.sabotage != Some(Sabotage::ClientLosesOwnWrite) || writes.is_empty() {
        return writes.clone();
    }
    let lost = client.connection.draw(|chance| chance.chance(0.2).then(|| chance.u64()));
    let Some(which) = lost else { return writes.clone() };
    let mut fewer = (**writes).clone();
    fewer.forget_key(which);
    Arc::new(fewer)
}

impl SimTransaction {
    fn issue(&self, state: &mut State, call: Call, isolation: Isolation) -> Issued {
        state.has_read = true;
        let view = state.view(isolation);
        let client = &self.0.client;
        let writes = match (view, &call) {
            (View::Own, Call::GetRange { .. }) => lose_own_write(client, &state.writes),
            (View::Own, _) => state.writes.clone(),
            _ => client.empty_writes.clone(),
        };
        Issued {
            inner: self.0.clone(),
            epoch: state.epoch,
            writes,
            max: state.max_read(),
            call: state.record.call(call),
            view,
            serializable: isolation == Isolation::Serializable,
        }
    }

    pub(super) fn do_get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let special = is_special(key).then(|| self.special_get(key));
        let get = match special {
            Some(_) => None,
            None => Some(issue_get(&self.0, key, isolation)),
        };
        async move {
            match (get, special) {
                (Some(Get::Ready(answer)), _) => answer,
                (Some(Get::Asked(asked)), _) => asked.finish(true).await,
                (None, Some(special)) => special.await,
                (None, None) => Ok(None),
            }
        }
    }

    /// A read that ends when the transaction is dropped and does not make its commit fail.
    pub(super) fn weak_get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let get = issue_get(&self.0, key, isolation);
        async move {
            match get {
                Get::Ready(answer) => answer,
                Get::Asked(asked) => asked.finish(false).await,
            }
        }
    }

    pub(super) fn do_get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        let issued = self.issue_key(selector, isolation);
        let selector = selector.clone();
        async move { issued?.get_key(selector).await }
    }

    fn issue_key(&self, selector: &KeySelector, isolation: Isolation) -> Result<Issued> {
        let mut state = self.0.state.lock();
        state.enter(&self.0.client)?;
        if selector.key > state.max_read() {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let call = Call::GetKey { selector: selector.clone(), isolation, answer: None };
        Ok(self.issue(&mut state, call, isolation))
    }

    pub(super) fn do_get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        let limits = Limits::of(range, iteration);
        let (begin, end) = (&range.begin.key, &range.end.key);
        let special = is_special(begin) && *end >= super::keys::ALL_END && *end <= super::keys::SPECIAL_END;
        let reverse = range.reverse;
        let work = match (limits, special) {
            (Err(e), _) => Range::Ready(Err(e)),
            (Ok(limits), true) => Range::Special(Box::pin(self.special_range(range, limits))),
            (Ok(limits), false) => match self.issue_range(range, isolation) {
                Ok(Some((issued, begin, end))) => Range::Issued(issued, begin, end, limits),
                Ok(None) => Range::Ready(Ok(RangeBatch::default())),
                Err(e) => Range::Ready(Err(e)),
            },
        };
        async move {
            match work {
                Range::Ready(answer) => answer,
                Range::Special(special) => special.await,
                Range::Issued(issued, begin, end, limits) => {
                    issued.get_range(begin, end, limits, reverse).await
                }
            }
        }
    }

    /// Issues a range read; `None` when its selectors are inverted whatever the keys are.
    fn issue_range(
        &self,
        range: &RangeOption,
        isolation: Isolation,
    ) -> Result<Option<(Issued, Selector, Selector)>> {
        let mut state = self.0.state.lock();
        state.enter(&self.0.client)?;
        let max = state.max_read();
        if range.begin.key > max || range.end.key > max {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let (begin, end) = (Selector::plain(&range.begin), Selector::plain(&range.end));
        let call = Call::GetRange {
            begin: range.begin.clone(),
            end: range.end.clone(),
            limit: range.limit.unwrap_or(0),
            reverse: range.reverse,
            isolation,
            answer: None,
        };
        if begin.offset >= end.offset && begin.key >= end.key {
            let call = state.record.call(call);
            state.record.rows(call, &[] as &[KeyValue], false);
            return Ok(None);
        }
        let issued = self.issue(&mut state, call, isolation);
        Ok(Some((issued, begin, end)))
    }
}

enum Range {
    Ready(Result<RangeBatch>),
    Special(Pin<Box<dyn Future<Output = Result<RangeBatch>> + Send>>),
    Issued(Issued, Selector, Selector, Limits),
}
