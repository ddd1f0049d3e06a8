//! The workload: clients add and take items at the same time, under faults, and a model judges every answer.
//!
//! Change the layer, then the operations here, the model that returns what the layer should, and the planted
//! bugs that show what the sweep would catch.

use crate::layer::{self, Refusal};
use shaketable::prelude::*;

/// How many items there are: few, so that clients collide.
const ITEMS: u32 = 3;

/// How many there are of each item at the beginning.
const BEGIN: u64 = 20;

/// Clients of the layer: nothing of them is drawn but their calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stock;

/// Items are added and taken, and never more are taken than there are.
#[shaketable::workload(name = "stock", model = Model, planted, promises(turns))]
impl Stock {
    #[draws(item)]
    fn item() -> impl Strategy<Value = u32> {
        0..ITEMS
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        (0..ITEMS).map(layer::key).collect()
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
        for item in 0..ITEMS {
            layer::add(tx, item, BEGIN).await;
        }
        Ok(())
    }

    #[write(blind)]
    async fn add(&self, tx: &Tx, item: u32, #[draw(1..10u64)] many: u64) -> Result<(), Refusal> {
        layer::add(tx, item, many).await;
        Ok(())
    }

    #[write]
    async fn take(&self, tx: &Tx, item: u32, #[draw(1..15u64)] many: u64) -> Result<u64, Refusal> {
        layer::take(tx, item, many).await
    }

    #[read]
    async fn count(&self, tx: &Tx, isolation: Isolation, item: u32) -> Result<u64, Refusal> {
        Ok(layer::count(tx, item, isolation).await?)
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> Result<Model, Refusal> {
        Ok(Model(layer::all(tx).await?))
    }
}

/// The model: how many there are of each item.
#[derive(Clone, Debug, PartialEq)]
pub struct Model(Vec<u64>);

impl Default for Model {
    fn default() -> Model {
        Model(vec![BEGIN; ITEMS as usize])
    }
}

impl Model {
    fn add(&mut self, item: u32, many: u64) -> Result<(), Refusal> {
        self.0[item as usize] += many;
        Ok(())
    }

    fn take(&mut self, item: u32, many: u64) -> Result<u64, Refusal> {
        let left = self.0[item as usize]
            .checked_sub(many)
            .ok_or(Refusal::SoldOut)?;
        self.0[item as usize] = left;
        Ok(left)
    }

    fn count(&self, item: u32) -> Result<u64, Refusal> {
        Ok(self.0[item as usize])
    }
}

#[shaketable::planted]
impl Stock {
    /// A take reads at snapshot what it decides by.
    #[bug(take, "a dropped conflict range")]
    async fn taken_at_snapshot(&self, tx: &Tx, item: u32, many: u64) -> Result<u64, Refusal> {
        let there_are = layer::count(tx, item, Snapshot).await?;
        let left = there_are.checked_sub(many).ok_or(Refusal::SoldOut)?;
        tx.set(&layer::key(item), &left.to_le_bytes());
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_the_models() {
        Shake::<Mounted<Stock>>::new().assert();
    }

    #[test]
    fn planted_bugs_are_caught() {
        for bug in Stock::bugs() {
            Shake::<Mounted<Stock>>::new().bug(bug.name).assert_caught();
        }
    }
}
