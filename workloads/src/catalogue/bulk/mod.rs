//! `bulk`: a job builds an index over rows that writers change meanwhile; a space is built anew beside the
//! one that is read, and swapped.
//!
//! Workers do a few batches and stop, or die in the middle of one; another goes on. The index has counts,
//! so that a row done twice shows, and entries, so that one left out does. Writers keep it right for the
//! rows that the job has passed: at every version the index is exactly that of the rows up to the job's
//! cursor. Builders write a space in batches and publish it, or leave it; every version that readers can
//! see is whole, and of one builder. Each builder keeps a timer beside its last claim, so that a build which
//! was given up although its builder was at work shows, also after a recovery, in which versions jump. Some builds
//! are begun, written, looked at, published or given up, and cleared in one transaction.

mod planted;

use crate::catalogue::leased_queue::Timer;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    looks,
    sessions::{self, slots},
    specimen::{Recorded, UNRECORDED},
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    bulk::{self, BuildId, Error, Job, Limits, Observed, Progress},
    once::{self, Session, converging},
    tx::{
        self, Database, Env,
        Isolation::{Serializable, Snapshot},
        KeyValue, MutationType, RangeOption, RetryError, RunError, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a worker goes on from the cursor that it remembers, not from the one that is recorded", "a batch done again after an unknown result";
    ProgressAfter = "progress-after", "the progress is written in a transaction of its own behind the work", "a job that notes what it has done";
    ProgressBefore = "progress-before", "the progress is written in a transaction of its own before the work", "a job that notes what it is about to do";
    ProgressAtSnapshot = "progress-at-snapshot", "a worker reads the progress at snapshot", "two workers with one batch";
    RowsAtSnapshot = "rows-at-snapshot", "a worker reads the rows of its batch at snapshot", "an index built from a snapshot";
    LastAgain = "last-again", "a batch begins with the last row of the one before", "a cursor that is the last key";
    ShortBatchIsLast = "short-batch-is-last", "the first batch of the range read is taken for all rows, and a short one for the last", "a range that is longer than a batch";
    WriterUnaware = "writer-unaware", "a writer leaves the index to the job", "an index built beside writers that do not know of it";
    PassedAtSnapshot = "passed-at-snapshot", "a writer asks at snapshot whether the job has passed its row", "a check that a commit does not repeat";
    BuiltInPlace = "built-in-place", "a builder writes over the rows that are read", "a load without a workspace";
    PublishedFirst = "published-first", "a build is published before its rows are written", "a swap in the wrong order";
    BaseIgnored = "base-ignored", "a build is published whatever was published since it began", "a swap without a comparison";
    ClaimedOnce = "claimed-once", "a builder makes sure of its build at the beginning only", "a build that was given up goes on";
    AgeInVersions = "age-in-versions", "a build is given up when it began so many versions ago", "an age measured in versions";
    SilenceInVersions = "silence-in-versions", "the silence of a builder is measured by how far the version advances", "a recovery, which jumps a hundred million versions";
    GivenUpUnseen = "given-up-unseen", "a build is given up that was under way before and after the wait, whatever its builder did meanwhile", "an observer who does not compare";
    ClaimsUnseen = "claims-unseen", "a claim leaves nothing that an observer could see", "a builder without a sign of life";
    ClaimAtSnapshot = "claim-at-snapshot", "a claim reads at snapshot whether the build is under way", "a check that a commit does not repeat";
    LookBehindWrites = "look-behind-writes", "a look at the progress in a transaction does not see the batch done in it", "a look-up in a transaction of its own";
    ProgressConflicts = "progress-conflicts", "the progress that is asked for at snapshot is read serializably", "an isolation that is not passed on";
    PinnedBeside = "pinned-beside", "whether a build is current is asked in another transaction beside the one that publishes it", "a look-up that is given the database";
    OldStays = "old-stays", "a publication does not retire the build before", "a swap that leaves the old table";
    ReaderRemembers = "reader-remembers", "a reader asks only once which build is current", "a pointer that is cached";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bulk {
    clients: usize,
    operations: Range<usize>,
    /// So many rows there can be; most of them are there at the beginning.
    rows: i64,
    /// Their values are from 0 to before this.
    values: i64,
    /// Rows in a batch of the job.
    batch: usize,
    /// About how many bytes a batch may send.
    bytes: i64,
    /// Rows in a build, and how many of them are written, read or cleared in one transaction.
    build: (i64, usize),
    /// How long a builder is silent before its build is given up, milliseconds.
    silence: u64,
    /// How many builds are looked at in one transaction.
    page: usize,
    /// How long builders, and readers of several transactions, wait between two of them, milliseconds.
    pause: u64,
    /// How often an operation is about the job, and about the workspace.
    mix: [u32; 2],
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a row.
    Put(i64, i64),
    /// Removes a row.
    Remove(i64),
    /// Does so many batches of the job.
    Work(usize),
    /// Runs the job to its end.
    Finish,
    /// When the job has ended: drops the index, and lets it begin anew.
    Again,
    /// Makes a build with this tag, and publishes it.
    Build(u32),
    /// Makes so many batches of a build, and leaves it.
    Leave(u32, usize),
    /// Gives up old builds, and clears them.
    Sweep,
    /// Clears a batch of a retired build.
    Clear,
    /// Reads the current build in one transaction.
    Read,
    /// Reads it in batches.
    Pages,
    /// Does these about the job in one transaction.
    Together(Vec<Act>),
    /// Begins, writes and publishes a build with this tag in one transaction, looking at it all the time; or
    /// gives it up in the place of publishing it.
    AtOnce(u32, bool),
    /// Asks for what is outside of every range, and for names at the limit and one byte beyond it.
    Beyond,
}

/// One of several calls about the job in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Sets a row or removes it.
    Put(i64, Option<i64>),
    /// Does a batch of so many rows.
    Step(usize),
    /// Whether the job has passed a row.
    Passed(i64),
    /// How far it has come.
    Progress,
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// The row's value before.
    Before(Option<i64>),
    /// Whether the job has passed the row.
    Passed(bool),
    /// Rows done, whether all are, the cursor.
    Progress(u64, bool, Vec<u8>),
}

