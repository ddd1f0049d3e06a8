//! Planted bugs: a sparse array implemented or used wrongly.

use super::{Array, Cells, space};
use shaketable::{prelude::*, specimen::Content};
use shaketable_layers::array::Error;
use shaketable_tx::VALUE_SIZE_LIMIT;

#[shaketable::planted]
#[flaw(
    first_batch,
    cells,
    FirstBatch,
    "the first batch of a range read is taken for the whole row",
    "a range that is longer than a batch"
)]
impl Array {
    /// The cells of a row are in the order of their indexes as decimal text, which sorts 10 before 9.
    #[bug(cells, "the naive encoding")]
    async fn text_index(&self, tx: &Tx, isolation: Isolation, prefix: Vec<i64>) -> Result<Cells, Error> {
        let mut cells = self.cells(tx, isolation, prefix).await?;
        cells.sort_by_key(|(index, _)| index.iter().map(i64::to_string).collect::<Vec<_>>());
        Ok(cells)
    }

    /// An empty value is read as an unassigned cell.
    #[bug(get, "absent and empty treated alike")]
    async fn empty_is_absent(
        &self,
        tx: &Tx,
        isolation: Isolation,
        index: Vec<i64>,
    ) -> Result<Option<Content>, Error> {
        Ok(self.get(tx, isolation, index).await?.filter(|value| value.length() > 0))
    }

    /// A value beyond the limit is truncated instead of refused.
    #[bug(set, "a limit that is not an error")]
    async fn cut_short(&self, tx: &Tx, index: Vec<i64>, byte: u8, length: usize) -> Result<(), Error> {
        self.set(tx, index, byte, length.min(VALUE_SIZE_LIMIT)).await
    }

    /// The cells below a prefix are read at snapshot, whatever isolation was requested.
    #[bug(cells, "a dropped conflict range")]
    async fn cells_at_snapshot(&self, tx: &Tx, prefix: Vec<i64>) -> Result<Cells, Error> {
        self.cells(tx, Snapshot, prefix).await
    }

    /// A cell is cleared before its new value is found to be too large.
    #[bug(set, "a refusal that comes too late")]
    async fn cleared_first(&self, tx: &Tx, index: Vec<i64>, byte: u8, length: usize) -> Result<(), Error> {
        let key = space().pack(&index);
        let set = self.set(tx, index, byte, length).await;
        if let Err(Error::TooLarge(_)) = set {
            tx.clear(&key);
        }
        set
    }

    /// Of more than six cells the last one is not read.
    #[bug(cells, "a loop that ends one too early")]
    async fn last_cell(&self, tx: &Tx, isolation: Isolation, prefix: Vec<i64>) -> Result<Cells, Error> {
        let mut cells = self.cells(tx, isolation, prefix).await?;
        if cells.len() > 6 {
            cells.pop();
        }
        Ok(cells)
    }
}
