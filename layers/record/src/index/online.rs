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
use shaketable_tx::{Database, Error as FdbError, RetryError, RunError, Transaction, sometimes};
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
    /// The entries that are missing or dangling; those that were repaired in an attempt whose commit had an
    /// unknown result may not be here.
    pub found: Vec<IndexEntry>,
    /// How many records or entries were looked at.
    pub scanned: usize,
}

impl<T: Transaction> RecordStoreBuilder<T> {
    /// Builds indexes together, in one pass over the records, in transactions of at most `records` records
    /// each, until they are readable. A transaction that fails is done again with half of its records, down
    /// to one: it may have read or written too much (1004, 1007, 1031, 2101), or conflict with others (1020).
    /// Indexes that are readable stay so. Any number of builders can work at the same time, and each call
    /// continues what others have begun.
    ///
    /// Fails if a transaction of one record does; with the errors of opening the store, with [`Error::Torn`]
    /// at a record that cannot be read, and with what a maintainer refuses: [`Error::EntryTooLarge`] for
    /// example. What was built remains.
    ///
    /// Dropping the future: the last batch is done or not. What was built remains; call again to continue.
    pub fn build_indexes<'a, D: Database<Transaction = T>>(
        &'a self,
        db: &'a D,
        indexes: &'a [&'a str],
        records: usize,
    ) -> impl Future<Output = Result<BuildReport, RunError<Error>>> + Send + 'a {
        async move {
            let begin = |store: RecordStore<T>, _| async move { store.begin_index_builds(indexes).await };
            let (mut read, mut size) = (0, BatchSize::new(records));
            let mut wanted = self.transact(db, &mut BatchSize::new(1), begin).await?;
            while wanted {
                let choice = db.env().random_u64();
                let build = |store: RecordStore<T>, records| async move {
                    store.build_indexes(indexes, Batch { records, choice }).await
                };
                let Progress { records, complete } = self.transact(db, &mut size, build).await?;
                read += records;
                wanted = !complete;
            }
            let finish = |store: RecordStore<T>, _| async move {
                let mut states = Vec::new();
                for name in indexes {
                    states.push(store.mark_index_readable(name).await?);
                }
                Ok(states)
            };
            let states = self.transact(db, &mut BatchSize::new(1), finish).await?;
            Ok(BuildReport { states, records: read })
        }
    }

    /// Scrubs an index, in transactions of at most `limit` records or entries each, and of fewer if they
    /// fail; see [`scrub`](super::scrub).
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
            let (mut from, mut size) = (Continuation::Start, BatchSize::new(limit));
            while from != Continuation::End {
                let next = &from;
                let one = |store: RecordStore<T>, limit| async move {
                    store.scrub_index(index, scrub, repair, next.clone(), limit).await
                };
                let Scrubbed { found, scanned, continuation } = self.transact(db, &mut size, one).await?;
                report.found.extend(found);
                report.scanned += scanned;
                from = continuation;
            }
            Ok(report)
        }
    }

    /// Runs `body` on the store in a transaction of its own, with the size of its batch; again if that fails,
    /// with half of the size.
    async fn transact<D, F, Fut, R>(
        &self,
        db: &D,
        size: &mut BatchSize,
        body: F,
    ) -> Result<R, RunError<Error>>
    where
        D: Database<Transaction = T>,
        F: Fn(RecordStore<T>, usize) -> Fut + Send + Sync,
        Fut: Future<Output = Result<R, Error>> + Send,
        R: Send,
    {
        let body = &body;
        loop {
            let first = size.now;
            let ran = db.run(|tx, attempt| async move {
                sometimes!(
                    attempt.maybe_committed,
                    "record: a batch of an index is done again after an unknown result"
                );
                let used = halved(first, attempt.number);
                sometimes!(used < first, "record: a batch of an index is lessened");
                let context = RecordContext::within(tx);
                let result = body(self.open(&context).await?, used).await?;
                context.close();
                Ok((result, used))
            });
            match ran.await {
                Ok((result, used)) => {
                    size.succeeded(used);
                    return Ok(result);
                }
                Err(failed) => size.failed(halved(first, failed.attempts.saturating_sub(1)), failed)?,
            }
        }
    }
}

/// The number of records in a batch: less while transactions fail, and more again when they commit.
struct BatchSize {
    most: usize,
    now: usize,
}

impl BatchSize {
    fn new(most: usize) -> BatchSize {
        BatchSize { most: most.max(1), now: most.max(1) }
    }

    fn succeeded(&mut self, used: usize) {
        self.now = self.most.min(used + used / 8 + 1);
    }

    /// Goes on with a lesser batch after an error that the retry loop has given up for, if a batch of this
    /// size was too large or took too long.
    fn failed(&mut self, used: usize, failed: RunError<Error>) -> Result<(), RunError<Error>> {
        let is_size = failed.error.fdb().is_some_and(|error| TOO_MUCH.contains(&error));
        if !is_size || used == 1 {
            return Err(failed);
        }
        self.now = used / 2;
        Ok(())
    }
}

/// With which errors a transaction fails that reads or writes too much.
const TOO_MUCH: [FdbError; 5] = [
    FdbError::from_code(1004),
    FdbError::TRANSACTION_TOO_OLD,
    FdbError::NOT_COMMITTED,
    FdbError::TRANSACTION_TIMED_OUT,
    FdbError::TRANSACTION_TOO_LARGE,
];

/// Half of a size for each attempt that failed.
fn halved(size: usize, failed: u32) -> usize {
    size.checked_shr(failed).unwrap_or(0).max(1)
}
