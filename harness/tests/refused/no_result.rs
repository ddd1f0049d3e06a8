//! An operation returns no result.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model)]
impl Stock {
    #[write]
    async fn add(&self, _: &Tx, #[draw(1..9u64)] many: u64) -> u64 {
        many
    }

    #[stored]
    async fn stored(&self, _: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

fn main() {}
