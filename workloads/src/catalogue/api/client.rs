//! How a client performs a transaction.

use super::{
    Answer, Api, Asked, Before, Call, Op, Seen, Spot, Wake, Waker,
    layout::{Layout, WOKEN},
    planted::Planted,
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, join, select},
};
use parking_lot::Mutex;
use shaketable::{models::keyspace::Write, workload::Outcome};
use shaketable_tx::{
    ConflictRangeType, Database, Db, Env, Error, Isolation, KeyValue, MutationType, RangeOption, Result,
    Transaction, TransactionOption, Tx,
    once::{self, Check, PendingAnswer, Session},
    sometimes,
};
use shaketable_workloads_shared::unexpected;
use std::{sync::Arc, time::Duration};

/// An attempt: what its calls returned, and its versionstamp once it has committed.
type Try = (Vec<Seen>, BoxFuture<'static, Result<[u8; 10]>>);

/// The state of a client.
pub struct Client {
    pub(super) session: Session<Db>,
    pub(super) client: usize,
    pub(super) layout: Arc<Layout>,
    /// What the calls of each attempt of the last operation returned. The operation record identifies the
    /// attempt that committed.
    pub(super) attempts: Arc<Mutex<Vec<Try>>>,
}

impl Api {
    /// Runs the transaction of an operation, exactly once if it writes.
    pub(super) async fn transact(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        let Client { session, client, layout, attempts } = client;
        attempts.lock().clear();
        let (client, layout, attempts, planted) = (*client, &**layout, &**attempts, self.planted);
        let risky = self.risky_beside;
        let db = session.database().clone();
        // Performs the calls and returns the number of this attempt; the answers are kept separately for each
        // attempt.
        let env = &db.env().clone();
        let calls = |tx: Tx, attempt: u32| async move {
            let pauses = (attempt == 0).then_some(env);
            let seen = run_calls(&tx, layout, client, op, (planted, pauses)).await?;
            let mut attempts = attempts.lock();
            attempts.push((seen, tx.get_versionstamp()));
            Ok::<u64, Error>(attempts.len() as u64 - 1)
        };
        let shared = layout.key(client, Spot { own: false, n: 0 });
        let (calls, handle) = (&calls, &db);
        if op.reads_only() || planted == Some(Planted::NoOpRecord) {
            let ran = db.run(|tx, attempt| async move {
                prepare(handle, &tx, shared, op, attempt.number, planted).await?;
                if risky {
                    request_both(handle, &tx).await?;
                }
                calls(tx, attempt.number).await
            });
            return match ran.await {
                Ok(n) => self.answer(&mut attempts.lock(), n),
                Err(e) if e.maybe_committed && !op.reads_only() => Outcome::Unknown(e.error),
                Err(e) => Outcome::Failed(e.error),
            };
        }
        let id = match session.begin().await {
            Ok(id) => id,
            Err(e) => return unexpected(&e, Outcome::Failed),
        };
        let slots = &session.slots().clone();
        let ran = db.run(|tx, attempt| async move {
            prepare(handle, &tx, shared, op, attempt.number, planted).await?;
            if risky {
                request_both(handle, &tx).await?;
            }
            match once::check(&tx, slots, id).await? {
                Check::Done(n) => Ok(PendingAnswer::ready(n)),
                Check::New(permit) => once::record(&tx, permit, calls(tx.clone(), attempt.number).await?),
            }
        });
        let ran = ran.await;
        match session.conclude(id, ran).await {
            once::Outcome::Applied(n) => self.answer(&mut attempts.lock(), n),
            once::Outcome::Refused(e) => unexpected(&e, Outcome::Failed),
            once::Outcome::Unknown(_) => Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT),
        }
    }
}

impl Api {
    /// The answer of the attempt that committed.
    pub(super) fn answer(&self, attempts: &mut [Try], committed: u64) -> Outcome<Answer> {
        let all = (self.planted == Some(Planted::CapturedAnswers))
            .then(|| attempts.iter().flat_map(|t| t.0.clone()).collect());
        let Some((seen, stamp)) = attempts.get_mut(committed as usize) else {
            return Outcome::Violated(format!("attempt {committed} is recorded, but was never made"));
        };
        // The versionstamp is available at once if this attempt learned that it had committed, and never
        // otherwise.
        let stamp = stamp.now_or_never().and_then(Result::ok);
        Outcome::Answered(Answer { seen: all.unwrap_or_else(|| std::mem::take(seen)), stamp })
    }
}

