//! A workload without a model says what only one with a model needs.

mod stock;

use stock::*;

/// A number.
#[shaketable::workload]
impl Stock {
    const TOGETHER: usize = 2;

    fn describe_key(&self, _: &[u8]) -> Option<String> {
        None
    }

    #[write(blind)]
    async fn add(&self, _: &Tx, #[draw(1..9u64)] many: u64) -> Result<u64, once::Error> {
        Ok(many)
    }

    #[invariant("it is right")]
    async fn right(&self, _: &Tx) -> tx::Result<bool> {
        Ok(true)
    }
}

fn main() {}
