//! The layer: accounts with balances, and transfers between them.

use foundationdb_tuple::Subspace;
use shaketable_tx::{self as tx, Isolation, MutationType, RangeOption, Transaction};

shaketable_tx::refusals! {
    /// Why a transfer was refused.
    pub enum Refusal {
        Poor = "the account does not hold that much",
    }
}

fn accounts() -> Subspace {
    Subspace::from("ledger")
}

/// `("ledger", account) = balance`, eight bytes, little-endian.
pub fn key(account: u32) -> Vec<u8> {
    accounts().pack(&account)
}

fn amount(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Adds to an account.
pub fn deposit<T: Transaction>(tx: &T, account: u32, amount: u64) {
    tx.atomic_op(&key(account), &amount.to_le_bytes(), MutationType::Add);
}

/// Moves an amount from one account to another.
pub async fn transfer<T: Transaction>(tx: &T, from: u32, to: u32, amount: u64) -> Result<(), Refusal> {
    let tx = &tx.writing().await;
    let has = balance(tx, from, Isolation::Serializable).await?;
    let rest = has.checked_sub(amount).ok_or(Refusal::Poor)?;
    tx.set(&key(from), &rest.to_le_bytes());
    deposit(tx, to, amount);
    Ok(())
}

/// What an account holds.
pub async fn balance<T: Transaction>(tx: &T, account: u32, isolation: Isolation) -> Result<u64, Refusal> {
    let tx = tx.reading().await;
    Ok(tx.get(&key(account), isolation).await?.map_or(0, |value| amount(&value)))
}

/// What all accounts hold, in their order.
pub async fn balances<T: Transaction>(tx: &T) -> tx::Result<Vec<u64>> {
    let rows = tx.get_range_all(RangeOption::from(accounts().range()), Isolation::Serializable).await?;
    Ok(rows.iter().map(|row| amount(&row.value)).collect())
}
