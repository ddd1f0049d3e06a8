//! Planted bugs: a leased queue implemented or used wrongly.

use super::{ActAnswer, Leased, composed::count as right, leased};
use crate::shared::key_below;
use foundationdb_tuple::{Subspace, pack, unpack};
use shaketable::{isolation, specimen::INTERLEAVED};
use shaketable_layers::{
    leased_queue::{Claim, Error, Hold},
    queue::{ItemId, Position},
};
use shaketable_tx::{
    Database, Db,
    Isolation::{Serializable, Snapshot},
    RetryError, RunError, Transaction, Tx,
    once::{Outcome, Session},
};
use std::time::Duration;

shaketable::planted_bugs! {
    StoredDeadline = "stored-deadline", "the end of a lease is stored by its holder's clock and compared with another clock", "an expiry compared with a local clock", "a clock of its own for each process";
    AcknowledgesUnrecorded = "acknowledges-unrecorded", "an acknowledgement that committed without a known result is retried, and refused", "an acknowledgement without a record";
    CountBeside = "count-beside", "a count in a transaction is read in another transaction", "a look-up that is given the database";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ComesBackLast = "comes-back-last", "an item whose lease has ended is enqueued anew", "a retry at the end of the line";
    Interleaved = INTERLEAVED, "two claims that run side by side in one transaction claim one item", "two futures in one transaction";
}

/// The key at which the end of a lease is stored.
fn deadline(position: &Position) -> Vec<u8> {
    key_below(&Subspace::from("deadlines"), position)
}

/// The end of a lease that begins now, by this client's clock, in nanoseconds.
fn ends(queue: &Leased, db: &Db) -> Vec<u8> {
    pack(&((db.env().now() + queue.lease()).as_nanos() as i64))
}

/// Claims an item, and stores the end of its lease.
pub async fn claim(queue: &Leased, session: &mut Session<Db>) -> Outcome<Option<Claim>, Error> {
    let ends = &ends(queue, session.database());
    let claimed = session.apply(|tx| async move {
        let claim = leased().claim(&tx).await?;
        claim.iter().for_each(|claim| tx.set(&deadline(&claim.hold.position), ends));
        Ok(claim)
    });
    claimed.await
}

/// Renews a lease, and stores its new end.
pub async fn renew(queue: &Leased, session: &mut Session<Db>, hold: Hold) -> Outcome<i64, Error> {
    let ends = &ends(queue, session.database());
    let renewed = session.apply(|tx| async move {
        tx.set(&deadline(&hold.position), ends);
        leased().renew(&tx, hold).await
    });
    renewed.await
}

/// Acknowledges an item without a record.
pub async fn acknowledge(db: &Db, hold: Hold) -> Outcome<(), Error> {
    loop {
        match db.run(|tx, _| async move { leased().acknowledge(&tx, hold).await }).await {
            Ok(()) => return Outcome::Applied(()),
            // It is repeated, whether the outcome is known or not.
            Err(e) if e.error.fdb().is_some() => db.env().sleep(Duration::from_millis(5)).await,
            Err(e) => return Outcome::Refused(e.error),
        }
    }
}

/// Counts up to this many items in a transaction.
pub async fn count(planted: Planted, db: &Db, tx: &Tx, most: usize) -> Result<ActAnswer, Error> {
    if planted == Planted::CountBeside {
        let count = db.run(|own, _| async move { right(&own, most, Serializable).await });
        return count.await.map_err(|e| e.error);
    }
    isolation::at_both_levels(tx, &most, |tx, _| async move { right(&tx, most, Snapshot).await }).await
}

/// Ends leases, each in a transaction of its own.
pub async fn expire(planted: Planted, queue: &Leased, db: &Db) -> Result<(), RunError<Error>> {
    let held = async || {
        db.run(|tx, _| async move { Ok(leased().leases(&tx, None, usize::MAX, Snapshot).await?.held) }).await
    };
    let before = &held().await?;
    // After this time, every lease that is not renewed has ended by the clock that set it. That of another
    // process has another origin.
    db.env().sleep(queue.lease()).await;
    for lease in held().await? {
        let (now, id) = (db.env().now().as_nanos() as i64, ItemId::draw(db.env()));
        db.run(|tx, _| async move {
            let position = &lease.hold.position;
            if planted == Planted::StoredDeadline {
                let ends = tx.get(&deadline(position), Serializable).await?;
                if ends.and_then(|ends| unpack::<i64>(&ends).ok()).is_none_or(|ends| ends <= now) {
                    leased().expire(&tx, lease).await?;
                }
            } else if before.contains(&lease) && leased().expire(&tx, lease).await? {
                let [waiting, lease] =
                    [0, 2].map(|of| key_below(&leased().subspace().subspace(&of), position));
                let value = tx.get(&waiting, Serializable).await?.unwrap_or_default();
                tx.clear(&waiting);
                tx.clear(&lease);
                leased().enqueue(&tx, id, &value).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
    }
    Ok(())
}
