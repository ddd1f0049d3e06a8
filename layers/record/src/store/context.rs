//! The record context: a transaction with what the record stores in it share.

use super::{opened::Opened, stamped::Stamped};
use crate::{error::Error, version::RecordVersion};
use foundationdb_tuple::Subspace;
use futures::future::BoxFuture;
use shaketable_tx::{Database, Transaction};
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A transaction, for any number of record stores. Clones are the same context.
///
/// [`open`](RecordContext::open) begins a transaction of its own, which [`commit`](RecordContext::commit)
/// commits, once; a context that is dropped or closed without it is not committed.
/// [`within`](RecordContext::within) uses the transaction of a retry loop, such as
/// [`Session::apply`](shaketable_tx::once::Session::apply), which commits it. A transaction must have one
/// context only: a second one would give its records the same versions again.
///
/// The entries of version indexes are given to the transaction as late as possible, because FoundationDB
/// could not take them back: by [`commit`](RecordContext::commit), by [`flush`](RecordContext::flush), and
/// when the last clone of a context within somebody else's transaction is closed or dropped. Such a context
/// must not outlive the closure that the retry loop calls, unless the closure calls `flush` at its end.
///
/// Operations on the stores of a context may run side by side: they take turns
/// ([`Transaction::writing`](shaketable_tx::Transaction::writing)), in the order in which their futures are
/// first polled, also with the calls of other layers in the transaction.
pub struct RecordContext<T: Transaction> {
    /// A handle of the transaction, which may be part of a turn.
    tx: T,
    shared: Arc<Inner<T>>,
}

struct Inner<T: Transaction> {
    tx: T,
    owned: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    versionstamp: Option<BoxFuture<'static, shaketable_tx::Result<[u8; 10]>>>,
    /// How many record versions this transaction has given.
    versions: u32,
    /// The versions that this transaction has written, by the key of their row: it cannot read them. `None`
    /// if it has cleared the row since.
    written: BTreeMap<Vec<u8>, Option<RecordVersion>>,
    stamped: Stamped,
    /// What is known of the stores that were opened, by their subspaces.
    opened: BTreeMap<Vec<u8>, Arc<Mutex<Opened>>>,
}

impl<T: Transaction> Drop for Inner<T> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !self.owned && !state.closed {
            state.stamped.flush(&self.tx);
        }
    }
}

impl<T: Transaction> Clone for RecordContext<T> {
    fn clone(&self) -> Self {
        RecordContext { tx: self.tx.clone(), shared: self.shared.clone() }
    }
}

impl<T: Transaction> RecordContext<T> {
    /// Begins a transaction.
    pub fn open<D: Database<Transaction = T>>(db: &D) -> Result<RecordContext<T>, Error> {
        Ok(RecordContext::new(db.create_transaction()?, true))
    }

    /// Uses a transaction that somebody else commits.
    pub fn within(tx: T) -> RecordContext<T> {
        RecordContext::new(tx, false)
    }

    fn new(tx: T, owned: bool) -> RecordContext<T> {
        let shared = Arc::new(Inner { tx: tx.clone(), owned, state: Mutex::default() });
        RecordContext { tx, shared }
    }

    /// This context, in a turn of its own, which lasts until the last clone of it is dropped.
    pub(super) async fn writing(&self) -> RecordContext<T> {
        RecordContext { tx: self.tx.writing().await, shared: self.shared.clone() }
    }

    /// This context, in a turn that others share that only read.
    pub(super) async fn reading(&self) -> RecordContext<T> {
        RecordContext { tx: self.tx.reading().await, shared: self.shared.clone() }
    }

