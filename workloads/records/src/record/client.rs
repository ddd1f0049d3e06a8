//! How calls are performed.

use super::{
    Ending, Records, faulty,
    indexes::{Definition, Kind},
    joins, layout,
    model::own_version,
    operations::{Answer, Check, End, Op, Paging, Span, Told, hash, listed},
    plain::{ItemRow, NoteRow, Record},
    planted,
    scans::first,
    schema::tuple,
};
use foundationdb_tuple::Element;
use futures::FutureExt;
use prost_reflect::DynamicMessage;
use shaketable::specimen::join;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
    index::{IndexEntry, IndexScan, function::AggregateFunction},
    store::{RebuildPolicy, RecordContext, RecordStore, RecordStoreBuilder, SaveVersion, StoredRecord},
    version::RecordVersion,
};
use shaketable_tx::{
    Env,
    Isolation::{Serializable, Snapshot},
    Tx, always,
};
use std::{future::Future, time::Duration};

/// The stores of a run, of the first and of the later meta-data.
pub(super) type Stores = [RecordStoreBuilder<Tx>; 2];

/// More records than a run has: indexes are built where the store is opened.
const MOST_RECORDS: usize = 1_000;

impl Records {
    /// Whether the store is opened for this call by somebody who gives no version of the application.
    fn forgets(&self, op: &Op) -> bool {
        self.forgets && !matches!(op, Op::Save(..) | Op::Upgrade)
    }

    pub(super) fn stores(&self) -> Stores {
        self.stores_of(self.user)
    }

    /// The stores for an application with this version.
    fn stores_of(&self, user: Option<i32>) -> Stores {
        let registry = faulty::registry(self.planted);
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

    /// Ends a context within a transaction that somebody else commits, in one of the three ways.
    pub(super) fn end(&self, context: RecordContext<Tx>) -> Result<(), Error> {
        match self.ending {
            Ending::Flush => context.flush(),
            Ending::Close => {
                context.close();
                Ok(())
            }
            Ending::Drop => Ok(()),
        }
    }
}

/// Performs calls in a context, for each of which the store is opened.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
pub(super) fn perform_all<'a>(
    config: &'a Records,
    stores: &'a Stores,
    context: &'a RecordContext<Tx>,
    env: &'a Env,
    ops: &'a [Op],
) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send + 'a {
    async move {
        if joins(env, ops) {
            let one = |op| async move {
                let store = open(config, stores, context, op).await?;
                Box::pin(perform(config, &store, env, op)).await
            };
            return join(ops.iter().map(|op| one(op).boxed()).collect()).await;
        }
        // An upgrade leaves the stores behind that were opened before it.
        let opens_first = config.opens_first && !ops.contains(&Op::Upgrade);
        let mut opened = Vec::new();
        for op in ops.iter().filter(|_| opens_first) {
            let own = planted::context_of_store(config, context)?;
            opened.push(open(config, stores, &own, op).await?);
        }
        let mut opened = opened.into_iter();
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            let store = match opened.next() {
                Some(store) => store,
                None => open(config, stores, context, op).await?,
            };
            answers.push(Box::pin(perform(config, &store, env, op)).await?);
        }
        Ok(answers)
    }
}

/// Opens the store: with the later meta-data if somebody has done so before.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
fn open<'a>(
    config: &'a Records,
    stores: &'a Stores,
    context: &'a RecordContext<Tx>,
    op: &'a Op,
) -> impl Future<Output = Result<RecordStore<Tx>, Error>> + Send + 'a {
    async move {
        let forgetful = config.forgets(op).then(|| config.stores_of(None));
        let [first, later] = forgetful.as_ref().unwrap_or(stores);
        let opened = match op {
            op if op.is_read_only() => first.open(context).await,
            Op::Upgrade => return later.create_or_open(context).await,
            _ => first.create_or_open(context).await,
        };
        match opened {
            Err(Error::StaleMetaData { .. }) => later.open(context).await,
            opened => opened,
        }
    }
}

