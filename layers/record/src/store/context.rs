//! The record context: a transaction with what the record stores in it share.

use crate::{error::Error, version::RecordVersion};
use futures::future::BoxFuture;
use shaketable_layers::tx::{Database, Transaction};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A transaction, for any number of record stores. Clones are the same context.
///
/// [`open`](RecordContext::open) begins a transaction of its own, which [`commit`](RecordContext::commit) commits, once; a
/// context that is dropped or closed without it is not committed. [`within`](RecordContext::within) uses the transaction
/// of a retry loop, such as [`Session::apply`](shaketable_layers::once::Session::apply), which commits it.
pub struct RecordContext<T>(Arc<Inner<T>>);

struct Inner<T> {
    tx: T,
    owned: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    versionstamp: Option<BoxFuture<'static, shaketable_layers::tx::Result<[u8; 10]>>>,
    /// How many record versions this transaction has given.
    versions: u32,
    /// The versions that this transaction has written, by the key of their row: it cannot read them.
    written: BTreeMap<Vec<u8>, RecordVersion>,
}

impl<T> Clone for RecordContext<T> {
    fn clone(&self) -> Self {
        RecordContext(self.0.clone())
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
        RecordContext(Arc::new(Inner { tx, owned, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transaction. Fails with [`Error::Closed`] after a commit or [`close`](RecordContext::close).
    pub fn transaction(&self) -> Result<&T, Error> {
        match self.state().closed {
            true => Err(Error::Closed),
            false => Ok(&self.0.tx),
        }
    }

    /// Commits, once; the context is then closed, whatever the result. If the result of the commit is unknown
    /// ([`leaves_commit_unknown`](shaketable_layers::tx::Error::leaves_commit_unknown)), the changes may have been
    /// made, or may still be: use a [`Session`](shaketable_layers::once::Session) where that matters.
    ///
    /// Dropping the future: the commit may still happen.
    pub async fn commit(&self) -> Result<(), Error> {
        if !self.0.owned {
            return Err(Error::NotOwned);
        }
        {
            let mut state = self.state();
            if std::mem::replace(&mut state.closed, true) {
                return Err(Error::Closed);
            }
            if !state.written.is_empty() {
                state.versionstamp = Some(self.0.tx.get_versionstamp());
            }
        }
        Ok(self.0.tx.commit().await?)
    }

    /// Ends the transaction; without a commit its changes are not made.
    pub fn close(&self) {
        let open = !std::mem::replace(&mut self.state().closed, true);
        if open && self.0.owned {
            self.0.tx.cancel();
        }
    }

    /// The versionstamp of the commit, with which versions of this transaction are
    /// [completed](RecordVersion::completed). `None` if it was not committed by [`commit`](RecordContext::commit), or has
    /// given no version, or if this was called before.
    pub async fn versionstamp(&self) -> Result<Option<[u8; 10]>, Error> {
        let stamp = self.state().versionstamp.take();
        Ok(match stamp {
            Some(stamp) => Some(stamp.await?),
            None => None,
        })
    }

    /// A version for the next record.
    pub(crate) fn next_version(&self) -> Result<RecordVersion, Error> {
        let mut state = self.state();
        let local = u16::try_from(state.versions).map_err(|_| Error::TooManyVersions)?;
        state.versions += 1;
        Ok(RecordVersion::incomplete(local))
    }

    /// Notes the version that this transaction has written in the row `key`; `None` if it was cleared.
    pub(crate) fn note_version(&self, key: Vec<u8>, version: Option<RecordVersion>) {
        let mut state = self.state();
        match version {
            Some(version) => state.written.insert(key, version),
            None => state.written.remove(&key),
        };
    }

    /// The incomplete version that this transaction has written in the row `key`.
    pub(crate) fn written_version(&self, key: &[u8]) -> Option<RecordVersion> {
        self.state().written.get(key).cloned()
    }
}
