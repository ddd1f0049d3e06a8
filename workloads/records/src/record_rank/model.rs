//! The sequential model: all records, whose scores are sorted for each lookup.

use super::{Board, Ends, Entry, On, Player, Schema};
use crate::record_shared::columns::{Col, tuple};
use shaketable::{models::timeline::Timeline, specimen::At};
use shaketable_record::error::Error;
use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
};

/// The records, with their past.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    schema: Schema,
    states: Timeline<State>,
}

/// All records, by their primary keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State(pub(super) BTreeMap<i64, Player>);

impl State {
    /// The entries of a board: its columns and the primary key, in order.
    pub(super) fn entries(&self, board: Board) -> Vec<Entry> {
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
    entries: Vec<Entry>,
    groups: usize,
}

impl Scores {
    fn of(schema: &Schema, state: &State, board: Board, group: &[Col]) -> Scores {
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

    fn between(self, ranks: Ends<i64>) -> Vec<Entry> {
        let is_in = |entry: &&Entry| ranks.contains(&self.below(&entry[self.groups]));
        self.entries.iter().filter(is_in).cloned().collect()
    }
}

/// The entries in a range. An entry that begins with the columns of an end is at this end.
fn between(mut entries: Vec<Entry>, (low, high): &Ends<Vec<Col>>) -> Vec<Entry> {
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

fn turned(mut entries: Vec<Entry>, reverse: bool) -> Vec<Entry> {
    if reverse {
        entries.reverse();
    }
    entries
}

impl Model {
    pub(super) fn new(schema: Schema, state: State) -> Model {
        Model { schema, states: Timeline::new(state) }
    }

    /// The current state.
    fn now(&mut self, at: &At) -> &State {
        self.seen(false, at)
    }

    /// What a look sees.
    fn seen(&mut self, snapshot: bool, at: &At) -> &State {
        self.states.begin(at);
        self.states.seen(snapshot)
    }

    fn scores(&mut self, (board, group): (Board, &[Col]), snapshot: bool, at: &At) -> Scores {
        let schema = self.schema;
        Scores::of(&schema, self.seen(snapshot, at), board, group)
    }

    fn put(&mut self, id: i64, player: &Player) {
        self.states.write(|state| drop(state.0.insert(id, player.clone())));
    }

    /// Changes a player who is there.
    fn change(&mut self, id: i64, at: &At, change: impl FnOnce(Player) -> Player) -> Option<Player> {
        let player = change(self.now(at).0.get(&id)?.clone());
        self.put(id, &player);
        Some(player)
    }

    pub(super) fn save(&mut self, player: &Player, at: &At) -> Result<bool, Error> {
        let id = player.id.unwrap_or_default();
        let was = self.now(at).0.contains_key(&id);
        self.put(id, player);
        Ok(was)
    }

    pub(super) fn raise(&mut self, id: i64, by: i64, at: &At) -> Result<Option<i64>, Error> {
        Ok(self.change(id, at, |player| player.raised(by)).and_then(|player| player.score))
    }

    pub(super) fn transfer(&mut self, id: i64, game: Option<String>, at: &At) -> Result<bool, Error> {
        Ok(self.change(id, at, |player| Player { game, ..player }).is_some())
    }

    pub(super) fn delete(&mut self, id: i64, at: &At) -> Result<bool, Error> {
        let was = self.now(at).0.contains_key(&id);
        self.states.write(|state| drop(state.0.remove(&id)));
        Ok(was)
    }

    pub(super) fn clear(&mut self, at: &At) -> Result<(), Error> {
        self.states.begin(at);
        self.states.write(|state| state.0.clear());
        Ok(())
    }

    pub(super) fn rank_of(&mut self, board: Board, id: i64, at: &At) -> Result<Option<i64>, Error> {
        let Some(player) = self.now(at).0.get(&id).cloned() else { return Ok(None) };
        if board == Board::Laps && player.laps.len() > 1 {
            let reason = format!("record {} has {} scores", tuple(&[Col::Int(id)]), player.laps.len());
            return Err(Error::IndexState { index: board.name().into(), reason });
        }
        let Some(key) = board.keys(&player).pop_first() else { return Ok(None) };
        Ok(self.rank(&(board, key), false, at)?.0)
    }

    pub(super) fn rank(
        &mut self,
        (board, key): &On,
        snapshot: bool,
        at: &At,
    ) -> Result<(Option<i64>, i64), Error> {
        let (group, score) = (&key[..board.groups()], &key[board.groups()]);
        let scores = self.scores((*board, group), snapshot, at);
        Ok((scores.rank(score), scores.below(score)))
    }

    pub(super) fn score_at(
        &mut self,
        (board, group): &On,
        rank: i64,
        snapshot: bool,
        at: &At,
    ) -> Result<Option<Col>, Error> {
        Ok(self.scores((*board, group), snapshot, at).at(rank))
    }

    pub(super) fn size(&mut self, (board, group): &On, snapshot: bool, at: &At) -> Result<i64, Error> {
        Ok(self.scores((*board, group), snapshot, at).scores.len() as i64)
    }

    pub(super) fn by_rank(
        &mut self,
        (board, group): &On,
        ranks: Ends<i64>,
        reverse: bool,
        at: &At,
    ) -> Result<Vec<Entry>, Error> {
        Ok(turned(self.scores((*board, group), false, at).between(ranks), reverse))
    }

    pub(super) fn by_value(
        &mut self,
        board: Board,
        keys: &Ends<Vec<Col>>,
        reverse: bool,
        at: &At,
    ) -> Result<Vec<Entry>, Error> {
        Ok(turned(between(self.now(at).entries(board), keys), reverse))
    }
}

impl Player {
    /// The player with another score.
    pub(super) fn raised(self, by: i64) -> Player {
        Player { score: Some(self.score.unwrap_or(0).saturating_add(by)), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ranks, RanksAnswer};
    use crate::shared::drawn;
    use shaketable::specimen::{At, Mounted, Specimen};
    use shaketable_sim::seed::Seed;

    #[test]
    fn ranks_and_entries_are_found() {
        let (mut ranked, mut scores, mut entries, mut refused) = (0, 0, 0, 0);
        for seed in 0..100 {
            let ranks = <Ranks as Specimen>::draw(&mut Seed(seed).stream("ranks"), None);
            let mut model = ranks.model();
            let (_, operations) = drawn::<Mounted<Ranks>>(seed);
            for op in operations.iter().flatten().flatten() {
                use RanksAnswer::{by_rank, by_value, rank_of, score_at};
                match ranks.replay(&mut model, op, &At::default()) {
                    Ok(rank_of(Some(1..))) => ranked += 1,
                    Ok(score_at(Some(_))) => scores += 1,
                    Ok(by_rank(found) | by_value(found)) if found.len() > 2 => entries += 1,
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
