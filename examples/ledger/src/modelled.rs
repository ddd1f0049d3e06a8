//! The same with a model: every answer is compared with what it should be.

use crate::layer::{self, Refusal};
use shaketable::prelude::*;

/// The clients: only their calls are drawn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Accounts;

/// Transfers and balances, each answer as one account after the other would give it.
#[shaketable::workload(name = "accounts", model = Balances)]
impl Accounts {
    #[draws(account, from, to)]
    fn account() -> impl Strategy<Value = usize> {
        0..5usize
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
        (0..5).for_each(|account| layer::deposit(tx, account, 100));
        Ok(())
    }

    #[write]
    async fn transfer(
        &self,
        tx: &Tx,
        from: usize,
        to: usize,
        #[draw(1..80u64)] amount: u64,
    ) -> Result<(), Refusal> {
        layer::transfer(tx, from as u32, to as u32, amount).await
    }

    #[read]
    async fn balance(&self, tx: &Tx, isolation: Isolation, account: usize) -> Result<u64, Refusal> {
        layer::balance(tx, account as u32, isolation).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Balances> {
        Ok(Balances(layer::balances(tx).await?))
    }

    fn model(&self) -> Balances {
        Balances(vec![100; 5])
    }
}

/// The model: the balance of each account.
#[derive(Clone, Debug, PartialEq)]
pub struct Balances(Vec<u64>);

impl Balances {
    fn transfer(&mut self, from: usize, to: usize, amount: u64) -> Result<(), Refusal> {
        self.0[from] = self.0[from].checked_sub(amount).ok_or(Refusal::Poor)?;
        self.0[to] += amount;
        Ok(())
    }

    fn balance(&self, account: usize) -> Result<u64, Refusal> {
        Ok(self.0[account])
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
