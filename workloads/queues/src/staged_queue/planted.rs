//! Planted bugs: a staged queue implemented or used wrongly.

use super::{
    Answer, Deal, Dealt, Op, Staged,
    client::{refused, taken, wait},
    operations::patience,
    staged,
};
use crate::shared::key_below;
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use futures::future::{Either, select};
use shaketable::{
    isolation,
    sessions::known,
    specimen::INTERLEAVED,
    weakened::{Flaw, flawed},
    workload::Outcome,
};
use shaketable_layers::{
    queue::{Item, ItemId},
    staged_queue::{Error, MAX_VALUE_BYTES, Request, RequestState, Row, Taken},
};
use shaketable_tx::{
    ConflictRangeType, Database,
    Isolation::{self, Serializable, Snapshot},
    KeyValue, RangeOption, RetryError, RunError, Transaction, key_after, limits,
    once::{Answer as _, Fate, Session},
};
use std::{collections::BTreeSet, pin::pin, time::Duration};

shaketable::planted_bugs! {
    AsksAgain = "asks-again", "any failure of the first attempt, even an unknown result, leads to a new request", "the high-contention example's pop";
    RemovesBlindly = "removes-blindly", "a collection is retried without a record, and a missing row counts as an empty one", "the high-contention example's removal of a result";
    ParkedForEver = "parked-for-ever", "what is parked for dead clients is never brought back", "the high-contention example, where a client dies";
    Overtakes = "overtakes", "a dequeue takes the first item although others wait", "a queue without a queue of requests";
    FulfilsBlindly = "fulfils-blindly", "requests and items are paired at snapshot, with nothing in the conflict ranges", "a fulfilment without isolation";
    ConflictsTooLate = "conflicts-too-late", "the conflict ranges are added after the writes, and leave out what was written", "a transaction that sees itself";
    EmptyAtSnapshot = "empty-at-snapshot", "whether an item is left is read at snapshot", "the last item taken for the end";
    ReclaimsBlindly = "reclaims-blindly", "parked items are read in one transaction and brought back in another", "a watcher that does not read again";
    ComesBackLast = "comes-back-last", "items that are brought back are enqueued anew", "a retry at the end of the line";
    PageForEnd = "page-for-end", "the point where a read of items stopped is taken for the end of the queue", "a bound on bytes, ignored later";
    ServesLastFirst = "serves-last-first", "the last request is served first", "a range read in reverse";
    LargestRefused = "largest-refused", "a value of the maximum size is refused", "a limit that is off by one";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    TurnBeside = "turn-beside", "the state of a request is read in another transaction than the one that ends it", "a look-up that is given the database";
    ForgetsDropped = "forgets-dropped", "a dequeue starts from scratch although a dropped one had taken an item", "a request time-out around a dequeue";
    AsksBeside = "asks-beside", "a dequeue leaves the request of a dropped one standing and registers another", "a request time-out around a dequeue";
    Stays = "gives-up-and-stays", "a dequeue that gives up does not remove its request", "a time-out around a wait";
    Impatient = "impatient", "a dequeue gives up after half of its time limit", "a time-out in another unit";
    SleepsInLine = "sleeps-in-line", "a dequeue that has registered reads its item only after a long sleep", "a wake-up that was lost";
    LeavesBlindly = "leaves-blindly", "a dequeue that gives up removes its request without a check of what it was given", "a time-out around a wait";
    ResumesNothing = "resumes-nothing", "a dequeue that continues a dropped one returns that there is no item, which was so long before", "a request time-out around a dequeue";
    Interleaved = INTERLEAVED, "two dequeues that run side by side in one transaction take one item", "two futures in one transaction";
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &Staged,
    session: &mut Session<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let db = session.database().clone();
    match (planted, op) {
        (Planted::Stays | Planted::LeavesBlindly, Op::Within(patience)) => {
            let end = give_up_wrongly(planted, session, self::patience(*patience));
            return Some(workload.patiently(&db, end).await);
        }
        (Planted::LargestRefused, Op::Enqueue(batch)) => {
            let values = batch.values();
            let too_large = |value: &Bytes| {
                limits::value_up_to(MAX_VALUE_BYTES - 1, staged().subspace().bytes(), value).err()
            };
            return values.iter().find_map(too_large).map(|e| refused(e.into()));
        }
        (Planted::CountAtSnapshot, Op::Count) => {
            let count = |tx, _| async move { staged().len(&tx, Snapshot).await };
            let counted =
                db.run(|tx, _| async move { isolation::at_both_levels(&tx, op, count).await }).await;
            return Some(counted.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n))));
        }
        (Planted::Impatient, Op::Within(patience)) => {
            return Some(workload.within(session, self::patience(*patience) / 2).await);
        }
        (_, Op::Dequeue) | (Planted::ForgetsDropped | Planted::AsksBeside, Op::Cut(_)) => {}
        _ => return None,
    }
    Some(match planted {
        Planted::ForgetsDropped | Planted::AsksBeside => {
            workload.patiently(&db, begin_anew(planted, session)).await
        }
        Planted::SleepsInLine => {
            let end = async {
                match register(session).await {
                    Ok(request) => {
                        db.env().sleep(Duration::from_secs(20)).await;
                        wait(session, request).await
                    }
                    Err(outcome) => outcome,
                }
            };
            workload.patiently(&db, end).await
        }
        Planted::AsksAgain => workload.patiently(&db, ask_again(session)).await,
        Planted::Overtakes => {
            let (ticket, waiting) = (ItemId::draw(db.env()), &staged().subspace().subspace(&1).range());
            let took = session.apply(|tx| async move {
                staged().take(&flawed(&tx, Flaw::Unread, [waiting.clone()]), ticket).await
            });
            let took = took.await;
            let end = async {
                match known(session, took).await {
                    Ok(Some(Taken::Now(item))) => taken(item),
                    _ => register_and_wait(planted, session).await,
                }
            };
            workload.patiently(&db, end).await
        }
        Planted::RemovesBlindly
        | Planted::FulfilsBlindly
        | Planted::ConflictsTooLate
        | Planted::EmptyAtSnapshot
        | Planted::PageForEnd
        | Planted::ServesLastFirst
        | Planted::ResumesNothing => {
            let asked = staged().start_dequeue(session).await;
            let end = async {
                match known(session, asked).await {
                    Ok(Some(RequestState::Given(item))) => taken(item),
                    Ok(Some(RequestState::Waiting(request))) => wait_wrongly(planted, session, request).await,
                    Ok(Some(RequestState::Gone) | None) => register_and_wait(planted, session).await,
                    Err(e) => refused(e),
                }
            };
            workload.patiently(&db, end).await
        }
        _ => return None,
    })
}

