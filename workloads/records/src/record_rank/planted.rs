//! Planted bugs: a maintainer of ranks that is wrong, meta-data that differ, calls that use the index
//! wrongly.

use super::{
    Answer, Board, Op, Player, Ranks, Schema,
    client::{self, columns, of_ranks, right},
};
use crate::{
    record_shared::columns::{Col, tuple},
    shared::seen_before,
};
use shaketable::{
    specimen::{self, INTERLEAVED, KEPT_VERSION, UNRECORDED, UNWRITTEN},
    workload::Outcome,
};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent, TupleRange},
    error::Error,
    index::{
        IndexAt, IndexScan,
        rank::{count_below, rank_of, score_at},
    },
    store::{Part, RecordContext, RecordStore},
};
use shaketable_tx::{Database, Isolation::Serializable, Transaction, once::Session};
use std::{ops::Bound, slice};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a change of a score is done again after an unknown result", "R26: a rank counted twice";
    Interleaved = INTERLEAVED, "two saves that run side by side in one transaction change one ranked set from one state", "two futures in one transaction";
    Unwritten = UNWRITTEN, "a write is acknowledged and never committed", "a write-behind cache";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    OldForgotten = "old-forgotten", "a save adds the new score and leaves the old one", "R1: the old record is not read";
    DeleteForgotten = "delete-forgotten", "a delete leaves the score in the ranked set", "R33: a maintainer not called on delete";
    CountedTwice = "counted-twice", "a save that keeps the score counts it once more", "R26, R30: an update counts twice";
    ClearForgotten = "clear-forgotten", "all records and entries are cleared, and the ranked sets stay", "R29: the secondary space of an index";
    MoveForgotten = "move-forgotten", "a score that moves to another group stays in the ranked set of the old one", "R30: a group move";
    TiesRemoved = "ties-removed", "a score is removed although another record has it", "ties in a ranked set";
    TiesKept = "ties-kept", "whether other records have a score is read before the own entry is removed", "ties in a ranked set";
    TiesAtSnapshot = "ties-at-snapshot", "whether other records have a score is read at snapshot", "a read without isolation";
    SpanLost = "span-lost", "the span of a removed element is not given to the element before it", "a level's count after a removal";
    RowKept = "row-kept", "a removed element keeps its rows at higher levels", "a level's rows after a removal";
    SpanAtSnapshot = "span-at-snapshot", "counts are read at snapshot and set, instead of added to", "R18: the conflicts of a ranked set";
    LevelsDiffer = "levels-differ", "some changes are made with one level less", "an option changed while the index has entries";
    CountsDiffer = "counts-differ", "some changes are made with the other setting for equal scores", "an option changed while the index has entries";
    Ungrouped = "ungrouped", "both columns of a grouped board are its score", "RL19: the grouping of an index of ranks";
    LookedApart = "looked-apart", "a lookup before a write is made in another transaction", "a rank read beside the transaction";
    AbsentRanked = "absent-ranked", "a score that no record has is given a rank", "the rank of an absent score";
    RankAfterTies = "rank-after-ties", "the rank of a record is that of the last one with its score", "the rank of ties";
    CountOfEntries = "count-of-entries", "the rank of a score is the number of entries below, with duplicates in any case", "the rank of ties";
    EndIncluded = "end-included", "a range of ranks has its excluded end", "a bound off by one";
    ScoresForRanks = "scores-for-ranks", "a range of ranks is looked up as scores that have these ranks, without regard to ties", "ties at the ends of a range of ranks";
    ByOffset = "by-offset", "a scan by rank is continued at the rank after as many rows as were read", "a position taken for a rank";
    RaisedApart = "raised-apart", "the score to be raised is read in another transaction", "a lost update";
}

impl Planted {
    /// The meta-data with which a call is done.
    pub(super) fn schema(self, schema: Schema, op: &Op) -> Schema {
        let mut schema = schema;
        let is_changed = matches!(op, Op::Raise(..));
        for kept in schema.boards.iter_mut().filter(|_| is_changed) {
            match self {
                Planted::LevelsDiffer => kept.levels -= 1,
                Planted::CountsDiffer => kept.counts = !kept.counts,
                _ => {}
            }
        }
        Schema { ungrouped: self == Planted::Ungrouped, ..schema }
    }

