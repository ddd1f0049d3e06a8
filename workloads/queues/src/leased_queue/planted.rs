//! Planted bugs: a leased queue implemented or used wrongly.

use super::{
    Act, ActAnswer, Leased,
    composed::{count, perform as right},
    leased,
};
use crate::shared::{in_turns, key_below};
use foundationdb_tuple::Subspace;
use futures::FutureExt;
use shaketable::{
    isolation,
    specimen::{INTERLEAVED, Recorded},
    weakened::{Flaw, everything, flawed, weakened},
};
use shaketable_layers::{
    leased_queue::{Claim, Error, Hold, Lease, Row},
    queue::{ItemId, Position},
};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    KeyValue, RetryError, RunError, Transaction,
    once::{Outcome, Session},
};
use std::{collections::BTreeSet, time::Duration};

shaketable::planted_bugs! {
    AcknowledgesUnfenced = "acknowledges-unfenced", "an acknowledgement checks whether the item is claimed, not by whom", "a completion without a fencing token";
    RenewsUnfenced = "renews-unfenced", "a renewal does not compare the token", "a renewal after a takeover";
    ClaimsAtSnapshot = "claims-at-snapshot", "the first item is read at snapshot and claimed blindly", "a blind claim";
    StoredDeadline = "stored-deadline", "the end of a lease is stored by its holder's clock and compared with another clock", "an expiry compared with a local clock", "a clock of its own for each process";
    RevisionIgnored = "revision-ignored", "a lease that was renewed while it was watched is ended", "a watcher of the holder alone";
    ExpiresBlindly = "expires-blindly", "a watched lease is ended without a check that it is still the same", "a watcher that does not read again";
    TokenBeginsAgain = "token-begins-again", "an item that comes back starts with the first token again", "a counter that is cleared with its lease";
    NeverExpires = "never-expires", "the leases of dead workers are never ended", "a claim without an expiry";
    AcknowledgesUnrecorded = "acknowledges-unrecorded", "an acknowledgement that committed without a known result is retried, and refused", "an acknowledgement without a record";
    AcknowledgesAtSnapshot = "acknowledges-at-snapshot", "an acknowledgement reads the lease at snapshot", "two incarnations of one worker";
    RenewsUnseen = "renews-unseen", "a renewal changes nothing that a watcher could see", "a heartbeat that is not written";
    ReleaseForgets = "release-forgets", "a release clears the lease, and with it the last token", "a counter that is cleared with its lease";
    FirstPage = "first-page", "only the first page of the leases is watched", "a list that is longer than a page";
    CountBeside = "count-beside", "a count in a transaction is read in another transaction", "a look-up that is given the database";
    CountAtSnapshot = "count-at-snapshot", "a count is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ComesBackLast = "comes-back-last", "an item whose lease has ended is enqueued anew", "a retry at the end of the line";
    Interleaved = INTERLEAVED, "two claims that run side by side in one transaction claim one item", "two futures in one transaction";
}

/// The key of the row at this position.
fn key(of: i64, position: &Position) -> Vec<u8> {
    key_below(&leased().subspace().subspace(&of), position)
}

/// Where the bug stores deadlines.
fn deadline(position: &Position) -> Vec<u8> {
    key_below(&Subspace::from("deadlines"), position)
}

fn put<T: Transaction>(tx: &T, hold: Hold, revision: i64, held: bool) {
    tx.set(&key(2, &hold.position), &foundationdb_tuple::pack(&(hold.token, revision, held)));
}

/// The item's lease, and whether it is held.
async fn lease<T: Transaction>(tx: &T, position: &Position) -> Result<Option<(Lease, bool)>, Error> {
    let key = key(2, position);
    let Some(value) = tx.get(&key, Serializable).await? else { return Ok(None) };
    match leased().row(&KeyValue::new(key, value))? {
        Row::Lease(lease, held) => Ok(Some((lease, held))),
        _ => Ok(None),
    }
}

/// The end of a lease that begins now, by this client's clock, in nanoseconds.
fn ends<D: Database>(workload: &Leased, db: &D) -> i64 {
    (db.env().now() + workload.lease()).as_nanos() as i64
}