/// Performs one call on the store.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
pub(super) fn perform<'a>(
    config: &'a Records,
    store: &'a RecordStore<Tx>,
    env: &'a Env,
    op: &'a Op,
) -> impl Future<Output = Result<Answer, Error>> + Send + 'a {
    async move {
        if let Some(planted) = config.planted
            && let Some(answer) = planted::perform(planted, config, store, env, op).await?
        {
            return Ok(answer);
        }
        let key = |target| tuple(&config.primary_key(target));
        Ok(match op {
            Op::Save(record, check) => {
                let saved = save(config, store, record, *check, SaveVersion::Next).await?;
                Answer::Record(told(&saved))
            }
            Op::SaveAs(record, own) => {
                let version = SaveVersion::Own(RecordVersion::from_bytes(own_version(*own)));
                Answer::Record(told(&save(config, store, record, Check::Any, version).await?))
            }
            Op::Delete(target) => Answer::Found(store.delete_record(&key(target)).await?),
            Op::DeleteWhere(target, columns) => {
                store.delete_where(&tuple(&config.prefix(target, *columns))).await?;
                Answer::Done
            }
            Op::DeleteAll => {
                store.delete_all_records().await?;
                Answer::Done
            }
            Op::Load(target, true) => {
                Answer::Record(store.load_record_at(&key(target), Snapshot).await?.as_ref().and_then(told))
            }
            Op::Load(target, false) => {
                Answer::Record(store.load_record(&key(target)).await?.as_ref().and_then(told))
            }
            Op::Exists(target, snapshot) => {
                let isolation = if *snapshot { Snapshot } else { Serializable };
                Answer::Found(store.record_exists(&key(target), isolation).await?)
            }
            Op::Version(target) => {
                let version = store.load_record_version(&key(target)).await?;
                Answer::Version(version.map(|version| *version.as_bytes()))
            }
            Op::Scan(span) => {
                let range = range(&span.low, &span.high, |target| config.primary_key(target));
                let scan = |from, spent: &Spent| store.scan_records(range.clone(), span.reverse, from, spent);
                listed(pages(span, env, scan).await?.iter().map(told))
            }
            Op::ScanIndex(name, span) => entries(config, store, name, span, env, |column| column).await?,
            Op::Aggregate(name, like, columns, of_one) => {
                let types = of_one.then_some(like.type_name());
                aggregate(config, store, name, like, *columns, types).await?
            }
            Op::States => {
                let mut states = Vec::new();
                for index in store.meta_data().indexes() {
                    states.push((&*index.name, !store.is_readable(&index.name)?));
                }
                listed(states)
            }
            Op::Disable(name) => {
                store.mark_index_disabled(name).await?;
                Answer::Done
            }
            Op::Upgrade => {
                Answer::Opened(store.previous_versions().map(|before| (before.meta_data, before.user)))
            }
        })
    }
}

/// Saves a record, as a message with or without a descriptor.
async fn save(
    config: &Records,
    store: &RecordStore<Tx>,
    record: &Record,
    check: Check,
    version: SaveVersion,
) -> Result<StoredRecord, Error> {
    let (name, existence) = (record.type_name(), check.existence());
    if !config.dynamic {
        return match record.type_key() {
            1 => store.save_message(name, &record.item(), existence, version).await,
            _ => store.save_message(name, &record.note(), existence, version).await,
        };
    }
    let unknown = || Error::UnknownType(name.into());
    let record_type = store.meta_data().record_type(name).ok_or_else(unknown)?;
    let mut message = DynamicMessage::new(record_type.message.clone());
    let filled = match record_type.name == "Item" {
        true => message.transcode_from(&record.item()),
        false => message.transcode_from(&record.note()),
    };
    filled.map_err(|error| Error::Message { record_type: name.into(), reason: error.to_string() })?;
    match (check, version) {
        (Check::Any, SaveVersion::Next) => store.save_record(&message).await,
        (Check::Absent, SaveVersion::Next) => store.insert_record(&message).await,
        (Check::Update, SaveVersion::Next) => store.update_record(&message).await,
        (_, version) => store.save_record_with(&message, existence, version).await,
    }
}

/// The plain record in one that was saved or loaded.
fn plain(stored: &StoredRecord) -> Option<Record> {
    match &*stored.record_type.name {
        "Item" => Record::of_item(stored.transcode::<ItemRow>().ok()?),
        _ => Record::of_note(stored.transcode::<NoteRow>().ok()?),
    }
}

/// A record as answers contain it; `None` if it is none of the workload's.
fn told(stored: &StoredRecord) -> Option<Told> {
    Some(Told {
        primary_key: stored.primary_key.pack(),
        of: stored.record_type.name.clone(),
        hash: hash(&plain(stored)?),
        version: stored.version.as_ref().map(|version| *version.as_bytes()),
        size: (stored.rows, stored.key_bytes, stored.value_bytes),
    })
}

