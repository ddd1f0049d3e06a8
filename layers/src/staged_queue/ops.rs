//! Operations on staged queues within a transaction, and their answers.

use super::{
    Error, MAX_VALUE_BYTES, Row,
    keys::{Keys, Registered, Request, given},
};
use crate::{
    limits,
    once::{self, Answer},
    queue::{Item, ItemId, Position},
    reachable, read, sometimes,
    tx::{
        self, ConflictRangeType, Isolation, KeySelector, KeyValue, MutationType, RangeOption, Transaction,
        key_after,
    },
};
use bytes::{BufMut, Bytes, BytesMut};
use foundationdb_tuple::Subspace;

/// The maximum number of bytes of values moved in one transaction, except that one item is always moved.
const MOST_BYTES: usize = 1_000_000;

/// A staged queue in its own subspace.
#[derive(Clone, Debug)]
pub struct StagedQueue {
    pub(super) keys: Keys,
}

/// The result of a dequeue in its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// No request was waiting: the first item, or `None` if there is none.
    Now(Option<Item>),
    /// A request is registered.
    Waiting(Registered),
}

/// The state of a dequeue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// Its request is waiting to be served.
    Waiting(Request),
    /// It was given this item, or the result that there was none.
    Given(Option<Item>),
    /// Neither: its request was left, its result was collected, or its item was reclaimed.
    Gone,
}

/// The result of a dequeue with limited patience.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// The first item.
    Item(Item),
    /// There was no item.
    Empty,
    /// It was not served in time. It has no item, and its request no longer exists.
    TimedOut,
}

impl Served {
    pub(super) fn of(item: Option<Item>) -> Served {
        item.map_or(Served::Empty, Served::Item)
    }
}

