//! Operations on queues, and the encoding of their recorded answers.

use super::{Error, ItemId, MAX_VALUE_BYTES, Order, Position};
use crate::{
    limits::{self, TooLarge},
    once::{self, Answer, decode_headed, encode_headed},
    reachable, read,
    tx::{self, Isolation, KeyValue, MutationType, RangeOption, Transaction, key_after},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;

/// The maximum length of an item's key after the queue's prefix: stamp, rank and an id that consists of
/// zeros, each of which the tuple layer encodes as two bytes.
const MOST_KEY_BYTES: usize = 64;

/// A queue in its own subspace.
#[derive(Clone, Debug)]
pub struct Queue {
    subspace: Subspace,
    order: Order,
}

/// An item of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its position.
    pub position: Position,
    /// Its value.
    pub value: Bytes,
}

impl Queue {
    /// The queue in `subspace`. Its order is part of the data format: all clients must always use the same.
    pub fn new(subspace: Subspace, order: Order) -> Queue {
        Queue { subspace, order }
    }

    /// The subspace, which must not be used for anything else.
    pub fn subspace(&self) -> &Subspace {
        &self.subspace
    }

    /// Appends an item. In commit order, the position's stamp is known only after the commit.
    pub async fn enqueue<T: Transaction>(&self, tx: &T, id: ItemId, value: &[u8]) -> Result<Position, Error> {
        let tx = &tx.writing().await;
        self.fits(value)?;
        let position = match self.order {
            Order::Index => {
                let last = self.last_index(tx).await?;
                Position::Index { index: last.checked_add(1).ok_or(Error::IndexesExhausted)?, id }
            }
            Order::Commit => {
                // With a known read version, only later stamps become unreadable in this transaction, and
                // existing items stay readable.
                tx.get_read_version().await?;
                Position::unstamped(tx.get_approximate_size().await?, id)
            }
        };
        let key = position.pack(&self.subspace);
        match self.order {
            Order::Index => tx.set(&key, value),
            Order::Commit => tx.atomic_op(&key, value, MutationType::SetVersionstampedKey),
        }
        Ok(position)
    }

    /// Removes and returns the first item; `None` if there is none.
    ///
    /// The read is serializable and covers everything before the item: a second dequeue of the item
    /// conflicts, an enqueue after it does not.
    pub async fn dequeue<T: Transaction>(&self, tx: &T) -> Result<Option<Item>, Error> {
        let tx = &tx.writing().await;
        let Some(row) = self.first(tx, Isolation::Serializable).await? else {
            reachable!("queue: a dequeue finds no item");
            return Ok(None);
        };
        tx.clear(&row.key);
        self.item(row).map(Some)
    }

    /// The first item, which stays in the queue. At [`Isolation::Snapshot`] it may be gone at the commit.
    pub async fn peek<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<Item>, Error> {
        let tx = &tx.reading().await;
        self.first(tx, isolation).await?.map(|row| self.item(row)).transpose()
    }