/// Prepares a transaction for its calls: uses it for something else first if the operation requires that, and
/// sets its options.
async fn prepare(
    db: &Db,
    tx: &Tx,
    shared: &Bytes,
    op: &Op,
    attempt: u32,
    planted: Option<Planted>,
) -> Result<()> {
    let waste = |tx: Tx| async move {
        tx.get(shared, Isolation::Serializable).await?;
        tx.set(shared, b"wasted");
        Ok::<_, Error>(())
    };
    match op.before {
        Before::Nothing => {}
        Before::Reset | Before::Cancel => {
            waste(tx.clone()).await?;
            if op.before == Before::Cancel {
                tx.cancel();
            }
            if planted != Some(Planted::ResetForgotten) || op.before == Before::Cancel {
                tx.reset();
            }
        }
        Before::Drop => waste(db.create_transaction()?).await?,
        Before::Lend => {
            let lender = db.create_transaction()?;
            tx.set_read_version(lender.get_read_version().await?);
        }
    }
    let disable = !op.read_your_writes && (planted != Some(Planted::OptionSetOnce) || attempt == 0);
    // The option would be set too late on a transaction that was used and not reset.
    let used = planted == Some(Planted::ResetForgotten) && op.before == Before::Reset;
    if (disable || planted == Some(Planted::OwnWritesUnseen)) && !used {
        tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    }
    if !op.snapshot_ryw && planted != Some(Planted::SnapshotOwnWrites) {
        tx.set_option(TransactionOption::SnapshotRywDisable)?;
    }
    for option in op.options.iter().flat_map(|choice| choice.options()) {
        tx.set_option(option)?;
    }
    Ok(())
}

/// Requests the read version of a transaction, and beside it that of another one for which a risky version
/// will do.
async fn request_both(db: &Db, tx: &Tx) -> Result<()> {
    let other = db.create_transaction()?;
    other.set_option(TransactionOption::CausalReadRisky)?;
    // Nothing is read at the other version.
    let (_, version) = join(other.get_read_version(), tx.get_read_version()).await;
    version.map(drop)
}

/// Performs the calls in a transaction, with pauses if there is a clock for them, and returns what each of
/// them returned.
async fn run_calls(
    tx: &Tx,
    layout: &Layout,
    client: usize,
    op: &Op,
    (planted, pauses): (Option<Planted>, Option<&Env>),
) -> Result<Vec<Seen>> {
    let mut seen = Vec::with_capacity(op.calls.len());
    let as_read =
        |isolation| if planted == Some(Planted::SnapshotReads) { Isolation::Snapshot } else { isolation };
    for call in &op.calls {
        let answer = match call {
            Call::Get(at, isolation) => {
                tx.get(layout.point(client, *at, *isolation), as_read(*isolation)).await.map(Seen::Value)
            }
            Call::GetKey(selector) => {
                let selector = layout.selector(client, *selector);
                tx.get_key(&selector, as_read(Isolation::Serializable)).await.map(Seen::Key)
            }
            Call::GetRange(range, isolation) => {
                let option = layout.range(client, *range, *isolation);
                if range.one_batch || planted == Some(Planted::FirstBatch) {
                    let batch = tx.get_range(&option, 1, as_read(*isolation)).await;
                    batch.map(|batch| rows(batch.rows, batch.more && range.one_batch))
                } else {
                    tx.get_range_all(option, as_read(*isolation)).await.map(|all| rows(all, false))
                }
            }
            Call::GetStamped(own, isolation) => {
                let (begin, end) = layout.stamped(client, *own || *isolation == Isolation::Snapshot);
                let range = RangeOption::new(begin, end);
                tx.get_range_all(range, as_read(*isolation)).await.map(|all| rows(all, false))
            }
            Call::Conflict(begin, end, kind) => {
                match layout.span(client, *begin, *end) {
                    Some((begin, end)) if begin == end => tx.add_conflict_key(begin, *kind)?,
                    Some((begin, end)) => tx.add_conflict_range(begin, end, *kind)?,
                    None => {}
                }
                Ok(Seen::Nothing)
            }
            Call::Pause(milliseconds) => {
                if let Some(env) = pauses {
                    env.sleep(Duration::from_millis((*milliseconds).into())).await;
                }
                Ok(Seen::Nothing)
            }
            Call::Ask(Asked::ReadVersion) => tx.get_read_version().await.map(Seen::Number),
            Call::Ask(Asked::Size) => tx.get_approximate_size().await.map(Seen::Number),
            Call::Ask(Asked::StoredBytes) => {
                tx.get_estimated_range_size_bytes(b"api/", b"api0").await.map(Seen::Number)
            }
            Call::Ask(Asked::SplitPoints) => {
                tx.get_range_split_points(b"api/", b"api0", 500).await.map(Seen::Keys)
            }
            write => {
                if matches!(write, Call::SetByHand(..)) || planted == Some(Planted::UncheckedWrites) {
                    tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
                }
                let end_stamped = match write {
                    Call::StampValue(at, data) if planted == Some(Planted::StampAtEnd) => {
                        Some((at, data.bytes()))
                    }
                    _ => None,
                };
                if let Some((at, mut value)) = end_stamped {
                    let offset = value.len() as u32;
                    value.extend([0; 10].into_iter().chain(offset.to_le_bytes()));
                    tx.atomic_op(layout.key(client, *at), &value, MutationType::SetVersionstampedValue);
                    seen.push(Seen::Nothing);
                    continue;
                }
                match layout.write(client, write) {
                    Some(Write::Set(key, value)) => tx.set(&key, &value),
                    Some(Write::Clear(begin, end)) => tx.clear_range(&begin, &end),
                    Some(Write::Atomic(op, key, operand)) => tx.atomic_op(&key, &operand, op),
                    None => {}
                }
                if let Call::SetByHand(at, _) = write {
                    tx.add_conflict_key(layout.key(client, *at), ConflictRangeType::Write)?;
                }
                Ok(Seen::Nothing)
            }
        };
        seen.push(match answer {
            Err(Error::ACCESSED_UNREADABLE) => Seen::Unreadable,
            other => other?,
        });
    }
    Ok(seen)
}

