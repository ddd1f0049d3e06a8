//! The records of the workload as plain data, the boards on which they are ranked, and the meta-data of the
//! layer.

use super::ranked::Kept;
use crate::record_shared::{
    columns::Col,
    meta_data::{self, set_primary_key},
};
use foundationdb_tuple::Subspace;
use parking_lot::Mutex;
use prost::Message;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, concat, field},
    index::rank::{COUNT_DUPLICATES, HASH, LEVELS},
    metadata::{Index, RecordMetaData, index_types},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

/// The records as a `.proto` file.
const RECORDS: &str = r#"
syntax = "proto2";
message Player {
    optional int64 id = 1;
    optional string game = 2;
    optional int64 score = 3;
    repeated int64 laps = 4;
}
message RecordTypeUnion { optional Player _Player = 1; }
"#;

/// The record type.
pub(super) const PLAYER: &str = "Player";

/// Where the store is.
pub(super) fn store() -> Subspace {
    Subspace::from("ranks")
}

/// A record.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message, Serialize, Deserialize)]
pub struct Player {
    /// Its primary key.
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
    /// What groups it on some boards.
    #[prost(string, optional, tag = "2")]
    pub game: Option<String>,
    /// Its score.
    #[prost(int64, optional, tag = "3")]
    pub score: Option<i64>,
    /// Any number of further scores.
    #[prost(int64, repeated, packed = "false", tag = "4")]
    pub laps: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct UnionRow {
    #[prost(message, optional, tag = "1")]
    player: Option<Player>,
}

impl Player {
    /// The union message with this record, as it is stored.
    pub(super) fn stored(&self) -> Vec<u8> {
        UnionRow { player: Some(self.clone()) }.encode_to_vec()
    }

    /// The record in a union message, if it is exactly that record's.
    pub(super) fn of_stored(bytes: &[u8]) -> Option<Player> {
        let player = UnionRow::decode(bytes).ok()?.player?;
        (player.stored() == bytes).then_some(player)
    }
}

/// An index of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Board {
    /// The scores of all players.
    Score,
    /// The scores of the players of a game.
    Game,
    /// All further scores of the players of a game.
    Laps,
}

impl Board {
    /// All boards, in the order in which their indexes are added.
    pub(super) const ALL: [Board; 3] = [Board::Score, Board::Game, Board::Laps];

    /// The number under which the index is stored.
    pub(super) fn number(self) -> i64 {
        self as i64 + 1
    }

    /// The name of the index.
    pub(super) fn name(self) -> &'static str {
        match self {
            Board::Score => "score",
            Board::Game => "game_score",
            Board::Laps => "laps",
        }
    }

    /// How many columns are the group.
    pub(super) fn groups(self) -> usize {
        usize::from(self != Board::Score)
    }

    /// The expression of the index.
    pub(super) fn expression(self) -> KeyExpression {
        match self {
            Board::Score => field("score").ungrouped(),
            Board::Game => field("score").group_by("game"),
            Board::Laps => field("laps").fan_out().group_by("game"),
        }
    }

    /// The keys of a record: its group, and a score.
    pub(super) fn keys(self, player: &Player) -> BTreeSet<Vec<Col>> {
        let (game, score) = (Col::from(player.game.as_deref()), Col::from(player.score));
        match self {
            Board::Score => BTreeSet::from([vec![score]]),
            Board::Game => BTreeSet::from([vec![game, score]]),
            Board::Laps => player.laps.iter().map(|lap| vec![game.clone(), Col::Int(*lap)]).collect(),
        }
    }
}

/// What distinguishes the meta-data of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Schema {
    /// How the ranked sets of each board are kept.
    pub(super) boards: [Kept; 3],
    /// Whether the board of games has both of its columns for the score: a mistake.
    pub(super) ungrouped: bool,
}

impl Schema {
    /// How the ranked sets of a board are kept.
    pub(super) fn of(&self, board: Board) -> Kept {
        self.boards[board as usize]
    }

    /// The meta-data.
    pub(super) fn meta_data(&self) -> Arc<RecordMetaData> {
        static BUILT: Mutex<BTreeMap<Schema, Arc<RecordMetaData>>> = Mutex::new(BTreeMap::new());
        BUILT.lock().entry(*self).or_insert_with(|| meta_data::stored(&self.build())).clone()
    }

    fn build(&self) -> RecordMetaData {
        static FILE: LazyLock<prost_reflect::FileDescriptor> = LazyLock::new(|| meta_data::file(RECORDS));
        let mut builder = meta_data::builder(&FILE);
        builder.set_split_long_records(false).expect("a version");
        set_primary_key(&mut builder, &[PLAYER], field("id"));
        for board in Board::ALL {
            let kept = self.of(board);
            let expression = match board {
                Board::Game if self.ungrouped => concat(["game", "score"]).group_last(2),
                _ => board.expression(),
            };
            let index = Index::new(board.name(), expression)
                .kind(index_types::RANK)
                .option(COUNT_DUPLICATES, kept.counts.to_string())
                .option(LEVELS, kept.levels.to_string())
                .option(HASH, if kept.crc { "CRC" } else { "JDK" });
            builder.add_index(Some(PLAYER), index).expect("the index is valid");
        }
        builder.build().expect("the meta-data is valid")
    }
}
