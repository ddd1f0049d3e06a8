//! How clients do what operations consist of: the calls of a transaction, and the pages of a feed.

use super::{
    Feeds,
    operations::{Act, ActAnswer, Answer, Entry, Page},
    planted::{self, Planted},
    schema::{ALL, BY_TOPIC, Content, Feed, Row, Version, meta_data, store},
};
use crate::shared::{ended, unexpected};
use foundationdb_tuple::Element;
use shaketable::{specimen::Recorded, workload::Outcome};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
    index::{IndexEntry, IndexScan, Registry},
    store::{RecordContext, RecordExistenceCheck, RecordStore, SaveVersion},
    value::Tuple,
    version::RecordVersion,
};
use shaketable_tx::{Database, Db, RunError, Transaction, Tx, once::Session, reachable};
use std::{collections::BTreeMap, time::Duration};

/// The state of a client.
pub struct Client {
    pub(super) session: Session<Db>,
    /// Identifies the client since it was opened: a client that dies forgets what it has read.
    pub(super) reader: u64,
    /// Where it continues to read each feed.
    pub(super) places: BTreeMap<Feed, Place>,
}

/// A place in a feed.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The version of the last entry that was read.
    pub after: Option<Version>,
    /// The version after which the scan begins that is being continued.
    pub low: Option<Version>,
    /// Where in that scan.
    pub continuation: Vec<u8>,
    /// The read version of the last page; only a planted bug uses this.
    pub read_version: Option<i64>,
}

impl Feeds {
    /// Does the calls of a transaction.
    pub(super) async fn do_acts(
        &self,
        context: &RecordContext<Tx>,
        registry: &Registry<Tx>,
        acts: &[Act],
    ) -> Result<Vec<ActAnswer>, Error> {
        let mut answers = Vec::with_capacity(acts.len());
        for act in acts {
            let wrong = match self.planted {
                Some(planted) => planted::act(planted, context, registry, act).await?,
                None => None,
            };
            answers.push(match wrong {
                Some(answer) => answer,
                None => match self.do_act(context, registry, act).await {
                    // What is refused leaves nothing in the transaction.
                    Err(Error::Version(_)) => ActAnswer::TooLate,
                    answer => answer?,
                },
            });
        }
        Ok(answers)
    }

    /// Does a call.
    async fn do_act(
        &self,
        context: &RecordContext<Tx>,
        registry: &Registry<Tx>,
        act: &Act,
    ) -> Result<ActAnswer, Error> {
        let open = async |number| open(context, registry, number).await;
        Ok(match act {
            Act::Save(number, id, content) => {
                let store = open(*number).await?;
                let was = store.load_record(&Tuple::from(*id)).await?.is_some();
                save(&store, *id, content, RecordExistenceCheck::None, SaveVersion::Next).await?;
                ActAnswer::Was(was)
            }
            Act::Insert(number, id, content) => {
                let store = open(*number).await?;
                let check = RecordExistenceCheck::MustNotExist;
                match save(&store, *id, content, check, SaveVersion::Next).await {
                    Ok(()) => ActAnswer::Was(false),
                    Err(Error::Exists(_)) => ActAnswer::Was(true),
                    Err(e) => return Err(e),
                }
            }
            Act::Touch(number, id) => {
                let store = open(*number).await?;
                let Some(content) = load(&store, *id).await? else { return Ok(ActAnswer::Was(false)) };
                let check = RecordExistenceCheck::MustExistWithSameType;
                save(&store, *id, &content.touched(), check, SaveVersion::Next).await?;
                ActAnswer::Was(true)
            }
            Act::Delete(number, id) => {
                ActAnswer::Was(open(*number).await?.delete_record(&Tuple::from(*id)).await?)
            }
            Act::Clear(number) => {
                open(*number).await?.delete_all_records().await?;
                ActAnswer::Cleared
            }
            Act::Version(number, id) => {
                let version = open(*number).await?.load_record_version(&Tuple::from(*id)).await?;
                ActAnswer::Version(version.map(|version| *version.as_bytes()))
            }
            Act::Flush => {
                context.flush()?;
                ActAnswer::Flushed
            }
            Act::Entries(feed) => {
                ActAnswer::Entries(self.whole(&open(feed.store).await?, feed, false).await?)
            }
        })
    }

    /// Reads a whole feed in one transaction, page by page.
    pub(super) async fn whole(
        &self,
        store: &RecordStore<Tx>,
        feed: &Feed,
        reverse: bool,
    ) -> Result<Vec<Entry>, Error> {
        let (mut entries, mut from) = (Vec::new(), Continuation::Start);
        loop {
            let spent = Spent::new(self.limits(entries.len()));
            let range = range(feed, Endpoint::Open);
            let cursor =
                store.scan_index(index(feed), IndexScan::ByValue, range, reverse, from.clone(), &spent)?;
            let page = cursor.limited(&spent, from).to_list().await?;
            entries.extend(all_loaded(store, &page.rows).await?);
            match page.continuation.to_bytes() {
                Some(bytes) => from = Continuation::from_bytes(bytes),
                None => return Ok(entries),
            }
        }
    }

    /// The limits of a page: on the entries that are returned, or on those that are read.
    fn limits(&self, number: usize) -> Limits {
        match number % 2 {
            0 => Limits::rows(self.page),
            _ => Limits { scanned: Some(self.page), ..Limits::default() },
        }
    }