/// What a build made in one transaction looked like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// The tags of the current build before, of the one to be replaced, and of the current one after.
    tags: [Option<u32>; 3],
    /// Whether it was among those under way before it began, after, after its claim, and when it had ended.
    under_way: [bool; 4],
    /// Whether the claim could be seen.
    claim_seen: bool,
    /// Whether another claim was refused when it had ended, and whether to give it up again did nothing.
    ended: [bool; 2],
    /// Whether it was pinned before it was published, and when it had ended.
    pinned: [bool; 2],
    /// Whether it was left alone as it was observed before the claim, and given up as after it.
    observed: [bool; 2],
    /// Whether all that was retired was cleared, if it was to be.
    cleared: bool,
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The row's value before.
    Before(Option<i64>),
    /// Nothing of interest to the model.
    Done,
    /// Whether the job begins anew.
    Again(bool),
    /// Published, in the place of the build with this tag.
    Published(Option<u32>),
    /// Refused: another build came first.
    Outdated,
    /// Refused: the build was given up.
    GivenUp,
    /// The tag of the current build.
    Tag(Option<u32>),
    /// The build that was read is no longer current.
    Swapped,
    /// What each of several calls answered.
    Together(Vec<Told>),
    /// What a build made in one transaction looked like.
    AtOnce(Looks),
    /// Whether each was refused.
    Beyond(Vec<bool>),
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    /// The tag of the build that its last one is to replace.
    pub(crate) base: Option<u32>,
    /// Which build was current when it looked first; only a planted bug relies on it.
    pub(crate) remembered: Option<BuildId>,
}

/// The sequential model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    rows: BTreeMap<i64, i64>,
    /// The job's progress, as it is stored: rows done, whether all are, the cursor.
    progress: Option<(u64, bool, Vec<u8>)>,
    /// The tag of the current build.
    tag: Option<u32>,
    /// What has had its effect: nothing may have it again.
    done: BTreeSet<(usize, usize)>,
}

pub(crate) fn rows() -> Subspace {
    Subspace::from("rows")
}

fn counts() -> Subspace {
    Subspace::from("counts")
}

fn entries() -> Subspace {
    Subspace::from("entries")
}

fn jobs() -> Subspace {
    Subspace::from("jobs")
}

pub(crate) fn workspace_space() -> Subspace {
    Subspace::from("workspace")
}

pub(crate) fn job() -> Job {
    Job::new(&jobs(), b"index", rows().range()).expect("a short name")
}

/// Where the job's progress is.
pub(crate) fn job_key() -> Vec<u8> {
    jobs().pack(&(TupleBytes::from(&b"index"[..]),))
}

pub(crate) fn workspace() -> bulk::Workspace {
    bulk::Workspace::new(workspace_space()).expect("a short prefix")
}

/// The value of a row of the source.
pub(crate) fn value(row: &[u8]) -> Result<i64, Error> {
    unpack::<(i64,)>(row).map(|(value,)| value).map_err(|_| Error::Foreign(Bytes::copy_from_slice(row)))
}

/// Adds a row to the index, or takes it away.
pub(crate) fn index<T: Transaction>(tx: &T, row: &[u8], value: i64, adds: bool) {
    let one: i64 = if adds { 1 } else { -1 };
    tx.atomic_op(&counts().pack(&(value,)), &one.to_le_bytes(), MutationType::Add);
    let entry = entries().pack(&(value, TupleBytes::from(row)));
    match adds {
        true => tx.set(&entry, b""),
        false => tx.clear(&entry),
    }
}

/// What the job does with a row.
pub(crate) async fn work<T: Transaction>(tx: T, row: KeyValue) -> Result<(), Error> {
    index(&tx, &row.key, value(&row.value)?, true);
    Ok(())
}

/// The build of a tag, which names one operation of a run.
pub(crate) fn build_id(tag: u32) -> BuildId {
    BuildId(u128::from(tag).to_be_bytes())
}

/// The tag of a build.
pub(crate) fn tag_of(build: BuildId) -> u32 {
    u128::from_be_bytes(build.0) as u32
}

/// What a row of a build holds.
pub(crate) fn built(tag: u32) -> Vec<u8> {
    pack(&(tag,))
}

/// The tag of a build's rows, which must be all of one: nothing missing, nothing mixed.
pub(crate) fn tag(space: &Subspace, rows: &[KeyValue], expected: i64) -> Result<u32, String> {
    let mut tag = None;
    for (place, row) in (0..).zip(rows) {
        let at: Option<(i64,)> = space.unpack(&row.key).ok();
        let found: Option<(u32,)> = unpack(&row.value).ok();
        match (at, found) {
            (Some((at,)), Some((found,))) if at == place && tag.is_none_or(|tag| tag == found) => {
                tag = Some(found);
            }
            _ => return Err(format!("row {place} of a build is {at:?} of tag {found:?}, after tag {tag:?}")),
        }
    }
    match tag {
        Some(tag) if rows.len() as i64 == expected => Ok(tag),
        _ => Err(format!("a build has {} rows of {expected}", rows.len())),
    }
}

impl Bulk {
    pub(crate) fn limits(&self) -> Limits {
        Limits { rows: self.batch, bytes: self.bytes, time: Duration::from_secs(1) }
    }

