//! `upload`: blobs that are too large for one transaction are uploaded in parts, read page by page, given up
//! and collected.
//!
//! Parts have a few bytes, so that an upload and a paged read are many small transactions, between which
//! others commit: uploads of the same blob, writes and deletions, and collectors that wait for a sign of life
//! for a moment or for a second.
//!
//! Some uploads go step by step. They are begun again, also for another blob; their parts are out of order,
//! repeated with the same bytes and with others, too long, or missing; they are finished too early, given up
//! and begun anew. Several steps, including refused ones, are performed in one transaction. What each step
//! returns is compared with what the uploader knows. The transaction that ends an upload also contains calls
//! on blobs, before and after the end; while it goes on, a part may be put once more. Some uploaders stop
//! midway, by themselves or because their client dies.
//!
//! At every version a blob has the content of one writer, all pages of a reader belong to one content, and no
//! collector removes an upload that showed a sign of life while the collector waited.

mod client;
mod model;
mod operations;
mod planted;
mod steps;

pub use client::Client;
pub use operations::{Answer, Deed, Done, Life, Wish};

use crate::{
    blob::{self, Blob, BlobOp, Data},
    shared::{self, check_ended, session_keys},
};
use bytes::Bytes;
use client::{applied, only, refused};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use operations::crowds;
use planted::{BUGS, Planted};
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::{Recorded, Specimen},
    workload::{Bug, Outcome, Step},
};
use shaketable_layers::blob::{Blobs, Error, Expect, MAX_PARTS, UploadId};
use shaketable_sim::{config::ClusterBug, proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    RangeOption, RunError, Transaction, Tx,
    once::{self, Session},
};
use std::{ops::Range, time::Duration};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Upload {
    clients: usize,
    operations: Range<usize>,
    /// The names of blobs, as in the workload `blob`: the first one, and how many.
    names: (usize, usize),
    /// The number of bytes in a chunk.
    chunk: usize,
    /// The number of chunks in a part.
    part: usize,
    /// The maximum length of an upload, in bytes.
    longest: usize,
    /// How long a collector waits for a sign of life, in milliseconds.
    patience: u64,
    /// The pause of an uploader between two steps, in milliseconds.
    pause: u64,
    /// Whether more uploads may be in progress than one transaction of a collector observes.
    crowded: bool,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

impl Upload {
    fn blob(&self) -> Blob {
        Blob::among(self.names, [self.chunk, 7], self.longest.min(3 * self.chunk + 1))
    }

    fn name(&self, name: usize) -> &'static [u8] {
        self.blob().name(name)
    }

    fn blobs(&self) -> Blobs {
        Blobs::with_sizes(blob::space(), self.chunk, self.chunk * self.part).expect("sizes within the limits")
    }

    /// The data in parts, with their numbers.
    fn parts(&self, data: &[u8]) -> Vec<(u64, Bytes)> {
        let part = |(number, part)| (number, Bytes::copy_from_slice(part));
        (0..).zip(data.chunks(self.chunk * self.part)).map(part).collect()
    }

    /// What an upload that goes step by step leaves: the data without its last byte, if the last part is put
    /// late.
    fn content(&self, life: &Life) -> Vec<u8> {
        let mut bytes = life.data.bytes();
        // A part without any byte is refused, and a call behind the end could be.
        let is_late = life.late && life.calls[1].is_empty();
        if is_late && self.parts(&bytes).last().is_some_and(|(_, part)| part.len() > 1) {
            bytes.pop();
        }
        bytes
    }

    /// How long a collector waits for a sign of life.
    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience)
    }
}

/// Where uploads are stored as long as they are not visible.
fn unseen() -> [Subspace; 4] {
    [2, 3, 4, 5].map(|kind| blob::space().subspace(&(kind,)))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Upload>()
}

/// Blobs uploaded in parts, switched in one step, read page by page, collected.
#[shaketable::workload(name = "upload", session = Client, answer = Answer, model = blob::Model)]
impl Upload {
    #[draws(name)]
    fn some_name(&self) -> BoxedStrategy<usize> {
        (0..self.names.1).boxed()
    }

