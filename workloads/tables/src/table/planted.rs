//! Planted bugs: tables implemented or used wrongly.

use super::{
    Answer, Op, Shape,
    client::perform as right,
    operations::{bytes, labels},
    shape::grid,
};
use crate::models::labels::digits;
use bytes::Bytes;
use shaketable::{
    specimen::{self, INTERLEAVED, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed},
    workload::Outcome,
};
use shaketable_layers::{label::Label, table::Error};
use shaketable_tx::{
    Database, Db,
    Isolation::{self, Serializable, Snapshot},
    Tx, VALUE_SIZE_LIMIT, limits,
    once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "a line is replaced while another call of the transaction sets one of its cells", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a cell is set again after an unknown result without an operation record", "a blind write done twice";
    SetRowAsPrinted = "set-row-as-printed", "replacing a row clears it in the order of rows only", "the recipe's table_set_row";
    GetCellAsPrinted = "get-cell-as-printed", "an unassigned cell is decoded as if it had a value", "the recipe's table_get_cell";
    RowsMerge = "rows-merge", "setting a row leaves the columns that are not given", "an update taken for a replacement";
    OrderOnItsOwn = "order-on-its-own", "the second order is written in a separate transaction", "an index outside the transaction";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole row", "a range that is longer than a batch";
    TextLabels = "text-labels", "labels are stored as text, so that row 1 is row \"1\"", "labels without their types";
    EmptyIsAbsent = "empty-is-absent", "an empty value is read as an unassigned cell", "absent and empty treated alike";
    SliceAtSnapshot = "slice-at-snapshot", "a slice is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    AxisTwice = "axis-twice", "an axis that is given twice counts once", "a request that is not checked";
    LargestRefused = "largest-refused", "a value of the maximum size is refused", "a limit that is off by one";
    ClearedFirst = "cleared-first", "a line is cleared before its new cells are checked", "a refusal that comes too late";
    SliceEnd = "slice-end", "a slice leaves out the cells whose last label contains a code point beyond U+FFFF", "a range that ends at a constant";
}

impl Planted {
    /// The shape that the bug needs, if it needs one.
    pub(super) fn shape(self) -> Option<Shape> {
        use Planted::*;
        match self {
            SetRowAsPrinted | OrderOnItsOwn => Some(Shape::Both),
            FirstBatch => Some(Shape::Rows),
            AxisTwice => Some(Shape::Cube),
            _ => None,
        }
    }
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    shape: Shape,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::SetRowAsPrinted, Op::Replace(fixed, new))
            if matches!(fixed[..], [(0, _)]) && !new.is_empty() =>
        {
            let second = [shape.orders()[1].0.range()];
            right(shape, &flawed(tx, Flaw::Uncleared, second), op, isolation).await
        }
        (Planted::RowsMerge, Op::Replace(_, new)) if !new.is_empty() => {
            right(shape, &flawed(tx, Flaw::Uncleared, everything()), op, isolation).await
        }
        (Planted::ClearedFirst, Op::Replace(fixed, _)) => {
            right(shape, tx, &Op::Replace(fixed.clone(), Vec::new()), isolation).await?;
            right(shape, tx, op, isolation).await
        }
        (Planted::SliceEnd, Op::Slice(_)) => {
            let mut answer = right(shape, tx, op, isolation).await?;
            if let Answer::Cells(cells) = &mut answer {
                cells.retain(|(cell, _)| !format!("{:?}", cell.last()).contains("\\xf4\\x8f"));
            }
            Ok(answer)
        }
        (Planted::GetCellAsPrinted, Op::Get(_)) => match right(shape, tx, op, isolation).await? {
            Answer::Value(None) => Err(Error::Foreign(Bytes::new())),
            value => Ok(value),
        },
        (Planted::FirstBatch, Op::Slice(_)) => {
            right(shape, &flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::TextLabels, Op::Set(cell, value)) => {
            let cell: Vec<Label> = labels(cell).iter().map(digits).collect();
            grid(shape)?.set(tx, &cell, &bytes(*value)).await.map(|()| Answer::Written)
        }
        (Planted::EmptyIsAbsent, Op::Get(_)) => Ok(match right(shape, tx, op, isolation).await? {
            Answer::Value(Some(value)) if value.length() == 0 => Answer::Value(None),
            other => other,
        }),
        (Planted::SliceAtSnapshot, Op::Slice(_)) => right(shape, tx, op, Snapshot).await,
        (Planted::AxisTwice, Op::Slice(fixed)) if matches!(fixed[..], [(0, _), (0, _)]) => {
            right(shape, tx, &Op::Slice(fixed[..1].to_vec()), isolation).await
        }
        (Planted::LargestRefused, Op::Set(_, value)) if value.1 == VALUE_SIZE_LIMIT => {
            limits::value_up_to(VALUE_SIZE_LIMIT - 1, b"", &bytes(*value))?;
            right(shape, tx, op, isolation).await
        }
        _ => right(shape, tx, op, isolation).await,
    }
}

/// Sets a cell in one transaction for each order.
pub async fn order_on_its_own(
    shape: Shape,
    session: &Session<Db>,
    op: &Op,
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let (db, mut outcome) = (session.database().clone(), None);
    for (other, _) in shape.orders().into_iter().rev() {
        let other = &other.range();
        let set = db.run(|tx, _| async move {
            let one = flawed(&tx, Flaw::Unwritten, [other.clone()]);
            Ok::<_, Error>(vec![right(shape, &one, op, Serializable).await?])
        });
        outcome = Some(ran(set.await));
    }
    outcome
}
