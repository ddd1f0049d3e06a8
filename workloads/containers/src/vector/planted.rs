//! Planted bugs: a vector implemented or used wrongly.

use super::{Answer, Call, Op, Vector, space};
use crate::shared::{self, seen_before};
use shaketable::{
    specimen::{
        self, Content, DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, UNRECORDED, UNWRITTEN,
    },
    workload::Outcome,
};
use shaketable_layers::vector::Error;
use shaketable_tx::{
    Db,
    Isolation::{self, Serializable},
    Transaction, Tx,
    once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two pushes that run side by side in one transaction get one index", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a push is retried after an unknown result without an operation record", "the recipe's vector_push";
    Unwritten = UNWRITTEN, "a push is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a push is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    SizeElsewhere = "size-elsewhere", "a push reads the size in a separate transaction", "a published vector's push, which does not pass its transaction on";
    ScanChildren = "scan-children", "a scan reads what is below the key of its first element", "the recipe's vector_scan";
    SwapBehind = "swap-behind", "a swap takes the size for an index", "a published vector's bound check, off by one";
    HoleIsAbsent = "hole-is-absent", "an element beyond the end is read as a hole", "the recipe's vector_get, on a sparse vector";
    SizeCounts = "size-counts", "the size is the number of stored elements", "a vector taken for a dense one";
    ScanConflicts = "scan-conflicts", "a scan that is requested at snapshot is read serializably", "an isolation that is not passed on";
    SwappedFirst = "swapped-first", "a swap writes the first element before it reads the second", "a refusal that comes too late";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Vector,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let row = space().subspace(&(op.row,));
    let vector = workload.row(op.row)?;
    let right = workload.right(tx, op, isolation);
    match (planted, &op.call) {
        (Planted::ScanConflicts, Call::Scan(..)) => workload.right(tx, op, Serializable).await,
        (Planted::ScanChildren, Call::Scan(start @ 0.., None)) => {
            let rows = shared::rows(tx, &row.subspace(&(*start,))).await?;
            Ok(Answer::Scan(rows.iter().map(|row| Content::from(&row.value)).collect()))
        }
        (Planted::SwapBehind, Call::Swap(one, other)) => {
            let size = vector.size(tx, Serializable).await?;
            if *other != size || !(0..size).contains(one) {
                return right.await;
            }
            let value = vector.get(tx, *one, Serializable).await?;
            vector.set(tx, size, &value).await.map(|()| Answer::Written)
        }
        (Planted::SwappedFirst, Call::Swap(one @ 0.., _)) => {
            let value = vector.get(tx, *one, Serializable).await?;
            let swapped = right.await;
            if swapped.is_err() {
                tx.set(&row.pack(&(*one,)), &value);
            }
            swapped
        }
        (Planted::HoleIsAbsent, Call::Get(index @ 0..)) if *index < i64::MAX => {
            let value = tx.get(&row.pack(&(*index,)), Serializable).await?;
            Ok(Answer::Value(Some(value.map_or(workload.default(), |value| Content::from(&value)))))
        }
        (Planted::SizeCounts, Call::Size) => Ok(Answer::Number(shared::rows(tx, &row).await?.len() as i64)),
        _ => right.await,
    }
}

/// A push that reads the size in one transaction and writes in the next.
pub async fn push_elsewhere(
    vector: &Vector,
    session: &mut Session<Db>,
    row: i64,
    value: &[u8],
) -> Outcome<specimen::Answer<Answer>> {
    let look = |tx| async move { vector.matrix().row(row)?.size(&tx, Serializable).await };
    let act = |tx, size| async move {
        vector.matrix().row(row)?.set(&tx, size, value).await?;
        Ok(vec![Answer::Number(size)])
    };
    seen_before(session, look, act).await
}