    #[draws(data)]
    fn data(&self) -> BoxedStrategy<Data> {
        let longest = self.longest;
        let edge = blob::edge(vec![self.chunk, self.chunk * self.part], 4);
        let length = prop_oneof![3 => 0..=longest, 2 => edge.prop_map(move |n| (n as usize).min(longest))];
        length.prop_map(Data::of).boxed()
    }

    #[draws(wish)]
    fn wish() -> impl Strategy<Value = Wish> {
        prop_oneof![2 => Just(Wish::Anything), 1 => Just(Wish::Absent), 4 => Just(Wish::AsSeen)]
    }

    /// Uploads a blob as a whole. Such uploads reveal some planted bugs, and are drawn more often with them.
    #[write(weight = if self.planted.is_some_and(Planted::uploads) { 30 } else { 6 })]
    async fn upload(
        &self,
        client: &mut Client,
        #[draw(prop_oneof![30 => self.some_name(), 1 => 1_000..1_002usize])] name: usize,
        data: Data,
        wish: Wish,
    ) -> Outcome<Answer> {
        let expect = match self.expects(client, name, wish).await {
            Ok(expect) => expect,
            Err(e) => return refused(e.error),
        };
        let (name, session) = (self.name(name), &mut client.session);
        let uploaded = self.blobs().upload_once(session, name, &data.bytes(), expect).await;
        applied(uploaded, expect, |generation| Answer::Uploaded(expect, vec![], generation, vec![]))
    }

    /// Uploads a blob step by step.
    #[write(weight = 8)]
    async fn in_steps(&self, client: &mut Client, #[draw(self.life(client))] life: Life) -> Outcome<Answer> {
        self.upload_in_steps(client, &life).await
    }

    /// Begins an upload and abandons it after this many parts; waits until it is collected if true.
    #[write(weight = 2)]
    async fn leave(
        &self,
        client: &mut Client,
        name: usize,
        data: Data,
        #[draw(0..4usize)] most: usize,
        #[draw(any::<bool>())] waits: bool,
    ) -> Outcome<Answer> {
        let (name, parts) = (self.name(name), self.parts(&data.bytes()));
        let parts = &parts[..most.min(parts.len())];
        let left = self.leave_parts(client.session.database(), name, parts, waits).await;
        left.unwrap_or_else(|e| refused(e.error))
    }

    /// Begins this many uploads in one transaction, abandons them, and waits until they are collected.
    #[write(weight = 2 * u32::from(self.crowded))]
    async fn crowd(&self, client: &mut Client, #[draw(crowds())] most: usize) -> Outcome<Answer> {
        let db = client.session.database();
        let uploads: Vec<_> = (0..most).map(|_| UploadId::draw(db.env())).collect();
        self.begin_many(db, self.name(0), &uploads).await.unwrap_or_else(|e| refused(e.error))
    }

    /// Collects what was abandoned.
    #[write(weight = 3)]
    async fn collect(&self, client: &mut Client) -> Outcome<Answer> {
        let collected = self.blobs().collect(client.session.database(), self.patience()).await;
        collected.map_or_else(|e| refused(e.error), |_| Outcome::Answered(Answer::Unseen))
    }

    /// Uploads so many parts more than there may be.
    #[write]
    async fn too_many(&self, client: &mut Client, #[draw(1..3usize)] beyond: usize) -> Outcome<Answer> {
        let db = client.session.database();
        let (upload, parts) = (UploadId::draw(db.env()), MAX_PARTS + beyond as u64);
        let bytes = &vec![0; parts as usize];
        let put = match Blobs::with_sizes(blob::space(), 1, 1) {
            Ok(blobs) => blobs.put_all(db, self.name(0), upload, bytes).await,
            Err(e) => return Outcome::Violated(e.to_string()),
        };
        let error = Error::PartNumber { number: parts - 1 };
        match put {
            Err(e) if e == RunError { error, maybe_committed: false, attempts: 0 } => {
                Outcome::Answered(Answer::Unseen)
            }
            put => Outcome::Violated(format!("{parts} parts were put: {put:?}")),
        }
    }

