//! Operations on priority queues, and the encoding of their recorded answers.

use super::{Error, MAX_VALUE_BYTES, Place};
use crate::{
    limits,
    once::{self, Answer, decode_headed, encode_headed},
    queue::ItemId,
    reachable, read, sometimes,
    tx::{ConflictRangeType, Isolation, KeySelector, KeyValue, RangeOption, Transaction, key_after},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use serde::{Deserialize, Serialize};

/// An end of a priority queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum End {
    /// The lowest priority.
    Min,
    /// The highest priority.
    Max,
}

/// A priority queue in its own subspace.
#[derive(Clone, Debug)]
pub struct PriorityQueue {
    subspace: Subspace,
}

/// An item of a priority queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its place.
    pub place: Place,
    /// Its value.
    pub value: Bytes,
}

impl PriorityQueue {
    /// The priority queue in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> PriorityQueue {
        PriorityQueue { subspace }
    }

    /// The subspace, which must not be used for anything else.
    pub fn subspace(&self) -> &Subspace {
        &self.subspace
    }

    /// Adds an item after all others with its priority. Draw the id before a retry loop, never inside it.
    pub async fn push<T: Transaction>(
        &self,
        tx: &T,
        id: ItemId,
        priority: i64,
        value: &[u8],
    ) -> Result<Place, Error> {
        let tx = &tx.writing().await;
        limits::value_up_to(MAX_VALUE_BYTES, self.under(priority).bytes(), value)?;
        let place = Place { priority, count: self.next_count(tx, priority).await?, id };
        let key = place.pack(&self.subspace);
        limits::key(&key)?;
        tx.set(&key, value);
        Ok(place)
    }

    /// Removes and returns the first item at an end; `None` if there is none.
    pub async fn pop<T: Transaction>(&self, tx: &T, end: End) -> Result<Option<Item>, Error> {
        let tx = &tx.writing().await;
        let item = self.peek(tx, end, Isolation::Serializable).await?;
        match &item {
            Some(item) => tx.clear(&item.place.pack(&self.subspace)),
            None => reachable!("priority_queue: a pop finds no item"),
        }
        Ok(item)
    }

    /// [`pop`](PriorityQueue::pop) of the lowest priority.
    pub async fn pop_min<T: Transaction>(&self, tx: &T) -> Result<Option<Item>, Error> {
        self.pop(tx, End::Min).await
    }

    /// [`pop`](PriorityQueue::pop) of the highest priority.
    pub async fn pop_max<T: Transaction>(&self, tx: &T) -> Result<Option<Item>, Error> {
        self.pop(tx, End::Max).await
    }

    /// The first item at an end, which stays in the queue. At [`Isolation::Snapshot`] it may be gone at the
    /// commit, and a pop in another transaction may take a different item.
    pub async fn peek<T: Transaction>(
        &self,
        tx: &T,
        end: End,
        isolation: Isolation,
    ) -> Result<Option<Item>, Error> {
        let tx = &tx.reading().await;
        let row = match end {
            End::Min => self.one(tx, self.range(), isolation).await?,
            End::Max => self.first_of_highest(tx, isolation).await?,
        };
        row.map(|row| self.item(row)).transpose()
    }

    /// [`peek`](PriorityQueue::peek) at the lowest priority.
    pub async fn peek_min<T: Transaction>(
        &self,
        tx: &T,
        isolation: Isolation,
    ) -> Result<Option<Item>, Error> {
        self.peek(tx, End::Min, isolation).await
    }

    /// [`peek`](PriorityQueue::peek) at the highest priority.
    pub async fn peek_max<T: Transaction>(
        &self,
        tx: &T,
        isolation: Isolation,
    ) -> Result<Option<Item>, Error> {
        self.peek(tx, End::Max, isolation).await
    }

    /// Moves the item at `place` to another priority, after all others, and returns its new place. An item
    /// that already has this priority is not moved. Fails with [`Error::Gone`] if there is no item at the
    /// place.
    pub async fn change<T: Transaction>(&self, tx: &T, place: Place, priority: i64) -> Result<Place, Error> {
        let tx = &tx.writing().await;
        let key = place.pack(&self.subspace);
        let value = tx.get(&key, Isolation::Serializable).await?.ok_or(Error::Gone(place))?;
        if priority == place.priority {
            return Ok(place);
        }
        reachable!("priority_queue: an item changes its priority");
        let moved = self.push(tx, place.id, priority, &value).await?;
        tx.clear(&key);
        Ok(moved)
    }

    /// Whether there is no item.
    pub async fn is_empty<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        Ok(self.one(tx, self.range(), isolation).await?.is_none())
    }

    /// The number of items. Reads all of them, which is refused for more than
    /// [`READ_LIMIT`](limits::READ_LIMIT) bytes; if serializable, it conflicts with every change.
    pub async fn len<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<usize, Error> {
        let tx = &tx.reading().await;
        Ok(read::all::<_, Error>(tx, self.range(), isolation).await?.len())
    }

    /// All items, lowest priority first. Reads all of them, as [`len`](PriorityQueue::len) does;
    /// [`items_page`](PriorityQueue::items_page) reads them in pages.
    pub async fn items<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Vec<Item>, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, self.range(), isolation).await?;
        rows.into_iter().map(|row| self.item(row)).collect()
    }

    /// The first `limit` items, lowest priority first, or of those after the place `after`: pass the last
    /// place of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn items_page<T: Transaction>(
        &self,
        tx: &T,
        after: Option<Place>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Item>, Error> {
        let tx = &tx.reading().await;
        let (mut begin, end) = self.subspace.range();
        if let Some(after) = after {
            begin = key_after(&after.pack(&self.subspace)).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.into_iter().map(|row| self.item(row)).collect()
    }

    /// One more than the largest count of a priority, 0 if it has no item. Read at snapshot, so that pushes
    /// do not conflict: a push that computes the same count has another id. Sees the transaction's own items,
    /// so that they do not tie.
    async fn next_count<T: Transaction>(&self, tx: &T, priority: i64) -> Result<i64, Error> {
        let range = RangeOption::from(self.under(priority).range()).reversed();
        match self.one(tx, range, Isolation::Snapshot).await? {
            None => Ok(0),
            Some(row) => {
                let last = Place::unpack(&self.subspace, &row.key)?.count;
                last.checked_add(1).ok_or(Error::CountsExhausted(priority))
            }
        }
    }

    /// The first item with the highest priority. It is not the last item of the queue, which is the one that
    /// was pushed last.
    ///
    /// The highest priority is determined at snapshot, and only what it depends on is added to the conflict
    /// ranges: that there is nothing above it. A push after the item does not conflict.
    async fn first_of_highest<T: Transaction>(
        &self,
        tx: &T,
        isolation: Isolation,
    ) -> Result<Option<KeyValue>, Error> {
        let (begin, end) = self.subspace.range();
        let mut below = self.range().reversed();
        loop {
            let last = self.one(tx, below.clone(), Isolation::Snapshot).await?;
            let last = last.map(|row| Place::unpack(&self.subspace, &row.key)).transpose()?;
            let under = last.map(|last| self.under(last.priority).range());
            if isolation == Isolation::Serializable {
                let above = under.as_ref().map_or(&begin, |(_, end)| end);
                tx.add_conflict_range(above, &end, ConflictRangeType::Read)?;
            }
            let Some(under) = under else { return Ok(None) };
            let lowest = KeySelector::first_greater_or_equal(under.0.clone());
            if let Some(first) = self.one(tx, under.into(), isolation).await? {
                sometimes!(
                    last != Some(Place::unpack(&self.subspace, &first.key)?),
                    "priority_queue: the highest priority has several items"
                );
                return Ok(Some(first));
            }
            // Only with option 601: the snapshot still contains the items that this transaction has popped.
            below.end = lowest;
        }
    }

    fn under(&self, priority: i64) -> Subspace {
        self.subspace.subspace(&priority)
    }

    fn range(&self) -> RangeOption {
        self.subspace.range().into()
    }

    async fn one<T: Transaction>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Option<KeyValue>, Error> {
        Ok(read::all::<_, Error>(tx, range.limit(1), isolation).await?.pop())
    }

    fn item(&self, row: KeyValue) -> Result<Item, Error> {
        Ok(Item { place: Place::unpack(&self.subspace, &row.key)?, value: row.value })
    }
}

/// The place's length in one byte, the place, the value.
impl Answer for Item {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        encode_headed(&self.place, &self.value, out)
    }

    fn decode(bytes: Bytes) -> Option<Item> {
        decode_headed(bytes).map(|(place, value)| Item { place, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::once::MAX_ANSWER_BYTES;

    #[test]
    fn the_largest_item_fits_into_an_answer() {
        for (byte, n) in [(0, i64::MAX), (255, i64::MIN)] {
            let place = Place { priority: n, count: n, id: ItemId([byte; 16]) };
            let item = Item { place, value: vec![0; MAX_VALUE_BYTES].into() };
            let mut out = BytesMut::new();
            Some(item.clone()).encode(&mut out).unwrap();
            assert!(out.len() <= MAX_ANSWER_BYTES, "{} bytes", out.len());
            assert_eq!(<Option<Item>>::decode(out.freeze()), Some(Some(item)));
        }
        assert_eq!(Item::decode(Bytes::from_static(b"\x09xyz")), None);
    }
}
