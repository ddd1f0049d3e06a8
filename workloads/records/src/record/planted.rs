//! Planted bugs: the Record Layer used wrongly, with wrong meta-data, or with maintainers that are wrong.
//! `R1` and so on in their sources number the traps of a record layer that they stand for.

use super::{
    Ending, Records, client, layout,
    operations::{Answer, Check, Op, Paging, listed},
    schema::{Mistake, tuple},
    together,
};
use crate::record_shared::layout::{below, part};
use foundationdb_tuple::Element;
use parking_lot::Mutex;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded},
    weakened::weakened,
    workload::Outcome,
};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore},
};
use shaketable_tx::{Database, Db, Env, Tx, once::Session};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two saves that run side by side in one transaction take one unique key", "two futures in one transaction";
    SkipAlike = "skip-alike", "a page of a scan leaves out the entries whose text begins with that of the last one before", "a continuation that skips keys which begin with the last one";
    StatesApart = "states-apart", "stores that are opened in one transaction know the states of indexes apart", "R25: a state that one object changes and another has read before";
    AbsentNotUnique = "absent-not-unique", "a field in a message that is absent is a null that may be there more than once", "R8: the nulls of unique indexes";
    OldAtSnapshot = "old-at-snapshot", "the record that a save replaces is read at snapshot", "R1: entries of a record that was changed at the same time remain";
    NullNotUnique = "null-not-unique", "an absent slot exempts an owner from uniqueness", "R5: the wrong kind of null in a unique index";
    NullForDefault = "null-for-default", "an absent number is indexed as null, where its default is meant", "R9: absent fields and default values";
    ListForFanOut = "list-for-fan-out", "all words of a record are one key, where each of them is meant", "R10: a record without words has an entry of null";
    FanOutForList = "fan-out-for-list", "each word of a record is a key, where all of them are meant", "R11: a list that is flattened";
    ConstantType = "constant-type", "primary keys begin with a constant instead of the record's type", "R13: records of two types replace each other";
    ContextKept = "context-kept", "the record context of the first attempt is used for the retries", "R19: entries and versions that survive a retry";
    Resaved = "resaved", "a transaction without an insert is retried without an operation record", "R22, R30: an unknown result, and a record with a second version, counted twice";
    Reinserted = "reinserted", "a transaction with an insert is retried without an operation record", "R31: an unknown result, and a record that exists already";
    HeaderDeleted = "header-deleted", "deleting all records deletes the header and the states of indexes", "R29: more deleted than the records";
    RefusedCleared = "refused-cleared", "a deletion by more columns than the indexes have is refused after it has removed the records", "a refusal that changes something";
    GroupsRemain = "groups-remain", "deleting all records leaves what the indexes of aggregates have", "R29: less deleted than the records' indexes";
    ZeroKept = "zero-kept", "the row of a group without records remains, where it should be cleared", "R30: the option clearWhenZero is forgotten";
    CountForUpdates = "count-for-updates", "an index of updates counts records", "R30: a count that is not idempotent, taken for one that is";
    LastForMax = "last-for-max", "an index of the greatest value has the last one", "R30: a plain write instead of an atomic operation";
    ContextOutlives = "context-outlives", "the record context is closed after the transaction is committed", "R32: entries by version that were never given to the transaction";
    OwnNotDeleted = "own-not-deleted", "the application's own maintainer ignores deletions", "R33: a maintainer that is not called for every change";
    BytesForText = "bytes-for-text", "texts in the range of a scan are encoded as bytes", "R36: the types of keys are mixed up";
}

impl Planted {
    /// The mistake in the meta-data that this bug is.
    fn mistake(self) -> Option<Mistake> {
        Some(match self {
            Planted::NullNotUnique => Mistake::NullNotUnique,
            Planted::AbsentNotUnique => Mistake::AbsentNotUnique,
            Planted::NullForDefault => Mistake::NullForDefault,
            Planted::ListForFanOut => Mistake::ListForFanOut,
            Planted::FanOutForList => Mistake::FanOutForList,
            Planted::ConstantType => Mistake::ConstantType,
            Planted::ZeroKept => Mistake::ZeroKept,
            Planted::CountForUpdates => Mistake::CountForUpdates,
            _ => return None,
        })
    }
}