    /// Performs calls on blobs in one transaction.
    #[write(weight = 8)]
    async fn calls(
        &self,
        client: &mut Client,
        #[draw(vec(self.blob().operation(client), 1..4))] calls: Vec<BlobOp>,
    ) -> Outcome<Answer> {
        let db = &client.session.database().clone();
        let (env, calls) = (db.env(), &calls);
        let call = |tx: Tx| async move {
            Ok::<_, Error>(Recorded(vec![Answer::Calls(self.call(&tx, env, calls).await?)]))
        };
        if calls.iter().all(Blob::is_read_only) {
            let looked = db.run(|tx, _| call(tx)).await.map(only);
            return looked.map_or_else(
                |e| applied(once::Outcome::Refused(e.error), Expect::Anything, only),
                Outcome::Answered,
            );
        }
        applied(client.session.apply(call).await, Expect::Anything, only)
    }

    /// Reads a blob page by page, with a pause before each page if true.
    #[read(weight = 5)]
    async fn pages(
        &self,
        client: &mut Client,
        name: usize,
        #[draw(any::<bool>())] pauses: bool,
    ) -> Outcome<Answer> {
        let read = self.read_pages(client.session.database(), self.name(name), pauses).await;
        read.unwrap_or_else(|e| refused(e.error))
    }

    fn number(op: &mut UploadOp, client: usize, number: usize) {
        // An upload that goes step by step writes less often than this.
        let mut numbers = 32 * number..;
        let mut next = || numbers.next().unwrap_or_default();
        match op {
            UploadOp::upload { data, .. } | UploadOp::leave { data, .. } => data.tag(client, next()),
            UploadOp::calls { calls } => calls.iter_mut().for_each(|call| Blob::number(call, client, next())),
            UploadOp::in_steps { life } => life.tag(client, next),
            _ => {}
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn cluster_bugs() -> &'static [ClusterBug] {
        use ClusterBug::*;
        &[ResolverIgnoresOrder, StorageLosesFetched, StorageKeepsRolledBack]
    }

    fn points() -> &'static [&'static str] {
        &[
            "blob: an upload takes the place of other content",
            "blob: an upload that was given up is collected",
            "blob: an upload that lives is not collected",
            "blob: a reader notices that the content has changed",
        ]
    }

