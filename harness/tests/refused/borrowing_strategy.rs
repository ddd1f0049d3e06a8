//! A strategy borrows the configuration.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload(name = "stock", model = Model)]
impl Stock {
    #[draws(many)]
    fn many(&self) -> impl Strategy<Value = u64> {
        1..9u64
    }

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