    /// Whether there is no item.
    pub async fn is_empty<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        Ok(self.first(tx, isolation).await?.is_none())
    }

    /// The number of items. Reads all of them, which is refused for more than
    /// [`READ_LIMIT`](limits::READ_LIMIT) bytes; if serializable, it conflicts with every change.
    pub async fn len<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<usize, Error> {
        let tx = &tx.reading().await;
        Ok(read::all::<_, Error>(tx, self.range(), isolation).await.map_err(own)?.len())
    }

    /// All items, first to last. Reads all of them, as [`len`](Queue::len) does;
    /// [`items_page`](Queue::items_page) reads them in pages.
    pub async fn items<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Vec<Item>, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, self.range(), isolation).await.map_err(own)?;
        rows.into_iter().map(|row| self.item(row)).collect()
    }

    /// The first `limit` items, or those after the position `after`: pass the last position of a page to read
    /// the next one. A page shorter than `limit` is the last one.
    pub async fn items_page<T: Transaction>(
        &self,
        tx: &T,
        after: Option<Position>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Item>, Error> {
        let tx = &tx.reading().await;
        let (mut begin, end) = self.subspace.range();
        if let Some(after) = after {
            begin = key_after(&after.pack(&self.subspace)).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await.map_err(own)?;
        rows.into_iter().map(|row| self.item(row)).collect()
    }

    /// Refuses a value that is too large, and every value if the subspace's prefix is too long.
    fn fits(&self, value: &[u8]) -> Result<(), TooLarge> {
        let prefix = self.subspace.bytes();
        limits::key_below(prefix, MOST_KEY_BYTES)?;
        limits::value_up_to(MAX_VALUE_BYTES, prefix, value)
    }

    /// The largest index, 0 if the queue is empty. Read at snapshot, so that enqueues do not conflict; sees
    /// the transaction's own items, so that they do not tie.
    async fn last_index<T: Transaction>(&self, tx: &T) -> Result<i64, Error> {
        match self.one(tx, self.range().reversed(), Isolation::Snapshot).await? {
            None => Ok(0),
            Some(row) => match self.position(&row.key)? {
                Position::Index { index, .. } => Ok(index),
                Position::Commit { .. } => Err(Error::foreign(&row.key)),
            },
        }
    }

    async fn first<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<KeyValue>, Error> {
        self.one(tx, self.range(), isolation).await
    }

    /// One row, in as many batches as needed: a batch may be empty although there are more rows.
    async fn one<T: Transaction>(
        &self,
        tx: &T,
        range: RangeOption,
        isolation: Isolation,
    ) -> Result<Option<KeyValue>, Error> {
        Ok(read::all::<_, Error>(tx, range.limit(1), isolation).await.map_err(own)?.pop())
    }

    fn range(&self) -> RangeOption {
        self.subspace.range().into()
    }

    fn position(&self, key: &[u8]) -> Result<Position, Error> {
        Position::unpack(&self.subspace, self.order, key)
    }

    fn item(&self, row: KeyValue) -> Result<Item, Error> {
        Ok(Item { position: self.position(&row.key)?, value: row.value })
    }
}

/// In a queue, a range is unreadable only where its own transaction has written versionstamped keys.
fn own(error: Error) -> Error {
    match error {
        Error::Fdb(tx::Error::ACCESSED_UNREADABLE) => {
            reachable!("queue: a transaction comes to its own items");
            Error::OwnItemsUnreadable
        }
        e => e,
    }
}

/// The position's length in one byte, the position, the value.
impl Answer for Item {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        encode_headed(&self.position, &self.value, out)
    }

    fn decode(bytes: Bytes) -> Option<Item> {
        decode_headed(bytes).map(|(position, value)| Item { position, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{once::MAX_ANSWER_BYTES, tx::KEY_SIZE_LIMIT};

    #[test]
    fn the_largest_item_fits_into_an_answer() {
        for id in [0, 255] {
            // A stamp of all 0xff is not a valid stamp.
            let position =
                Position::Commit { stamp: [id.min(254); 10], rank: i64::MAX, id: ItemId([id; 16]) };
            let item = Item { position, value: vec![0; MAX_VALUE_BYTES].into() };
            let mut out = BytesMut::new();
            Some(item.clone()).encode(&mut out).unwrap();
            assert!(out.len() <= MAX_ANSWER_BYTES, "{} bytes", out.len());
            assert_eq!(<Option<Item>>::decode(out.freeze()), Some(Some(item)));
        }
        assert_eq!(Item::decode(Bytes::from_static(b"\x09xyz")), None);
        proptest::proptest!(|(bytes in proptest::collection::vec(0u8..0x40, 0..60))| {
            let _ = Item::decode(bytes.into());
        });
    }

    #[test]
    fn what_is_above_a_limit_does_not_fit() {
        let fits = |prefix: usize, bytes: usize| {
            Queue::new(Subspace::from_bytes(vec![b'q'; prefix]), Order::Commit).fits(&vec![0; bytes])
        };
        let deepest = KEY_SIZE_LIMIT - MOST_KEY_BYTES;
        assert_eq!(fits(deepest, MAX_VALUE_BYTES), Ok(()));
        let large = fits(1, MAX_VALUE_BYTES + 1).unwrap_err();
        assert!(matches!(large, TooLarge::Value { limit: MAX_VALUE_BYTES, .. }), "{large}");
        let deep = fits(deepest + 1, 0).unwrap_err();
        assert!(matches!(deep, TooLarge::Key { bytes, .. } if bytes == KEY_SIZE_LIMIT + 1), "{deep}");
    }

    #[test]
    fn no_key_is_longer_than_is_counted() {
        let queue = Subspace::from("q");
        let id = ItemId([0; 16]);
        for position in [
            Position::Index { index: i64::MAX, id },
            Position::Commit { stamp: [254; 10], rank: i64::MAX, id },
        ] {
            let length = position.pack(&queue).len() - queue.bytes().len();
            assert!(length <= MOST_KEY_BYTES, "{length}");
        }
    }
}
