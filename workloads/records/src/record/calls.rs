//! How calls find their store: each opens one in a context of its own, or in that of its transaction, or is
//! given one that is open. And what a call does on a store, if that is more than one call of the layer.

use super::{
    Records, RecordsAnswer, RecordsOp,
    answers::{Returned, hash},
    faulty,
    indexes::{Definition, Kind, definitions},
    layout,
    plain::{ItemRow, NoteRow, Record},
    schema::tuple,
    span::{Span, first, pages},
};
use crate::shared::in_order;
use foundationdb_tuple::Element;
use futures::{FutureExt, future::BoxFuture};
use prost_reflect::DynamicMessage;
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded, join, ran},
    table::Planted,
};
use shaketable_record::{
    cursor::Spent,
    error::Error,
    index::{IndexEntry, IndexScan, function::AggregateFunction},
    store::{
        RebuildPolicy, RecordContext, RecordExistenceCheck, RecordStore, RecordStoreBuilder, SaveVersion,
        StoredRecord,
    },
};
use std::{fmt, future::Future};

/// The stores of a run, of the first and of the later meta-data.
type Stores = [RecordStoreBuilder<Tx>; 2];

/// More records than a run has: indexes are built where the store is opened.
const MOST_RECORDS: usize = 1_000;

/// How a context ends within a transaction that somebody else commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It gives its entries to the transaction.
    Flush,
    /// It is closed.
    Close,
    /// It is dropped.
    Drop,
}

/// Where the next call finds its store.
#[derive(Clone, Default)]
pub(super) enum Within {
    /// It opens it, in a context of its own.
    #[default]
    Transaction,
    /// It opens it, in this context.
    Context(RecordContext<Tx>),
    /// It is open.
    Store(RecordStore<Tx>),
}

impl fmt::Debug for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Within::Transaction => "transaction",
            Within::Context(_) => "context",
            Within::Store(_) => "store",
        })
    }
}

/// Who opens the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Reader,
    Writer,
    Saver,
    Upgrader,
}

impl Who {
    pub(super) fn of(op: &RecordsOp) -> Who {
        match op {
            RecordsOp::save { .. } => Who::Saver,
            RecordsOp::upgrade {} => Who::Upgrader,
            op if Records::is_read_only(op) => Who::Reader,
            _ => Who::Writer,
        }
    }
}

/// What a save requires of the record that has the primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    /// Nothing.
    Any,
    /// There is none: an insert.
    Absent,
    /// There is one.
    Present,
    /// If there is one, it is of the same type.
    SameType,
    /// There is one of the same type: an update.
    Update,
}

impl Check {
    fn existence(self) -> RecordExistenceCheck {
        match self {
            Check::Any => RecordExistenceCheck::None,
            Check::Absent => RecordExistenceCheck::MustNotExist,
            Check::Present => RecordExistenceCheck::MustExist,
            Check::SameType => RecordExistenceCheck::SameType,
            Check::Update => RecordExistenceCheck::MustExistWithSameType,
        }
    }
}

/// Whether the calls of a transaction are done side by side: each is one call of the layer, or each opens the
/// store as its first one.
fn joins(env: &Env, ops: &[RecordsOp]) -> bool {
    use RecordsOp::{scan, scan_index, states, upgrade};
    let is_one = |op: &RecordsOp| !matches!(op, scan { .. } | scan_index { .. } | states {} | upgrade {});
    ops.len() > 1 && ops.iter().all(is_one) && env.random_u64().is_multiple_of(2)
}

impl Records {
    /// The stores for an application with this version.
    pub(super) fn stores(&self, user: Option<i32>) -> Stores {
        let registry = faulty::registry(self.schema.mistake);
        self.schema.meta_data().map(|meta_data| {
            let stores = RecordStore::builder(layout::store(), meta_data)
                .registry(registry.clone())
                .rebuild(RebuildPolicy::Inline(MOST_RECORDS));
            match user {
                Some(version) => stores.user_version(version),
                None => stores,
            }
        })
    }

    /// Opens the store: with the later meta-data if somebody has done so before. Some who neither save nor
    /// upgrade give no version of the application.
    pub(super) async fn open(&self, context: &RecordContext<Tx>, who: Who) -> Result<RecordStore<Tx>, Error> {
        let forgets = self.forgets && matches!(who, Who::Reader | Who::Writer);
        let [first, later] = self.stores(self.user.filter(|_| !forgets));
        let opened = match who {
            Who::Reader => first.open(context).await,
            Who::Writer | Who::Saver => first.create_or_open(context).await,
            Who::Upgrader => return later.create_or_open(context).await,
        };
        match opened {
            Err(Error::StaleMetaData { .. }) => later.open(context).await,
            opened => opened,
        }
    }

