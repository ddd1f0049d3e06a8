//! Planted bugs: the rotation done wrong.

use super::{follow, lead, rotate};
use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_tx::{Database, Db, Error, Isolation, Result, RunError};

shaketable::planted_bugs! {
    SnapshotRead = "snapshot-read", "the last link is read at snapshot", "foundationdb-rs examples/class-scheduling.rs, generalized";
    TwoTransactions = "two-transactions", "the first link is written in a transaction of its own", "foundationdb-rs examples/micro-queue.rs";
    KeptReads = "kept-reads", "links read in the first attempt are kept for the retries", "state that survives a retry";
}

/// Performs a rotation with the bug.
pub async fn perform_wrong(
    planted: Planted,
    db: &Db,
    keys: &[Bytes],
    first: u32,
) -> Result<(), RunError<Error>> {
    use Isolation::{Serializable, Snapshot};
    match planted {
        Planted::SnapshotRead => {
            db.run(|tx, _| async move { rotate(&tx, keys, first, Snapshot).await }).await
        }
        Planted::TwoTransactions => {
            let read_and_begin = db.run(|tx, _| async move {
                let second = follow(&tx, keys, first, Serializable).await?;
                let third = follow(&tx, keys, second, Serializable).await?;
                let fourth = follow(&tx, keys, third, Serializable).await?;
                lead(&tx, keys, first, third);
                Ok::<_, Error>([second, third, fourth])
            });
            let [second, third, fourth] = read_and_begin.await?;
            db.run(|tx, _| async move {
                lead(&tx, keys, second, fourth);
                lead(&tx, keys, third, second);
                Ok(())
            })
            .await
        }
        Planted::KeptReads => {
            let kept = Mutex::new(None);
            let kept = &kept;
            db.run(|tx, _| async move {
                let known = *kept.lock();
                let [second, third, fourth] = match known {
                    Some(links) => links,
                    None => {
                        let second = follow(&tx, keys, first, Serializable).await?;
                        let third = follow(&tx, keys, second, Serializable).await?;
                        [second, third, follow(&tx, keys, third, Serializable).await?]
                    }
                };
                *kept.lock() = Some([second, third, fourth]);
                lead(&tx, keys, first, third);
                lead(&tx, keys, second, fourth);
                lead(&tx, keys, third, second);
                Ok(())
            })
            .await
        }
    }
}
