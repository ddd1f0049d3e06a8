//! Rows directly beside a layer's keys. No call may return or change them; a range that is too wide, or that
//! is bounded by a prefix instead of by a tuple, would.

use shaketable_tx::{self as tx, Database, Db, Isolation::Serializable, Transaction, Tx};

const VALUE: &[u8] = b"beside";

/// The keys just outside of the subspace with this prefix: the prefix itself, which no tuple below it has,
/// the end of its range, and a key with the same prefix after that.
pub fn of(prefix: &[u8]) -> Vec<Vec<u8>> {
    [&b""[..], b"\xff", b"\xff\xff"].map(|tail| [prefix, tail].concat()).to_vec()
}

/// Writes the rows.
pub async fn plant(db: &Db, keys: &[Vec<u8>]) -> tx::Result<()> {
    let planted = db.run(|tx, _| async move {
        keys.iter().for_each(|key| tx.set(key, VALUE));
        Ok::<_, tx::Error>(())
    });
    planted.await.map_err(|e| e.error)
}

/// Checks that the rows are as they were written. The inner error names one that is not.
pub async fn check(tx: &Tx, keys: &[Vec<u8>]) -> tx::Result<Result<(), String>> {
    for key in keys {
        if tx.get(key, Serializable).await?.as_deref() != Some(VALUE) {
            return Ok(Err(format!("the row beside the layer at \"{}\" was changed", key.escape_ascii())));
        }
    }
    Ok(Ok(()))
}
