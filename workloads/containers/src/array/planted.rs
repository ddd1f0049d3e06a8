//! Planted bugs: a sparse array implemented or used wrongly.

use super::{Answer, Array, Op, space};
use shaketable::{
    specimen::{DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, RISKY_READ, UNRECORDED, UNWRITTEN},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::array::Error;
use shaketable_tx::{
    Isolation::{self, Snapshot},
    Transaction, Tx, VALUE_SIZE_LIMIT,
};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a set is retried after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "a set is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a set is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    RiskyRead = RISKY_READ, "reads accept a causally risky read version", "an option set for its speed", "risky-read";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextIndex = "text-index", "the cells of a row are in the order of their indexes as decimal text, which sorts 10 before 9", "the naive encoding";
    EmptyIsAbsent = "empty-is-absent", "an empty value is read as an unassigned cell", "absent and empty treated alike";
    CutShort = "cut-short", "a value beyond the limit is truncated instead of refused", "a limit that is not an error";
    CellsAtSnapshot = "cells-at-snapshot", "the cells below a prefix are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ClearedFirst = "cleared-first", "a cell is cleared before its new value is found to be too large", "a refusal that comes too late";
    LastCell = "last-cell", "of more than six cells the last one is not read", "a loop that ends one too early";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Array,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let right = workload.right(tx, op, isolation);
    match (planted, op) {
        (Planted::FirstBatch, Op::Cells(_)) => {
            workload.right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::CellsAtSnapshot, Op::Cells(_)) => workload.right(tx, op, Snapshot).await,
        (Planted::EmptyIsAbsent, Op::Get(_)) => Ok(match right.await? {
            Answer::Value(value) => Answer::Value(value.filter(|value| value.length() > 0)),
            other => other,
        }),
        (Planted::CutShort, Op::Set(index, byte, length)) => {
            let cut = Op::Set(index.clone(), *byte, (*length).min(VALUE_SIZE_LIMIT));
            workload.right(tx, &cut, isolation).await
        }
        (Planted::ClearedFirst, Op::Set(index, ..)) => {
            let set = right.await;
            if let Err(Error::TooLarge(_)) = set {
                tx.clear(&space().pack(index));
            }
            set
        }
        (Planted::TextIndex | Planted::LastCell, Op::Cells(_)) => {
            let mut answer = right.await?;
            match &mut answer {
                Answer::Cells(cells) if planted == Planted::TextIndex => {
                    cells.sort_by_key(|(index, _)| index.iter().map(i64::to_string).collect::<Vec<_>>());
                }
                Answer::Cells(cells) if cells.len() > 6 => drop(cells.pop()),
                _ => {}
            }
            Ok(answer)
        }
        _ => right.await,
    }
}
