//! Checks of single operations. A read at snapshot isolation must not conflict with anything, and a
//! serializable read must conflict with every change of what it reads. A refused operation must not have
//! written anything: its caller may do something else in the same transaction.
//!
//! A [`Checked`] transaction delegates every call, and records the isolation level of each read. The conflict
//! ranges themselves are not used, because they do not contain reads of the transaction's own writes.

use crate::describe::pass_on::pass_on;
use bytes::Bytes;
use futures::{TryFutureExt, future::BoxFuture};
use parking_lot::Mutex;
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, MappedBatch, MutationType, RangeBatch, RangeOption,
    Result, RetryError, Transaction, TransactionOption, Turns, Tx, always, key_after, show,
};
use std::{
    fmt::{Debug, Display},
    future::Future,
    sync::Arc,
    time::Duration,
};

/// Does a read-only operation at snapshot isolation, and then serializably. Claims that both return the same
/// answer, that the first one reads nothing serializably, and that the second one reads nothing only at
/// snapshot isolation.
pub async fn at_both_levels<T, A, E, F>(
    tx: &T,
    what: &impl Debug,
    read: impl Fn(Tx, Isolation) -> F,
) -> std::result::Result<A, E>
where
    T: Transaction,
    A: PartialEq + Debug,
    E: RetryError + Display,
    F: Future<Output = std::result::Result<A, E>>,
{
    let at = |asked: Isolation| {
        let noted = Checked { inner: tx.clone(), asked, notes: Arc::default() };
        (noted.clone(), read(Tx::new(noted), asked))
    };
    let (noted, reading) = at(Isolation::Snapshot);
    let first = reading.await;
    if let Err(e) = &first
        && e.fdb().is_some()
    {
        return first;
    }
    let reads = noted.check(what);
    let (noted, reading) = at(Isolation::Serializable);
    let second = reading.await;
    if let Err(e) = &second
        && e.fdb().is_some()
    {
        return second;
    }
    let reads_again = noted.check(what);
    always!(
        reads_again || !reads,
        "{what:?} reads something at snapshot isolation, and nothing when it is serializable"
    );
    let show = |answer: &std::result::Result<A, E>| match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(refusal) => refusal.to_string(),
    };
    let same = match (&first, &second) {
        (Ok(first), Ok(second)) => first == second,
        (Err(first), Err(second)) => first.to_string() == second.to_string(),
        _ => false,
    };
    always!(
        same,
        "{what:?} returns {} at snapshot isolation, and {} when it is serializable",
        show(&first),
        show(&second)
    );
    second
}

/// A transaction that records what one operation does in it.
#[derive(Clone)]
pub(crate) struct Checked<T> {
    inner: T,
    asked: Isolation,
    notes: Arc<Mutex<Notes>>,
}

/// A range of keys: its begin, and its exclusive end.
type Span = (Bytes, Bytes);

#[derive(Default)]
struct Notes {
    reads: bool,
    /// What was read at snapshot isolation. For a range these are the keys that it contains, because its
    /// bounds may lie far outside of them.
    at_snapshot: Vec<Span>,
    /// What was read serializably or added to the read conflict ranges.
    conflicting: Vec<Span>,
}

/// Claims that a refused operation has written nothing.
pub(crate) fn check_refusal(wrote: Option<&Bytes>, what: &impl Debug, refusal: &impl Display) {
    always!(
        wrote.is_none(),
        "{what:?} is refused ({refusal}), and has written {}",
        wrote.map(|key| show::key(key)).unwrap_or_default()
    );
}

impl<T: Transaction> Checked<T> {
    /// Checks what was read. Returns whether anything was read.
    fn check(&self, what: &impl Debug) -> bool {
        let notes = self.notes.lock();
        match self.asked {
            Isolation::Snapshot => {
                let read = notes.conflicting.first();
                always!(
                    read.is_none(),
                    "{what:?} at snapshot isolation conflicts with changes of {}",
                    show_span(read)
                );
            }
            Isolation::Serializable => {
                let alone = |(begin, end): &&Span| {
                    !notes.conflicting.iter().any(|(from, to)| from <= begin && end <= to)
                };
                let alone = notes.at_snapshot.iter().find(alone);
                always!(
                    alone.is_none(),
                    "{what:?} is serializable, and does not conflict with changes of {}, which it reads",
                    show_span(alone)
                );
            }
        }
        notes.reads
    }

    /// Records that a read was issued, whatever its result.
    fn reads(&self) {
        self.notes.lock().reads = true;
    }

    fn note(&self, isolation: Isolation, span: impl FnOnce() -> Span) {
        let mut notes = self.notes.lock();
        notes.reads = true;
        match isolation {
            Isolation::Snapshot => notes.at_snapshot.push(span()),
            Isolation::Serializable => notes.conflicting.push(span()),
        }
    }
}

fn key(key: &[u8]) -> Span {
    (Bytes::copy_from_slice(key), key_after(key))
}

fn show_span(span: Option<&Span>) -> String {
    span.map(|(begin, end)| show::range(begin, end)).unwrap_or_default()
}

impl<T: Transaction> Transaction for Checked<T> {
    pass_on! { <T> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        Checked { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        of: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<T> {
        self.note(isolation, || key(of));
        self.inner.get(of, isolation)
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<T> {
        self.reads();
        let this = self.clone();
        // Not an async block, which would have the space of the future twice.
        self.inner.get_key(selector, isolation).inspect_ok(move |found| this.note(isolation, || key(found)))
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<T> {
        self.reads();
        let this = self.clone();
        let bounds = (range.begin.key.clone(), range.end.key.clone());
        self.inner.get_range(range, iteration, isolation).inspect_ok(move |batch| {
            if batch.rows.is_empty() {
                this.note(isolation, || bounds);
            }
            batch.rows.iter().for_each(|row| this.note(isolation, || key(&row.key)));
        })
    }

    fn get_mapped_range(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<T> {
        self.note(isolation, || (range.begin.key.clone(), range.end.key.clone()));
        self.inner.get_mapped_range(range, mapper, iteration, isolation)
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        if kind == ConflictRangeType::Read {
            let span = (Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
            self.notes.lock().conflicting.push(span);
        }
        self.inner.add_conflict_range(begin, end, kind)
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
