//! Scans of an index of ranks by rank: the entries of the records of a group whose rank is in a range.
//!
//! The ranks are looked up when the first entry is asked for, in each transaction again: a scan that is
//! continued in a later transaction gives the rest of the entries whose rank is in the range then. A
//! continuation is therefore bound to the range of ranks, not to the range of scores that it had.

use super::{
    IndexAt, IndexEntry,
    rank::{score_at, set_of},
};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Endpoint, Next, Positions, Spent, Stop, TupleRange},
    error::Error,
    metadata::Index,
    store::{Part, RecordStore},
    value::Tuple,
};
use bytes::Bytes;
use foundationdb_tuple::Element;
use futures::future::{BoxFuture, FutureExt};
use shaketable_tx::{Isolation::Serializable, Transaction};
use std::sync::Arc;

/// The entries of a range of ranks.
pub(super) struct ByRank<T: Transaction> {
    scan: Scan<T>,
    /// After the last entry.
    at: Continuation,
    entries: Option<BoxCursor<IndexEntry>>,
}

struct Scan<T: Transaction> {
    store: RecordStore<T>,
    index: Arc<Index>,
    ranks: Ranks,
    reverse: bool,
    from: Continuation,
    positions: Positions,
    spent: Spent,
}

/// A range of ranks of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranks {
    group: Tuple,
    first: i64,
    /// The first rank after the range; none if there is no end.
    end: Option<i64>,
}

impl<T: Transaction> ByRank<T> {
    pub fn new(
        at: IndexAt<'_, T>,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<ByRank<T>, Error> {
        let ranks =
            Ranks::of(&range, at.index.expression.grouping_columns()).map_err(|reason| at.no_scan(reason))?;
        let (begin, end) = range.keys(&at.space(Part::Secondary));
        let positions = Positions::of("scan by rank", &[&begin, &end, &[u8::from(reverse)]]);
        positions.read(&from)?;
        let scan = Scan {
            store: at.store.clone(),
            index: at.index.clone(),
            ranks,
            reverse,
            from: from.clone(),
            positions,
            spent: spent.clone(),
        };
        Ok(ByRank { scan, at: from, entries: None })
    }

    async fn advance(&mut self) -> Result<Next<IndexEntry>, Error> {
        if self.entries.is_none() {
            self.entries = self.scan.begin().await?;
        }
        let Some(entries) = &mut self.entries else {
            return Ok(Next::Stopped(Stop::Exhausted, Continuation::End));
        };
        Ok(match entries.next().await? {
            Next::Row(entry, _) => {
                let position = entry.key.followed_by(&entry.primary_key).pack();
                // Another encoding of the same columns is stored elsewhere than where a scan continues.
                let is_next = |before: Bytes| match self.scan.reverse {
                    true => before[..] > position[..],
                    false => before[..] < position[..],
                };
                if !self.scan.positions.read(&self.at)?.is_none_or(is_next) {
                    return Err(Error::foreign("the place of an index entry", &position));
                }
                self.at = self.scan.positions.after(&position);
                Next::Row(entry, self.at.clone())
            }
            Next::Stopped(Stop::Exhausted, end) => Next::Stopped(Stop::Exhausted, end),
            Next::Stopped(stop, _) => Next::Stopped(stop, self.at.clone()),
        })
    }
}

impl<T: Transaction> Scan<T> {
    /// The entries from where the cursor begins; `None` if there are none.
    async fn begin(&self) -> Result<Option<BoxCursor<IndexEntry>>, Error> {
        if self.from == Continuation::End {
            return Ok(None);
        }
        let at = IndexAt { store: &self.store, index: &self.index };
        let turn = self.store.reading().await;
        let scores = self.ranks.scores(IndexAt { store: &turn, index: &self.index }).await?;
        drop(turn);
        let Some(mut scores) = scores else { return Ok(None) };
        if let Some(position) = self.positions.read(&self.from)? {
            let space = at.space(Part::Indexes);
            let (begin, end) = scores.keys(&space);
            let key = [space.bytes(), &position].concat();
            let after = Tuple::unpack(&position).ok_or(Error::Continuation("scan by rank"))?;
            match self.reverse {
                true if key < end => scores.high = Endpoint::Exclusive(after),
                false if key >= begin => scores.low = Endpoint::Exclusive(after),
                _ => {}
            }
        }
        Ok(Some(at.scan_entries(&scores, self.reverse, Continuation::Start, &self.spent)?))
    }
}

