//! A planted bug: a scrub in several transactions.

use super::{
    Answer, RecordBuild,
    client::row_key,
    layout::{definitions, space},
    rows::Stored,
};
use crate::record_shared::layout::{part, state};
use shaketable::workload::Outcome;
use shaketable_record::error::Error;
use shaketable_tx::{Database, Db, Transaction};
use std::collections::BTreeSet;

/// A scrub that reads the entries, their records, and what it removes, in three transactions.
pub(super) async fn apart(workload: &RecordBuild, db: &Db, index: usize) -> Outcome<Answer> {
    let definition = &definitions()[index];
    let scrubbed = async {
        let read = || db.run(|tx, _| async move { Ok::<_, Error>(Stored::read(&tx, &space()).await?) });
        let Ok(stored) = read().await? else { return Ok(None) };
        if !definition.has_entries() || stored.state(&definition.name) != state::READABLE {
            return Ok(None);
        }
        let entries: Vec<Vec<u8>> = stored.rows(part::INDEXES, definition.number).keys().cloned().collect();
        let Ok(stored) = read().await? else { return Ok(None) };
        let right: BTreeSet<_> = stored.records.values().flat_map(|kept| definition.entries(kept)).collect();
        let found: Vec<Vec<u8>> = entries.into_iter().filter(|row| !right.contains(row)).collect();
        let removed = &found;
        db.run(|tx, _| async move {
            removed.iter().for_each(|row| tx.clear(&row_key(index, part::INDEXES, row)));
            Ok::<_, Error>(())
        })
        .await?;
        Ok(Some(found))
    };
    workload.scrubbed(db, index, scrubbed.await).await
}
