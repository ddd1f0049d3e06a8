//! The same with a model: every answer is compared with what it should be.

use crate::layer::{self, Refusal};
use shaketable::prelude::*;

/// The workload. Nothing of it is drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Accounts;

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    Transfer(usize, usize, u64),
    Balance(usize),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Moved,
    Balance(u64),
}

impl Specimen for Accounts {
    type Op = Op;
    type Answer = Answer;
    type Error = Refusal;
    type Model = Vec<u64>;

    const NAME: &'static str = "accounts";
    const ABOUT: &'static str =
        "transfers and balances, each answer as one account after the other would give it";

    fn draw(_: &mut Stream, _: Option<&str>) -> Accounts {
        Accounts
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..5).map(|account| layer::key(account).into()).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let transfer = (0..5usize, 0..5usize, 1..80u64).prop_map(|(from, to, n)| Op::Transfer(from, to, n));
        prop_oneof![transfer, (0..5usize).prop_map(Op::Balance)].boxed()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Balance(_))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move {
            (0..5).for_each(|account| layer::deposit(&tx, account, 100));
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
            Op::Transfer(from, to, n) => {
                layer::transfer(tx, from as u32, to as u32, n).await?;
                Answer::Moved
            }
            Op::Balance(account) => Answer::Balance(layer::balance(tx, account as u32, isolation).await?),
        })
    }

    fn model(&self) -> Vec<u64> {
        vec![100; 5]
    }

    fn replay(&self, balances: &mut Vec<u64>, op: &Op, _: &At) -> Result<Answer, Refusal> {
        Ok(match *op {
            Op::Transfer(from, to, n) => {
                balances[from] = balances[from].checked_sub(n).ok_or(Refusal::Poor)?;
                balances[to] += n;
                Answer::Moved
            }
            Op::Balance(account) => Answer::Balance(balances[account]),
        })
    }

    async fn read_model<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Vec<u64>, String>> {
        Ok(Ok(layer::balances(tx).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_the_models() {
        Shake::<Mounted<Accounts>>::new().assert();
    }

    #[test]
    fn balances_of_any_bytes_can_be_read() {
        Foreign::<Mounted<Accounts>>::new().assert();
    }
}
