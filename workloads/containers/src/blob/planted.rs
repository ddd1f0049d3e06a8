//! Planted bugs: blobs implemented or used wrongly, as published recipes do it or as is easily done by
//! mistake. Calls on blobs with long names are done correctly.

use super::{
    Blob, Data, is_long,
    stored::{places, space},
};
use crate::shared;
use foundationdb_tuple::Bytes as TupleBytes;
use shaketable::{
    prelude::*,
    specimen::Content,
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::blob::{Error, Generation};
use shaketable_tx::strinc;

#[shaketable::planted]
impl Blob {
    /// A write does not clear the previous content.
    #[bug(write, "the official recipe's write")]
    async fn tail_kept(&self, tx: &Tx, written: (usize, usize, Data)) -> Result<Generation, Error> {
        self.write(&flawed_for(tx, written.1, Flaw::Uncleared), written).await
    }

    /// A blob without a chunk is read as a missing blob.
    #[bug(read, "the recipe, which stores nothing but chunks")]
    async fn empty_is_missing(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
    ) -> Result<Option<Content>, Error> {
        let content = self.read(tx, isolation, name).await?;
        Ok(content.filter(|content| is_long(name) || content.length() > 0))
    }

    /// A write of zero bytes returns at once.
    #[bug(write, "the official recipe's write")]
    async fn empty_keeps(&self, tx: &Tx, written: (usize, usize, Data)) -> Result<Generation, Error> {
        let (_, name, data) = written;
        if data.length() > 0 {
            return self.write(tx, written).await;
        }
        let silent = flawed_for(tx, name, Flaw::Unwritten);
        self.write(&flawed_for(&silent, name, Flaw::Uncleared), written).await
    }

    /// A slice scans the blob from its beginning.
    #[bug(read_range, "the recipe's read of a range")]
    async fn whole_read(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
        slice: (u64, u64),
    ) -> Result<Option<Content>, Error> {
        let look = |tx| async move {
            self.scan(&tx, name).await?;
            self.read_range(&tx, isolation, name, slice).await
        };
        self.sparing(tx, isolation, name, slice, look).await
    }

    /// The size is the sum of all chunks.
    #[bug(size, "the recipe's size")]
    async fn size_reads(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: usize,
        name: usize,
    ) -> Result<Option<u64>, Error> {
        let look = |tx| async move {
            self.scan(&tx, name).await?;
            self.size(&tx, isolation, kind, name).await
        };
        self.sparing(tx, isolation, name, (0, 0), look).await
    }

    /// Reads all chunks.
    async fn scan(&self, tx: &Tx, name: usize) -> tx::Result<()> {
        match is_long(name) {
            true => Ok(()),
            false => shared::rows(tx, &places(self.name(name)).1).await.map(drop),
        }
    }

    /// The first batch of a range read is taken for the whole content.
    #[bug(read, "a range that is longer than a batch")]
    async fn first_batch(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
    ) -> Result<Option<Content>, Error> {
        self.read(&flawed_for(tx, name, Flaw::FirstBatch), isolation, name).await
    }

    /// A slice is read at snapshot, whatever isolation was requested.
    #[bug(read_range, "a dropped conflict range")]
    async fn slice_at_snapshot(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: usize,
        slice: (u64, u64),
    ) -> Result<Option<Content>, Error> {
        let isolation = if is_long(name) { isolation } else { Snapshot };
        self.read_range(tx, isolation, name, slice).await
    }

    /// A read that is requested at snapshot is serializable.
    #[bug(size, "an isolation that is not passed on")]
    async fn snapshot_conflicts(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: usize,
        name: usize,
    ) -> Result<Option<u64>, Error> {
        let isolation = if is_long(name) { isolation } else { Serializable };
        self.size(tx, isolation, kind, name).await
    }

    /// Deleting a blob clears every key with the blob's name as its prefix.
    #[bug(delete, "a prefix without an end")]
    async fn name_without_end(&self, tx: &Tx, name: usize) -> Result<bool, Error> {
        let deleted = self.delete(tx, name).await?;
        if deleted && !is_long(name) {
            let all = space().pack(&(1, TupleBytes::from(self.name(name))));
            let begin = &all[..all.len() - 1];
            tx.clear_range(begin, &strinc(begin).unwrap_or_default());
        }
        Ok(deleted)
    }

    /// A truncation beyond the end is refused after the chunks were cleared.
    #[bug(truncate, "a refusal that comes too late")]
    async fn cleared_first(&self, tx: &Tx, name: usize, size: u64) -> Result<Generation, Error> {
        let truncated = self.truncate(tx, name, size).await;
        if let (Err(Error::BeyondEnd { .. }), false) = (&truncated, is_long(name)) {
            let (begin, end) = places(self.name(name)).1.range();
            tx.clear_range(&begin, &end);
        }
        truncated
    }
}

/// The transaction with a flaw, unless the call is on a blob with a long name.
fn flawed_for(tx: &Tx, name: usize, flaw: Flaw) -> Tx {
    if is_long(name) { tx.clone() } else { flawed(tx, flaw, everything()) }
}
