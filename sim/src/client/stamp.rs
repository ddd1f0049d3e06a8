//! The future versionstamp of a transaction.

use super::{
    guard::{Guard, guard},
    transaction::SimTransaction,
};
use crate::client::wakers::Wakers;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shaketable_layers::tx::{Error, Result};
use std::{
    sync::Arc,
    task::{Poll, Waker},
};

/// The versionstamp, and the tasks that wait for it.
#[derive(Debug, Default)]
pub struct StampCell(Mutex<(Option<Result<[u8; 10]>>, Wakers)>);

impl StampCell {
    /// Sets the stamp, or the error. Only the first call has an effect.
    pub fn set(&self, stamp: Result<[u8; 10]>) {
        let mut cell = self.0.lock();
        cell.0.get_or_insert(stamp);
        let woken = cell.1.take();
        drop(cell);
        woken.into_iter().for_each(Waker::wake);
    }

    async fn get(&self) -> Result<[u8; 10]> {
        let mut place = None;
        std::future::poll_fn(move |cx| {
            let mut cell = self.0.lock();
            if let Some(stamp) = cell.0 {
                return Poll::Ready(stamp);
            }
            place = Some(cell.1.register(place, cx));
            Poll::Pending
        })
        .await
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
        let guarded = Guard::new(&self.0, state.epoch, false);
        drop(state);
        Box::pin(async move {
            // A stamp that was set remains valid, regardless of later events of the transaction.
            let known = cell.0.lock().0;
            match known {
                Some(stamp) => stamp,
                None => guard(guarded, cell.get()).await.or_else(|e| cell.0.lock().0.unwrap_or(Err(e))),
            }
        })
    }
}

/// A versionstamp of a transaction that wrote nothing.
pub const READ_ONLY: Result<[u8; 10]> = Err(Error::NO_COMMIT_VERSION);
/// A versionstamp of a transaction whose commit failed.
pub const FAILED: Result<[u8; 10]> = Err(Error::TRANSACTION_INVALID_VERSION);