    /// Reads the next page of a feed in a transaction of its own.
    pub(super) async fn page(
        &self,
        db: &Db,
        feed: &Feed,
        place: &mut Place,
    ) -> Result<Page, RunError<Error>> {
        let from = &*place;
        let read = db.run(|tx, attempt| async move {
            if let (Some(Planted::KeptVersion), Some(kept), 0) =
                (self.planted, from.read_version, attempt.number)
            {
                tx.set_read_version(kept);
            }
            let read_version = tx.get_read_version().await?;
            let context = RecordContext::within(tx);
            let store = open(&context, &Registry::standard(), feed.store).await?;
            let spent = Spent::new(self.limits(from.continuation.len()));
            let low = from.low.map_or(Endpoint::Open, |low| planted::low(self.planted, low));
            let at = Continuation::from_bytes(from.continuation.clone().into());
            let range = range(feed, low);
            let cursor =
                store.scan_index(index(feed), IndexScan::ByValue, range, false, at.clone(), &spent)?;
            let page = cursor.limited(&spent, at).to_list().await?;
            let entries = all_loaded(&store, &page.rows).await?;
            let ends = page.continuation == Continuation::End;
            Ok::<_, Error>((Page { read_version, after: from.after, entries, ends }, page.continuation))
        });
        let (page, continuation) = read.await?;
        place.passed(&page);
        match continuation.to_bytes() {
            Some(bytes) if self.by_continuation => place.continuation = bytes.to_vec(),
            _ => place.begin_after_last(),
        }
        Ok(page)
    }

    /// The pause of a reader between two pages.
    pub(super) async fn pause(&self, db: &Db) {
        if self.pause > 0 {
            db.env().sleep(Duration::from_millis(self.pause)).await;
        }
    }
}

impl Place {
    /// Notes that a page was read.
    pub fn passed(&mut self, page: &Page) {
        let global = |version: &Version| -> [u8; 10] { std::array::from_fn(|at| version[at]) };
        let mut versions = page.entries.iter().map(|entry| &entry.version);
        if versions.clone().zip(versions.clone().skip(1)).any(|(one, next)| global(one) == global(next)) {
            reachable!("record_feed: a page has several records of one transaction");
        }
        if let (Some(last), Some(first)) = (&self.after, versions.next())
            && global(last) == global(first)
        {
            reachable!("record_feed: a reader continues within the records of one transaction");
        }
        self.after = page.entries.last().map(|entry| entry.version).or(self.after);
        self.read_version = Some(page.read_version);
    }

    /// Begins another scan after the last entry.
    pub fn begin_after_last(&mut self) {
        (self.low, self.continuation) = (self.after, Vec::new());
    }
}

/// The outcome of a transaction for its client.
pub(super) fn written_outcome(
    written: shaketable_tx::once::Outcome<Recorded<ActAnswer>, Error>,
) -> Outcome<Answer> {
    ended(written, |Recorded(answers)| Answer::Written(answers), |e| unexpected(&e, Outcome::Failed))
}

/// Opens a store.
pub(super) async fn open(
    context: &RecordContext<Tx>,
    registry: &Registry<Tx>,
    number: usize,
) -> Result<RecordStore<Tx>, Error> {
    let builder = RecordStore::builder(store(number), meta_data()).registry(registry.clone());
    builder.create_or_open(context).await
}

/// The record with this primary key.
pub(super) async fn load(store: &RecordStore<Tx>, id: i64) -> Result<Option<Content>, Error> {
    let Some(record) = store.load_record(&Tuple::from(id)).await? else { return Ok(None) };
    let row: Row = record.transcode()?;
    Ok(Some(Content::of_row(&record.record_type.name, row)))
}

/// Saves a record.
pub(super) async fn save(
    store: &RecordStore<Tx>,
    id: i64,
    content: &Content,
    check: RecordExistenceCheck,
    version: SaveVersion,
) -> Result<(), Error> {
    store.save_message(content.kind(), &content.row(id), check, version).await.map(drop)
}

/// The index of a feed.
fn index(feed: &Feed) -> &'static str {
    if feed.topic.is_some() { BY_TOPIC } else { ALL }
}

/// The entries of a feed from a version on.
fn range(feed: &Feed, low: Endpoint) -> TupleRange {
    let topic = feed.topic.as_ref().map_or_else(Tuple::empty, |topic| Tuple::from(topic.clone()));
    TupleRange::between(low, Endpoint::Open).after(&topic)
}

/// After the records with this version.
pub(super) fn after(version: Version) -> Endpoint {
    Endpoint::Exclusive(Tuple::from(RecordVersion::from_bytes(version)))
}

/// The version and the primary key of an entry.
fn named(entry: &IndexEntry) -> (Version, i64) {
    let version = match entry.key.elements().last() {
        Some(Element::Versionstamp(stamp)) => *stamp.as_bytes(),
        _ => [0; 12],
    };
    let id = match entry.primary_key.elements() {
        [Element::Int(id)] => *id,
        _ => i64::MIN,
    };
    (version, id)
}

/// Entries with their records.
async fn all_loaded(store: &RecordStore<Tx>, found: &[IndexEntry]) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(found.len());
    for entry in found {
        entries.push(loaded(store, entry).await?);
    }
    Ok(entries)
}

async fn loaded(store: &RecordStore<Tx>, entry: &IndexEntry) -> Result<Entry, Error> {
    let (version, id) = named(entry);
    Ok(Entry { version, id, record: record(store, &entry.primary_key).await? })
}

/// The version and the value of the record with this primary key.
pub(super) async fn record(
    store: &RecordStore<Tx>,
    primary_key: &Tuple,
) -> Result<Option<(Option<Version>, i64)>, Error> {
    let Some(record) = store.load_record(primary_key).await? else { return Ok(None) };
    let row: Row = record.transcode()?;
    let version = record.version.map(|version| *version.as_bytes());
    Ok(Some((version, row.value.unwrap_or_default())))
}
