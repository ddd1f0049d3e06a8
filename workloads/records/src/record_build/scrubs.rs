//! Planted bugs: scrubs done wrongly.

use super::{
    Answer, RecordBuild, Scrubbing,
    client::{built, found_rows, row_key},
    layout::{definitions, space, stores},
    plain::{Definition, Kept},
    rows::Stored,
};
use crate::record_shared::layout::{part, state};
use shaketable::workload::Outcome;
use shaketable_record::error::Error;
use shaketable_tx::{Database, RunError, Transaction};
use std::collections::BTreeSet;

/// A scrub for missing entries that writes them, and nothing else.
pub(super) async fn repaired_in_part<D: Database>(
    workload: &RecordBuild,
    db: &D,
    of: &Scrubbing,
) -> Outcome<Answer> {
    let scrubbed = async {
        let stores = stores();
        let name = &definitions()[of.index].name;
        let report = stores.scrub_index(db, name, of.scrub(), false, of.limit).await?;
        let found = found_rows(&report);
        let repaired = &found;
        db.run(|tx, _| async move {
            repaired.iter().for_each(|row| tx.set(&row_key(of.index, part::INDEXES, row), b""));
            Ok::<_, Error>(())
        })
        .await?;
        Ok(Some(found))
    };
    told(workload, db, of.index, scrubbed.await).await
}

/// A scrub that reads the entries, their records, and what it removes, in three transactions.
pub(super) async fn apart<D: Database>(workload: &RecordBuild, db: &D, index: usize) -> Outcome<Answer> {
    let definition = &definitions()[index];
    let scrubbed = async {
        let read = || db.run(|tx, _| async move { Ok::<_, Error>(Stored::read(&tx, &space()).await?) });
        let Ok(stored) = read().await? else { return Ok(None) };
        if !definition.has_entries() || stored.state(&definition.name) != state::READABLE {
            return Ok(None);
        }
        let entries: Vec<Vec<u8>> = stored.rows(part::INDEXES, definition.number).keys().cloned().collect();
        let Ok(stored) = read().await? else { return Ok(None) };
        let right = needed(definition, &stored, usize::MAX);
        let found: Vec<Vec<u8>> = entries.into_iter().filter(|row| !right.contains(row)).collect();
        let removed = &found;
        db.run(|tx, _| async move {
            removed.iter().for_each(|row| tx.clear(&row_key(index, part::INDEXES, row)));
            Ok::<_, Error>(())
        })
        .await?;
        Ok(Some(found))
    };
    told(workload, db, index, scrubbed.await).await
}

/// A scrub in one transaction that knows of this many entries of a record, and that repairs entries and
/// nothing else.
pub(super) async fn of_rows<D: Database>(
    workload: &RecordBuild,
    db: &D,
    of: &Scrubbing,
    most: usize,
) -> Outcome<Answer> {
    let definition = &definitions()[of.index];
    let scrubbed = db.run(|tx, _| async move {
        let Ok(stored) = Stored::read(&tx, &space()).await? else { return Ok(None) };
        if ![state::READABLE, state::PENDING].contains(&stored.state(&definition.name)) {
            return Ok(None);
        }
        let entries = stored.rows(part::INDEXES, definition.number).keys().cloned().collect();
        let right = needed(definition, &stored, most);
        let (some, others) = if of.dangling { (&entries, &right) } else { (&right, &entries) };
        let found: Vec<Vec<u8>> = some.difference(others).cloned().collect();
        for row in found.iter().filter(|_| of.repair) {
            let key = row_key(of.index, part::INDEXES, row);
            if of.dangling { tx.clear(&key) } else { tx.set(&key, b"") }
        }
        Ok::<_, Error>(Some(found))
    });
    told(workload, db, of.index, scrubbed.await).await
}

/// The entries that records need: the first of each, up to this many.
fn needed(definition: &Definition, stored: &Stored, most: usize) -> BTreeSet<Vec<u8>> {
    let of = |kept: &Kept| definition.entries(kept).into_iter().take(most);
    stored.records.values().flat_map(of).collect()
}

/// The outcome of a scrub that has found these rows, or none because the index is not scrubbed.
async fn told<D: Database>(
    workload: &RecordBuild,
    db: &D,
    index: usize,
    scrubbed: Result<Option<Vec<Vec<u8>>>, RunError<Error>>,
) -> Outcome<Answer> {
    match scrubbed {
        Ok(Some(found)) => workload.found(db, index, found).await,
        Ok(None) | Err(RunError { error: Error::IndexState { .. }, .. }) => {
            Outcome::Answered(Answer::Unscrubbed)
        }
        Err(e) => built(Some(Err(e))),
    }
}
