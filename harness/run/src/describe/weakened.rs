//! Transactions that do some of what is asked of them wrongly, for planted bugs: the right function of a
//! layer that is given one makes the mistake of a function that reads, writes or clears something else. The
//! layer is not changed, and the bug is no copy of it.

use crate::describe::pass_on::pass_on;
use bytes::Bytes;
use futures::future::BoxFuture;
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, MappedBatch, MutationType, RangeBatch, RangeOption,
    Result, Transaction, TransactionOption, Turns, Tx, key_after,
};
use std::{future::Future, sync::Arc, time::Duration};

/// A range of keys: its begin, and its exclusive end.
pub type Span = (Vec<u8>, Vec<u8>);

/// The span of a single key. A range that begins with this key begins in it, too.
pub fn only(key: impl Into<Vec<u8>>) -> Span {
    let key = key.into();
    let end = key_after(&key).into();
    (key, end)
}

/// All keys of a database, as the list of spans that they are.
pub fn everything() -> [Span; 1] {
    [(Vec::new(), b"\xff".to_vec())]
}

/// What a transaction does wrongly with the keys in some spans, and with the ranges that begin there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Reads, and read conflict ranges that are added, do not conflict with changes.
    AtSnapshot,
    /// Write conflict ranges are not added.
    Undeclared,
    /// Reads of ranges return the first batch, as if no rows followed it.
    FirstBatch,
    /// Reads of keys and ranges find nothing. They are not made, and do not conflict.
    Unread,
    /// Keys are neither set nor changed by atomic operations.
    Unwritten,
    /// Keys and ranges are not cleared.
    Uncleared,
}

/// A transaction that passes every call on, except for what the flaw changes in the spans. Another flaw may
/// be added to it in the same way.
pub fn flawed(tx: &impl Transaction, flaw: Flaw, spans: impl Into<Arc<[Span]>>) -> Tx {
    Tx::new(Flawed { inner: tx.clone(), flaw, spans: spans.into() })
}

/// A transaction whose reads that begin in these spans are [at snapshot](Flaw::AtSnapshot).
pub fn weakened(tx: impl Transaction, spans: impl Into<Arc<[Span]>>) -> Tx {
    flawed(&tx, Flaw::AtSnapshot, spans)
}

#[derive(Clone)]
struct Flawed<T> {
    inner: T,
    flaw: Flaw,
    spans: Arc<[Span]>,
}

impl<T: Transaction> Flawed<T> {
    /// Whether what is done with this key, or with a range that begins there, has the flaw.
    fn has(&self, flaw: Flaw, key: &[u8]) -> bool {
        self.flaw == flaw && self.spans.iter().any(|(begin, end)| &begin[..] <= key && key < &end[..])
    }

    /// The isolation of a read that begins at this key.
    fn at(&self, key: &[u8], isolation: Isolation) -> Isolation {
        match self.has(Flaw::AtSnapshot, key) {
            true => Isolation::Snapshot,
            false => isolation,
        }
    }
}

