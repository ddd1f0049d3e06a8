//! Planted bugs: a vector implemented or used wrongly.

use super::{Vector, VectorAnswer, VectorOp, space};
use crate::shared::seen_before;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content},
};
use shaketable_layers::vector::Error;

#[shaketable::planted]
impl Vector {
    /// A push reads the size in a separate transaction.
    #[bug(*, "a published vector's push, which does not pass its transaction on")]
    async fn size_elsewhere(
        &self,
        session: &mut Session<Db>,
        ops: &[VectorOp],
    ) -> Option<Outcome<Answer<VectorAnswer>>> {
        let &[VectorOp::push { row, byte, length }] = ops else { return None };
        let look = |tx| async move { self.layer(row)?.size(&tx, Serializable).await };
        let act = |tx, size| async move {
            self.set(&tx, row, size, byte, length).await?;
            Ok(vec![VectorAnswer::push(size)])
        };
        Some(seen_before(session, look, act).await)
    }

    /// A scan reads what is below the key of its first element.
    #[bug(scan, "the recipe's vector_scan")]
    async fn scan_children(
        &self,
        tx: &Tx,
        isolation: Isolation,
        row: i64,
        start: i64,
        end: Option<i64>,
    ) -> Result<Vec<Content>, Error> {
        self.layer(row)?;
        if start < 0 || end.is_some() {
            return self.scan(tx, isolation, row, start, end).await;
        }
        let below = RangeOption::from(space().subspace(&(row, start)).range());
        Ok(tx.get_range_all(below, isolation).await?.iter().map(|row| Content::from(&row.value)).collect())
    }

    /// A swap takes the size for an index.
    #[bug(swap, "a published vector's bound check, off by one")]
    async fn swap_behind(&self, tx: &Tx, row: i64, index: i64, other: i64) -> Result<(), Error> {
        let vector = self.layer(row)?;
        let size = vector.size(tx, Serializable).await?;
        if other != size || !(0..size).contains(&index) {
            return self.swap(tx, row, index, other).await;
        }
        let value = vector.get(tx, index, Serializable).await?;
        vector.set(tx, size, &value).await
    }

    /// An element beyond the end is read as a hole.
    #[bug(get, "the recipe's vector_get, on a sparse vector")]
    async fn hole_is_absent(
        &self,
        tx: &Tx,
        isolation: Isolation,
        row: i64,
        index: i64,
    ) -> Result<Content, Error> {
        self.layer(row)?;
        if !(0..i64::MAX).contains(&index) {
            return self.get(tx, isolation, row, index).await;
        }
        let value = tx.get(&space().pack(&(row, index)), isolation).await?;
        Ok(value.map_or(self.default(), |value| Content::from(&value)))
    }

    /// The size is the number of stored elements.
    #[bug(size, "a vector taken for a dense one")]
    async fn size_counts(&self, tx: &Tx, isolation: Isolation, row: i64) -> Result<i64, Error> {
        self.layer(row)?;
        let all = RangeOption::from(space().subspace(&(row,)).range());
        Ok(tx.get_range_all(all, isolation).await?.len() as i64)
    }

    /// A scan that is requested at snapshot is read serializably.
    #[bug(scan, "an isolation that is not passed on")]
    async fn scan_conflicts(
        &self,
        tx: &Tx,
        row: i64,
        start: i64,
        end: Option<i64>,
    ) -> Result<Vec<Content>, Error> {
        self.scan(tx, Serializable, row, start, end).await
    }

    /// A swap writes the first element before it reads the second.
    #[bug(swap, "a refusal that comes too late")]
    async fn swapped_first(&self, tx: &Tx, row: i64, index: i64, other: i64) -> Result<(), Error> {
        if index < 0 {
            return self.swap(tx, row, index, other).await;
        }
        let value = self.layer(row)?.get(tx, index, Serializable).await?;
        let swapped = self.swap(tx, row, index, other).await;
        if swapped.is_err() {
            tx.set(&space().pack(&(row, index)), &value);
        }
        swapped
    }
}
