//! `upload`: blobs beyond one transaction are uploaded in parts, read page by page, given up and collected.
//!
//! Parts are a few bytes, so that an upload and a paged read are many small transactions among which
//! others come: uploads of the same blob, writes and deletions, and a collector that now and then does not
//! wait for the living. Uploaders die midway, by themselves or because their client does; some leave
//! their parts to a second process that goes on. A blob is at every version one content as a whole, and a
//! reader's pages are all of one.

use super::blob::{self, Data, Stored, change};
use crate::{
    sabotage::upload as sabotage,
    sessions::{self, slots},
    specimen::{At, Content, UNRECORDED},
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    blob::{Blobs, Error, Expect, Generation, UploadId},
    once::{self, Session, converging},
    tx::{
        self, Database,
        Isolation::{Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::ops::Range;

flaws! {
    Unrecorded = UNRECORDED, "the last transaction of an upload is retried after an unknown result without an operation record", "an upload that is finished twice";
    InPlace = "in-place", "parts are appended to the blob itself", "an upload where everybody reads";
    SwitchFirst = "switch-first", "the manifest names the new content before its parts have come", "an upload in the wrong order";
    NotCompared = "not-compared", "what was expected of the blob is not compared when the upload takes its place", "a switch without a comparison";
    PagesUnchecked = "pages-unchecked", "a reader does not look at the generation from page to page", "a reader that trusts the offset";
    PartUnchecked = "part-unchecked", "a part does not make sure that its upload is still under way", "a blind write of a part";
    CollectAtSnapshot = "collect-at-snapshot", "the collector reads at snapshot which uploads are under way", "a collector without isolation";
    PartsCounted = "parts-counted", "a part's number is how many have come before", "parts that are appended";
    OldKept = "old-kept", "the content that an upload replaces is left where it is", "a switch that only moves the pointer";
}

/// The names of blobs.
const NAMES: [&[u8]; 3] = [b"x", b"x\0", b"\xff"];

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upload {
    clients: usize,
    operations: Range<usize>,
    /// Of [`NAMES`], how many are used.
    names: usize,
    /// Bytes of a chunk.
    chunk: usize,
    /// Chunks of a part.
    part: usize,
    /// Uploads have up to so many bytes.
    longest: usize,
    /// How many versions old an upload is when the collector takes it for dead.
    age: i64,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    flaw: Option<Flaw>,
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

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Uploads a blob.
    Upload(usize, Data, Wish),
    /// Uploads a blob; a second process takes over behind so many parts, and puts what is missing last to
    /// first.
    Relay(usize, Data, Wish, usize),
    /// Begins an upload, and leaves it behind so many parts.
    Leave(usize, Data, usize),
    /// Collects what was left.
    Collect,
    /// Writes a blob in one transaction.
    Write(usize, Data),
    /// Appends to it.
    Append(usize, Data),
    /// Deletes it.
    Delete(usize),
    /// Reads it in one transaction.
    Read(usize),
    /// Reads it page by page.
    Pages(usize),
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Uploaded into the place of what was expected.
    Uploaded(Expect, Generation),
    /// The blob was not as expected, but in this generation.
    Mismatch(Expect, Option<Generation>),
    /// The upload has been collected.
    Collected,
    /// Written.
    Written(Generation),
    /// Deleted, if it was there.
    Deleted(bool),
    /// What was read; page by page, with its generation.
    Content(Option<Generation>, Option<Content>),
    /// It changed while it was read.
    Changed,
    /// Nothing that anybody could see.
    Unseen,
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    /// What its last upload expected.
    pub(crate) expected: Expect,
}

impl Upload {
    pub(crate) fn name(&self, name: usize) -> &'static [u8] {
        NAMES[name % self.names]
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

    /// How many versions old the collector wants an upload to be.
    pub(crate) fn age(&self) -> i64 {
        self.age
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

    /// The first process puts so many parts; the second looks which have come, and puts the others.
    async fn relay<D: Database>(
        &self,
        db: &D,
        name: &[u8],
        upload: UploadId,
        parts: &[(u64, Bytes)],
        first: usize,
    ) -> Result<(), RunError<Error>> {
        let blobs = &self.blobs();
        converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
        self.put(db, upload, &parts[..first.min(parts.len())]).await?;
        converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await?;
        let come = db.run(|tx, _| async move { blobs.parts(&tx, upload, Snapshot).await }).await?;
        let missing = |(number, _): &&(u64, Bytes)| come.iter().all(|(come, _)| come != number);
        let rest: Vec<_> = parts.iter().filter(missing).rev().cloned().collect();
        self.put(db, upload, &rest).await
    }
}

/// What was read.
pub(crate) fn read_as(generation: Option<Generation>, content: Option<Bytes>) -> Outcome<Answer> {
    Outcome::Answered(Answer::Content(generation, content.as_ref().map(Content::from)))
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::Changed { expected, found } => Outcome::Answered(Answer::Mismatch(expected, found)),
        Error::NoUpload(_) => Outcome::Answered(Answer::Collected),
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
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

/// Where uploads are as long as nobody reads them.
fn unseen() -> [Subspace; 3] {
    [2, 3, 4].map(|kind| blob::space().subspace(&(kind,)))
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
            "blob: a reader notices that the content has changed",
        ]
    }

    /// Parts, and what the collector does, are nothing that a reader of blobs could see.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let unseen = unseen();
        !sessions::is_fence(mutations) && !sessions::is_below(&unseen, mutations)
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Upload {
        let most = rng.range(6..20) as usize;
        let (chunk, part) = (*rng.pick(&[4, 16, 100]), rng.range(1..4) as usize);
        Upload {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            names: rng.range(1..NAMES.len() as u64 + 1) as usize,
            chunk,
            part,
            longest: chunk * part * rng.range(2..6) as usize + 1,
            age: *rng.pick(&[0, 20_000, 200_000, 5_000_000]),
            timeout: sessions::draw_timeout(rng),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let names = NAMES[..self.names].iter().map(|name| blob::places(name).0.into());
        let uploads = unseen().into_iter().flat_map(|space| {
            [0u8, 0x55, 0xaa].map(|byte| space.pack(&(TupleBytes::from(&[byte][..]),)).into())
        });
        slots.chain(names).chain(uploads).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let (name, data, longest) = (|| 0..self.names, || Data::up_to(self.longest), self.longest);
        let wish =
            || prop_oneof![2 => Just(Wish::Anything), 1 => Just(Wish::Absent), 4 => Just(Wish::AsSeen)];
        let op = prop_oneof![
            6 => (name(), data(), wish()).prop_map(|(name, data, wish)| Op::Upload(name, data, wish)),
            3 => (name(), data(), wish(), 0..4usize)
                .prop_map(|(name, data, wish, first)| Op::Relay(name, data, wish, first)),
            2 => (name(), data(), 0..4usize).prop_map(|(name, data, most)| Op::Leave(name, data, most)),
            3 => Just(Op::Collect),
            2 => (name(), Data::up_to(longest / 2)).prop_map(|(name, data)| Op::Write(name, data)),
            2 => (name(), Data::up_to(longest / 2)).prop_map(|(name, data)| Op::Append(name, data)),
            1 => name().prop_map(Op::Delete),
            2 => name().prop_map(Op::Read),
            5 => name().prop_map(Op::Pages),
        ];
        let tagged = move |mut ops: Vec<Op>| {
            for (number, op) in ops.iter_mut().enumerate() {
                if let Op::Upload(_, data, _)
                | Op::Relay(_, data, ..)
                | Op::Leave(_, data, _)
                | Op::Write(_, data)
                | Op::Append(_, data) = op
                {
                    data.tag(client, number);
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
        sabotage::apply(self.flaw?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let db = &client.session.database().clone();
        let blobs = &self.blobs();
        match op {
            Op::Upload(name, data, wish) | Op::Relay(name, data, wish, _) => {
                let (name, data) = (self.name(*name), data.bytes());
                let expect = match self.expectation(db, name, *wish).await {
                    Ok(expect) => expect,
                    Err(e) => return refused(e.error),
                };
                client.expected = expect;
                let session = &mut client.session;
                let Op::Relay(_, _, _, first) = op else {
                    let uploaded = blobs.upload_once(session, name, &data, expect).await;
                    return applied(uploaded, |generation| Answer::Uploaded(expect, generation));
                };
                let upload = UploadId::draw(db.env());
                match self.relay(db, name, upload, &self.parts(&data), *first).await {
                    Ok(()) => {
                        applied(blobs.finish_upload_once(session, upload, expect).await, |generation| {
                            Answer::Uploaded(expect, generation)
                        })
                    }
                    Err(e) => refused(e.error),
                }
            }
            Op::Leave(name, data, most) => {
                let (name, parts) = (self.name(*name), self.parts(&data.bytes()));
                let upload = UploadId::draw(db.env());
                let begun =
                    converging(db, |tx| async move { blobs.begin_upload(&tx, name, upload).await }).await;
                let put = match begun {
                    Ok(()) => self.put(db, upload, &parts[..(*most).min(parts.len())]).await,
                    Err(e) => Err(e),
                };
                put.map_or_else(|e| refused(e.error), |()| Outcome::Answered(Answer::Unseen))
            }
            Op::Collect => {
                let collected =
                    converging(db, |tx| async move { blobs.collect(&tx, self.age, 3).await }).await;
                collected.map_or_else(|e| refused(e.error), |_| Outcome::Answered(Answer::Unseen))
            }
            Op::Write(name, data) => {
                let (name, data) = (self.name(*name), data.bytes());
                let written = blobs.write_once(&mut client.session, name, &data);
                applied(written.await, Answer::Written)
            }
            Op::Append(name, data) => {
                let (name, data) = (self.name(*name), data.bytes());
                let written = blobs.append_once(&mut client.session, name, &data);
                applied(written.await, Answer::Written)
            }
            Op::Delete(name) => {
                applied(blobs.delete_once(&mut client.session, self.name(*name)).await, Answer::Deleted)
            }
            Op::Read(name) => {
                let name = self.name(*name);
                let read = db.run(|tx, _| async move { blobs.read(&tx, name, Serializable).await }).await;
                read.map_or_else(|e| refused(e.error), |content| read_as(None, content))
            }
            Op::Pages(name) => match blobs.read_paged(db, self.name(*name)).await {
                Ok(read) => match read {
                    Some((generation, content)) => read_as(Some(generation), Some(content)),
                    None => read_as(None, None),
                },
                Err(RunError { error: Error::Changed { .. }, .. }) => Outcome::Answered(Answer::Changed),
                Err(e) => refused(e.error),
            },
        }
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
                Op::Delete(_) => session.resolve(pending).await?.map(Answer::Deleted),
                Op::Upload(..) | Op::Relay(..) => {
                    session.resolve(pending).await?.map(|generation| Answer::Uploaded(expected, generation))
                }
                _ => session.resolve(pending).await?.map(Answer::Written),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> blob::Model {
        blob::Model::new()
    }

    fn step(&self, model: &mut blob::Model, step: &Step<'_, Self>) -> Result<(), String> {
        if !step.committed {
            return looked(self, model, step);
        }
        let at = At { stamp: step.stamp, read_version: step.read_version };
        let (name, wish) = match step.op {
            Op::Upload(name, _, wish) | Op::Relay(name, _, wish, _) => (*name, Some(*wish)),
            Op::Write(name, _) | Op::Append(name, _) | Op::Delete(name) => (*name, None),
            _ => return Err("committed what others can see".into()),
        };
        let before = model.get(self.name(name)).map(|blob| blob.generation);
        if wish == Some(Wish::Absent) && before.is_some() {
            return Err(format!("committed where the blob was to be absent, but is in {before:?}"));
        }
        if let Some(Answer::Uploaded(expected, _)) = step.answer
            && !meets(*expected, before)
        {
            return Err(format!("committed where {expected:?} was expected, but the blob is in {before:?}"));
        }
        if let Op::Delete(_) = step.op {
            let deleted = Answer::Deleted(model.remove(self.name(name)).is_some());
            return same(step.answer, &deleted);
        }
        let written = change(model, self.name(name), &at, |bytes| {
            match step.op {
                Op::Append(_, data) => bytes.extend(data.bytes()),
                Op::Upload(_, data, _) | Op::Relay(_, data, ..) | Op::Write(_, data) => *bytes = data.bytes(),
                _ => {}
            }
            Ok(())
        });
        let Ok(blob::Answer::Written(generation)) = written else {
            return Err(format!("the model answers {written:?}"));
        };
        match (wish, step.answer) {
            (Some(_), Some(Answer::Uploaded(expected, _))) => {
                same(step.answer, &Answer::Uploaded(*expected, generation))
            }
            (Some(_), Some(other)) => Err(format!("answered {other:?}, but committed")),
            _ => same(step.answer, &Answer::Written(generation)),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(blob::stored(tx).await?.map(drop))
    }

    /// Collects what is left of uploads: only the blobs remain.
    async fn check<D: Database>(&self, db: &D, model: &blob::Model) -> tx::Result<Result<(), String>> {
        let blobs = &self.blobs();
        let swept = db.run(|tx, _| async move { blobs.collect(&tx, -1, usize::MAX).await }).await;
        if let Err(e) = swept {
            return e.error.fdb().map_or_else(|| Ok(Err(e.to_string())), Err);
        }
        let stored = db.run(|tx, _| async move { blob::stored(&tx).await }).await.map_err(|e| e.error)?;
        let left = db.run(|tx, _| async move {
            let [_, records, marks] = unseen();
            let range = RangeOption::new(records.range().0, marks.range().1);
            Ok::<_, tx::Error>(tx.get_range_all(range, Serializable).await?.len())
        });
        let left = left.await.map_err(|e| e.error)?;
        Ok(stored.and_then(|stored| match (stored == *model, left) {
            (true, 0) => Ok(()),
            (true, left) => Err(format!("{left} keys of uploads are left behind a collection of all")),
            (false, _) => Err(format!("the database holds {stored:?}, should hold {model:?}")),
        }))
    }
}

/// Compares an answer, if there is one.
fn same(answer: Option<&Answer>, expected: &Answer) -> Result<(), String> {
    match answer {
        Some(answer) if answer != expected => {
            Err(format!("answered {answer:?} where the model answers {expected:?}"))
        }
        _ => Ok(()),
    }
}

/// An operation without an effect: its answer must fit the model as it stands.
fn looked(workload: &Upload, model: &blob::Model, step: &Step<'_, Upload>) -> Result<(), String> {
    let Some(answer) = step.answer else { return Ok(()) };
    let stored = |name: usize| model.get(workload.name(name));
    let fits = match (step.op, answer) {
        (Op::Upload(name, ..) | Op::Relay(name, ..), Answer::Mismatch(expected, found)) => {
            let now = stored(*name).map(|blob| blob.generation);
            now == *found && !meets(*expected, now)
        }
        (Op::Upload(..) | Op::Relay(..) | Op::Leave(..), Answer::Collected) => true,
        (Op::Leave(..) | Op::Collect, Answer::Unseen) | (Op::Pages(_), Answer::Changed) => true,
        (Op::Read(name) | Op::Pages(name), Answer::Content(generation, content)) => {
            let fits = |blob: &Stored| {
                generation.is_none_or(|generation| generation == blob.generation)
                    && *content == Some(Content::from(&blob.bytes))
            };
            stored(*name).map_or(content.is_none(), fits)
        }
        _ => return Err(format!("answered {answer:?}, but nothing was committed")),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("answered {answer:?} where the blobs are {model:?}")),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_uploads_of_many_parts_and_every_kind_of_operation() {
        let plans: Vec<Plan<Upload>> = (0..60).map(|s| Plan::draw(Seed(s), &Demands::default())).collect();
        let any = |is: &dyn Fn(&Upload, &Op) -> bool| {
            plans.iter().any(|p| p.operations.iter().flatten().any(|op| is(&p.configuration, op)))
        };
        assert!(any(&|w, op| matches!(op, Op::Upload(_, data, _) if w.parts(&data.bytes()).len() > 3)));
        assert!(any(&|_, op| matches!(op, Op::Relay(..))) && any(&|_, op| matches!(op, Op::Leave(..))));
        assert!(any(&|_, op| matches!(op, Op::Pages(_))) && any(&|_, op| *op == Op::Collect));
    }

    #[test]
    fn what_is_uploaded_is_no_effect_until_it_is_switched() {
        let workload: Upload = Upload::draw(&mut Seed(1).stream("x"), None);
        let [content, record, _] = unseen().map(|space| Bytes::from(space.pack(&(1,))));
        let part = [Mutation::Set(content.clone(), Bytes::new()), Mutation::Set(record, Bytes::new())];
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