    /// Changes the drawn configuration so that the bug is one.
    pub(super) fn suit(self, drawn: &mut Ranks) {
        for kept in &mut drawn.schema.boards {
            match self {
                Planted::CountedTwice | Planted::RankAfterTies | Planted::ScoresForRanks => {
                    kept.counts = true
                }
                Planted::TiesRemoved
                | Planted::TiesKept
                | Planted::TiesAtSnapshot
                | Planted::CountOfEntries => {
                    kept.counts = false;
                }
                Planted::LevelsDiffer => kept.levels = kept.levels.max(3),
                _ => {}
            }
        }
        let [writes, looks, scans] = &mut drawn.mix;
        match self {
            Planted::Unrecorded => (*writes, *looks, *scans) = (11, 2, 1),
            Planted::RaisedApart => (*writes, *looks, drawn.players) = (11, 2, drawn.players.min(3)),
            Planted::EndIncluded | Planted::ScoresForRanks => *scans = 5,
            Planted::ByOffset => (drawn.page, *scans) = (1, 5),
            _ => {}
        }
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub(super) async fn perform<T: Transaction>(
    planted: Planted,
    ranks: &Ranks,
    store: &RecordStore<T>,
    op: &Op,
) -> Option<Result<Answer, Error>> {
    let at = |board: Board| Some(IndexAt { store, index: store.index(board.name()).ok()? });
    Some(match (planted, op) {
        (Planted::ClearForgotten, Op::Clear) => {
            let cleared = [Part::Records, Part::Indexes].iter().try_for_each(|part| {
                let (begin, end) = store.keyspace().part(*part).range();
                store.context().clear_range(&begin, &end)
            });
            cleared.map(|()| Answer::Cleared)
        }
        (Planted::AbsentRanked, Op::Rank(board, key, _)) => {
            let below = count_below(at(*board)?, &tuple(key), Serializable).await;
            below.map(|below| Answer::Ranks(Some(below), below))
        }
        (Planted::RankAfterTies, Op::RankOf(board @ (Board::Score | Board::Game), id)) => {
            rank_after_ties(at(*board)?, *board, *id).await
        }
        (Planted::CountOfEntries, Op::Rank(board, key, _)) => count_of_entries(at(*board)?, key).await,
        (Planted::EndIncluded, Op::ByRank(board, group, low, Bound::Excluded(high), reverse)) => {
            let op = Op::ByRank(*board, group.clone(), *low, Bound::Included(*high), *reverse);
            right(ranks, store, &op).await
        }
        (Planted::ScoresForRanks, Op::ByRank(board, group, low, high, reverse)) => {
            let op = match scores_for_ranks(at(*board)?, group, (*low, *high)).await {
                Ok((low, high)) => Op::ByValue(*board, low, high, *reverse),
                Err(e) => return Some(Err(e)),
            };
            right(ranks, store, &op).await
        }
        (Planted::ByOffset, Op::ByRank(board, group, low, high, false)) => {
            by_offset(ranks, store, *board, group, (*low, *high)).await
        }
        _ => return None,
    })
}

async fn rank_after_ties<T: Transaction>(at: IndexAt<'_, T>, board: Board, id: i64) -> Result<Answer, Error> {
    let Some(player) = client::load(at.store, id).await? else { return Ok(Answer::Rank(None)) };
    let mut key = board.keys(&player).pop_first().unwrap_or_default();
    let next = player.score.and_then(|score| score.checked_add(1));
    Ok(Answer::Rank(match next {
        Some(next) => {
            key.pop();
            key.push(Col::Int(next));
            Some(count_below(at, &tuple(&key), Serializable).await? - 1)
        }
        None => rank_of(at, &tuple(&key), Serializable).await?,
    }))
}

async fn count_of_entries<T: Transaction>(at: IndexAt<'_, T>, key: &[Col]) -> Result<Answer, Error> {
    let (group, score) = key.split_at(key.len() - 1);
    let entries = TupleRange::all_of(tuple(group));
    let spent = Spent::new(Limits::default());
    let all = at.scan_entries(&entries, false, Continuation::Start, &spent)?.to_list().await?;
    let scores: Vec<_> = all.rows.iter().map(|entry| columns(entry)[group.len()].clone()).collect();
    let below = scores.iter().filter(|other| **other < score[0]).count() as i64;
    Ok(Answer::Ranks(scores.contains(&score[0]).then_some(below), below))
}

type Ends = (Bound<Vec<Col>>, Bound<Vec<Col>>);

async fn scores_for_ranks<T: Transaction>(
    at: IndexAt<'_, T>,
    group: &[Col],
    (low, high): (Bound<i64>, Bound<i64>),
) -> Result<Ends, Error> {
    let score = async |rank: i64| {
        let found = score_at(at, &tuple(group), rank, Serializable).await?;
        let score = found.and_then(|score| Col::all_of(&score));
        Ok::<_, Error>(score.map(|score| [group, &score].concat()))
    };
    let none = || [group, &[Col::Int(i64::MAX), Col::Int(i64::MAX)]].concat();
    let low = match low {
        Bound::Included(rank) => Bound::Included(score(rank.max(0)).await?.unwrap_or_else(none)),
        Bound::Excluded(rank) if rank >= 0 => Bound::Excluded(score(rank).await?.unwrap_or_else(none)),
        _ => Bound::Included(group.to_vec()),
    };
    let high = match high {
        Bound::Included(rank) if rank >= 0 => {
            score(rank).await?.map_or(Bound::Included(group.to_vec()), Bound::Included)
        }
        Bound::Excluded(rank) if rank >= 0 => {
            score(rank).await?.map_or(Bound::Included(group.to_vec()), Bound::Excluded)
        }
        Bound::Unbounded => Bound::Included(group.to_vec()),
        _ => Bound::Excluded(group.to_vec()),
    };
    Ok((low, high))
}

async fn by_offset<T: Transaction>(
    ranks: &Ranks,
    store: &RecordStore<T>,
    board: Board,
    group: &[Col],
    (low, high): (Bound<i64>, Bound<i64>),
) -> Result<Answer, Error> {
    let first = match low {
        Bound::Included(rank) => rank.max(0),
        Bound::Excluded(rank) => (rank + 1).max(0),
        Bound::Unbounded => 0,
    };
    let mut found = Vec::new();
    loop {
        let range = of_ranks(group, Bound::Included(first + found.len() as i64), high);
        let (spent, from) = (Spent::new(Limits::rows(ranks.page)), Continuation::Start);
        let cursor = store.scan_index(board.name(), IndexScan::ByRank, range, false, from.clone(), &spent)?;
        let page = cursor.limited(&spent, from).to_list().await?;
        found.extend(page.rows.iter().map(columns));
        if page.continuation == Continuation::End {
            return Ok(Answer::Entries(found));
        }
    }
}

/// Does the calls of a transaction in the way of the bug; `None` if it does not change them.
pub(super) async fn apply<D: Database>(
    planted: Planted,
    ranks: &Ranks,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    match (planted, ops) {
        (Planted::RaisedApart, [Op::Raise(id, by)]) => Some(raised_apart(ranks, session, *id, *by).await),
        (Planted::LookedApart, [first, rest @ ..]) if !first.writes() && rest.iter().any(Op::writes) => {
            let look = |tx| async move { done(ranks, tx, slice::from_ref(first)).await };
            let act = |tx, looked| async move { Ok([looked, done(ranks, tx, rest).await?].concat()) };
            Some(seen_before(session, look, act).await)
        }
        _ => None,
    }
}

async fn raised_apart<D: Database>(
    ranks: &Ranks,
    session: &mut Session<D>,
    id: i64,
    by: i64,
) -> Outcome<specimen::Answer<Answer>> {
    let look = |tx| async move {
        let context = RecordContext::within(tx);
        client::load(&ranks.open_store(&context, None).await?, id).await
    };
    let act = |tx, player: Option<Player>| async move {
        let Some(player) = player.map(|player| player.raised(by)) else {
            return Ok(vec![Answer::Raised(None)]);
        };
        let context = RecordContext::within(tx);
        client::save(&ranks.open_store(&context, None).await?, &player).await?;
        Ok(vec![Answer::Raised(player.score)])
    };
    seen_before(session, look, act).await
}

/// Does calls in a transaction.
async fn done<T: Transaction>(ranks: &Ranks, tx: T, ops: &[Op]) -> Result<Vec<Answer>, Error> {
    let mut answers = Vec::with_capacity(ops.len());
    for op in ops {
        let context = RecordContext::within(tx.clone());
        answers.push(right(ranks, &ranks.open_store(&context, Some(op)).await?, op).await?);
    }
    Ok(answers)
}