impl StagedQueue {
    /// The staged queue in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> StagedQueue {
        StagedQueue { keys: Keys::new(subspace) }
    }

    /// The subspace, which must not be used for anything else.
    pub fn subspace(&self) -> &Subspace {
        &self.keys.all
    }

    /// Decodes a row of the subspace.
    pub fn row(&self, row: &KeyValue) -> Result<Row, Error> {
        self.keys.row(row)
    }

    /// Appends an item. The position's stamp is known only after the commit.
    pub async fn enqueue<T: Transaction>(&self, tx: &T, id: ItemId, value: &[u8]) -> Result<Position, Error> {
        let tx = &tx.writing().await;
        limits::value_up_to(MAX_VALUE_BYTES, self.keys.items.bytes(), value)?;
        append(tx, &self.keys.items, id, value).await
    }

    /// Takes the first item if no request is waiting, and registers a request otherwise. Draw the ticket
    /// before a retry loop, never inside it.
    ///
    /// Both reads are serializable: two such calls conflict, and the one that fails should
    /// [`register`](StagedQueue::register).
    pub async fn take<T: Transaction>(&self, tx: &T, ticket: ItemId) -> Result<Taken, Error> {
        let tx = &tx.writing().await;
        let waiting = rows(tx, &self.keys.requests, 1, Isolation::Serializable).await?;
        if !waiting.is_empty() {
            reachable!("staged_queue: a dequeue finds others waiting");
            return Ok(Taken::Waiting(self.register(tx, ticket).await?));
        }
        let first = rows(tx, &self.keys.items, 1, Isolation::Serializable).await?.pop();
        first.iter().for_each(|row| tx.clear(&row.key));
        Ok(Taken::Now(first.map(|row| self.keys.item(&row)).transpose()?))
    }

    /// Registers a request. It does not conflict with other registrations or with enqueues.
    pub async fn register<T: Transaction>(&self, tx: &T, ticket: ItemId) -> Result<Registered, Error> {
        let tx = &tx.writing().await;
        append(tx, &self.keys.requests, ticket, b"").await.map(Registered)
    }

    /// Serves up to `most` requests in order, the first ones with the first items; requests for which no item
    /// is left get the result that there is none. Returns the number of served requests. Any process may call
    /// it.
    ///
    /// The rows are read at snapshot, and the conditions of the decision are then added to the conflict
    /// ranges: that there are no other requests and items before or among those, and, if items run out, that
    /// none follows. Rows appended after them do not conflict.
    pub async fn fulfil<T: Transaction>(&self, tx: &T, most: usize) -> Result<usize, Error> {
        let tx = &tx.writing().await;
        let (requests, _) = first_up_to(tx, &self.keys.requests, most.max(1)).await?;
        let (items, stopped) = first_up_to(tx, &self.keys.items, requests.len().max(1)).await?;
        // If the read stopped early, more items may follow: no request may then get the result that there is
        // none.
        let served = served(&requests, &items).min(if stopped { items.len() } else { usize::MAX });
        sometimes!(served < requests.len(), "staged_queue: more wait than one transaction moves items for");
        let requests = &requests[..served];
        let Some(last) = requests.last() else { return Ok(0) };
        let (begin, end) = self.keys.items.range();
        let until = items.get(served - 1).map_or_else(|| end.into(), |item| key_after(&item.key));
        // Before the writes: a transaction's own writes are excluded from ranges that are added after them.
        let first = self.keys.requests.range().0;
        tx.add_conflict_range(&first, &key_after(&last.key), ConflictRangeType::Read)?;
        tx.add_conflict_range(&begin, &until, ConflictRangeType::Read)?;
        for (n, request) in requests.iter().enumerate() {
            self.give(tx, request, items.get(n))?;
        }
        sometimes!(served > 1, "staged_queue: several requests are served at once");
        sometimes!(items.len() < served, "staged_queue: a request is told that there is no item");
        Ok(served)
    }

    /// The state of a request.
    pub async fn state<T: Transaction>(
        &self,
        tx: &T,
        request: Request,
        isolation: Isolation,
    ) -> Result<RequestState, Error> {
        let tx = &tx.reading().await;
        let key = self.keys.parked(request.ticket());
        if let Some(value) = tx.get(&key, isolation).await? {
            return Ok(RequestState::Given(given(&key, value)?));
        }
        match tx.get(&self.keys.waiting(&request), isolation).await? {
            Some(_) => Ok(RequestState::Waiting(request)),
            None => Ok(RequestState::Gone),
        }
    }

    /// Takes the result of a request, if it was served.
    pub async fn collect<T: Transaction>(&self, tx: &T, request: Request) -> Result<RequestState, Error> {
        let tx = &tx.writing().await;
        let state = self.state(tx, request, Isolation::Serializable).await?;
        if let RequestState::Given(_) = state {
            tx.clear(&self.keys.parked(request.ticket()));
        }
        Ok(state)
    }

    /// Ends a request: takes its result, or removes the request if it is still waiting, which returns
    /// [`RequestState::Gone`].
    pub async fn leave<T: Transaction>(&self, tx: &T, request: Request) -> Result<RequestState, Error> {
        let tx = &tx.writing().await;
        match self.collect(tx, request).await? {
            RequestState::Waiting(_) => {
                reachable!("staged_queue: a client leaves while it waits");
                tx.clear(&self.keys.waiting(&request));
                Ok(RequestState::Gone)
            }
            state => Ok(state),
        }
    }

    /// Takes back the result that was parked for the request with this ticket; the item returns to its
    /// original position. Returns whether anything was parked. Any process may call it that believes the
    /// client to be dead: a client that is alive finds its request gone.
    pub async fn reclaim<T: Transaction>(&self, tx: &T, ticket: ItemId) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let key = self.keys.parked(ticket);
        let Some(value) = tx.get(&key, Isolation::Serializable).await? else { return Ok(false) };
        if let Some(item) = given(&key, value)? {
            reachable!("staged_queue: an item comes back");
            tx.set(&item.position.pack(&self.keys.items), &item.value);
        }
        tx.clear(&key);
        Ok(true)
    }

    /// The tickets of all parked results. Reads all of them, which is refused for more than
    /// [`READ_LIMIT`](limits::READ_LIMIT) bytes.
    pub async fn parked<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Vec<ItemId>, Error> {
        let tx = &tx.reading().await;
        let rows = rows(tx, &self.keys.parked, 0, isolation).await?;
        rows.iter().map(|row| self.ticket(row)).collect()
    }

    /// The tickets of the first parked results, or of those after a ticket, and whether there may be more.
    pub(super) async fn parked_after<T: Transaction>(
        &self,
        tx: &T,
        after: Option<ItemId>,
    ) -> Result<(Vec<ItemId>, bool), Error> {
        let mut range = RangeOption::from(self.keys.parked.range());
        if let Some(after) = after {
            range.begin = KeySelector::first_greater_than(self.keys.parked(after));
        }
        let (rows, more) = read::first(tx, range, MOST_BYTES, Isolation::Snapshot).await?;
        Ok((rows.iter().map(|row| self.ticket(row)).collect::<Result<_, _>>()?, more))
    }

    fn ticket(&self, row: &KeyValue) -> Result<ItemId, Error> {
        match self.keys.row(row)? {
            Row::Parked(ticket, _) => Ok(ticket),
            _ => Err(Error::foreign(&row.key)),
        }
    }

    /// The first item, which stays in the queue. Parked items are not in the queue.
    pub async fn peek<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Option<Item>, Error> {
        let tx = &tx.reading().await;
        let first = rows(tx, &self.keys.items, 1, isolation).await?.pop();
        first.map(|row| self.keys.item(&row)).transpose()
    }

    /// The number of items, excluding parked ones. Reads all of them, which is refused for more than
    /// [`READ_LIMIT`](limits::READ_LIMIT) bytes.
    pub async fn len<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<usize, Error> {
        let tx = &tx.reading().await;
        Ok(rows(tx, &self.keys.items, 0, isolation).await?.len())
    }

    fn give<T: Transaction>(&self, tx: &T, request: &KeyValue, item: Option<&KeyValue>) -> Result<(), Error> {
        let mut parked = BytesMut::new();
        item.map(|row| self.keys.item(row)).transpose()?.encode(&mut parked)?;
        tx.clear(&request.key);
        item.iter().for_each(|row| tx.clear(&row.key));
        tx.set(&self.keys.parked(self.keys.request(&request.key)?.ticket()), &parked);
        Ok(())
    }
}

