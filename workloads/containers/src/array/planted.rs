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
    #[bug(
        cells,
        "the cells of a row are in the order of their indexes as decimal text, which sorts 10 before 9",
        "the naive encoding"
    )]
    async fn text_index(&self, tx: &Tx, isolation: Isolation, prefix: Vec<i64>) -> Result<Cells, Error> {
        let mut cells = self.cells(tx, isolation, prefix).await?;
        cells.sort_by_key(|(index, _)| index.iter().map(i64::to_string).collect::<Vec<_>>());
        Ok(cells)
    }

    #[bug(get, "an empty value is read as an unassigned cell", "absent and empty treated alike")]
    async fn empty_is_absent(
        &self,
        tx: &Tx,
        isolation: Isolation,
        index: Vec<i64>,
    ) -> Result<Option<Content>, Error> {
        Ok(self.get(tx, isolation, index).await?.filter(|value| value.length() > 0))
    }

    #[bug(set, "a value beyond the limit is truncated instead of refused", "a limit that is not an error")]
    async fn cut_short(&self, tx: &Tx, index: Vec<i64>, byte: u8, length: usize) -> Result<(), Error> {
        self.set(tx, index, byte, length.min(VALUE_SIZE_LIMIT)).await
    }

    #[bug(
        cells,
        "the cells below a prefix are read at snapshot, whatever isolation was requested",
        "a dropped conflict range"
    )]
    async fn cells_at_snapshot(&self, tx: &Tx, prefix: Vec<i64>) -> Result<Cells, Error> {
        self.cells(tx, Snapshot, prefix).await
    }

    #[bug(
        set,
        "a cell is cleared before its new value is found to be too large",
        "a refusal that comes too late"
    )]
    async fn cleared_first(&self, tx: &Tx, index: Vec<i64>, byte: u8, length: usize) -> Result<(), Error> {
        let key = space().pack(&index);
        let set = self.set(tx, index, byte, length).await;
        if let Err(Error::TooLarge(_)) = set {
            tx.clear(&key);
        }
        set
    }

    #[bug(cells, "of more than six cells the last one is not read", "a loop that ends one too early")]
    async fn last_cell(&self, tx: &Tx, isolation: Isolation, prefix: Vec<i64>) -> Result<Cells, Error> {
        let mut cells = self.cells(tx, isolation, prefix).await?;
        if cells.len() > 6 {
            cells.pop();
        }
        Ok(cells)
    }
}
