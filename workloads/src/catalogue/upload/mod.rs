//! `upload`: blobs beyond one transaction are uploaded in parts, read page by page, given up and collected.
//!
//! Parts are a few bytes, so that an upload and a paged read are many small transactions among which
//! others come: uploads of the same blob, writes and deletions, and collectors that wait for a sign of life
//! for a moment or for a second. Some uploads go step by step: begun again, under a name that is not theirs,
//! with parts out of order, put twice with the same bytes and with others, too long, missing, finished too
//! early, given up and begun anew; several steps in one transaction, a refused one among them. Each answer is
//! compared with what the uploader knows. What ends an upload composes with calls on blobs before and after
//! it. Uploaders die midway, by themselves or because their client does.
//!
//! A blob is at every version one content as a whole, a reader's pages are all of one, and no collector
//! removes an upload that showed a sign of life while it waited.

mod planted;

use super::blob::{self, Blob, Data, Stored, change, writable};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use futures::{FutureExt, future::BoxFuture};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    looks,
    sessions::{self, known, patiently, slots},
    specimen::{At, Content, Recorded, Specimen, UNRECORDED},
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    blob::{Blobs, Error, Expect, Generation, MAX_PARTS, Pages, UploadId},
    once::{self, Session, converging},
    tx::{
        self, Database, Env,
        Isolation::{Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{collections::BTreeMap, ops::Range, time::Duration};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "the last transaction of an upload is retried after an unknown result without an operation record", "an upload that is finished twice";
    InPlace = "in-place", "parts are appended to the blob itself", "an upload where everybody reads";
    SwitchFirst = "switch-first", "the manifest names the new content before its parts have come", "an upload in the wrong order";
    NotCompared = "not-compared", "what was expected of the blob is not compared when the upload takes its place", "a switch without a comparison";
    PagesUnchecked = "pages-unchecked", "a reader does not look at the generation from page to page", "a reader that trusts the offset";
    PartUnchecked = "part-unchecked", "a part does not make sure that its upload is still under way", "a blind write of a part";
    CollectAtSnapshot = "collect-at-snapshot", "the collector reads at snapshot which uploads are under way", "a collector without isolation";
    PartsCounted = "parts-counted", "a part's number is how many have come before", "parts that are appended";
    PartsAtSnapshot = "parts-at-snapshot", "the parts that have come are read at snapshot, however they are asked for", "a dropped conflict range";
    OldKept = "old-kept", "the content that an upload replaces is left where it is", "a switch that only moves the pointer";
    AgeInVersions = "age-in-versions", "the collector takes an upload for dead that began long ago by the count of versions", "the layer's own collector, as it was";
    SeenIsDead = "seen-is-dead", "the collector removes every upload that was there before it waited", "a collector that looks for the name only";
    SignOfBeginning = "sign-of-beginning", "a part that is put is no sign of life", "a lease that is not renewed";
    TailOfPart = "tail-of-part", "a shorter part leaves the end of the one that it replaces", "a write without a clear";
    GapTaken = "gap-taken", "an upload is finished without a part in the middle", "parts that are counted, not compared";
    ShortTaken = "short-taken", "an upload is finished with a short part in the middle", "parts that are counted, not measured";
    AbandonKeeps = "abandon-keeps", "an upload that is given up leaves its content", "a forgotten clear";
    AnotherBlob = "another-blob", "an upload that is under way is begun for another blob", "an id that is not compared";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upload {
    clients: usize,
    operations: Range<usize>,
    /// The names of blobs, as `blob` has them: the first of them, and how many.
    names: (usize, usize),
    /// Bytes of a chunk.
    chunk: usize,
    /// Chunks of a part.
    part: usize,
    /// Uploads have up to so many bytes.
    longest: usize,
    /// How long a collector waits for a sign of life, milliseconds.
    patience: u64,
    /// How long an uploader waits between two steps, milliseconds.
    pause: u64,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// What an uploader expects of the blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// Nothing.
    Anything,
    /// That it is new.
    Absent,
    /// That it is as it was before the upload.
    AsSeen,
}

/// An upload that goes step by step, and ends with this data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    pub(crate) name: usize,
    pub(crate) data: Data,
    pub(crate) wish: Wish,
    /// The steps; what is in one list is done in one transaction.
    steps: Vec<Vec<Deed>>,
    /// Calls in the transaction that ends it, before the end and behind it.
    pub(crate) calls: [Vec<blob::Op>; 2],
}

/// A step of an upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Deed {
    /// Begins it, or begins it again.
    Begin,
    /// Begins it, and then with chunks, and with parts, of other sizes, and for another blob.
    BeginOther,
    /// Puts the part of this number.
    Put(u64),
    /// Puts something else under this number.
    PutOther(u64, Data),
    /// Asks which parts have come.
    Parts,
    /// Asks which uploads are under way, so many at a time.
    List(usize),
    /// Tries to end it, if something is missing.
    Finish,
    /// Gives it up.
    Abandon,
}

