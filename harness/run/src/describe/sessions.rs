//! Helpers for workloads whose clients have exactly-once sessions: where the sessions are stored, how they
//! are opened and get a timeout, and how an unknown outcome is resolved.

use crate::describe::workload::Outcome;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_sim::{judges::SESSIONS, proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db, RetryError, RunError,
    once::{self, Fate, OpId, Session, Slots},
};
use std::{fmt::Display, future::poll_fn, pin::pin, task::Poll, time::Duration};

/// Where the sessions of a workload's clients are stored.
pub fn slots() -> Slots {
    Slots::new(Subspace::from_bytes(SESSIONS))
}

/// Whether a key is a part of the stored sessions.
pub(crate) fn has(key: &[u8]) -> bool {
    key.starts_with(SESSIONS)
}

/// The result of a setup in a retry loop. Panics if the layer refuses it: the panic is a finding of the run
/// and has the refusal's message, which an error of the database cannot have.
#[doc(hidden)]
pub fn set_up<E: RetryError + Display>(filled: Result<(), RunError<E>>) -> tx::Result<()> {
    filled.map_err(|e| match e.error.fdb() {
        Some(error) => error,
        None => panic!("the layer refuses: {}", e.error),
    })
}

/// Opens the session of a client, and sets the timeout, in milliseconds, on the client's database.
pub async fn open(db: &Db, client: usize, timeout: Option<i32>) -> tx::Result<Session<Db>> {
    let session = Session::open(db, &slots(), client as u64).await;
    let session = session.map_err(|e| e.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))?;
    limit(db, timeout)?;
    Ok(session)
}

/// Sets the timeout of the transactions of a database.
fn limit(db: &Db, timeout: Option<i32>) -> tx::Result<()> {
    timeout.map_or(Ok(()), |timeout| db.set_option(DatabaseOption::TransactionTimeout(timeout)))
}

/// Resolves the operation whose outcome the session reported as unknown, however long that takes. `resolve`
/// resolves it and returns its outcome if it was applied. Transactions have no timeout meanwhile. If the
/// session reported no unknown outcome, the operation was not done through the session, and its outcome
/// remains unknown.
pub async fn resolve_unknown<A>(
    session: &mut Session<Db>,
    timeout: Option<i32>,
    error: tx::Error,
    resolve: impl AsyncFn(&mut Session<Db>, OpId) -> Result<Fate<Outcome<A>>, once::Error>,
) -> Outcome<A> {
    let db = session.database().clone();
    let Some(unknown) = session.unknown() else { return Outcome::Unknown(error) };
    let resolved = patiently(&db, timeout, async {
        loop {
            match resolve(session, unknown).await {
                Ok(Fate::Applied(outcome)) => return outcome,
                Ok(Fate::NotApplied) => return Outcome::Failed(error),
                Ok(Fate::Forgotten) => {
                    return Outcome::Violated("a session's own operation was forgotten".into());
                }
                Err(e) if e.fdb().is_some() => db.env().sleep(Duration::from_millis(10)).await,
                Err(e) => return Outcome::Violated(e.to_string()),
            }
        }
    });
    resolved.await.unwrap_or_else(|e| Outcome::Violated(format!("a timeout was refused: {e}")))
}

/// Resolves the dropped operation of a session, if there is one. The session must do this before its next
/// operation.
pub async fn resolve_dropped(session: &mut Session<Db>, timeout: Option<i32>) {
    let Some(dropped) = session.unresolved() else { return };
    let db = session.database().clone();
    let read = patiently(&db, timeout, async {
        while let Err(once::Error::Fdb(_)) = session.resolve::<Bytes>(dropped).await {
            db.env().sleep(Duration::from_millis(10)).await;
        }
    });
    // Setting the option cannot fail, since it succeeded before. A session with an unresolved operation
    // refuses the next one.
    let _ = read.await;
}

/// Whether a transaction with these mutations only ensured that an operation has no effect.
pub fn is_fence(mutations: &[Mutation]) -> bool {
    matches!(mutations, [Mutation::Set(key, value)] if slots().is_fence(key, value))
}

/// Whether all mutations are below one of these subspaces.
pub fn is_below(spaces: &[Subspace], mutations: &[Mutation]) -> bool {
    mutations.iter().all(|mutation| {
        let key = match mutation {
            Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key,
            Mutation::ClearRange(range) => &range.begin,
        };
        spaces.iter().any(|space| space.is_start_of(key))
    })
}

/// Draws the timeout that the clients of a seed set on their database, in milliseconds: none in some seeds,
/// and in others one that is so short that it elapses during commits.
pub fn draw_timeout(rng: &mut Stream) -> Option<i32> {
    rng.chance(0.5).then(|| *rng.pick(&[10, 20, 40, 80, 200, 1_000]))
}

/// Resolves the outcome of one step of an operation. Returns `None` if it was not applied and may be done
/// again. The error is a refusal of the layer.
pub async fn known<A: once::Answer, E: RetryError + From<once::Error>>(
    session: &mut Session<Db>,
    outcome: once::Outcome<A, E>,
) -> Result<Option<A>, E> {
    let op = match outcome {
        once::Outcome::Applied(answer) => return Ok(Some(answer)),
        once::Outcome::Refused(e) if e.fdb().is_none() => return Err(e),
        once::Outcome::Refused(_) => return Ok(None),
        once::Outcome::Unknown(op) => op,
    };
    loop {
        match session.resolve::<A>(op).await {
            Ok(Fate::Applied(answer)) => return Ok(Some(answer)),
            Ok(_) => return Ok(None),
            Err(e) if e.fdb().is_some() => session.database().env().sleep(Duration::from_millis(10)).await,
            Err(e) => return Err(e.into()),
        }
    }
}

/// Polls `work` at most `most` times, and at least once. Returns `None` if it is still pending then, and
/// drops it.
pub async fn polled<T>(most: u64, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut polls) = (pin!(work), 0);
    let ended = poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            polls += 1;
            if polls < most { Poll::Pending } else { Poll::Ready(None) }
        }
    });
    ended.await
}

/// Runs `work` without a timeout on the transactions of the database. Afterwards the timeout, in
/// milliseconds, is set again, also if the future is dropped.
pub async fn patiently<A>(db: &Db, timeout: Option<i32>, work: impl Future<Output = A>) -> tx::Result<A> {
    struct Unlimited<'a>(&'a Db, Option<i32>);
    impl Drop for Unlimited<'_> {
        fn drop(&mut self) {
            // The database accepted this option before.
            let _ = limit(self.0, self.1);
        }
    }
    db.set_option(DatabaseOption::TransactionTimeout(0))?;
    let unlimited = Unlimited(db, timeout);
    let done = work.await;
    drop(unlimited);
    limit(db, timeout)?;
    Ok(done)
}
