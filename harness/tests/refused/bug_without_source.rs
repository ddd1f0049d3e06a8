//! A bug says not where it comes from.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model, planted)]
impl Stock {
    #[write]
    async fn add(&self, _: &Tx, #[draw(1..9u64)] many: u64) -> Result<u64, once::Error> {
        Ok(many)
    }

    #[stored]
    async fn stored(&self, _: &Tx) -> tx::Result<Model> {
        Ok(Model(0))
    }
}

#[shaketable::planted]
impl Stock {
    /// One more is added.
    #[bug(add)]
    async fn one_more(&self, _: &Tx, many: u64) -> Result<u64, once::Error> {
        Ok(many)
    }
}

fn main() {}
