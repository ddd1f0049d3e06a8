//! A log done wrong, one bug at a time.

use crate::catalogue::log::{Answer, Op, Planted, items, perform as right, skip, space, value};
use foundationdb_tuple::Versionstamp;
use futures::{
    FutureExt,
    future::{Either, select},
};
use shaketable_layers::{
    limits,
    log::{Entry, Error, Log, Position},
    tx::{
        Database,
        Isolation::{self, Serializable, Snapshot},
        MutationType, RangeOption, RunError, Transaction, VALUE_SIZE_LIMIT, key_after,
    },
};
use std::time::Duration;

/// Does a call with the bug in it, or as it should be where the bug does not touch it.
pub async fn perform<T: Transaction>(
    planted: Planted,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::CounterReads, Op::Append(..)) => {
            Log::new(space()).last(tx, Serializable).await?;
            right(tx, op, isolation).await
        }
        (
            Planted::SameRank
            | Planted::OffsetInTuple
            | Planted::HeadForgotten
            | Planted::ReadVersion
            | Planted::ClientCounter,
            Op::Append(name, byte, length),
        ) => append(planted, tx, &value(*name, *byte, *length)).await,
        (Planted::TenBytes | Planted::Inclusive | Planted::FirstBatch, Op::Page(skipped, limit))
            if *limit > 0 =>
        {
            let behind = skip(tx, *skipped, Serializable).await?;
            let after = behind.map(|(position, _)| position);
            let (begin, end) = entries_behind(planted, after);
            let range = RangeOption::new(begin, end).limit(*limit);
            let rows = match planted {
                Planted::FirstBatch => tx.get_range(&range, 1, Serializable).await.map(|batch| batch.rows),
                _ => tx.get_range_all(range, Serializable).await,
            };
            let rows = rows.map_err(|e| match e.code() {
                1036 => Error::OwnEntriesUnreadable,
                _ => Error::Fdb(e),
            })?;
            let entries: Vec<Entry> = rows
                .into_iter()
                .map(|row| Entry { position: position(&row.key), value: row.value })
                .collect();
            Ok(Answer::Behind(behind.map(|(_, name)| name), items(&entries)))
        }
        (Planted::TrimExclusive | Planted::TrimStamp, Op::Trim(entries)) => {
            let trimmed = Log::new(space()).scan(tx, None, *entries, Serializable).await?;
            if let Some(last) = trimmed.last() {
                let entries = space().subspace(&0);
                let stamp = Versionstamp::complete(last.position.stamp, 0);
                let end = match planted {
                    Planted::TrimStamp => entries.subspace(&stamp).range().1,
                    _ => entries.pack(&(stamp, last.position.rank)),
                };
                tx.clear_range(&entries.range().0, &end);
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

/// Waits for entries with the bug in it.
pub async fn tail<D: Database>(
    planted: Planted,
    db: &D,
    after: Option<Position>,
    limit: usize,
    patience: Duration,
) -> Result<Vec<Entry>, RunError<Error>> {
    let (env, log) = (db.env(), &Log::new(space()));
    let look = || db.run(|tx, _| async move { log.scan(&tx, after, limit, Snapshot).await });
    let mut left = match planted {
        Planted::HalfPatience => env.sleep(patience / 2),
        Planted::NoPatience => std::future::pending().boxed(),
        _ => env.sleep(patience),
    };
    if planted == Planted::Sleeps {
        let entries = look().await?;
        if !entries.is_empty() {
            return Ok(entries);
        }
        left.await;
        return look().await;
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
        match select(change, &mut left).await {
            Either::Left((Ok(()), _)) if planted == Planted::WakesForGood => return look().await,
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
            Either::Right(_) => return look().await,
        }
    }
}

/// Where a page begins and ends.
fn entries_behind(planted: Planted, after: Option<Position>) -> (Vec<u8>, Vec<u8>) {
    let entries = space().subspace(&0);
    let (first, end) = entries.range();
    let begin = after.map(|after| {
        let stamp = Versionstamp::complete(after.stamp, 0);
        match planted {
            Planted::TenBytes => entries.subspace(&stamp).range().1,
            Planted::Inclusive => entries.pack(&(stamp, after.rank)),
            _ => key_after(&entries.pack(&(stamp, after.rank))).to_vec(),
        }
    });
    (begin.unwrap_or(first), end)
}

fn position(key: &[u8]) -> Position {
    let mut stamp = [0; 10];
    let parts: Result<(i64, Versionstamp, i64), _> = space().unpack(key);
    let rank = parts.map_or(0, |(_, found, rank)| {
        stamp.copy_from_slice(found.transaction_version());
        rank
    });
    Position { stamp, rank }
}

async fn append<T: Transaction>(planted: Planted, tx: &T, value: &[u8]) -> Result<Answer, Error> {
    let entries = space().subspace(&0);
    let complete = |stamp: [u8; 10], rank: i64| entries.pack(&(Versionstamp::complete(stamp, 0), rank));
    limits::value_up_to(VALUE_SIZE_LIMIT, space().bytes(), value)?;
    let version = tx.get_read_version().await?;
    let size = tx.get_approximate_size().await?;
    let rank = if planted == Planted::SameRank { 0 } else { size };
    let mut key = entries.pack_with_versionstamp(&(Versionstamp::incomplete(0), rank));
    match planted {
        Planted::OffsetInTuple => {
            // One byte of the type code, then the stamp.
            let length = key.len();
            key[length - 4..].copy_from_slice(&1u32.to_le_bytes());
            tx.atomic_op(&key, value, MutationType::SetVersionstampedKey);
        }
        Planted::ReadVersion => {
            let mut stamp = [0; 10];
            stamp[..8].copy_from_slice(&version.to_be_bytes());
            tx.set(&complete(stamp, rank), value);
        }
        Planted::ClientCounter => {
            let range = RangeOption::from(entries.range()).reversed().limit(1);
            let last = tx.get_range_all(range, Snapshot).await?.pop();
            let last = last.map_or([0; 10], |row| position(&row.key).stamp);
            let number = last[..8].try_into().map_or(0, u64::from_be_bytes) + 1;
            let mut stamp = [0; 10];
            stamp[..8].copy_from_slice(&number.to_be_bytes());
            tx.set(&complete(stamp, 0), value);
        }
        _ => tx.atomic_op(&key, value, MutationType::SetVersionstampedKey),
    }
    if planted != Planted::HeadForgotten {
        tx.atomic_op(&space().pack(&1), &[0; 14], MutationType::SetVersionstampedValue);
    }
    Ok(Answer::Written)
}
