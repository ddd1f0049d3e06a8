//! Queues done wrong, one bug at a time: as the recipe prints them, as published examples have them,
//! or as one would write them in haste.

use crate::{
    workload::{Outcome, Workload},
    workloads::queue::{Answer, Client, Flaw, Op, Queue, applied, looked_up, refused, taken},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, Versionstamp};
use shaketable_layers::{
    once::{Answer as _, Fate, Session},
    queue::{self as layer, Error, Item, ItemId},
    tx::{
        self, Database,
        Isolation::{self, Serializable, Snapshot},
        MutationType, RangeOption, RetryError, RunError, Transaction, TransactionOption,
    },
};

use shaketable_sim::proto::Mutation;
use std::time::Duration;

/// Does an operation that the bug touches; `None` when it leaves this one as it is.
pub async fn apply<D: Database>(
    flaw: Flaw,
    workload: &Queue,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    if matches!(flaw, Flaw::TimeoutIsRefusal | Flaw::RetryAsNew) {
        let outcome = workload.apply(client, op).await;
        return Some(match (flaw, outcome) {
            (Flaw::TimeoutIsRefusal, Outcome::Unknown(e)) => Outcome::GaveUp(e),
            (Flaw::RetryAsNew, Outcome::Unknown(_)) => workload.apply(client, op).await,
            (_, known) => known,
        });
    }
    let Client { session, queue } = client;
    let db = session.database().clone();
    let (db, queue) = (&db, &*queue);
    match op {
        Op::Enqueue(batch) => {
            let values = &batch.values();
            let record = &done().pack(&batch.number());
            let ids: &Vec<_> = &values.iter().map(|_| ItemId::draw(db.env())).collect();
            let enqueued = |_| Ok(Answer::Enqueued(None));
            Some(match flaw {
                Flaw::EnqueueAsPrinted => {
                    let ran = db.run(|tx, _| async move {
                        for value in values {
                            queue.enqueue(&tx, ItemId::draw(db.env()), value).await?;
                        }
                        Ok(())
                    });
                    bare(ran.await, enqueued)
                }
                Flaw::IdInside => {
                    let ran = db.run(|tx, _| async move {
                        let id = ItemId::draw(db.env());
                        let record = done().pack(&TupleBytes::from(&id.0[..]));
                        recorded(&tx, &record, Serializable, enqueue_all(&tx, queue, ids, values)).await
                    });
                    bare(ran.await, enqueued)
                }
                Flaw::RecordAtSnapshot => loop {
                    let ran = db.run(|tx, _| async move {
                        recorded(&tx, record, Snapshot, enqueue_all(&tx, queue, ids, values)).await
                    });
                    // What is unknown is tried again under the same record, which is as it should be.
                    match ran.await {
                        Err(e) if e.maybe_committed => continue,
                        ran => break bare(ran, enqueued),
                    }
                },
                Flaw::CountIsIndex
                | Flaw::ShortSuffix
                | Flaw::TiesInside
                | Flaw::SerializableLastIndex
                | Flaw::SameRank => {
                    let ran = session.apply(|tx| async move {
                        match flaw {
                            Flaw::TiesInside => tx.set_option(TransactionOption::SnapshotRywDisable)?,
                            Flaw::SameRank => {
                                tx.get_read_version().await?;
                            }
                            _ => {}
                        }
                        for (id, value) in ids.iter().zip(values) {
                            match flaw {
                                Flaw::CountIsIndex => {
                                    let index = queue.len(&tx, Snapshot).await? as i64;
                                    let id = TupleBytes::from(&id.0[..]);
                                    tx.set(&queue.subspace().pack(&(index, id)), value);
                                }
                                Flaw::SameRank => {
                                    let id = TupleBytes::from(&id.0[..]);
                                    let key = (Versionstamp::incomplete(0), 0, id);
                                    let key = queue.subspace().pack_with_versionstamp(&key);
                                    tx.atomic_op(&key, value, MutationType::SetVersionstampedKey);
                                }
                                Flaw::SerializableLastIndex => {
                                    let range = RangeOption::from(queue.subspace().range());
                                    tx.get_range_all(range.reversed().limit(1), Serializable).await?;
                                    queue.enqueue(&tx, *id, value).await?;
                                }
                                Flaw::ShortSuffix => {
                                    queue.enqueue(&tx, ItemId([id.0[0] & 1; 16]), value).await?;
                                }
                                _ => {
                                    queue.enqueue(&tx, *id, value).await?;
                                }
                            }
                        }
                        Ok::<(), Error>(())
                    });
                    let outcome = applied(ran.await, enqueued);
                    settle(outcome, session).await
                }
                _ => return None,
            })
        }
        Op::Dequeue(most)
            if matches!(flaw, Flaw::OverwrittenFlag | Flaw::AnswerOfRetry | Flaw::RecordCleanedUp) =>
        {
            let record = done().pack(&TupleBytes::from(&ItemId::draw(db.env()).0[..]));
            Some(bare(dequeue_recorded(flaw, db, queue, &record, (*most).into()).await, taken))
        }
        Op::Dequeue(1) => Some(match flaw {
            Flaw::DequeueAsPrinted => {
                bare(db.run(|tx, _| async move { queue.dequeue(&tx).await }).await, taken)
            }
            Flaw::SnapshotDequeue => {
                let ran = session.apply(|tx| async move {
                    let item = first(&tx, queue, Snapshot).await?;
                    item.iter().for_each(|(key, _)| tx.clear(key));
                    Ok::<_, Error>(item.map(|(_, item)| item))
                });
                applied(ran.await, taken)
            }
            Flaw::TwoTransactions => {
                let ran = db.run(|tx, _| async move { first(&tx, queue, Serializable).await });
                let item = match ran.await {
                    Ok(item) => item,
                    Err(e) => return Some(refused(e.error)),
                };
                let item = &item;
                let ran = session.apply(|tx| async move {
                    item.iter().for_each(|(key, _)| tx.clear(key));
                    Ok::<_, Error>(item.as_ref().map(|(_, item)| item.clone()))
                });
                applied(ran.await, taken)
            }
            _ => return None,
        }),
        Op::Count if flaw == Flaw::FirstBatch => {
            let range: RangeOption = queue.subspace().range().into();
            let range = &range;
            let ran =
                db.run(|tx, _| async move { Ok(tx.get_range(range, 1, Serializable).await?.rows.len()) });
            Some(looked_up(ran.await, |n| Ok(Answer::Count(n))))
        }
        _ => None,
    }
}

