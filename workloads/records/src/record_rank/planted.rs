//! Planted bugs: meta-data that differ, calls that use the index of ranks wrongly.

use super::{
    Answer, Board, Op, Ranks, Schema,
    client::{columns, of_ranks, right},
};
use crate::{record_shared::columns::Col, shared::seen_before};
use shaketable::{
    specimen::{self, INTERLEAVED, KEPT_VERSION, UNRECORDED, UNWRITTEN},
    workload::Outcome,
};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent},
    error::Error,
    index::IndexScan,
    store::{Part, RecordContext, RecordStore},
};
use shaketable_tx::{Db, Tx, once::Session};
use std::{ops::Bound, slice};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a change of a score is done again after an unknown result", "R26: a rank counted twice";
    Interleaved = INTERLEAVED, "two saves that run side by side in one transaction change one ranked set from one state", "two futures in one transaction";
    Unwritten = UNWRITTEN, "a write is acknowledged and never committed", "a write-behind cache";
    KeptVersion = KEPT_VERSION, "a client reads at a version that it keeps for up to a second", "a read version shared between transactions";
    ClearForgotten = "clear-forgotten", "all records and entries are cleared, and the ranked sets stay", "R29: the secondary space of an index";
    LevelsDiffer = "levels-differ", "some changes are made with one level less", "an option changed while the index has entries";
    CountsDiffer = "counts-differ", "some changes are made with the other setting for equal scores", "an option changed while the index has entries";
    Ungrouped = "ungrouped", "both columns of a grouped board are its score", "RL19: the grouping of an index of ranks";
    LookedApart = "looked-apart", "a lookup before a write is made in another transaction", "a rank read beside the transaction";
    ByOffset = "by-offset", "a scan by rank is continued at the rank after as many rows as were read", "a position taken for a rank";
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
        match self {
            Planted::Unrecorded => drawn.mix = [11, 2, 1],
            Planted::LevelsDiffer => {
                drawn.schema.boards.iter_mut().for_each(|kept| kept.levels = kept.levels.max(3));
            }
            Planted::ByOffset => (drawn.page, drawn.mix[2]) = (1, 5),
            _ => {}
        }
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub(super) async fn perform(
    planted: Planted,
    ranks: &Ranks,
    store: &RecordStore<Tx>,
    op: &Op,
) -> Option<Result<Answer, Error>> {
    Some(match (planted, op) {
        (Planted::ClearForgotten, Op::Clear) => {
            let cleared = [Part::Records, Part::Indexes].iter().try_for_each(|part| {
                let (begin, end) = store.keyspace().part(*part).range();
                store.context().clear_range(&begin, &end)
            });
            cleared.map(|()| Answer::Cleared)
        }
        (Planted::ByOffset, Op::ByRank(board, group, low, high, false)) => {
            by_offset(ranks, store, *board, group, (*low, *high)).await
        }
        _ => return None,
    })
}

async fn by_offset(
    ranks: &Ranks,
    store: &RecordStore<Tx>,
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
pub(super) async fn apply(
    planted: Planted,
    ranks: &Ranks,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    match (planted, ops) {
        (Planted::LookedApart, [first, rest @ ..]) if !first.writes() && rest.iter().any(Op::writes) => {
            let look = |tx| async move { done(ranks, tx, slice::from_ref(first)).await };
            let act = |tx, looked| async move { Ok([looked, done(ranks, tx, rest).await?].concat()) };
            Some(seen_before(session, look, act).await)
        }
        _ => None,
    }
}

/// Does calls in a transaction.
async fn done(ranks: &Ranks, tx: Tx, ops: &[Op]) -> Result<Vec<Answer>, Error> {
    let mut answers = Vec::with_capacity(ops.len());
    for op in ops {
        let context = RecordContext::within(tx.clone());
        answers.push(right(ranks, &ranks.open_store(&context, Some(op)).await?, op).await?);
    }
    Ok(answers)
}
