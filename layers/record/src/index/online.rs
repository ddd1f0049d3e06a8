//! Builds and scrubs of indexes on a database, in as many transactions as they need.

use super::{
    IndexEntry, IndexState,
    build::{Batch, Progress},
    scrub::{Scrub, Scrubbed},
};
use crate::{
    cursor::Continuation,
    error::Error,
    store::{RecordContext, RecordStore, RecordStoreBuilder},
};
use shaketable_layers::{
    sometimes,
    tx::{Database, RunError, Transaction},
};
use std::future::Future;

/// What a build has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildReport {
    /// The state of each index now, in the order in which they were named.
    pub states: Vec<IndexState>,
    /// The records that this builder has read.
    pub records: usize,
}

/// What a scrub has found.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrubReport {
    /// The entries that are missing or dangling; those that were repaired in an attempt whose commit had an unknown
    /// result may not be here.
    pub found: Vec<IndexEntry>,
    /// How many records or entries were looked at.
    pub scanned: usize,
}

impl<T: Transaction> RecordStoreBuilder<T> {
    /// Builds indexes together, in one pass over the records, in transactions of at most `records` records each, until
    /// they are readable. Indexes that are readable stay so. Any number of builders can work at the same time, and each
    /// call continues what others have begun.
    ///
    /// Fails with the errors of opening the store, with [`Error::Torn`] at a record that cannot be read, and with what a
    /// maintainer refuses: [`Error::EntryTooLarge`] for example. What was built remains.
    ///
    /// Dropping the future: the last batch is done or not. What was built remains; call again to continue.
    pub fn build_indexes<'a, D: Database<Transaction = T>>(
        &'a self,
        db: &'a D,
        indexes: &'a [&'a str],
        records: usize,
    ) -> impl Future<Output = Result<BuildReport, RunError<Error>>> + Send + 'a {
        async move {
            let begin = |store: RecordStore<T>| async move { store.begin_index_builds(indexes) };
            let mut read = 0;
            let mut wanted = self.transact(db, begin).await?;
            while wanted {
                let batch = Batch { records, choice: db.env().random_u64() };
                let build = |store: RecordStore<T>| async move { store.build_indexes(indexes, batch).await };
                let Progress { records, complete } = self.transact(db, build).await?;
                read += records;
                wanted = !complete;
            }
            let finish = |store: RecordStore<T>| async move {
                let mut states = Vec::new();
                for name in indexes {
                    states.push(store.mark_index_readable(name).await?);
                }
                Ok(states)
            };
            Ok(BuildReport { states: self.transact(db, finish).await?, records: read })
        }
    }

    /// Scrubs an index, in transactions of at most `limit` records or entries each; see [`scrub`](super::scrub).
    ///
    /// Dropping the future: batches that were repaired stay so.
    pub fn scrub_index<'a, D: Database<Transaction = T>>(
        &'a self,
        db: &'a D,
        index: &'a str,
        scrub: Scrub,
        repair: bool,
        limit: usize,
    ) -> impl Future<Output = Result<ScrubReport, RunError<Error>>> + Send + 'a {
        async move {
            let mut report = ScrubReport { found: Vec::new(), scanned: 0 };
            let mut from = Continuation::Start;
            while from != Continuation::End {
                let next = &from;
                let one = |store: RecordStore<T>| async move {
                    store.scrub_index(index, scrub, repair, next.clone(), limit).await
                };
                let Scrubbed { found, scanned, continuation } = self.transact(db, one).await?;
                report.found.extend(found);
                report.scanned += scanned;
                from = continuation;
            }
            Ok(report)
        }
    }

    /// Runs `body` on the store in a transaction of its own, again if that fails.
    async fn transact<D, F, Fut, R>(&self, db: &D, body: F) -> Result<R, RunError<Error>>
    where
        D: Database<Transaction = T>,
        F: Fn(RecordStore<T>) -> Fut + Send + Sync,
        Fut: Future<Output = Result<R, Error>> + Send,
        R: Send,
    {
        let body = &body;
        db.run(|tx, attempt| async move {
            sometimes!(
                attempt.maybe_committed,
                "record: a batch of an index is done again after an unknown result"
            );
            let context = RecordContext::within(tx);
            let result = body(self.open(&context).await?).await?;
            context.close();
            Ok(result)
        })
        .await
    }
}