/// Performs one of several calls about a request in a transaction, but a look in a separate transaction.
pub async fn deal<D: Database>(
    planted: Planted,
    db: &D,
    tx: &D::Transaction,
    deal: &Deal,
    request: Request,
    values: &[(ItemId, Bytes)],
) -> Result<Dealt, Error> {
    match (planted, deal) {
        (Planted::TurnBeside, Deal::Turn) => {
            let turn = db.run(|own, _| async move { staged().state(&own, request, Serializable).await });
            Dealt::of(turn.await.map_err(|e| e.error)?)
        }
        _ => deal.perform(tx, request, values).await,
    }
}

/// Brings back what was not collected, with the bug.
pub async fn reclaim<D: Database>(
    planted: Planted,
    db: &D,
    patience: Duration,
) -> Result<usize, RunError<Error>> {
    match planted {
        Planted::ParkedForEver => Ok(0),
        Planted::ReclaimsBlindly | Planted::ComesBackLast => {
            let parked = || db.run(|tx, _| async move { rows(&tx, &parked(), 0, Snapshot).await });
            let before: BTreeSet<Bytes> = parked().await?.into_iter().map(|row| row.key).collect();
            db.env().sleep(patience).await;
            let still = parked().await?.into_iter().filter(|row| before.contains(&row.key));
            let mut reclaimed = 0;
            for row in still {
                reclaimed += 1;
                let (row, id) = (&row, ItemId::draw(db.env()));
                db.run(|tx, _| async move {
                    if planted == Planted::ComesBackLast && tx.get(&row.key, Serializable).await?.is_none() {
                        return Ok(());
                    }
                    if let Row::Parked(_, Some(item)) = staged().row(row)? {
                        match planted {
                            Planted::ComesBackLast => drop(staged().enqueue(&tx, id, &item.value).await?),
                            _ => tx.set(&key_below(&items(), &item.position), &item.value),
                        }
                    }
                    tx.clear(&row.key);
                    Ok::<_, Error>(())
                })
                .await?;
            }
            Ok(reclaimed)
        }
        _ => staged().reclaim_unchanged(db, patience).await,
    }
}

