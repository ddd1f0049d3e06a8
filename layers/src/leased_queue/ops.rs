//! Operations on leased queues: within a transaction, and exactly once.

use super::{
    Error, Hold, Lease, Row,
    keys::{Keys, lease_value},
};
use crate::{
    limits,
    once::{self, Answer, Outcome, Session, decode_headed, encode_headed},
    queue::{Item, ItemId, Position},
    reachable,
    read::Allowance,
    tx::{
        self, Database, Isolation, KeySelector, KeyValue, MutationType, RangeOption, RunError, Transaction,
    },
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use futures::future::try_join;
use std::time::Duration;

/// The maximum size of a value, in bytes: FoundationDB's limit minus the overhead of a claim's record.
pub const MAX_VALUE_BYTES: usize = tx::VALUE_SIZE_LIMIT - 120;

/// A leased queue in its own subspace.
#[derive(Clone, Debug)]
pub struct LeasedQueue {
    keys: Keys,
}

/// An item that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Identifies the claim when renewing, acknowledging or releasing.
    pub hold: Hold,
    /// The item's value.
    pub value: Bytes,
}

/// A page of leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    /// The held leases, in the order of their items.
    pub held: Vec<Lease>,
    /// The position after which the next page begins; `None` if this is the last page.
    pub next: Option<Position>,
}

