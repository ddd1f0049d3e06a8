//! Watches: they read their key when they are set, are armed by the commit, and end when the value differs.
//!
//! An armed watch waits in its own task, on the machine that committed: a change is noticed even if the
//! watch's future is polled late. The task ends with that future, and with its machine.

use super::{
    connection::{Connection, VersionFlags},
    keys::{METADATA_VERSION, max_write_key_size},
    transaction::{SimTransaction, State},
    watch_cell::WatchCell,
};
use crate::{
    faults::Family,
    history::Aside,
    proto::{KeyRange, Message, Version},
    rt::{MILLISECOND, SECOND},
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use shaketable_tx::{Error, Isolation, Result};
use std::sync::Arc;

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
        let cell = Arc::new(WatchCell::new(key));
        state.watches.push(cell.clone());
        state.record.aside(Aside::Watch(cell.key.clone()));
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
    pub(super) async fn watch(
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
