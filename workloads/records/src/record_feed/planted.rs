//! Planted bugs: a maintainer of indexes by version that is wrong, writers that use the layer wrongly, and
//! readers that continue at the wrong place.

use super::{
    Feeds, FeedsOp,
    client::{self, Client, Place, after, open, written_outcome},
    operations::{Act, ActAnswer, Answer, Page},
    schema::{Feed, STORES, Version},
};
use crate::record_shared::faulty::{Change, Fault, Right, plant};
use foundationdb_tuple::VersionstampOffset;
use parking_lot::Mutex;
use shaketable::{specimen::Recorded, workload::Outcome};
use shaketable_record::{
    cursor::Endpoint,
    error::Error,
    index::{IndexAt, Registry},
    metadata::index_types,
    store::{Part, RecordContext, RecordExistenceCheck, SaveVersion, StoredRecord},
    value::Tuple,
    version::RecordVersion,
};
use shaketable_tx::{
    Database, Db, Isolation::Serializable, RangeOption, RetryError, RunError, Transaction, Tx,
};
use std::{slice, sync::Arc};

shaketable::planted_bugs! {
    Unrecorded = "unrecorded", "a transaction is done again after an unknown result", "R22, R31: a record gets a second version; an insert finds its own record";
    TwoEntries = "two-entries", "a record that is saved twice in one transaction keeps the first entry", "R19: Record Layer #2275";
    DeletedStays = "deleted-stays", "a record that is saved and deleted in one transaction keeps its entry", "R19: Record Layer #2275";
    SurvivesRetry = "survives-retry", "entries of an attempt that was done again are written by the next one", "R19, X17: buffered mutations that survive a retry";
    ClearForgotten = "clear-forgotten", "all records are cleared, and their entries stay", "R29: a delete of all records";
    ContextEach = "context-each", "each call of a transaction has a context of its own, which counts its records from zero", "R19: the numbers of one transaction's records";
    FlushesEarly = "flushes-early", "entries are given to the transaction after each call, and cannot be taken back", "R20: entries that their transaction cannot read";
    OwnVersions = "own-versions", "records have the read version of their transaction as their version", "the time of a read for that of the commit";
    SkipsUnchanged = "skips-unchanged", "a save that changes nothing is not made", "an update that readers do not see";
    VersionByKey = "version-by-key", "the version that a transaction has written is found by the primary key alone", "R19: Record Layer #952, two stores that mix";
    ReadsLast = "reads-last", "a save reads the last entry of the index", "R18: the conflicts of an index", "the judge conflict-free";
    TenBytes = "ten-bytes", "a reader continues after all records of the last one's transaction", "R21: ten bytes are compared";
    AtLeast = "at-least", "a reader continues with the last entry", "R21: at least instead of greater than";
    AtReadVersion = "at-read-version", "a reader continues after the read version of the last page", "a page taken for the whole";
    KeptVersion = "kept-version", "a reader reads at the read version of its last page", "a read version shared between transactions";
    PolledApart = "polled-apart", "the records of a page are loaded in another transaction", "an entry and its record of different versions";
    OnePlace = "one-place", "readers keep one place for all feeds of a store", "R19: a position by too short a key";
}

impl Planted {
    /// Changes the drawn configuration so that the bug is one.
    pub(super) fn suit(self, drawn: &mut Feeds) {
        use Planted::*;
        match self {
            TenBytes | AtLeast => drawn.by_continuation = false,
            ReadsLast => drawn.apart = true,
            PolledApart => drawn.pause = drawn.pause.max(15),
            _ => {}
        }
        if matches!(self, TwoEntries | DeletedStays | ContextEach | FlushesEarly | VersionByKey | TenBytes) {
            drawn.together = drawn.together.max(3);
        }
        if matches!(self, TenBytes | AtReadVersion) {
            drawn.page = drawn.page.min(2);
        }
    }
}

/// Updates indexes by version with the bug.
#[derive(Clone)]
struct Wrong {
    planted: Planted,
    /// The rows of all attempts.
    rows: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Fault for Wrong {
    async fn update<'a>(
        &'a self,
        right: &'a Right,
        at: IndexAt<'a, Tx>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        let is_own = old.and_then(|old| old.version.as_ref()).is_some_and(|version| !version.is_complete());
        let forgets = match self.planted {
            Planted::TwoEntries => is_own && new.is_some(),
            Planted::DeletedStays => is_own && new.is_none(),
            _ => false,
        };
        right.update(at, old.filter(|_| !forgets), new).await?;
        if self.planted == Planted::ReadsLast {
            let rows = RangeOption::from(at.space(Part::Indexes).range()).limit(1).reversed();
            at.transaction()?.get_range_all(rows, Serializable).await?;
        }
        if let (Planted::SurvivesRetry, Some(new)) = (self.planted, new) {
            let mut rows = self.rows.lock();
            rows.extend(incomplete(at, new)?);
            for row in &*rows {
                at.store.context().set_versionstamped_key(row.clone(), Vec::new());
            }
        }
        Ok(())
    }
}

/// The rows of a record, as the operands with which they are set.
fn incomplete(at: IndexAt<'_, Tx>, record: &StoredRecord) -> Result<Vec<Vec<u8>>, Error> {
    let space = at.space(Part::Indexes);
    let row = |key: Tuple| {
        let (packed, offset) = key.followed_by(&record.primary_key).pack_stamped();
        let VersionstampOffset::OneIncomplete { offset } = offset else { return None };
        let offset = space.bytes().len() as u32 + offset;
        Some([space.bytes(), &packed, &offset.to_le_bytes()].concat())
    };
    Ok(at.keys(record)?.into_iter().filter_map(|key| row(key.tuple())).collect())
}

