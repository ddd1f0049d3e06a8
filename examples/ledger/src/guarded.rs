//! Operations and an invariant, no model.

use crate::layer::{self, Refusal};

shaketable::invariants! {
    /// Transfers between accounts neither make money nor lose it.
    pub Sums: Refusal;

    setup(tx) {
        (0..5).for_each(|account| layer::deposit(tx, account, 100));
        Ok(())
    }

    fn transfer(tx, from: u32 = 0..5u32, to: u32 = 0..5u32, amount: u64 = 1..80u64) {
        layer::transfer(tx, from, to, amount).await
    }

    invariant "the sum is 500" (tx) {
        let sum: u64 = layer::balances(tx).await?.iter().sum();
        Ok(if sum == 500 { Ok(()) } else { Err(format!("it is {sum}")) })
    }
}

#[cfg(test)]
mod tests {
    use super::Sums;
    use shaketable::prelude::*;

    #[test]
    fn the_sum_stays() {
        Shake::<Guarded<Sums>>::new().assert();
    }

    #[test]
    fn a_transfer_that_is_retried_without_a_record_is_caught() {
        Shake::<Guarded<Sums>>::new().bug("unrecorded").assert_caught();
    }
}
