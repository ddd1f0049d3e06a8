//! The same with a model: every answer is compared with what it should be.

use crate::layer::{self, Refusal};

shaketable::modelled! {
    /// Transfers and balances, each answer as one account after the other would give it.
    pub Accounts: Refusal;

    model Vec<u64> = vec![100; 5];

    setup(tx) {
        (0..5).for_each(|account| layer::deposit(tx, account, 100));
        Ok(())
    }

    fn transfer(tx, from: usize = 0..5usize, to: usize = 0..5usize, amount: u64 = 1..80u64) {
        layer::transfer(tx, from as u32, to as u32, amount).await
    }
    model(balances) {
        balances[from] = balances[from].checked_sub(amount).ok_or(Refusal::Poor)?;
        balances[to] += amount;
        Ok(())
    }

    read balance(tx, account: usize = 0..5usize; isolation) -> u64 {
        layer::balance(tx, account as u32, isolation).await
    }
    model(balances) { Ok(balances[account]) }

    stored(tx) { Ok(layer::balances(tx).await?) }
}

#[cfg(test)]
mod tests {
    use super::Accounts;
    use shaketable::prelude::*;

    #[test]
    fn every_answer_is_the_models() {
        Shake::<Mounted<Accounts>>::new().assert();
    }

    #[test]
    fn balances_of_any_bytes_can_be_read() {
        Foreign::<Mounted<Accounts>>::new().assert();
    }
}
