//! Operations and an invariant, no model.

use crate::layer::{self, Refusal};
use shaketable::prelude::*;

/// The clients: only their calls are drawn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sums;

/// Transfers between accounts neither make money nor lose it.
#[shaketable::workload(name = "sums")]
impl Sums {
    async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
        (0..5).for_each(|account| layer::deposit(tx, account, 100));
        Ok(())
    }

    #[draws(from, to)]
    fn account() -> impl Strategy<Value = u32> {
        0..5u32
    }

    #[write]
    async fn transfer(
        &self,
        tx: &Tx,
        from: u32,
        to: u32,
        #[draw(1..80u64)] amount: u64,
    ) -> Result<(), Refusal> {
        layer::transfer(tx, from, to, amount).await
    }

    #[invariant("the sum is 500")]
    async fn sum(&self, tx: &Tx) -> tx::Result<Result<(), String>> {
        let sum: u64 = layer::balances(tx).await?.iter().sum();
        Ok(if sum == 500 { Ok(()) } else { Err(format!("it is {sum}")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_stays() {
        Shake::<Guarded<Sums>>::new().assert();
    }

    #[test]
    fn a_transfer_that_is_retried_without_a_record_is_caught() {
        Shake::<Guarded<Sums>>::new().bug("unrecorded").assert_caught();
    }
}
