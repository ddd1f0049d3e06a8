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

mod model;
mod planted;
mod ranked;
mod schema;
mod stored;

pub use model::Model;

use crate::{
    beside,
    record_shared::{
        columns::{Col, tuple},
        layout::{part, record_key},
    },
    shared::isolation,
};
use model::State;
use proptest::option;
use ranked::Kept;
use schema::{Board, PLAYER, Player, Schema, store};
use shaketable::{prelude::*, strategies};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
    index::{
        IndexAt, IndexEntry, IndexScan, function,
        rank::{count_below, count_scores, rank_of, score_at},
    },
    store::{RecordContext, RecordExistenceCheck, RecordStore, SaveVersion, describe_key, describe_value},
    value::Tuple,
};
use std::{
    fmt::Debug,
    ops::{Bound, Range},
};

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
}

/// A board, and the columns of one of its groups, or of a group and a score.
type On = (Board, Vec<Col>);

/// Both ends of a range.
type Ends<K> = (Bound<K>, Bound<K>);

/// An entry of an index: its columns, and the primary key.
type Entry = Vec<Col>;

/// Ranks of records, in groups and with ties, against sorted scores.
#[shaketable::workload(name = "record_rank", model = Model, planted, promises(turns, limits))]
impl Ranks {
    const CLIENTS: Range<u64> = 2..7;
    const TRANSACTIONS: Range<u64> = 6..18;

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Ranks {
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
        };
        match bug {
            Some("unrecorded") => drawn.mix = [11, 2, 1],
            // Of few looks some are the same.
            Some("remembered") => (drawn.players, drawn.games, drawn.mix) = (2, 1, [3, 8, 1]),
            Some("levels-differ") => {
                drawn.schema.boards.iter_mut().for_each(|kept| kept.levels = kept.levels.max(3));
            }
            Some("by-offset") => (drawn.page, drawn.mix[2]) = (1, 5),
            _ => {}
        }
        drawn
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a ranked set is begun",
            "record: an element of a ranked set gets a row at a higher level",
            "record: an element with a row at a higher level is removed from a ranked set",
            "record: an element of a ranked set is counted once more",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let records = (0..self.players).map(|id| record_key(&store(), id));
        let indexes = Board::ALL.into_iter().flat_map(|board| {
            let rows = |part: i64| store().pack(&(part, board.number()));
            [rows(part::INDEXES), rows(part::SECONDARY)]
        });
        records.chain(indexes).collect()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&store(), &self.schema.meta_data(), key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&store(), &self.schema.meta_data(), key, value)
    }

    /// The keys of the rows beside the store. A store refuses to be where the prefix itself has a row.
    fn beside(&self) -> Vec<Vec<u8>> {
        beside::of(store().bytes()).split_off(1)
    }

    /// Opens the store for one call. Most calls are several of the layer.
    async fn open(&self, tx: &Tx) -> Result<RecordStore<Tx>, Error> {
        let context = RecordContext::within(tx.writing().await);
        RecordStore::builder(store(), self.schema.meta_data()).create_or_open(&context).await
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        let created = db.run(|tx, _| async move { self.open(&tx).await.map(drop) });
        created.await.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    #[draws(id)]
    fn id(&self) -> BoxedStrategy<i64> {
        (0..self.players).boxed()
    }

    #[draws(board)]
    fn board() -> impl Strategy<Value = Board> {
        select(&Board::ALL[..])
    }

    fn game(&self) -> BoxedStrategy<Option<String>> {
        option::weighted(0.8, select(&GAMES[..self.games]).prop_map(str::to_owned)).boxed()
    }

    fn score(&self) -> BoxedStrategy<i64> {
        select(self.scores.clone()).boxed()
    }

    fn player(&self) -> BoxedStrategy<Player> {
        (self.id(), self.game(), option::weighted(0.9, self.score()), vec(self.score(), 0..4))
            .prop_map(|(id, game, score, laps)| Player { id: Some(id), game, score, laps })
            .boxed()
    }

    #[draws(group)]
    fn group(&self) -> BoxedStrategy<On> {
        let game = self.game().prop_map(|game| Col::from(game.as_deref())).boxed();
        Self::board().prop_flat_map(move |board| (Just(board), vec(game.clone(), board.groups()))).boxed()
    }

    /// The group of a board as a game: more often none than in records that are saved.
    fn next_game(&self) -> BoxedStrategy<Option<String>> {
        let game = |(_, group): On| match group.into_iter().next() {
            Some(Col::Text(game)) => Some(game),
            _ => None,
        };
        self.group().prop_map(game).boxed()
    }

    /// A group and a score.
    #[draws(key)]
    fn key(&self) -> BoxedStrategy<On> {
        let beside = self.score().prop_map(|score| score.saturating_add(1));
        let score = prop_oneof![6 => self.score(), 2 => beside, 1 => -5..5i64];
        let score = option::weighted(0.95, score).prop_map(Col::from);
        (self.group(), score)
            .prop_map(|((board, group), score)| (board, [group, vec![score]].concat()))
            .boxed()
    }

    fn rank_number(&self) -> Range<i64> {
        -1..self.players + 2
    }

    fn ranks(&self) -> BoxedStrategy<Ends<i64>> {
        let rank = self.rank_number();
        let ranks = prop_oneof![
            5 => (rank.clone(), 0..5i64).prop_map(|(low, more)| (low, low + more)),
            1 => (rank.clone(), rank),
        ];
        ends(ranks)
    }

    /// The first columns of an entry.
    fn prefix(&self) -> BoxedStrategy<Vec<Col>> {
        (self.key(), self.id(), 0..4usize)
            .prop_map(|((_, mut key), id, length)| {
                key.push(Col::Int(id));
                key.truncate(length);
                key
            })
            .boxed()
    }

    /// Whether a look is at snapshot. Its store is opened serializably in any case.
    #[draws(snapshot)]
    fn snapshot() -> impl Strategy<Value = bool> {
        any::<bool>()
    }

    #[draws(reverse)]
    fn reverse() -> impl Strategy<Value = bool> {
        any::<bool>()
    }

    #[write(weight = 10 * self.mix[0], at)]
    async fn save(&self, tx: &Tx, #[draw(self.player())] player: &Player) -> Result<bool, Error> {
        let store = self.open(tx).await?;
        let was = store.load_record(&Tuple::from(player.id)).await?.is_some();
        put(&store, player).await?;
        Ok(was)
    }

    /// Adds to the score of a player; 0 is a save that changes nothing.
    #[write(weight = 5 * self.mix[0], at)]
    async fn raise(
        &self,
        tx: &Tx,
        id: i64,
        #[draw(prop_oneof![3 => -2..3i64, 1 => strategies::integers()])] by: i64,
    ) -> Result<Option<i64>, Error> {
        let store = self.open(tx).await?;
        let Some(player) = load(&store, id).await? else { return Ok(None) };
        let player = player.raised(by);
        put(&store, &player).await?;
        Ok(player.score)
    }

    /// Moves a player to another game.
    #[write(weight = 4 * self.mix[0], at)]
    async fn transfer(
        &self,
        tx: &Tx,
        id: i64,
        #[draw(self.next_game())] game: Option<String>,
    ) -> Result<bool, Error> {
        let store = self.open(tx).await?;
        let Some(player) = load(&store, id).await? else { return Ok(false) };
        put(&store, &Player { game, ..player }).await?;
        Ok(true)
    }

    #[write(weight = 4 * self.mix[0], at)]
    async fn delete(&self, tx: &Tx, id: i64) -> Result<bool, Error> {
        self.open(tx).await?.delete_record(&Tuple::from(id)).await
    }

    #[write(at)]
    async fn clear(&self, tx: &Tx) -> Result<(), Error> {
        self.open(tx).await?.delete_all_records().await
    }

    /// The rank of a record.
    #[read(weight = 4 * self.mix[1], at)]
    async fn rank_of(&self, tx: &Tx, board: Board, id: i64) -> Result<Option<i64>, Error> {
        let store = self.open(tx).await?;
        let Some(record) = store.load_record(&Tuple::from(id)).await? else { return Ok(None) };
        store.evaluate_record_function(&function::rank(board.expression()), &record).await
    }

    /// The rank of a score, if it is there, and how many scores are below it.
    #[read(weight = 4 * self.mix[1], at)]
    async fn rank(&self, tx: &Tx, key: &On, snapshot: bool) -> Result<(Option<i64>, i64), Error> {
        let (store, isolation) = (self.open(tx).await?, isolation(snapshot));
        let (at, key) = (on(&store, key.0)?, tuple(&key.1));
        Ok((rank_of(at, &key, isolation).await?, count_below(at, &key, isolation).await?))
    }

    /// The score with a rank in a group.
    #[read(weight = 4 * self.mix[1], at)]
    async fn score_at(
        &self,
        tx: &Tx,
        group: &On,
        #[draw(self.rank_number())] rank: i64,
        snapshot: bool,
    ) -> Result<Option<Col>, Error> {
        let store = self.open(tx).await?;
        let found = score_at(on(&store, group.0)?, &tuple(&group.1), rank, isolation(snapshot)).await?;
        Ok(found.and_then(|score| Col::all_of(&score)?.pop()))
    }

    /// How many scores a group has.
    #[read(weight = self.mix[1], at)]
    async fn size(&self, tx: &Tx, group: &On, snapshot: bool) -> Result<i64, Error> {
        let store = self.open(tx).await?;
        count_scores(on(&store, group.0)?, &tuple(&group.1), isolation(snapshot)).await
    }

    /// The entries in a range of ranks of a group.
    #[read(weight = 10 * self.mix[2], at)]
    async fn by_rank(
        &self,
        tx: &Tx,
        group: &On,
        #[draw(self.ranks())] ranks: Ends<i64>,
        reverse: bool,
    ) -> Result<Vec<Entry>, Error> {
        let (board, group) = group;
        self.scan(&self.open(tx).await?, *board, (IndexScan::ByRank, of_ranks(group, ranks)), reverse).await
    }

    /// The entries in a range of keys.
    #[read(weight = 4 * self.mix[2], at)]
    async fn by_value(
        &self,
        tx: &Tx,
        board: Board,
        #[draw(ends((self.prefix(), self.prefix())))] keys: &Ends<Vec<Col>>,
        reverse: bool,
    ) -> Result<Vec<Entry>, Error> {
        let range = TupleRange::between(of_columns(&keys.0), of_columns(&keys.1));
        self.scan(&self.open(tx).await?, board, (IndexScan::ByValue, range), reverse).await
    }

    /// Scans page by page. A page ends with a number of rows, or of entries that were read.
    async fn scan(
        &self,
        store: &RecordStore<Tx>,
        board: Board,
        (scan, range): (IndexScan, TupleRange),
        reverse: bool,
    ) -> Result<Vec<Entry>, Error> {
        let (mut found, mut from) = (Vec::new(), Continuation::Start);
        loop {
            let limits = match found.len() % 2 {
                0 => Limits::rows(self.page),
                _ => Limits { scanned: Some(self.page), ..Limits::default() },
            };
            let spent = Spent::new(limits);
            let cursor =
                store.scan_index(board.name(), scan, range.clone(), reverse, from.clone(), &spent)?;
            let page = cursor.limited(&spent, from).to_list().await?;
            found.extend(page.rows.iter().map(columns));
            match page.continuation.to_bytes() {
                Some(bytes) => from = Continuation::from_bytes(bytes),
                None => return Ok(found),
            }
        }
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        self.read(tx).await
    }

    fn model(&self) -> Model {
        Model::new(self.schema, State::default())
    }
}

