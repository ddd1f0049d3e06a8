//! Watches: they read when they are set, are armed by the commit, and end when the value differs.

use super::{
    connection::{Connection, VersionFlags},
    database::Client,
    guard::{Guard, guard},
    keys::{METADATA_VERSION, max_write_key_size},
    transaction::SimTransaction,
    wakers::Wakers,
};
use crate::{
    faults::Family,
    proto::{KeyRange, Message, Version},
    rt::{MILLISECOND, SECOND},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use shaketable_layers::tx::{Error, Isolation, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Poll, Waker},
};

/// What a watch shares with its transaction.
pub struct WatchCell {
    key: Bytes,
    state: Mutex<WatchState>,
    /// The read that says what the transaction sees.
    read: Mutex<Option<Shared<BoxFuture<'static, ()>>>>,
}

#[derive(Default)]
struct WatchState {
    phase: Phase,
    /// What the transaction saw, once it has read.
    seen: Option<Option<Bytes>>,
    /// What it has written since the watch was set.
    own: Option<Option<Bytes>>,
    outstanding: Option<Outstanding>,
    waiting: Wakers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The commit has not happened.
    #[default]
    Set,
    /// It has: the value may differ from this version on.
    Armed(Option<Version>),
    /// The watch is over.
    Over(Result<()>),
}

/// One of the client's outstanding watches.
struct Outstanding(Arc<Client>);

impl Outstanding {
    fn new(client: &Arc<Client>) -> Result<Outstanding> {
        let most = client.defaults.lock().max_watches;
        if client.watches.fetch_add(1, Ordering::Relaxed) >= most {
            client.watches.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::TOO_MANY_WATCHES);
        }
        Ok(Outstanding(client.clone()))
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many watches a client has outstanding.
pub type Count = AtomicI64;

impl WatchCell {
    fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        if let Phase::Over(_) = state.phase {
            return;
        }
        state.phase = phase;
        let done = match phase {
            Phase::Over(_) => state.outstanding.take(),
            _ => None,
        };
        let woken = state.waiting.take();
        drop(state);
        drop(done);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends the watch with an error, unless it is over or armed.
    pub fn fail(&self, error: Error) {
        if self.state.lock().phase == Phase::Set {
            self.enter(Phase::Over(Err(error)));
        }
    }

    /// The commit has happened: at `version`, or without writing at the read version.
    pub fn arm(&self, version: Option<Version>) {
        let ready = { self.state.lock().seen.is_some() };
        if ready {
            self.enter(Phase::Armed(version));
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Over(_))
    }

    /// The transaction sees `value`.
    fn saw(&self, value: Option<Bytes>, client: &Arc<Client>) {
        let mut state = self.state.lock();
        let changed = state.own.as_ref().is_some_and(|own| *own != value);
        state.seen = Some(value);
        if changed {
            drop(state);
            return self.enter(Phase::Over(Ok(())));
        }
        match Outstanding::new(client) {
            Ok(outstanding) => state.outstanding = Some(outstanding),
            Err(e) => {
                drop(state);
                self.enter(Phase::Over(Err(e)));
            }
        }
    }

    /// The transaction writes the key: `None` when the outcome is not known yet.
    fn wrote(&self, value: Option<&Option<Bytes>>) {
        let mut state = self.state.lock();
        let differs =
            |known: &Option<Option<Bytes>>| known.as_ref().is_some_and(|known| Some(known) != value);
        if value.is_none() || differs(&state.own) || differs(&state.seen) {
            drop(state);
            return self.enter(Phase::Over(Ok(())));
        }
        state.own = value.cloned();
    }

    /// Waits for the read that the watch begins with, doing it if nobody else does.
    pub async fn read(&self) {
        let read = self.read.lock().clone();
        if let Some(read) = read {
            read.await;
            self.read.lock().take();
        }
    }

    /// Waits until the commit has armed it, or it is over.
    async fn armed(&self) -> Result<Phase> {
        self.read().await;
        let mut place = None;
        std::future::poll_fn(move |cx| {
            let mut state = self.state.lock();
            if state.phase != Phase::Set {
                return Poll::Ready(Ok(state.phase));
            }
            place = Some(state.waiting.register(place, cx));
            Poll::Pending
        })
        .await
    }
}

/// Own writes of `range` end the watches on its keys when they change what these see; `None` when it
/// is not known what the keys hold now.
pub fn trigger(watches: &mut Vec<Arc<WatchCell>>, range: &KeyRange, value: Option<&Option<Bytes>>) {
    if watches.is_empty() {
        return;
    }
    watches.iter().filter(|watch| range.contains(&watch.key)).for_each(|watch| watch.wrote(value));
    watches.retain(|watch| !watch.is_over());
}

impl SimTransaction {
    /// A watch on `key`.
    pub(super) fn do_watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
        match self.set_watch(key) {
            Ok(watch) => watch,
            Err(e) => std::future::ready(Err(e)).boxed(),
        }
    }

