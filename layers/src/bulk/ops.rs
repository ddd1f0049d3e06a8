//! Long jobs, with one batch per transaction.

use super::{Error, Progress};
use crate::{
    limits, sometimes,
    tx::{
        self, Database, Env, Isolation, KeyValue, RangeOption, RetryError, RunError, Transaction, key_after,
    },
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use futures::TryStreamExt;
use std::{future::Future, pin::pin, time::Duration};

/// Where a batch ends, apart from the end of the range: at the first limit reached, but not before one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of rows.
    pub rows: usize,
    /// The approximate number of bytes that the commit would send.
    pub bytes: i64,
    /// The time since the batch began.
    pub time: Duration,
}

impl Default for Limits {
    /// A tenth of the size limit and a fifth of the time limit of a transaction.
    fn default() -> Limits {
        Limits {
            rows: 1_000,
            bytes: limits::TRANSACTION_SIZE_LIMIT as i64 / 10,
            time: Duration::from_secs(1),
        }
    }
}

impl Limits {
    /// Halves the limits `times` times.
    fn halved(self, times: u32) -> Limits {
        let times = times.min(31);
        let rows = (self.rows.min(u32::MAX as usize) >> times).max(1);
        Limits { rows, bytes: (self.bytes >> times).max(1), time: self.time / (1 << times) }
    }
}

/// A job over the rows of a range. It is identified by its recorded name: processes that use the same name
/// and range work on the same job.
#[derive(Clone, Debug)]
pub struct Job {
    key: Bytes,
    begin: Bytes,
    end: Bytes,
}

impl Job {
    /// The job with this name, recorded in `jobs`, over the rows of `range`.
    pub fn new(jobs: &Subspace, name: &[u8], range: (Vec<u8>, Vec<u8>)) -> Result<Job, Error> {
        let key: Bytes = jobs.pack(&(TupleBytes::from(name),)).into();
        limits::key(&key)?;
        Ok(Job { key, begin: range.0.into(), end: range.1.into() })
    }

    /// The progress of the job.
    pub async fn progress<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Progress, Error> {
        let tx = &tx.reading().await;
        match tx.get(&self.key, isolation).await? {
            Some(value) => {
                let progress = Progress::decode(&self.key, &value)?;
                // A cursor outside of the range would lead the job to rows outside of its range.
                match (&self.begin..=&self.end).contains(&&progress.cursor) {
                    true => Ok(progress),
                    false => Err(Error::foreign(&self.key)),
                }
            }
            None => Ok(Progress { rows: 0, finished: false, cursor: self.begin.clone() }),
        }
    }