/// The aggregate of the index with this name over the groups that begin with this many columns of a record's,
/// of the records of the index's types or of one type.
async fn aggregate(
    config: &Records,
    store: &RecordStore<Tx>,
    name: &str,
    like: &Record,
    columns: usize,
    one_type: Option<&str>,
) -> Result<Answer, Error> {
    let unknown = || Error::UnknownIndex(name.into());
    let index = config.definitions().into_iter().find(|index| index.name == name).ok_or_else(unknown)?;
    let aggregate = index.aggregate().ok_or_else(unknown)?;
    let operand = store.meta_data().index(name).ok_or_else(unknown)?.expression.clone();
    let group = tuple(&first(config.bound(&index, like), columns));
    let function = AggregateFunction::new(aggregate, operand);
    let types = one_type.as_ref().map_or(index.types, std::slice::from_ref);
    let value = store.evaluate_aggregate(types, &function, &group).await?;
    Ok(Answer::Aggregate(value.map(|value| value.pack())))
}

/// The range of a span.
fn range<L>(low: &End<L>, high: &End<L>, columns: impl Fn(&L) -> Vec<Element<'static>>) -> TupleRange {
    TupleRange::between(endpoint(low.columns(&columns)), endpoint(high.columns(&columns)))
}

fn endpoint(end: End<Vec<Element<'static>>>) -> Endpoint {
    match end {
        End::Open => Endpoint::Open,
        End::Inclusive(columns, _) => Endpoint::Inclusive(tuple(&columns)),
        End::Exclusive(columns, _) => Endpoint::Exclusive(tuple(&columns)),
    }
}

/// A row of a scan of an index: the packed key, primary key and value.
pub(super) type EntryRow = (Vec<u8>, Vec<u8>, Vec<u8>);

/// The rows of a scan, as an answer.
pub(super) async fn entries(
    config: &Records,
    store: &RecordStore<Tx>,
    name: &str,
    span: &Span<Box<Record>>,
    env: &Env,
    change: impl Fn(Element<'static>) -> Element<'static>,
) -> Result<Answer, Error> {
    Ok(listed(rows(config, store, name, span, env, change).await?))
}

/// The rows of a scan. `change` changes the columns of the ends of the range.
pub(super) async fn rows(
    config: &Records,
    store: &RecordStore<Tx>,
    name: &str,
    span: &Span<Box<Record>>,
    env: &Env,
    change: impl Fn(Element<'static>) -> Element<'static>,
) -> Result<Vec<EntryRow>, Error> {
    let index = config.definitions().into_iter().find(|index| index.name == name);
    let index = index.ok_or_else(|| Error::UnknownIndex(name.into()))?;
    let end = |end: &End<Box<Record>>| {
        endpoint(end.columns(|like| config.bound(&index, like).into_iter().map(&change).collect()))
    };
    let range = TupleRange::between(end(&span.low), end(&span.high));
    let by = by(&index);
    let scan = |from, spent: &Spent| store.scan_index(name, by, range.clone(), span.reverse, from, spent);
    let found = pages(span, env, scan).await?;
    let row = |entry: &IndexEntry| (entry.key.pack(), entry.primary_key.pack(), entry.value.pack());
    Ok(found.iter().map(row).collect())
}

fn by(index: &Definition) -> IndexScan {
    match index.kind {
        Kind::Value | Kind::Version | Kind::Rank | Kind::Backwards => IndexScan::ByValue,
        _ => IndexScan::ByGroup,
    }
}

/// The rows of a scan, page after page, each of which begins with the bytes of the continuation of the one
/// before.
async fn pages<L, R: Send + 'static>(
    span: &Span<L>,
    env: &Env,
    scan: impl Fn(Continuation, &Spent) -> Result<BoxCursor<R>, Error>,
) -> Result<Vec<R>, Error> {
    let (mut all, mut from) = (Vec::new(), Continuation::Start);
    let none = Limits::default();
    let limits = match span.paging {
        Paging::All => none,
        Paging::Rows(rows) => Limits::rows(rows),
        Paging::Scanned(scanned) => Limits { scanned: Some(scanned), ..none },
        Paging::Bytes(bytes) => Limits { bytes: Some(bytes), ..none },
        Paging::Micros(micros) => Limits { time: Some((Duration::from_micros(micros), env.clone())), ..none },
    };
    loop {
        let spent = Spent::new(limits.clone());
        let cursor = scan(from.clone(), &spent)?.limited(&spent, from);
        let page = cursor.to_list().await?;
        let most = match span.paging {
            Paging::Rows(most) | Paging::Scanned(most) => most,
            _ => usize::MAX,
        };
        always!(page.rows.len() <= most, "a page of {} rows where {most} are allowed", page.rows.len());
        let (is_empty, next) = (page.rows.is_empty(), page.continuation.to_bytes());
        always!(!is_empty || next.is_none(), "a page without rows is not the last one");
        all.extend(page.rows);
        match next {
            Some(bytes) if !is_empty => from = Continuation::from_bytes(bytes),
            _ => return Ok(all),
        }
    }
}
