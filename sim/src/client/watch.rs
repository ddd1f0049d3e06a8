//! Watches: they read their key when they are set, are armed by the commit, and end when the value differs.
//!
//! An armed watch waits in its own task, on the machine that committed: a change is noticed even if the
//! watch's future is polled late. The task ends with that future, and with its machine.

use super::{
    connection::{Connection, VersionFlags},
    database::Client,
    keys::{METADATA_VERSION, max_write_key_size},
    transaction::{SimTransaction, State},
    wakers::Wakers,
};
use crate::{
    config::ClusterBug,
    faults::Family,
    proto::{KeyRange, Message, Version},
    rt::{self, MILLISECOND, SECOND, Task},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, Shared, select},
};
use parking_lot::Mutex;
use shaketable_tx::{Error, Isolation, Result};
use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Poll, Waker},
};

/// The state that a watch shares with its transaction.
pub struct WatchCell {
    key: Bytes,
    state: Mutex<WatchState>,
    /// The read of the value that the transaction sees.
    read: Mutex<Option<Shared<BoxFuture<'static, ()>>>>,
}

#[derive(Default)]
struct WatchState {
    phase: Phase,
    /// The value that the transaction saw, once it has read the key.
    seen: Option<Option<Bytes>>,
    /// The value that it has written since the watch was set.
    own: Option<Option<Bytes>>,
    outstanding: Option<Outstanding>,
    waiting: Wakers,
}

#[derive(Default)]
enum Phase {
    /// The commit has not happened yet.
    #[default]
    Set,
    /// The commit has happened: a task waits for the value to differ, whether or not the watch's future is
    /// polled.
    Armed(#[expect(dead_code, reason = "dropping it ends the task")] Task),
    /// The watch has ended.
    Over(Result<()>),
}

/// A slot among the client's outstanding watches.
struct Outstanding(Arc<Client>);

impl Outstanding {
    fn new(client: &Arc<Client>) -> Result<Outstanding> {
        let more = i64::from(client.has(ClusterBug::ClientCountsWatches));
        let most = client.defaults.lock().max_watches + more;
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

/// The number of outstanding watches of a client.
pub type Count = AtomicI64;

impl WatchCell {
    /// Ends the watch with `answer`, unless it has ended.
    fn end(&self, answer: Result<()>) {
        let mut state = self.state.lock();
        if let Phase::Over(_) = state.phase {
            return;
        }
        let before = std::mem::replace(&mut state.phase, Phase::Over(answer));
        let done = state.outstanding.take();
        let woken = state.waiting.take();
        drop(state);
        drop((before, done));
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends the watch with an error, unless it has ended or is armed.
    pub fn fail(&self, error: Error) {
        let is_set = matches!(self.state.lock().phase, Phase::Set);
        if is_set {
            self.end(Err(error));
        }
    }

    /// The commit has happened at `version`, or, for a read-only transaction, at the read version: from now
    /// on, the cluster watches the key.
    pub fn arm(self: &Arc<Self>, connection: &Arc<Connection>, version: Option<Version>) {
        let mut state = self.state.lock();
        let (Phase::Set, Some(seen)) = (&state.phase, &state.seen) else { return };
        let (key, seen) = (self.key.clone(), seen.clone());
        let (connection, cell) = (connection.clone(), Arc::downgrade(self));
        state.phase = Phase::Armed(rt::spawn_task(async move {
            let answer = connection.watch(key, seen, version).await;
            if let Some(cell) = cell.upgrade() {
                cell.end(answer);
            }
        }));
    }

    fn is_over(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Over(_))
    }

    /// Records the value that the transaction sees.
    fn saw(&self, value: Option<Bytes>, client: &Arc<Client>) {
        let mut state = self.state.lock();
        if let Phase::Over(_) = state.phase {
            return;
        }
        let changed = state.own.as_ref().is_some_and(|own| *own != value);
        state.seen = Some(value);
        if changed {
            drop(state);
            return self.end(Ok(()));
        }
        match Outstanding::new(client) {
            Ok(outstanding) => state.outstanding = Some(outstanding),
            Err(e) => {
                drop(state);
                self.end(Err(e));
            }
        }
    }

    /// Records a write of the key: `None` if its resulting value is not known yet.
    fn wrote(&self, value: Option<&Option<Bytes>>) {
        let mut state = self.state.lock();
        let differs =
            |known: &Option<Option<Bytes>>| known.as_ref().is_some_and(|known| Some(known) != value);
        if value.is_none() || differs(&state.own) || differs(&state.seen) {
            drop(state);
            return self.end(Ok(()));
        }
        state.own = value.cloned();
    }

    /// Waits for the watch's initial read, and drives it if no other task does.
    pub async fn read(&self) {
        let read = self.read.lock().clone();
        if let Some(read) = read {
            read.await;
            self.read.lock().take();
        }
    }

    /// The result of the watch. Drives the read until the watch has read its key.
    async fn over(&self) -> Result<()> {
        let mut place = None;
        let over = std::future::poll_fn(|cx| {
            let mut state = self.state.lock();
            if let Phase::Over(answer) = state.phase {
                return Poll::Ready(answer);
            }
            place = Some(state.waiting.register(place, cx));
            Poll::Pending
        });
        let reading = self.read().then(|()| std::future::pending::<Infallible>());
        match select(over, pin!(reading)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((never, _)) => match never {},
        }
    }
}

/// Applies the transaction's own writes of `range` to the watches: they end those on changed keys. `None` if
/// the resulting value of the keys is not known.
pub fn trigger(state: &mut State, range: &KeyRange, value: Option<&Option<Bytes>>) {
    if state.watches.is_empty() {
        return;
    }
    state.watches.iter().filter(|watch| range.contains(&watch.key)).for_each(|watch| watch.wrote(value));
    // Dropping a read locks the state once more.
    state.watches_over.extend(state.watches.extract_if(.., |watch| watch.is_over()));
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
        state.record.watched(cell.key.clone());
        drop(state);
        // The read and the watch must not keep the transaction alive: dropping the transaction ends them.
        let value = self.weak_get(key, Isolation::Serializable);
        let (client, weak) = (self.0.client.clone(), Arc::downgrade(&cell));
        let read = async move {
            let value = value.await;
            let Some(cell) = weak.upgrade() else { return };
            match value {
                Ok(value) => cell.saw(value, &client),
                Err(e) => cell.end(Err(e)),
            }
        };
        *cell.read.lock() = Some(read.boxed().shared());
        let held = Held(cell);
        Ok(async move { held.0.over().await }.boxed())
    }
}

/// A watch whose future is held. When the future is dropped, the watch ends, and is no longer outstanding.
struct Held(Arc<WatchCell>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.end(Err(Error::OPERATION_CANCELLED));
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
        if let Some(mut fault) = self.fault(Family::EarlyWatch) {
            self.sleep(faults.draw(&mut fault, |chance| chance.below(SECOND))).await;
            return Ok(());
        }
        if let Some(mut fault) = self.fault(Family::SpuriousWatch) {
            self.sleep(faults.draw(&mut fault, |chance| chance.below(SECOND))).await;
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
                // The server has not reached the version yet: the current value is what matters from now on.
                Err(Error::FUTURE_VERSION) => {
                    self.sleep(10 * MILLISECOND).await;
                    let flags = VersionFlags { lock_aware: true, ..VersionFlags::default() };
                    if let Ok(now) = self.read_version(flags).await {
                        version = version.max(now.version);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        if let Some(mut fault) = self.fault(Family::LateWatch) {
            self.sleep(faults.draw(&mut fault, |chance| chance.below(5 * SECOND))).await;
        }
        Ok(())
    }
}
