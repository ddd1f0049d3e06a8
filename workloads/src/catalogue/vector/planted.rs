//! A vector done wrong, one bug at a time.

use crate::catalogue::vector::{Answer, Call, Op, Planted, Vector, space};
use foundationdb_tuple::Subspace;
use shaketable::{
    specimen::{self, Content, Recorded, told},
    workload::Outcome,
};
use shaketable_layers::{
    once::Session,
    tx::{
        Database,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, Transaction,
    },
    vector::Error,
};

/// The isolation at which a look is done that was asked for at this one.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, &op.call) {
        (Some(Planted::ScanConflicts), Call::Scan(..)) => Isolation::Serializable,
        _ => asked,
    }
}

/// Does a call that the bug touches; `None` when it leaves this one as it is.
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
            let contents = |row: &shaketable_layers::tx::KeyValue| Content::from(&row.value);
            rows.map(|rows| Answer::Scan(rows.iter().map(contents).collect())).map_err(Error::Fdb)
        }
        (Planted::NegativeIndex, Call::Set(index @ ..0, byte, length)) => {
            tx.set(&row.pack(&(*index,)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SwapBehind, Call::Swap(one, other)) => {
            return swap_behind(vector, tx, op.row, *one, *other).await;
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

/// The size is read in a transaction of its own, at every attempt.
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
    Ok(tx.get_range_all(RangeOption::from(row.range()), Serializable).await?.len() as i64)
}

/// Where one of two elements is just behind the end, the vector grows.
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