/// Where buggy operations keep their records.
fn done() -> Subspace {
    Subspace::from("done")
}

/// Whether a transaction does nothing but tidy such records up.
pub fn only_tidies_up(mutations: &[Mutation]) -> bool {
    let tidies = |m: &Mutation| matches!(m, Mutation::ClearRange(range) if done().is_start_of(&range.begin));
    mutations.iter().all(tidies)
}

async fn enqueue_all<T: Transaction>(
    tx: &T,
    queue: &layer::Queue,
    ids: &[ItemId],
    values: &[Bytes],
) -> Result<(), Error> {
    for (id, value) in ids.iter().zip(values) {
        queue.enqueue(tx, *id, value).await?;
    }
    Ok(())
}

/// Does `work` unless the record says that it was done.
async fn recorded<T: Transaction>(
    tx: &T,
    record: &[u8],
    isolation: Isolation,
    work: impl Future<Output = Result<(), Error>> + Send,
) -> Result<(), Error> {
    if tx.get(record, isolation).await?.is_some() {
        return Ok(());
    }
    work.await?;
    tx.set(record, b"");
    Ok(())
}

/// Up to so many dequeues with a record of its own, in a retry loop of its own.
async fn dequeue_recorded<D: Database>(
    flaw: Flaw,
    db: &D,
    queue: &layer::Queue,
    record: &[u8],
    most: usize,
) -> Result<Vec<Item>, RunError<Error>> {
    let fail = |error: Error, maybe_committed| RunError { error, maybe_committed, attempts: 0 };
    let tx = db.create_transaction().map_err(|e| fail(e.into(), false))?;
    let (mut last_failure, mut ever) = (false, false);
    loop {
        let ran = async {
            if flaw == Flaw::RecordCleanedUp && last_failure {
                tx.clear(record);
            }
            let consult = flaw != Flaw::OverwrittenFlag || last_failure;
            // Whoever overwrites the flag looks at the queue first, and tidies its record up when it has
            // served: a commit that can conflict.
            if flaw == Flaw::OverwrittenFlag {
                queue.peek(&tx, Serializable).await?;
            }
            if consult && let Some(answer) = tx.get(record, Serializable).await? {
                if flaw == Flaw::OverwrittenFlag {
                    tx.clear(record);
                    tx.commit().await?;
                }
                return match flaw {
                    Flaw::AnswerOfRetry => Ok(queue.peek(&tx, Serializable).await?.into_iter().collect()),
                    _ => Vec::decode(answer).ok_or_else(|| Error::Foreign(Bytes::copy_from_slice(record))),
                };
            }
            let mut items = Vec::new();
            while items.len() < most
                && let Some(item) = queue.dequeue(&tx).await?
            {
                items.push(item);
            }
            let mut answer = BytesMut::new();
            items.encode(&mut answer)?;
            tx.set(record, &answer);
            tx.commit().await?;
            Ok(items)
        };
        let error: Error = match ran.await {
            Ok(items) => return Ok(items),
            Err(e) => e,
        };
        let Some(fdb) = error.fdb() else { return Err(fail(error, ever)) };
        last_failure = fdb.leaves_commit_unknown();
        ever |= last_failure;
        if let Err(e) = tx.on_error(fdb).await {
            return Err(fail(e.into(), ever));
        }
    }
}

/// Finds out what became of an operation that answers nothing.
async fn settle<D: Database>(outcome: Outcome<Answer>, session: &mut Session<D>) -> Outcome<Answer> {
    let Outcome::Unknown(error) = outcome else { return outcome };
    while let Some(pending) = session.pending() {
        match session.resolve::<()>(pending).await {
            Ok(Fate::Applied(())) => return Outcome::Answered(Answer::Enqueued(None)),
            Ok(_) => return Outcome::GaveUp(error),
            Err(_) => session.database().env().sleep(Duration::from_millis(10)).await,
        }
    }
    Outcome::Unknown(error)
}

/// The first item with its key.
async fn first<T: Transaction>(
    tx: &T,
    queue: &layer::Queue,
    isolation: Isolation,
) -> Result<Option<(Bytes, Item)>, Error> {
    let range = RangeOption::from(queue.subspace().range()).limit(1);
    let row = tx.get_range_all(range, isolation).await?.pop();
    let item = queue.peek(tx, isolation).await?;
    Ok(row.map(|row| row.key).zip(item))
}

/// The outcome of a bare retry loop.
fn bare<A>(
    ran: Result<A, RunError<Error>>,
    answer: impl FnOnce(A) -> Result<Answer, String>,
) -> Outcome<Answer> {
    match ran {
        Err(RunError { error, maybe_committed: true, .. }) => {
            Outcome::Unknown(error.fdb().unwrap_or(tx::Error::COMMIT_UNKNOWN_RESULT))
        }
        ran => looked_up(ran, answer),
    }
}