    /// Whether the job has passed this key of its range. Serializable: the result still holds when the
    /// transaction commits.
    pub async fn has_passed<T: Transaction>(&self, tx: &T, key: &[u8]) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        if !(&self.begin[..]..&self.end[..]).contains(&key) {
            return Err(Error::OutsideRange { key: Bytes::copy_from_slice(key) });
        }
        let progress = self.progress(tx, Isolation::Serializable).await?;
        Ok(progress.finished || key < &progress.cursor[..])
    }

    /// Processes the next batch in this transaction: calls `work` for each row in order.
    pub async fn step<T, F, Fut, E>(&self, tx: &T, env: &Env, limits: &Limits, work: F) -> Result<Progress, E>
    where
        T: Transaction,
        F: Fn(T, KeyValue) -> Fut + Send + Sync,
        Fut: Future<Output = Result<(), E>> + Send,
        E: From<Error>,
    {
        let tx = &tx.writing().await;
        let fdb = |e: tx::Error| E::from(Error::Fdb(e));
        let began = env.now();
        let mut progress = self.progress(tx, Isolation::Serializable).await?;
        if progress.finished {
            return Ok(progress);
        }
        // Rows are read as they are needed: a batch of this many rows may exceed what a transaction can hold.
        let rest = RangeOption::new(progress.cursor.clone(), self.end.clone());
        let mut rows = pin!(tx.get_ranges_keyvalues(rest, Isolation::Serializable));
        let mut done = 0;
        while done < limits.rows.max(1) {
            let Some(row) = rows.try_next().await.map_err(fdb)? else {
                progress.finished = true;
                progress.cursor = self.end.clone();
                break;
            };
            let cursor = key_after(&row.key);
            let rows = progress.rows.checked_add(1).ok_or_else(|| Error::foreign(&self.key))?;
            work(tx.clone(), row).await?;
            (progress.rows, progress.cursor, done) = (rows, cursor, done + 1);
            let bytes = tx.get_approximate_size().await.map_err(fdb)?;
            if bytes >= limits.bytes || env.now().saturating_sub(began) >= limits.time {
                break;
            }
        }
        sometimes!(!progress.finished, "bulk: a batch leaves rows for the next one");
        tx.set(&self.key, &progress.encode());
        Ok(progress)
    }

    /// Runs [`step`](Job::step) in its own transactions until one commits: after an unknown result this may
    /// process a second batch, but never the same one again. Each attempt has half of the limits of the
    /// previous one.
    ///
    /// Dropping the future: the batch may or may not be committed, or may still commit later. The job's
    /// cursor moves together with its rows, so that the next call continues from the job's position at that
    /// time.
    pub fn advance<D, F, Fut, E>(
        &self,
        db: &D,
        limits: &Limits,
        work: F,
    ) -> impl Future<Output = Result<Progress, RunError<E>>> + Send
    where
        D: Database,
        F: Fn(D::Transaction, KeyValue) -> Fut + Send + Sync,
        Fut: Future<Output = Result<(), E>> + Send,
        E: RetryError + From<Error> + Send,
    {
        async move {
            let (mut limits, work) = (*limits, &work);
            loop {
                let stepped = db
                    .run(|tx, attempt| async move {
                        self.step(&tx, db.env(), &limits.halved(attempt.number), work).await
                    })
                    .await;
                match stepped {
                    // The retry loop would not make it smaller.
                    Err(e) if e.error.fdb() == Some(tx::Error::TRANSACTION_TOO_LARGE) && limits.rows > 1 => {
                        limits = limits.halved(1);
                    }
                    stepped => return stepped,
                }
            }
        }
    }

    /// Runs the job to its end, batch by batch, from its current position.
    ///
    /// Dropping the future: committed batches stay, and the next call continues after them, as with
    /// [`advance`](Job::advance).
    pub fn run<D, F, Fut, E>(
        &self,
        db: &D,
        limits: &Limits,
        work: F,
    ) -> impl Future<Output = Result<Progress, RunError<E>>> + Send
    where
        D: Database,
        F: Fn(D::Transaction, KeyValue) -> Fut + Send + Sync,
        Fut: Future<Output = Result<(), E>> + Send,
        E: RetryError + From<Error> + Send,
    {
        async move {
            let work = &work;
            loop {
                let progress = self.advance(db, limits, work).await?;
                if progress.finished {
                    return Ok(progress);
                }
            }
        }
    }

    /// Resets the job to its state before it was begun; the effects of its work stay.
    pub async fn forget<T: Transaction>(&self, tx: &T) -> Result<(), Error> {
        let tx = &tx.writing().await;
        tx.clear(&self.key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_batch_is_a_row_at_least() {
        let limits = Limits { rows: 9, bytes: 100, time: Duration::from_millis(80) };
        let half = limits.halved(1);
        assert_eq!((half.rows, half.bytes, half.time), (4, 50, Duration::from_millis(40)));
        let least = limits.halved(200);
        assert_eq!((least.rows, least.bytes), (1, 1));
        assert_eq!(limits.halved(0), limits);
    }

    #[test]
    fn the_default_limits_are_shares_of_those_of_a_transaction() {
        let shares = Limits { rows: 1_000, bytes: 1_000_000, time: Duration::from_secs(1) };
        assert_eq!(Limits::default(), shares);
    }

    #[test]
    fn a_name_that_is_too_long_for_a_key_is_refused() {
        let job = Job::new(&Subspace::from("j"), &[b'n'; 10_000], (vec![], vec![0xff]));
        assert!(matches!(job, Err(Error::TooLarge(limits::TooLarge::Key { .. }))));
    }
}
