//! Planted bugs: meta-data that differ, calls that use the index of ranks wrongly.

use super::{Ends, Entry, On, Ranks, RanksAnswer, RanksOp, Schema, columns, of_ranks};
use crate::shared::{in_order, seen_before};
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded, ran},
};
use shaketable_record::{
    cursor::{Continuation, CursorExt, Limits, Spent},
    error::Error,
    index::IndexScan,
    store::Part,
};
use std::{ops::Bound, slice};

/// How a transaction ended; `None` if the bug does not change it.
type Ended = Option<Outcome<Answer<RanksAnswer>>>;

#[shaketable::planted]
impl Ranks {
    /// All records and entries are cleared, and the ranked sets stay.
    #[bug(clear, "R29: the secondary space of an index")]
    async fn clear_forgotten(&self, tx: &Tx) -> Result<(), Error> {
        let store = self.open(tx).await?;
        [Part::Records, Part::Indexes].iter().try_for_each(|part| {
            let (begin, end) = store.keyspace().part(*part).range();
            store.context().clear_range(&begin, &end)
        })
    }

    /// Some changes are made with one level less.
    #[bug(raise, "an option changed while the index has entries")]
    async fn levels_differ(&self, tx: &Tx, id: i64, by: i64) -> Result<Option<i64>, Error> {
        self.with(|schema| schema.boards.iter_mut().for_each(|kept| kept.levels -= 1)).raise(tx, id, by).await
    }

    /// Some changes are made with the other setting for equal scores.
    #[bug(raise, "an option changed while the index has entries")]
    async fn counts_differ(&self, tx: &Tx, id: i64, by: i64) -> Result<Option<i64>, Error> {
        let other = self.with(|schema| schema.boards.iter_mut().for_each(|kept| kept.counts = !kept.counts));
        other.raise(tx, id, by).await
    }

    /// Both columns of a grouped board are its score.
    #[bug(*, "RL19: the grouping of an index of ranks")]
    async fn ungrouped(&self, session: &mut Session<Db>, ops: &[RanksOp]) -> Ended {
        let other = &self.with(|schema| schema.ungrouped = true);
        let db = session.database().clone();
        let env = db.env();
        Some(match ops.iter().all(Ranks::is_read_only) {
            true => ran(db.run(|tx, _| async move { other.done(&tx, env, ops).await }).await),
            false => {
                let done = session.apply(|tx| async move { other.done(&tx, env, ops).await.map(Recorded) });
                concluded(done.await)
            }
        })
    }

    /// A lookup before a write is made in another transaction.
    #[bug(*, "a rank read beside the transaction")]
    async fn looked_apart(&self, session: &mut Session<Db>, ops: &[RanksOp]) -> Ended {
        let [first, rest @ ..] = ops else { return None };
        if !Ranks::is_read_only(first) || rest.iter().all(Ranks::is_read_only) {
            return None;
        }
        let env = &session.database().env().clone();
        let look = |tx| async move { self.done(&tx, env, slice::from_ref(first)).await };
        let act = |tx, looked| async move { Ok([looked, self.done(&tx, env, rest).await?].concat()) };
        Some(seen_before(session, look, act).await)
    }

    /// A scan by rank is continued at the rank after as many rows as were read.
    #[bug(by_rank, "a position taken for a rank")]
    async fn by_offset(
        &self,
        tx: &Tx,
        group: &On,
        ranks: Ends<i64>,
        reverse: bool,
    ) -> Result<Vec<Entry>, Error> {
        if reverse {
            return self.by_rank(tx, group, ranks, reverse).await;
        }
        let (store, (board, group)) = (self.open(tx).await?, group);
        let first = match ranks.0 {
            Bound::Included(rank) => rank.max(0),
            Bound::Excluded(rank) => (rank + 1).max(0),
            Bound::Unbounded => 0,
        };
        let mut found = Vec::new();
        loop {
            let range = of_ranks(group, (Bound::Included(first + found.len() as i64), ranks.1));
            let (spent, from) = (Spent::new(Limits::rows(self.page)), Continuation::Start);
            let by = IndexScan::ByRank;
            let cursor = store.scan_index(board.name(), by, range, false, from.clone(), &spent)?;
            let page = cursor.limited(&spent, from).to_list().await?;
            found.extend(page.rows.iter().map(columns));
            if page.continuation == Continuation::End {
                return Ok(found);
            }
        }
    }

    /// With other meta-data.
    fn with(&self, change: impl FnOnce(&mut Schema)) -> Ranks {
        let mut other = self.clone();
        change(&mut other.schema);
        other
    }

    /// Does calls in a transaction.
    async fn done(&self, tx: &Tx, env: &Env, ops: &[RanksOp]) -> Result<Vec<RanksAnswer>, Error> {
        in_order(ops, |op| self.perform(tx, env, op, Serializable)).await
    }
}
