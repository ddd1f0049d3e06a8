//! Futures of a transaction's calls: they end early if the transaction is reset, cancelled, misused or timed
//! out, and a commit can wait for the reads among them.

use super::transaction::{Inner, State};
use crate::rt::SECOND;
use shaketable_tx::{Error, Result};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

/// A call in progress.
pub struct Guard {
    inner: Weak<Inner>,
    epoch: u32,
    place: Option<usize>,
    /// Whether a commit waits for it.
    is_read: bool,
    /// The waker for which the timeout's timer is running.
    timer: Option<Waker>,
}

impl Guard {
    /// A guard for a call made in the transaction's life `epoch`.
    pub fn new(inner: &Arc<Inner>, epoch: u32) -> Guard {
        Guard { inner: Arc::downgrade(inner), epoch, place: None, is_read: false, timer: None }
    }

    /// A guard for a read that is issued now: a commit called after it waits for it, in whatever order both
    /// are polled.
    pub fn of_read(inner: &Arc<Inner>, state: &mut State) -> Guard {
        state.reading += 1;
        let mut guard = Guard::new(inner, state.epoch);
        guard.is_read = true;
        guard
    }

    /// Whether a commit waits for the call.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// The error with which the call must end now, if any; otherwise the task is woken when there is one.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let inner = self.inner.upgrade().ok_or(Error::TRANSACTION_CANCELLED)?;
        let mut state = inner.state.lock();
        state.check(&inner.client, self.epoch)?;
        self.place = Some(state.waiting.register(self.place, cx));
        let deadline = state.deadline();
        drop(state);
        if let Some(deadline) = deadline
            && self.timer.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker()))
        {
            self.timer = Some(cx.waker().clone());
            if inner.client.connection.world.clock.arm(deadline, cx) {
                cx.waker().wake_by_ref();
            }
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        let mut state = inner.state.lock();
        if state.epoch != self.epoch {
            return;
        }
        if let Some(place) = self.place {
            state.waiting.forget(place);
        }
        if !self.is_read {
            return;
        }
        state.reading -= 1;
        if state.reading == 0 {
            let woken = std::mem::take(&mut state.idle);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

/// The output of `future`, unless the transaction ends the call before.
pub async fn guarded<T>(
    inner: &Arc<Inner>,
    epoch: u32,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    guard(Guard::new(inner, epoch), future).await
}

/// The output of `future`, unless `guard` ends the call before.
pub async fn guard<T>(mut guard: Guard, future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| match guard.poll(cx) {
        Ok(()) => future.as_mut().poll(cx),
        Err(e) => Poll::Ready(Err(e)),
    })
    .await
}

/// Completes when no read is in progress. A read that nobody polls cannot be waited for: it is ignored after
/// the maximum lifetime of a transaction.
pub async fn idle(inner: &Arc<Inner>, epoch: u32) -> Result<()> {
    let clock = &inner.client.connection.world.clock;
    let wait = std::future::poll_fn(|cx| {
        let mut state = inner.state.lock();
        if state.epoch != epoch || state.reading == 0 {
            return Poll::Ready(());
        }
        state.idle.push(cx.waker().clone());
        Poll::Pending
    });
    if inner.state.lock().reading > 0 {
        clock.timeout(5 * SECOND, wait).await;
    }
    match inner.state.lock().reading_error {
        Some(e) => Err(e),
        None => Ok(()),
    }
}