impl<T: Transaction> Transaction for Flawed<T> {
    pass_on! { <T> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        Flawed { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<T> {
        let read = (!self.has(Flaw::Unread, key)).then(|| self.inner.get(key, self.at(key, isolation)));
        async { if let Some(read) = read { read.await } else { Ok(None) } }
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
        let begin = &range.begin.key;
        let ends = self.has(Flaw::FirstBatch, begin);
        let read = (!self.has(Flaw::Unread, begin))
            .then(|| self.inner.get_range(range, iteration, self.at(begin, isolation)));
        async move {
            let Some(read) = read else { return Ok(RangeBatch { rows: Vec::new(), more: false }) };
            let batch = read.await?;
            Ok(RangeBatch { more: batch.more && !ends, ..batch })
        }
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
        let flaw = match kind {
            ConflictRangeType::Read => Flaw::AtSnapshot,
            ConflictRangeType::Write => Flaw::Undeclared,
        };
        match self.has(flaw, begin) {
            true => Ok(()),
            false => self.inner.add_conflict_range(begin, end, kind),
        }
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        if !self.has(Flaw::Unwritten, key) {
            self.inner.set(key, value);
        }
    }

    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
        if !self.has(Flaw::Unwritten, key) {
            self.inner.atomic_op(key, operand, op);
        }
    }

    fn clear(&self, key: &[u8]) {
        if !self.has(Flaw::Uncleared, key) {
            self.inner.clear(key);
        }
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        if !self.has(Flaw::Uncleared, begin) {
            self.inner.clear_range(begin, end);
        }
    }

    pass_on! {
        <T> inner:
            watch, get_read_version, set_read_version,
            get_committed_version, get_versionstamp, get_approximate_size,
            get_estimated_range_size_bytes, get_range_split_points, get_addresses_for_key,
            get_tag_throttled_duration, get_total_cost, set_option, commit, on_error, reset,
            cancel
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::calm::simulate;
    use shaketable_tx::{Database, Isolation::Serializable};

    const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];

    /// The rows that are left after sets, clears and an atomic operation, with the flaw in what is done with
    /// `b`, and the number of rows that were found from each key on.
    fn done(flaw: Flaw) -> (Vec<u8>, [usize; 3]) {
        simulate(move |db| async move {
            let db = &db;
            let done = db.run(|tx, _| async move {
                let wrong = flawed(&tx, flaw, [only(b"b")]);
                KEYS.iter().for_each(|key| tx.set(key, b"0"));
                let mut found = [0; 3];
                for (found, key) in found.iter_mut().zip(KEYS) {
                    let range = RangeOption::new(key.to_vec(), b"d".to_vec());
                    *found = wrong.get_range_all(range, Serializable).await?.len();
                    let one = wrong.get(key, Serializable).await?;
                    assert_eq!(one.is_some(), flaw != Flaw::Unread || key != b"b", "{flaw:?} {key:?}");
                }
                wrong.clear_range(b"b", b"d");
                KEYS.iter().for_each(|key| wrong.clear(key));
                wrong.set(b"b", b"1");
                wrong.atomic_op(b"b", b"2", MutationType::Max);
                let left = tx.get_range_all(RangeOption::new(b"a".to_vec(), b"d".to_vec()), Serializable);
                let left = left.await?.iter().flat_map(|row| [row.key[0], row.value[0]]).collect();
                Ok::<_, Error>((left, found))
            });
            done.await.expect("a calm cluster")
        })
    }

    #[test]
    fn a_flaw_changes_what_it_is_about() {
        assert_eq!(done(Flaw::AtSnapshot), (b"b2".to_vec(), [3, 2, 1]));
        assert_eq!(done(Flaw::Unread), (b"b2".to_vec(), [3, 0, 1]));
        assert_eq!(done(Flaw::Unwritten), (b"".to_vec(), [3, 2, 1]));
        assert_eq!(done(Flaw::Uncleared), (b"b2".to_vec(), [3, 2, 1]));
    }

    #[test]
    fn a_weakened_read_does_not_conflict() {
        let commits = |spans: &'static [Span]| {
            simulate(move |db| async move {
                let tx = db.create_transaction().expect("a transaction");
                let read = weakened(tx.clone(), spans).get(b"b", Serializable).await;
                read.expect("a calm cluster");
                let set = db.create_transaction().expect("a transaction");
                set.set(b"b", b"");
                set.commit().await.expect("a calm cluster");
                tx.set(b"a", b"");
                tx.commit().await
            })
        };
        assert_eq!(commits(&[]), Err(Error::NOT_COMMITTED));
        assert_eq!(commits(Box::leak(Box::new(everything()))), Ok(()));
    }

    #[test]
    fn a_write_conflict_range_that_is_not_declared_does_not_conflict() {
        let commits = |spans: &'static [Span]| {
            simulate(move |db| async move {
                let tx = db.create_transaction().expect("a transaction");
                tx.get(b"b", Serializable).await.expect("a calm cluster");
                let declares = db.create_transaction().expect("a transaction");
                let wrong = flawed(&declares, Flaw::Undeclared, spans);
                wrong.add_conflict_range(b"b", b"c", ConflictRangeType::Write).expect("a range");
                declares.set(b"c", b"");
                declares.commit().await.expect("a calm cluster");
                tx.set(b"a", b"");
                tx.commit().await
            })
        };
        assert_eq!(commits(&[]), Err(Error::NOT_COMMITTED));
        assert_eq!(commits(Box::leak(Box::new(everything()))), Ok(()));
    }

    #[test]
    fn a_first_batch_is_not_everything() {
        let rows = simulate(|db| async move {
            let rows = db.run(|tx, _| async move {
                (0..200u8).for_each(|n| tx.set(&[n], &[0; 1_000]));
                let wrong = flawed(&tx, Flaw::FirstBatch, everything());
                let range = || RangeOption::new(Vec::new(), b"\xff".to_vec());
                let all = tx.get_range_all(range(), Serializable).await?.len();
                Ok::<_, Error>((wrong.get_range_all(range(), Serializable).await?.len(), all))
            });
            rows.await.expect("a calm cluster")
        });
        assert!(rows.0 > 0 && rows.0 < rows.1 && rows.1 == 200, "{rows:?}");
    }
}