    /// Parts, and the work of collectors, are not visible to readers of blobs; neither is the record of an
    /// operation.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let [content, records, marks, signs] = unseen();
        let unseen = [content, records, marks, signs, Subspace::from("sessions")];
        !sessions::is_fence(mutations) && !sessions::is_below(&unseen, mutations)
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Upload {
        let most = rng.range(6..20) as usize;
        let (chunk, part) = (*rng.pick(&[1, 4, 4, 16, 16, 100]), rng.range(1..4) as usize);
        Upload {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            names: (rng.below(12) as usize, rng.range(1..4) as usize),
            chunk,
            part,
            longest: chunk * part * rng.range(2..6) as usize + 1,
            patience: *rng.pick(&[0, 20, 100, 1_000]),
            pause: *rng.pick(&[0, 0, 5, 30]),
            timeout: sessions::draw_timeout(rng),
            crowded: rng.chance(0.25),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let names = (0..self.names.1).map(|name| blob::places(self.name(name)).0.into());
        let uploads = unseen().into_iter().flat_map(|space| {
            [0u8, 0x55, 0xaa].map(|byte| space.pack(&(TupleBytes::from(&[byte][..]),)).into())
        });
        session_keys(self.clients).chain(names).chain(uploads).collect()
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, expected: Expect::Anything })
    }

    async fn apply_planted(&self, client: &mut Client, op: &UploadOp) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &UploadOp, error: tx::Error) -> Outcome<Answer> {
        let expected = client.expected;
        let ask = async |session: &mut Session<Db>, pending| {
            let answer = match op {
                UploadOp::upload { .. } => session
                    .resolve(pending)
                    .await?
                    .map(|generation| Answer::Uploaded(expected, vec![], generation, vec![])),
                _ => session.resolve(pending).await?.map(only),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::resolve_unknown(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> blob::Model {
        self.blob().model()
    }

    fn step(&self, model: &mut blob::Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(blob::stored(tx).await?.map(drop).map_err(Misfit::from))
    }

    /// Collects all uploads that are in progress; then only the blobs remain.
    async fn check(&self, db: &Db, model: &blob::Model) -> tx::Result<Result<(), Misfit>> {
        let [_, records, _, signs] = &unseen();
        let under_way = db.run(|tx, _| async move {
            let rows = shared::rows(&tx, records).await?;
            let id = |row: &tx::KeyValue| {
                let (id,): (TupleBytes<'_>,) = records.unpack(&row.key).ok()?;
                Some(UploadId(id[..].try_into().ok()?))
            };
            Ok::<_, tx::Error>(rows.iter().filter_map(id).collect::<Vec<_>>())
        });
        let under_way = under_way.await.map_err(|e| e.error)?;
        let swept = match self.blobs().collect(db, Duration::ZERO).await {
            Ok(swept) => swept,
            Err(e) => return check_ended(&e.error),
        };
        let stored = db.run(|tx, _| async move { blob::stored(&tx).await }).await.map_err(|e| e.error)?;
        let left = db.run(|tx, _| async move {
            let range = RangeOption::new(records.range().0, signs.range().1);
            Ok::<_, tx::Error>(tx.get_range_all(range, Serializable).await?.len())
        });
        let left = left.await.map_err(|e| e.error)?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| match (stored == model.blobs, left) {
            // One that was collected with an unknown result is not named.
            (true, 0) if swept.iter().all(|upload| under_way.contains(upload)) => Ok(()),
            (true, 0) => Err(format!("collected {swept:?}, and under way were {under_way:?}").into()),
            (true, left) => {
                Err(format!("{left} keys of uploads are left after a collection of all uploads").into())
            }
            (false, _) => Err(format!("the database holds {stored:?}, should hold {:?}", model.blobs).into()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{operations::Deed, *};
    use crate::shared::drawn;
    use shaketable::{Workload, sessions::slots};
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_uploads_of_many_parts_and_every_kind_of_operation() {
        let plans: Vec<_> = (0..60).map(drawn::<Upload>).collect();
        let any = |is: &dyn Fn(&Upload, &UploadOp) -> bool| {
            plans.iter().any(|(upload, lists)| lists.iter().flatten().any(|op| is(upload, op)))
        };
        assert!(any(
            &|w, op| matches!(op, UploadOp::upload { data, .. } if w.parts(&data.bytes()).len() > 3)
        ));
        for kind in ["in_steps", "leave", "pages", "collect"] {
            assert!(any(&|upload, op| upload.kinds(op) == [kind]), "{kind}");
        }
        let any_deed = |is: &dyn Fn(&Deed) -> bool| {
            any(&|_, op| matches!(op, UploadOp::in_steps { life } if life.steps.iter().flatten().any(is)))
        };
        assert!(any_deed(&|deed| *deed == Deed::Abandon) && any_deed(&|deed| *deed == Deed::Finish));
        assert!(any_deed(&|deed| matches!(deed, Deed::PutOther(MAX_PARTS, _))));
    }

    #[test]
    fn an_upload_has_no_effect_until_it_ends() {
        let workload: Upload = Upload::draw(&mut Seed(1).stream("x"), None);
        let [content, record, ..] = unseen().map(|space| Bytes::from(space.pack(&(1,))));
        let slot = Mutation::Set(slots().key(1), Bytes::from_static(b"x"));
        let part = [Mutation::Set(content.clone(), Bytes::new()), Mutation::Set(record, Bytes::new()), slot];
        assert!(!workload.is_effect(&part));
        let manifest = Bytes::from(blob::places(b"x").0);
        assert!(workload.is_effect(&[part[0].clone(), Mutation::Set(manifest, Bytes::new())]));
    }
}
