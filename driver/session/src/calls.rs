//! Performs commands and calls on a simulated transaction.

use crate::{Action, Call, Reply};
use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use shaketable_tx::{ConflictRangeType, Result, Transaction, TransactionOption};

/// Performs a command. Its error is the transaction's deferred error; errors that the transaction defers
/// itself may be among them.
pub fn perform<T: Transaction>(tx: &T, action: &Action) -> Result<()> {
    match action {
        Action::SetOption { code, value } => return tx.set_option_raw(*code, value.as_deref()),
        Action::SetReadVersion(version) => tx.set_read_version(*version),
        Action::Set(key, value) => tx.set(key, value),
        Action::Clear(key) => tx.clear(key),
        Action::ClearRange(begin, end) => tx.clear_range(begin, end),
        Action::Atomic { key, operand, code } => return tx.atomic_op_code(key, operand, *code),
        Action::AddConflictRange(begin, end, kind) => return tx.add_conflict_range(begin, end, *kind),
        Action::Reset => tx.reset(),
        Action::Cancel | Action::Destroy => tx.cancel(),
    }
    Ok(())
}

/// Issues a call: it takes effect now, and the future returns its answer.
pub fn issue<T: Transaction>(tx: &T, call: Call) -> BoxFuture<'static, Result<Reply>> {
    match call {
        Call::Get(key, isolation) => tx.get(&key, isolation).map_ok(Reply::Value).boxed(),
        Call::GetKey(selector, isolation) => tx.get_key(&selector, isolation).map_ok(Reply::Key).boxed(),
        Call::GetRange(range, iteration, isolation) => {
            tx.get_range(&range, iteration, isolation).map_ok(Reply::Range).boxed()
        }
        Call::GetMappedRange(range, mapper, iteration, isolation) => {
            tx.get_mapped_range(&range, &mapper, iteration, isolation).map_ok(Reply::Mapped).boxed()
        }
        Call::GetReadVersion => tx.get_read_version().map_ok(Reply::Number).boxed(),
        Call::Commit => {
            let (commit, tx) = (tx.commit(), tx.clone());
            async move {
                commit.await?;
                tx.get_committed_version().map(Reply::Committed)
            }
            .boxed()
        }
        Call::OnError(error) => tx.on_error(error).map_ok(|()| Reply::Done).boxed(),
        Call::Watch(key) => tx.watch(&key).map_ok(|()| Reply::Done).boxed(),
        Call::GetVersionstamp => {
            tx.get_versionstamp().map_ok(|stamp| Reply::Key(stamp.to_vec().into())).boxed()
        }
        Call::GetApproximateSize => tx.get_approximate_size().map_ok(Reply::Number).boxed(),
        Call::GetEstimatedRangeSize(begin, end) => {
            tx.get_estimated_range_size_bytes(&begin, &end).map_ok(Reply::Number).boxed()
        }
        Call::GetRangeSplitPoints(begin, end, size) => {
            tx.get_range_split_points(&begin, &end, size).map_ok(Reply::Keys).boxed()
        }
        Call::GetAddresses(key) => tx.get_addresses_for_key(&key).map_ok(Reply::Addresses).boxed(),
        Call::GetTagThrottledDuration => tx.get_tag_throttled_duration().map_ok(Reply::Time).boxed(),
        Call::GetTotalCost => tx.get_total_cost().map_ok(Reply::Number).boxed(),
        Call::Recover => recover(tx.clone()).boxed(),
    }
}

/// A key that nobody reads.
const UNUSED_KEY: &[u8] = b"\xff/SC/recovery";

/// Retries a commit without writes until it succeeds: the cluster has then recovered.
async fn recover<T: Transaction>(tx: T) -> Result<Reply> {
    loop {
        prepare_recovery(&tx)?;
        match tx.commit().await {
            Ok(()) => return Ok(Reply::Done),
            Err(error) => tx.on_error(error).await?,
        }
    }
}

/// Sets options for the highest priority and for retries without limit, and adds a conflict range, because a
/// commit without writes and write conflict ranges is not sent to the cluster.
fn prepare_recovery<T: Transaction>(tx: &T) -> Result<()> {
    use TransactionOption::{AccessSystemKeys, LockAware, PrioritySystemImmediate, RetryLimit, Timeout};
    for option in [PrioritySystemImmediate, LockAware, AccessSystemKeys, Timeout(0), RetryLimit(-1)] {
        tx.set_option(option)?;
    }
    tx.add_conflict_range(UNUSED_KEY, &[UNUSED_KEY, &[0]].concat(), ConflictRangeType::Write)
}
