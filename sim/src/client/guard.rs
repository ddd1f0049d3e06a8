//! Futures of a transaction's calls: they end early if the transaction is reset, cancelled, misused or timed
//! out, and a commit can wait for the reads among them.

use super::transaction::Inner;
use crate::rt::SECOND;
use shaketable_layers::tx::{Error, Result};
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
    reading: bool,
    /// The waker for which the timeout's timer is running.
    timer: Option<Waker>,
}

impl Guard {
    /// A guard for a call made in the transaction's life `epoch`.
    pub fn new(inner: &Arc<Inner>, epoch: u32, reading: bool) -> Guard {
        Guard::weak(Arc::downgrade(inner), epoch, reading)
    }

    /// Like [`new`](Guard::new), for a call that does not keep the transaction alive.
    pub fn weak(inner: Weak<Inner>, epoch: u32, reading: bool) -> Guard {
        Guard { inner, epoch, place: None, reading, timer: None }
    }

    /// The error with which the call must end now, if any; otherwise the task is woken when there is one.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let inner = self.inner.upgrade().ok_or(Error::TRANSACTION_CANCELLED)?;
        let mut state = inner.state.lock();
        state.check(&inner.client, self.epoch)?;
        if self.place.is_none() && self.reading {
            state.reading += 1;
        }
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
        let (Some(place), Some(inner)) = (self.place, self.inner.upgrade()) else { return };
        let mut state = inner.state.lock();
        if state.epoch != self.epoch {
            return;
        }
        state.waiting.forget(place);
        if !self.reading {
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
    reading: bool,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    guard(Guard::new(inner, epoch, reading), future).await
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

/// Completes when no read is in progress. A read that was started but is no longer polled cannot be waited
/// for: it is ignored after the maximum lifetime of a transaction.
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
