//! An argument cannot be kept.

use shaketable::prelude::*;

/// The configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stock {}

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
