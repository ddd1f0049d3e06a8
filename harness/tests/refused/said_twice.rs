//! What is blind, and what is composed, is said twice.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model)]
impl Stock {
    fn is_conflict_free(&self, _: &StockOp) -> bool {
        true
    }

    fn refuses_cleanly(_: &StockOp, _: &once::Error) -> bool {
        true
    }

    #[write(blind, composed)]
    async fn add(&self, _: &Tx, #[draw(1..9u64)] many: u64) -> Result<u64, once::Error> {
        Ok(many)
    }

    #[stored]
    async fn stored(&self, _: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

fn main() {}
