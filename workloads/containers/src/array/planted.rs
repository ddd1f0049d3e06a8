//! Planted bugs: a sparse array implemented or used wrongly.

use super::{Answer, Array, Cells, Op, array, contents, space};
use crate::shared;
use foundationdb_tuple::Subspace;
use shaketable::{
    specimen::{Content, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, RISKY_READ, UNRECORDED, UNWRITTEN},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::array::Error;
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable, Snapshot},
    Transaction, VALUE_SIZE_LIMIT,
};
use std::collections::BTreeMap;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a set is retried after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "a set is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a set is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    RiskyRead = RISKY_READ, "reads accept a causally risky read version", "an option set for its speed", "risky-read";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextIndex = "text-index", "indexes are stored as decimal text, which sorts 10 before 9", "the naive encoding";
    EmptyIsAbsent = "empty-is-absent", "an empty value is read as an unassigned cell", "absent and empty treated alike";
    PageAgain = "page-again", "a page begins with the last cell of the page before", "a bound that is inclusive instead of exclusive";
    PageOutside = "page-outside", "a page that begins after a cell of an earlier row takes cells of that row", "a bound that replaces another one";
    CutShort = "cut-short", "a value beyond the limit is truncated instead of refused", "a limit that is not an error";
    NegativeZero = "negative-zero", "a negative index is taken for index 0", "an index that is clamped instead of refused";
    CellsAtSnapshot = "cells-at-snapshot", "the cells below a prefix are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    ClearedFirst = "cleared-first", "a cell is cleared before its new value is found to be too large", "a refusal that comes too late";
    LastCell = "last-cell", "of more than six cells the last one is not read", "a loop that ends one too early";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Array,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::FirstBatch, Op::Cells(_)) => {
            workload.right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::CellsAtSnapshot, Op::Cells(_)) => workload.right(tx, op, Snapshot).await,
        (Planted::EmptyIsAbsent, Op::Get(_)) => Ok(match workload.right(tx, op, isolation).await? {
            Answer::Value(value) => Answer::Value(value.filter(|value| value.length() > 0)),
            other => other,
        }),
        (Planted::PageAgain | Planted::PageOutside, Op::Page(prefix, Some(after), limit)) => {
            // For the refusal.
            workload.right(tx, op, isolation).await?;
            let (from, begins_with_last) = match planted {
                Planted::PageAgain => (&prefix[..], true),
                _ => (&[][..], false),
            };
            let mut cells = contents(array(workload.dimensions).cells(tx, from, isolation).await?);
            cells.retain(|(index, _)| index[..prefix.len()] <= prefix[..]);
            cells.retain(|(index, _)| index > after || begins_with_last && index == after);
            cells.truncate(*limit);
            Ok(Answer::Cells(cells))
        }
        (Planted::CutShort, Op::Set(index, byte, length)) => {
            let cut = Op::Set(index.clone(), *byte, (*length).min(VALUE_SIZE_LIMIT));
            workload.right(tx, &cut, isolation).await
        }
        (Planted::NegativeZero, Op::Get(index)) => {
            let clamped = Op::Get(index.iter().map(|i| *i.max(&0)).collect());
            workload.right(tx, &clamped, isolation).await
        }
        (Planted::ClearedFirst, Op::Set(index, ..)) => {
            let set = workload.right(tx, op, isolation).await;
            if let Err(Error::TooLarge(_)) = set {
                tx.clear(&space().pack(index));
            }
            set
        }
        (Planted::LastCell, Op::Cells(_)) => Ok(match workload.right(tx, op, isolation).await? {
            Answer::Cells(mut cells) if cells.len() > 6 => {
                cells.pop();
                Answer::Cells(cells)
            }
            other => other,
        }),
        (Planted::TextIndex, op) if is_accepted(workload.dimensions, op) => match op {
            Op::Set(index, byte, length) => {
                tx.set(text(index).bytes(), &vec![*byte; *length]);
                Ok(Answer::Written)
            }
            Op::Clear(index) => {
                tx.clear(text(index).bytes());
                Ok(Answer::Written)
            }
            Op::Get(index) => {
                let value = tx.get(text(index).bytes(), Serializable).await?;
                Ok(Answer::Value(value.as_ref().map(Content::from)))
            }
            Op::Cells(prefix) => Ok(Answer::Cells(cells_as_text(tx, text(prefix)).await?)),
            Op::Page(..) => workload.right(tx, op, isolation).await,
        },
        _ => workload.right(tx, op, isolation).await,
    }
}

fn text(index: &[i64]) -> Subspace {
    space().subspace(&index.iter().map(i64::to_string).collect::<Vec<_>>())
}

/// Whether the array accepts a call.
fn is_accepted(dimensions: usize, op: &Op) -> bool {
    let is_index = |index: &[i64]| index.len() == dimensions && index.iter().all(|i| *i >= 0);
    match op {
        Op::Set(index, _, length) => is_index(index) && *length <= VALUE_SIZE_LIMIT,
        Op::Clear(index) | Op::Get(index) => is_index(index),
        Op::Cells(prefix) | Op::Page(prefix, ..) => {
            prefix.len() < dimensions && prefix.iter().all(|i| *i >= 0)
        }
    }
}

async fn cells_as_text<T: Transaction>(tx: &T, under: Subspace) -> tx::Result<Cells> {
    let rows = shared::rows(tx, &under).await?;
    let cell = |row: tx::KeyValue| {
        let index: Vec<String> = space().unpack(&row.key).unwrap_or_default();
        (index.iter().filter_map(|part| part.parse().ok()).collect(), Content::from(&row.value))
    };
    Ok(rows.into_iter().map(cell).collect())
}

/// All cells, as the text encoding stores them.
pub async fn stored_as_text<T: Transaction>(
    tx: &T,
) -> tx::Result<Result<BTreeMap<Vec<i64>, Content>, String>> {
    Ok(Ok(cells_as_text(tx, text(&[])).await?.into_iter().collect()))
}
