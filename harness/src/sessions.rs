//! What workloads whose clients have exactly-once sessions share: where the sessions live, how they are
//! opened and limited, and how an unknown outcome becomes known.

use crate::workload::Outcome;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use shaketable_layers::{
    once::{self, Fate, OpId, Session, Slots},
    tx::{self, Database, DatabaseOption, RetryError},
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

/// Where the sessions of a workload's clients live.
pub fn slots() -> Slots {
    Slots::new(Subspace::from("sessions"))
}

/// Opens the session of a client, and sets its timeout on its database.
pub async fn open<D: Database>(db: &D, client: usize, timeout: Option<i32>) -> tx::Result<Session<D>> {
    let session = Session::open(db, &slots(), client as u64).await;
    let session = session.map_err(|e| e.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))?;
    limit(db, timeout)?;
    Ok(session)
}

/// Sets the clients' timeout on their database.
fn limit<D: Database>(db: &D, timeout: Option<i32>) -> tx::Result<()> {
    timeout.map_or(Ok(()), |timeout| db.set_option(DatabaseOption::TransactionTimeout(timeout)))
}

/// Learns what became of the operation that the session has answered as unknown, however long it takes: `ask`
/// resolves it and says how it ended if it was applied. Timeouts do not strike meanwhile. When the session has
/// answered none so, the unknown outcome is no session's, and stays.
pub async fn settle<D: Database, A>(
    session: &mut Session<D>,
    timeout: Option<i32>,
    error: tx::Error,
    ask: impl AsyncFn(&mut Session<D>, OpId) -> Result<Fate<Outcome<A>>, once::Error>,
) -> Outcome<A> {
    let db = session.database().clone();
    let Some(unknown) = session.unknown() else { return Outcome::Unknown(error) };
    let learnt = patiently(&db, timeout, async {
        loop {
            match ask(session, unknown).await {
                Ok(Fate::Applied(outcome)) => return outcome,
                Ok(Fate::NotApplied) => return Outcome::GaveUp(error),
                Ok(Fate::Forgotten) => {
                    return Outcome::Violated("a session's own operation was forgotten".into());
                }
                Err(e) if e.fdb().is_some() => db.env().sleep(Duration::from_millis(10)).await,
                Err(e) => return Outcome::Violated(e.to_string()),
            }
        }
    });
    learnt.await.unwrap_or_else(|e| Outcome::Violated(format!("a timeout was refused: {e}")))
}

/// Asks what became of the operation that was dropped, if one was: the session begins no other one before.
pub async fn read_dropped<D: Database>(session: &mut Session<D>, timeout: Option<i32>) {
    let Some(dropped) = session.unresolved() else { return };
    let db = session.database().clone();
    let read = patiently(&db, timeout, async {
        while let Err(once::Error::Fdb(_)) = session.resolve::<Bytes>(dropped).await {
            db.env().sleep(Duration::from_millis(10)).await;
        }
    });
    // The option was taken before; and a session that goes on without asking refuses to.
    let _ = read.await;
}

/// Whether a transaction of these mutations only made sure that an operation is without effect.
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

/// The timeout that a seed's clients set on their database, milliseconds: in some seeds none, in others
/// one so short that it strikes in the middle of commits.
pub fn draw_timeout(rng: &mut Stream) -> Option<i32> {
    rng.chance(0.5).then(|| *rng.pick(&[10, 20, 40, 80, 200, 1_000]))
}

/// What became of one step of an operation, for certain; `None` when it was not applied and may be done
/// again. The layer's refusal is the error.
pub async fn known<D: Database, A: once::Answer, E: RetryError + From<once::Error>>(
    session: &mut Session<D>,
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

/// The end of `work`; `None` when it still waits after so many polls, one at least, and is dropped.
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

/// Does something that ends when the database lets it, however long that takes: no timeouts strike
/// meanwhile. They are back when its future is dropped, too.
pub async fn patiently<D: Database, A>(
    db: &D,
    timeout: Option<i32>,
    work: impl Future<Output = A>,
) -> tx::Result<A> {
    struct Unlimited<'a, D: Database>(&'a D, Option<i32>);
    impl<D: Database> Drop for Unlimited<'_, D> {
        fn drop(&mut self) {
            // It took the same option before.
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