impl<T: Transaction> Cursor for ByRank<T> {
    type Row = IndexEntry;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<IndexEntry>, Error>> {
        self.advance().boxed()
    }
}

impl Ranks {
    /// The ranks that a range of (group.., rank) means.
    fn of(range: &TupleRange, columns: usize) -> Result<Ranks, &'static str> {
        let (low_group, low) = side(&range.low, columns)?;
        let (high_group, high) = side(&range.high, columns)?;
        if low_group != high_group {
            return Err("a range of ranks must be within one group");
        }
        let after = |rank: i64| rank.saturating_add(1);
        let first = match (low, &range.low) {
            (None, _) => 0,
            (Some(rank), Endpoint::Exclusive(_)) => after(rank),
            (Some(rank), _) => rank,
        };
        let end = match (high, &range.high) {
            (None, _) => None,
            (Some(rank), Endpoint::Inclusive(_)) => Some(after(rank)),
            (Some(rank), _) => Some(rank),
        };
        Ok(Ranks { group: low_group, first: first.max(0), end })
    }

    /// The range of keys that have these ranks; `None` if there are none.
    async fn scores<T: Transaction>(&self, at: IndexAt<'_, T>) -> Result<Option<TupleRange>, Error> {
        if self.end.is_some_and(|end| end <= self.first) {
            return Ok(None);
        }
        let low = match self.first {
            0 => Endpoint::Inclusive(self.group.clone()),
            first => match self.score_from(at, first).await? {
                Some((key, true)) => Endpoint::Inclusive(key),
                // Its records have a lesser rank: they share it.
                Some((key, false)) => Endpoint::Exclusive(key),
                None => return Ok(None),
            },
        };
        let high = match self.end {
            None => None,
            Some(end) => self.score_from(at, end).await?,
        };
        let high = match high {
            None => Endpoint::Inclusive(self.group.clone()),
            Some((key, true)) => Endpoint::Exclusive(key),
            Some((key, false)) => Endpoint::Inclusive(key),
        };
        Ok(Some(TupleRange::between(low, high)))
    }

    /// The key at this position, and whether the position is its rank: with ties it can be beyond.
    async fn score_from<T: Transaction>(
        &self,
        at: IndexAt<'_, T>,
        position: i64,
    ) -> Result<Option<(Tuple, bool)>, Error> {
        let Some(score) = score_at(at, &self.group, position, Serializable).await? else { return Ok(None) };
        let rank = set_of(at, &self.group).rank(at.transaction()?, &score.pack(), Serializable).await?;
        Ok(Some((self.group.followed_by(&score), rank == position)))
    }
}

/// The group and the rank of one end of a range.
fn side(end: &Endpoint, columns: usize) -> Result<(Tuple, Option<i64>), &'static str> {
    let (group, rest) = match end {
        Endpoint::Open => (Tuple::empty(), Tuple::empty()),
        Endpoint::Inclusive(tuple) | Endpoint::Exclusive(tuple) => tuple.split_at(columns),
    };
    match rest.elements() {
        _ if group.len() < columns => Err("a range of ranks must begin and end in a group"),
        [] => Ok((group, None)),
        [Element::Int(rank)] => Ok((group, Some(*rank))),
        _ => Err("the end of a range of ranks is a group and a rank"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ranks_are_of_one_group() {
        let between = |low: Endpoint, high: Endpoint, columns| Ranks::of(&TupleRange { low, high }, columns);
        let tuple = |group: &str, rank: i64| Tuple::from((group, rank));
        let ranks = |first, end| Ok(Ranks { group: Tuple::from("a"), first, end });
        use Endpoint::{Exclusive, Inclusive, Open};
        assert_eq!(between(Inclusive(tuple("a", 2)), Inclusive(tuple("a", 4)), 1), ranks(2, Some(5)));
        assert_eq!(between(Exclusive(tuple("a", 2)), Exclusive(tuple("a", 4)), 1), ranks(3, Some(4)));
        assert_eq!(between(Inclusive(tuple("a", -2)), Inclusive(Tuple::from("a")), 1), ranks(0, None));
        assert!(between(Inclusive(tuple("a", 2)), Inclusive(tuple("b", 4)), 1).is_err());
        assert!(between(Open, Inclusive(tuple("a", 4)), 1).is_err());
        assert!(between(Inclusive(Tuple::from("a")), Open, 0).is_err());
        let all = Ranks { group: Tuple::empty(), first: 0, end: None };
        assert_eq!(between(Open, Open, 0), Ok(all));
    }
}