const GAMES: [&str; 3] = ["", "a", "a\0"];

/// A range with these keys at its ends, each of which is in the range, or is not, or is no end.
fn ends<K: Clone + Debug + 'static>(keys: impl Strategy<Value = (K, K)> + 'static) -> BoxedStrategy<Ends<K>> {
    let kind = || {
        let kinds: [fn(()) -> Bound<()>; 3] = [Bound::Included, Bound::Excluded, |()| Bound::Unbounded];
        prop_oneof![3 => Just(kinds[0]), 3 => Just(kinds[1]), 1 => Just(kinds[2])]
    };
    (keys, kind(), kind())
        .prop_map(|((low, high), from, to)| (from(()).map(|()| low), to(()).map(|()| high)))
        .boxed()
}

/// The index of a board.
fn on(store: &RecordStore<Tx>, board: Board) -> Result<IndexAt<'_, Tx>, Error> {
    Ok(IndexAt { store, index: store.index(board.name())? })
}

/// The player with this id.
async fn load(store: &RecordStore<Tx>, id: i64) -> Result<Option<Player>, Error> {
    let loaded = store.load_record(&Tuple::from(id)).await?;
    loaded.map(|record| record.transcode()).transpose()
}

async fn put(store: &RecordStore<Tx>, player: &Player) -> Result<(), Error> {
    store.save_message(PLAYER, player, RecordExistenceCheck::None, SaveVersion::Next).await.map(drop)
}

/// A range of the ranks of a group.
fn of_ranks(group: &[Col], (low, high): Ends<i64>) -> TupleRange {
    let end = |bound: Bound<i64>| {
        let with = |rank| tuple(&[group, &[Col::Int(rank)]].concat());
        match bound {
            Bound::Included(rank) => Endpoint::Inclusive(with(rank)),
            Bound::Excluded(rank) => Endpoint::Exclusive(with(rank)),
            Bound::Unbounded if group.is_empty() => Endpoint::Open,
            Bound::Unbounded => Endpoint::Inclusive(tuple(group)),
        }
    };
    TupleRange::between(end(low), end(high))
}

fn of_columns(bound: &Bound<Vec<Col>>) -> Endpoint {
    match bound {
        Bound::Included(columns) => Endpoint::Inclusive(tuple(columns)),
        Bound::Excluded(columns) => Endpoint::Exclusive(tuple(columns)),
        Bound::Unbounded => Endpoint::Open,
    }
}

/// The columns of an entry, and the primary key.
fn columns(entry: &IndexEntry) -> Entry {
    Col::all_of(&entry.key.followed_by(&entry.primary_key)).unwrap_or_default()
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Ranks>>()
}
