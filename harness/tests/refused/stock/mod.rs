//! What all cases have: clients of a number, and its model.

pub use shaketable::prelude::*;

/// The clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stock;

/// The model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model(pub u64);

impl Model {
    pub fn add(&mut self, many: u64) -> Result<u64, once::Error> {
        self.0 += many;
        Ok(self.0)
    }
}
