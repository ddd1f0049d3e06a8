//! `record_rank`: records with scores, ranked by the Record Layer in indexes of ranks.
//!
//! There are three boards: the scores of all players, those of the players of each game, and all further
//! scores of players, of which each has any number. On each of them equal scores count once, or each time.
//! There are few scores, so that there are ties, and many of them have rows at the higher levels of the
//! ranked sets. Clients save records, change scores, also to what they are, move players from game to game,
//! delete them one by one or all together, and look up ranks, scores by rank, and entries in ranges of ranks
//! and of scores, page by page in both directions. Several calls are composed in one transaction.
//!
//! Answers are compared with sorted lists of scores. At every version all rows of the store are those that
//! are computed here from the records: entries, and every level of every ranked set.

mod client;
mod model;
mod operations;
mod planted;
mod ranked;
mod schema;
mod stored;

pub use model::{Model, State};
pub use operations::{Answer, Op};
pub use ranked::Kept;
pub use schema::{Board, Player, Schema};

use crate::{
    beside,
    record_shared::layout::{part, record_key},
};
use bytes::Bytes;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use schema::store;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::timeline::Timeline,
    specimen::{self, At, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore, describe_key, describe_value},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Env, Isolation, RetryError, Transaction, Tx, once::Session};
use std::ops::Range;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ranks {
    schema: Schema,
    /// How many players, and games, are used.
    players: i64,
    games: usize,
    /// The scores that are drawn.
    scores: Vec<i64>,
    /// The maximum number of entries on a page.
    page: usize,
    /// The weights of writes, of lookups, and of scans.
    mix: [u32; 3],
    planted: Option<Planted>,
}

impl Ranks {
    /// The keys of the rows beside the store. A store refuses to be where the prefix itself has a row.
    fn beside(&self) -> Vec<Vec<u8>> {
        beside::of(store().bytes()).split_off(1)
    }

    /// Opens the store, as a call does.
    async fn open_store(
        &self,
        context: &RecordContext<Tx>,
        op: Option<&Op>,
    ) -> Result<RecordStore<Tx>, Error> {
        let schema = match (self.planted, op) {
            (Some(planted), Some(op)) => planted.schema(self.schema, op),
            _ => self.schema,
        };
        RecordStore::builder(store(), schema.meta_data()).create_or_open(context).await
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Ranks>>()
}

impl Specimen for Ranks {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "record_rank";
    const ABOUT: &'static str = "ranks of records, in groups and with ties, against sorted scores";
    const CHECKS_LIMITS: bool = true;
    const CLIENTS: Range<u64> = 2..7;
    const TRANSACTIONS: Range<u64> = 6..18;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a ranked set is begun",
            "record: an element of a ranked set gets a row at a higher level",
            "record: an element with a row at a higher level is removed from a ranked set",
            "record: an element of a ranked set is counted once more",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Ranks {
        let planted = bug.and_then(Planted::named);
        let crc = rng.chance(0.5);
        let boards = [(); 3].map(|()| Kept { counts: rng.chance(0.5), levels: rng.range(2..6) as u32, crc });
        let near = [-2, -1, 0, 1, 2, 3];
        let scores = (0..rng.range(2..14)).map(|n| match n % 4 {
            0 => *rng.pick(&near),
            1 => *rng.pick(ranked::high(crc, 1)),
            2 => *rng.pick(ranked::high(crc, 2)),
            _ => *rng.pick(&[i64::MIN, i64::MAX, -256, -255, 255, 256, 65_536]),
        });
        let mut drawn = Ranks {
            schema: Schema { boards, ungrouped: false },
            scores: scores.collect(),
            players: rng.range(2..13) as i64,
            games: rng.range(1..4) as usize,
            page: *rng.pick(&[1, 2, 5]),
            mix: [rng.range(3..12), rng.range(2..9), rng.range(1..6)].map(|weight| weight as u32),
            planted,
        };
        if let Some(planted) = planted {
            planted.suit(&mut drawn);
        }
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        let records = (0..self.players).map(|id| record_key(&store(), id));
        let indexes = Board::ALL.into_iter().flat_map(|board| {
            let rows = |part: i64| store().pack(&(part, board.number()));
            [rows(part::INDEXES), rows(part::SECONDARY)]
        });
        records.chain(indexes).map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        !op.writes()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&store(), &self.schema.meta_data(), key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&store(), &self.schema.meta_data(), key, value)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        let created = db.run(|tx, _| async move {
            let context = RecordContext::within(tx);
            self.open_store(&context, None).await.map(drop)
        });
        created.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        // Most calls are several of the layer.
        let context = RecordContext::within(tx.writing().await);
        let store = self.open_store(&context, Some(op)).await?;
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, &store, op).await
        {
            return answer;
        }
        client::right(self, &store, op).await
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        planted::apply(self.planted?, self, session, ops).await
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Timeline::new(State::default())
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        Ok(self.read(tx).await?.map_err(Misfit::from))
    }
}
