//! Planted bugs: a sparse array implemented or used wrongly.

use super::{Answer, Cells, Op, array, contents, space};
use crate::shared;
use foundationdb_tuple::Subspace;
use shaketable::specimen::{
    Content, DEFERRED, KEPT_VERSION, NOT_AWAITED, REMEMBERED, RISKY_READ, UNRECORDED, UNWRITTEN,
};
use shaketable_layers::array::Error;
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable},
    RangeOption, Transaction, VALUE_SIZE_LIMIT, key_after,
};
use std::collections::BTreeMap;

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a set is retried after an unknown result without an operation record", "a blind write done twice";
    Unwritten = UNWRITTEN, "a set is acknowledged and never committed", "a write-behind cache";
    Deferred = DEFERRED, "a set is acknowledged at once and committed with the client's next one", "batching without a wait";
    NotAwaited = NOT_AWAITED, "the commit is started and not awaited", "fire and forget";
    Remembered = REMEMBERED, "a client that repeats a read gets the answer that it remembers", "a cache that is never invalidated";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    RiskyRead = RISKY_READ, "reads accept a causally risky read version", "an option set for its speed";
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

/// The isolation at which a look is performed that was requested at `asked`.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, op) {
        (Some(Planted::CellsAtSnapshot), Op::Cells(_)) => Isolation::Snapshot,
        _ => asked,
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    dimensions: usize,
    tx: &T,
    op: &Op,
) -> Option<Result<Answer, Error>> {
    match (planted, op) {
        (Planted::FirstBatch, Op::Cells(prefix)) => {
            let range = RangeOption::from(space().subspace(prefix).range());
            Some(tx.get_range(&range, 1, Serializable).await.map_err(Error::Fdb).map(|batch| {
                let cell = |row: &tx::KeyValue| {
                    let index: Vec<i64> = space().unpack(&row.key).unwrap_or_default();
                    (index, Content::from(&row.value))
                };
                Answer::Cells(batch.rows.iter().map(cell).collect())
            }))
        }
        (Planted::EmptyIsAbsent, Op::Get(index)) => {
            let value = array(dimensions).get(tx, index, Serializable).await;
            Some(value.map(|value| {
                Answer::Value(value.as_ref().filter(|value| !value.is_empty()).map(Content::from))
            }))
        }
        (Planted::PageAgain | Planted::PageOutside, Op::Page(prefix, Some(after), limit))
            if prefix.len() < dimensions
                && after.len() == dimensions
                && *limit > 0
                && prefix.iter().chain(after).all(|i| *i >= 0) =>
        {
            Some(page(planted, tx, prefix, after, *limit).await.map(Answer::Cells).map_err(Error::Fdb))
        }
        (Planted::CutShort, Op::Set(index, byte, length)) => {
            let value = vec![*byte; (*length).min(VALUE_SIZE_LIMIT)];
            Some(array(dimensions).set(tx, index, &value).await.map(|()| Answer::Written))
        }
        (Planted::NegativeZero, Op::Get(index)) => {
            let clamped: Vec<i64> = index.iter().map(|i| *i.max(&0)).collect();
            let value = array(dimensions).get(tx, &clamped, Serializable).await;
            Some(value.map(|value| Answer::Value(value.as_ref().map(Content::from))))
        }
        (Planted::ClearedFirst, Op::Set(index, byte, length)) => {
            let set = array(dimensions).set(tx, index, &vec![*byte; *length]).await;
            if let Err(Error::TooLarge(_)) = set {
                tx.clear(&space().pack(index));
            }
            Some(set.map(|()| Answer::Written))
        }
        (Planted::LastCell, Op::Cells(prefix)) => {
            let cells = array(dimensions).cells(tx, prefix, Serializable).await;
            Some(cells.map(|mut cells| {
                if cells.len() > 6 {
                    cells.pop();
                }
                Answer::Cells(contents(cells))
            }))
        }
        (Planted::TextIndex, op) => text_index(dimensions, tx, op).await,
        _ => None,
    }
}

fn text(index: &[i64]) -> Subspace {
    space().subspace(&index.iter().map(i64::to_string).collect::<Vec<_>>())
}

async fn page<T: Transaction>(
    planted: Planted,
    tx: &T,
    prefix: &[i64],
    after: &[i64],
    limit: usize,
) -> tx::Result<Cells> {
    let (mut begin, end) = space().subspace(&prefix).range();
    let last = space().pack(&after);
    begin = match planted {
        Planted::PageAgain => begin.max(last),
        _ => key_after(&last).into(),
    };
    if begin >= end {
        return Ok(Vec::new());
    }
    let rows = tx.get_range_all(RangeOption::new(begin, end).limit(limit), Serializable).await?;
    let cell = |row: tx::KeyValue| (space().unpack(&row.key).unwrap_or_default(), row.value);
    Ok(contents(rows.into_iter().map(cell).collect()))
}

/// Only calls that the array accepts.
async fn text_index<T: Transaction>(dimensions: usize, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    match op {
        Op::Set(index, ..) | Op::Clear(index) | Op::Get(index) if !is_index(dimensions, index) => None,
        Op::Set(_, _, length) if *length > VALUE_SIZE_LIMIT => None,
        Op::Cells(prefix) if prefix.len() >= dimensions || prefix.iter().any(|i| *i < 0) => None,
        Op::Set(index, byte, length) => {
            tx.set(text(index).bytes(), &vec![*byte; *length]);
            Some(Ok(Answer::Written))
        }
        Op::Clear(index) => {
            tx.clear(text(index).bytes());
            Some(Ok(Answer::Written))
        }
        Op::Get(index) => Some(
            tx.get(text(index).bytes(), Serializable)
                .await
                .map(|v| Answer::Value(v.as_ref().map(Content::from)))
                .map_err(Error::Fdb),
        ),
        Op::Cells(prefix) => {
            let cells = cells_as_text(tx, text(prefix)).await;
            Some(cells.map(Answer::Cells).map_err(Error::Fdb))
        }
        Op::Page(..) => None,
    }
}

fn is_index(dimensions: usize, index: &[i64]) -> bool {
    index.len() == dimensions && index.iter().all(|i| *i >= 0)
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