    /// Rows of a build, and how many a transaction takes.
    pub(crate) fn build(&self) -> (i64, usize) {
        self.build
    }

    /// The rows of a build, in batches.
    pub(crate) fn batches(&self) -> Vec<Vec<i64>> {
        let rows: Vec<i64> = (0..self.build.0).collect();
        rows.chunks(self.build.1).map(<[i64]>::to_vec).collect()
    }

    /// What a builder or a reader does between two transactions.
    pub(crate) async fn pause<D: Database>(&self, db: &D) {
        if self.pause > 0 {
            db.env().sleep(Duration::from_millis(self.pause)).await;
        }
    }

    /// How long a builder is silent before its build is given up.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.silence)
    }

    /// Begins a build and writes up to so many batches of it. Answers the tag of the one it is to replace. The
    /// timer is that of the last sign of life, and began before it.
    pub(crate) async fn make<D: Database>(
        &self,
        db: &D,
        tag: u32,
        most: usize,
        timer: &mut Timer,
    ) -> Result<Option<u32>, RunError<Error>> {
        let (workspace, build, planted) = (&workspace(), build_id(tag), self.planted);
        *timer = Timer::new(db, self.silence());
        let base = converging(db, |tx| async move { workspace.begin(&tx, build).await }).await?;
        for batch in self.batches().iter().take(most) {
            self.pause(db).await;
            let anew = Timer::new(db, self.silence());
            converging(db, |tx| async move {
                let space = match planted {
                    Some(planted) => planted::claim(planted, &tx, build).await?,
                    None => workspace.claim(&tx, build).await?,
                };
                for row in batch {
                    tx.set(&space.pack(&(*row,)), &built(tag));
                }
                Ok::<_, Error>(())
            })
            .await?;
            *timer = anew;
        }
        Ok(base.map(tag_of))
    }

    /// Reads the current build in batches, each of which makes sure that it still is.
    async fn pages<D: Database>(&self, db: &D) -> Result<Outcome<Answer>, RunError<Error>> {
        let workspace = &workspace();
        let current = db.run(|tx, _| async move { workspace.current(&tx, Snapshot).await }).await?;
        let Some((build, space)) = current else { return Ok(Outcome::Answered(Answer::Tag(None))) };
        let mut rows: Vec<KeyValue> = Vec::new();
        loop {
            let (most, last) = (self.build.1, rows.last().map(|row| row.key.clone()));
            let last = &last;
            let page = db
                .run(|tx, _| async move {
                    let look = |tx, isolation| async move { workspace.pinned(&tx, build, isolation).await };
                    let space = looks::twice(&tx, &build, look).await?;
                    rest(&tx, &space, last.as_deref(), Some(most)).await
                })
                .await?;
            let ends = page.len() < most;
            rows.extend(page);
            self.pause(db).await;
            if ends {
                return Ok(match tag(&space, &rows, self.build.0) {
                    Ok(tag) => Outcome::Answered(Answer::Tag(Some(tag))),
                    Err(why) => Outcome::Violated(why),
                });
            }
        }
    }
}

/// A build is not given up while its builder is at work.
pub(crate) fn alive(outcome: Outcome<Answer>, timer: &mut Timer) -> Outcome<Answer> {
    match outcome {
        Outcome::Answered(Answer::GivenUp) if !timer.is_over() => {
            Outcome::Violated("a build was given up although its builder was at work".into())
        }
        outcome => outcome,
    }
}

/// Does several calls about the job.
pub(crate) async fn together<T: Transaction>(
    tx: &T,
    env: &Env,
    job: &Job,
    acts: &[Act],
) -> Result<Vec<Told>, Error> {
    let mut told = Vec::with_capacity(acts.len());
    for act in acts {
        told.push(match *act {
            Act::Put(row, new) => Told::Before(put(tx, job, row, new).await?),
            Act::Passed(row) => Told::Passed(job.has_passed(tx, &rows().pack(&(row,))).await?),
            Act::Step(most) => {
                let limits = Limits { rows: most, bytes: i64::MAX, time: Duration::MAX };
                progress(job.step(tx, env, &limits, work).await?)
            }
            Act::Progress => {
                let look = |tx, isolation| async move { job.progress(&tx, isolation).await };
                progress(looks::twice(tx, act, look).await?)
            }
        });
    }
    Ok(told)
}

pub(crate) fn progress(progress: Progress) -> Told {
    Told::Progress(progress.rows, progress.finished, progress.cursor.to_vec())
}

