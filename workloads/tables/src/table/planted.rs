//! Planted bugs: tables implemented or used wrongly.

use super::{
    Answer, Op, Shape,
    client::perform as right,
    operations::{bytes, labels},
};
use crate::models::labels::{Which, digits, label};
use shaketable::{
    specimen::{self, Content, INTERLEAVED, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::{label::Label, table::Error};
use shaketable_tx::{
    AnyTransaction, Database,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, VALUE_SIZE_LIMIT, limits,
    once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "a line is replaced while another call of the transaction sets one of its cells", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a cell is set again after an unknown result without an operation record", "a blind write done twice";
    SetRowAsPrinted = "set-row-as-printed", "replacing a row clears it in the order of rows only", "the recipe's table_set_row";
    GetCellAsPrinted = "get-cell-as-printed", "an unassigned cell is decoded as if it had a value", "the recipe's table_get_cell";
    DeleteCellByRow = "delete-cell-by-row", "a cell is deleted in the first order only", "an order forgotten on one path";
    DeleteRowByRow = "delete-row-by-row", "a row is deleted in the first order only", "an order forgotten on one path";
    SnapshotReplace = "snapshot-replace", "the old cells of a row are read at snapshot", "a decision on a snapshot read";
    RowsMerge = "rows-merge", "setting a row leaves the columns that are not given", "an update taken for a replacement";
    OrderOnItsOwn = "order-on-its-own", "the second order is written in a separate transaction", "an index outside the transaction";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextLabels = "text-labels", "labels are stored as text, so that row 1 is row \"1\"", "labels without their types";
    EmptyIsAbsent = "empty-is-absent", "an empty value is read as an unassigned cell", "absent and empty treated alike";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    LastAgain = "last-again", "a page begins with the last cell of the page before", "a cursor that is the last key";
    AxisTwice = "axis-twice", "an axis that is given twice counts once", "a request that is not checked";
    LargestRefused = "largest-refused", "a value of the maximum size is refused", "a limit that is off by one";
    ClearedFirst = "cleared-first", "a line is cleared before its new cells are checked", "a refusal that comes too late";
    SliceEnd = "slice-end", "a slice leaves out the cells whose last label contains a code point beyond U+FFFF", "a range that ends at a constant";
    OtherOrderStays = "other-order-stays", "a replacement looks cells up for one other order, and leaves them in the third", "a loop that ends after one";
    LastCellStays = "last-cell-stays", "a replacement leaves the last one of more than two old cells", "a loop that ends one too early";
}

impl Planted {
    /// The shape that the bug needs, if it needs one.
    pub(super) fn shape(self) -> Option<Shape> {
        use Planted::*;
        match self {
            SetRowAsPrinted | DeleteCellByRow | DeleteRowByRow | SnapshotReplace | OrderOnItsOwn => {
                Some(Shape::Both)
            }
            FirstBatch => Some(Shape::Rows),
            AxisTwice => Some(Shape::Cube),
            _ => None,
        }
    }
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    shape: Shape,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let (by_row, row_axes) = shape.orders().swap_remove(0);
    match (planted, op) {
        (Planted::SetRowAsPrinted | Planted::DeleteRowByRow, Op::Replace(fixed, new))
            if matches!(fixed[..], [(0, _)]) && new.is_empty() == (planted == Planted::DeleteRowByRow) =>
        {
            right(shape, &unordered(tx, shape), op, isolation).await
        }
        (Planted::DeleteCellByRow, Op::Delete(_)) => right(shape, &unordered(tx, shape), op, isolation).await,
        (Planted::RowsMerge, Op::Replace(_, new)) if !new.is_empty() => {
            right(shape, &flawed(tx, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::SnapshotReplace, Op::Replace(..)) => {
            right(shape, &weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::ClearedFirst, Op::Replace(fixed, _)) => {
            let answer = right(shape, tx, op, isolation).await;
            if answer.as_ref().is_err_and(|e| matches!(e, Error::TooLarge(_))) && fixed[0].0 == row_axes[0] {
                let (begin, end) = by_row.subspace(&(label(fixed[0].1),)).range();
                tx.clear_range(&begin, &end);
            }
            answer
        }
        (Planted::OtherOrderStays, Op::Replace(fixed, _)) if fixed.len() == 1 && shape == Shape::Turned => {
            // The third order keeps the cells with one label on another axis apart.
            let third = shape.orders().swap_remove(if fixed[0].0 == 1 { 1 } else { 2 }).0;
            right(shape, &flawed(tx, Flaw::Uncleared, [third.range()]), op, isolation).await
        }
        (Planted::SliceEnd, Op::Slice(_)) => match right(shape, tx, op, isolation).await? {
            Answer::Cells(cells) => Ok(Answer::Cells(
                cells
                    .into_iter()
                    .filter(|(cell, _)| !format!("{:?}", cell.last()).contains("\\xf4\\x8f"))
                    .collect(),
            )),
            other => Ok(other),
        },
        (Planted::LastCellStays, Op::Replace(fixed, new)) if new.is_empty() && shape.dimensions() == 2 => {
            let old = match right(shape, tx, &Op::Slice(fixed.clone()), isolation).await? {
                Answer::Cells(cells) => cells.len(),
                _ => 0,
            };
            if fixed[0].0 != row_axes[0] || old <= 2 {
                return right(shape, tx, op, isolation).await;
            }
            let range = RangeOption::from(by_row.subspace(&(label(fixed[0].1),)).range());
            let last = tx.get_range_all(range.reversed().limit(1), Serializable).await?;
            let answer = right(shape, tx, op, isolation).await;
            last.iter().for_each(|row| tx.set(&row.key, &row.value));
            answer
        }
        (Planted::GetCellAsPrinted, Op::Get(cell)) if cell.len() == shape.dimensions() => {
            let key = shape.keys(&labels(cell)).swap_remove(0);
            match tx.get(&key, Serializable).await? {
                Some(value) => Ok(Answer::Value(Some(Content::from(&value)))),
                None => Err(Error::Foreign(key.into())),
            }
        }
        (Planted::FirstBatch, Op::Slice(_)) => {
            right(shape, &flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::TextLabels, Op::Set(cell, value)) if cell.len() == shape.dimensions() => {
            let cell: Vec<Label> = labels(cell).iter().map(digits).collect();
            let (keys, value) = (shape.keys(&cell), bytes(*value));
            keys.iter().try_for_each(|key| limits::row(key, &value))?;
            keys.iter().for_each(|key| tx.set(key, &value));
            Ok(Answer::Written)
        }
        (Planted::TextLabels, Op::Get(cell)) if cell.len() == shape.dimensions() => {
            let cell: Vec<Label> = labels(cell).iter().map(digits).collect();
            let value = tx.get(&shape.keys(&cell)[0], Serializable).await?;
            Ok(Answer::Value(value.as_ref().map(Content::from)))
        }
        (Planted::EmptyIsAbsent, Op::Get(_)) => match right(shape, tx, op, isolation).await? {
            Answer::Value(value) => Ok(Answer::Value(value.filter(|value| value.length() > 0))),
            other => Ok(other),
        },
        (Planted::SliceAtSnapshot, Op::Slice(_)) => right(shape, tx, op, Snapshot).await,
        (Planted::LastAgain, Op::Page(given, Some(after), most)) if *most > 0 => {
            let Answer::Page(page) = right(shape, tx, op, isolation).await? else { return Err(no_page()) };
            let again = Op::Page(given.clone(), None, usize::MAX);
            let Answer::Page(all) = right(shape, tx, &again, isolation).await? else { return Err(no_page()) };
            let last: Vec<Content> =
                labels(after).iter().map(|label| Content::from(label.packed())).collect();
            let last = all.into_iter().filter(|(cell, _)| *cell == last);
            Ok(Answer::Page(last.chain(page).take(*most).collect()))
        }
        (Planted::AxisTwice, Op::Slice(fixed)) if matches!(fixed[..], [(0, _), (0, _)]) => {
            right(shape, tx, &Op::Slice(fixed[..1].to_vec()), isolation).await
        }
        (Planted::LargestRefused, Op::Set(cell, value)) if value.1 == VALUE_SIZE_LIMIT => {
            let keys = shape.keys(&labels(cell));
            keys.iter().try_for_each(|key| {
                limits::key(key)?;
                limits::value_up_to(VALUE_SIZE_LIMIT - 1, key, &bytes(*value))
            })?;
            right(shape, tx, op, isolation).await
        }
        _ => right(shape, tx, op, isolation).await,
    }
}

fn no_page() -> Error {
    Error::NoOrder(Vec::new())
}

/// A transaction in which the second order keeps what is cleared.
fn unordered(tx: &impl Transaction, shape: Shape) -> AnyTransaction {
    flawed(tx, Flaw::Uncleared, [shape.orders()[1].0.range()])
}

/// Sets a cell in one transaction for each order.
pub async fn order_on_its_own<D: Database>(
    shape: Shape,
    session: &mut Session<D>,
    cell: &[Which],
    value: (u8, usize),
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let (keys, value) = (&shape.keys(&labels(cell)), &bytes(value));
    if keys.iter().any(|key| limits::row(key, value).is_err()) {
        return None;
    }
    let mut outcome = None;
    for key in keys {
        let set = db.run(|tx, _| async move {
            tx.set(key, value);
            Ok::<_, Error>(vec![Answer::Written])
        });
        outcome = Some(ran(set.await));
    }
    outcome
}
