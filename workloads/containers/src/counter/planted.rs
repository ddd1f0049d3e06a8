//! Planted bugs: counters implemented or used wrongly.

use super::{Answer, Op, Which, get, perform as right};
use crate::shared::{self, seen_before};
use bytes::Bytes;
use shaketable::{
    specimen::{
        self, DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN, ran,
    },
    weakened::{everything, weakened},
    workload::Outcome,
};
use shaketable_layers::counter::{Error, Part};
use shaketable_tx::{
    Database,
    Isolation::{Serializable, Snapshot},
    MutationType, RangeOption, Transaction,
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
    SnapshotDecision = "snapshot-decision", "whether the bounds hold is read at snapshot", "a decision on a snapshot read";
    DecisionBefore = "decision-before", "whether the bounds hold is read in an earlier transaction", "a check apart from its act";
    OnePartDecides = "one-part-decides", "a change within bounds reads only the part that it changes", "a split counter decided upon in part";
    TornSum = "torn-sum", "the parts are read in one transaction each", "a sum over several versions";
    KnownParts = "known-parts", "setting a counter clears only the parts that this client knows", "a counter reset where shards are known by number";
    BigEndian = "big-endian", "operands and values are big-endian", "an atomic addition is little-endian";
    ShortOperand = "short-operand", "an addition has an operand of four bytes, and truncates the value to them", "an atomic addition takes the operand's length";
    UnsignedParts = "unsigned-parts", "parts are read as unsigned numbers", "a counter that was never thought negative";
    GetAtSnapshot = "get-at-snapshot", "a look before a write is performed at snapshot", "a snapshot read in a composed look-up";
    BoundsExclude = "bounds-exclude", "a change that reaches its upper bound is refused", "a limit off by one";
    WrappingDecision = "wrapping-decision", "a change within bounds is computed without a check for overflow of 64 bits", "an overflow that is ignored";
    SaturatingSum = "saturating-sum", "a sum that does not fit into 64 bits is returned as the largest number", "an overflow that is hidden";
    WideClear = "wide-clear", "setting a split counter clears all keys with its prefix", "prefix confusion";
    OnePartLeft = "one-part-left", "setting a split counter clears only up to its last part", "a bound off by one";
    AddedFirst = "added-first", "a change is made before its bounds are checked", "a refusal that comes too late";
    LastPart = "last-part", "the sum leaves out the last part of more than two", "a loop that ends one too early";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Result<Answer, Error> {
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
        (Planted::SnapshotDecision, Op::Within(..)) => right(&weakened(tx.clone(), everything()), op).await,
        (Planted::OnePartDecides, Op::Within(which, part, by, least, most)) => {
            let value = number(tx.get(&which.key(*part), Serializable).await?);
            change(tx, *which, *part, (value, *by), (*least, *most))
        }
        (Planted::KnownParts, Op::Set(which, value)) if which.split => {
            (0..u64::from(which.parts)).for_each(|part| tx.clear(&which.key(Part(part))));
            tx.set(&which.key(Part(0)), &value.to_le_bytes());
            Ok(Answer::Written)
        }
        (Planted::BigEndian, Op::Add(which, part, by)) => {
            tx.atomic_op(&which.key(*part), &by.to_be_bytes(), MutationType::Add);
            Ok(Answer::Written)
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
        (Planted::BoundsExclude, Op::Within(which, _, by, least, most)) => {
            let value = get(tx, *which, Serializable).await?;
            match value.checked_add(*by) == Some(*most) {
                true => Err(Error::OutOfBounds { value, by: *by, least: *least, most: *most }),
                false => right(tx, op).await,
            }
        }
        (Planted::WrappingDecision, Op::Within(which, part, by, least, most)) => {
            let value = get(tx, *which, Serializable).await?;
            let after = value.wrapping_add(*by);
            if after < *least || after > *most {
                return Err(Error::OutOfBounds { value, by: *by, least: *least, most: *most });
            }
            tx.atomic_op(&which.key(*part), &by.to_le_bytes(), MutationType::Add);
            Ok(Answer::Value(after))
        }
        (Planted::SaturatingSum, Op::Get(..)) => match right(tx, op).await {
            Err(Error::Overflow(sum)) => Ok(Answer::Value(if sum > 0 { i64::MAX } else { i64::MIN })),
            other => other,
        },
        (Planted::AddedFirst, Op::Within(which, part, by, ..)) => {
            let changed = right(tx, op).await;
            if let Err(Error::OutOfBounds { .. }) = changed {
                tx.atomic_op(&which.key(*part), &by.to_le_bytes(), MutationType::Add);
            }
            changed
        }
        (Planted::LastPart, Op::Get(which, false)) if which.split => {
            let mut rows = shared::rows(tx, &which.space()).await?;
            if rows.len() > 2 {
                rows.pop();
            }
            sum(rows.into_iter().map(|row| number(Some(row.value))))
        }
        (Planted::WideClear, Op::Set(which, _)) if which.split => {
            let (begin, mut end) = which.space().range();
            end.push(0xff);
            tx.clear_range(&begin, &end);
            right(tx, op).await
        }
        (Planted::OnePartLeft, Op::Set(which, value)) if which.split => {
            let range = which.space().range();
            let rows = tx.get_range_all(RangeOption::from(range.clone()), Snapshot).await?;
            if let Some(last) = rows.last() {
                tx.clear_range(&range.0, &last.key);
            }
            tx.set(&which.key(Part(0)), &value.to_le_bytes());
            Ok(Answer::Written)
        }
        _ => right(tx, op).await,
    }
}

fn number(value: Option<Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_le_bytes)
}

