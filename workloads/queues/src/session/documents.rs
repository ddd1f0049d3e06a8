//! The developer guide's "Transactions with unknown results": a deposit that may already have been made.

use super::operations::Long;
use crate::shared::cluster::{begin, on_cluster, session};
use bytes::Bytes;
use futures::future::join;
use parking_lot::Mutex;
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    MutationType, RetryError, RunError, Transaction, Tx,
    once::{Check, Error, Fate, MAX_ANSWER_BYTES, OpId, Outcome, PendingAnswer, Session, check, record},
};
use std::time::Duration;

const ACCOUNT: &[u8] = b"account";

/// Why a deposit was not made.
#[derive(Debug, PartialEq)]
enum Refusal {
    Fdb(tx::Error),
    AccountClosed,
}

impl From<tx::Error> for Refusal {
    fn from(e: tx::Error) -> Refusal {
        Refusal::Fdb(e)
    }
}

impl RetryError for Refusal {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Refusal::Fdb(e) => Some(*e),
            Refusal::AccountClosed => None,
        }
    }
}

/// One attempt at a deposit, up to its commit.
async fn deposit(tx: &Tx, session: &Session<Db>, op: OpId) -> PendingAnswer<u64> {
    let Ok(Check::New(permit)) = check::<_, u64>(tx, session.slots(), op).await else {
        panic!("{op} is recorded already");
    };
    tx.atomic_op(ACCOUNT, &10u64.to_le_bytes(), MutationType::Add);
    record(tx, permit, 10).expect("an answer that fits")
}

/// The result of a retry loop that was refused after an attempt with an unknown result.
fn refused_later() -> Result<PendingAnswer<u64>, RunError<Refusal>> {
    Err(RunError { error: Refusal::AccountClosed, maybe_committed: true, attempts: 2 })
}

async fn balance(db: &Db) -> Option<Bytes> {
    db.run(|tx, _| async move { tx.get(ACCOUNT, Serializable).await }).await.expect("a look")
}

#[test]
fn a_deposit_that_was_not_made_is_refused_behind_a_fence() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        let op = session.begin().await.expect("an id");
        let late = begin(&db);
        deposit(&late, &session, op).await;
        assert_eq!(session.conclude(op, refused_later()).await, Outcome::Refused(Refusal::AccountClosed));
        assert_eq!(session.pending(), None);
        // The earlier attempt, which was still in flight.
        assert_eq!(late.commit().await, Err(tx::Error::NOT_COMMITTED));
        assert_eq!(balance(&db).await, None);
    });
}

#[test]
fn a_deposit_that_was_made_is_no_refusal() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        let op = session.begin().await.expect("an id");
        let early = begin(&db);
        deposit(&early, &session, op).await;
        early.commit().await.expect("a calm cluster commits");
        assert_eq!(session.conclude(op, refused_later()).await, Outcome::Applied(10));
        assert_eq!(session.pending(), None);
        assert_eq!(balance(&db).await, Some(Bytes::copy_from_slice(&10u64.to_le_bytes())));
    });
}

#[test]
fn a_session_settles_a_deposit_by_itself_and_returns_its_fate() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        assert_eq!(session.settled::<u64>(), Ok(None));
        let op = session.begin().await.expect("an id");
        let tx = begin(&db);
        deposit(&tx, &session, op).await;
        tx.commit().await.expect("a calm cluster commits");
        // As if the reply to the commit had been lost.
        let error = tx::Error::COMMIT_UNKNOWN_RESULT;
        let lost = Err(RunError { error, maybe_committed: true, attempts: 1 });
        let unknown = session.conclude::<u64, tx::Error>(op, lost).await;
        assert!(matches!(unknown, Outcome::Unknown(_)), "{unknown:?}");
        session.begin().await.expect("the next operation");
        assert_eq!(session.settled::<u64>(), Ok(Some((op, Fate::Applied(10)))));
    });
}

#[test]
fn each_deposit_has_a_fate_of_its_own() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        // Never concluded, as when its future is dropped: no other operation begins until its fate has been
        // requested.
        let first = session.begin().await.expect("an id");
        assert_eq!(session.unresolved(), Some(first));
        assert_eq!(session.begin().await, Err(Error::Unresolved(first)));
        assert_eq!(session.resolve::<u64>(first).await, Ok(Fate::NotApplied));
        assert_eq!(session.unresolved(), None);
        let second = session.begin().await.expect("an id");
        let tx = begin(&db);
        let landing = deposit(&tx, &session, second).await;
        tx.commit().await.expect("a calm cluster commits");
        assert_eq!(session.conclude::<_, Refusal>(second, Ok(landing)).await, Outcome::Applied(10));
        assert_eq!(session.resolve::<u64>(first).await, Ok(Fate::Forgotten));
        assert_eq!(session.resolve::<u64>(second).await, Ok(Fate::Applied(10)));
    });
}

#[test]
fn a_clone_used_during_the_commit_is_no_refusal() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        let (mut applied, mut unseen) = (0, 0);
        for delay in 0..60 {
            let kept = Mutex::new(None);
            let deposit = async {
                let deposited = session.apply(|tx| {
                    *kept.lock() = Some(tx.clone());
                    async move {
                        tx.get(ACCOUNT, Serializable).await?;
                        tx.atomic_op(ACCOUNT, &10u64.to_le_bytes(), MutationType::Add);
                        Ok::<_, Error>(())
                    }
                });
                deposited.await
            };
            let meddle = async {
                db.env().sleep(Duration::from_micros(100 * delay)).await;
                let kept = kept.lock().clone();
                if let Some(tx) = kept {
                    // Its result is irrelevant: the call itself disturbs the commit.
                    let _ = tx.get(ACCOUNT, Serializable).await;
                }
            };
            match join(deposit, meddle).await.0 {
                Outcome::Applied(()) => applied += 1,
                Outcome::Unknown(op) => {
                    let fate = session.resolve::<()>(op).await.expect("a calm cluster answers");
                    unseen += u64::from(fate == Fate::Applied(()));
                }
                Outcome::Refused(e) => panic!("{e}"),
            }
        }
        assert!(applied > 0 && unseen > 0, "{applied} applied, {unseen} unseen");
        let balance = balance(&db).await.expect("some deposits");
        assert_eq!(balance[..], (10 * (applied + unseen)).to_le_bytes());
    });
}

/// Lengths around those that a head and a slot can hold.
#[test]
fn an_answer_that_is_too_large_is_refused_before_the_commit() {
    on_cluster(|db| async move {
        let mut session = session(&db).await;
        let most = MAX_ANSWER_BYTES;
        for (head, body, fits) in [
            (0, most - 1, true),
            (255, most - 256, true),
            (255, most - 255, false),
            (0, most, false),
            (256, 0, false),
            (512, 9, false),
        ] {
            let before = balance(&db).await;
            let outcome = session
                .apply(|tx| async move {
                    tx.atomic_op(ACCOUNT, &10u64.to_le_bytes(), MutationType::Add);
                    Ok::<_, Error>(Long(head, body))
                })
                .await;
            let expected = if fits {
                Outcome::Applied((head, body))
            } else {
                Outcome::Refused(Long(head, body).refusal())
            };
            assert_eq!(outcome.map(|Long(head, body)| (head, body)), expected);
            assert_eq!(balance(&db).await != before, fits);
            assert_eq!(session.pending(), None);
        }
    });
}
