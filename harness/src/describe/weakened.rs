//! A transaction some of whose reads cause no conflicts, for planted bugs: a layer that reads at snapshot
//! what it should read serializably can be planted without changing the layer.

use crate::describe::pass_on::pass_on;
use bytes::Bytes;
use futures::future::BoxFuture;
use shaketable_tx::{
    AnyTransaction, ConflictRangeType, Error, Isolation, KeySelector, MappedBatch, MutationType, RangeBatch,
    RangeOption, Result, Transaction, TransactionOption, Turns,
};
use std::{future::Future, sync::Arc, time::Duration};

/// A range of keys: its begin, and its exclusive end.
pub type Span = (Vec<u8>, Vec<u8>);

/// A transaction that passes every call on, except that reads that begin in some spans do not conflict with
/// changes.
pub fn weakened(tx: impl Transaction, spans: impl Into<Arc<[Span]>>) -> AnyTransaction {
    AnyTransaction::new(Weakened { inner: tx, spans: spans.into() })
}

#[derive(Clone)]
struct Weakened<T> {
    inner: T,
    spans: Arc<[Span]>,
}

impl<T: Transaction> Weakened<T> {
    fn is_weak(&self, key: &[u8]) -> bool {
        self.spans.iter().any(|(begin, end)| &begin[..] <= key && key < &end[..])
    }

    /// The isolation of a read that begins at this key.
    fn at(&self, key: &[u8], isolation: Isolation) -> Isolation {
        match self.is_weak(key) {
            true => Isolation::Snapshot,
            false => isolation,
        }
    }
}

impl<T: Transaction> Transaction for Weakened<T> {
    pass_on! { <T> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        Weakened { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<T> {
        self.inner.get(key, self.at(key, isolation))
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<T> {
        self.inner.get_key(selector, self.at(&selector.key, isolation))
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<T> {
        self.inner.get_range(range, iteration, self.at(&range.begin.key, isolation))
    }

    fn get_mapped_range(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<T> {
        self.inner.get_mapped_range(range, mapper, iteration, isolation)
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        match kind == ConflictRangeType::Read && self.is_weak(begin) {
            true => Ok(()),
            false => self.inner.add_conflict_range(begin, end, kind),
        }
    }

    pass_on! {
        <T> inner:
            set, clear, clear_range, atomic_op, watch, get_read_version, set_read_version,
            get_committed_version, get_versionstamp, get_approximate_size,
            get_estimated_range_size_bytes, get_range_split_points, get_addresses_for_key,
            get_tag_throttled_duration, get_total_cost, set_option, commit, on_error, reset,
            cancel
    }
}
