//! The call that asks for the versionstamp.

use super::{
    guard::{Guard, guard},
    transaction::SimTransaction,
};
use futures::future::BoxFuture;
use shaketable_tx::Result;
use std::sync::Arc;

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
            let known = cell.known();
            match known {
                Some(stamp) => stamp,
                None => guard(guarded, cell.get()).await.or_else(|e| cell.known().unwrap_or(Err(e))),
            }
        })
    }
}
