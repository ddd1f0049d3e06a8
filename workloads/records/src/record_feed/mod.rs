//! `record_feed`: records of the Record Layer in the order of their last updates, and readers that follow
//! them.
//!
//! There are two stores, and in each of them an index by version of all records, and one by topic and
//! version. Clients save records, also without a change, of two types with the same primary keys, delete them
//! one by one or all together, and ask what their transaction sees: several calls, on both stores, in one
//! transaction. Others follow feeds page by page, each page in a transaction of its own, by continuation or
//! by the version of the last entry.
//!
//! Each page must have the entries that follow what its reader has read before, as they were at its read
//! version, with the versions that the commits of their records had: so readers see the last update of every
//! record that is left exactly once and in order, and deleted records not at all. At every version the rows
//! of the stores are those that are computed here from the records and their versions.

mod client;
mod model;
mod operations;
mod planted;
mod schema;
mod stored;

pub use client::Client;
pub use model::{Model, Record, State};
pub use operations::{Act, ActAnswer, Answer, Entry, Page};
pub use schema::{Content, Feed, Version};

use crate::{
    beside,
    record_shared::layout::{part, record_key},
    shared::{self, session_keys, unexpected},
};
use bytes::Bytes;
use client::written_outcome;
use planted::{BUGS, Planted};
use proptest::{collection::vec, prelude::*};
use schema::{STORES, space, store};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_record::{error::Error, index::Registry, store::RecordContext};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, RetryError, Tx};
use std::{collections::BTreeMap, ops::Range};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Feeds {
    clients: usize,
    operations: Range<usize>,
    /// How many records each store may have; how many each client may have if they write apart.
    records: i64,
    /// Whether each client writes records of its own only.
    apart: bool,
    /// How many topics are used.
    topics: usize,
    /// The maximum number of calls in a transaction.
    together: usize,
    /// The maximum number of entries on a page.
    page: usize,
    /// Whether readers continue by continuation, or else by the version of the last entry.
    by_continuation: bool,
    /// The pause of readers between two pages, in milliseconds.
    pause: u64,
    /// The weights of writes, and of reads.
    mix: [u32; 2],
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

impl Feeds {
    /// The keys of the rows beside the stores.
    fn beside(&self) -> Vec<Vec<u8>> {
        beside::of(space().bytes())
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Feeds>()
}

/// Records in the order of their updates, and readers that follow them.
#[shaketable::workload(name = "record_feed", session = Client, answer = Answer, model = Model)]
impl Feeds {
    /// Does calls in one transaction.
    #[write(weight = 4 * self.mix[0])]
    async fn write(&self, client: &mut Client, acts: &[Act]) -> Outcome<Answer> {
        let written = client.session.apply(|tx| async move {
            let context = RecordContext::within(tx);
            let answers = self.do_acts(&context, &Registry::standard(), acts).await?;
            context.close();
            Ok::<_, Error>(Recorded(answers))
        });
        written_outcome(written.await)
    }

    /// Reads up to so many further pages of a feed, each in a transaction of its own, until there are no more
    /// entries.
    #[read(weight = 3 * self.mix[1])]
    async fn poll(
        &self,
        client: &mut Client,
        #[draw(self.feed())] feed: &Feed,
        #[draw(1..5usize)] pages: usize,
    ) -> Outcome<Answer> {
        let db = client.session.database().clone();
        let key = planted::place_of(self.planted, feed);
        let mut place = client.places.get(&key).cloned().unwrap_or_default();
        let mut read = Vec::new();
        for _ in 0..pages {
            let page = match planted::page(self.planted, self, &db, feed, &mut place).await {
                Some(page) => page,
                None => self.page(&db, feed, &mut place).await,
            };
            match page {
                Ok(page) => read.push(page),
                Err(e) => return unexpected(&e.error, Outcome::Failed),
            }
            if read.last().is_some_and(|page| page.ends) {
                break;
            }
            self.pause(&db).await;
        }
        client.places.insert(key, place);
        Outcome::Answered(Answer::Polled(client.reader, read))
    }

    /// Reads a whole feed in one transaction, in reverse if true.
    #[read(weight = self.mix[1])]
    async fn look(
        &self,
        client: &mut Client,
        #[draw(self.feed())] feed: &Feed,
        #[draw(any::<bool>())] reverse: bool,
    ) -> Outcome<Answer> {
        let looked = client.session.database().run(|tx, _| async move {
            let context = RecordContext::within(tx);
            let store = client::open(&context, &Registry::standard(), feed.store).await?;
            self.whole(&store, feed, reverse).await
        });
        match looked.await {
            Ok(entries) => Outcome::Answered(Answer::Entries(entries)),
            Err(e) => unexpected(&e.error, Outcome::Failed),
        }
    }

    /// Draws the calls of a transaction. What was given to the transaction cannot be read there.
    #[draws(acts)]
    fn acts(&self, client: usize) -> BoxedStrategy<Vec<Act>> {
        let readable = |mut acts: Vec<Act>| {
            let mut flushed = false;
            acts.retain(|act| {
                flushed |= *act == Act::Flush;
                !(flushed && matches!(act, Act::Entries(_)))
            });
            acts
        };
        vec(self.act(client), 1..self.together + 1).prop_map(readable).boxed()
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: the entry of an incomplete version is taken back",
            "record: a record of another type is replaced",
            "record_feed: a page has several records of one transaction",
            "record_feed: a reader continues within the records of one transaction",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Feeds {
        let (most, apart) = (rng.range(8..24) as usize, rng.chance(0.3));
        let mut drawn = Feeds {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            records: if apart { rng.range(1..5) } else { rng.range(2..12) } as i64,
            apart,
            topics: rng.range(1..4) as usize,
            together: rng.range(1..6) as usize,
            page: *rng.pick(&[1, 2, 5]),
            by_continuation: rng.chance(0.5),
            pause: *rng.pick(&[0, 3, 15, 60]),
            mix: *rng.pick(&[[1, 1], [3, 1], [1, 2]]),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        };
        if let Some(planted) = drawn.planted {
            planted.suit(&mut drawn);
        }
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        let of_store = |number| {
            let records = (0..self.records).step_by(3).map(move |id| record_key(&store(number), id));
            let entries = [1, 2].into_iter().flat_map(move |index| {
                let space = store(number).subspace(&(part::INDEXES, index));
                (0..8).step_by(3).map(move |n| space.pack(&(shared::stamp(n),)))
            });
            records.chain(entries)
        };
        session_keys(self.clients).chain((0..STORES).flat_map(of_store).map(Bytes::from)).collect()
    }

    /// Saves and deletes of different records do not conflict, although all of them change the same indexes.
    fn is_conflict_free(&self, op: &FeedsOp) -> bool {
        let is_own = |act: &Act| !matches!(act, Act::Clear(_) | Act::Entries(_));
        match op {
            FeedsOp::write { acts } => self.apart && acts.iter().all(is_own),
            FeedsOp::poll { .. } | FeedsOp::look { .. } => false,
        }
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        let created = db.run(|tx, _| async move {
            let context = RecordContext::within(tx);
            for number in 0..STORES {
                client::open(&context, &Registry::standard(), number).await?;
            }
            Ok::<_, Error>(())
        });
        created.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, reader: db.env().random_u64(), places: BTreeMap::new() })
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn apply_planted(&self, client: &mut Client, op: &FeedsOp) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn resolve(&self, client: &mut Client, _: &FeedsOp, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let fate = session.resolve(pending).await?;
            Ok(fate.map(|Recorded(answers)| Outcome::Answered(Answer::Written(answers))))
        })
        .await
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(self.read(tx).await?.map(drop).map_err(Misfit::from))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        if let Err(why) = model.judge() {
            return Ok(Err(why));
        }
        let read = db.run(|tx, _| async move { self.read(&tx).await }).await.map_err(|e| e.error)?;
        Ok(read.map_err(Misfit::from).and_then(|state| shared::compare(&state, &model.now)))
    }
}
