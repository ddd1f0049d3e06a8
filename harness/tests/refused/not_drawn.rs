//! An argument has no strategy.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model)]
impl Stock {
    #[write]
    async fn add(&self, _: &Tx, many: u64) -> Result<u64, once::Error> {
        Ok(many)
    }

    #[stored]
    async fn stored(&self, _: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

fn main() {}