/// Makes a build in one transaction, and looks at it all the time.
async fn at_once<D: Database>(
    db: &D,
    tx: &D::Transaction,
    bulk: &Bulk,
    (build, tag): (BuildId, u32),
    publishes: bool,
) -> Result<Looks, Error> {
    let workspace = &workspace();
    let pinned = async || {
        let pinned = match bulk.planted {
            Some(planted) => planted::pinned(planted, db, tx, build).await,
            None => {
                let look = |tx, isolation| async move { workspace.pinned(&tx, build, isolation).await };
                looks::twice(tx, &build, look).await
            }
        };
        match pinned {
            Ok(_) => Ok(true),
            Err(Error::Swapped { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    };
    let current = async || {
        let current = workspace.current(tx, Serializable).await?;
        Ok::<_, Error>(current.map(|(build, _)| tag_of(build)))
    };
    let observed = async || -> Result<Option<Observed>, Error> {
        let mut last = None;
        loop {
            let page = workspace.observe(tx, last, bulk.page).await?;
            let found = page.iter().find(|observed| observed.build == build);
            if found.is_some() || page.len() < bulk.page {
                return Ok(found.copied());
            }
            last = page.last().map(|observed| observed.build);
        }
    };
    let (before, unbegun) = (current().await?, observed().await?);
    let base = workspace.begin(tx, build).await?.map(tag_of);
    let begun = observed().await?;
    let space = workspace.claim(tx, build).await?;
    (0..bulk.build.0).for_each(|row| tx.set(&space.pack(&(row,)), &built(tag)));
    let claimed = observed().await?;
    let pinned_before = pinned().await?;
    let discarded = async |observed: Option<Observed>| match observed {
        Some(observed) => workspace.discard_observed(tx, observed).await,
        None => Ok(false),
    };
    let left_alone = !discarded(begun).await?;
    let given_up = match publishes {
        true => {
            workspace.publish(tx, build).await?;
            true
        }
        false => discarded(claimed).await?,
    };
    let refused = matches!(workspace.claim(tx, build).await, Err(Error::NoBuild(of)) if of == build);
    let again = workspace.discard(tx, build).await?;
    let gone = observed().await?;
    let pinned = [pinned_before, pinned().await?];
    // Sometimes, for others are to find something to clear, too.
    let cleared = tag % 2 > 0 || clear(tx, bulk.build.1).await?;
    Ok(Looks {
        tags: [before, base, current().await?],
        under_way: [unbegun, begun, claimed, gone].map(|observed| observed.is_some()),
        claim_seen: begun != claimed,
        ended: [refused, !again],
        pinned,
        observed: [left_alone, given_up],
        cleared,
    })
}

/// Clears what is retired, what this very transaction has retired too. Whether all of it is gone, and as many
/// rows as there were.
async fn clear<T: Transaction>(tx: &T, most: usize) -> Result<bool, Error> {
    let space = workspace_space();
    let retired = async || -> Result<(usize, usize), Error> {
        let builds = rest(tx, &space.subspace(&(4,)), None, None).await?;
        let mut rows = 0;
        for row in &builds {
            let build = space.unpack::<(i64, TupleBytes<'_>)>(&row.key);
            let (_, build) = build.map_err(|_| Error::Foreign(row.key.clone()))?;
            rows += rest(tx, &space.subspace(&(2, build)), None, None).await?.len();
        }
        Ok((builds.len(), rows))
    };
    let (builds, rows) = retired().await?;
    let mut cleared = 0;
    // Each batch clears a row, or is the last one of a build.
    for _ in 0..=builds + rows {
        let batch = workspace().clear_retired(tx, most).await?;
        cleared += batch.rows;
        if batch.rows > most || !batch.more {
            break;
        }
    }
    Ok(cleared == rows && retired().await? == (0, 0))
}

/// Whether each of these was refused: names at the limit and beyond it, keys at the ends of a range.
async fn beyond<T: Transaction>(tx: &T) -> Result<Vec<bool>, Error> {
    let named = |bytes: usize| {
        let name = vec![b'n'; bytes - jobs().pack(&(TupleBytes::from(&b""[..]),)).len()];
        matches!(Job::new(&jobs(), &name, rows().range()), Err(Error::TooLarge(_)))
    };
    // The id that takes most bytes in a tuple is all zeros.
    let below = |bytes: usize| {
        let record = Subspace::all().pack(&(1, TupleBytes::from(&[0; 16][..]))).len();
        let workspace = bulk::Workspace::new(Subspace::from_bytes(vec![b'w'; bytes - record]));
        matches!(workspace, Err(Error::TooLarge(_)))
    };
    let (job, (begin, end)) = (&job(), &rows().range());
    let outside = async |key: &[u8]| match job.has_passed(tx, key).await {
        Err(Error::OutsideRange { key: of }) => Ok(of[..] == key[..]),
        answered => answered.map(|_| false),
    };
    Ok(vec![
        named(tx::KEY_SIZE_LIMIT),
        named(tx::KEY_SIZE_LIMIT + 1),
        below(tx::KEY_SIZE_LIMIT),
        below(tx::KEY_SIZE_LIMIT + 1),
        outside(begin).await?,
        outside(&begin[..begin.len() - 1]).await?,
        outside(&[&begin[..], b"\xff\xff"].concat()).await?,
        outside(end).await?,
        outside(b"").await?,
    ])
}

/// What [`beyond`] must return; a key within the bounds of the range is not refused, whatever it looks like.
const BEYOND: [bool; 9] = [false, true, false, true, false, true, false, true, true];

/// Sets a row or removes it, and keeps the index right if the job has passed it. Answers what was there.
pub(crate) async fn put<T: Transaction>(
    tx: &T,
    job: &Job,
    row: i64,
    new: Option<i64>,
) -> Result<Option<i64>, Error> {
    let key = rows().pack(&(row,));
    let indexed = job.has_passed(tx, &key).await?;
    put_row(tx, row, new, indexed).await
}

/// The same for a row of which it is known whether the job has passed it.
pub(crate) async fn put_row<T: Transaction>(
    tx: &T,
    row: i64,
    new: Option<i64>,
    indexed: bool,
) -> Result<Option<i64>, Error> {
    let key = rows().pack(&(row,));
    let old = tx.get(&key, Serializable).await?.map(|old| value(&old)).transpose()?;
    if indexed {
        old.into_iter().for_each(|old| index(tx, &key, old, false));
        new.into_iter().for_each(|new| index(tx, &key, new, true));
    }
    match new {
        Some(new) => tx.set(&key, &pack(&(new,))),
        None => tx.clear(&key),
    }
    Ok(old)
}

/// The rows of a space behind a key of it, or up to so many of them.
pub(crate) async fn rest<T: Transaction>(
    tx: &T,
    space: &Subspace,
    last: Option<&[u8]>,
    most: Option<usize>,
) -> Result<Vec<KeyValue>, Error> {
    let (begin, end) = space.range();
    let begin = last.map_or(Bytes::from(begin), tx::key_after);
    let range = RangeOption { limit: most, ..RangeOption::new(begin, end) };
    Ok(tx.get_range_all(range, Serializable).await?)
}

pub(crate) fn done<A>(ran: Result<A, RunError<Error>>) -> Outcome<Answer> {
    ran.map_or_else(|e| refused(e.error), |_| Outcome::Answered(Answer::Done))
}

/// A worker that gave up: its batches may have been done, and may be done by the next one.
pub(crate) fn worked(e: RunError<Error>) -> Outcome<Answer> {
    match e.error.fdb() {
        Some(error) => Outcome::Unknown(error),
        None => Outcome::Violated(e.error.to_string()),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::Outdated(_) => Outcome::Answered(Answer::Outdated),
        Error::NoBuild(_) => Outcome::Answered(Answer::GivenUp),
        Error::Swapped { .. } => Outcome::Answered(Answer::Swapped),
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
}

/// The answer of a build made in one transaction.
fn looks(Recorded(mut looks): Recorded<Looks>) -> Answer {
    looks.pop().map_or(Answer::GivenUp, Answer::AtOnce)
}

pub(crate) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(a) => Outcome::Answered(answer(a)),
        once::Outcome::Refused(e) => refused(e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// Everything that is stored, as a model; what is not as it must be.
async fn stored<T: Transaction>(tx: &T, build: i64) -> tx::Result<Result<Model, String>> {
    let mut read = Vec::new();
    for space in [rows(), counts(), entries(), workspace_space()] {
        read.push(tx.get_range_all(RangeOption::from(space.range()), Serializable).await?);
    }
    let progress = match job().progress(tx, Serializable).await {
        Ok(progress) => progress,
        Err(e) => return e.fdb().map_or_else(|| Ok(Err(e.to_string())), Err),
    };
    let [rows, counts, entries, workspace] = &read[..] else { return Ok(Err("four spaces".into())) };
    Ok(whole(&progress, rows, counts, entries)
        .and_then(|rows| Ok(Model { rows, tag: current(workspace, build)?, ..Model::default() })))
}

/// The rows, if the index is exactly that of those which the job has passed.
fn whole(
    progress: &Progress,
    stored: &[KeyValue],
    counts: &[KeyValue],
    entries: &[KeyValue],
) -> Result<BTreeMap<i64, i64>, String> {
    let foreign = |row: &KeyValue| format!("a row that nobody writes: {}", row.key.escape_ascii());
    let (mut model, mut right) = (BTreeMap::new(), (BTreeMap::new(), BTreeSet::new()));
    for row in stored {
        let (at,): (i64,) = rows().unpack(&row.key).map_err(|_| foreign(row))?;
        let value = value(&row.value).map_err(|_| foreign(row))?;
        model.insert(at, value);
        if row.key < progress.cursor {
            *right.0.entry(value).or_insert(0) += 1;
            right.1.insert((value, row.key.to_vec()));
        }
    }
    let mut index = (BTreeMap::new(), BTreeSet::new());
    for row in counts {
        let (value,): (i64,) = self::counts().unpack(&row.key).map_err(|_| foreign(row))?;
        let count = row.value[..].try_into().map(i64::from_le_bytes).map_err(|_| foreign(row))?;
        if count != 0 {
            index.0.insert(value, count);
        }
    }
    for row in entries {
        let (value, key): (i64, TupleBytes<'_>) =
            self::entries().unpack(&row.key).map_err(|_| foreign(row))?;
        index.1.insert((value, key.to_vec()));
    }
    match index == right {
        true => Ok(model),
        false => Err(format!(
            "behind {} rows the index counts {:?} in {} entries, should count {:?} in {}",
            progress.rows,
            index.0,
            index.1.len(),
            right.0,
            right.1.len()
        )),
    }
}

/// The tag of the current build, if it is whole, and every other row is of a build that is known.
fn current(stored: &[KeyValue], rows: i64) -> Result<Option<u32>, String> {
    let space = workspace_space();
    let mut builds: BTreeMap<Vec<u8>, Vec<KeyValue>> = BTreeMap::new();
    let (mut pointer, mut known, mut claimed) = (None, BTreeSet::new(), BTreeSet::new());
    let mut retired = BTreeSet::new();
    for row in stored {
        if let Ok((0,)) = space.unpack::<(i64,)>(&row.key) {
            pointer = unpack::<(TupleBytes<'_>,)>(&row.value).ok().map(|(build,)| build.to_vec());
        } else if let Ok((1, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            known.insert(build.to_vec());
        } else if let Ok((3, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            claimed.insert(build.to_vec());
        } else if let Ok((4, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            retired.insert(build.to_vec());
        } else if let Ok((2, build, _)) = space.unpack::<(i64, TupleBytes<'_>, i64)>(&row.key) {
            builds.entry(build.to_vec()).or_default().push(row.clone());
        } else {
            return Err(format!("a row that nobody writes: {}", row.key.escape_ascii()));
        }
    }
    if let Some(build) = claimed.iter().find(|build| !known.contains(*build)) {
        return Err(format!("claims of build {} are left, which is not under way", build.escape_ascii()));
    }
    let of = |build: &Vec<u8>| {
        [known.contains(build), retired.contains(build), pointer.as_ref() == Some(build)]
            .into_iter()
            .filter(|is| *is)
            .count()
    };
    if let Some(build) = known.iter().chain(&retired).chain(&pointer).find(|build| of(build) != 1) {
        return Err(format!("build {} is in two states", build.escape_ascii()));
    }
    if let Some(build) = builds.keys().find(|build| of(build) == 0) {
        return Err(format!("rows of build {} are left, of which nobody knows", build.escape_ascii()));
    }
    let Some(build) = pointer else { return Ok(None) };
    let data = space.subspace(&(2, TupleBytes::from(&build[..])));
    tag(&data, builds.get(&build).map_or(&[][..], Vec::as_slice), rows).map(Some)
}

impl Workload for Bulk {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "bulk";
    const ABOUT: &'static str = "an index built in batches beside writers; a space built anew and swapped";
    /// A worker's operation is many transactions.
    const ONE_EFFECT: bool = false;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "bulk: a batch leaves rows for the next one",
            "bulk: a reader notices that its build is no longer current",
            "bulk: a build is outdated before it is published",
            "bulk: a builder at work is left alone",
            "bulk: a retired build is cleared in several batches",
        ]
    }

    /// What is beside the current build is nothing that a reader could see.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let space = workspace_space();
        let unseen = [1, 2, 3, 4].map(|part| space.subspace(&(part,)));
        !sessions::is_fence(mutations) && !sessions::is_below(&unseen, mutations)
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Bulk {
        let (rows, most) = (rng.range(4..40) as i64, rng.range(8..24) as usize);
        Bulk {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            rows,
            values: rng.range(1..4) as i64,
            batch: rng.range(1..8) as usize,
            bytes: *rng.pick(&[300, 1_000, 100_000]),
            build: (rng.range(2..20) as i64, rng.range(1..4) as usize),
            silence: *rng.pick(&[0, 40, 80, 160, 600, 2_000, 2_000]),
            page: rng.range(1..4) as usize,
            pause: *rng.pick(&[0, 3, 15, 60]),
            mix: *rng.pick(&[[1, 1], [3, 1], [1, 3]]),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let sources = (0..self.rows).step_by(5).map(|row| rows().pack(&(row,)).into());
        let index = (0..self.values).map(|value| counts().pack(&(value,)).into());
        slots
            .chain(sources)
            .chain(index)
            .chain([job_key().into(), workspace_space().pack(&(1,)).into()])
            .collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let row = || 0..self.rows;
        let [jobs, builds] = self.mix;
        let act = prop_oneof![
            3 => (row(), proptest::option::of(0..self.values)).prop_map(|(row, new)| Act::Put(row, new)),
            2 => (0..6usize).prop_map(Act::Step),
            3 => row().prop_map(Act::Passed),
            2 => Just(Act::Progress),
        ];
        let op = prop_oneof![
            6 * jobs => (row(), 0..self.values).prop_map(|(row, value)| Op::Put(row, value)),
            3 * jobs => row().prop_map(Op::Remove),
            5 * jobs => (1..5usize).prop_map(Op::Work),
            jobs => Just(Op::Finish),
            2 * jobs => Just(Op::Again),
            5 * builds => Just(Op::Build(0)),
            builds => (0..4usize).prop_map(|most| Op::Leave(0, most)),
            builds => any::<bool>().prop_map(|publishes| Op::AtOnce(0, publishes)),
            3 * jobs => vec(act, 1..6).prop_map(Op::Together),
            1 => Just(Op::Beyond),
            6 * builds => Just(Op::Sweep),
            2 * builds => Just(Op::Clear),
            builds => Just(Op::Read),
            4 * builds => Just(Op::Pages),
        ];
        let tagged = move |mut ops: Vec<Op>| {
            for (number, op) in ops.iter_mut().enumerate() {
                if let Op::Build(tag) | Op::Leave(tag, _) | Op::AtOnce(tag, _) = op {
                    *tag = (client << 16 | (number & 0xffff)) as u32;
                }
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(tagged).boxed()
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move {
            for (row, value) in self.model().rows {
                tx.set(&rows().pack(&(row,)), &pack(&(value,)));
            }
            Ok(())
        });
        filled.await.map_err(|e| e.error)
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        Ok(Client { session: sessions::open(db, client, self.timeout).await?, base: None, remembered: None })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let Client { session, base, .. } = client;
        let db = &session.database().clone();
        let (job, workspace) = (&job(), &workspace());
        match op {
            Op::Put(row, value) => {
                let put = session.apply(|tx| async move { put(&tx, job, *row, Some(*value)).await });
                applied(put.await, Answer::Before)
            }
            Op::Remove(row) => {
                let put = session.apply(|tx| async move { put(&tx, job, *row, None).await });
                applied(put.await, Answer::Before)
            }
            Op::Work(batches) => {
                for _ in 0..*batches {
                    match job.advance(db, &self.limits(), work).await {
                        Ok(Progress { finished: true, .. }) => break,
                        Ok(_) => {}
                        Err(e) => return worked(e),
                    }
                }
                Outcome::Answered(Answer::Done)
            }
            Op::Finish => match job.run(db, &self.limits(), work).await {
                Ok(Progress { finished: true, .. }) => Outcome::Answered(Answer::Done),
                Ok(progress) => Outcome::Violated(format!("the job has ended at {progress:?}")),
                Err(e) => worked(e),
            },
            Op::Again => {
                let again = session.apply(|tx| async move {
                    let finished = job.progress(&tx, Serializable).await?.finished;
                    if finished {
                        for space in [counts(), entries()] {
                            let (begin, end) = space.range();
                            tx.clear_range(&begin, &end);
                        }
                        job.forget(&tx).await?;
                    }
                    Ok::<_, Error>(finished)
                });
                applied(again.await, Answer::Again)
            }
            Op::Build(tag) => {
                let mut timer = Timer::new(db, self.silence());
                let published = match self.make(db, *tag, usize::MAX, &mut timer).await {
                    Ok(found) => {
                        *base = found;
                        let build = build_id(*tag);
                        let published =
                            session.apply(|tx| async move { workspace.publish(&tx, build).await }).await;
                        applied(published, |()| Answer::Published(found))
                    }
                    Err(e) => refused(e.error),
                };
                alive(published, &mut timer)
            }
            Op::Leave(tag, most) => {
                let mut timer = Timer::new(db, self.silence());
                let left = done(self.make(db, *tag, *most, &mut timer).await);
                alive(left, &mut timer)
            }
            Op::Sweep => match workspace.discard_unchanged(db, self.silence(), self.page).await {
                Ok(_) => done(workspace.clear_all_retired(db, self.build.1).await),
                Err(e) => refused(e.error),
            },
            Op::Together(acts) => {
                let env = db.env();
                let together = session.apply(|tx| async move {
                    let told = together(&tx, env, job, acts).await?;
                    Ok::<_, Error>(Recorded(told))
                });
                applied(together.await, |Recorded(told)| Answer::Together(told))
            }
            Op::AtOnce(tag, publishes) => {
                let build = if *publishes { build_id(*tag) } else { BuildId::draw(db.env()) };
                let made = session.apply(|tx| async move {
                    let looks = at_once(db, &tx, self, (build, *tag), *publishes).await?;
                    Ok::<_, Error>(Recorded(vec![looks]))
                });
                applied(made.await, looks)
            }
            Op::Beyond => {
                let beyond = db.run(|tx, _| async move { beyond(&tx).await }).await;
                beyond.map_or_else(|e| refused(e.error), |told| Outcome::Answered(Answer::Beyond(told)))
            }
            Op::Clear => {
                let most = self.build.1;
                done(converging(db, |tx| async move { workspace.clear_retired(&tx, most).await }).await)
            }
            Op::Read => {
                let read = db
                    .run(|tx, _| async move {
                        let look = |tx, isolation| async move { workspace.current(&tx, isolation).await };
                        let Some((_, space)) = looks::twice(&tx, op, look).await? else {
                            return Ok(None);
                        };
                        let rows = rest(&tx, &space, None, None).await?;
                        Ok::<_, Error>(Some((space, rows)))
                    })
                    .await;
                match read {
                    Ok(None) => Outcome::Answered(Answer::Tag(None)),
                    Ok(Some((space, rows))) => match tag(&space, &rows, self.build.0) {
                        Ok(tag) => Outcome::Answered(Answer::Tag(Some(tag))),
                        Err(why) => Outcome::Violated(why),
                    },
                    Err(e) => refused(e.error),
                }
            }
            Op::Pages => self.pages(db).await.unwrap_or_else(|e| refused(e.error)),
        }
    }

    async fn recall<D: Database>(&self, client: &mut Client<D>) {
        sessions::read_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        let base = client.base;
        let ask = async |session: &mut Session<D>, pending| {
            let answer = match op {
                Op::Put(..) | Op::Remove(_) => session.resolve(pending).await?.map(Answer::Before),
                Op::Again => session.resolve(pending).await?.map(Answer::Again),
                Op::Together(_) => {
                    session.resolve(pending).await?.map(|Recorded(told)| Answer::Together(told))
                }
                Op::AtOnce(..) => session.resolve(pending).await?.map(looks),
                _ => session.resolve(pending).await?.map(|()| Answer::Published(base)),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        // Two rows of three are there.
        let rows = (0..self.rows).filter(|row| row % 3 != 2).map(|row| (row, row % self.values));
        Model { rows: rows.collect(), ..Model::default() }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        if matches!(step.op, Op::Work(_) | Op::Finish) {
            return if step.committed { self.went_on(model, step.mutations) } else { Ok(()) };
        }
        if !step.committed {
            return looked(model, step);
        }
        if !model.done.insert((step.client, step.index)) {
            return Err("took effect a second time".into());
        }
        let expected = match step.op {
            Op::Put(row, value) => Answer::Before(model.rows.insert(*row, *value)),
            Op::Remove(row) => Answer::Before(model.rows.remove(row)),
            Op::Again => {
                let finished = model.progress.as_ref().is_some_and(|(_, finished, _)| *finished);
                if finished {
                    model.progress = None;
                }
                Answer::Again(finished)
            }
            Op::Build(tag) => Answer::Published(model.tag.replace(*tag)),
            Op::Together(acts) => Answer::Together(acts.iter().map(|act| model.act(act)).collect()),
            Op::AtOnce(tag, publishes) => {
                let before = model.tag;
                if *publishes {
                    model.tag = Some(*tag);
                }
                Answer::AtOnce(Looks {
                    tags: [before, before, model.tag],
                    under_way: [false, true, true, false],
                    claim_seen: true,
                    ended: [true; 2],
                    pinned: [false, *publishes],
                    observed: [true; 2],
                    cleared: true,
                })
            }
            _ => return Err("committed what others can see".into()),
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("answered {answer:?} where the model answers {expected:?}"))
            }
            _ => Ok(()),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(stored(tx, self.build.0).await?.map(drop))
    }

    /// Runs the job to its end and clears what is not current.
    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        let workspace = &workspace();
        let cleared = async {
            job().run(db, &self.limits(), work).await?;
            workspace.discard_unchanged(db, Duration::ZERO, 1).await?;
            workspace.clear_all_retired(db, self.build.1).await
        };
        if let Err(e) = cleared.await {
            return e.error.fdb().map_or_else(|| Ok(Err(e.to_string())), Err);
        }
        let build = self.build.0;
        let stored = db.run(|tx, _| async move { stored(&tx, build).await }).await.map_err(|e| e.error)?;
        let left = db.run(|tx, _| async move {
            let range = RangeOption::from(workspace_space().range());
            Ok::<_, tx::Error>(tx.get_range_all(range, Serializable).await?.len() as i64)
        });
        let left = left.await.map_err(|e| e.error)?;
        let remain = if model.tag.is_some() { build + 1 } else { 0 };
        Ok(stored.and_then(|stored| {
            match (stored.rows == model.rows && stored.tag == model.tag, left == remain) {
                (true, true) => Ok(()),
                (true, false) => Err(format!("{left} keys are left in the workspace, should be {remain}")),
                (false, _) => Err(format!("the database holds {stored:?}, should hold {model:?}")),
            }
        }))
    }
}

impl Bulk {
    /// A batch of the job: the rows that it has done are those between the cursors.
    fn went_on(&self, model: &mut Model, mutations: &[Mutation]) -> Result<(), String> {
        let key = job_key();
        let stored = mutations.iter().find_map(|mutation| match mutation {
            Mutation::Set(of, value) if of[..] == key[..] => Some(value),
            _ => None,
        });
        let stored = stored.ok_or("a batch without its progress")?;
        let (rows, finished, cursor): (u64, bool, TupleBytes<'_>) =
            unpack(stored).map_err(|_| "a progress that cannot be read".to_owned())?;
        let mut expected = model.clone();
        let batch = rows.saturating_sub(expected.progress().0);
        let most = if finished { usize::MAX } else { batch as usize };
        expected.go_on(most);
        let found = (rows, finished, cursor.to_vec());
        if expected.progress() != found || batch > self.batch as u64 || (batch == 0 && !finished) {
            return Err(format!(
                "a batch of up to {} rows led to {found:?}, should lead to {:?}",
                self.batch,
                expected.progress()
            ));
        }
        *model = expected;
        Ok(())
    }
}

impl Model {
    fn progress(&self) -> (u64, bool, Vec<u8>) {
        self.progress.clone().unwrap_or_else(|| (0, false, rows().range().0))
    }

    /// Does a batch of up to so many rows.
    fn go_on(&mut self, most: usize) {
        let (mut done, mut finished, mut cursor) = self.progress();
        if finished {
            return;
        }
        let keys = self.rows.keys().map(|row| rows().pack(&(*row,)));
        let mut left = keys.filter(|key| *key >= cursor).collect::<Vec<_>>().into_iter();
        let mut batch = 0;
        while batch < most {
            let Some(key) = left.next() else {
                (finished, cursor) = (true, rows().range().1);
                break;
            };
            (done, batch, cursor) = (done + 1, batch + 1, tx::key_after(&key).to_vec());
        }
        self.progress = Some((done, finished, cursor));
    }

    fn act(&mut self, act: &Act) -> Told {
        match *act {
            Act::Put(row, Some(new)) => Told::Before(self.rows.insert(row, new)),
            Act::Put(row, None) => Told::Before(self.rows.remove(&row)),
            Act::Passed(row) => {
                let (_, finished, cursor) = self.progress();
                Told::Passed(finished || rows().pack(&(row,)) < cursor)
            }
            Act::Step(most) => {
                self.go_on(most.max(1));
                self.told()
            }
            Act::Progress => self.told(),
        }
    }

    fn told(&self) -> Told {
        let (rows, finished, cursor) = self.progress();
        Told::Progress(rows, finished, cursor)
    }
}

/// An operation without an effect: its answer must fit the model as it stands.
fn looked(model: &Model, step: &Step<'_, Bulk>) -> Result<(), String> {
    let Some(answer) = step.answer else { return Ok(()) };
    let fits = match (step.op, answer) {
        (Op::Build(_), Answer::Outdated | Answer::GivenUp) | (Op::Leave(..), Answer::GivenUp) => true,
        (Op::Leave(..) | Op::Sweep | Op::Clear, Answer::Done) | (Op::Pages, Answer::Swapped) => true,
        (Op::Read | Op::Pages, Answer::Tag(tag)) => model.tag == *tag,
        (Op::Beyond, Answer::Beyond(refused)) => refused[..] == BEYOND,
        _ => return Err(format!("answered {answer:?}, but nothing was committed")),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("answered {answer:?} where the current build is {:?}", model.tag)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(space: Subspace, at: i64, value: Vec<u8>) -> KeyValue {
        KeyValue::new(space.pack(&(at,)), value)
    }

    #[test]
    fn a_row_done_twice_and_one_left_out_are_noticed() {
        let stored: Vec<_> = (0..3).map(|at| row(rows(), at, pack(&(0i64,)))).collect();
        let progress = Progress { rows: 2, finished: false, cursor: stored[2].key.clone() };
        let entries: Vec<_> = stored[..2]
            .iter()
            .map(|row| KeyValue::new(entries().pack(&(0i64, TupleBytes::from(&row.key[..]))), ""))
            .collect();
        let count = |n: i64| vec![row(counts(), 0, n.to_le_bytes().to_vec())];
        assert!(whole(&progress, &stored, &count(2), &entries).is_ok());
        assert!(whole(&progress, &stored, &count(3), &entries).is_err());
        assert!(whole(&progress, &stored, &count(2), &entries[..1]).is_err());
    }

    #[test]
    fn a_build_that_is_not_whole_is_noticed() {
        let space = Subspace::from("s");
        let built = |tags: &[u32]| -> Vec<KeyValue> {
            (0..).zip(tags).map(|(at, tag)| row(space.clone(), at, built(*tag))).collect()
        };
        assert_eq!(tag(&space, &built(&[7, 7]), 2), Ok(7));
        assert!(tag(&space, &built(&[7]), 2).is_err());
        assert!(tag(&space, &built(&[7, 8]), 2).is_err());
        assert!(tag(&space, &built(&[7, 7])[1..], 1).is_err());
    }
}