/// The number of requests that can be served in one transaction.
fn served(requests: &[KeyValue], items: &[KeyValue]) -> usize {
    let mut bytes = 0;
    let fits = |n: &usize| {
        bytes += items.get(*n).map_or(0, |item| item.value.len());
        *n == 0 || bytes <= MOST_BYTES
    };
    (0..requests.len()).take_while(fits).count()
}

/// Appends a row in commit order.
async fn append<T: Transaction>(
    tx: &T,
    rows: &Subspace,
    id: ItemId,
    value: &[u8],
) -> Result<Position, Error> {
    // With a known read version, only later stamps become unreadable in this transaction, and existing rows
    // stay readable.
    tx.get_read_version().await?;
    let position = Position::unstamped(tx.get_approximate_size().await?, id);
    let key = position.pack(rows);
    // With the offset of the stamp, which FoundationDB counts as well.
    limits::key(&key)?;
    tx.atomic_op(&key, value, MutationType::SetVersionstampedKey);
    Ok(position)
}

/// The first rows, up to the number of bytes moved in one transaction, and whether they stop before `limit`.
async fn first_up_to<T: Transaction>(
    tx: &T,
    of: &Subspace,
    limit: usize,
) -> Result<(Vec<KeyValue>, bool), Error> {
    let range = RangeOption::from(of.range()).limit(limit);
    read::first(tx, range, MOST_BYTES, Isolation::Snapshot)
        .await
        .map_err(|error| map_unreadable(error.into()))
}

/// The first rows; a limit of 0 means all of them.
async fn rows<T: Transaction>(
    tx: &T,
    of: &Subspace,
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, Error> {
    let range = RangeOption::from(of.range()).limit(limit);
    read::all::<_, Error>(tx, range, isolation).await.map_err(map_unreadable)
}

/// In this subspace, ranges are unreadable only where their own transaction has written versionstamped keys.
fn map_unreadable(error: Error) -> Error {
    match error {
        Error::Fdb(tx::Error::ACCESSED_UNREADABLE) => Error::OwnUnreadable,
        e => e,
    }
}

/// Encoded as the [`RequestState`] that it becomes.
impl Answer for Taken {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        match self {
            Taken::Waiting(registered) => {
                out.put_u8(0);
                registered.encode(out)
            }
            Taken::Now(item) => {
                out.put_u8(1);
                item.encode(out)
            }
        }
    }

    fn decode(bytes: Bytes) -> Option<Taken> {
        match bytes.first()? {
            0 => Registered::decode(bytes.slice(1..)).map(Taken::Waiting),
            1 => <Option<Item>>::decode(bytes.slice(1..)).map(Taken::Now),
            _ => None,
        }
    }
}

