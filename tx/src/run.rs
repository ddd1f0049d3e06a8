//! The retry loop, and its information about transactions with unknown commit results.

use super::{Database, Error, Transaction};
use futures::future::{BoxFuture, FutureExt};
use std::{
    fmt,
    future::Future,
    sync::{Mutex, PoisonError},
};

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

/// What a retry loop repeats, without the type of its value: the value of the last attempt is kept beside it.
type Body<'a, Tx, E> = dyn Fn(Tx, Attempt) -> BoxFuture<'a, Result<(), E>> + Send + Sync + 'a;

/// Runs `body` until its transaction commits, it returns an error that is not retryable, or the transaction's
/// retry limit or timeout is reached. See [`Database::run`].
///
/// The loop itself is compiled once for each type of errors: there are hundreds of bodies.
pub(super) async fn run<D, F, Fut, T, E>(db: &D, body: F) -> Result<T, RunError<E>>
where
    D: Database,
    F: Fn(D::Transaction, Attempt) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, E>> + Send,
    T: Send,
    E: RetryError + Send,
{
    let value = Kept::default();
    let kept = |tx, attempt| {
        value.keep(None);
        let ran = body(tx, attempt);
        let value = &value;
        async move {
            value.keep(Some(ran.await?));
            Ok(())
        }
        .boxed()
    };
    repeat(db, &kept).await?;
    Ok(value.into_inner().expect("the body of a committed attempt has ended"))
}

/// A value that is kept beside code that is compiled without its type.
pub(crate) struct Kept<T>(Mutex<Option<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Mutex::new(None))
    }
}

impl<T> Kept<T> {
    pub(crate) fn keep(&self, value: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    /// The last value.
    pub(crate) fn into_inner(self) -> Option<T> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn repeat<D, E>(db: &D, body: &Body<'_, D::Transaction, E>) -> Result<(), RunError<E>>
where
    D: Database,
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
        let failed = match body(tx.clone(), attempt).await {
            Ok(()) => match tx.commit().await {
                Ok(()) => return Ok(()),
                Err(e) => {
                    attempt.maybe_committed |= e.leaves_commit_unknown();
                    e
                }
            },
            Err(e) => e.fdb().ok_or_else(|| give_up(e, attempt))?,
        };
        // on_error returns the error if it does not retry: not retryable, retry limit or timeout reached.
        tx.on_error(failed).await.map_err(|e| give_up(E::from(e), attempt))?;
        attempt.number += 1;
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
