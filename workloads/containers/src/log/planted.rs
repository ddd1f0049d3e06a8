//! Planted bugs: a log implemented or used wrongly.

use super::{
    Answer, Op,
    client::{perform as right, skip},
    operations::{items, value},
    space,
};
use crate::shared::one_call;
use foundationdb_tuple::Versionstamp;
use futures::{
    FutureExt,
    future::{Either, select},
};
use shaketable::{
    specimen::{DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN},
    weakened::{Flaw, everything, flawed, only},
};
use shaketable_layers::log::{Entry, Error, Log, Position};
use shaketable_tx::{
    Database,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RunError, Transaction, VALUE_SIZE_LIMIT, limits,
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
    TenBytes = "ten-bytes", "a page begins after the transaction of the last entry, not after the entry", "a stamp of ten bytes taken for one of twelve";
    Inclusive = "inclusive", "a page begins with the entry after which it should begin", "a selector that is off by one";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole page", "a range that is longer than a batch";
    NoLimit = "no-limit", "a page of zero entries contains all of them", "a limit of 0 is none";
    ReadVersion = "read-version", "an entry's key is the read version of its transaction", "a version that is not the commit's";
    ClientCounter = "client-counter", "an entry's number is one more than the last one, read at snapshot", "a counter at the client";
    CounterReads = "counter-reads", "an append reads the last entry serializably", "a counter at the client, with isolation";
    HeadForgotten = "head-forgotten", "an append does not change what tails watch", "an index forgotten on one path";
    TrimExclusive = "trim-exclusive", "a trim keeps the last entry that it should remove", "an end that is exclusive";
    TrimStamp = "trim-stamp", "a trim removes all entries of the last one's transaction", "a stamp of ten bytes taken for one of twelve";
    LargestRefused = "largest-refused", "a value of the maximum size is refused", "a limit that is off by one";
    LastAtSnapshot = "last-at-snapshot", "the last entry is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    LostWakeUp = "lost-wake-up", "a tail sets its watch in another transaction than the one that found nothing", "a watch set after the read that it guards";
    WrongKey = "wrong-key", "a tail watches a key that no append changes", "a watch on a range's first key";
    Sleeps = "sleeps", "a tail sleeps until its time limit, and reads only then", "polling instead of a watch";
    HalfPatience = "half-patience", "a tail waits for half of its time limit", "a timeout that is halved";
    WakesForGood = "wakes-for-good", "a tail that is woken returns what it finds, even if that is nothing", "a watch that fires although nothing changed";
    NoLastLook = "no-last-look", "a tail whose time limit has passed returns without another read", "a timeout taken for an answer";
    DeafAfterError = "deaf-after-error", "a tail whose watch has failed does not read again", "a watch's error taken for the end";
    NoPatience = "no-patience", "a tail waits for ever", "a wait without a timeout";
    WaitsForNone = "waits-for-none", "a tail that is to return no entry waits for one", "a limit of 0 is none";
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
pub async fn perform<T: Transaction>(
    planted: Planted,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let log = Log::new(space());
    match (planted, op) {
        (Planted::CounterReads, Op::Append(..)) => {
            log.last(tx, Serializable).await?;
            right(tx, op, isolation).await
        }
        (Planted::HeadForgotten, Op::Append(..)) => {
            right(&flawed(tx, Flaw::Unwritten, [only(space().pack(&1))]), op, isolation).await
        }
        (
            Planted::SameRank | Planted::OffsetInTuple | Planted::ReadVersion | Planted::ClientCounter,
            Op::Append(name, byte, length),
        ) => append(planted, tx, &value(*name, *byte, *length)).await,
        (Planted::TenBytes | Planted::Inclusive | Planted::FirstBatch, Op::Page(skipped, limit)) => {
            let tx = one_call(tx, true).await;
            let behind = skip(&tx, *skipped, isolation).await?;
            let after = behind.map(|(last, _)| planted.taken_for(last));
            let batches = if planted == Planted::FirstBatch { &everything()[..] } else { &[] };
            let tx = flawed(&tx, Flaw::FirstBatch, batches);
            let entries = log.scan(&tx, after, *limit, isolation).await?;
            Ok(Answer::Behind(behind.map(|(_, name)| name), items(&entries)))
        }
        (Planted::TrimExclusive | Planted::TrimStamp, Op::Trim(entries)) => {
            let tx = &one_call(tx, false).await;
            let trimmed = log.scan(tx, None, *entries, Serializable).await?;
            if let Some(last) = trimmed.last() {
                log.trim(tx, planted.taken_for(last.position)).await?;
            }
            Ok(Answer::Trimmed(trimmed.len()))
        }
        (Planted::NoLimit, Op::Page(skipped, 0)) => right(tx, &Op::Page(*skipped, 1_000), isolation).await,
        (Planted::LargestRefused, Op::Append(name, byte, length)) => {
            limits::value_up_to(VALUE_SIZE_LIMIT - 1, space().bytes(), &value(*name, *byte, *length))?;
            right(tx, op, isolation).await
        }
        (Planted::LastAtSnapshot, Op::Last) => right(tx, op, Snapshot).await,
        _ => right(tx, op, isolation).await,
    }
}

impl Planted {
    /// The position that the bug takes for that of the last entry of a page, or of what is trimmed.
    fn taken_for(self, Position { stamp, rank }: Position) -> Position {
        match self {
            Planted::TenBytes | Planted::TrimStamp => Position { stamp, rank: i64::MAX },
            Planted::Inclusive | Planted::TrimExclusive => Position { stamp, rank: rank - 1 },
            _ => Position { stamp, rank },
        }
    }
}

/// Waits for entries, with the bug.
pub async fn tail<D: Database>(
    planted: Planted,
    db: &D,
    after: Option<Position>,
    limit: usize,
    patience: Duration,
) -> Result<Vec<Entry>, RunError<Error>> {
    let (env, log) = (db.env(), &Log::new(space()));
    let read = || db.run(|tx, _| async move { log.scan(&tx, after, limit, Snapshot).await });
    let mut left = match planted {
        Planted::HalfPatience => env.sleep(patience / 2),
        Planted::NoPatience => std::future::pending().boxed(),
        _ => env.sleep(patience),
    };
    if planted == Planted::Sleeps {
        let entries = read().await?;
        if !entries.is_empty() {
            return Ok(entries);
        }
        left.await;
        return read().await;
    }
    let watched = match planted {
        Planted::WrongKey => space().subspace(&0).range().0,
        _ => space().pack(&1),
    };
    let watched = &watched;
    let mut was_woken = false;
    loop {
        let looked = db.run(|tx, _| async move {
            let entries = log.scan(&tx, after, limit, Snapshot).await?;
            let change = entries.is_empty().then(|| tx.watch(watched));
            Ok::<_, Error>((entries, change))
        });
        let (entries, change) = looked.await?;
        let Some(mut change) = change else { return Ok(entries) };
        match planted {
            Planted::LostWakeUp => {
                change = db.run(|tx, _| async move { Ok::<_, Error>(tx.watch(watched)) }).await?;
            }
            Planted::WatchesOnce if was_woken => change = std::future::pending().boxed(),
            _ => {}
        }
        if planted == Planted::PatienceAgain {
            left = env.sleep(patience);
        }
        match select(change, &mut left).await {
            Either::Left((Ok(()), _)) if planted == Planted::WakesForGood => return read().await,
            Either::Left((Ok(()), _)) => was_woken = true,
            Either::Left((Err(e), _)) if e.is_retryable() && planted == Planted::DeafAfterError => {
                left.await;
                return Ok(Vec::new());
            }
            Either::Left((Err(e), _)) if e.is_retryable() => env.sleep(Duration::from_millis(10)).await,
            Either::Left((Err(e), _)) => {
                return Err(RunError { error: e.into(), maybe_committed: false, attempts: 1 });
            }
            Either::Right(_) if planted == Planted::NoLastLook => return Ok(Vec::new()),
            Either::Right(_) => return read().await,
        }
    }
}

async fn append<T: Transaction>(planted: Planted, tx: &T, value: &[u8]) -> Result<Answer, Error> {
    let entries = space().subspace(&0);
    limits::value_up_to(VALUE_SIZE_LIMIT, space().bytes(), value)?;
    let version = tx.get_read_version().await?;
    let rank = tx.get_approximate_size().await?;
    let stamped = |rank: i64| entries.pack_with_versionstamp(&(Versionstamp::incomplete(0), rank));
    let set_at = |number: i64, rank: i64| {
        let mut stamp = [0; 10];
        stamp[..8].copy_from_slice(&number.to_be_bytes());
        tx.set(&entries.pack(&(Versionstamp::complete(stamp, 0), rank)), value);
    };
    match planted {
        Planted::OffsetInTuple => {
            let mut key = stamped(rank);
            // One byte of the type code, then the stamp.
            let length = key.len();
            key[length - 4..].copy_from_slice(&1u32.to_le_bytes());
            tx.atomic_op(&key, value, MutationType::SetVersionstampedKey);
        }
        Planted::ReadVersion => set_at(version, rank),
        Planted::ClientCounter => {
            let last = Log::new(space()).last(tx, Snapshot).await?;
            let last = last.map_or([0; 10], |last| last.position.stamp);
            set_at(last[..8].try_into().map_or(0, i64::from_be_bytes) + 1, 0);
        }
        _ => tx.atomic_op(&stamped(0), value, MutationType::SetVersionstampedKey),
    }
    tx.atomic_op(&space().pack(&1), &[0; 14], MutationType::SetVersionstampedValue);
    Ok(Answer::Written)
}