/// The sum of parts, if it fits.
fn sum(parts: impl Iterator<Item = impl Into<i128>>) -> Result<Answer, Error> {
    let sum = parts.map(Into::into).sum();
    i64::try_from(sum).map(Answer::Value).map_err(|_| Error::Overflow(sum))
}

/// Writes a change that was computed from what was read.
fn change<T: Transaction>(
    tx: &T,
    which: Which,
    part: Part,
    (value, by): (i64, i64),
    (least, most): (i64, i64),
) -> Result<Answer, Error> {
    let after = value.checked_add(by).filter(|after| (least..=most).contains(after));
    let after = after.ok_or(Error::OutOfBounds { value, by, least, most })?;
    tx.atomic_op(&which.key(part), &by.to_le_bytes(), MutationType::Add);
    Ok(Answer::Value(after))
}

/// A change within bounds that reads in one transaction and adds in the next.
pub async fn decided_before<D: Database>(
    session: &mut Session<D>,
    op: &Op,
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let Op::Within(which, part, by, least, most) = *op else { return None };
    let look = |tx| async move { get(&tx, which, Serializable).await };
    let act = |tx, value| async move {
        change(&tx, which, part, (value, by), (least, most)).map(|answer| vec![answer])
    };
    Some(seen_before(session, look, act).await)
}

/// The sum of a counter's parts, each of which is read in a separate transaction.
pub async fn torn_sum<D: Database>(
    session: &mut Session<D>,
    which: Which,
) -> Outcome<specimen::Answer<Answer>> {
    let db = session.database().clone();
    let keys = db.run(|tx, _| async move {
        let range = RangeOption::from(which.space().range());
        let rows = tx.get_range_all(range, Serializable).await?;
        Ok::<_, Error>(rows.into_iter().map(|row| row.key).collect::<Vec<_>>())
    });
    let keys = match keys.await {
        Ok(keys) => keys,
        Err(e) => return ran(Err(e)),
    };
    let mut parts = Vec::new();
    for key in &keys {
        let read = db.run(|tx, _| async move { Ok::<_, Error>(tx.get(key, Serializable).await?) });
        match read.await {
            Ok(value) => parts.push(number(value)),
            Err(e) => return ran(Err(e)),
        }
    }
    sum(parts.into_iter())
        .map_or_else(|e| specimen::refused(&e), |sum| Outcome::Answered(specimen::Answer::Done(vec![sum])))
}