    fn set_watch(&self, key: &[u8]) -> Result<BoxFuture<'static, Result<()>>> {
        let mut state = self.0.state.lock();
        state.enter(&self.0.client)?;
        if state.options.ryw_disabled {
            return Err(Error::WATCHES_DISABLED);
        }
        if *key >= state.max_read()[..] && key != METADATA_VERSION {
            return Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        }
        if key.len() > max_write_key_size(key, state.options.raw_access) {
            return Err(Error::KEY_TOO_LARGE);
        }
        let cell = Arc::new(WatchCell {
            key: Bytes::copy_from_slice(key),
            state: Mutex::default(),
            read: Mutex::default(),
        });
        state.watches.push(cell.clone());
        let guarded = Guard::new(&self.0, state.epoch, false);
        drop(state);
        // The read and the watch must not keep the transaction alive: dropping it ends them.
        let value = self.weak_get(key, Isolation::Serializable);
        let (client, weak) = (self.0.client.clone(), Arc::downgrade(&cell));
        let read = async move {
            let value = value.await;
            let Some(cell) = weak.upgrade() else { return };
            match value {
                Ok(value) => cell.saw(value, &client),
                Err(e) => cell.enter(Phase::Over(Err(e))),
            }
        };
        *cell.read.lock() = Some(read.boxed().shared());
        let client = self.0.client.clone();
        Ok(async move {
            let cell = Watching(cell);
            let phase = match guard(guarded, cell.0.armed()).await {
                Ok(phase) => phase,
                Err(e) => match cell.0.state.lock().phase {
                    Phase::Set => Phase::Over(Err(e)),
                    phase => phase,
                },
            };
            match phase {
                Phase::Over(answer) => answer,
                Phase::Set => Err(Error::TRANSACTION_CANCELLED),
                Phase::Armed(version) => {
                    let value = cell.0.state.lock().seen.clone().flatten();
                    client.connection.watch(cell.0.key.clone(), value, version).await
                }
            }
        }
        .boxed())
    }
}

/// A watch somebody holds; it is no longer outstanding once it is let go.
struct Watching(Arc<WatchCell>);

impl Drop for Watching {
    fn drop(&mut self) {
        let done = self.0.state.lock().outstanding.take();
        drop(done);
    }
}

impl Connection {
    /// Waits until `key` differs from `value` at some version from `version` on.
    async fn watch(
        self: &Arc<Self>,
        key: Bytes,
        value: Option<Bytes>,
        version: Option<Version>,
    ) -> Result<()> {
        let faults = &self.world.faults;
        if self.strikes(Family::EarlyWatch) {
            self.sleep(faults.draw(Family::EarlyWatch, |chance| chance.below(SECOND))).await;
            return Ok(());
        }
        if self.strikes(Family::SpuriousWatch) {
            self.sleep(faults.draw(Family::SpuriousWatch, |chance| chance.below(SECOND))).await;
            return Err(Error::CLUSTER_VERSION_CHANGED);
        }
        let mut version = version.unwrap_or(1);
        loop {
            let request = |_: &crate::proto::Location, reply| Message::WatchValue {
                key: key.clone(),
                value: value.clone(),
                version,
                reply,
            };
            match self.read_from(&key, false, request).await {
                Ok(_) => break,
                Err(Error::PROCESS_BEHIND | Error::OPERATION_CANCELLED) => self.sleep(SECOND).await,
                // The version is no longer kept, or not there yet: what counts is the value from now on.
                Err(Error::TRANSACTION_TOO_OLD | Error::FUTURE_VERSION) => {
                    self.sleep(10 * MILLISECOND).await;
                    let flags = VersionFlags { lock_aware: true, ..VersionFlags::default() };
                    if let Ok(now) = self.read_version(flags).await {
                        version = version.max(now.version);
                    }
                }
                Err(e) => {
                    self.sleep(10 * MILLISECOND).await;
                    return Err(e);
                }
            }
        }
        if self.strikes(Family::LateWatch) {
            self.sleep(faults.draw(Family::LateWatch, |chance| chance.below(5 * SECOND))).await;
        }
        Ok(())
    }
}
