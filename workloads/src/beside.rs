//! Rows that stand right beside a layer's keys. No call may show them or touch them: a range that reaches too
//! far, or that is cut by a prefix instead of by a tuple, does.

use shaketable_layers::tx::{self, Database, Isolation::Serializable, Transaction};

const VALUE: &[u8] = b"beside";

/// The keys just outside of the subspace with this prefix: the prefix itself, which no tuple below it has, the
/// end of its range, and what else begins so.
pub(crate) fn of(prefix: &[u8]) -> Vec<Vec<u8>> {
    [&b""[..], b"\xff", b"\xff\xff"].map(|tail| [prefix, tail].concat()).to_vec()
}

/// Writes the rows.
pub(crate) async fn plant<D: Database>(db: &D, keys: &[Vec<u8>]) -> tx::Result<()> {
    let planted = db.run(|tx, _| async move {
        keys.iter().for_each(|key| tx.set(key, VALUE));
        Ok::<_, tx::Error>(())
    });
    planted.await.map_err(|e| e.error)
}

/// Whether they stand as they were written; otherwise which does not.
pub(crate) async fn check<T: Transaction>(tx: &T, keys: &[Vec<u8>]) -> tx::Result<Result<(), String>> {
    for key in keys {
        if tx.get(key, Serializable).await?.as_deref() != Some(VALUE) {
            return Ok(Err(format!("the row beside the layer at \"{}\" was changed", key.escape_ascii())));
        }
    }
    Ok(Ok(()))
}