/// What a step answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// Done.
    Done,
    /// Whether the upload was under way.
    Was(bool),
    /// The parts that have come.
    Parts(Vec<(u64, u64)>),
    /// Refused, in these words.
    Refused(String),
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Uploads a blob as a whole.
    Upload(usize, Data, Wish),
    /// Uploads a blob step by step.
    Life(Life),
    /// Begins an upload, and leaves it behind so many parts; waits, perhaps, until it is collected.
    Leave(usize, Data, usize, bool),
    /// Collects what was left.
    Collect,
    /// Calls on blobs in one transaction.
    Calls(Vec<blob::Op>),
    /// Reads a blob page by page; at once, or with a pause before each page.
    Pages(usize, bool),
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// What the calls answered.
    Calls(Vec<blob::Answer>),
    /// Uploaded into the place of what was expected; and what the calls before and behind that answered.
    Uploaded(Expect, Vec<blob::Answer>, Generation, Vec<blob::Answer>),
    /// The last transaction was refused, where this was expected, in these words.
    Refused(Expect, String),
    /// The upload has been collected.
    Collected,
    /// What was read page by page, with its generation.
    Content(Option<(Generation, Content)>),
    /// It changed while it was read: from this generation to that.
    Changed(Generation, Option<Generation>),
    /// Nothing that anybody could see.
    Unseen,
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    /// What its last upload expected.
    pub(crate) expected: Expect,
}

/// What there is of an upload, as its uploader knows it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Draft {
    begun: bool,
    parts: BTreeMap<u64, Vec<u8>>,
}

/// Whether an upload has shown signs of life often enough. Timers, for no two clocks agree.
struct Pulse {
    env: Env,
    patience: Duration,
    /// Ends when nobody has to believe in the last sign any more.
    last: Option<BoxFuture<'static, ()>>,
}

impl Pulse {
    fn timer(&self) -> BoxFuture<'static, ()> {
        self.env.sleep(self.patience)
    }

    /// Whether the last sign is so recent that no collector may have removed the upload.
    fn is_live(&mut self) -> bool {
        let is_over = |timer: &mut BoxFuture<'static, ()>| timer.now_or_never().is_some();
        if self.last.as_mut().is_some_and(is_over) {
            self.last = None;
        }
        self.last.is_some() && !self.patience.is_zero()
    }
}

impl Upload {
    pub(crate) fn blob(&self) -> Blob {
        Blob::among(self.names, [self.chunk, 7], self.longest.min(3 * self.chunk + 1))
    }

