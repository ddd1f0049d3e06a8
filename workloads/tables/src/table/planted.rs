//! Planted bugs: tables implemented or used wrongly.

use super::{Cell, Fixed, Found, Replacement, Shape, Table, TableAnswer, TableOp, Value, bytes, labels};
use crate::models::labels::digits;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, ran},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::{label::Label, table::Error};
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};

/// The shape that the bug needs, if it needs one.
pub(super) fn shape(bug: &str) -> Option<Shape> {
    match bug {
        "set-row-as-printed" | "order-on-its-own" => Some(Shape::Both),
        "first-batch" => Some(Shape::Rows),
        "axis-twice" => Some(Shape::Cube),
        _ => None,
    }
}

#[shaketable::planted]
#[flaw(
    first_batch,
    slice,
    FirstBatch,
    "the first batch of a range read is taken for the whole row",
    "a range that is longer than a batch"
)]
impl Table {
    /// Replacing a row clears it in the order of rows only.
    #[bug(replace, "the recipe's table_set_row")]
    async fn set_row_as_printed(&self, tx: &Tx, replacement: &Replacement) -> Result<(), Error> {
        let second = flawed(tx, Flaw::Uncleared, [self.shape.orders()[1].0.range()]);
        let is_changed = matches!(replacement.0[..], [(0, _)]) && !replacement.1.is_empty();
        self.replace(if is_changed { &second } else { tx }, replacement).await
    }

    /// An unassigned cell is decoded as if it had a value.
    #[bug(get, "the recipe's table_get_cell")]
    async fn get_cell_as_printed(
        &self,
        tx: &Tx,
        isolation: Isolation,
        cell: &Cell,
    ) -> Result<Option<Content>, Error> {
        match self.get(tx, isolation, cell).await? {
            None => Err(Error::Foreign(Bytes::new())),
            value => Ok(value),
        }
    }

    /// Setting a row leaves the columns that are not given.
    #[bug(replace, "an update taken for a replacement")]
    async fn rows_merge(&self, tx: &Tx, replacement: &Replacement) -> Result<(), Error> {
        let merged = flawed(tx, Flaw::Uncleared, everything());
        self.replace(if replacement.1.is_empty() { tx } else { &merged }, replacement).await
    }

    /// The second order is written in a separate transaction.
    #[bug(*, "an index outside the transaction")]
    async fn order_on_its_own(
        &self,
        session: &mut Session<Db>,
        ops: &[TableOp],
    ) -> Option<Outcome<Answer<TableAnswer>>> {
        let [op @ TableOp::set { .. }] = ops else { return None };
        let (db, mut outcome) = (session.database().clone(), None);
        for (other, _) in self.shape.orders().into_iter().rev() {
            let (env, other) = (db.env(), &other.range());
            let set = db.run(|tx, _| async move {
                let one = flawed(&tx, Flaw::Unwritten, [other.clone()]);
                Ok::<_, Error>(vec![self.perform(&one, env, op, Serializable).await?])
            });
            outcome = Some(ran(set.await));
        }
        outcome
    }

    /// Labels are stored as text, so that row 1 is row "1".
    #[bug(set, "labels without their types")]
    async fn text_labels(&self, tx: &Tx, cell: &Cell, value: Value) -> Result<(), Error> {
        let cell: Vec<Label> = labels(cell).iter().map(digits).collect();
        self.shape.grid()?.set(tx, &cell, &bytes(value)).await
    }

    /// An empty value is read as an unassigned cell.
    #[bug(get, "absent and empty treated alike")]
    async fn empty_is_absent(
        &self,
        tx: &Tx,
        isolation: Isolation,
        cell: &Cell,
    ) -> Result<Option<Content>, Error> {
        Ok(self.get(tx, isolation, cell).await?.filter(|value| value.length() > 0))
    }

    /// A slice is read at snapshot, whatever isolation was requested.
    #[bug(slice, "a dropped conflict range")]
    async fn slice_at_snapshot(&self, tx: &Tx, fixed: &Fixed) -> Result<Found, Error> {
        self.slice(tx, Snapshot, fixed).await
    }

    /// An axis that is given twice counts once.
    #[bug(slice, "a request that is not checked")]
    async fn axis_twice(&self, tx: &Tx, isolation: Isolation, fixed: &Fixed) -> Result<Found, Error> {
        match fixed[..] {
            [once @ (0, _), (0, _)] => self.slice(tx, isolation, &vec![once]).await,
            _ => self.slice(tx, isolation, fixed).await,
        }
    }

    /// A value of the maximum size is refused.
    #[bug(set, "a limit that is off by one")]
    async fn largest_refused(&self, tx: &Tx, cell: &Cell, value: Value) -> Result<(), Error> {
        if value.1 == VALUE_SIZE_LIMIT {
            limits::value_up_to(VALUE_SIZE_LIMIT - 1, b"", &bytes(value))?;
        }
        self.set(tx, cell, value).await
    }

    /// A line is cleared before its new cells are checked.
    #[bug(replace, "a refusal that comes too late")]
    async fn cleared_first(&self, tx: &Tx, replacement: &Replacement) -> Result<(), Error> {
        self.replace(tx, &(replacement.0.clone(), Vec::new())).await?;
        self.replace(tx, replacement).await
    }

    /// A slice leaves out the cells whose last label contains a code point beyond U+FFFF.
    #[bug(slice, "a range that ends at a constant")]
    async fn slice_end(&self, tx: &Tx, isolation: Isolation, fixed: &Fixed) -> Result<Found, Error> {
        let mut found = self.slice(tx, isolation, fixed).await?;
        found.retain(|(cell, _)| !format!("{:?}", cell.last()).contains("\\xf4\\x8f"));
        Ok(found)
    }
}
