//! Planted bugs: the Record Layer used wrongly, with wrong meta-data, or with maintainers that are wrong.
//! `R1` and so on in their sources number the traps of a record layer that they stand for.

use super::{
    Records, RecordsAnswer, RecordsOp, Target,
    answers::{Listed, listed},
    calls::{Check, Ending, EntryRow, Who},
    indexes::definitions,
    layout,
    plain::Record,
    schema::tuple,
    span::{Paging, Span},
};
use crate::{
    record_shared::layout::{below, part},
    shared,
};
use foundationdb_tuple::{Element, Subspace};
use parking_lot::Mutex;
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded, ran},
    table::Planted,
    weakened::weakened,
};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore},
};

/// How a transaction ended; `None` if the bug does not change it.
type Ended = Option<Outcome<Answer<RecordsAnswer>>>;

#[shaketable::planted]
#[named(
    absent_not_unique,
    "a field in a message that is absent is a null that may be there more than once",
    "R8: the nulls of unique indexes"
)]
#[named(
    null_not_unique,
    "an absent slot exempts an owner from uniqueness",
    "R5: the wrong kind of null in a unique index"
)]
#[named(
    null_for_default,
    "an absent number is indexed as null, where its default is meant",
    "R9: absent fields and default values"
)]
#[named(
    list_for_fan_out,
    "all words of a record are one key, where each of them is meant",
    "R10: a record without words has an entry of null"
)]
#[named(
    fan_out_for_list,
    "each word of a record is a key, where all of them are meant",
    "R11: a list that is flattened"
)]
#[named(
    constant_type,
    "primary keys begin with a constant instead of the record's type",
    "R13: records of two types replace each other"
)]
#[named(
    zero_kept,
    "the row of a group without records remains, where it should be cleared",
    "R30: the option clearWhenZero is forgotten"
)]
#[named(
    count_for_updates,
    "an index of updates counts records",
    "R30: a count that is not idempotent, taken for one that is"
)]
#[named(
    last_for_max,
    "an index of the greatest value has the last one",
    "R30: a plain write instead of an atomic operation"
)]
#[named(
    own_not_deleted,
    "the application's own maintainer ignores deletions",
    "R33: a maintainer that is not called for every change"
)]
impl Records {
    /// A page of a scan leaves out the entries whose text begins with that of the last one before.
    #[bug(scan_index, "a continuation that skips keys which begin with the last one")]
    async fn skip_alike(
        &self,
        tx: &Tx,
        env: &Env,
        index: &str,
        span: &Span<Record>,
    ) -> Result<Listed, Error> {
        Ok(listed(skipping(span.paging, self.rows(tx, env, (index, span), |column| column).await?)))
    }

    /// Stores that are opened in one transaction know the states of indexes apart.
    #[bug(*, "R25: a state that one object changes and another has read before")]
    async fn states_apart(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        // An upgrade leaves the stores behind that were opened before it.
        if ops.iter().all(Records::is_read_only) || ops.iter().any(|op| Who::of(op) == Who::Upgrader) {
            return None;
        }
        let env = &session.database().env().clone();
        let run = session.apply(|tx| async move {
            let mut stores = Vec::with_capacity(ops.len());
            for op in ops {
                let own = RecordContext::within(tx.clone());
                stores.push(self.open(&own, Who::of(op)).await?);
            }
            self.on_stores(None, &tx, env, ops.iter().zip(stores)).await.map(Recorded)
        });
        Some(concluded(run.await))
    }

    /// The record that a save replaces is read at snapshot.
    #[bug(*, "R1: entries of a record that was changed at the same time remain")]
    async fn old_at_snapshot(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if ops.iter().all(Records::is_read_only) {
            return None;
        }
        let env = &session.database().env().clone();
        let run = session.apply(|tx| async move {
            let tx = weakened(tx, [below(layout::part_of(part::RECORDS).bytes())]);
            self.together(None, tx, env, ops).await.map(Recorded)
        });
        Some(concluded(run.await))
    }

    /// The record context of the first attempt is used for the retries.
    #[bug(*, "R19: entries and versions that survive a retry")]
    async fn context_kept(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if ops.iter().all(Records::is_read_only) {
            return None;
        }
        let (env, kept) = (&session.database().env().clone(), &Mutex::new(None));
        let run = session.apply(|tx| async move {
            let context = kept.lock().get_or_insert_with(|| RecordContext::within(tx)).clone();
            let answers = self.in_context(None, &context, env, ops).await?;
            context.flush()?;
            Ok::<_, Error>(Recorded(answers))
        });
        Some(concluded(run.await))
    }

    /// A transaction without an insert is retried without an operation record.
    #[bug(*, "R22, R30: an unknown result, and a record with a second version, counted twice")]
    async fn resaved(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if has_insert(ops) { None } else { self.unrecorded(session, ops).await }
    }

    /// A transaction with an insert is retried without an operation record.
    #[bug(*, "R31: an unknown result, and a record that exists already")]
    async fn reinserted(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if has_insert(ops) { self.unrecorded(session, ops).await } else { None }
    }