    /// What all stores in this subspace share.
    pub(super) fn opened(&self, store: &Subspace) -> Arc<Mutex<Opened>> {
        self.state().opened.entry(store.bytes().to_vec()).or_default().clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction. Fails with [`Error::Closed`] after a commit or [`close`](RecordContext::close).
    pub fn transaction(&self) -> Result<&T, Error> {
        match self.state().closed {
            true => Err(Error::Closed),
            false => Ok(&self.tx),
        }
    }

    /// Commits, once; the context is then closed, whatever the result. If the result of the commit is unknown
    /// ([`leaves_commit_unknown`](shaketable_tx::Error::leaves_commit_unknown)), the changes may have been
    /// made, or may still be: use a [`Session`](shaketable_tx::once::Session) where that matters.
    ///
    /// Dropping the future: the commit may still happen.
    pub async fn commit(&self) -> Result<(), Error> {
        if !self.shared.owned {
            return Err(Error::NotOwned);
        }
        {
            let mut state = self.state();
            if std::mem::replace(&mut state.closed, true) {
                return Err(Error::Closed);
            }
            state.stamped.flush(&self.shared.tx);
            if state.written.values().flatten().any(|version| !version.is_complete()) {
                state.versionstamp = Some(self.shared.tx.get_versionstamp());
            }
        }
        Ok(self.shared.tx.commit().await?)
    }

    /// Ends the context. A transaction of its own that was not committed is cancelled: its changes are not
    /// made.
    pub fn close(&self) {
        let mut state = self.state();
        let open = !std::mem::replace(&mut state.closed, true);
        match self.shared.owned {
            true if open => self.shared.tx.cancel(),
            false if open => state.stamped.flush(&self.shared.tx),
            _ => {}
        }
    }

    /// Sets a row whose key gets the versionstamp of the commit: for maintainers of indexes. `key` is the
    /// operand of `SET_VERSIONSTAMPED_KEY`: the key, followed by the offset of the versionstamp in four
    /// bytes, little-endian. The row is given to the transaction by [`flush`](RecordContext::flush) or by the
    /// commit.
    pub fn set_versionstamped_key(&self, key: Vec<u8>, value: Vec<u8>) {
        self.state().stamped.set(key, value);
    }

    /// Takes a row back that [`set_versionstamped_key`](RecordContext::set_versionstamped_key) has set, by
    /// the same operand. Nothing happens if there is none.
    pub fn clear_versionstamped_key(&self, key: &[u8]) {
        self.state().stamped.clear(key);
    }

    /// Clears a range of keys, with the rows in it whose keys are not complete yet, and forgets the versions
    /// of the records in it. The range must not begin or end within a versionstamp.
    pub fn clear_range(&self, begin: &[u8], end: &[u8]) -> Result<(), Error> {
        self.transaction()?.clear_range(begin, end);
        let mut state = self.state();
        state.stamped.clear_range(begin, end);
        if begin < end {
            let range = (Bound::Included(begin), Bound::Excluded(end));
            state.written.range_mut::<[u8], _>(range).for_each(|(_, version)| *version = None);
        }
        Ok(())
    }

    /// Gives the entries of version indexes to the transaction. After that, a record with such entries that
    /// was saved in this transaction cannot be saved again or deleted in it, and version indexes cannot be
    /// scanned where it may put entries: FoundationDB refuses to read there, with error 1036.
    pub fn flush(&self) -> Result<(), Error> {
        let tx = self.transaction()?;
        self.state().stamped.flush(tx);
        Ok(())
    }

    /// The versionstamp of the commit, with which versions of this transaction are
    /// [completed](RecordVersion::completed). `None` if it was not committed by
    /// [`commit`](RecordContext::commit), or has given no version, or if this was called before.
    pub async fn versionstamp(&self) -> Result<Option<[u8; 10]>, Error> {
        let stamp = self.state().versionstamp.take();
        Ok(match stamp {
            Some(stamp) => Some(stamp.await?),
            None => None,
        })
    }

    /// Whether the transaction has entries of version indexes in this range that a scan of it does not find,
    /// or may have.
    pub(crate) fn hides(&self, begin: &[u8], end: &[u8]) -> bool {
        let state = self.state();
        state.stamped.is_flushed() || state.stamped.has_between(begin, end)
    }

    /// Whether rows with incomplete keys were given to the transaction: they can no longer be taken back.
    pub fn has_flushed(&self) -> bool {
        self.state().stamped.is_flushed()
    }

    /// A version for the next record.
    pub(crate) fn next_version(&self) -> Result<RecordVersion, Error> {
        let mut state = self.state();
        let local = u16::try_from(state.versions).map_err(|_| Error::TooManyVersions)?;
        state.versions += 1;
        Ok(RecordVersion::incomplete(local))
    }

    /// Notes the version that this transaction has written in the row `key`; `None` if it has cleared it.
    pub(crate) fn note_version(&self, key: Vec<u8>, version: Option<RecordVersion>) {
        let mut state = self.state();
        match (version, state.written.get_mut(&key)) {
            (None, None) => {}
            // A complete version can be read, unless an incomplete one was written before it.
            (Some(version), None) if version.is_complete() => {}
            (version, Some(written)) => *written = version,
            (version, None) => {
                state.written.insert(key, version);
            }
        }
    }

    /// The version that this transaction has written in the row `key`, if it cannot read it; `Some(None)` if
    /// it has cleared it.
    pub(crate) fn written_version(&self, key: &[u8]) -> Option<Option<RecordVersion>> {
        self.state().written.get(key).cloned()
    }

    /// The first version in a range of keys that this transaction has written and cannot read, or the last
    /// one.
    pub(crate) fn written_between(
        &self,
        begin: &[u8],
        end: &[u8],
        last: bool,
    ) -> Option<(Vec<u8>, Option<RecordVersion>)> {
        if begin >= end {
            return None;
        }
        let state = self.state();
        let mut found = state.written.range::<[u8], _>((Bound::Included(begin), Bound::Excluded(end)));
        let found = if last { found.next_back() } else { found.next() };
        found.map(|(key, version)| (key.clone(), version.clone()))
    }
}
