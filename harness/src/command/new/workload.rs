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

shaketable::modelled! {
    /// Items are added and taken, and never more are taken than there are.
    pub Stock: Refusal;

    // How many there are of each item.
    model Vec<u64> = vec![BEGIN; ITEMS as usize];

    keys = (0..ITEMS).map(layer::key);

    setup(tx) {
        for item in 0..ITEMS {
            layer::add(tx, item, BEGIN).await;
        }
        Ok(())
    }

    fn add(tx, item: u32 = 0..ITEMS, many: u64 = 1..10u64) {
        layer::add(tx, item, many).await;
        Ok(())
    }
    model(stock) {
        stock[item as usize] += many;
        Ok(())
    }

    fn take(tx, item: u32 = 0..ITEMS, many: u64 = 1..15u64) -> u64 {
        layer::take(tx, item, many).await
    }
    model(stock) {
        let left = stock[item as usize].checked_sub(many).ok_or(Refusal::SoldOut)?;
        stock[item as usize] = left;
        Ok(left)
    }
    bug "taken-at-snapshot", "a take reads at snapshot what it decides by", "a dropped conflict range" {
        let there_are = layer::count(tx, item, Snapshot).await?;
        let left = there_are.checked_sub(many).ok_or(Refusal::SoldOut)?;
        tx.set(&layer::key(item), &left.to_le_bytes());
        Ok(left)
    }

    read count(tx, item: u32 = 0..ITEMS; isolation) -> u64 {
        Ok(layer::count(tx, item, isolation).await?)
    }
    model(stock) { Ok(stock[item as usize]) }

    stored(tx) { Ok(layer::all(tx).await?) }
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
