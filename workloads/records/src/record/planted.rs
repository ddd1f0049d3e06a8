//! Planted bugs: the Record Layer used wrongly, with wrong meta-data, or with maintainers that are wrong.
//! `R1` and so on in their sources number the traps of a record layer that they stand for.

use super::{
    Ending, Records, client,
    client::{Stores, plain, save},
    indexes::{Definition, definitions},
    layout,
    operations::{Answer, Check, End, Op, Paging, Target, listed},
    schema::{Mistake, tuple},
    together,
};
use crate::record_shared::layout::{Header, below, header_key, part, suffix};
use foundationdb_tuple::Element;
use parking_lot::Mutex;
use prost::Message;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded},
    weakened::{Span, weakened},
    workload::Outcome,
};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore, SaveVersion},
};
use shaketable_tx::{Database, Env, Transaction, once::Session};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two saves that run side by side in one transaction take one unique key", "two futures in one transaction";
    FirstEntryRemoved = "first-entry-removed", "of several entries that a record loses in an index the first one is removed", "several entries a record";
    LastEntryLost = "last-entry-lost", "of several entries that a record gets in an index the last one is not written", "the last element of a list";
    FirstKeyCounted = "first-key-counted", "a record with several keys is counted once", "several keys a record";
    SkipAlike = "skip-alike", "a page of a scan leaves out the entries whose text begins with that of the last one before", "a continuation that skips keys which begin with the last one";
    EntriesCut = "entries-cut", "a list of an index ends after ten rows", "a limit that tests never reach";
    RowsTorn = "rows-torn", "a deletion by one column more than primary keys have clears a row of a record", "the columns of a row's key, taken for those of a primary key";
    StatesApart = "states-apart", "stores that are opened in one transaction know the states of indexes apart", "R25: a state that one object changes and another has read before";
    AbsentNotUnique = "absent-not-unique", "a field in a message that is absent is a null that may be there more than once", "R8: the nulls of unique indexes";
    MoreTypes = "more-types", "an aggregate of the records of one type is evaluated with an index on more types", "R35: an index that nearly fits";
    UserForgotten = "user-forgotten", "who opens the store without a version of the application clears the one that it has", "a header of which somebody knows a part";
    OtherColumn = "other-column", "an aggregate of one column is evaluated with an index of the same kind on another column", "R35: an index that nearly fits";
    RefusedCleared = "refused-cleared", "a deletion by more columns than the indexes have is refused after it has removed the records", "a refusal that changes something";
    OldAtSnapshot = "old-at-snapshot", "the record that a save replaces is read at snapshot", "R1: entries of a record that was changed at the same time remain";
    OldForgotten = "old-forgotten", "a save writes new index entries and does not remove the old ones", "R1: the old record is not read";
    ClearedLast = "cleared-last", "the old index entries are cleared after the new ones are set", "R1: an entry that stays is lost";
    OtherTypeStays = "other-type-stays", "a record that replaces one of another type leaves that one's index entries", "R3: indexes of the old record's type are not updated";
    NullNotUnique = "null-not-unique", "an absent slot exempts an owner from uniqueness", "R5: the wrong kind of null in a unique index";
    NullCompared = "null-compared", "keys of a unique index are compared unless all of their columns are null", "R5: one null of several columns";
    UniqueAtSnapshot = "unique-at-snapshot", "the entries of a unique index are read at snapshot", "R5: two saves of the same key at the same time";
    NullForDefault = "null-for-default", "an absent number is indexed as null, where its default is meant", "R9: absent fields and default values";
    ListForFanOut = "list-for-fan-out", "all words of a record are one key, where each of them is meant", "R10: a record without words has an entry of null";
    FanOutForList = "fan-out-for-list", "each word of a record is a key, where all of them are meant", "R11: a list that is flattened";
    ConstantType = "constant-type", "primary keys begin with a constant instead of the record's type", "R13: records of two types replace each other";
    VersionTwice = "version-twice", "a record that is saved twice in a transaction has two entries by version", "R19: the entry of an incomplete version is not taken back by a save";
    VersionUndead = "version-undead", "a record that is saved and deleted in a transaction has an entry by version", "R19: the entry of an incomplete version is not taken back by a delete";
    ContextKept = "context-kept", "the record context of the first attempt is used for the retries", "R19: entries and versions that survive a retry";
    Resaved = "resaved", "a transaction without an insert is retried without an operation record", "R22, R30: an unknown result, and a record with a second version, counted twice";
    Reinserted = "reinserted", "a transaction with an insert is retried without an operation record", "R31: an unknown result, and a record that exists already";
    HeaderAtSnapshot = "header-at-snapshot", "the header and the states of indexes are read at snapshot", "R25: a save that misses a change of the meta-data";
    OlderOpens = "older-opens", "a client with older meta-data overwrites the header of the later one", "R25: older meta-data opens a newer store";
    BuiltEmpty = "built-empty", "a new index of a store with records is readable without having been built", "R26: an index that is readable and not complete";
    HeaderDeleted = "header-deleted", "deleting all records deletes the header and the states of indexes", "R29: more deleted than the records";
    GroupsRemain = "groups-remain", "deleting all records leaves what the indexes of aggregates have", "R29: less deleted than the records' indexes";
    GroupsStay = "groups-stay", "deleting by the first columns of primary keys leaves what the indexes of aggregates have", "R29: an index forgotten on one path";
    CountedAgain = "counted-again", "a save does not subtract what the old record was counted with", "R30: an update counts twice";
    ZeroKept = "zero-kept", "the row of a group without records remains, where it should be cleared", "R30: the option clearWhenZero is forgotten";
    CountForUpdates = "count-for-updates", "an index of updates counts records", "R30: a count that is not idempotent, taken for one that is";
    LastForMax = "last-for-max", "an index of the greatest value has the last one", "R30: a plain write instead of an atomic operation";
    ContextOutlives = "context-outlives", "the record context is closed after the transaction is committed", "R32: entries by version that were never given to the transaction";
    OwnNotDeleted = "own-not-deleted", "the application's own maintainer ignores deletions", "R33: a maintainer that is not called for every change";
    BytesForText = "bytes-for-text", "texts in the range of a scan are encoded as bytes", "R36: the types of keys are mixed up";
    KeyUnchecked = "key-unchecked", "the length of index entries is not checked", "R37: a key over FoundationDB's limit";
    ScoreKept = "score-kept", "the ranked set has the old score of a record that was changed", "an index of ranks that is maintained as one of values";
    PartsStay = "parts-stay", "a record that needs fewer rows than the one before leaves the last ones", "split records: a part of the old record remains";
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

    /// The parts of the store that are read at snapshot.
    fn read_at_snapshot(self, config: &Records) -> Vec<Span> {
        match self {
            Planted::OldAtSnapshot => vec![below(layout::part_of(part::RECORDS).bytes())],
            Planted::HeaderAtSnapshot => {
                [part::HEADER, part::STATES].map(|part| below(layout::part_of(part).bytes())).into()
            }
            Planted::UniqueAtSnapshot => {
                let all = definitions(&config.schema);
                let unique = all.iter().filter(|index| index.unique);
                unique.map(|index| below(layout::index(index.number).bytes())).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Records {
    /// With a planted bug, in a configuration in which it can do harm.
    pub(super) fn plant(mut self, planted: Planted) -> Records {
        self.planted = Some(planted);
        self.schema.mistake = planted.mistake();
        self.wipes |= matches!(planted, Planted::HeaderDeleted | Planted::GroupsRemain);
        self.large |= planted == Planted::PartsStay;
        self.schema.splits |= planted == Planted::PartsStay;
        self.schema.indexed = planted != Planted::RowsTorn;
        match planted {
            Planted::ConstantType | Planted::AbsentNotUnique => self.schema.typed = true,
            Planted::OtherTypeStays => {
                self.schema.typed = false;
                self.schema.prefix = self.schema.prefix.min(1);
            }
            Planted::VersionTwice | Planted::VersionUndead | Planted::ContextKept => {
                self.schema.versions = true
            }
            Planted::ContextOutlives => {
                (self.schema.versions, self.ending) = (true, Ending::Drop);
            }
            Planted::StatesApart => {
                (self.disables, self.schema.versions) = (true, false);
                (self.shares, self.reopens, self.opens_first) = (true, true, true);
            }
            Planted::UserForgotten => {
                (self.created, self.user, self.forgets) = (true, Some(300), true);
            }
            Planted::HeaderAtSnapshot => (self.disables, self.upgrades) = (true, true),
            Planted::OlderOpens | Planted::BuiltEmpty => self.upgrades = true,
            Planted::GroupsStay => self.schema.prefix = 1,
            Planted::Interleaved => (self.schema.versions, self.shares) = (false, false),
            Planted::RefusedCleared => self.schema.prefix = 0,
            Planted::Reinserted => (self.inserts, self.shelves, self.ids) = (30, 4, 4),
            _ => {}
        }
        self
    }
}

/// Opens the store with the first meta-data, although it was opened with the later one.
pub(super) async fn open_older<T: Transaction>(
    config: &Records,
    [first, _]: &Stores<T>,
    context: &RecordContext<T>,
) -> Result<RecordStore<T>, Error> {
    let header = Header { user: config.user, ..Header::of(config.schema.version(false)) };
    context.transaction()?.set(&header_key(&layout::store()), &header.encode_to_vec());
    first.open(context).await
}

/// Writes the header of a store that was opened with this version of the meta-data, and without a version of
/// the application.
pub(super) fn forget_user<T: Transaction>(context: &RecordContext<T>, version: i32) -> Result<(), Error> {
    if version > 0 {
        let header = Header { user: None, ..Header::of(version) };
        context.transaction()?.set(&header_key(&layout::store()), &header.encode_to_vec());
    }
    Ok(())
}

/// The context in which a store is opened: one of its own with the bug, which knows nothing of the others.
pub(super) fn context_of_store<T: Transaction>(
    config: &Records,
    context: &RecordContext<T>,
) -> Result<RecordContext<T>, Error> {
    match config.planted {
        Some(Planted::StatesApart) => Ok(RecordContext::within(context.transaction()?.clone())),
        _ => Ok(context.clone()),
    }
}

/// Clears a row of a record, if the columns are those of its key.
fn tear<T: Transaction>(
    config: &Records,
    context: &RecordContext<T>,
    target: &Target,
    columns: usize,
) -> Result<(), Error> {
    let primary_key = config.primary_key(target);
    if columns > primary_key.len() {
        context.transaction()?.clear(&layout::row_key(&primary_key, suffix::WHOLE));
    }
    Ok(())
}

/// Another index that aggregates the same records in the same way.
fn other_column(config: &Records, name: &str) -> Option<&'static str> {
    let all = config.definitions();
    let own = all.iter().find(|index| index.name == name)?;
    let is_alike =
        |other: &&Definition| other.name != name && other.kind == own.kind && other.types == own.types;
    all.iter().find(is_alike).map(|other| other.name)
}

/// Performs a call that the bug changes; `None` for every other call.
pub(super) async fn perform<T: Transaction>(
    planted: Planted,
    config: &Records,
    store: &RecordStore<T>,
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
        (Planted::EntriesCut | Planted::SkipAlike, Op::ScanIndex(name, span)) => {
            let rows = client::rows(config, store, name, span, env, |end| end).await?;
            Some(listed(planted.cut(span.paging, rows)))
        }
        (Planted::RowsTorn, Op::DeleteWhere(target, columns)) => {
            store.delete_where(&tuple(&config.prefix(target, *columns))).await?;
            tear(config, context, target, *columns)?;
            Some(Answer::Done)
        }
        (Planted::OtherColumn, Op::Aggregate(name, like, columns, false)) => match other_column(config, name)
        {
            Some(other) => Some(client::aggregate(config, store, (name, other), like, *columns, None).await?),
            None => None,
        },
        (Planted::MoreTypes, Op::Aggregate(name, like, columns, true)) => {
            Some(client::aggregate(config, store, (name, name), like, *columns, None).await?)
        }
        (Planted::RefusedCleared, Op::DeleteWhere(target, columns)) => {
            let prefix = tuple(&config.prefix(target, *columns));
            match store.delete_where(&prefix).await {
                Err(Error::IndexState { .. }) => {
                    let (begin, end) = layout::part_of(part::RECORDS).range();
                    context.clear_range(&begin, &end)?;
                    Some(Answer::Done)
                }
                done => done.map(|()| Some(Answer::Done))?,
            }
        }
        (Planted::PartsStay, Op::Save(record, check @ Check::Any)) => {
            let primary_key = config.schema.primary_key(record);
            let old = store.load_record(&tuple(&primary_key)).await?.and_then(|old| plain(&old));
            let saved = save(config, store, record, *check, SaveVersion::Next).await?;
            let rows = |of| layout::rows(&config.schema, of, None);
            let new = rows(record).len();
            for (key, part) in old.iter().flat_map(rows).skip(new) {
                context.transaction()?.set(&key, &part);
            }
            Some(Answer::Record(client::told(&saved)))
        }
        _ => None,
    })
}