    pub(crate) fn name(&self, name: usize) -> &'static [u8] {
        self.blob().name(name)
    }

    pub(crate) fn blobs(&self) -> Blobs {
        Blobs::with_sizes(blob::space(), self.chunk, self.chunk * self.part).expect("sizes within the limits")
    }

    /// The data in parts, numbered.
    pub(crate) fn parts(&self, data: &[u8]) -> Vec<(u64, Bytes)> {
        let part = |(number, part)| (number, Bytes::copy_from_slice(part));
        (0..).zip(data.chunks(self.chunk * self.part)).map(part).collect()
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Chunks of a part.
    pub(crate) fn chunks(&self) -> usize {
        self.part
    }

    /// How long a collector waits for a sign of life.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience)
    }

    /// What the wish means for the blob as it is now.
    pub(crate) async fn expectation<D: Database>(
        &self,
        db: &D,
        name: &[u8],
        wish: Wish,
    ) -> Result<Expect, RunError<Error>> {
        let blobs = &self.blobs();
        Ok(match wish {
            Wish::Anything => Expect::Anything,
            Wish::Absent => Expect::Absent,
            Wish::AsSeen => {
                match db.run(|tx, _| async move { blobs.stat(&tx, name, Snapshot).await }).await? {
                    Some(stat) => Expect::Generation(stat.generation),
                    None => Expect::Absent,
                }
            }
        })
    }

    /// Puts some parts, each in a transaction of its own.
    pub(crate) async fn put<D: Database>(
        &self,
        db: &D,
        upload: UploadId,
        parts: &[(u64, Bytes)],
    ) -> Result<(), RunError<Error>> {
        let blobs = &self.blobs();
        for (number, data) in parts {
            converging(db, |tx| async move { blobs.put_part(&tx, upload, *number, data).await }).await?;
        }
        Ok(())
    }

    async fn pause<D: Database>(&self, db: &D) {
        if self.pause > 0 {
            db.env().sleep(Duration::from_millis(self.pause)).await;
        }
    }

    /// The name of another blob.
    fn other(&self, name: usize) -> &'static [u8] {
        match self.name(name) {
            b"other" => b"another",
            _ => b"other",
        }
    }

    /// What a part has in it.
    fn bytes(&self, life: &Life, deed: &Deed) -> (u64, Vec<u8>) {
        let parts = self.parts(&life.data.bytes());
        match deed {
            Deed::PutOther(number, data) => (*number, data.bytes()),
            Deed::Put(number) => {
                let number = number % (parts.len() as u64).max(1);
                (number, parts.get(number as usize).map(|(_, part)| part.to_vec()).unwrap_or_default())
            }
            _ => (0, Vec::new()),
        }
    }

    /// What a step should answer; puts it into the draft.
    fn expect(&self, life: &Life, upload: UploadId, draft: &mut Draft, deed: &Deed) -> Done {
        let refused = |error: Error| Done::Refused(error.to_string());
        let limit = (self.chunk * self.part) as u64;
        match deed {
            Deed::Begin => {
                draft.begun = true;
                Done::Done
            }
            Deed::BeginOther => {
                draft.begun = true;
                refused(Error::OtherUpload(upload))
            }
            Deed::Put(_) | Deed::PutOther(..) => {
                let (number, part) = self.bytes(life, deed);
                match part.len() {
                    _ if !draft.begun => refused(Error::NoUpload(upload)),
                    bytes if bytes == 0 || bytes as u64 > limit => {
                        refused(Error::PartLength { number, bytes, limit })
                    }
                    _ if number >= 100_000 => refused(Error::PartNumber { number }),
                    _ => {
                        draft.parts.insert(number, part);
                        Done::Done
                    }
                }
            }
            Deed::Parts => {
                let length = |(number, part): (&u64, &Vec<u8>)| (*number, part.len() as u64);
                Done::Parts(draft.parts.iter().map(length).collect())
            }
            Deed::List(_) => Done::Was(draft.begun),
            Deed::Finish if !draft.begun => refused(Error::NoUpload(upload)),
            Deed::Finish => {
                let parts = draft.parts.iter().map(|(number, part)| (*number, part.len() as u64));
                self.missing(&parts.collect()).map_or(Done::Done, refused)
            }
            Deed::Abandon => {
                let was = draft.begun;
                *draft = Draft::default();
                Done::Was(was)
            }
        }
    }

    /// What stands against ending an upload of these parts.
    fn missing(&self, parts: &BTreeMap<u64, u64>) -> Option<Error> {
        let (full, last) = ((self.chunk * self.part) as u64, *parts.last_key_value()?.0);
        (0..=last).find_map(|number| match parts.get(&number) {
            None => Some(Error::MissingPart(number)),
            Some(length) if number < last && *length < full => Some(Error::ShortPart(number)),
            Some(_) => None,
        })
    }

    /// Whether an upload is under way, and nothing is missing.
    async fn is_ready<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<bool, Error> {
        let parts = self.blobs().parts(tx, upload, Serializable).await?.into_iter().collect();
        Ok(self.is_listed(tx, upload).await? && self.missing(&parts).is_none())
    }

    /// Whether an upload is the one behind the id before it.
    async fn is_listed<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<bool, Error> {
        let before = UploadId(u128::from_be_bytes(upload.0).wrapping_sub(1).to_be_bytes());
        Ok(self.blobs().uploads(tx, Some(before), 1, Serializable).await? == [upload])
    }

    /// Does a step.
    async fn do_it<T: Transaction>(
        &self,
        tx: &T,
        life: &Life,
        upload: UploadId,
        deed: &Deed,
    ) -> Result<Done, Error> {
        let (blobs, name) = (&self.blobs(), self.name(life.name));
        // Only what must be refused is tried: an end that comes about is seen by others.
        if *deed == Deed::Finish && self.is_ready(tx, upload).await? {
            return Ok(Done::Done);
        }
        if let Some(planted) = self.planted
            && let Some(done) =
                planted::step(planted, self, tx, name, upload, deed, self.bytes(life, deed)).await
        {
            return done;
        }
        let done = match deed {
            Deed::Begin => blobs.begin_upload(tx, name, upload).await.map(|()| Done::Done),
            Deed::BeginOther => {
                blobs.begin_upload(tx, name, upload).await?;
                let part = self.chunk * self.part;
                for (chunk, part) in [(part + 1, part + 1), (self.chunk, 7 * part)] {
                    let other = Blobs::with_sizes(blob::space(), chunk, part)?;
                    if let Ok(()) = other.begin_upload(tx, name, upload).await {
                        return Ok(Done::Done);
                    }
                }
                blobs.begin_upload(tx, self.other(life.name), upload).await.map(|()| Done::Done)
            }
            Deed::Put(_) | Deed::PutOther(..) => {
                let (number, part) = self.bytes(life, deed);
                blobs.put_part(tx, upload, number, &part).await.map(|()| Done::Done)
            }
            Deed::Parts => {
                let look = |tx, isolation| async move { blobs.parts(&tx, upload, isolation).await };
                looks::twice(tx, deed, look).await.map(Done::Parts)
            }
            Deed::List(most) => {
                let look = |tx, isolation| async move {
                    let (mut after, mut found) = (None, false);
                    loop {
                        let page = blobs.uploads(&tx, after, *most, isolation).await?;
                        found |= page.contains(&upload);
                        match page.last() {
                            Some(last) => after = Some(*last),
                            None => return Ok(Done::Was(found)),
                        }
                    }
                };
                looks::twice(tx, deed, look).await
            }
            Deed::Finish => blobs.finish_upload(tx, upload, Expect::Anything).await.map(|_| Done::Was(true)),
            Deed::Abandon => blobs.abandon_upload(tx, upload).await.map(Done::Was),
        };
        match done {
            Err(e) if e.fdb().is_none() => Ok(Done::Refused(e.to_string())),
            done => done,
        }
    }

    /// Does the steps of one transaction, and compares what they answer with what the drafts say.
    async fn step_by_step<D: Database>(
        &self,
        client: &mut Client<D>,
        life: &Life,
        upload: UploadId,
        deeds: &[Deed],
        drafts: &mut Vec<Draft>,
        pulse: &mut Pulse,
    ) -> Result<(), Outcome<Answer>> {
        let db = &client.session.database().clone();
        let timer = pulse.timer();
        let perform = |tx: D::Transaction| async move {
            let mut all = Vec::new();
            for deed in deeds {
                all.push(self.do_it(&tx, life, upload, deed).await?);
            }
            Ok::<_, Error>(Recorded(all))
        };
        // Done again, these answer as they did before; a part behind which the upload is begun would not.
        let is_put = |deed: &Deed| matches!(deed, Deed::Put(_) | Deed::PutOther(..));
        let is_repeatable = match deeds {
            [Deed::Begin, rest @ ..] => rest.iter().all(|deed| *deed == Deed::Begin || is_put(deed)),
            all => all.iter().all(is_put),
        };
        let answers = match is_repeatable {
            true => converging(db, perform).await.map(Some).map_err(|e| e.error),
            false => {
                let session = &mut client.session;
                let done = patiently(db, self.timeout, async {
                    let outcome = session.apply(perform).await;
                    known(session, outcome).await
                });
                match done.await {
                    Ok(done) => done,
                    Err(e) => return Err(Outcome::Violated(format!("a timeout was refused: {e}"))),
                }
            }
        };
        let Recorded(answers) = match answers {
            Ok(Some(answers)) => answers,
            Ok(None) => return Err(Outcome::GaveUp(tx::Error::COMMIT_UNKNOWN_RESULT)),
            Err(e) => return Err(e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp)),
        };
        let is_live = pulse.is_live();
        if !is_live && drafts.iter().any(|draft| draft.begun) && !drafts.contains(&Draft::default()) {
            drafts.push(Draft::default());
        }
        let before = drafts.clone();
        drafts.retain_mut(|draft| {
            let expected: Vec<Done> =
                deeds.iter().map(|deed| self.expect(life, upload, draft, deed)).collect();
            expected == answers
        });
        drafts.dedup();
        if drafts.is_empty() {
            return Err(Outcome::Violated(format!(
                "{deeds:?} answered {answers:?} where the upload {} {before:?}",
                if is_live { "showed a sign of life, and was" } else { "was" }
            )));
        }
        let signs = deeds.iter().zip(&answers).any(|(deed, answer)| {
            let is_sign = matches!(deed, Deed::Begin | Deed::Put(_) | Deed::PutOther(..));
            *deed == Deed::BeginOther || is_sign && *answer == Done::Done
        });
        if signs {
            pulse.last = Some(timer);
        }
        Ok(())
    }

    /// The steps of an upload, and then those that make it what it is to be.
    async fn live<D: Database>(
        &self,
        client: &mut Client<D>,
        life: &Life,
        upload: UploadId,
        pulse: &mut Pulse,
    ) -> Result<(), Outcome<Answer>> {
        let db = &client.session.database().clone();
        let mut drafts = vec![Draft::default()];
        for deeds in &life.steps {
            self.step_by_step(client, life, upload, deeds, &mut drafts, pulse).await?;
            self.pause(db).await;
        }
        let parts = self.parts(&life.data.bytes()).into_iter();
        let wanted: BTreeMap<u64, Vec<u8>> = parts.map(|(number, part)| (number, part.to_vec())).collect();
        // A collector may come in between: what is there is certain only behind a look.
        loop {
            let look = [Deed::Parts, Deed::List(3)];
            self.step_by_step(client, life, upload, &look, &mut drafts, pulse).await?;
            let Draft { begun, parts } = &drafts[0];
            let missing = |(number, part): &(&u64, &Vec<u8>)| parts.get(*number) != Some(*part);
            let rest = match begun {
                false => vec![vec![Deed::Begin]],
                true if parts.keys().any(|number| !wanted.contains_key(number)) => {
                    vec![vec![Deed::Abandon, Deed::Begin]]
                }
                true => {
                    let missing = wanted.iter().filter(missing).rev();
                    missing.map(|(number, _)| vec![Deed::Put(*number)]).collect()
                }
            };
            if rest.is_empty() {
                return Ok(());
            }
            for deeds in rest {
                self.step_by_step(client, life, upload, &deeds, &mut drafts, pulse).await?;
                self.pause(db).await;
            }
        }
    }

    /// The transaction that ends an upload, with calls before it and behind it.
    pub(crate) async fn end<T: Transaction>(
        &self,
        tx: T,
        env: &Env,
        life: &Life,
        upload: UploadId,
        expect: Expect,
    ) -> Result<Recorded<Answer>, Error> {
        let [before, behind] = &life.calls;
        let before = self.call(&tx, env, before).await?;
        let generation = self.blobs().finish_upload(&tx, upload, expect).await?;
        let behind = self.call(&tx, env, behind).await?;
        Ok(Recorded(vec![Answer::Uploaded(expect, before, generation, behind)]))
    }

    async fn call<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        calls: &[blob::Op],
    ) -> Result<Vec<blob::Answer>, Error> {
        let (blob, mut answers) = (self.blob(), Vec::new());
        for call in calls {
            answers.push(blob.perform(tx, env, call, Serializable).await?);
        }
        Ok(answers)
    }

    /// Leaves an upload to the collector; waits, perhaps, until it is gone.
    async fn leave<D: Database>(
        &self,
        db: &D,
        name: &[u8],
        parts: &[(u64, Bytes)],
        waits: bool,
    ) -> Result<Outcome<Answer>, RunError<Error>> {
        let (blobs, upload) = (&self.blobs(), UploadId::draw(db.env()));
        converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
        self.put(db, upload, parts).await?;
        if !waits {
            return Ok(Outcome::Answered(Answer::Unseen));
        }
        // A part may land late, and be a sign of life; not again and again.
        for _ in 0..4 {
            blobs.collect(db, self.patience()).await?;
            let look = db.run(|tx, _| async move {
                let parts = blobs.parts(&tx, upload, Serializable).await?;
                Ok::<_, Error>(parts.is_empty() && !self.is_listed(&tx, upload).await?)
            });
            if look.await? {
                return Ok(Outcome::Answered(Answer::Unseen));
            }
        }
        Ok(Outcome::Violated("an upload that was left is not collected".to_owned()))
    }

    /// Reads a blob page by page.
    async fn pages<D: Database>(
        &self,
        db: &D,
        name: &[u8],
        pauses: bool,
    ) -> Result<Outcome<Answer>, RunError<Error>> {
        let blobs = &self.blobs();
        if !pauses {
            let read = blobs.read_paged(db, name).await?;
            return Ok(read_as(read));
        }
        let Some(mut pages) = Pages::open(db, blobs, name).await? else { return Ok(read_as(None)) };
        let (stat, mut content) = (pages.stat(), Vec::new());
        loop {
            self.pause(db).await;
            match pages.next(db).await? {
                Some(page) if page.is_empty() || page.len() > self.chunk * self.part => {
                    return Ok(Outcome::Violated(format!("a page of {} bytes", page.len())));
                }
                Some(page) => content.extend_from_slice(&page),
                None if content.len() as u64 != stat.size => {
                    return Ok(Outcome::Violated(format!("pages of {} bytes of {stat:?}", content.len())));
                }
                None => return Ok(read_as(Some((stat.generation, content.into())))),
            }
        }
    }

    /// Does on the model what an operation does in the transaction that others see.
    fn replay(&self, model: &mut blob::Model, op: &Op, at: &At, expect: Expect) -> Result<Answer, Error> {
        let blob = self.blob();
        let call = |model: &mut blob::Model, calls: &[blob::Op]| {
            calls.iter().map(|call| blob.replay(model, call, at)).collect::<Result<Vec<_>, _>>()
        };
        let (name, data, before, behind) = match op {
            Op::Calls(calls) => return Ok(Answer::Calls(call(model, calls)?)),
            Op::Life(Life { name, data, calls: [before, behind], .. }) => {
                (*name, data, &before[..], &behind[..])
            }
            Op::Upload(name, data, _) => (*name, data, &[][..], &[][..]),
            _ => return Ok(Answer::Unseen),
        };
        let name = self.name(name);
        writable(name)?;
        let before = call(model, before)?;
        let found = model.get(name).map(|blob| blob.generation);
        if !meets(expect, found) {
            return Err(Error::Changed { expected: expect, found });
        }
        let written = change(model, name, at, |bytes| {
            *bytes = data.bytes();
            Ok(())
        })?;
        let blob::Answer::Written(generation) = written else { return Err(Error::Missing) };
        Ok(Answer::Uploaded(expect, before, generation, call(model, behind)?))
    }
}