impl LeasedQueue {
    /// The leased queue in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> LeasedQueue {
        LeasedQueue { keys: Keys::new(subspace) }
    }

    /// The subspace, which must not be used for anything else.
    pub fn subspace(&self) -> &Subspace {
        &self.keys.all
    }

    /// Decodes a row of the subspace.
    pub fn row(&self, row: &KeyValue) -> Result<Row, Error> {
        self.keys.row(row)
    }

    /// Appends an item. The position's stamp is known only after the commit. Draw the id before a retry loop,
    /// never inside it.
    pub async fn enqueue<T: Transaction>(&self, tx: &T, id: ItemId, value: &[u8]) -> Result<Position, Error> {
        let tx = &tx.writing().await;
        limits::value_up_to(MAX_VALUE_BYTES, self.keys.waiting.bytes(), value)?;
        // With a known read version, only later stamps become unreadable in this transaction, and existing
        // items stay readable.
        tx.get_read_version().await?;
        let position = Position::unstamped(tx.get_approximate_size().await?, id);
        let key = position.pack(&self.keys.waiting);
        // With the offset of the stamp, which FoundationDB counts as well.
        limits::key(&key)?;
        tx.atomic_op(&key, value, MutationType::SetVersionstampedKey);
        Ok(position)
    }

    /// Claims the first waiting item; returns `None` if there is none. The lease begins during the call at
    /// the latest: a worker must start its timer for the lease before the call.
    pub async fn claim<T: Transaction>(&self, tx: &T) -> Result<Option<Claim>, Error> {
        let tx = &tx.writing().await;
        let (allowance, waiting) = (&Allowance::new(), &self.keys.waiting);
        let first = self.rows(tx, allowance, waiting, None, 1, Isolation::Serializable).await?.pop();
        let Some(row) = first else {
            reachable!("leased_queue: a claim finds no item");
            return Ok(None);
        };
        let Item { position, value } = Keys::item(&self.keys.waiting, &row)?;
        let before = self.lease(tx, position).await?.map_or(0, |(lease, _)| lease.hold.token);
        let hold = Hold { position, token: self.after(position, before)? };
        tx.clear(&row.key);
        tx.set(&position.pack(&self.keys.claimed), &value);
        self.put(tx, &Lease { hold, revision: 0 }, true);
        Ok(Some(Claim { hold, value }))
    }

    /// Changes the lease, so that the time for which others have observed it unchanged starts again. A worker
    /// must start its timer for the lease before the call. Returns the number of renewals.
    pub async fn renew<T: Transaction>(&self, tx: &T, hold: Hold) -> Result<i64, Error> {
        let tx = &tx.writing().await;
        let lease = self.held(tx, hold).await?;
        let revision = self.after(hold.position, lease.revision)?;
        self.put(tx, &Lease { hold, revision }, true);
        Ok(revision)
    }

    /// Removes an item whose work is done: in this same transaction, if it is work in the database.
    pub async fn acknowledge<T: Transaction>(&self, tx: &T, hold: Hold) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.held(tx, hold).await?;
        tx.clear(&hold.position.pack(&self.keys.claimed));
        tx.clear(&hold.position.pack(&self.keys.leases));
        Ok(())
    }

    /// Gives an unfinished item back: it becomes the first again, or returns to its position among others
    /// that were given back.
    pub async fn release<T: Transaction>(&self, tx: &T, hold: Hold) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let lease = self.held(tx, hold).await?;
        self.give_back(tx, lease).await
    }

    /// Ends a lease if it is still as it was observed, and returns whether it was. For a caller that has
    /// observed it unchanged for its duration; otherwise use
    /// [`expire_unchanged`](LeasedQueue::expire_unchanged).
    pub async fn expire<T: Transaction>(&self, tx: &T, observed: Lease) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        match self.lease(tx, observed.hold.position).await? {
            Some((lease, true)) if lease == observed => {
                reachable!("leased_queue: a lease ends");
                self.give_back(tx, lease).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The held leases among the next `most` (at least one) items after the position `after` that were ever
    /// claimed. A page without a held lease is not necessarily the last one.
    pub async fn leases<T: Transaction>(
        &self,
        tx: &T,
        after: Option<Position>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Leases, Error> {
        let tx = &tx.reading().await;
        let rows = self.rows(tx, &Allowance::new(), &self.keys.leases, after, most.max(1), isolation).await?;
        let mut page = Leases { held: Vec::new(), next: None };
        for row in &rows {
            let (lease, held) = self.keys.lease(row)?;
            page.held.extend(held.then_some(lease));
            page.next = (rows.len() == most.max(1)).then_some(lease.hold.position);
        }
        Ok(page)
    }

    /// The numbers of waiting and of claimed items, each counted up to `most` (at least one). Reads their
    /// values, which is refused for more than [`READ_LIMIT`](limits::READ_LIMIT) bytes.
    pub async fn len<T: Transaction>(
        &self,
        tx: &T,
        most: usize,
        isolation: Isolation,
    ) -> Result<(usize, usize), Error> {
        let tx = &tx.reading().await;
        let (allowance, most) = (&Allowance::new(), most.max(1));
        let rows = |of| self.rows(tx, allowance, of, None, most, isolation);
        let (waiting, claimed) = try_join(rows(&self.keys.waiting), rows(&self.keys.claimed)).await?;
        Ok((waiting.len(), claimed.len()))
    }

    /// Like [`enqueue`](LeasedQueue::enqueue), exactly once. Dropping the future: as with [`Session::apply`].
    pub fn enqueue_once<D: Database>(
        &self,
        session: &mut Session<D>,
        value: &[u8],
    ) -> impl Future<Output = Outcome<Position, Error>> + Send {
        async move {
            let id = ItemId::draw(session.database().env());
            session.apply(|tx| async move { self.enqueue(&tx, id, value).await }).await
        }
    }

    /// Observes the held leases for the duration of a lease, by this process's own timer, and ends those that
    /// were not renewed. Returns their number, which may be one too low after an unknown result.
    ///
    /// Reads `most` leases in one transaction, and ends each in its own transaction: after an error, or when
    /// dropped, some may have ended. Can be repeated at any time.
    pub fn expire_unchanged<D: Database>(
        &self,
        db: &D,
        duration: Duration,
        most: usize,
    ) -> impl Future<Output = Result<usize, RunError<Error>>> + Send {
        async move {
            let (mut observed, mut after) = (Vec::new(), None);
            loop {
                let page = db
                    .run(|tx, _| async move { self.leases(&tx, after, most, Isolation::Snapshot).await })
                    .await?;
                observed.extend(page.held);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            if observed.is_empty() {
                return Ok(0);
            }
            // The timer starts after the leases have been read: an observed renewal was made before that.
            db.env().sleep(duration).await;
            let mut ended = 0;
            for lease in observed {
                let expired = db.run(|tx, _| async move { self.expire(&tx, lease).await }).await?;
                ended += usize::from(expired);
            }
            Ok(ended)
        }
    }

    /// The token or revision after this one. Fails after the largest number, which would have no successor:
    /// it cannot have been reached by counting.
    fn after(&self, position: Position, count: i64) -> Result<i64, Error> {
        count.checked_add(1).ok_or_else(|| Error::foreign(&position.pack(&self.keys.leases)))
    }

    /// The item's lease, and whether it is held. Serializable: operations under a lease conflict with those
    /// that end it.
    async fn lease<T: Transaction>(
        &self,
        tx: &T,
        position: Position,
    ) -> Result<Option<(Lease, bool)>, Error> {
        let key = position.pack(&self.keys.leases);
        let value = tx.get(&key, Isolation::Serializable).await?;
        value.map(|value| self.keys.lease(&KeyValue::new(key, value))).transpose()
    }

    /// The lease of a claim, if the claim still holds it.
    async fn held<T: Transaction>(&self, tx: &T, hold: Hold) -> Result<Lease, Error> {
        match self.lease(tx, hold.position).await? {
            Some((lease, true)) if lease.hold == hold => Ok(lease),
            _ => {
                reachable!("leased_queue: who lost the lease is refused");
                Err(Error::Lost(hold))
            }
        }
    }

    async fn give_back<T: Transaction>(&self, tx: &T, lease: Lease) -> Result<(), Error> {
        let claimed = lease.hold.position.pack(&self.keys.claimed);
        let value = tx.get(&claimed, Isolation::Serializable).await?;
        let value = value.ok_or_else(|| Error::foreign(&lease.hold.position.pack(&self.keys.leases)))?;
        tx.clear(&claimed);
        tx.set(&lease.hold.position.pack(&self.keys.waiting), &value);
        self.put(tx, &lease, false);
        Ok(())
    }

    fn put<T: Transaction>(&self, tx: &T, lease: &Lease, held: bool) {
        tx.set(&lease.hold.position.pack(&self.keys.leases), &lease_value(lease, held));
    }

    /// The first rows, or those after a position.
    async fn rows<T: Transaction>(
        &self,
        tx: &T,
        allowance: &Allowance,
        of: &Subspace,
        after: Option<Position>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, Error> {
        let mut range = RangeOption::from(of.range()).limit(limit);
        if let Some(after) = after {
            range.begin = KeySelector::first_greater_than(after.pack(of));
        }
        allowance.all(tx, range, isolation).await.map_err(|error| match error {
            Error::Fdb(tx::Error::ACCESSED_UNREADABLE) => Error::OwnUnreadable,
            e => e,
        })
    }
}

/// The hold as head, the value.
impl Answer for Claim {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        encode_headed(&self.hold, &self.value, out)
    }

    fn decode(bytes: Bytes) -> Option<Claim> {
        let (hold, value) = decode_headed(bytes)?;
        Some(Claim { hold, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::once::MAX_ANSWER_BYTES;

    #[test]
    fn the_largest_claim_fits_into_an_answer() {
        for byte in [0, 254] {
            let position = Position::Commit { stamp: [byte; 10], rank: i64::MAX, id: ItemId([byte; 16]) };
            let hold = Hold { position, token: i64::MAX };
            let claim = Claim { hold, value: vec![0; MAX_VALUE_BYTES].into() };
            let mut out = BytesMut::new();
            Some(claim.clone()).encode(&mut out).unwrap();
            assert!(out.len() <= MAX_ANSWER_BYTES, "{} bytes", out.len());
            assert_eq!(<Option<Claim>>::decode(out.freeze()), Some(Some(claim)));
        }
        assert_eq!(Claim::decode(Bytes::from_static(b"\x09xyz")), None);
    }

    #[test]
    fn the_largest_token_is_not_followed_by_a_smaller_one() {
        let queue = LeasedQueue::new(Subspace::from("l"));
        let position = Position::Commit { stamp: [1; 10], rank: 1, id: ItemId([1; 16]) };
        assert_eq!(queue.after(position, i64::MAX - 1), Ok(i64::MAX));
        let lease = position.pack(&queue.keys.leases);
        assert_eq!(queue.after(position, i64::MAX), Err(Error::foreign(&lease)));
    }
}
