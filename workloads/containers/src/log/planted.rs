//! Planted bugs: a log implemented or used wrongly.

use super::{Answer, Op, client::perform as right, operations::value, space};
use foundationdb_tuple::Versionstamp;
use futures::{
    FutureExt,
    future::{Either, pending, select},
};
use shaketable::{
    specimen::{DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::log::{Entry, Error, Log, Position};
use shaketable_tx::{
    Database, Db,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RunError, Transaction, Tx,
};
use std::time::Duration;

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two appends that run side by side in one transaction get one key", "a size that is read before an await";
    Unrecorded = UNRECORDED, "an append is done again after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "an append is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "an append is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    SameRank = "same-rank", "the keys of entries of one transaction contain only the versionstamp", "several versionstamped keys in one transaction";
    OffsetInTuple = "offset-in-tuple", "the stamp's offset is counted from the tuple, not from the key", "the offset of a versionstamped key";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole page", "a range that is longer than a batch";
    ReadVersion = "read-version", "an entry's key is the read version of its transaction", "a version that is not the commit's";
    ClientCounter = "client-counter", "an entry's number is one more than the last one, read at snapshot", "a counter at the client";
    CounterReads = "counter-reads", "an append reads the last entry serializably", "a counter at the client, with isolation";
    LastAtSnapshot = "last-at-snapshot", "the last entry is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    LostWakeUp = "lost-wake-up", "a tail sets its watch in another transaction than the one that found nothing", "a watch set after the read that it guards";
    WrongKey = "wrong-key", "a tail watches a key that no append changes", "a watch on a range's first key";
    WakesForGood = "wakes-for-good", "a tail that is woken returns what it finds, even if that is nothing", "a watch that fires although nothing changed";
    NoLastLook = "no-last-look", "a tail whose time limit has passed returns without another read", "a timeout taken for an answer";
    DeafAfterError = "deaf-after-error", "a tail whose watch has failed does not read again", "a watch's error taken for the end";
    PatienceAgain = "patience-again", "the time limit of a tail starts again whenever its watch ends", "a timer that is set in a loop";
    WatchesOnce = "watches-once", "a tail that was woken and found nothing does not set its watch again", "a watch that fires once";
}

impl Planted {
    /// Whether the bug is in how tails wait.
    pub(super) fn is_in_tail(self) -> bool {
        self as u8 >= Planted::LostWakeUp as u8
    }
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(planted: Planted, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::CounterReads, Op::Append(..)) => {
            Log::new(space()).last(tx, Serializable).await?;
            right(tx, op, isolation).await
        }
        (
            Planted::SameRank | Planted::OffsetInTuple | Planted::ReadVersion | Planted::ClientCounter,
            Op::Append(name, byte, length),
        ) => {
            let size = tx.get_approximate_size().await?;
            let (number, rank) = match planted {
                Planted::SameRank => (None, 0),
                Planted::OffsetInTuple => (None, size),
                Planted::ReadVersion => (Some(tx.get_read_version().await?), size),
                _ => {
                    let last = Log::new(space()).last(tx, Snapshot).await?;
                    let last = last.and_then(|last| last.position.stamp.first_chunk().copied());
                    (Some(last.map_or(0, i64::from_be_bytes) + 1), 0)
                }
            };
            let (entries, value) = (space().subspace(&0), value(*name, *byte, *length));
            let written = right(&flawed(tx, Flaw::Unwritten, [entries.range()]), op, isolation).await?;
            if let Some(number) = number {
                let mut stamp = [0; 10];
                stamp[..8].copy_from_slice(&number.to_be_bytes());
                tx.set(&entries.pack(&(Versionstamp::complete(stamp, 0), rank)), &value);
            } else {
                let mut key = entries.pack_with_versionstamp(&(Versionstamp::incomplete(0), rank));
                if let (Planted::OffsetInTuple, Some(offset)) = (planted, key.last_chunk_mut()) {
                    // One byte of the type code, then the stamp.
                    *offset = 1u32.to_le_bytes();
                }
                tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
            }
            Ok(written)
        }
        (Planted::FirstBatch, Op::Page(..)) => {
            right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::LastAtSnapshot, Op::Last) => right(tx, op, Snapshot).await,
        _ => right(tx, op, isolation).await,
    }
}

/// Waits for entries, with the bug.
pub async fn tail(
    planted: Planted,
    db: &Db,
    after: Option<Position>,
    limit: usize,
    patience: Duration,
) -> Result<Vec<Entry>, RunError<Error>> {
    let (env, log) = (db.env(), &Log::new(space()));
    let mut left = env.sleep(patience);
    let watched = &match planted {
        Planted::WrongKey => space().subspace(&0).range().0,
        _ => space().pack(&1),
    };
    let mut was_woken = false;
    loop {
        let looked = db.run(|tx, _| async move {
            let entries = log.scan(&tx, after, limit, Snapshot).await?;
            let change = (limit > 0 && entries.is_empty()).then(|| tx.watch(watched));
            Ok::<_, Error>((entries, change))
        });
        let (entries, change) = looked.await?;
        let Some(mut change) = change else { return Ok(entries) };
        match planted {
            Planted::LostWakeUp => {
                change = db.run(|tx, _| async move { Ok::<_, Error>(tx.watch(watched)) }).await?;
            }
            Planted::WatchesOnce if was_woken => change = pending().boxed(),
            Planted::PatienceAgain => left = env.sleep(patience),
            _ => {}
        }
        match select(change, &mut left).await {
            Either::Left((Ok(()), _)) if planted != Planted::WakesForGood => was_woken = true,
            Either::Left((Err(e), _)) if !e.is_retryable() => {
                return Err(RunError { error: e.into(), maybe_committed: false, attempts: 1 });
            }
            Either::Left((Err(_), _)) if planted == Planted::DeafAfterError => {
                left.await;
                return Ok(Vec::new());
            }
            Either::Left((Err(_), _)) => env.sleep(Duration::from_millis(10)).await,
            Either::Right(_) if planted == Planted::NoLastLook => return Ok(Vec::new()),
            _ => return db.run(|tx, _| async move { log.scan(&tx, after, limit, Snapshot).await }).await,
        }
    }
}
