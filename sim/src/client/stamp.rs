//! The future versionstamp of a transaction.

use crate::{
    client::wakers::Wakers,
    rt::{Clock, MILLISECOND, Nanos},
};
use parking_lot::Mutex;
use shaketable_tx::{Error, Result};
use std::task::{Context, Poll, Waker};

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

    /// The stamp, if it is set.
    pub(super) fn known(&self) -> Option<Result<[u8; 10]>> {
        self.0.lock().stamp
    }

    /// Waits for the stamp.
    pub(super) async fn get(&self) -> Result<[u8; 10]> {
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

/// A versionstamp of a transaction that wrote nothing.
pub const READ_ONLY: Result<[u8; 10]> = Err(Error::NO_COMMIT_VERSION);
/// A versionstamp of a transaction whose commit failed.
pub const FAILED: Result<[u8; 10]> = Err(Error::TRANSACTION_INVALID_VERSION);
