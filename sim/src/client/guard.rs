//! Futures of a transaction's calls: they end early if the transaction is reset, cancelled, misused or timed
//! out, and a commit can wait for the reads among them, also for those that the application has dropped.

use super::transaction::{Inner, State};
use crate::rt::SECOND;
use futures::{FutureExt, future::BoxFuture};
use shaketable_tx::{Error, Result};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker, ready},
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

/// A read of several steps. If the application drops it, the transaction goes on with it, as FoundationDB's
/// client does, which keeps every read of a transaction until its end (`ReadYourWritesTransaction::reading`).
/// Here it goes on while the transaction commits or backs off, which is when that can be observed.
pub struct Read<T: 'static> {
    inner: Arc<Inner>,
    epoch: u32,
    future: Option<BoxFuture<'static, Result<T>>>,
}

impl<T> Read<T> {
    /// A read that was issued in the transaction's life `epoch`. The future must not keep the transaction.
    pub fn new(
        inner: &Arc<Inner>,
        epoch: u32,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Read<T> {
        Read { inner: inner.clone(), epoch, future: Some(future.boxed()) }
    }
}

impl<T> Future for Read<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let answer = match &mut self.future {
            Some(future) => ready!(future.poll_unpin(cx)),
            None => Err(Error::TRANSACTION_CANCELLED),
        };
        self.future = None;
        Poll::Ready(answer)
    }
}

impl<T> Drop for Read<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        // The last handle ends the transaction, and its reads.
        if Arc::strong_count(&self.inner) > 1 {
            let mut state = self.inner.state.lock();
            if state.epoch == self.epoch {
                state.left.push(future.map(drop).boxed());
            }
        }
    }
}

/// The output of `future`, while the reads that the application has dropped go on.
pub async fn beside_reads<T>(inner: &Arc<Inner>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let mut left = std::mem::take(&mut inner.state.lock().left);
        left.retain_mut(|read| read.poll_unpin(cx).is_pending());
        inner.state.lock().left.append(&mut left);
        future.as_mut().poll(cx)
    })
    .await
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
    poll_fn(|cx| match guard.poll(cx) {
        Ok(()) => future.as_mut().poll(cx),
        Err(e) => Poll::Ready(Err(e)),
    })
    .await
}

/// Completes when no read is in progress. A read that nobody polls cannot be waited for: it is ignored after
/// the maximum lifetime of a transaction.
pub async fn idle(inner: &Arc<Inner>, epoch: u32) -> Result<()> {
    let clock = &inner.client.connection.world.clock;
    let wait = poll_fn(|cx| {
        let mut state = inner.state.lock();
        if state.epoch != epoch || state.reading == 0 {
            return Poll::Ready(());
        }
        state.idle.push(cx.waker().clone());
        Poll::Pending
    });
    if inner.state.lock().reading > 0 {
        clock.timeout(5 * SECOND, beside_reads(inner, wait)).await;
    }
    match inner.state.lock().reading_error {
        Some(e) => Err(e),
        None => Ok(()),
    }
}
