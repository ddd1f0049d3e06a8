//! Planted bugs: a vector implemented or used wrongly.

use super::{Answer, Call, Op, Vector, space};
use crate::shared;
use foundationdb_tuple::Subspace;
use shaketable::{
    specimen::{
        self, Content, DEFERRED, INTERLEAVED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, Recorded, UNRECORDED,
        UNWRITTEN, told,
    },
    workload::Outcome,
};
use shaketable_layers::vector::Error;
use shaketable_tx::{
    Database,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, TransactionOption,
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

/// The isolation at which a look is performed that was requested at `asked`.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, &op.call) {
        (Some(Planted::ScanConflicts), Call::Scan(..)) => Isolation::Serializable,
        _ => asked,
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    vector: &Vector,
    tx: &T,
    op: &Op,
) -> Option<Result<Answer, Error>> {
    let row = space().subspace(&(op.row,));
    let right = vector.matrix().row(op.row).ok()?;
    Some(match (planted, &op.call) {
        (Planted::SnapshotPush, Call::Push(byte, length)) => match right.size(tx, Snapshot).await {
            Ok(size) => right.set(tx, size, &vec![*byte; *length]).await.map(|()| Answer::Number(size)),
            Err(e) => Err(e),
        },
        (Planted::ScanChildren, Call::Scan(start @ 0.., None)) => {
            let below = row.subspace(&(*start,)).range();
            let rows = tx.get_range_all(RangeOption::from(below), Serializable).await;
            let contents = |row: &shaketable_tx::KeyValue| Content::from(&row.value);
            rows.map(|rows| Answer::Scan(rows.iter().map(contents).collect())).map_err(Error::Fdb)
        }
        (Planted::NegativeIndex, Call::Set(index @ ..0, byte, length)) => {
            tx.set(&row.pack(&(*index,)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SwapBehind, Call::Swap(one, other)) => {
            return swap_behind(vector, tx, op.row, *one, *other).await;
        }
        (Planted::SwappedFirst, Call::Swap(one @ 0.., other)) => {
            match right.get(tx, *one, Serializable).await {
                Ok(value) => match right.swap(tx, *one, *other).await {
                    Err(refusal) => {
                        tx.set(&row.pack(&(*one,)), &value);
                        Err(refusal)
                    }
                    Ok(()) => Ok(Answer::Written),
                },
                Err(e) => Err(e),
            }
        }
        (Planted::BackAtStart, Call::Back) => {
            let option = TransactionOption::SnapshotRywDisable;
            let back = match tx.set_option(option) {
                Ok(()) => right.back(tx, Snapshot).await,
                Err(e) => Err(e.into()),
            };
            if let Err(e) = tx.set_option(TransactionOption::SnapshotRywEnable) {
                return Some(Err(e.into()));
            }
            back.map(|back| Answer::Value(back.as_ref().map(Content::from)))
        }
        (Planted::ScanLeavesLast, Call::Scan(start, end)) => {
            let elements = right.scan(tx, *start, *end, Serializable).await;
            elements.map(|mut elements| {
                if elements.len() > 6 {
                    elements.pop();
                }
                Answer::Scan(elements.iter().map(Content::from).collect())
            })
        }
        (Planted::HoleIsAbsent, Call::Get(index @ 0..)) if *index < i64::MAX => {
            let value = tx.get(&row.pack(&(*index,)), Serializable).await;
            let or_hole = |value: Option<bytes::Bytes>| value.map_or(vector.default(), |v| Content::from(&v));
            value.map(|value| Answer::Value(Some(or_hole(value)))).map_err(Error::Fdb)
        }
        (Planted::PopHole, Call::Pop) => {
            let popped = right.back(tx, Serializable).await;
            match (popped, right.size(tx, Serializable).await) {
                (Ok(popped), Ok(size)) => {
                    tx.clear(&row.pack(&(size - 1,)));
                    Ok(Answer::Value(popped.as_ref().map(Content::from)))
                }
                (Err(e), _) | (_, Err(e)) => Err(e),
            }
        }
        (Planted::TruncateHole, Call::Truncate(size @ 0..)) => {
            tx.clear_range(&row.pack(&(*size,)), &row.range().1);
            Ok(Answer::Written)
        }
        (Planted::ResizeHole, Call::Resize(size @ 0..)) => {
            tx.clear_range(&row.pack(&(*size,)), &row.range().1);
            Ok(Answer::Written)
        }
        (Planted::TruncateGrows, Call::Truncate(size)) => {
            right.resize(tx, *size).await.map(|()| Answer::Written)
        }
        (Planted::RowStays, Call::TruncateRows(rows @ 0..)) if *rows < i64::MAX => {
            vector.matrix().truncate(tx, rows + 1).await.map(|()| Answer::Written)
        }
        (Planted::StoredBehind, Call::Stored(start @ 0.., Some(end @ 0..)))
            if start < end && *end < i64::MAX =>
        {
            let stored = right.stored(tx, *start, Some(end + 1), Serializable).await;
            let content = |(index, value): (i64, bytes::Bytes)| (index, Content::from(&value));
            stored.map(|stored| {
                let contents = stored.into_iter().map(content);
                Answer::Stored(contents.filter(|(_, value)| *value != vector.default()).collect())
            })
        }
        (Planted::SizeCounts, Call::Size) => counted(tx, &row).await.map(Answer::Number),
        (Planted::SizeCounts, Call::Push(byte, length)) => match counted(tx, &row).await {
            Ok(size) => right.set(tx, size, &vec![*byte; *length]).await.map(|()| Answer::Number(size)),
            Err(e) => Err(e),
        },
        _ => return None,
    })
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

/// Swaps two elements; if one of them is just beyond the end, the vector grows.
async fn swap_behind<T: Transaction>(
    vector: &Vector,
    tx: &T,
    row: i64,
    one: i64,
    other: i64,
) -> Option<Result<Answer, Error>> {
    let row = vector.matrix().row(row).ok()?;
    let size = row.size(tx, Serializable).await.ok()?;
    if one.max(other) != size || one == other || size == i64::MAX || one.min(other) < 0 {
        return None;
    }
    Some(match row.get(tx, one.min(other), Serializable).await {
        Ok(value) => row.set(tx, size, &value).await.map(|()| Answer::Written),
        Err(e) => Err(e),
    })
}