/// Claims an item.
pub async fn claim<D: Database>(
    planted: Planted,
    workload: &Leased,
    session: &mut Session<D>,
) -> Outcome<Option<Claim>, Error> {
    let ends = ends(workload, session.database());
    let claimed = session.apply(|tx| async move {
        if planted == Planted::ClaimsAtSnapshot {
            return leased().claim(&weakened(tx, everything())).await;
        }
        let claim = leased().claim(&tx).await?;
        if let (Planted::StoredDeadline, Some(claim)) = (planted, &claim) {
            tx.set(&deadline(&claim.hold.position), &foundationdb_tuple::pack(&ends));
        }
        Ok(claim)
    });
    claimed.await
}

/// Renews a lease.
pub async fn renew<D: Database>(
    planted: Planted,
    workload: &Leased,
    session: &mut Session<D>,
    hold: Hold,
) -> Outcome<i64, Error> {
    let ends = ends(workload, session.database());
    let renewed = session.apply(|tx| async move {
        match planted {
            Planted::RenewsUnfenced => match lease(&tx, &hold.position).await? {
                Some((lease, true)) => {
                    put(&tx, hold, lease.revision + 1, true);
                    Ok(lease.revision + 1)
                }
                _ => Err(Error::Lost(hold)),
            },
            Planted::StoredDeadline => {
                tx.set(&deadline(&hold.position), &foundationdb_tuple::pack(&ends));
                leased().renew(&tx, hold).await
            }
            Planted::RenewsUnseen => leased().renew(&flawed(&tx, Flaw::Unwritten, everything()), hold).await,
            _ => leased().renew(&tx, hold).await,
        }
    });
    renewed.await
}

/// Acknowledges an item.
pub async fn acknowledge<D: Database>(
    planted: Planted,
    _: &Leased,
    session: &mut Session<D>,
    hold: Hold,
) -> Outcome<(), Error> {
    if planted == Planted::AcknowledgesUnrecorded {
        let db = session.database().clone();
        loop {
            match db.run(|tx, _| async move { leased().acknowledge(&tx, hold).await }).await {
                Ok(()) => return Outcome::Applied(()),
                // It is repeated, whether the outcome is known or not.
                Err(e) if e.error.fdb().is_some() => db.env().sleep(Duration::from_millis(5)).await,
                Err(e) => return Outcome::Refused(e.error),
            }
        }
    }
    let acknowledged = session.apply(|tx| async move {
        match planted {
            Planted::AcknowledgesUnfenced => {
                let claimed = key(1, &hold.position);
                tx.get(&claimed, Serializable).await?.ok_or(Error::Lost(hold))?;
                tx.clear(&claimed);
                tx.clear(&key(2, &hold.position));
                Ok(())
            }
            Planted::AcknowledgesAtSnapshot => leased().acknowledge(&weakened(tx, everything()), hold).await,
            _ => leased().acknowledge(&tx, hold).await,
        }
    });
    acknowledged.await
}

/// Gives an item back.
pub async fn release<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    hold: Hold,
) -> Outcome<(), Error> {
    let released = session.apply(|tx| async move {
        leased().release(&tx, hold).await?;
        if planted == Planted::ReleaseForgets {
            tx.clear(&key(2, &hold.position));
        }
        Ok::<_, Error>(())
    });
    released.await
}

/// Performs several calls.
pub async fn together<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    acts: &[Act],
    ids: &[ItemId],
) -> Outcome<Recorded<ActAnswer>, Error> {
    let db = &session.database().clone();
    if planted == Planted::Interleaved {
        let together = session.apply(|tx| async move {
            let perform = |n: usize, tx| async move { right(&tx, &acts[n], ids[n]).await }.boxed();
            in_turns(db.env(), &tx, acts.len(), true, perform).await.map(Recorded)
        });
        return together.await;
    }
    let done = session.apply(|tx| async move {
        let mut answers = Vec::new();
        for (act, id) in acts.iter().zip(ids) {
            answers.push(match (planted, act) {
                (Planted::CountBeside, Act::Count(most)) => {
                    let count = db.run(|own, _| async move { leased().len(&own, *most, Serializable).await });
                    let (waiting, claimed) = count.await.map_err(|e| e.error)?;
                    ActAnswer::Count(waiting, claimed)
                }
                (Planted::CountAtSnapshot, Act::Count(most)) => {
                    let read = |tx, _| async move { count(&tx, *most, Snapshot).await };
                    isolation::at_both_levels(&tx, act, read).await?
                }
                _ => right(&tx, act, *id).await?,
            });
        }
        Ok::<_, Error>(Recorded(answers))
    });
    done.await
}