/// 0 followed by the request, 1 followed by the optional item, or 2 for gone.
impl Answer for RequestState {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        match self {
            RequestState::Waiting(request) => {
                out.put_u8(0);
                request.encode(out)
            }
            RequestState::Given(item) => {
                out.put_u8(1);
                item.encode(out)
            }
            RequestState::Gone => {
                out.put_u8(2);
                Ok(None)
            }
        }
    }

    fn decode(bytes: Bytes) -> Option<RequestState> {
        match (bytes.first()?, bytes.len()) {
            (0, _) => Request::decode(bytes.slice(1..)).map(RequestState::Waiting),
            (1, _) => <Option<Item>>::decode(bytes.slice(1..)).map(RequestState::Given),
            (2, 1) => Some(RequestState::Gone),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{once::MAX_ANSWER_BYTES, tx::VALUE_SIZE_LIMIT};
    use std::fmt::Debug;

    fn largest(byte: u8) -> Item {
        let position = Position::Commit { stamp: [byte; 10], rank: i64::MAX, id: ItemId([byte; 16]) };
        Item { position, value: vec![0; MAX_VALUE_BYTES].into() }
    }

    fn round_trip<A: Answer + PartialEq + Debug>(answer: A) -> usize {
        let mut out = BytesMut::new();
        answer.encode(&mut out).unwrap();
        let bytes = out.len();
        assert_eq!(A::decode(out.freeze()), Some(answer));
        bytes
    }

    #[test]
    fn the_largest_item_fits_wherever_it_goes() {
        for byte in [0, 254] {
            assert!(round_trip(Taken::Now(Some(largest(byte)))) <= MAX_ANSWER_BYTES);
            assert!(round_trip(RequestState::Given(Some(largest(byte)))) <= MAX_ANSWER_BYTES);
            assert!(round_trip(Some(largest(byte))) <= VALUE_SIZE_LIMIT);
        }
    }

    #[test]
    fn large_items_are_moved_a_few_at_a_time() {
        let rows = |n, bytes: usize| vec![KeyValue::new("k", vec![0; bytes]); n];
        assert_eq!(served(&[], &rows(3, 1)), 0);
        assert_eq!(served(&rows(5, 0), &rows(2, 10)), 5);
        assert_eq!(served(&rows(50, 0), &rows(50, MAX_VALUE_BYTES)), 10);
        assert_eq!(served(&rows(50, 0), &rows(1, 2 * MOST_BYTES)), 1);
        // Ten values have exactly as many bytes as are moved at once, and a hundred and one have one more.
        assert_eq!(served(&rows(50, 0), &rows(50, MOST_BYTES / 10)), 10);
        assert_eq!(served(&rows(101, 0), &rows(101, (MOST_BYTES + 1) / 101)), 100);
        assert_eq!(served(&rows(50, 0), &rows(10, MOST_BYTES / 10)), 50);
    }

    #[test]
    fn answers_round_trip_and_garbage_is_refused() {
        let registered = Registered(largest(3).position);
        let request = registered.request().expect("a stamp");
        round_trip(Taken::Now(None));
        round_trip(Taken::Waiting(registered));
        for state in [RequestState::Waiting(request), RequestState::Gone, RequestState::Given(None)] {
            round_trip(state);
        }
        for garbage in [&b"\x07"[..], b"", b"\x00x", b"\x01x", b"\x02x"] {
            assert_eq!(Taken::decode(Bytes::from_static(garbage)), None);
            assert_eq!(RequestState::decode(Bytes::from_static(garbage)), None);
        }
    }

    #[test]
    fn an_answer_of_take_decodes_as_a_request_state() {
        let registered = Registered(largest(3).position);
        for (taken, state) in [
            (Taken::Now(Some(largest(1))), RequestState::Given(Some(largest(1)))),
            (Taken::Waiting(registered), RequestState::Waiting(registered.request().expect("a stamp"))),
        ] {
            let mut out = BytesMut::new();
            taken.encode(&mut out).unwrap();
            assert_eq!(RequestState::decode(out.freeze()), Some(state));
        }
    }
}