/// What was read.
pub(crate) fn read_as(read: Option<(Generation, Bytes)>) -> Outcome<Answer> {
    Outcome::Answered(Answer::Content(read.map(|(generation, bytes)| (generation, Content::from(&bytes)))))
}

/// What an error says that nobody expected.
pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::NoUpload(_) => Outcome::Answered(Answer::Collected),
        Error::Changed { expected: Expect::Generation(expected), found } => {
            Outcome::Answered(Answer::Changed(expected, found))
        }
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
}

/// How the transaction ended that others see.
pub(crate) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    expect: Expect,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(a) => Outcome::Answered(answer(a)),
        once::Outcome::Refused(Error::NoUpload(_)) => Outcome::Answered(Answer::Collected),
        once::Outcome::Refused(e) => {
            e.fdb().map_or_else(|| Outcome::Answered(Answer::Refused(expect, e.to_string())), Outcome::GaveUp)
        }
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// The answer that was recorded.
pub(crate) fn only(Recorded(mut answers): Recorded<Answer>) -> Answer {
    answers.pop().unwrap_or(Answer::Unseen)
}

/// Where uploads are as long as nobody reads them.
fn unseen() -> [Subspace; 4] {
    [2, 3, 4, 5].map(|kind| blob::space().subspace(&(kind,)))
}

