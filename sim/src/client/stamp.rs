//! The future versionstamp of a transaction.

use super::{
    guard::{Guard, guard},
    transaction::SimTransaction,
};
use crate::{
    client::wakers::Wakers,
    rt::{Clock, MILLISECOND, Nanos},
};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shaketable_tx::{Error, Result};
use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// The versionstamp, and the tasks that wait for it.
#[derive(Debug, Default)]
pub struct StampCell(Mutex<Cell>);

#[derive(Debug, Default)]
struct Cell {
    stamp: Option<Result<[u8; 10]>>,
    waiting: Wakers,
    /// How many tasks wait.
    waiters: usize,
    /// The commit, which waits until they have received the stamp.
    commit: Option<Waker>,
}

/// How long a commit waits for those who wait for its versionstamp, nanoseconds. A task that can run runs at
/// once: only one that has stopped polling, and does not say so, takes longer.
const RECEIVES: Nanos = MILLISECOND / 10;

impl StampCell {
    /// Sets the stamp, or the error. Only the first call has an effect.
    pub fn set(&self, stamp: Result<[u8; 10]>) {
        let mut cell = self.0.lock();
        cell.stamp.get_or_insert(stamp);
        let woken = cell.waiting.take();
        drop(cell);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Completes when every task that waits has received the stamp: the client sends it before it reports the
    /// commit (`NativeAPI.actor.cpp`, `tryCommit`).
    pub async fn received(&self, clock: &Clock) {
        if self.0.lock().waiters == 0 {
            return;
        }
        let received = std::future::poll_fn(|cx| {
            let mut cell = self.0.lock();
            if cell.waiters == 0 {
                return Poll::Ready(());
            }
            cell.commit = Some(cx.waker().clone());
            Poll::Pending
        });
        clock.timeout(RECEIVES, received).await;
    }

    async fn get(&self) -> Result<[u8; 10]> {
        let mut waiter = Waiter { cell: self, place: None };
        std::future::poll_fn(|cx| waiter.poll(cx)).await
    }
}

/// A task that waits for the stamp.
struct Waiter<'a> {
    cell: &'a StampCell,
    place: Option<usize>,
}

impl Waiter<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<[u8; 10]>> {
        let mut cell = self.cell.0.lock();
        if let Some(stamp) = cell.stamp {
            return Poll::Ready(stamp);
        }
        if self.place.is_none() {
            cell.waiters += 1;
        }
        self.place = Some(cell.waiting.register(self.place, cx));
        Poll::Pending
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut cell = self.cell.0.lock();
        cell.waiting.forget(place);
        cell.waiters -= 1;
        let woken = if cell.waiters == 0 { cell.commit.take() } else { None };
        drop(cell);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl SimTransaction {
    /// The versionstamp of the commit.
    pub(super) fn do_get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        let mut state = self.0.state.lock();
        if let Err(e) = state.enter(&self.0.client) {
            return Box::pin(std::future::ready(Err(e)));
        }
        let cell = state.stamp.get_or_insert_with(Arc::default).clone();
        let guarded = Guard::new(&self.0, state.epoch);
        drop(state);
        Box::pin(async move {
            // A stamp that was set remains valid, regardless of later events of the transaction.
            let known = cell.0.lock().stamp;
            match known {
                Some(stamp) => stamp,
                None => guard(guarded, cell.get()).await.or_else(|e| cell.0.lock().stamp.unwrap_or(Err(e))),
            }
        })
    }
}

/// A versionstamp of a transaction that wrote nothing.
pub const READ_ONLY: Result<[u8; 10]> = Err(Error::NO_COMMIT_VERSION);
/// A versionstamp of a transaction whose commit failed.
pub const FAILED: Result<[u8; 10]> = Err(Error::TRANSACTION_INVALID_VERSION);