fn items() -> Subspace {
    staged().subspace().subspace(&0)
}

fn parked() -> Subspace {
    staged().subspace().subspace(&2)
}

async fn rows<T: Transaction>(
    tx: &T,
    of: &Subspace,
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, Error> {
    Ok(tx.get_range_all(RangeOption::from(of.range()).limit(limit), isolation).await?)
}

fn item(row: &KeyValue) -> Result<Item, Error> {
    match staged().row(row)? {
        Row::Item(item) => Ok(item),
        _ => Err(Error::Foreign(row.key.clone())),
    }
}

/// Takes an item in a transaction without a record; after any error, a request is registered.
async fn ask_again<D: Database>(session: &mut Session<D>) -> Outcome<Answer> {
    let db = session.database().clone();
    let ticket = ItemId::draw(db.env());
    let first = async {
        let tx = db.create_transaction()?;
        match staged().take(&tx, ticket).await? {
            Taken::Now(item) => {
                tx.commit().await?;
                Ok::<_, Error>(Some(item))
            }
            Taken::Waiting(_) => Ok(None),
        }
    };
    match first.await {
        Ok(Some(item)) => taken(item),
        Err(e) if e.fdb().is_none() => refused(e),
        _ => register_and_wait(Planted::AsksAgain, session).await,
    }
}

async fn register_and_wait<D: Database>(planted: Planted, session: &mut Session<D>) -> Outcome<Answer> {
    match register(session).await {
        Ok(request) => wait_wrongly(planted, session, request).await,
        Err(outcome) => outcome,
    }
}

/// A request that the session does not know.
async fn register<D: Database>(session: &mut Session<D>) -> Result<Request, Outcome<Answer>> {
    loop {
        let env = session.database().env().clone();
        let ticket = ItemId::draw(&env);
        let registered = session.apply(|tx| async move { staged().register(&tx, ticket).await }).await;
        match known(session, registered).await {
            Ok(registered) => match registered.and_then(|registered| registered.request()) {
                Some(request) => return Ok(request),
                None => env.sleep(Duration::from_millis(5)).await,
            },
            Err(e) => return Err(refused(e)),
        }
    }
}

/// Dequeues without resolving a dropped dequeue of the session.
async fn begin_anew<D: Database>(planted: Planted, session: &mut Session<D>) -> Outcome<Answer> {
    if planted == Planted::AsksBeside
        && let Some(pending) = session.pending()
        && let Ok(Fate::Applied(RequestState::Given(Some(item)))) = session.resolve(pending).await
    {
        return taken(Some(item));
    }
    let ticket = ItemId::draw(session.database().env());
    let took = session.apply(|tx| async move { staged().take(&tx, ticket).await }).await;
    match known(session, took).await {
        Ok(Some(Taken::Now(item))) => taken(item),
        Ok(Some(Taken::Waiting(registered))) => match registered.request() {
            Some(request) => wait(session, request).await,
            None => Outcome::Violated("a request without a place".to_owned()),
        },
        Ok(None) => register_and_wait(planted, session).await,
        Err(e) => refused(e),
    }
}

/// Waits until the time limit, and gives up with the bug.
async fn give_up_wrongly<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    patience: Duration,
) -> Outcome<Answer> {
    let db = session.database().clone();
    let request = match register(session).await {
        Ok(request) => request,
        Err(outcome) => return outcome,
    };
    if let Either::Left((turn, _)) = select(pin!(wait(session, request)), db.env().sleep(patience)).await {
        return turn;
    }
    if planted == Planted::LeavesBlindly {
        let waiting = staged().subspace().subspace(&1);
        let waiting = &waiting;
        let removed = db.run(|tx, _| async move {
            for row in rows(&tx, waiting, 0, Snapshot).await? {
                if staged().row(&row)? == Row::Request(request) {
                    tx.clear(&row.key);
                }
            }
            Ok::<_, Error>(())
        });
        if let Err(e) = removed.await {
            return refused(e.error);
        }
    }
    Outcome::Answered(Answer::Left(0))
}

