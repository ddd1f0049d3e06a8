//! Planted bugs: a vector implemented or used wrongly.

use super::{Answer, Call, Op, Vector, space};
use crate::shared;
use foundationdb_tuple::Subspace;
use shaketable::{
    specimen::{
        self, Content, DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, Recorded, UNRECORDED,
        UNWRITTEN, told,
    },
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::vector::Error;
use shaketable_tx::{
    Database,
    Isolation::{self, Serializable, Snapshot},
    Transaction, TransactionOption,
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
    SnapshotPush = "snapshot-push", "a push reads the size at snapshot isolation", "two pushes at one index";
    SizeElsewhere = "size-elsewhere", "a push reads the size in a separate transaction", "a published vector's push, which does not pass its transaction on";
    ScanChildren = "scan-children", "a scan reads what is below the key of its first element", "the recipe's vector_scan";
    NegativeIndex = "negative-index", "a negative index is accepted", "the recipe's vector_set";
    SwapBehind = "swap-behind", "a swap takes the size for an index", "a published vector's bound check, off by one";
    HoleIsAbsent = "hole-is-absent", "an element beyond the end is read as a hole", "the recipe's vector_get, on a sparse vector";
    PopHole = "pop-hole", "a pop next to a hole removes the hole too", "a sparse vector's size, read from its last key";
    TruncateHole = "truncate-hole", "a truncation to a hole makes the vector shorter than requested", "the recipe's vector_truncate, on a sparse vector";
    ResizeHole = "resize-hole", "a vector that grows gets no last element", "a sparse vector's size, taken for the requested one";
    TruncateGrows = "truncate-grows", "a truncation beyond the end makes the vector longer", "a resize taken for a truncation";
    RowStays = "row-stays", "a truncation of the matrix keeps the first of the rows to be removed", "a bound that is exclusive instead of inclusive";
    StoredBehind = "stored-behind", "a read of what is stored includes the element at its end", "a bound that is inclusive instead of exclusive";
    SizeCounts = "size-counts", "the size is the number of stored elements", "a vector taken for a dense one";
    ScanConflicts = "scan-conflicts", "a scan that is requested at snapshot is read serializably", "an isolation that is not passed on";
    SwappedFirst = "swapped-first", "a swap writes the first element before it reads the second", "a refusal that comes too late";
    BackAtStart = "back-at-start", "the last element is the one that was the last when the transaction began", "a read that does not see the transaction's writes";
    ScanLeavesLast = "scan-leaves-last", "a scan of more than six elements leaves out the last one", "a loop that ends one too early";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Vector,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let row = space().subspace(&(op.row,));
    let right = workload.row(op.row)?;
    match (planted, &op.call) {
        (Planted::SnapshotPush, Call::Push(..)) => {
            workload.right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::ScanConflicts, Call::Scan(..)) => workload.right(tx, op, Serializable).await,
        (Planted::ScanChildren, Call::Scan(start @ 0.., None)) => {
            let rows = shared::rows(tx, &row.subspace(&(*start,))).await?;
            Ok(Answer::Scan(rows.iter().map(|row| Content::from(&row.value)).collect()))
        }
        (Planted::NegativeIndex, Call::Set(index @ ..0, byte, length)) => {
            tx.set(&row.pack(&(*index,)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SwapBehind, Call::Swap(one, other)) => {
            let size = right.size(tx, Serializable).await?;
            if one.max(other) != &size || one == other || size == i64::MAX || *one.min(other) < 0 {
                return workload.right(tx, op, isolation).await;
            }
            let value = right.get(tx, *one.min(other), Serializable).await?;
            right.set(tx, size, &value).await.map(|()| Answer::Written)
        }
        (Planted::SwappedFirst, Call::Swap(one @ 0.., _)) => {
            let value = right.get(tx, *one, Serializable).await?;
            let swapped = workload.right(tx, op, isolation).await;
            if swapped.is_err() {
                tx.set(&row.pack(&(*one,)), &value);
            }
            swapped
        }
        (Planted::BackAtStart, Call::Back) => {
            tx.set_option(TransactionOption::SnapshotRywDisable)?;
            let back = workload.right(tx, op, Snapshot).await;
            tx.set_option(TransactionOption::SnapshotRywEnable)?;
            back
        }
        (Planted::ScanLeavesLast, Call::Scan(..)) => Ok(match workload.right(tx, op, isolation).await? {
            Answer::Scan(mut elements) if elements.len() > 6 => {
                elements.pop();
                Answer::Scan(elements)
            }
            other => other,
        }),
        (Planted::HoleIsAbsent, Call::Get(index @ 0..)) if *index < i64::MAX => {
            let value = tx.get(&row.pack(&(*index,)), Serializable).await?;
            Ok(Answer::Value(Some(value.map_or(workload.default(), |value| Content::from(&value)))))
        }
        (Planted::PopHole, Call::Pop) => {
            let popped = right.back(tx, Serializable).await?;
            let size = right.size(tx, Serializable).await?;
            tx.clear(&row.pack(&(size - 1,)));
            Ok(Answer::Value(popped.as_ref().map(Content::from)))
        }
        (Planted::TruncateHole, Call::Truncate(_)) | (Planted::ResizeHole, Call::Resize(_)) => {
            workload.right(&flawed(tx, Flaw::Unwritten, everything()), op, isolation).await
        }
        (Planted::TruncateGrows, Call::Truncate(size)) => {
            right.resize(tx, *size).await.map(|()| Answer::Written)
        }
        (Planted::RowStays, Call::TruncateRows(rows @ 0..)) if *rows < i64::MAX => {
            workload.matrix().truncate(tx, rows + 1).await.map(|()| Answer::Written)
        }
        (Planted::StoredBehind, Call::Stored(start @ 0.., Some(end @ 0..)))
            if start < end && *end < i64::MAX =>
        {
            let behind = Op { call: Call::Stored(*start, Some(end + 1)), ..op.clone() };
            workload.right(tx, &behind, isolation).await
        }
        (Planted::SizeCounts, Call::Size) => Ok(Answer::Number(counted(tx, &row).await?)),
        (Planted::SizeCounts, Call::Push(byte, length)) => {
            let size = counted(tx, &row).await?;
            right.set(tx, size, &vec![*byte; *length]).await?;
            Ok(Answer::Number(size))
        }
        _ => workload.right(tx, op, isolation).await,
    }
}

/// Reads the size in a separate transaction, in every attempt.
pub async fn push_elsewhere<D: Database>(
    vector: &Vector,
    session: &mut Session<D>,
    row: i64,
    value: &[u8],
) -> Outcome<specimen::Answer<Answer>> {
    let db = &session.database().clone();
    let pushed = session.apply(|tx| async move {
        let row = &vector.matrix().row(row)?;
        let size = db.run(|tx, _| async move { row.size(&tx, Serializable).await }).await;
        let size = size.map_err(|e| e.error)?;
        row.set(&tx, size, value).await?;
        Ok::<_, Error>(Recorded(vec![Answer::Number(size)]))
    });
    told(pushed.await)
}

async fn counted<T: Transaction>(tx: &T, row: &Subspace) -> Result<i64, Error> {
    Ok(shared::rows(tx, row).await?.len() as i64)
}
