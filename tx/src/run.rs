//! The retry loop, and its information about transactions with unknown commit results.

use super::{Database, Error, Transaction};
use std::{fmt, future::Future};

/// The number of an attempt of a retry loop, and whether earlier attempts may have committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Attempt {
    /// 0 for the first attempt.
    pub number: u32,
    /// True once an earlier attempt has failed with an error after which it may have committed, and from then
    /// on: that a later attempt conflicts does not imply that the earlier one did not commit.
    pub maybe_committed: bool,
}

/// Why a retry loop gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunError<E> {
    /// The error of the last attempt.
    pub error: E,
    /// True if an attempt may have committed or may still commit. False guarantees that no attempt did or
    /// will.
    pub maybe_committed: bool,
    /// How many attempts were made.
    pub attempts: u32,
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        if self.maybe_committed {
            write!(f, ", and an attempt may have committed")?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RunError<E> {}

/// An error type that the closure of a transaction may return: FoundationDB errors, which the loop may retry,
/// and others, which end it.
pub trait RetryError: From<Error> {
    /// The FoundationDB error, if this is one.
    fn fdb(&self) -> Option<Error>;
}

impl RetryError for Error {
    fn fdb(&self) -> Option<Error> {
        Some(*self)
    }
}

/// The part of an attempt that follows its body, which does not depend on the body: commits, or handles the
/// error with which the body failed. Returns whether the transaction has committed; an error ends the loop.
async fn conclude<Tx: Transaction>(
    tx: &Tx,
    attempt: &mut Attempt,
    failed: Option<Error>,
) -> Result<bool, Error> {
    let error = match failed {
        Some(error) => error,
        None => match tx.commit().await {
            Ok(()) => return Ok(true),
            Err(e) => {
                attempt.maybe_committed |= e.leaves_commit_unknown();
                e
            }
        },
    };
    // on_error returns the error if it does not retry: not retryable, retry limit or timeout reached.
    tx.on_error(error).await?;
    attempt.number += 1;
    Ok(false)
}

/// Runs `body` until its transaction commits, it returns an error that is not retryable, or the transaction's
/// retry limit or timeout is reached. See [`Database::run`].
pub(super) async fn run<D, F, Fut, T, E>(db: &D, body: F) -> Result<T, RunError<E>>
where
    D: Database,
    F: Fn(D::Transaction, Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: RetryError + Send,
{
    let mut attempt = Attempt::default();
    let tx = match db.create_transaction() {
        Ok(tx) => tx,
        Err(e) => return Err(RunError { error: e.into(), maybe_committed: false, attempts: 0 }),
    };
    loop {
        let give_up = |error, attempt: Attempt| RunError {
            error,
            maybe_committed: attempt.maybe_committed,
            attempts: attempt.number + 1,
        };
        let (value, failed) = match body(tx.clone(), attempt).await {
            Ok(value) => (Some(value), None),
            Err(e) => match e.fdb() {
                Some(failed) => (None, Some(failed)),
                None => return Err(give_up(e, attempt)),
            },
        };
        match (conclude(&tx, &mut attempt, failed).await, value) {
            (Ok(true), Some(value)) => return Ok(value),
            (Ok(_), _) => {}
            (Err(e), _) => return Err(give_up(E::from(e), attempt)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_says_why_and_whether_it_may_have_happened() {
        let failed = |maybe_committed| {
            RunError { error: Error::NOT_COMMITTED, maybe_committed, attempts: 1 }.to_string()
        };
        assert_eq!(failed(false), Error::NOT_COMMITTED.to_string());
        assert_eq!(failed(true), format!("{}, and an attempt may have committed", Error::NOT_COMMITTED));
    }
}