/// Waits for a request to be served, with the bug.
async fn wait_wrongly<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    request: Request,
) -> Outcome<Answer> {
    if matches!(planted, Planted::AsksAgain | Planted::Overtakes | Planted::ResumesNothing) {
        return wait(session, request).await;
    }
    let db = session.database().clone();
    loop {
        let turn = db.run(|tx, _| async move { staged().state(&tx, request, Snapshot).await }).await;
        match turn {
            Ok(RequestState::Waiting(_)) => {
                let served = match planted {
                    Planted::RemovesBlindly => staged().fulfil_all(&db).await.map(drop),
                    _ => db.run(|tx, _| async move { fulfil(planted, &tx).await }).await,
                };
                if let Err(e) = served
                    && e.error.fdb().is_none()
                {
                    return Outcome::Violated(e.error.to_string());
                }
            }
            Ok(_) if planted == Planted::RemovesBlindly => {
                let collected = db.run(|tx, _| async move { staged().collect(&tx, request).await }).await;
                match collected {
                    Ok(RequestState::Given(item)) => return taken(item),
                    Ok(_) => return taken(None),
                    Err(_) => {}
                }
            }
            Ok(_) => return wait(session, request).await,
            Err(_) => {}
        }
        db.env().sleep(Duration::from_millis(5)).await;
    }
}

async fn fulfil<T: Transaction>(planted: Planted, tx: &T) -> Result<(), Error> {
    let waiting = staged().subspace().subspace(&1);
    let range = RangeOption::from(waiting.range()).limit(20);
    let (range, isolation) = match planted {
        Planted::ServesLastFirst => (range.reversed(), Serializable),
        Planted::PageForEnd => (range, Serializable),
        _ => (range, Snapshot),
    };
    let requests = tx.get_range_all(range, isolation).await?;
    let Some(last) = requests.last() else { return Ok(()) };
    let mut found = rows(tx, &items(), requests.len(), isolation).await?;
    if planted == Planted::PageForEnd {
        let mut bytes = 0;
        found.retain(|row| {
            bytes += row.value.len();
            bytes <= 1_000_000
        });
    }
    let conflicts = || -> Result<(), Error> {
        let (begin, end) = items().range();
        let behind = found.last().map_or_else(|| begin.clone().into(), |row| key_after(&row.key));
        let until = match planted {
            Planted::ConflictsTooLate if found.len() < requests.len() => end.into(),
            _ => behind,
        };
        tx.add_conflict_range(&waiting.range().0, &key_after(&last.key), ConflictRangeType::Read)?;
        Ok(tx.add_conflict_range(&begin, &until, ConflictRangeType::Read)?)
    };
    if planted == Planted::EmptyAtSnapshot {
        conflicts()?;
    }
    for (n, request) in requests.iter().enumerate() {
        let Row::Request(waiting) = staged().row(request)? else { continue };
        let given = found.get(n).map(item).transpose()?;
        let mut value = BytesMut::new();
        given.encode(&mut value)?;
        tx.clear(&request.key);
        found.get(n).iter().for_each(|row| tx.clear(&row.key));
        tx.set(&parked().pack(&TupleBytes::from(&waiting.ticket().0[..])), &value);
    }
    if planted == Planted::ConflictsTooLate {
        conflicts()?;
    }
    Ok(())
}
