//! What becomes of a store that is opened with later meta-data.

use super::{Part, RecordStore};
use crate::{
    cursor::{Continuation, Cursor, Limits, Next, Spent, TupleRange},
    error::Error,
    index::{IndexAt, IndexState},
    metadata::Index,
};
use shaketable_layers::{
    reachable, sometimes,
    tx::{Isolation, RangeOption, Transaction},
};
use std::sync::Arc;

/// What becomes of an index that a store does not have yet, or has in an older form, when the store is opened. In a store
/// without records it becomes readable. In any other it must be built: until then it is not scanned, and queries do not
/// use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebuildPolicy {
    /// It is disabled: saves do not write it. An online build makes it write-only first.
    #[default]
    Disable,
    /// It is write-only: saves write it, and an online build is expected.
    WriteOnly,
    /// It is built at once, in the transaction that opens the store, if there are at most this many records, which is the
    /// default of Java's Record Layer, with 200. Otherwise it is disabled.
    Inline(usize),
}

/// Brings a store up to its meta-data, from this version of it.
pub(super) async fn upgrade<T: Transaction>(
    store: &RecordStore<T>,
    before: i32,
    policy: RebuildPolicy,
) -> Result<(), Error> {
    reachable!("record: a store is opened with later meta-data");
    let meta_data = store.meta_data().clone();
    for former in meta_data.former_indexes().iter().filter(|former| former.removed_version > before) {
        reachable!("record: what a removed index had is cleared");
        store.clear_subspace_key(former.subspace_key)?;
        if meta_data.index(&former.name).is_none() {
            store.set_index_state(&former.name, IndexState::Readable)?;
        }
    }
    let changed: Vec<_> =
        meta_data.indexes().filter(|index| index.last_modified_version > before).cloned().collect();
    if changed.is_empty() {
        return Ok(());
    }
    for index in &changed {
        store.clear_index(&index.name)?;
    }
    let records = store.keyspace().part(Part::Records);
    let first = RangeOption::from(records.range()).limit(1);
    let is_empty =
        store.context().transaction()?.get_range_all(first, Isolation::Serializable).await?.is_empty();
    let inline = match policy {
        _ if is_empty => true,
        RebuildPolicy::Inline(most) => build_inline(store, &changed, most).await?,
        _ => false,
    };
    for index in &changed {
        match (inline, policy) {
            (true, _) => drop(store.finish_index(&index.name).await?),
            (false, RebuildPolicy::WriteOnly) => store.set_index_state(&index.name, IndexState::WriteOnly)?,
            (false, _) => store.set_index_state(&index.name, IndexState::Disabled)?,
        }
    }
    Ok(())
}

/// Builds indexes that are empty, unless there are more records than this. Returns whether it did.
async fn build_inline<T: Transaction>(
    store: &RecordStore<T>,
    indexes: &[Arc<Index>],
    most: usize,
) -> Result<bool, Error> {
    let spent = Spent::new(Limits::default());
    let mut records = Vec::new();
    let mut scan = store.scan_records(TupleRange::all(), false, Continuation::Start, &spent)?;
    while let Next::Row(record, _) = scan.next().await? {
        if records.len() == most {
            return Ok(false);
        }
        records.push(record);
    }
    sometimes!(!records.is_empty(), "record: indexes are built in the transaction that opens the store");
    for index in indexes {
        // Violations of uniqueness are noted instead of refused.
        store.set_index_state(&index.name, IndexState::WriteOnly)?;
        let (at, maintainer) = (IndexAt { store, index }, store.maintainer(index)?);
        for record in &records {
            maintainer.check(at, None, Some(record)).await?;
            maintainer.update(at, None, Some(record)).await?;
        }
    }
    Ok(true)
}
