//! The register of each client of the mechanism, to which operations add, and the mark that may be written
//! twice.

use super::operations::RecordedAnswer;
use bytes::Bytes;
use foundationdb_tuple::{Subspace, Versionstamp, pack};
use shaketable_tx::{
    self as tx,
    Isolation::Serializable,
    MutationType, RetryError, Transaction, Tx,
    once::{Error, Packed},
};

/// Why an addition is not performed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// An error of the database.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// An error of the mechanism.
    #[error(transparent)]
    Once(#[from] Error),
    /// The register is at its bound.
    #[error("the register is at its bound")]
    Bound,
}

impl RetryError for Refusal {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Refusal::Fdb(e) => Some(*e),
            Refusal::Once(e) => e.fdb(),
            Refusal::Bound => None,
        }
    }
}

/// The bound for the absolute values of all registers.
pub(super) const BOUND: i64 = 40;

/// A client's register.
pub(super) fn register(number: u64) -> Bytes {
    Subspace::from("register").pack(&number).into()
}

pub(super) fn mark(client: usize) -> Bytes {
    pack(&("mark", client as u64)).into()
}

pub(super) fn number(value: Option<Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_le_bytes)
}

/// Reads the register and adds.
pub(super) async fn add(tx: &Tx, client: u64, by: i8) -> Result<RecordedAnswer, Refusal> {
    let key = register(client);
    let value = number(tx.get(&key, Serializable).await?).saturating_add(i64::from(by));
    if value.unsigned_abs() > BOUND.unsigned_abs() {
        return Err(Refusal::Bound);
    }
    tx.set(&key, &value.to_le_bytes());
    Ok(Packed((value, Versionstamp::incomplete(0))))
}

pub(super) fn blind(tx: &Tx, client: u64, by: i8) -> RecordedAnswer {
    tx.atomic_op(&register(client), &i64::from(by).to_le_bytes(), MutationType::Add);
    Packed((0, Versionstamp::incomplete(0)))
}