    /// Deleting all records deletes the header and the states of indexes.
    #[bug(delete_all, "R29: more deleted than the records")]
    async fn header_deleted(&self, tx: &Tx) -> Result<(), Error> {
        self.on_store(tx, Who::Writer, |store| async move { clear(&store, [layout::store()]) }).await
    }

    /// A deletion by more columns than the indexes have is refused after it has removed the records.
    #[bug(delete_where, "a refusal that changes something")]
    async fn refused_cleared(&self, tx: &Tx, target: &Target, columns: usize) -> Result<(), Error> {
        let prefix = tuple(&self.schema.prefix(target, columns));
        self.on_store(tx, Who::Writer, |store| async move {
            match store.delete_where(&prefix).await {
                Err(Error::IndexState { .. }) => clear(&store, [layout::part_of(part::RECORDS)]),
                done => done,
            }
        })
        .await
    }

    /// Deleting all records leaves what the indexes of aggregates have.
    #[bug(delete_all, "R29: less deleted than the records' indexes")]
    async fn groups_remain(&self, tx: &Tx) -> Result<(), Error> {
        let entries = definitions(&self.schema).into_iter().filter(|index| index.has_entries());
        let spaces: Vec<_> = entries.map(|index| layout::index(index.number)).collect();
        self.on_store(tx, Who::Writer, |store| async move {
            clear(&store, spaces.into_iter().chain([layout::part_of(part::RECORDS)]))
        })
        .await
    }

    /// The record context is closed after the transaction is committed.
    #[bug(*, "R32: entries by version that were never given to the transaction")]
    async fn context_outlives(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if ops.iter().all(Records::is_read_only) {
            return None;
        }
        let (env, kept) = (&session.database().env().clone(), &Mutex::new(Vec::new()));
        let run = session.apply(|tx| async move {
            let context = RecordContext::within(tx);
            kept.lock().push(context.clone());
            self.in_context(None, &context, env, ops).await.map(Recorded)
        });
        Some(concluded(run.await))
    }

    /// Texts in the range of a scan are encoded as bytes.
    #[bug(scan_index, "R36: the types of keys are mixed up")]
    async fn bytes_for_text(
        &self,
        tx: &Tx,
        env: &Env,
        index: &str,
        span: &Span<Record>,
    ) -> Result<Listed, Error> {
        Ok(listed(self.rows(tx, env, (index, span), bytes_for_text).await?))
    }

    /// Changes what was drawn so that the bug can do harm. The general ones are in the ordinary way of doing
    /// a transaction, which is then the only one.
    pub(super) fn suit(&mut self, bug: &str) {
        self.schema.indexed = true;
        self.schema.mistake = shared::named(bug);
        match bug {
            "constant-type" | "absent-not-unique" => self.schema.typed = true,
            "context-kept" => self.schema.versions = true,
            "context-outlives" => (self.schema.versions, self.ending) = (true, Ending::Drop),
            "states-apart" => {
                (self.disables, self.schema.versions) = (true, false);
                (self.shares, self.reopens, self.opens_first) = (true, true, true);
            }
            "refused-cleared" => self.schema.prefix = 0,
            "reinserted" => (self.inserts, self.shelves, self.ids) = (30, 4, 4),
            "header-deleted" | "groups-remain" => self.wipes = true,
            _ if Self::BUGS.iter().all(|own| own.name != bug) => {
                (self.schema.versions, self.shares) = (false, false)
            }
            _ => {}
        }
    }

    /// Does calls that write in a retry loop without an operation record.
    async fn unrecorded(&self, session: &mut Session<Db>, ops: &[RecordsOp]) -> Ended {
        if ops.iter().all(Records::is_read_only) {
            return None;
        }
        let db = session.database().clone();
        let env = db.env();
        Some(ran(db.run(|tx, _| async move { self.together(None, tx, env, ops).await }).await))
    }
}

fn has_insert(ops: &[RecordsOp]) -> bool {
    ops.iter().any(|op| matches!(op, RecordsOp::save { check: Check::Absent, .. }))
}

/// Clears these subspaces.
fn clear(store: &RecordStore<Tx>, spaces: impl IntoIterator<Item = Subspace>) -> Result<(), Error> {
    spaces.into_iter().try_for_each(|space| {
        let (begin, end) = space.range();
        store.context().clear_range(&begin, &end)
    })
}

/// The rows of a list without those that its pages skip. Pages have as many rows as they may.
fn skipping(paging: Paging, mut rows: Vec<EntryRow>) -> Vec<EntryRow> {
    let (Paging::Rows(most) | Paging::Scanned(most)) = paging else { return rows };
    let mut at = most.max(1);
    while at < rows.len() {
        let last = rows[at - 1].0.clone();
        while at < rows.len() && rows[at].0 != last && rows[at].0.starts_with(&last) {
            rows.remove(at);
        }
        at += most.max(1);
    }
    rows
}

/// A column of the end of a range, with bytes instead of a text.
fn bytes_for_text(column: Element<'static>) -> Element<'static> {
    match column {
        Element::String(text) => Element::Bytes(text.into_owned().into_bytes().into()),
        other => other,
    }
}
