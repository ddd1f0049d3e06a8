//! What the parts read: the transaction, the cluster, and system keys at the transaction's read version.

use super::parts::{SpecialKeyRange, special};
use crate::{
    client::{
        guard::guarded,
        keys::single_key,
        limits::Limits,
        range::Fetch,
        selector::Selector,
        transaction::{Inner, State},
        version::read_version,
    },
    proto::{KeyRange, Version},
    world::World,
};
use bytes::Bytes;
use parking_lot::MutexGuard;
use shaketable_tx::{KeyValue, Result, TransactionOption, strinc};
use std::sync::Arc;

/// Reads for a transaction, in the life `epoch`.
pub(super) struct Reader {
    pub inner: Arc<Inner>,
    pub epoch: u32,
}

impl Reader {
    pub fn world(&self) -> &World {
        &self.inner.client.connection.world
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock()
    }

    /// Makes the transaction lock-aware, as managing the cluster must be.
    pub fn lock_aware(&self) {
        // An option without a value is always accepted.
        let _ = self.state().options.set(&TransactionOption::LockAware);
    }

    /// The transaction's read version.
    pub async fn version(&self) -> Result<Version> {
        let version = {
            let mut state = self.state();
            state.check(&self.inner.client, self.epoch)?;
            read_version(&self.inner, &mut state, false)
        };
        guarded(&self.inner, self.epoch, version.get()).await
    }

    /// The value of a system key. The commit conflicts with a change of it.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let version = self.version().await?;
        let range = single_key(key);
        let value = self.inner.client.connection.value(range.begin.clone(), version);
        let value = guarded(&self.inner, self.epoch, value).await?;
        self.state().native.extra_reads.push(range);
        Ok(value)
    }

    /// The rows of the system keys that begin with a prefix. The commit conflicts with a change of them.
    pub async fn range(&self, prefix: &[u8]) -> Result<Vec<KeyValue>> {
        let version = self.version().await?;
        let range = KeyRange::new(prefix.to_vec(), strinc(prefix).unwrap_or_default());
        let fetch = Fetch {
            begin: Selector::first_at(range.begin.clone()),
            end: Selector::first_at(range.end.clone()),
            limits: Limits { rows: None, min_rows: 1, bytes: None },
            reverse: false,
        };
        let batch = self.inner.client.connection.range(fetch, version);
        let rows = guarded(&self.inner, self.epoch, batch).await?.rows;
        self.state().native.extra_reads.push(range);
        Ok(rows)
    }

    /// The rows of a part, changed by what the transaction has written to it.
    pub fn with_own_writes(&self, part: &SpecialKeyRange, rows: Vec<KeyValue>) -> Vec<KeyValue> {
        let state = self.state();
        match state.options.ryw_disabled {
            true => rows,
            false => state.special.over(rows, &part.range()),
        }
    }
}

/// The row of a part that is one key.
pub(super) fn row(part: &SpecialKeyRange, value: impl Into<Bytes>) -> KeyValue {
    KeyValue::new(special(part.begin), value)
}

/// The row of the key in a part with this name.
pub(super) fn named(part: &SpecialKeyRange, name: impl AsRef<[u8]>, value: impl Into<Bytes>) -> KeyValue {
    KeyValue::new([&special(part.begin), name.as_ref()].concat(), value)
}

/// Bytes as text, if they are.
pub(super) fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}
