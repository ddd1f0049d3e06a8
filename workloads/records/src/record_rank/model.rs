//! The sequential model: all records, whose scores are sorted for each lookup.

use super::{Answer, Board, Op, Player, Ranks};
use crate::record_shared::columns::{Col, tuple};
use shaketable::{models::timeline::Timeline, specimen::At};
use shaketable_record::error::Error;
use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
};

/// The records, with their past.
pub type Model = Timeline<State>;

/// All records, by their primary keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State(pub(super) BTreeMap<i64, Player>);

impl State {
    /// The entries of a board: its columns and the primary key, in order.
    pub(super) fn entries(&self, board: Board) -> Vec<Vec<Col>> {
        let of = |(id, player): (&i64, &Player)| {
            let keys = board.keys(player).into_iter();
            keys.map(|key| [key, vec![Col::Int(*id)]].concat()).collect::<Vec<_>>()
        };
        let mut entries: Vec<_> = self.0.iter().flat_map(of).collect();
        entries.sort();
        entries
    }
}

/// The scores of one group.
struct Scores {
    /// In order; each once, or as often as records have it.
    scores: Vec<Col>,
    /// The entries of the group, in order.
    entries: Vec<Vec<Col>>,
    groups: usize,
}

impl Scores {
    fn of(schema: &super::Schema, state: &State, board: Board, group: &[Col]) -> Scores {
        let groups = board.groups();
        let mut entries = state.entries(board);
        entries.retain(|entry| entry[..groups] == *group);
        let mut scores: Vec<_> = entries.iter().map(|entry| entry[groups].clone()).collect();
        if !schema.of(board).counts {
            scores.dedup();
        }
        Scores { scores, entries, groups }
    }

    fn below(&self, score: &Col) -> i64 {
        self.scores.iter().filter(|other| *other < score).count() as i64
    }

    fn rank(&self, score: &Col) -> Option<i64> {
        self.scores.contains(score).then(|| self.below(score))
    }

    fn at(&self, rank: i64) -> Option<Col> {
        usize::try_from(rank).ok().and_then(|rank| self.scores.get(rank)).cloned()
    }

    fn between(&self, ranks: (Bound<i64>, Bound<i64>)) -> Vec<Vec<Col>> {
        let is_in = |entry: &&Vec<Col>| ranks.contains(&self.below(&entry[self.groups]));
        self.entries.iter().filter(is_in).cloned().collect()
    }
}

/// The entries in a range. An entry that begins with the columns of an end is at this end.
fn between(mut entries: Vec<Vec<Col>>, low: &Bound<Vec<Col>>, high: &Bound<Vec<Col>>) -> Vec<Vec<Col>> {
    let cut = |entry: &[Col], end: &[Col]| entry[..end.len().min(entry.len())].to_vec();
    entries.retain(|entry| {
        let above = match low {
            Bound::Included(end) => cut(entry, end) >= *end,
            Bound::Excluded(end) => cut(entry, end) > *end,
            Bound::Unbounded => true,
        };
        let below = match high {
            Bound::Included(end) => cut(entry, end) <= *end,
            Bound::Excluded(end) => cut(entry, end) < *end,
            Bound::Unbounded => true,
        };
        above && below
    });
    entries
}

fn turned(mut entries: Vec<Vec<Col>>, reverse: bool) -> Answer {
    if reverse {
        entries.reverse();
    }
    Answer::Entries(entries)
}

impl Ranks {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let now = model.now();
        let scores = |state: &State, board, group: &[Col]| Scores::of(&self.schema, state, board, group);
        let split = |board: Board, key: &[Col]| (key[..board.groups()].to_vec(), key[board.groups()].clone());
        Ok(match op {
            Op::Save(player) => {
                let id = player.id.unwrap_or_default();
                let was = now.0.contains_key(&id);
                model.write(|state| drop(state.0.insert(id, player.clone())));
                Answer::Was(was)
            }
            Op::Raise(id, by) => {
                let Some(player) = now.0.get(id).cloned() else { return Ok(Answer::Raised(None)) };
                let player = player.raised(*by);
                model.write(|state| drop(state.0.insert(*id, player.clone())));
                Answer::Raised(player.score)
            }
            Op::Move(id, game) => {
                let Some(player) = now.0.get(id).cloned() else { return Ok(Answer::Was(false)) };
                let player = Player { game: game.clone(), ..player };
                model.write(|state| drop(state.0.insert(*id, player.clone())));
                Answer::Was(true)
            }
            Op::Delete(id) => {
                let was = now.0.contains_key(id);
                model.write(|state| drop(state.0.remove(id)));
                Answer::Was(was)
            }
            Op::Clear => {
                model.write(|state| state.0.clear());
                Answer::Cleared
            }
            Op::RankOf(board, id) => {
                let Some(player) = now.0.get(id) else { return Ok(Answer::Rank(None)) };
                if *board == Board::Laps && player.laps.len() > 1 {
                    let reason =
                        format!("record {} has {} scores", tuple(&[Col::Int(*id)]), player.laps.len());
                    return Err(Error::IndexState { index: board.name().into(), reason });
                }
                let key = board.keys(player).pop_first();
                Answer::Rank(key.and_then(|key| {
                    let (group, score) = split(*board, &key);
                    scores(now, *board, &group).rank(&score)
                }))
            }
            Op::Rank(board, key, snapshot) => {
                let (group, score) = split(*board, key);
                let scores = scores(model.seen(*snapshot), *board, &group);
                Answer::Ranks(scores.rank(&score), scores.below(&score))
            }
            Op::ScoreAt(board, group, rank, snapshot) => {
                Answer::Score(scores(model.seen(*snapshot), *board, group).at(*rank))
            }
            Op::Size(board, group, snapshot) => {
                Answer::Count(scores(model.seen(*snapshot), *board, group).scores.len() as i64)
            }
            Op::ByRank(board, group, low, high, reverse) => {
                turned(scores(now, *board, group).between((*low, *high)), *reverse)
            }
            Op::ByValue(board, low, high, reverse) => {
                turned(between(now.entries(*board), low, high), *reverse)
            }
        })
    }
}

impl Player {
    /// The player with another score.
    pub(super) fn raised(self, by: i64) -> Player {
        Player { score: Some(self.score.unwrap_or(0).saturating_add(by)), ..self }
    }
}
