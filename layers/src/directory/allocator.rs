//! The high-contention allocator: allocates short unique prefixes for many concurrent clients.
//!
//! Candidates are drawn at random from a window of integers, so that two concurrent allocations seldom draw
//! the same one; a drawn candidate is marked. Once half of a window has been allocated, the next window
//! starts after it, and the marks of the old one are cleared.

use super::Error;
use crate::{
    canonical, reachable, read, sometimes,
    tx::{ConflictRangeType, Env, Isolation, MutationType, RangeOption, Transaction, TransactionOption},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::try_join;
use serde::{Deserialize, Serialize};

/// A number drawn for one operation, which determines all its candidates.
///
/// It is drawn before the retry loop, so that the operation is the same in every attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CandidateSeed(pub u64);

impl CandidateSeed {
    /// Draws a number.
    pub fn draw(env: &Env) -> CandidateSeed {
        CandidateSeed(env.random_u64())
    }

    /// The next number below `n`: a splitmix64 sequence.
    fn below(&mut self, n: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * n as u128) >> 64) as i64
    }
}

/// No window starts at or after this number.
const LAST_START: i64 = i64::MAX / 2;

/// At most half of the candidates of a window are taken: this many in a row are not, unless the seed was used
/// before. The next candidate is then the first one that is free.
const MOST_TAKEN: usize = 100;

/// An allocator in its own subspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    counters: Subspace,
    recent: Subspace,
}

impl Allocator {
    /// The allocator in `subspace`.
    pub fn new(subspace: Subspace) -> Allocator {
        Allocator { counters: subspace.subspace(&0i64), recent: subspace.subspace(&1i64) }
    }

    /// The key of the window that starts at `start`; its value counts the draws from it.
    pub fn counter(&self, start: i64) -> Vec<u8> {
        self.counters.pack(&start)
    }

    /// The mark of a drawn candidate.
    pub fn mark(&self, candidate: i64) -> Vec<u8> {
        self.recent.pack(&candidate)
    }

    /// Allocates a prefix that no other call ever returns.
    ///
    /// Windows and counts are read at snapshot: they only determine where to search. The uniqueness of a
    /// prefix relies on its mark, which is read serializably and declared as written, so that of two
    /// transactions that take one candidate the second conflicts.
    pub async fn allocate<T: Transaction>(&self, tx: &T, mut seed: CandidateSeed) -> Result<Bytes, Error> {
        let tx = &tx.writing().await;
        self.allocate_from(tx, &mut seed).await
    }

    pub(super) async fn allocate_from<T: Transaction>(
        &self,
        tx: &T,
        seed: &mut CandidateSeed,
    ) -> Result<Bytes, Error> {
        'windows: loop {
            let (start, size) = self.window(tx).await?;
            for draw in 0..=MOST_TAKEN {
                let candidate = match draw {
                    MOST_TAKEN => self.first_free(tx, start, size).await?,
                    _ => start + seed.below(size),
                };
                let mark = self.mark(candidate);
                // The read is issued before the write: it sees the marks of earlier calls of the transaction.
                let marked = tx.get(&mark, Isolation::Serializable);
                tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
                tx.set(&mark, b"");
                let (marked, latest) = try_join(marked, async { Ok(self.latest(tx).await) }).await?;
                if latest? > start {
                    continue 'windows;
                }
                sometimes!(marked.is_some(), "directory: a candidate is taken");
                if marked.is_none() {
                    tx.add_conflict_key(&mark, ConflictRangeType::Write)?;
                    return Ok(foundationdb_tuple::pack(&(candidate,)).into());
                }
            }
            return Err(Error::foreign(&self.counter(start)));
        }
    }

    /// The first candidate of a window that nobody has drawn.
    async fn first_free<T: Transaction>(&self, tx: &T, start: i64, size: i64) -> Result<i64, Error> {
        let marks = RangeOption::from((self.mark(start), self.mark(start + size)));
        let mut free = start;
        for row in read::all::<_, Error>(tx, marks, Isolation::Snapshot).await? {
            match canonical::unpack_below::<i64>(&self.recent, &row.key) {
                Ok(taken) if taken == free => free += 1,
                Ok(_) => break,
                Err(_) => return Err(Error::foreign(&row.key)),
            }
        }
        if free < start + size { Ok(free) } else { Err(Error::foreign(&self.counter(start))) }
    }

    /// The window to draw from (start and size), after counting this draw: the latest window, or a later one
    /// if half of it is allocated.
    async fn window<T: Transaction>(&self, tx: &T) -> Result<(i64, i64), Error> {
        let mut start = self.latest(tx).await?;
        loop {
            let counter = self.counter(start);
            tx.atomic_op(&counter, &1i64.to_le_bytes(), MutationType::Add);
            let count = match tx.get(&counter, Isolation::Snapshot).await? {
                None => 0,
                Some(count) => {
                    let count = count.as_ref().try_into().map_err(|_| Error::foreign(&counter))?;
                    i64::from_le_bytes(count)
                }
            };
            let size = size(start);
            if count.saturating_mul(2) < size {
                return Ok((start, size));
            }
            reachable!("directory: a window is used up");
            start += size;
            tx.clear_range(self.counters.bytes(), &self.counter(start));
            tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
            tx.clear_range(self.recent.bytes(), &self.mark(start));
        }
    }

    /// The start of the latest window.
    async fn latest<T: Transaction>(&self, tx: &T) -> Result<i64, Error> {
        let last = RangeOption::from(self.counters.range()).reversed().limit(1);
        match read::all::<_, Error>(tx, last, Isolation::Snapshot).await?.pop() {
            None => Ok(0),
            Some(row) => match canonical::unpack_below(&self.counters, &row.key) {
                // Windows follow each other from 0, and none is near the maximum.
                Ok(start @ 0..LAST_START) => Ok(start),
                _ => Err(Error::foreign(&row.key)),
            },
        }
    }
}

/// The size of the window that starts at `start`: small while that keeps prefixes short, and limited so that
/// a window does not have too many marks.
fn size(start: i64) -> i64 {
    match start {
        ..255 => 64,
        255..65_535 => 1_024,
        _ => 8_192,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_follow_from_the_seed_and_fill_the_window() {
        let draw = |seed: u64| {
            let mut seed = CandidateSeed(seed);
            (0..2_000).map(|_| seed.below(64)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let mut seen = draw(7);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn windows_grow_where_integers_do() {
        assert_eq!([0, 254, 255, 65_534, 65_535].map(size), [64, 64, 1_024, 1_024, 8_192]);
    }
}
