//! What becomes of a store that is opened with later meta-data.

use super::{OnTorn, Part, RecordStore};
use crate::{
    cursor::{Continuation, Cursor, CursorExt, Limits, Next, Page, Spent, Stop, TupleRange},
    error::Error,
    index::{IndexAt, IndexState},
    metadata::Index,
};
use shaketable_tx::{Transaction, reachable, sometimes};
use std::sync::Arc;

/// What becomes of an index that a store does not have yet, or has in an older form, when the store is
/// opened. In a store without records it becomes readable. In any other it must be built: until then it is
/// not scanned, and queries do not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebuildPolicy {
    /// It is disabled: saves do not write it. An online build makes it write-only first.
    #[default]
    Disable,
    /// It is write-only: saves write it, and an online build is expected.
    WriteOnly,
    /// It is built at once, in the transaction that opens the store, if there are at most this many records,
    /// which is the default of Java's Record Layer, with 200, and if neither the records nor their entries
    /// are too much for one transaction: at most 4 MB. Otherwise it is disabled.
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
    let (changed, kept): (Vec<_>, Vec<_>) =
        meta_data.indexes().cloned().partition(|index| index.last_modified_version > before);
    for index in kept.iter().filter(|index| !index.unique) {
        no_longer_unique(store, index)?;
    }
    for index in &changed {
        store.clear_index(&index.name)?;
    }
    // No record of a type can be there that the store's meta-data does not have.
    let is_new = |index: &Arc<Index>| {
        let mut types = meta_data.record_types().filter(|of| meta_data.is_index_of(index, &of.name));
        types.all(|of| of.since_version > before)
    };
    let (complete, changed): (Vec<_>, Vec<_>) = changed.into_iter().partition(is_new);
    for index in &complete {
        reachable!("record: an index on new types only is readable at once");
        store.finish_index(&index.name).await?;
    }
    if changed.is_empty() {
        return Ok(());
    }
    // Not a read of the range: the transaction may have written versions in it, which cannot be read.
    let spent = Spent::new(Limits { scanned: Some(1), ..Limits::default() });
    let mut records =
        store.scan_records_or_torn(TupleRange::all(), false, Continuation::Start, &spent, OnTorn::Skip)?;
    let is_empty = !matches!(records.next().await?, Next::Row(..));
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

/// What is known of violations of an index's uniqueness does not matter any more if the index is not unique.
fn no_longer_unique<T: Transaction>(store: &RecordStore<T>, index: &Arc<Index>) -> Result<(), Error> {
    let state = store.index_state(&index.name)?;
    if !matches!(state, IndexState::WriteOnly | IndexState::ReadableUniquePending) {
        return Ok(());
    }
    let violations = store.keyspace().of_index(Part::Violations, index);
    store.context().clear_range(violations.bytes(), &violations.range().1)?;
    if state == IndexState::ReadableUniquePending {
        store.set_index_state(&index.name, IndexState::Readable)?;
    }
    Ok(())
}

/// The bytes of records that are read to build indexes where the store is opened, and the size of the
/// transaction until which their entries are written.
const INLINE_BYTES: usize = 4_000_000;

/// Builds indexes that are empty, unless there are more records than this, or too many bytes. Returns whether
/// it did.
async fn build_inline<T: Transaction>(
    store: &RecordStore<T>,
    indexes: &[Arc<Index>],
    most: usize,
) -> Result<bool, Error> {
    let limits =
        Limits { scanned: Some(most.saturating_add(1)), bytes: Some(INLINE_BYTES), ..Limits::default() };
    let scan = store.scan_records(TupleRange::all(), false, Continuation::Start, &Spent::new(limits))?;
    let Page { rows: records, stop, .. } = scan.to_list().await?;
    if stop != Stop::Exhausted || records.len() > most {
        return Ok(false);
    }
    sometimes!(!records.is_empty(), "record: indexes are built in the transaction that opens the store");
    for index in indexes {
        // Violations of uniqueness are noted instead of refused.
        store.set_index_state(&index.name, IndexState::WriteOnly)?;
        let (at, maintainer) = (IndexAt { store, index }, store.maintainer(index)?);
        for record in &records {
            let size = store.context().transaction()?.get_approximate_size().await?;
            if usize::try_from(size).is_ok_and(|size| size > INLINE_BYTES) {
                indexes.iter().try_for_each(|index| store.clear_index(&index.name))?;
                return Ok(false);
            }
            maintainer.check(at, None, Some(record)).await?;
            maintainer.update(at, None, Some(record)).await?;
        }
    }
    Ok(true)
}
