//! The claim that a look reads no chunk which it does not need.

use super::{Blob, is_long, stored::places};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, unpack};
use shaketable_layers::blob::Error;
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, Tx, always, strinc,
};
use std::future::Future;

impl Blob {
    /// Does a look at a slice of a blob, and claims that it reads no chunk outside of that. This is checked
    /// only for the first read of a blob in its transaction, because the conflict ranges of all reads add up.
    pub(super) async fn sparing<A, F: Future<Output = Result<A, Error>>>(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
        (start, length): (u64, u64),
        look: impl FnOnce(Tx) -> F,
    ) -> Result<A, Error> {
        // Conflict ranges of keys beyond the size limit are not reported.
        let is_checked = !is_long(name) && isolation == Serializable;
        let Some(end) = start.checked_add(length).filter(|_| is_checked) else {
            return look(tx.clone()).await;
        };
        let tx = tx.writing().await;
        let (manifest, content) = places(self.name(name));
        let sizes = sizes(&tx, &manifest).await?;
        let is_first = conflicts(&tx, &content).await?.is_empty();
        let answer = look(tx.clone()).await?;
        let Some((size, chunk)) = sizes.filter(|_| is_first) else { return Ok(answer) };
        let (at, end) = (|at: u64| content.pack(&(at,)), end.min(size));
        for key in conflicts(&tx, &content).await? {
            let needed = start < end && at(start - start % chunk)[..] <= key[..] && key[..] <= at(end)[..];
            always!(
                needed,
                "the bytes from {start} to {end}, in chunks of {chunk}, need no chunk at {}",
                key.escape_ascii()
            );
        }
        Ok(answer)
    }
}

/// The size of a blob and the size of its chunks, read at snapshot so that this read does not conflict.
async fn sizes(tx: &Tx, manifest: &[u8]) -> tx::Result<Option<(u64, u64)>> {
    let manifest = tx.get(manifest, Snapshot).await?;
    let sizes = |value: Bytes| {
        let parts: (u64, u64, i64, i64, TupleBytes<'_>) = unpack(&value).ok()?;
        Some((parts.0, parts.1))
    };
    Ok(manifest.and_then(sizes))
}

const READ: &[u8] = b"\xff\xff/transaction/read_conflict_range/";

/// The keys below `space` at which a range begins or ends that this transaction has read serializably so far.
async fn conflicts(tx: &Tx, space: &Subspace) -> tx::Result<Vec<Bytes>> {
    // Everything with this prefix, because encoded integers may begin with 0xff, where the range of a
    // subspace ends.
    let end = strinc(space.bytes()).unwrap_or_else(|| vec![0xff].into());
    let range = RangeOption::new([READ, space.bytes()].concat(), [READ, &end].concat());
    let rows = tx.get_range_all(range, Serializable).await?;
    Ok(rows.into_iter().map(|row| row.key.slice(READ.len()..)).collect())
}