/// Ends leases.
pub async fn expire<D: Database>(
    planted: Planted,
    workload: &Leased,
    db: &D,
) -> Result<usize, RunError<Error>> {
    let held =
        || db.run(|tx, _| async move { Ok(leased().leases(&tx, None, usize::MAX, Snapshot).await?.held) });
    match planted {
        Planted::NeverExpires => Ok(0),
        Planted::StoredDeadline => {
            let held = held().await?;
            // After a little more time, every lease that is not renewed has ended by the clock that set it.
            // That of another process has another origin.
            db.env().sleep(workload.lease()).await;
            let mut ended = 0;
            for lease in held {
                let now = db.env().now().as_nanos() as i64;
                let expired = db.run(|tx, _| async move {
                    let ends = tx.get(&deadline(&lease.hold.position), Serializable).await?;
                    let ends = ends.and_then(|ends| foundationdb_tuple::unpack::<i64>(&ends).ok());
                    match self::lease(&tx, &lease.hold.position).await? {
                        Some((current, true)) if ends.is_none_or(|ends| ends <= now) => {
                            leased().expire(&tx, current).await
                        }
                        _ => Ok(false),
                    }
                });
                ended += usize::from(expired.await?);
            }
            Ok(ended)
        }
        Planted::RevisionIgnored
        | Planted::ExpiresBlindly
        | Planted::TokenBeginsAgain
        | Planted::ComesBackLast => {
            let seen: BTreeSet<Lease> = held().await?.into_iter().collect();
            let before: BTreeSet<Hold> = seen.iter().map(|lease| lease.hold).collect();
            if before.is_empty() {
                return Ok(0);
            }
            db.env().sleep(workload.lease()).await;
            let mut ended = 0;
            for lease in held().await? {
                let same = match planted {
                    Planted::RevisionIgnored => before.contains(&lease.hold),
                    _ => seen.contains(&lease),
                };
                if same {
                    let item = db.run(|tx, _| async move {
                        Ok::<_, Error>(tx.get(&key(1, &lease.hold.position), Serializable).await?)
                    });
                    let Some(value) = item.await? else { continue };
                    let (value, id) = (&value, ItemId::draw(db.env()));
                    let back = db.run(|tx, _| async move { back(planted, &tx, lease, id, value).await });
                    back.await?;
                    ended += 1;
                }
            }
            Ok(ended)
        }
        Planted::FirstPage => {
            let most = workload.page();
            let first = db.run(|tx, _| async move { leased().leases(&tx, None, most, Snapshot).await });
            let first = first.await?.held;
            db.env().sleep(workload.lease()).await;
            let mut ended = 0;
            for lease in first {
                let expired = db.run(|tx, _| async move { leased().expire(&tx, lease).await });
                ended += usize::from(expired.await?);
            }
            Ok(ended)
        }
        _ => leased().expire_unchanged(db, workload.lease(), workload.page()).await,
    }
}

/// Ends one lease.
async fn back<T: Transaction>(
    planted: Planted,
    tx: &T,
    observed: Lease,
    id: ItemId,
    value: &[u8],
) -> Result<(), Error> {
    let Lease { hold, revision } = observed;
    match planted {
        Planted::ExpiresBlindly => {
            tx.clear(&key(1, &hold.position));
            tx.set(&key(0, &hold.position), value);
            put(tx, hold, revision, false);
        }
        Planted::TokenBeginsAgain => {
            if leased().expire(tx, observed).await? {
                tx.clear(&key(2, &hold.position));
            }
        }
        Planted::ComesBackLast => {
            if lease(tx, &hold.position).await? == Some((observed, true)) {
                tx.clear(&key(1, &hold.position));
                tx.clear(&key(2, &hold.position));
                leased().enqueue(tx, id, value).await?;
            }
        }
        _ => drop(leased().expire(tx, observed).await?),
    }
    Ok(())
}