    /// Does a call on its store.
    pub(super) async fn on_store<A, F: Future<Output = Result<A, Error>> + Send>(
        &self,
        tx: &Tx,
        who: Who,
        call: impl FnOnce(RecordStore<Tx>) -> F + Send,
    ) -> Result<A, Error> {
        match &self.within {
            Within::Transaction => {
                // The store is opened first, so that this is several calls of the layer.
                let context = RecordContext::within(tx.writing().await);
                let answer = call(self.open(&context, who).await?).await?;
                self.end(context)?;
                Ok(answer)
            }
            Within::Context(context) => call(self.open(context, who).await?).await,
            Within::Store(store) => call(store.clone()).await,
        }
    }

    /// Ends a context within a transaction that somebody else commits, in one of the three ways.
    fn end(&self, context: RecordContext<Tx>) -> Result<(), Error> {
        match self.ending {
            Ending::Flush => context.flush(),
            Ending::Close => {
                context.close();
                Ok(())
            }
            Ending::Drop => Ok(()),
        }
    }

    /// Whether the calls of a transaction need one context: the versions that another context has given
    /// cannot be read.
    fn shares(&self, ops: &[RecordsOp]) -> bool {
        self.shares || self.schema.versions && ops.len() > 1
    }

    fn within(&self, within: Within) -> Records {
        Records { within, ..self.clone() }
    }

