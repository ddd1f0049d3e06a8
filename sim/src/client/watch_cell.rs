//! The state that a watch shares with its transaction.

use super::{connection::Connection, shared::Client, wakers::Wakers};
use crate::{
    config::ClusterBug,
    proto::Version,
    rt::{self, Task},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, Shared, select},
};
use parking_lot::Mutex;
use shaketable_tx::{Error, Result};
use std::{
    convert::Infallible,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Poll, Waker},
};

/// The state that a watch shares with its transaction.
pub struct WatchCell {
    pub(super) key: Bytes,
    state: Mutex<WatchState>,
    /// The read of the value that the transaction sees.
    pub(super) read: Mutex<Option<Shared<BoxFuture<'static, ()>>>>,
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

impl WatchCell {
    /// A watch that is set, and has not read its key yet.
    pub(super) fn new(key: &[u8]) -> WatchCell {
        WatchCell { key: Bytes::copy_from_slice(key), state: Mutex::default(), read: Mutex::default() }
    }

    /// Ends the watch with `answer`, unless it has ended.
    pub(super) fn end(&self, answer: Result<()>) {
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

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Over(_))
    }

    /// Records the value that the transaction sees.
    pub(super) fn saw(&self, value: Option<Bytes>, client: &Arc<Client>) {
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
    pub(super) fn wrote(&self, value: Option<&Option<Bytes>>) {
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
    pub(super) async fn over(&self) -> Result<()> {
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
