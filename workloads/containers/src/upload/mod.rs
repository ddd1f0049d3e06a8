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
pub use operations::{Answer, Deed, Done, Life, Op, Wish};

use crate::{
    blob::{self, Blob},
    shared::{self, check_ended, session_keys},
};
use bytes::Bytes;
use client::only;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::blob::{Blobs, Expect, UploadId};
use shaketable_sim::{config::ClusterBug, proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db, Isolation::Serializable, RangeOption, Transaction, Tx, once::Session,
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

impl Workload for Upload {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = blob::Model;

    const NAME: &'static str = "upload";
    const ABOUT: &'static str = "blobs uploaded in parts, switched in one step, read page by page, collected";

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

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let names = (0..self.names.1).map(|name| blob::places(self.name(name)).0.into());
        let uploads = unseen().into_iter().flat_map(|space| {
            [0u8, 0x55, 0xaa].map(|byte| space.pack(&(TupleBytes::from(&[byte][..]),)).into())
        });
        session_keys(self.clients).chain(names).chain(uploads).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn(client)
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, expected: Expect::Anything })
    }

    async fn apply_planted(&self, client: &mut Client, op: &Op) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        self.perform(client, op).await
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &Op, error: tx::Error) -> Outcome<Answer> {
        let expected = client.expected;
        let ask = async |session: &mut Session<Db>, pending| {
            let answer = match op {
                Op::Upload(..) => session
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
    use shaketable::sessions::slots;
    use shaketable_layers::blob::MAX_PARTS;
    use shaketable_sim::seed::Seed;

    #[test]
    fn plans_have_uploads_of_many_parts_and_every_kind_of_operation() {
        let plans: Vec<_> = (0..60).map(drawn::<Upload>).collect();
        let any = |is: &dyn Fn(&Upload, &Op) -> bool| {
            plans.iter().any(|(upload, lists)| lists.iter().flatten().any(|op| is(upload, op)))
        };
        assert!(any(&|w, op| matches!(op, Op::Upload(_, data, _) if w.parts(&data.bytes()).len() > 3)));
        assert!(any(&|_, op| matches!(op, Op::Life(_))) && any(&|_, op| matches!(op, Op::Leave(..))));
        assert!(any(&|_, op| matches!(op, Op::Pages(..))) && any(&|_, op| matches!(op, Op::Collect)));
        let any_deed = |is: &dyn Fn(&Deed) -> bool| {
            any(&|_, op| matches!(op, Op::Life(life) if life.steps.iter().flatten().any(is)))
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