    /// Does a call, with the bug if it changes this one.
    fn call<'a>(
        &'a self,
        bug: Option<&'a str>,
        tx: &'a Tx,
        env: &'a Env,
        op: &'a RecordsOp,
    ) -> BoxFuture<'a, Result<RecordsAnswer, Error>> {
        async move {
            let planted = match bug {
                Some(bug) => Planted::perform(self, bug, (tx, env), op, Serializable).await,
                None => None,
            };
            match planted {
                Some(done) => done,
                None => Specimen::perform(self, tx, env, op, Serializable).await,
            }
        }
        .boxed()
    }

    /// Does calls, each on a store that is open for it.
    pub(super) async fn on_stores(
        &self,
        bug: Option<&str>,
        tx: &Tx,
        env: &Env,
        calls: impl Iterator<Item = (&RecordsOp, RecordStore<Tx>)>,
    ) -> Result<Vec<RecordsAnswer>, Error> {
        let mut answers = Vec::new();
        for (op, store) in calls {
            answers.push(self.within(Within::Store(store)).call(bug, tx, env, op).await?);
        }
        Ok(answers)
    }

    /// Does the calls of a transaction in a context, for each of which the store is opened.
    pub(super) async fn in_context(
        &self,
        bug: Option<&str>,
        context: &RecordContext<Tx>,
        env: &Env,
        ops: &[RecordsOp],
    ) -> Result<Vec<RecordsAnswer>, Error> {
        let (tx, here) = (context.transaction()?, self.within(Within::Context(context.clone())));
        if joins(env, ops) {
            return join(ops.iter().map(|op| here.call(bug, tx, env, op)).collect()).await;
        }
        // An upgrade leaves the stores behind that were opened before it.
        if !self.opens_first || ops.iter().any(|op| Who::of(op) == Who::Upgrader) {
            return in_order(ops, |op| here.call(bug, tx, env, op)).await;
        }
        let mut stores = Vec::with_capacity(ops.len());
        for op in ops {
            stores.push(self.open(context, Who::of(op)).await?);
        }
        self.on_stores(bug, tx, env, ops.iter().zip(stores)).await
    }

    /// Does the calls of a transaction in one context.
    pub(super) async fn together(
        &self,
        bug: Option<&str>,
        tx: Tx,
        env: &Env,
        ops: &[RecordsOp],
    ) -> Result<Vec<RecordsAnswer>, Error> {
        let context = RecordContext::within(tx);
        let answers = self.in_context(bug, &context, env, ops).await?;
        self.end(context)?;
        Ok(answers)
    }

    /// Does the calls of a transaction in one context, or on one store, if they share it.
    pub(super) async fn applied(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[RecordsOp],
    ) -> Option<Outcome<Answer<RecordsAnswer>>> {
        if !self.shares(ops) {
            return None;
        }
        let db = session.database().clone();
        let env = db.env();
        if ops.iter().all(Records::is_read_only) {
            return Some(ran(db.run(|tx, _| async move { self.together(bug, tx, env, ops).await }).await));
        }
        let upgrades = ops.iter().any(|op| Who::of(op) == Who::Upgrader);
        // A look that comes first does not create the store, which a session's run on the store does.
        if self.reopens || upgrades || Records::is_read_only(&ops[0]) {
            let run = session.apply(|tx| async move { self.together(bug, tx, env, ops).await.map(Recorded) });
            return Some(concluded(run.await));
        }
        let [first, later] = self.stores(self.user);
        let body = |store: RecordStore<Tx>| async move {
            let tx = &store.context().transaction()?.clone();
            let here = &self.within(Within::Store(store));
            let answers = match joins(env, ops) {
                true => join(ops.iter().map(|op| here.call(bug, tx, env, op)).collect()).await,
                false => in_order(ops, |op| here.call(bug, tx, env, op)).await,
            };
            answers.map(Recorded)
        };
        Some(concluded(match first.run(session, body).await {
            once::Outcome::Refused(Error::StaleMetaData { .. }) => later.run(session, body).await,
            outcome => outcome,
        }))
    }

    /// Saves a record, as a message with or without a descriptor.
    pub(super) async fn put(
        &self,
        store: &RecordStore<Tx>,
        record: &Record,
        check: Check,
        version: SaveVersion,
    ) -> Result<Option<Returned>, Error> {
        let (name, existence) = (record.type_name(), check.existence());
        if !self.dynamic {
            let saved = match record.type_key() {
                1 => store.save_message(name, &record.item(), existence, version).await?,
                _ => store.save_message(name, &record.note(), existence, version).await?,
            };
            return Ok(returned(&saved));
        }
        let unknown = || Error::UnknownType(name.into());
        let record_type = store.meta_data().record_type(name).ok_or_else(unknown)?;
        let mut message = DynamicMessage::new(record_type.message.clone());
        let filled = match record_type.name == "Item" {
            true => message.transcode_from(&record.item()),
            false => message.transcode_from(&record.note()),
        };
        filled.map_err(|error| Error::Message { record_type: name.into(), reason: error.to_string() })?;
        let saved = match (check, version) {
            (Check::Any, SaveVersion::Next) => store.save_record(&message).await,
            (Check::Absent, SaveVersion::Next) => store.insert_record(&message).await,
            (Check::Update, SaveVersion::Next) => store.update_record(&message).await,
            (_, version) => store.save_record_with(&message, existence, version).await,
        };
        Ok(returned(&saved?))
    }

    fn definition(&self, name: &str) -> Result<Definition, Error> {
        let found = definitions(&self.schema).into_iter().find(|index| index.name == name);
        found.ok_or_else(|| Error::UnknownIndex(name.into()))
    }

    /// The aggregate of the index with this name over the groups that begin with this many columns of a
    /// record's, of the records of the index's types or of one type.
    pub(super) async fn evaluated(
        &self,
        store: &RecordStore<Tx>,
        name: &str,
        like: &Record,
        columns: usize,
        one_type: Option<&str>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let unknown = || Error::UnknownIndex(name.into());
        let index = self.definition(name)?;
        let aggregate = index.aggregate().ok_or_else(unknown)?;
        let operand = store.meta_data().index(name).ok_or_else(unknown)?.expression.clone();
        let group = tuple(&first(self.schema.bound(&index, like), columns));
        let function = AggregateFunction::new(aggregate, operand);
        let types = one_type.as_ref().map_or(index.types, std::slice::from_ref);
        Ok(store.evaluate_aggregate(types, &function, &group).await?.map(|value| value.pack()))
    }

    /// The rows of a scan of an index. `change` changes the columns of the ends of the range.
    pub(super) async fn rows(
        &self,
        tx: &Tx,
        env: &Env,
        (name, span): (&str, &Span<Record>),
        change: impl Fn(Element<'static>) -> Element<'static> + Send,
    ) -> Result<Vec<EntryRow>, Error> {
        self.on_store(tx, Who::Reader, |store| async move {
            let index = self.definition(name)?;
            let by = by(&index);
            let range = span.range(|like| self.schema.bound(&index, like).into_iter().map(&change).collect());
            let scan =
                |from, spent: &Spent| store.scan_index(name, by, range.clone(), span.reverse, from, spent);
            let found = pages(span, env, scan).await?;
            let row = |entry: &IndexEntry| (entry.key.pack(), entry.primary_key.pack(), entry.value.pack());
            Ok(found.iter().map(row).collect())
        })
        .await
    }
}

/// A row of a scan of an index: the packed key, primary key and value.
pub(super) type EntryRow = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The plain record in one that was saved or loaded.
fn plain(stored: &StoredRecord) -> Option<Record> {
    match &*stored.record_type.name {
        "Item" => Record::of_item(stored.transcode::<ItemRow>().ok()?),
        _ => Record::of_note(stored.transcode::<NoteRow>().ok()?),
    }
}

/// A record as answers contain it; `None` if it is none of the workload's.
pub(super) fn returned(stored: &StoredRecord) -> Option<Returned> {
    Some(Returned {
        primary_key: stored.primary_key.pack(),
        of: stored.record_type.name.clone(),
        hash: hash(&plain(stored)?),
        version: stored.version.as_ref().map(|version| *version.as_bytes()),
        size: (stored.rows, stored.key_bytes, stored.value_bytes),
    })
}

fn by(index: &Definition) -> IndexScan {
    match index.kind {
        Kind::Value | Kind::Version | Kind::Rank | Kind::Backwards => IndexScan::ByValue,
        _ => IndexScan::ByGroup,
    }
}
