//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::{Board, Player, Ranks};
use crate::record_shared::columns::Col;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::strategies;
use std::ops::Bound;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Saves a record.
    Save(Player),
    /// Adds to the score of a player; 0 is a save that changes nothing.
    Raise(i64, i64),
    /// Moves a player to another game.
    Move(i64, Option<String>),
    /// Deletes a record.
    Delete(i64),
    /// Deletes all records.
    Clear,
    /// The rank of a record.
    RankOf(Board, i64),
    /// The rank of a group and a score, and how many scores are below; at snapshot if true.
    Rank(Board, Vec<Col>, bool),
    /// The score with a rank in a group, at snapshot if true.
    ScoreAt(Board, Vec<Col>, i64, bool),
    /// How many scores a group has, at snapshot if true.
    Size(Board, Vec<Col>, bool),
    /// The entries in a range of ranks of a group, in reverse if true.
    ByRank(Board, Vec<Col>, Bound<i64>, Bound<i64>, bool),
    /// The entries in a range of keys, in reverse if true.
    ByValue(Board, Bound<Vec<Col>>, Bound<Vec<Col>>, bool),
}

impl Op {
    /// Whether the call may write.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Op::Save(_) | Op::Raise(..) | Op::Move(..) | Op::Delete(_) | Op::Clear)
    }
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// All records are deleted.
    Cleared,
    /// Whether there was a record.
    Was(bool),
    /// The new score; none if there is no such player.
    Raised(Option<i64>),
    /// A rank.
    Rank(Option<i64>),
    /// The rank of a score, if it is there, and how many are below it.
    Ranks(Option<i64>, i64),
    /// A score.
    Score(Option<Col>),
    /// A number of scores.
    Count(i64),
    /// Entries: the columns of the index, and the primary key.
    Entries(Vec<Vec<Col>>),
}

const GAMES: [&str; 3] = ["", "a", "a\0"];

/// The kinds of ends of ranges, with their weights.
const ENDS: [fn(()) -> Bound<()>; 7] = [
    Bound::Included,
    Bound::Included,
    Bound::Included,
    Bound::Excluded,
    Bound::Excluded,
    Bound::Excluded,
    |()| Bound::Unbounded,
];

fn ends<K: Clone + std::fmt::Debug + 'static>(
    keys: BoxedStrategy<(K, K)>,
) -> BoxedStrategy<(Bound<K>, Bound<K>)> {
    (keys, select(&ENDS[..]), select(&ENDS[..]))
        .prop_map(|((low, high), from, to)| (from(()).map(|()| low), to(()).map(|()| high)))
        .boxed()
}

impl Ranks {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let id = 0..self.players;
        let score = select(self.scores.clone()).boxed();
        let game = option::weighted(0.8, select(&GAMES[..self.games]).prop_map(str::to_owned)).boxed();
        let player =
            (id.clone(), game.clone(), option::weighted(0.9, score.clone()), vec(score.clone(), 0..4));
        let save =
            player.prop_map(|(id, game, score, laps)| Op::Save(Player { id: Some(id), game, score, laps }));
        let raise = (id.clone(), prop_oneof![3 => -2..3i64, 1 => strategies::integers()]);
        let board = select(&Board::ALL[..]);
        let group = move |board: Board| {
            let group = game.clone().prop_map(|game| Col::from(game.as_deref()));
            vec(group, board.groups())
        };
        let any_score = prop_oneof![
            6 => score.clone(), 2 => score.prop_map(|score| score.saturating_add(1)), 1 => -5..5i64
        ];
        let any_score = option::weighted(0.95, any_score).prop_map(Col::from).boxed();
        let with_group = {
            let group = group.clone();
            board.clone().prop_flat_map(move |board| (Just(board), group(board))).boxed()
        };
        let with_key = (with_group.clone(), any_score)
            .prop_map(|((board, group), score)| (board, [group, vec![score]].concat()))
            .boxed();
        let rank = -1..self.players + 2;
        let ranks = prop_oneof![
            5 => (rank.clone(), 0..5i64).prop_map(|(low, more)| (low, low + more)),
            1 => (rank.clone(), rank.clone()),
        ]
        .boxed();
        let prefix = (with_key.clone(), id.clone(), 0..4usize)
            .prop_map(|((_, mut key), id, length)| {
                key.push(Col::Int(id));
                key.truncate(length);
                key
            })
            .boxed();
        let [write, read, scan] = self.mix;
        let snapshot = any::<bool>;
        prop_oneof![
            10 * write => save,
            5 * write => raise.prop_map(|(id, by)| Op::Raise(id, by)),
            4 * write => (id.clone(), with_group.clone()).prop_map(|(id, (_, group))| {
                Op::Move(id, group.first().and_then(|col| match col {
                    Col::Text(game) => Some(game.clone()),
                    _ => None,
                }))
            }),
            4 * write => id.clone().prop_map(Op::Delete),
            1 => Just(Op::Clear),
            4 * read => (board.clone(), id).prop_map(|(board, id)| Op::RankOf(board, id)),
            4 * read => (with_key, snapshot()).prop_map(|((board, key), snapshot)| Op::Rank(board, key, snapshot)),
            4 * read => (with_group.clone(), rank, snapshot()).prop_map(|((board, group), rank, snapshot)| {
                Op::ScoreAt(board, group, rank, snapshot)
            }),
            read => (with_group.clone(), snapshot()).prop_map(|((board, group), snapshot)| {
                Op::Size(board, group, snapshot)
            }),
            10 * scan => (with_group, ends(ranks), any::<bool>())
                .prop_map(|((board, group), (low, high), reverse)| Op::ByRank(board, group, low, high, reverse)),
            4 * scan => (board, ends((prefix.clone(), prefix).boxed()), any::<bool>())
                .prop_map(|(board, (low, high), reverse)| Op::ByValue(board, low, high, reverse)),
        ]
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use shaketable::{
        models::timeline::Timeline,
        specimen::{At, Mounted, Specimen},
    };
    use shaketable_sim::seed::Seed;

    #[test]
    fn ranks_and_entries_are_found() {
        let (mut ranked, mut scores, mut entries, mut refused) = (0, 0, 0, 0);
        for seed in 0..100 {
            let mut model = Timeline::new(super::super::State::default());
            let ranks = Ranks::draw(&mut Seed(seed).stream("ranks"), None);
            let (_, operations) = drawn::<Mounted<Ranks>>(seed);
            for op in operations.iter().flatten().flatten() {
                match ranks.replay(&mut model, op, &At::default()) {
                    Ok(Answer::Rank(Some(1..))) => ranked += 1,
                    Ok(Answer::Score(Some(_))) => scores += 1,
                    Ok(Answer::Entries(found)) if found.len() > 2 => entries += 1,
                    Err(_) => refused += 1,
                    _ => {}
                }
            }
        }
        assert!(
            ranked > 40 && scores > 50 && entries > 60 && refused > 15,
            "{ranked} {scores} {entries} {refused}"
        );
    }
}
