//! Planted bugs: a staged queue implemented or used wrongly.

use super::{
    Answer, Client, RequestAnswer, Staged, StagedOp,
    client::{dequeue_within, refused, taken, wait},
    operations::patience,
    staged,
};
use crate::shared;
use shaketable::{
    isolation,
    sessions::{self, known},
    specimen::INTERLEAVED,
    weakened::{Flaw, flawed},
    workload::Outcome,
};
use shaketable_layers::{
    queue::ItemId,
    staged_queue::{Error, Request, RequestState, Row, Taken},
};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::{Serializable, Snapshot},
    RetryError, RunError, Transaction,
    once::Session,
};
use std::time::Duration;

shaketable::planted_bugs! {
    AsksAgain = "asks-again", "any failure of the first attempt, even an unknown result, leads to a new request", "the high-contention example's pop";
    RemovesBlindly = "removes-blindly", "a collection is retried without a record, and a missing row counts as an empty one", "the high-contention example's removal of a result";
    ParkedForEver = "parked-for-ever", "what is parked for dead clients is never brought back", "the high-contention example, where a client dies";
    ComesBackLast = "comes-back-last", "items that are brought back are enqueued anew", "a retry at the end of the line";
    PageForEnd = "page-for-end", "the point where a read of items stopped is taken for the end of the queue", "a bound on bytes, ignored later";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    TurnBeside = "turn-beside", "the state of a request is read in another transaction than the one that ends it", "a look-up that is given the database";
    ForgetsDropped = "forgets-dropped", "a dequeue starts from scratch although a dropped one had taken an item", "a request time-out around a dequeue";
    Impatient = "impatient", "a dequeue gives up after half of its time limit", "a time-out in another unit";
    SleepsInLine = "sleeps-in-line", "a dequeue that has registered reads its item only after a long sleep", "a wake-up that was lost";
    Interleaved = INTERLEAVED, "two dequeues that run side by side in one transaction take one item", "two futures in one transaction";
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub async fn apply(workload: &Staged, client: &mut Client, op: &StagedOp) -> Option<Outcome<Answer>> {
    let (db, session) = (client.db().clone(), &mut client.session);
    Some(match (workload.planted?, op) {
        (Planted::CountAtSnapshot, StagedOp::count {}) => {
            let count = |tx, _| async move { staged().len(&tx, Snapshot).await };
            let counted = db.run(|tx, _| async move { isolation::at_both_levels(&tx, op, count).await });
            counted.await.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n)))
        }
        (Planted::Impatient, StagedOp::within { patience }) => {
            dequeue_within(session, self::patience(*patience) / 2).await
        }
        (Planted::ForgetsDropped, StagedOp::dequeue {}) => workload.patiently(&db, begin_anew(session)).await,
        (Planted::ForgetsDropped, StagedOp::cut { polls }) => {
            let begun = sessions::polled(u64::from(*polls), workload.patiently(&db, begin_anew(session)));
            begun.await.unwrap_or(Outcome::Unknown(tx::Error::OPERATION_CANCELLED))
        }
        (Planted::AsksAgain, StagedOp::dequeue {}) => workload.patiently(&db, ask_again(session)).await,
        (
            planted @ (Planted::SleepsInLine | Planted::RemovesBlindly | Planted::PageForEnd),
            StagedOp::dequeue {},
        ) => workload.patiently(&db, stand_in_line(planted, session)).await,
        _ => return None,
    })
}

/// The state of a request, read in another transaction than the calls before and after it.
pub async fn turn(db: &Db, request: Request) -> Result<RequestAnswer, Error> {
    let turn = db.run(|own, _| async move { staged().state(&own, request, Serializable).await });
    RequestAnswer::of(turn.await.map_err(|e| e.error)?)
}

/// Enqueues the items anew that were parked all the time.
pub async fn enqueue_anew(db: &Db, patience: Duration) -> Result<(), RunError<Error>> {
    let parked = &staged().subspace().subspace(&2);
    let rows = async || db.run(|tx, _| async move { Ok(shared::rows(&tx, parked).await?) }).await;
    let before = rows().await?;
    db.env().sleep(patience).await;
    for row in rows().await?.iter().filter(|row| before.contains(row)) {
        let id = ItemId::draw(db.env());
        db.run(|tx, _| async move {
            if tx.get(&row.key, Serializable).await?.is_some() {
                if let Row::Parked(_, Some(item)) = staged().row(row)? {
                    staged().enqueue(&tx, id, &item.value).await?;
                }
                tx.clear(&row.key);
            }
            Ok::<_, Error>(())
        })
        .await?;
    }
    Ok(())
}

/// Takes an item in a transaction without a record; after any error, a request is registered.
async fn ask_again(session: &mut Session<Db>) -> Outcome<Answer> {
    let db = session.database().clone();
    let ticket = ItemId::draw(db.env());
    let first = async {
        let tx = db.create_transaction()?;
        let took = staged().take(&tx, ticket).await?;
        if let Taken::Now(_) = took {
            tx.commit().await?;
        }
        Ok::<_, Error>(took)
    };
    match first.await {
        Ok(Taken::Now(item)) => taken(item),
        Err(e) if e.fdb().is_none() => refused(e),
        _ => stand_in_line(Planted::AsksAgain, session).await,
    }
}

/// Dequeues without resolving a dropped dequeue of the session.
async fn begin_anew(session: &mut Session<Db>) -> Outcome<Answer> {
    let ticket = ItemId::draw(session.database().env());
    let took = session.apply(|tx| async move { staged().take(&tx, ticket).await }).await;
    let registered = match known(session, took).await {
        Ok(Some(Taken::Now(item))) => return taken(item),
        Ok(Some(Taken::Waiting(registered))) => registered.request(),
        Ok(None) => None,
        Err(e) => return refused(e),
    };
    match registered {
        Some(request) => wait(session, request).await,
        None => stand_in_line(Planted::ForgetsDropped, session).await,
    }
}

/// Registers a request that the session does not know, and waits for it with the bug.
async fn stand_in_line(planted: Planted, session: &mut Session<Db>) -> Outcome<Answer> {
    let db = session.database().clone();
    let request = loop {
        let ticket = ItemId::draw(db.env());
        let registered = session.apply(|tx| async move { staged().register(&tx, ticket).await }).await;
        match known(session, registered).await {
            Ok(registered) => match registered.and_then(|registered| registered.request()) {
                Some(request) => break request,
                None => db.env().sleep(Duration::from_millis(5)).await,
            },
            Err(e) => return refused(e),
        }
    };
    match planted {
        Planted::RemovesBlindly => loop {
            match db.run(|tx, _| async move { staged().collect(&tx, request).await }).await {
                Ok(RequestState::Given(item)) => return taken(item),
                Ok(RequestState::Gone) => return taken(None),
                Ok(RequestState::Waiting(_)) => drop(staged().fulfil_all(&db).await),
                Err(_) => {}
            }
            db.env().sleep(Duration::from_millis(5)).await;
        },
        Planted::PageForEnd => {
            let items = &staged().subspace().subspace(&0).range();
            let fulfilled = db.run(|tx, _| async move {
                staged().fulfil(&flawed(&tx, Flaw::FirstBatch, [items.clone()]), 20).await
            });
            // Requests that this does not serve are served while they wait.
            drop(fulfilled.await);
        }
        Planted::SleepsInLine => db.env().sleep(Duration::from_secs(20)).await,
        _ => {}
    }
    wait(session, request).await
}