impl Workload for Upload {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = blob::Model;

    const NAME: &'static str = "upload";
    const ABOUT: &'static str = "blobs uploaded in parts, switched in one step, read page by page, collected";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "blob: an upload takes the place of other content",
            "blob: an upload that was given up is collected",
            "blob: an upload that lives is not collected",
            "blob: a reader notices that the content has changed",
        ]
    }

    /// Parts, and what the collector does, are nothing that a reader of blobs could see; nor is the record of
    /// an operation.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let [content, records, marks, signs] = unseen();
        let unseen = [content, records, marks, signs, Subspace::from("sessions")];
        !sessions::is_fence(mutations) && !sessions::is_below(&unseen, mutations)
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Upload {
        let most = rng.range(6..20) as usize;
        let (chunk, part) = (*rng.pick(&[4, 4, 16, 16, 100]), rng.range(1..4) as usize);
        let planted = bug.and_then(Planted::named);
        let mut upload = Upload {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            names: (rng.below(12) as usize, rng.range(1..4) as usize),
            chunk,
            part,
            longest: chunk * part * rng.range(2..6) as usize + 1,
            patience: *rng.pick(&[0, 20, 100, 1_000]),
            pause: *rng.pick(&[0, 0, 5, 30]),
            timeout: sessions::draw_timeout(rng),
            planted,
        };
        if planted.is_some_and(Planted::is_impatient) {
            (upload.patience, upload.pause) = (200, 50);
        }
        upload
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let names = (0..self.names.1).map(|name| blob::places(self.name(name)).0.into());
        let uploads = unseen().into_iter().flat_map(|space| {
            [0u8, 0x55, 0xaa].map(|byte| space.pack(&(TupleBytes::from(&[byte][..]),)).into())
        });
        slots.chain(names).chain(uploads).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let (blob, longest, part) = (self.blob(), self.longest, self.chunk * self.part);
        let name = || 0..self.names.1;
        let length = || {
            prop_oneof![
                3 => 0..=longest,
                2 => blob::edge(vec![self.chunk, part], 4).prop_map(move |n| (n as usize).min(longest)),
            ]
        };
        let data = || length().prop_map(Data::of);
        let wish =
            || prop_oneof![2 => Just(Wish::Anything), 1 => Just(Wish::Absent), 4 => Just(Wish::AsSeen)];
        let deed = prop_oneof![
            4 => Just(Deed::Begin),
            1 => Just(Deed::BeginOther),
            8 => (0..6u64).prop_map(Deed::Put),
            3 => (0..6u64, blob::edge(vec![self.chunk, part], 3))
                .prop_map(move |(number, length)| Deed::PutOther(number, Data::of((length as usize).min(part + 1)))),
            1 => select(vec![MAX_PARTS - 1, MAX_PARTS, u64::MAX])
                .prop_map(|number| Deed::PutOther(number, Data::of(1))),
            2 => Just(Deed::Parts),
            1 => (1..4usize).prop_map(Deed::List),
            4 => Just(Deed::Finish),
            1 => Just(Deed::Abandon),
        ];
        let begin = Just(vec![Deed::Begin]);
        let steps = (begin, vec(vec(deed, 1..4), 0..6))
            .prop_map(|(begin, rest)| std::iter::once(begin).chain(rest).collect::<Vec<_>>());
        let life = (name(), data(), wish(), steps, vec(blob.calls(), 0..3), vec(blob.calls(), 0..3))
            .prop_map(|(name, data, wish, steps, before, behind)| {
                Op::Life(Life { name, data, wish, steps, calls: [before, behind] })
            });
        let long = prop_oneof![30 => name(), 1 => 1_000..1_002usize];
        // A bug is brought forward.
        let often =
            |is: fn(Planted) -> bool, usually: u32| if self.planted.is_some_and(is) { 30 } else { usually };
        let op = prop_oneof![
            often(Planted::uploads, 6) => (long, data(), wish()).prop_map(|(name, data, wish)| Op::Upload(name, data, wish)),
            8 => life,
            2 => (name(), data(), 0..4usize, any::<bool>())
                .prop_map(|(name, data, most, waits)| Op::Leave(name, data, most, waits)),
            often(Planted::collects, 3) => Just(Op::Collect),
            8 => vec(blob.calls(), 1..4).prop_map(Op::Calls),
            often(Planted::reads, 5) => (name(), any::<bool>()).prop_map(|(name, pauses)| Op::Pages(name, pauses)),
        ];
        let tagged = move |mut ops: Vec<Op>| {
            let mut number = 0;
            let mut next = || {
                number += 1;
                number
            };
            for op in &mut ops {
                match op {
                    Op::Upload(_, data, _) | Op::Leave(_, data, ..) => data.tag(client, next()),
                    Op::Calls(calls) => calls.iter_mut().for_each(|call| blob::tag(call, client, next())),
                    Op::Life(life) => {
                        life.data.tag(client, next());
                        life.calls.iter_mut().flatten().for_each(|call| blob::tag(call, client, next()));
                        for deed in life.steps.iter_mut().flatten() {
                            if let Deed::PutOther(_, data) = deed {
                                data.tag(client, next());
                            }
                        }
                    }
                    Op::Collect | Op::Pages(..) => {}
                }
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(tagged).boxed()
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, expected: Expect::Anything })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let db = &client.session.database().clone();
        let blobs = &self.blobs();
        match op {
            Op::Upload(name, _, wish) | Op::Life(Life { name, wish, .. }) => {
                let name = self.name(*name);
                let expect = match self.expectation(db, name, *wish).await {
                    Ok(expect) => expect,
                    Err(e) => return refused(e.error),
                };
                client.expected = expect;
                let life = match op {
                    Op::Life(life) => life,
                    Op::Upload(_, data, _) => {
                        let session = &mut client.session;
                        let uploaded = blobs.upload_once(session, name, &data.bytes(), expect).await;
                        let answer = |generation| Answer::Uploaded(expect, vec![], generation, vec![]);
                        return applied(uploaded, expect, answer);
                    }
                    _ => return Outcome::Answered(Answer::Unseen),
                };
                let upload = UploadId::draw(db.env());
                let mut pulse = Pulse { env: db.env().clone(), patience: self.patience(), last: None };
                if let Err(outcome) = self.live(client, life, upload, &mut pulse).await {
                    return outcome;
                }
                let (env, session) = (db.env(), &mut client.session);
                let ended = session.apply(|tx| async move { self.end(tx, env, life, upload, expect).await });
                match applied(ended.await, expect, only) {
                    Outcome::Answered(Answer::Collected) if pulse.is_live() => {
                        Outcome::Violated("an upload was collected that had shown a sign of life".to_owned())
                    }
                    outcome => outcome,
                }
            }
            Op::Leave(name, data, most, waits) => {
                let (name, parts) = (self.name(*name), self.parts(&data.bytes()));
                let left = self.leave(db, name, &parts[..(*most).min(parts.len())], *waits).await;
                left.unwrap_or_else(|e| refused(e.error))
            }
            Op::Collect => {
                let collected = blobs.collect(db, self.patience()).await;
                collected.map_or_else(|e| refused(e.error), |_| Outcome::Answered(Answer::Unseen))
            }
            Op::Calls(calls) => {
                let env = db.env();
                let call = |tx: D::Transaction| async move {
                    Ok::<_, Error>(Recorded(vec![Answer::Calls(self.call(&tx, env, calls).await?)]))
                };
                if calls.iter().all(blob::is_look) {
                    let looked = db.run(|tx, _| call(tx)).await.map(only);
                    return looked.map_or_else(
                        |e| applied(once::Outcome::Refused(e.error), Expect::Anything, only),
                        Outcome::Answered,
                    );
                }
                applied(client.session.apply(call).await, Expect::Anything, only)
            }
            Op::Pages(name, pauses) => {
                let read = self.pages(db, self.name(*name), *pauses).await;
                read.unwrap_or_else(|e| refused(e.error))
            }
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
        let expected = client.expected;
        let ask = async |session: &mut Session<D>, pending| {
            let answer = match op {
                Op::Upload(..) => session
                    .resolve(pending)
                    .await?
                    .map(|generation| Answer::Uploaded(expected, vec![], generation, vec![])),
                _ => session.resolve(pending).await?.map(only),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> blob::Model {
        blob::Model::new()
    }

    fn step(&self, model: &mut blob::Model, step: &Step<'_, Self>) -> Result<(), String> {
        let at = At {
            stamp: step.stamp,
            read_version: step.read_version,
            called: step.known_at_call(),
            ..At::default()
        };
        let stored = |name: usize| model.get(self.name(name));
        let fits = match (step.op, step.answer) {
            (_, None) if !step.committed => return Ok(()),
            (Op::Leave(..) | Op::Collect, Some(Answer::Unseen)) => !step.committed,
            (Op::Leave(..) | Op::Upload(..) | Op::Life(_), Some(Answer::Collected)) => !step.committed,
            (Op::Pages(name, _), Some(Answer::Content(read))) => {
                let now = |blob: &Stored| (blob.generation, Content::from(&blob.bytes));
                !step.committed && stored(*name).map(now) == *read
            }
            (Op::Pages(name, _), Some(Answer::Changed(from, to))) => {
                let now = stored(*name).map(|blob| blob.generation);
                !step.committed && now == *to && now != Some(*from)
            }
            (Op::Leave(..) | Op::Collect | Op::Pages(..), _) => false,
            (op @ (Op::Upload(..) | Op::Life(_) | Op::Calls(_)), answer) => {
                return self.seen(model, op, answer, &at, step.committed);
            }
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "answered {:?} where the blobs are {model:?}{}",
                step.answer,
                if step.committed { ", and committed what others can see" } else { "" }
            )),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(blob::stored(tx).await?.map(drop))
    }

    /// Collects what is left of uploads, which is all that is under way: only the blobs remain.
    async fn check<D: Database>(&self, db: &D, model: &blob::Model) -> tx::Result<Result<(), String>> {
        let blobs = &self.blobs();
        let [_, records, _, signs] = &unseen();
        let under_way = db.run(|tx, _| async move {
            let rows = tx.get_range_all(RangeOption::from(records.range()), Serializable).await?;
            let id = |row: &tx::KeyValue| {
                let (id,): (TupleBytes<'_>,) = records.unpack(&row.key).ok()?;
                Some(UploadId(id[..].try_into().ok()?))
            };
            Ok::<_, tx::Error>(rows.iter().filter_map(id).collect::<Vec<_>>())
        });
        let under_way = under_way.await.map_err(|e| e.error)?;
        let swept = match blobs.collect(db, Duration::ZERO).await {
            Ok(swept) => swept,
            Err(e) => return e.error.fdb().map_or_else(|| Ok(Err(e.to_string())), Err),
        };
        let stored = db.run(|tx, _| async move { blob::stored(&tx).await }).await.map_err(|e| e.error)?;
        let left = db.run(|tx, _| async move {
            let range = RangeOption::new(records.range().0, signs.range().1);
            Ok::<_, tx::Error>(tx.get_range_all(range, Serializable).await?.len())
        });
        let left = left.await.map_err(|e| e.error)?;
        Ok(stored.and_then(|stored| match (stored == *model, left) {
            (true, 0) if swept == under_way => Ok(()),
            (true, 0) => Err(format!("collected {swept:?} of {under_way:?}")),
            (true, left) => Err(format!("{left} keys of uploads are left behind a collection of all")),
            (false, _) => Err(format!("the database holds {stored:?}, should hold {model:?}")),
        }))
    }
}

impl Upload {
    /// An operation with a transaction that others see, or that looks at blobs, at its place.
    fn seen(
        &self,
        model: &mut blob::Model,
        op: &Op,
        answer: Option<&Answer>,
        at: &At,
        committed: bool,
    ) -> Result<(), String> {
        let (wish, looks) = match op {
            Op::Upload(_, _, wish) | Op::Life(Life { wish, .. }) => (*wish, false),
            Op::Calls(calls) => (Wish::Anything, calls.iter().all(blob::is_look)),
            _ => (Wish::Anything, true),
        };
        let expect = match (answer, wish) {
            (Some(Answer::Uploaded(expect, ..) | Answer::Refused(expect, _)), Wish::AsSeen) => *expect,
            (_, Wish::Absent) => Expect::Absent,
            _ => Expect::Anything,
        };
        let mut after = model.clone();
        let replayed = self.replay(&mut after, op, at, expect);
        let is_refused = replayed.is_err();
        let expected = replayed.unwrap_or_else(|e| Answer::Refused(expect, e.to_string()));
        match answer {
            Some(answer) if *answer != expected => {
                Err(format!("answered {answer:?} where the model answers {expected:?}"))
            }
            _ if committed && is_refused => Err(format!("committed where the model answers {expected:?}")),
            _ if committed && looks => Err("committed a write".to_owned()),
            _ if is_refused => Ok(()),
            // What finds nothing to change commits nothing that others see.
            _ if !committed && after != *model => Err("answered, but nothing was committed".to_owned()),
            _ => {
                *model = after;
                Ok(())
            }
        }
    }
}

/// Whether a blob in this generation is what was expected.
pub(crate) fn meets(expected: Expect, now: Option<Generation>) -> bool {
    match expected {
        Expect::Anything => true,
        Expect::Absent => now.is_none(),
        Expect::Generation(generation) => now == Some(generation),
    }
}

impl Planted {
    /// Whether the bug is one of uploads as a whole.
    pub(crate) fn uploads(self) -> bool {
        matches!(
            self,
            Planted::Unrecorded
                | Planted::InPlace
                | Planted::SwitchFirst
                | Planted::NotCompared
                | Planted::PartUnchecked
                | Planted::PartsCounted
                | Planted::OldKept
        )
    }

    /// Whether it is one of readers.
    fn reads(self) -> bool {
        self == Planted::PagesUnchecked
    }

    /// Whether it is one of collectors.
    pub(crate) fn collects(self) -> bool {
        matches!(self, Planted::CollectAtSnapshot | Planted::AgeInVersions | Planted::SeenIsDead)
    }

    /// Whether the bug shows where uploads take longer than collectors wait.
    fn is_impatient(self) -> bool {
        matches!(self, Planted::AgeInVersions | Planted::SeenIsDead | Planted::SignOfBeginning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_uploads_of_many_parts_and_every_kind_of_operation() {
        let plans: Vec<Plan<Upload>> = (0..60).map(|s| Plan::draw(Seed(s), &Demands::default())).collect();
        let any = |is: &dyn Fn(&Upload, &Op) -> bool| {
            plans.iter().any(|p| p.operations.iter().flatten().any(|op| is(&p.configuration, op)))
        };
        assert!(any(&|w, op| matches!(op, Op::Upload(_, data, _) if w.parts(&data.bytes()).len() > 3)));
        assert!(any(&|_, op| matches!(op, Op::Life(_))) && any(&|_, op| matches!(op, Op::Leave(..))));
        assert!(any(&|_, op| matches!(op, Op::Pages(..))) && any(&|_, op| *op == Op::Collect));
        let any_deed = |is: &dyn Fn(&Deed) -> bool| {
            any(&|_, op| matches!(op, Op::Life(life) if life.steps.iter().flatten().any(is)))
        };
        assert!(any_deed(&|deed| *deed == Deed::Abandon) && any_deed(&|deed| *deed == Deed::Finish));
        assert!(any_deed(&|deed| matches!(deed, Deed::PutOther(MAX_PARTS, _))));
    }

    #[test]
    fn what_is_uploaded_is_no_effect_until_it_is_switched() {
        let workload: Upload = Upload::draw(&mut Seed(1).stream("x"), None);
        let [content, record, ..] = unseen().map(|space| Bytes::from(space.pack(&(1,))));
        let slot = Mutation::Set(slots().key(1), Bytes::from_static(b"x"));
        let part = [Mutation::Set(content.clone(), Bytes::new()), Mutation::Set(record, Bytes::new()), slot];
        assert!(!workload.is_effect(&part));
        let manifest = Bytes::from(blob::places(b"x").0);
        assert!(workload.is_effect(&[part[0].clone(), Mutation::Set(manifest, Bytes::new())]));
    }

    #[test]
    fn expectations_are_met_or_not() {
        let generation = Generation { version: 1, step: 0 };
        let now = Some(generation);
        assert!(meets(Expect::Anything, now) && meets(Expect::Anything, None));
        assert!(meets(Expect::Absent, None) && !meets(Expect::Absent, now));
        assert!(meets(Expect::Generation(generation), now));
        assert!(!meets(Expect::Generation(generation), None));
    }
}
