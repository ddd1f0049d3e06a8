//! Selectors and ranges: the transaction's own writes over the snapshot, conflict ranges, history.

use super::{
    conflict,
    guard::{Guard, Read, guard},
    limits::Limits,
    range::{Batch, Fetch, RangeRead, Step, key_of},
    selector::Selector,
    shared::Client,
    sizes,
    transaction::{Inner, SimTransaction, State},
    version::read_version,
    write::is_special,
    write_map::WriteMap,
};
use crate::{
    config::ClusterBug,
    history::Call,
    proto::{KeyRange, Version},
};
use bytes::Bytes;
use shaketable_tx::{Error, Isolation, KeySelector, KeyValue, RangeBatch, RangeOption, Result, key_after};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Weak},
};

/// How a read sees the transaction's own writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// It ignores them, and the client caches no result: read-your-writes is disabled.
    Bypass,
    /// It ignores them, but earlier reads are cached.
    Snapshot,
    /// As if they had been committed.
    Own,
}

impl State {
    /// How a read with this isolation sees the transaction's own writes.
    pub fn view(&self, client: &Client, isolation: Isolation) -> View {
        match isolation {
            _ if self.options.ryw_disabled => View::Bypass,
            Isolation::Snapshot
                if !self.options.snapshot_ryw() && !client.has(ClusterBug::ClientSeesOwnAtSnapshot) =>
            {
                View::Snapshot
            }
            _ => View::Own,
        }
    }
}

/// A selector or range read that has been issued.
struct Issued {
    inner: Weak<Inner>,
    client: Arc<Client>,
    epoch: u32,
    writes: Arc<WriteMap>,
    max: Bytes,
    call: usize,
    view: View,
    serializable: bool,
}

/// A read, and what makes a commit wait for it.
type Begun = (Issued, Guard);

impl Issued {
    /// The transaction, unless it was dropped, which ends its reads.
    fn inner(&self) -> Result<Arc<Inner>> {
        self.inner.upgrade().ok_or(Error::TRANSACTION_CANCELLED)
    }

    /// Runs a range read to its end, fetching what is not cached.
    async fn run(&self, mut read: RangeRead) -> Result<Batch> {
        loop {
            let step = {
                let inner = self.inner()?;
                let mut state = inner.state.lock();
                state.check(&self.client, self.epoch)?;
                read.advance((&state.cache, &self.writes))?
            };
            match step {
                Step::Done(batch) => return Ok(batch),
                Step::Fetch(fetch) => {
                    let mut batch = self.fetch(fetch).await?;
                    if self.has(ClusterBug::ClientBelievesBatches) {
                        batch.more = false;
                    }
                    let inner = self.inner()?;
                    let mut state = inner.state.lock();
                    state.check(&self.client, self.epoch)?;
                    read.fetched(&mut state.cache, batch);
                }
                Step::Resolve(selector) => {
                    read.resolved(self.key(selector).await?);
                }
            }
        }
    }

