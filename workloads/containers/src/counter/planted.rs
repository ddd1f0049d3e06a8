//! Planted bugs: counters implemented or used wrongly.

use super::{Answer, Op, Which, perform as right};
use crate::shared::{self, seen_before};
use bytes::Bytes;
use shaketable::{
    specimen::{self, DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN},
    weakened::{Flaw, everything, flawed},
    workload::Outcome,
};
use shaketable_layers::counter::{Error, Part};
use shaketable_tx::{
    Database, Db,
    Isolation::{Serializable, Snapshot},
    MutationType, RangeOption, Transaction, Tx, key_after,
    once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes within bounds that run side by side in one transaction are checked against one value", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an addition is retried after an unknown result without an operation record", "the documentation's own counter";
    Unwritten = UNWRITTEN, "an addition is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "an addition is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    ReadAddWrite = "read-add-write", "the sum is computed by the client from a snapshot read and stored", "an update that is lost";
    AddReads = "add-reads", "an addition reads the counter serializably", "isolation gone too far";
    DecisionBefore = "decision-before", "whether the bounds hold is read in an earlier transaction", "a check apart from its act";
    TornSum = "torn-sum", "the parts are read in one transaction each", "a sum over several versions";
    KnownParts = "known-parts", "setting a counter clears only the parts that this client knows", "a counter reset where shards are known by number";
    ShortOperand = "short-operand", "an addition has an operand of four bytes, and truncates the value to them", "an atomic addition takes the operand's length";
    UnsignedParts = "unsigned-parts", "parts are read as unsigned numbers", "a counter that was never thought negative";
    GetAtSnapshot = "get-at-snapshot", "a look before a write is performed at snapshot", "a snapshot read in a composed look-up";
    SaturatingSum = "saturating-sum", "a sum that does not fit into 64 bits is returned as the largest number", "an overflow that is hidden";
    WideClear = "wide-clear", "setting a split counter clears all keys with its prefix", "prefix confusion";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(planted: Planted, tx: &Tx, op: &Op) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::ReadAddWrite, Op::Add(which, part, by)) => {
            let key = which.key(*part);
            let value = number(tx.get(&key, Snapshot).await?);
            tx.set(&key, &value.wrapping_add(*by).to_le_bytes());
            Ok(Answer::Written)
        }
        (Planted::AddReads, Op::Add(which, part, _)) => {
            tx.get(&which.key(*part), Serializable).await?;
            right(tx, op).await
        }
        (Planted::KnownParts, Op::Set(which, _)) if which.split => {
            (0..u64::from(which.parts)).for_each(|part| tx.clear(&which.key(Part(part))));
            right(&flawed(tx, Flaw::Uncleared, everything()), op).await
        }
        (Planted::WideClear, Op::Set(which, _)) if which.split => {
            let (begin, end) = which.space().range();
            tx.clear_range(&begin, &[&end[..], b"\xff"].concat());
            right(tx, op).await
        }
        (Planted::ShortOperand, Op::Add(which, part, by)) => {
            tx.atomic_op(&which.key(*part), &(*by as i32).to_le_bytes(), MutationType::Add);
            Ok(Answer::Written)
        }
        (Planted::UnsignedParts, Op::Get(which, _)) if which.split => {
            let rows = shared::rows(tx, &which.space()).await?;
            sum(rows.iter().map(|row| row.value[..].try_into().map_or(0, u64::from_le_bytes)))
        }
        (Planted::GetAtSnapshot, Op::Get(which, false)) => right(tx, &Op::Get(*which, true)).await,
        (Planted::SaturatingSum, Op::Get(..)) => match right(tx, op).await {
            Err(Error::Overflow(sum)) => Ok(Answer::Value(if sum > 0 { i64::MAX } else { i64::MIN })),
            other => other,
        },
        _ => right(tx, op).await,
    }
}

fn number(value: Option<Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_le_bytes)
}

/// The sum of parts, if it fits.
fn sum(parts: impl IntoIterator<Item = impl Into<i128>>) -> Result<Answer, Error> {
    let sum = parts.into_iter().map(Into::into).sum();
    i64::try_from(sum).map(Answer::Value).map_err(|_| Error::Overflow(sum))
}

/// A change within bounds that is decided upon in one transaction and made in the next.
pub async fn decided_before(
    session: &mut Session<Db>,
    within: &Op,
    add: &Op,
) -> Outcome<specimen::Answer<Answer>> {
    let decide = |tx| async move { right(&flawed(&tx, Flaw::Unwritten, everything()), within).await };
    let act = |tx, answer| async move {
        right(&tx, add).await?;
        Ok(vec![answer])
    };
    seen_before(session, decide, act).await
}

/// The sum of a counter's parts, each of which is read in a separate transaction.
pub async fn torn_sum(session: &mut Session<Db>, which: Which) -> Outcome<specimen::Answer<Answer>> {
    let summed = async {
        let ((mut begin, end), mut parts) = (which.space().range(), Vec::new());
        loop {
            let next = &RangeOption::new(begin, end.clone()).limit(1);
            let read = session.database().run(|tx, _| async move {
                Ok::<_, Error>(tx.get_range_all(next.clone(), Serializable).await?)
            });
            let Some(row) = read.await.map_err(|e| e.error)?.pop() else { return sum(parts) };
            begin = key_after(&row.key).into();
            parts.push(number(Some(row.value)));
        }
    };
    summed
        .await
        .map_or_else(|e| specimen::refused(&e), |sum| Outcome::Answered(specimen::Answer::Done(vec![sum])))
}
