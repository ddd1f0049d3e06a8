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
pub use operations::{Act, ActAnswer, Answer, Entry, Op, Page};
pub use schema::{Content, Feed, Version};

use crate::{
    beside,
    record_shared::layout::{part, record_key},
    shared::{self, session_keys},
};
use bytes::Bytes;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use schema::{STORES, space, store};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
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

impl Workload for Feeds {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "record_feed";
    const ABOUT: &'static str = "records in the order of their updates, and readers that follow them";

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

    fn clients(&self) -> usize {
        self.clients
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

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn(client)
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    /// Saves and deletes of different records do not conflict, although all of them change the same indexes.
    fn is_conflict_free(&self, op: &Op) -> bool {
        let is_own = |act: &Act| !matches!(act, Act::Clear(_) | Act::Entries(_));
        match op {
            Op::Write(acts) => self.apart && acts.iter().all(is_own),
            Op::Poll(..) | Op::Look(..) => false,
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

    async fn apply_planted(&self, client: &mut Client, op: &Op) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        self.perform(client, op).await
    }

    async fn resolve(&self, client: &mut Client, _: &Op, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let fate = session.resolve(pending).await?;
            Ok(fate.map(|Recorded(answers)| Outcome::Answered(Answer::Written(answers))))
        })
        .await
    }

    fn model(&self) -> Model {
        Model::default()
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
