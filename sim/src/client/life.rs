//! The life cycle of a transaction: reset, cancelled, failed and tried again.

use super::{
    backoff,
    guard::{beside_reads, guarded},
    transaction::{Abandoned, Inner, SimTransaction},
};
use crate::{config::ClusterBug, history::Reported};
use shaketable_tx::{Error, Result};
use std::sync::Arc;

/// Cancels the transaction if its `on_error` is dropped before its end, as FoundationDB's client does.
struct Cancels<'a>(Option<&'a Arc<Inner>>);

impl Drop for Cancels<'_> {
    fn drop(&mut self) {
        if let Some(inner) = self.0 {
            inner.cancel();
        }
    }
}

impl SimTransaction {
    /// Resets the transaction to its initial state.
    pub(super) fn do_reset(&self) {
        let mut state = self.0.state.lock();
        state.persistent.clear();
        state.created = self.0.client.now();
        state.retries = 0;
        state.backoff = backoff::FIRST;
        state.end_next(&self.0.client);
        let abandoned = state.renew(&self.0.client);
        drop(state);
        abandoned.wake();
    }

    /// Ends every call with 1025 until a reset.
    pub(super) fn do_cancel(&self) {
        self.0.cancel();
    }

    /// Waits and starts the next attempt, or returns the error and leaves the transaction cancelled.
    pub(super) async fn do_on_error(&self, error: Error) -> Result<()> {
        let inner = &self.0;
        let mut cancels = Cancels(Some(inner));
        // FoundationDB's client takes a broken promise for the end of its own transaction.
        let answer = self.retry(error).await.map_err(|e| match e {
            Error::BROKEN_PROMISE => Error::TRANSACTION_CANCELLED,
            e => e,
        });
        cancels.0 = None;
        let mut state = inner.state.lock();
        let abandoned = match answer {
            Ok(()) => state.renew(&inner.client),
            Err(_) => {
                state.failure.get_or_insert(Error::TRANSACTION_CANCELLED);
                state.end(&inner.client, Reported::Failed(error));
                Abandoned::calls(state.waiting.take())
            }
        };
        drop(state);
        abandoned.wake();
        answer
    }

    async fn retry(&self, error: Error) -> Result<()> {
        let inner = &self.0;
        let (delay, epoch) = {
            let mut state = inner.state.lock();
            if error == Error::CLUSTER_VERSION_CHANGED && inner.client.connection.has_switched() {
                // The multi-version client goes on with a transaction of another library, whatever became of
                // this one (`MultiVersionTransaction::onError`). Only it meets this error: a client of one
                // library returns it.
                state.end(&inner.client, Reported::Failed(error));
                return Ok(());
            }
            state.alive(&inner.client)?;
            state.end(&inner.client, Reported::Failed(error));
            let limit = state.options.retry_limit;
            let more = i32::from(inner.client.has(ClusterBug::ClientRetriesOnceMore));
            let limit_hit = limit != -1 && state.retries >= limit.saturating_add(more);
            state.retries = state.retries.saturating_add(1);
            if limit_hit {
                return Err(error);
            }
            if error.code() == 0 {
                return Err(Error::CLIENT_INVALID_OPERATION);
            }
            let draw = || inner.client.connection.draw(|chance| chance.f64());
            let retry = backoff::delay(error, state.backoff, state.options.max_retry_delay, draw);
            let (delay, next) = retry.ok_or(error)?;
            state.backoff = next;
            state.back_off(&inner.client);
            (delay, state.epoch)
        };
        let sleep = async {
            inner.client.connection.sleep(delay).await;
            Ok(())
        };
        guarded(inner, epoch, beside_reads(inner, sleep)).await
    }
}
