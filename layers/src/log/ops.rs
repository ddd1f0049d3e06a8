//! Operations on logs: within a transaction, and waiting for new entries.

use super::{Appended, Error, Position, keys};
use crate::{
    reachable, read, sometimes,
    tx::{self, Database, Isolation, KeyValue, MutationType, RangeOption, RunError, Transaction, key_after},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::{Either, select};
use std::{future::Future, time::Duration};

/// A log in its own subspace.
#[derive(Clone, Debug)]
pub struct Log {
    subspace: Subspace,
}

/// An entry of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub position: Position,
    /// Its value.
    pub value: Bytes,
}

/// How long a tail waits after a watch has failed before it reads again.
const PAUSE: Duration = Duration::from_millis(10);

impl Log {
    /// The log in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Log {
        Log { subspace }
    }

    /// Appends an entry. Its stamp is known only after the commit.
    pub async fn append<T: Transaction>(&self, tx: &T, value: &[u8]) -> Result<Appended, Error> {
        let tx = &tx.writing().await;
        keys::fits(&self.subspace, value)?;
        // With a known read version, only later stamps become unreadable in this transaction, and existing
        // entries stay readable.
        tx.get_read_version().await?;
        let place = Appended::new(tx.get_approximate_size().await?);
        tx.atomic_op(&keys::appended(&self.subspace, place), value, MutationType::SetVersionstampedKey);
        // Ten bytes to be replaced, at offset 0.
        tx.atomic_op(&keys::head(&self.subspace), &[0; 14], MutationType::SetVersionstampedValue);
        Ok(place)
    }

    /// Up to `limit` entries after the position `after`, in order; from the beginning of the log if there is
    /// none. Fails if they exceed [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes: use a lower `limit`.
    pub async fn scan<T: Transaction>(
        &self,
        tx: &T,
        after: Option<Position>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Entry>, Error> {
        let tx = &tx.reading().await;
        // FoundationDB treats a limit of 0 as unlimited.
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (begin, end) = keys::entries(&self.subspace).range();
        let begin = after.map_or(begin.into(), |after| key_after(&keys::entry(&self.subspace, &after)));
        let rows = read::all::<_, Error>(tx, RangeOption::new(begin, end).limit(limit), isolation).await;
        rows.map_err(own)?.into_iter().map(|row| self.entry(row)).collect()
    }

    /// The last entry.
    pub async fn last<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<Entry>, Error> {
        let tx = &tx.reading().await;
        let range = RangeOption::from(keys::entries(&self.subspace).range()).reversed().limit(1);
        let mut rows = read::all::<_, Error>(tx, range, isolation).await.map_err(own)?;
        rows.pop().map(|row| self.entry(row)).transpose()
    }

    /// Removes the entries up to and including a position.
    pub async fn trim<T: Transaction>(&self, tx: &T, up_to: Position) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let (begin, _) = keys::entries(&self.subspace).range();
        tx.clear_range(&begin, &key_after(&keys::entry(&self.subspace, &up_to)));
        Ok(())
    }

    /// Like [`scan`](Log::scan) at snapshot, but if there is no entry, waits for one until `patience` has run
    /// out, and then reads once more before it returns an empty result. With a limit of 0 it does not wait.
    ///
    /// Dropping the future has no effect.
    pub fn tail<D: Database>(
        &self,
        db: &D,
        after: Option<Position>,
        limit: usize,
        patience: Duration,
    ) -> impl Future<Output = Result<Vec<Entry>, RunError<Error>>> + Send {
        async move {
            let env = db.env();
            let mut patience = env.sleep(patience);
            let mut waits = limit > 0;
            loop {
                let looked = db.run(|tx, _| async move {
                    let entries = self.scan(&tx, after, limit, Isolation::Snapshot).await?;
                    // Set in the transaction that has found nothing: every later entry wakes the watch.
                    let change = (waits && entries.is_empty()).then(|| tx.watch(&keys::head(&self.subspace)));
                    Ok::<_, Error>((entries, change))
                });
                let (entries, change) = looked.await?;
                let Some(change) = change else { return Ok(entries) };
                match select(change, &mut patience).await {
                    Either::Left((Ok(()), _)) => reachable!("log: a tail is woken"),
                    Either::Left((Err(e), _)) if e.is_retryable() => env.sleep(PAUSE).await,
                    Either::Left((Err(e), _)) => {
                        return Err(RunError { error: e.into(), maybe_committed: false, attempts: 1 });
                    }
                    Either::Right(_) => {
                        reachable!("log: a tail runs out of patience");
                        waits = false;
                    }
                }
            }
        }
    }

    fn entry(&self, row: KeyValue) -> Result<Entry, Error> {
        Ok(Entry { position: keys::position(&self.subspace, &row.key)?, value: row.value })
    }
}

/// In a log, a range is unreadable only where its own transaction has appended.
fn own(error: Error) -> Error {
    let is_own = error == Error::Fdb(tx::Error::ACCESSED_UNREADABLE);
    sometimes!(is_own, "log: a transaction comes to its own entries");
    if is_own { Error::OwnEntriesUnreadable } else { error }
}