impl Planted {
    /// The rows of a list, with the bug. Pages have as many rows as they may.
    fn cut(self, paging: Paging, mut rows: Vec<client::EntryRow>) -> Vec<client::EntryRow> {
        let (Planted::SkipAlike, Paging::Rows(most) | Paging::Scanned(most)) = (self, paging) else {
            rows.truncate(if self == Planted::EntriesCut { 10 } else { rows.len() });
            return rows;
        };
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
}

/// The end of a range, with bytes instead of texts.
fn bytes_for_text(end: End<Vec<Element<'static>>>) -> End<Vec<Element<'static>>> {
    let bytes = |element: Element<'static>| match element {
        Element::String(text) => Element::Bytes(text.into_owned().into_bytes().into()),
        other => other,
    };
    let all = |columns: Vec<_>| columns.into_iter().map(bytes).collect();
    match end {
        End::Open => End::Open,
        End::Inclusive(columns, most) => End::Inclusive(all(columns), most),
        End::Exclusive(columns, most) => End::Exclusive(all(columns), most),
    }
}

/// Performs the calls of a transaction with the bug; `None` if the bug does not change them.
pub(super) async fn apply<D: Database>(
    planted: Planted,
    config: &Records,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    if ops.iter().all(Op::is_read_only) {
        return None;
    }
    let db = session.database().clone();
    let (env, stores) = (db.env(), &config.stores::<D::Transaction>());
    let has_insert = ops.iter().any(|op| matches!(op, Op::Save(_, Check::Absent)));
    match planted {
        Planted::OldAtSnapshot | Planted::HeaderAtSnapshot | Planted::UniqueAtSnapshot => {
            let (stores, spans) = (&config.stores(), &planted.read_at_snapshot(config));
            let run = session.apply(|tx| async move {
                let tx = weakened(tx, spans.clone());
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
