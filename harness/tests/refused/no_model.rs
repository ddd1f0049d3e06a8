//! The model is missing.

use shaketable::prelude::*;

/// The configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stock {}

/// A number.
#[shaketable::workload(name = "stock")]
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

/// The model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model(u64);

impl Model {
    fn add(&mut self, many: u64) -> Result<u64, once::Error> {
        self.0 += many;
        Ok(self.0)
    }
}

fn main() {}