fn rows(rows: Vec<KeyValue>, more: bool) -> Seen {
    Seen::Rows(rows.into_iter().map(|row| (row.key, row.value)).collect(), more)
}

/// The maximum time for which a key is watched.
const WATCHED: Duration = Duration::from_millis(30);

/// Watches a key for a short time. A watch may fire without a change, fire late, or fail; it must not block a
/// client that does not wait for it, and must not disturb later operations.
pub(super) async fn watch(db: &Db, key: &Bytes) {
    let armed = db.run(|tx, _| async move { Ok::<_, Error>(tx.watch(key)) }).await;
    if let Ok(changed) = armed {
        let fired = matches!(select(changed, db.env().sleep(WATCHED)).await, Either::Left((Ok(()), _)));
        sometimes!(fired, "api: a watch fires");
    }
}

/// How long a watch may take to notice a change or to fail: longer than any fault.
const NOTICED: Duration = Duration::from_secs(40);

/// Watches a key that nobody else uses, and changes it. Returns whether the watch ended in time.
pub(super) async fn wake(db: &Db, client: usize, Wake { by, after }: Wake) -> bool {
    let key = &[WOKEN, &[b'a' + client as u8]].concat()[..];
    let one = [1];
    let begin = async |tx: Tx| {
        tx.set(key, &one);
        Ok::<_, Error>(())
    };
    if db.run(|tx, _| begin(tx)).await.is_err() {
        return true;
    }
    // It may time out, and what it arms may fail, as any watch may.
    let armed = db.run(|tx, _| async move {
        let watch = tx.watch(key);
        let seen = tx.get(key, Isolation::Snapshot).await?;
        if after.is_none() {
            change(db, key, by).await?;
        }
        Ok::<_, Error>((watch, seen.as_deref() == Some(&one[..])))
    });
    let Ok((changed, true)) = armed.await else { return true };
    if let Some(milliseconds) = after {
        db.env().sleep(Duration::from_millis(milliseconds.into())).await;
        if change(db, key, by).await.is_err() {
            return true;
        }
    }
    matches!(select(changed, db.env().sleep(NOTICED)).await, Either::Left(_))
}

/// Changes the value of a key from 1, once or twice.
async fn change(db: &Db, key: &[u8], by: Waker) -> Result<()> {
    let changed = db.run(|tx, _| async move {
        match by {
            Waker::Set => tx.set(key, b"changed"),
            Waker::Clear => tx.clear(key),
            Waker::ClearRange => tx.clear_range(key, &[key, &b"~"[..]].concat()),
            Waker::Atomic(op, operand) => tx.atomic_op(key, &[operand], op),
            Waker::Stamp => tx.atomic_op(key, &[0; 14], MutationType::SetVersionstampedValue),
        }
        Ok::<_, Error>(())
    });
    changed.await.map_err(|e| e.error)
}
