//! An argument cannot be kept.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model)]
impl Stock {
    #[write]
    async fn add(&self, _: &Tx, #[draw("[a-z]")] many: &str) -> Result<u64, once::Error> {
        Ok(many.len() as u64)
    }

    #[stored]
    async fn stored(&self, _: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

fn main() {}
