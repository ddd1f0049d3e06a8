//! Sets of ranges of byte strings: which part of a store an index build has done.
//!
//! The rows are those of Java's `RangeSet`: `(begin)` has the end of a range, which is not in it. Ranges do
//! not overlap, and lie between [`FIRST`] and [`LAST`].
//!
//! # Conflicts
//!
//! [`contains`](RangeSet::contains) conflicts with whoever adds a range that has this key, and with nothing
//! else, although it reads the range before it. [`insert`](RangeSet::insert) conflicts with other insertions
//! and with lookups in the range that it adds. [`missing`](RangeSet::missing) conflicts with insertions into
//! the part that it was asked for.

use crate::{error::Error, value::Tuple};
use bytes::Bytes;
use foundationdb_tuple::{Element, Subspace};
use shaketable_tx::{ConflictRangeType, Isolation, RangeOption, Transaction, key_after};

/// The first key of the whole range.
pub const FIRST: &[u8] = b"\x00";
/// The end of the whole range.
pub const LAST: &[u8] = b"\xff";

/// A range of keys: its begin, and its end, which is not in it.
pub type Range = (Vec<u8>, Vec<u8>);

/// A set of ranges, in a subspace of its own.
#[derive(Clone, Debug)]
pub struct RangeSet {
    space: Subspace,
}

impl RangeSet {
    /// The set in this subspace.
    pub fn new(space: Subspace) -> RangeSet {
        RangeSet { space }
    }

    /// Whether a range of the set has this key.
    pub async fn contains<T: Transaction>(&self, tx: &T, key: &[u8]) -> Result<bool, Error> {
        tx.add_conflict_key(&self.row_of(key), ConflictRangeType::Read)?;
        Ok(self.at_or_before(tx, key).await?.is_some_and(|(_, end)| key < &end[..]))
    }

    /// The parts of `[begin, end)` that are not in the set, in order, at most `limit` of them.
    pub async fn missing<T: Transaction>(
        &self,
        tx: &T,
        (begin, end): (&[u8], &[u8]),
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Range>, Error> {
        if begin >= end {
            return Ok(Vec::new());
        }
        if isolation == Isolation::Serializable {
            tx.add_conflict_range(&self.row_of(begin), &self.row_of(end), ConflictRangeType::Read)?;
        }
        let mut at = match self.at_or_before(tx, begin).await? {
            Some((_, covered)) if &covered[..] > begin => covered,
            _ => begin.to_vec(),
        };
        let mut missing = Vec::new();
        while &at[..] < end && missing.len() < limit {
            // Whether or not ranges follow each other without a gap, each read finds one gap if there is one.
            let rows = RangeOption::new(self.row_of(&at), self.row_of(end)).limit(limit.clamp(1, 1_000));
            let rows = tx.get_range_all(rows, Isolation::Snapshot).await?;
            for row in &rows {
                let (from, to) = self.range(&row.key, &row.value)?;
                if at < from && missing.len() < limit {
                    missing.push((at, from));
                }
                at = to;
            }
            if rows.is_empty() {
                missing.push((at, end.to_vec()));
                break;
            }
        }
        Ok(missing)
    }

    /// Whether the set has the whole range from [`FIRST`] to [`LAST`].
    pub async fn is_complete<T: Transaction>(&self, tx: &T) -> Result<bool, Error> {
        Ok(self.missing(tx, (FIRST, LAST), 1, Isolation::Serializable).await?.is_empty())
    }

    /// Adds what the set does not have of `[begin, end)`. Returns whether there was any.
    pub async fn insert<T: Transaction>(&self, tx: &T, (begin, end): (&[u8], &[u8])) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let missing = self.missing(tx, (begin, end), usize::MAX, Isolation::Serializable).await?;
        for (from, to) in &missing {
            let mut row = self.row_of(from);
            if let Some((before, covered)) = self.at_or_before(tx, from).await?
                && covered == *from
            {
                // Longer instead of one more: a builder that goes forward leaves one row.
                row = self.row_of(&before);
                tx.add_conflict_key(&row, ConflictRangeType::Read)?;
            }
            tx.set(&row, to);
            tx.add_conflict_range(&self.row_of(from), &self.row_of(to), ConflictRangeType::Write)?;
        }
        Ok(!missing.is_empty())
    }

    /// Removes all ranges.
    pub fn clear<T: Transaction>(&self, tx: &T) {
        let (begin, end) = self.space.range();
        tx.clear_range(&begin, &end);
    }

    /// The range that begins last at or before `key`.
    async fn at_or_before<T: Transaction>(&self, tx: &T, key: &[u8]) -> Result<Option<Range>, Error> {
        let end = key_after(&self.row_of(key));
        let range = RangeOption::new(self.space.range().0, end).limit(1).reversed();
        let rows = tx.get_range_all(range, Isolation::Snapshot).await?;
        rows.first().map(|row| self.range(&row.key, &row.value)).transpose()
    }

    fn row_of(&self, key: &[u8]) -> Vec<u8> {
        self.space.pack(&(key,))
    }

    fn range(&self, key: &[u8], value: &Bytes) -> Result<Range, Error> {
        let tuple = key.strip_prefix(self.space.bytes()).and_then(Tuple::unpack);
        match tuple.as_ref().map(Tuple::elements) {
            Some([Element::Bytes(begin)]) if **begin < value[..] => Ok((begin.to_vec(), value.to_vec())),
            _ => Err(Error::foreign("a range of an index build", key)),
        }
    }
}
