//! How one call is performed on a store that is open in a transaction.

use super::{Answer, Board, Op, Player, Ranks, schema::PLAYER};
use crate::{
    record_shared::columns::{Col, tuple},
    shared::isolation,
};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
    index::{
        IndexAt, IndexEntry, IndexScan,
        function::rank,
        rank::{count_below, count_scores, rank_of, score_at},
    },
    store::{RecordExistenceCheck, RecordStore, SaveVersion},
    value::Tuple,
};
use shaketable_tx::Tx;
use std::ops::Bound;

/// Performs a call correctly.
pub(super) async fn right(ranks: &Ranks, store: &RecordStore<Tx>, op: &Op) -> Result<Answer, Error> {
    let at = |board: Board| Ok::<_, Error>(IndexAt { store, index: store.index(board.name())? });
    Ok(match op {
        Op::Save(player) => {
            let was = store.load_record(&Tuple::from(player.id)).await?.is_some();
            save(store, player).await?;
            Answer::Was(was)
        }
        Op::Raise(id, by) => match load(store, *id).await? {
            Some(player) => {
                let player = player.raised(*by);
                save(store, &player).await?;
                Answer::Raised(player.score)
            }
            None => Answer::Raised(None),
        },
        Op::Move(id, game) => match load(store, *id).await? {
            Some(player) => {
                save(store, &Player { game: game.clone(), ..player }).await?;
                Answer::Was(true)
            }
            None => Answer::Was(false),
        },
        Op::Delete(id) => Answer::Was(store.delete_record(&Tuple::from(*id)).await?),
        Op::Clear => {
            store.delete_all_records().await?;
            Answer::Cleared
        }
        Op::RankOf(board, id) => Answer::Rank(match store.load_record(&Tuple::from(*id)).await? {
            Some(record) => store.evaluate_record_function(&rank(board.expression()), &record).await?,
            None => None,
        }),
        Op::Rank(board, key, snapshot) => {
            let (at, key, isolation) = (at(*board)?, tuple(key), isolation(*snapshot));
            Answer::Ranks(rank_of(at, &key, isolation).await?, count_below(at, &key, isolation).await?)
        }
        Op::ScoreAt(board, group, rank, snapshot) => {
            let found = score_at(at(*board)?, &tuple(group), *rank, isolation(*snapshot)).await?;
            Answer::Score(found.and_then(|score| Col::all_of(&score)?.pop()))
        }
        Op::Size(board, group, snapshot) => {
            Answer::Count(count_scores(at(*board)?, &tuple(group), isolation(*snapshot)).await?)
        }
        Op::ByRank(board, group, low, high, reverse) => {
            let range = of_ranks(group, *low, *high);
            scan(ranks, store, *board, IndexScan::ByRank, range, *reverse).await?
        }
        Op::ByValue(board, low, high, reverse) => {
            let range = TupleRange::between(of_columns(low), of_columns(high));
            scan(ranks, store, *board, IndexScan::ByValue, range, *reverse).await?
        }
    })
}

/// The player with this id.
async fn load(store: &RecordStore<Tx>, id: i64) -> Result<Option<Player>, Error> {
    let loaded = store.load_record(&Tuple::from(id)).await?;
    loaded.map(|record| record.transcode()).transpose()
}

/// Saves a player.
async fn save(store: &RecordStore<Tx>, player: &Player) -> Result<(), Error> {
    store.save_message(PLAYER, player, RecordExistenceCheck::None, SaveVersion::Next).await.map(drop)
}

/// A range of the ranks of a group.
pub(super) fn of_ranks(group: &[Col], low: Bound<i64>, high: Bound<i64>) -> TupleRange {
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
pub(super) fn columns(entry: &IndexEntry) -> Vec<Col> {
    Col::all_of(&entry.key.followed_by(&entry.primary_key)).unwrap_or_default()
}

/// Scans page by page. A page ends with a number of rows, or of entries that were read.
async fn scan(
    ranks: &Ranks,
    store: &RecordStore<Tx>,
    board: Board,
    scan: IndexScan,
    range: TupleRange,
    reverse: bool,
) -> Result<Answer, Error> {
    let (mut found, mut from) = (Vec::new(), Continuation::Start);
    loop {
        let limits = match found.len() % 2 {
            0 => Limits::rows(ranks.page),
            _ => Limits { scanned: Some(ranks.page), ..Limits::default() },
        };
        let spent = Spent::new(limits);
        let cursor = store.scan_index(board.name(), scan, range.clone(), reverse, from.clone(), &spent)?;
        let page = cursor.limited(&spent, from).to_list().await?;
        found.extend(page.rows.iter().map(columns));
        match page.continuation.to_bytes() {
            Some(bytes) => from = Continuation::from_bytes(bytes),
            None => return Ok(Answer::Entries(found)),
        }
    }
}