impl Records {
    /// With a planted bug, in a configuration in which it can do harm.
    pub(super) fn plant(mut self, planted: Planted) -> Records {
        self.planted = Some(planted);
        self.schema.mistake = planted.mistake();
        self.wipes |= matches!(planted, Planted::HeaderDeleted | Planted::GroupsRemain);
        self.schema.indexed = true;
        match planted {
            Planted::ConstantType | Planted::AbsentNotUnique => self.schema.typed = true,
            Planted::ContextKept => self.schema.versions = true,
            Planted::ContextOutlives => {
                (self.schema.versions, self.ending) = (true, Ending::Drop);
            }
            Planted::StatesApart => {
                (self.disables, self.schema.versions) = (true, false);
                (self.shares, self.reopens, self.opens_first) = (true, true, true);
            }
            Planted::Interleaved => (self.schema.versions, self.shares) = (false, false),
            Planted::RefusedCleared => self.schema.prefix = 0,
            Planted::Reinserted => (self.inserts, self.shelves, self.ids) = (30, 4, 4),
            _ => {}
        }
        self
    }
}

/// The context in which a store is opened: one of its own with the bug, which knows nothing of the others.
pub(super) fn context_of_store(
    config: &Records,
    context: &RecordContext<Tx>,
) -> Result<RecordContext<Tx>, Error> {
    match config.planted {
        Some(Planted::StatesApart) => Ok(RecordContext::within(context.transaction()?.clone())),
        _ => Ok(context.clone()),
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub(super) async fn perform(
    planted: Planted,
    config: &Records,
    store: &RecordStore<Tx>,
    env: &Env,
    op: &Op,
) -> Result<Option<Answer>, Error> {
    let context = store.context();
    Ok(match (planted, op) {
        (Planted::HeaderDeleted, Op::DeleteAll) => {
            let (begin, end) = layout::store().range();
            context.clear_range(&begin, &end)?;
            Some(Answer::Done)
        }
        (Planted::RefusedCleared, Op::DeleteWhere(target, columns)) => {
            match store.delete_where(&tuple(&config.prefix(target, *columns))).await {
                Err(Error::IndexState { .. }) => {
                    let (begin, end) = layout::part_of(part::RECORDS).range();
                    context.clear_range(&begin, &end)?;
                }
                done => done?,
            }
            Some(Answer::Done)
        }
        (Planted::GroupsRemain, Op::DeleteAll) => {
            let entries = config.definitions().into_iter().filter(|index| index.has_entries());
            let spaces = entries.map(|index| layout::index(index.number));
            for space in spaces.chain([layout::part_of(part::RECORDS)]) {
                let (begin, end) = space.range();
                context.clear_range(&begin, &end)?;
            }
            Some(Answer::Done)
        }
        (Planted::BytesForText, Op::ScanIndex(name, span)) => {
            Some(client::entries(config, store, name, span, env, bytes_for_text).await?)
        }
        (Planted::SkipAlike, Op::ScanIndex(name, span)) => {
            let rows = client::rows(config, store, name, span, env, |column| column).await?;
            Some(listed(skipping(span.paging, rows)))
        }
        _ => None,
    })
}

/// The rows of a list without those that its pages skip. Pages have as many rows as they may.
fn skipping(paging: Paging, mut rows: Vec<client::EntryRow>) -> Vec<client::EntryRow> {
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

/// Performs the calls of a transaction with the bug; `None` if the bug does not change them.
pub(super) async fn apply(
    planted: Planted,
    config: &Records,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    if ops.iter().all(Op::is_read_only) {
        return None;
    }
    let db = session.database().clone();
    let (env, stores) = (db.env(), &config.stores());
    let has_insert = ops.iter().any(|op| matches!(op, Op::Save(_, Check::Absent)));
    match planted {
        Planted::OldAtSnapshot => {
            let stores = &config.stores();
            let run = session.apply(|tx| async move {
                let tx = weakened(tx, [below(layout::part_of(part::RECORDS).bytes())]);
                together(config, stores, tx, env, ops).await.map(Recorded)
            });
            Some(specimen::told(run.await))
        }
        Planted::Resaved | Planted::Reinserted if (planted == Planted::Reinserted) == has_insert => {
            let run = db.run(|tx, _| async move { together(config, stores, tx, env, ops).await });
            Some(specimen::ran(run.await))
        }
        Planted::ContextKept => {
            let kept = &Mutex::new(None);
            let run = session.apply(|tx| async move {
                let context = kept.lock().get_or_insert_with(|| RecordContext::within(tx)).clone();
                let answers = client::perform_all(config, stores, &context, env, ops).await?;
                context.flush()?;
                Ok::<_, Error>(Recorded(answers))
            });
            Some(specimen::told(run.await))
        }
        Planted::ContextOutlives => {
            let kept = &Mutex::new(Vec::new());
            let run = session.apply(|tx| async move {
                let context = RecordContext::within(tx);
                kept.lock().push(context.clone());
                client::perform_all(config, stores, &context, env, ops).await.map(Recorded)
            });
            Some(specimen::told(run.await))
        }
        _ => None,
    }
}
