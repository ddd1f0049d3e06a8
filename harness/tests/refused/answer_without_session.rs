//! Without a session each operation has an answer of its own.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", answer = (), model = Model)]
impl Stock {
    #[write]
    async fn add(&self, tx: &Tx, #[draw(1..5u64)] many: u64) -> Result<(), once::Error> {
        Ok(())
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

fn main() {}