    /// The key of a selector, including the transaction's own writes. A range read may need one, and
    /// resolving it is a range read itself.
    fn key(&self, selector: Selector) -> Pin<Box<dyn Future<Output = Result<Bytes>> + Send + '_>> {
        Box::pin(async move {
            let forward = selector.offset > 0;
            let batch = self.run(RangeRead::of_key(selector, self.max.clone())).await?;
            Ok(key_of(&batch, forward, &self.max))
        })
    }

    fn has(&self, bug: ClusterBug) -> bool {
        self.client.has(bug)
    }

    async fn version(&self) -> Result<Version> {
        let version = {
            let inner = self.inner()?;
            let mut state = inner.state.lock();
            state.check(&self.client, self.epoch)?;
            read_version(&inner, &mut state, false)
        };
        version.get().await
    }

    async fn fetch(&self, fetch: Fetch) -> Result<Batch> {
        let round_trips = self.inner()?.state.lock().record.round_trips();
        let version = self.version().await?;
        let batch = self.client.connection.range(fetch, version).await?;
        let inner = self.inner()?;
        let mut state = inner.state.lock();
        if state.epoch == self.epoch {
            state.record.replied(round_trips);
            state.cost += sizes::read_cost(sizes::rows(&batch.rows) as usize);
        }
        Ok(batch)
    }

    /// Adds a conflict range of a read that bypassed the write map.
    fn read_through(&self, state: &mut State, range: KeyRange) {
        if self.serializable && range.begin < range.end {
            state.native.extra_reads.push(range);
        }
    }

    /// Ends the read: passes its result to `note`, or its error to the transaction.
    fn end<T>(&self, answer: Result<T>, note: impl FnOnce(&mut State, &T)) -> Result<T> {
        let inner = self.inner()?;
        let mut state = inner.state.lock();
        state.check(&self.client, self.epoch)?;
        match &answer {
            Ok(value) => note(&mut state, value),
            Err(e) => state.read_failed(*e),
        }
        answer
    }

    async fn get_key(self, guarded: Guard, selector: KeySelector) -> Result<Bytes> {
        let read = async {
            match self.view {
                View::Bypass => {
                    let version = self.version().await?;
                    self.client.connection.key(selector.clone(), version).await
                }
                _ => self.key(Selector::plain(&selector)).await,
            }
        };
        let found = guard(guarded, read).await;
        self.end(found, |state, key| match self.view {
            View::Bypass => self.read_through(state, conflict::of_key(&selector, key)),
            View::Own if self.serializable => {
                let mut range = conflict::of_key(&selector, key);
                if selector.offset > 0 && self.has(ClusterBug::ClientCutsSelector) {
                    range.end = key.clone();
                }
                state.size += conflict::add_read(&mut state.reads, &self.writes, range);
            }
            _ => {}
        })
        .map(|key| key.min(self.max.clone()))
        .inspect(|key| {
            if let Ok(inner) = self.inner() {
                inner.state.lock().record.key(self.call, key);
            }
        })
    }

    async fn get_range(
        self,
        guarded: Guard,
        begin: Selector,
        end: Selector,
        limits: Limits,
        reverse: bool,
    ) -> Result<RangeBatch> {
        let read = async {
            match self.view {
                View::Bypass => self.range_through(&begin, &end, limits, reverse).await,
                _ => {
                    let (begin, end) = (begin.clone(), end.clone());
                    self.run(RangeRead::new(begin, end, limits, reverse, self.max.clone())).await
                }
            }
        };
        let batch = guard(guarded, read).await;
        let batch = self.end(batch, |state, batch| {
            if self.view == View::Own && self.serializable {
                let mut range = conflict::of_range(&begin, &end, reverse, batch, &self.max);
                if let (false, Some(last), true) =
                    (reverse, batch.rows.last(), self.has(ClusterBug::ClientCutsConflict))
                {
                    range.end = key_after(&last.key);
                }
                state.size += conflict::add_read(&mut state.reads, &self.writes, range);
            }
            state.record.rows(self.call, &batch.rows, batch.more);
        })?;
        Ok(RangeBatch { rows: batch.rows, more: batch.more })
    }

    /// A range read with read-your-writes disabled.
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
            let key = self.client.connection.key(asked.clone(), version).await?;
            self.read_through(&mut self.inner()?.state.lock(), conflict::of_key(&asked, &key));
            end = Selector::first_at(key.min(self.max.clone()));
            if begin.offset >= end.offset && begin.key >= end.key {
                return Ok(Batch::default());
            }
        }
        let fetch = Fetch { begin: begin.clone(), end: end.clone(), limits, reverse };
        let mut batch = self.fetch(fetch).await?;
        let range = conflict::of_native_range(begin, &end, reverse, &batch);
        self.read_through(&mut self.inner()?.state.lock(), range);
        let beyond = batch.rows.last().is_some_and(|row| row.key >= self.max);
        if !reverse && beyond {
            batch.rows.retain(|row| row.key < self.max);
            batch.more = false;
        }
        Ok(batch)
    }
}

