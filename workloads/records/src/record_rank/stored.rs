//! Everything that is stored, read as a model, and whether it is what the records should have.

use super::{Board, Kept, Model, Player, Ranks, model::State, ranked::key, schema::store};
use crate::{
    beside,
    record_shared::{
        columns::{Col, packed},
        layout::{id_of, part, record_key, text},
        rows::{self, Rows},
    },
};
use foundationdb_tuple::Subspace;
use shaketable_tx::{self as tx, Tx};
use std::collections::BTreeMap;

/// The entries of a board.
fn entries(board: Board) -> Subspace {
    store().subspace(&(part::INDEXES, board.number()))
}

/// The ranked set of a group.
fn set(board: Board, group: &[Col]) -> Subspace {
    let sets = store().subspace(&(part::SECONDARY, board.number()));
    Subspace::from_bytes([sets.bytes(), &packed(group)].concat())
}

impl Ranks {
    /// Reads everything that is stored, as a model. The inner error describes a broken invariant.
    pub(super) async fn read(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        if let Err(why) = beside::check(tx, &self.beside()).await? {
            return Ok(Err(why));
        }
        let rows = rows::stored(tx, &store()).await?;
        Ok(self.state(&rows).map(|state| Model::new(self.schema, state)))
    }

    fn state(&self, rows: &Rows) -> Result<State, String> {
        let mut state = State::default();
        for (key, value) in rows {
            let Some(id) = id_of(&store(), key) else { continue };
            let player = Player::of_stored(value).filter(|player| player.id == Some(id));
            state.0.insert(id, player.ok_or(format!("the record {} cannot be read", text(key)))?);
        }
        let mut expected = self.expected(&state);
        for board in Board::ALL {
            begun(board, self.schema.of(board), rows, &mut expected);
        }
        rows::compare(rows, &expected).map(|()| state)
    }

    /// All rows of a store with these records.
    fn expected(&self, state: &State) -> Rows {
        // The version of the meta-data counts its changes: records do not take several rows, and each index.
        let mut rows = Rows::from([rows::header(&store(), 1 + Board::ALL.len() as i32)]);
        for (id, player) in &state.0 {
            rows.insert(record_key(&store(), *id), player.stored());
        }
        for board in Board::ALL {
            let mut sets: BTreeMap<Vec<Col>, BTreeMap<Vec<u8>, i64>> = BTreeMap::new();
            let kept = self.schema.of(board);
            for entry in state.entries(board) {
                rows.insert([entries(board).bytes(), &packed(&entry)].concat(), Vec::new());
                let (group, score) =
                    (entry[..board.groups()].to_vec(), packed(&entry[board.groups()..][..1]));
                let times = sets.entry(group).or_default().entry(score).or_default();
                *times = if kept.counts { *times + 1 } else { 1 };
            }
            let sets = sets.iter().flat_map(|(group, elements)| kept.rows(&set(board, group), elements));
            rows.extend(sets);
        }
        rows
    }
}

/// Adds the rows of the sets that have no elements, but had some: rows of the empty element at each level.
/// Whether a set has them is not told by the records.
fn begun(board: Board, kept: Kept, rows: &Rows, expected: &mut Rows) {
    let sets = store().subspace(&(part::SECONDARY, board.number()));
    let tail = |level| key(&Subspace::from_bytes([]), level, b"");
    let below = rows.keys().filter(|row| sets.is_start_of(row));
    let empty =
        below.filter_map(|row| row.strip_suffix(&tail(0)[..])).map(|set| Subspace::from_bytes(set.to_vec()));
    for set in empty {
        if !expected.contains_key(&key(&set, 0, b"")) {
            expected.extend(kept.rows(&set, &BTreeMap::new()));
        }
    }
}