/// Performs an operation that the bug changes; `None` for every other operation.
pub(super) async fn apply(
    planted: Planted,
    feeds: &Feeds,
    client: &mut Client,
    op: &FeedsOp,
) -> Option<Outcome<Answer>> {
    let FeedsOp::write { acts } = op else { return None };
    let rows = &Arc::default();
    let body = |tx: Tx| async move {
        let mut registry = Registry::standard();
        plant(&mut registry, &[index_types::VERSION], Wrong { planted, rows: Arc::clone(rows) });
        let mut answers = Vec::new();
        let mut context = RecordContext::within(tx.clone());
        for act in acts {
            answers.extend(feeds.do_acts(&context, &registry, slice::from_ref(act)).await?);
            match planted {
                Planted::ContextEach => {
                    context.close();
                    context = RecordContext::within(tx.clone());
                }
                Planted::FlushesEarly => context.flush()?,
                _ => {}
            }
        }
        context.close();
        Ok::<_, Error>(answers)
    };
    if planted != Planted::Unrecorded {
        let written = client.session.apply(|tx| async move { body(tx).await.map(Recorded) }).await;
        return Some(written_outcome(written));
    }
    let db = client.session.database().clone();
    Some(match db.run(|tx, _| body(tx)).await {
        Ok(answers) => Outcome::Answered(Answer::Written(answers)),
        Err(RunError { error, maybe_committed, .. }) => match error.fdb() {
            Some(error) if maybe_committed => Outcome::Unknown(error),
            Some(error) => Outcome::Failed(error),
            None => Outcome::Violated(error.to_string()),
        },
    })
}

/// Performs a call that the bug changes; `None` for every other call.
pub(super) async fn act(
    planted: Planted,
    context: &RecordContext<Tx>,
    registry: &Registry<Tx>,
    act: &Act,
) -> Result<Option<ActAnswer>, Error> {
    let open = async |number| open(context, registry, number).await;
    Ok(match (planted, act) {
        (Planted::ClearForgotten, Act::Clear(number)) => {
            let (begin, end) = open(*number).await?.keyspace().part(Part::Records).range();
            context.clear_range(&begin, &end)?;
            Some(ActAnswer::Cleared)
        }
        (Planted::OwnVersions, Act::Save(number, id, content)) => {
            let store = open(*number).await?;
            let mut global = [0; 10];
            let read_version = context.transaction()?.get_read_version().await?;
            global[..8].copy_from_slice(&read_version.to_be_bytes());
            let version = SaveVersion::Own(RecordVersion::complete(global, *id as u16));
            let was = store.load_record(&Tuple::from(*id)).await?.is_some();
            client::save(&store, *id, content, RecordExistenceCheck::None, version).await?;
            Some(ActAnswer::Was(was))
        }
        (Planted::SkipsUnchanged, Act::Save(number, id, content)) => {
            let is_same = client::load(&open(*number).await?, *id).await?.as_ref() == Some(content);
            is_same.then_some(ActAnswer::Was(true))
        }
        (Planted::VersionByKey, Act::Version(_, id)) => {
            for number in 0..STORES {
                let version = open(number).await?.load_record_version(&Tuple::from(*id)).await?;
                if let Some(version) = version.filter(|version| !version.is_complete()) {
                    return Ok(Some(ActAnswer::Version(Some(*version.as_bytes()))));
                }
            }
            None
        }
        _ => None,
    })
}

/// Where a scan begins that continues after the records with this version.
pub(super) fn low(planted: Option<Planted>, version: Version) -> Endpoint {
    match planted {
        Some(Planted::TenBytes) => after(last_of(version)),
        Some(Planted::AtLeast) => Endpoint::Inclusive(Tuple::from(RecordVersion::from_bytes(version))),
        _ => after(version),
    }
}

/// The last version that a transaction can give.
fn last_of(version: Version) -> Version {
    let [global @ .., _, _] = version;
    *RecordVersion::complete(global, u16::MAX).as_bytes()
}

/// The feed under which a reader keeps its place.
pub(super) fn place_of(planted: Option<Planted>, feed: &Feed) -> Feed {
    match planted {
        Some(Planted::OnePlace) => Feed { topic: None, ..feed.clone() },
        _ => feed.clone(),
    }
}

/// Reads a page in the way of the bug; `None` if it does not change that.
pub(super) async fn page(
    planted: Option<Planted>,
    feeds: &Feeds,
    db: &Db,
    feed: &Feed,
    place: &mut Place,
) -> Option<Result<Page, RunError<Error>>> {
    match planted? {
        Planted::AtReadVersion => {
            let page = feeds.page(db, feed, place).await;
            if let Ok(page) = &page {
                let mut version = [0xff; 12];
                version[..8].copy_from_slice(&page.read_version.to_be_bytes());
                (place.low, place.continuation) = (Some(version), Vec::new());
            }
            Some(page)
        }
        Planted::PolledApart => {
            let page = feeds.page(db, feed, place).await;
            feeds.pause(db).await;
            Some(match page {
                Ok(page) => loaded_again(db, feed, page).await,
                Err(e) => Err(e),
            })
        }
        _ => None,
    }
}

/// The page with its records as another transaction loads them.
async fn loaded_again(db: &Db, feed: &Feed, page: Page) -> Result<Page, RunError<Error>> {
    let found = &page.entries;
    let entries = db.run(|tx, _| async move {
        let store = open(&RecordContext::within(tx), &Registry::standard(), feed.store).await?;
        let mut entries = found.clone();
        for entry in &mut entries {
            entry.record = client::record(&store, &Tuple::from(entry.id)).await?;
        }
        Ok::<_, Error>(entries)
    });
    let entries = entries.await?;
    Ok(Page { entries, ..page })
}