/// The writes, occasionally without those of one key, or without clears: planted bugs that judges must find.
fn lose_own_write(client: &Client, writes: &Arc<WriteMap>) -> Arc<WriteMap> {
    if client.has(ClusterBug::ClientReadsCleared) {
        let mut fewer = (**writes).clone();
        fewer.forget_clears();
        return Arc::new(fewer);
    }
    if client.connection.world.config.cluster_bug != Some(ClusterBug::ClientLosesOwnWrite)
        || writes.is_empty()
    {
        return writes.clone();
    }
    let lost = client.connection.draw(|chance| chance.chance(0.2).then(|| chance.u64()));
    let Some(which) = lost else { return writes.clone() };
    let mut fewer = (**writes).clone();
    fewer.forget_key(which);
    Arc::new(fewer)
}

impl SimTransaction {
    fn issue(&self, state: &mut State, call: Call, isolation: Isolation) -> Begun {
        state.has_read = true;
        let (view, own) = (state.view(&self.0.client, isolation), state.options.own_writes());
        let client = &self.0.client;
        let writes = match (view, &call) {
            (View::Own, Call::GetRange { .. }) => lose_own_write(client, &state.writes),
            (View::Own, _) => state.writes.clone(),
            _ => client.empty_writes.clone(),
        };
        let issued = Issued {
            inner: Arc::downgrade(&self.0),
            client: client.clone(),
            epoch: state.epoch,
            writes,
            max: state.max_read(),
            call: state.record.read(call, own),
            view,
            serializable: isolation == Isolation::Serializable,
        };
        (issued, Guard::of_read(&self.0, state))
    }

    pub(super) fn do_get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        let issued = self.issue_key(selector, isolation);
        let selector = selector.clone();
        let read = issued
            .map(|(issued, guarded)| Read::new(&self.0, issued.epoch, issued.get_key(guarded, selector)));
        async move { read?.await }
    }

    fn issue_key(&self, selector: &KeySelector, isolation: Isolation) -> Result<Begun> {
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
            (Ok(limits), true) => Range::Special(self.special_range(range, limits)),
            (Ok(limits), false) => match self.issue_range(range, isolation) {
                Ok(Some(((issued, guarded), begin, end))) => {
                    let epoch = issued.epoch;
                    let read = issued.get_range(guarded, begin, end, limits, reverse);
                    Range::Issued(Read::new(&self.0, epoch, read))
                }
                Ok(None) => Range::Ready(Ok(RangeBatch::default())),
                Err(e) => Range::Ready(Err(e)),
            },
        };
        async move {
            match work {
                Range::Ready(answer) => answer,
                Range::Special(special) => special.await,
                Range::Issued(read) => read.await,
            }
        }
    }

    /// Issues a range read; `None` if its selectors are inverted regardless of the keys.
    fn issue_range(
        &self,
        range: &RangeOption,
        isolation: Isolation,
    ) -> Result<Option<(Begun, Selector, Selector)>> {
        let mut state = self.0.state.lock();
        state.enter(&self.0.client)?;
        let max = state.max_read();
        if range.begin.key > max || range.end.key > max {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        let plain = |selector: &KeySelector| match self.0.client.has(ClusterBug::ClientForgetsEqual) {
            true => Selector { key: selector.key.clone(), ..Selector::plain(selector) },
            false => Selector::plain(selector),
        };
        let (begin, end) = (plain(&range.begin), plain(&range.end));
        let call = Call::GetRange {
            begin: range.begin.clone(),
            end: range.end.clone(),
            limit: range.limit.unwrap_or(0),
            reverse: range.reverse,
            isolation,
            answer: None,
        };
        if begin.offset >= end.offset && begin.key >= end.key {
            let own = state.options.own_writes();
            let call = state.record.read(call, own);
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
    Issued(Read<RangeBatch>),
}
