//! The workload: clients add and take items at the same time, under faults, and a model judges every answer.
//!
//! Change the layer, then the operations here, the model that returns what the layer should, and the planted
//! bugs that show what the sweep would catch.

use crate::layer::{self, Refusal};
use shaketable::{planted_bugs, prelude::*, specimen::UNRECORDED};

/// How many items there are: few, so that clients collide.
const ITEMS: u32 = 3;

/// How many there are of each item at the beginning.
const BEGIN: u64 = 20;

planted_bugs! {
    Unrecorded = UNRECORDED, "an operation is retried after an unknown result, without a record of the first attempt", "the retry loop of every binding";
    TakenAtSnapshot = "taken-at-snapshot", "a take reads at snapshot what it decides by", "a dropped conflict range";
}

/// The workload, drawn from a seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stock {
    planted: Option<Planted>,
}

/// One call of the layer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    Add(u32, u64),
    Take(u32, u64),
    Count(u32),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Added,
    Left(u64),
    Counted(u64),
}

impl Specimen for Stock {
    type Op = Op;
    type Answer = Answer;
    type Error = Refusal;
    type Model = Vec<u64>;

    const NAME: &'static str = "stock";
    const ABOUT: &'static str =
        "items are added and taken, and never more are taken than there are";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Stock {
        Stock {
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..ITEMS).map(|item| layer::key(item).into()).collect()
    }

    fn operation(&self, _client: usize) -> BoxedStrategy<Op> {
        prop_oneof![
            (0..ITEMS, 1..10u64).prop_map(|(item, many)| Op::Add(item, many)),
            (0..ITEMS, 1..15u64).prop_map(|(item, many)| Op::Take(item, many)),
            (0..ITEMS).prop_map(Op::Count),
        ]
        .boxed()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Count(_))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move {
            for item in 0..ITEMS {
                layer::add(&tx, item, BEGIN).await;
            }
            Ok(())
        });
        filled.await.map_err(|e: tx::RunError<tx::Error>| e.error)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Refusal> {
        Ok(match *op {
            Op::Add(item, many) => {
                layer::add(tx, item, many).await;
                Answer::Added
            }
            Op::Take(item, many) if self.planted == Some(Planted::TakenAtSnapshot) => {
                let there_are = layer::count(tx, item, Snapshot).await?;
                let left = there_are.checked_sub(many).ok_or(Refusal::SoldOut)?;
                tx.set(&layer::key(item), &left.to_le_bytes());
                Answer::Left(left)
            }
            Op::Take(item, many) => Answer::Left(layer::take(tx, item, many).await?),
            Op::Count(item) => Answer::Counted(layer::count(tx, item, isolation).await?),
        })
    }

    fn model(&self) -> Vec<u64> {
        vec![BEGIN; ITEMS as usize]
    }

    fn replay(&self, stock: &mut Vec<u64>, op: &Op, _: &At) -> Result<Answer, Refusal> {
        Ok(match *op {
            Op::Add(item, many) => {
                stock[item as usize] += many;
                Answer::Added
            }
            Op::Take(item, many) => {
                let left = stock[item as usize]
                    .checked_sub(many)
                    .ok_or(Refusal::SoldOut)?;
                stock[item as usize] = left;
                Answer::Left(left)
            }
            Op::Count(item) => Answer::Counted(stock[item as usize]),
        })
    }

    async fn read_model<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Vec<u64>, String>> {
        Ok(Ok(layer::all(tx).await?))
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
        for bug in BUGS {
            Shake::<Mounted<Stock>>::new().bug(bug.name).assert_caught();
        }
    }
}
