//! Planted bugs: a log implemented or used wrongly.

use super::{Item, Log, Name, layer, space, value};
use foundationdb_tuple::{Subspace, Versionstamp};
use futures::{
    FutureExt,
    future::{Either, pending, select as first_of},
};
use shaketable::{
    prelude::*,
    weakened::{Flaw, flawed},
};
use shaketable_layers::log::{Entry, Error, Position};
use shaketable_tx::RunError;
use std::time::Duration;

/// What is wrong in how a tail waits, by the name of the bug.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Mistake {
    LostWakeUp,
    WrongKey,
    WakesForGood,
    NoLastLook,
    DeafAfterError,
    PatienceAgain,
    WatchesOnce,
}

#[shaketable::planted]
#[named(
    lost_wake_up,
    "a tail sets its watch in another transaction than the one that found nothing",
    "a watch set after the read that it guards"
)]
#[named(wrong_key, "a tail watches a key that no append changes", "a watch on a range's first key")]
#[named(
    wakes_for_good,
    "a tail that is woken returns what it finds, even if that is nothing",
    "a watch that fires although nothing changed"
)]
#[named(
    no_last_look,
    "a tail whose time limit has passed returns without another read",
    "a timeout taken for an answer"
)]
#[named(
    deaf_after_error,
    "a tail whose watch has failed does not read again",
    "a watch's error taken for the end"
)]
#[named(
    patience_again,
    "the time limit of a tail starts again whenever its watch ends",
    "a timer that is set in a loop"
)]
#[named(
    watches_once,
    "a tail that was woken and found nothing does not set its watch again",
    "a watch that fires once"
)]
#[flaw(
    first_batch,
    page,
    FirstBatch,
    "the first batch of a range read is taken for the whole page",
    "a range that is longer than a batch"
)]
impl Log {
    /// The keys of entries of one transaction contain only the versionstamp.
    #[bug(append, "several versionstamped keys in one transaction")]
    async fn same_rank(&self, tx: &Tx, name: Name, byte: u8, length: usize) -> Result<(), Error> {
        self.append_stamped(tx, stamped(0), (name, byte, length)).await
    }

    /// The stamp's offset is counted from the tuple, not from the key.
    #[bug(append, "the offset of a versionstamped key")]
    async fn offset_in_tuple(&self, tx: &Tx, name: Name, byte: u8, length: usize) -> Result<(), Error> {
        let mut key = stamped(tx.get_approximate_size().await?);
        if let Some(offset) = key.last_chunk_mut() {
            // One byte of the type code, then the stamp.
            *offset = 1u32.to_le_bytes();
        }
        self.append_stamped(tx, key, (name, byte, length)).await
    }

    /// An entry's key is the read version of its transaction.
    #[bug(append, "a version that is not the commit's")]
    async fn read_version(&self, tx: &Tx, name: Name, byte: u8, length: usize) -> Result<(), Error> {
        let (number, rank) = (tx.get_read_version().await?, tx.get_approximate_size().await?);
        self.append_numbered(tx, (number, rank), (name, byte, length)).await
    }

    /// An entry's number is one more than the last one, read at snapshot.
    #[bug(append, "a counter at the client")]
    async fn client_counter(&self, tx: &Tx, name: Name, byte: u8, length: usize) -> Result<(), Error> {
        let last = layer().last(tx, Snapshot).await?;
        let last = last.and_then(|last| last.position.stamp.first_chunk().copied());
        let number = last.map_or(0, i64::from_be_bytes) + 1;
        self.append_numbered(tx, (number, 0), (name, byte, length)).await
    }

    /// An append reads the last entry serializably.
    #[bug(append, "a counter at the client, with isolation")]
    async fn counter_reads(&self, tx: &Tx, name: Name, byte: u8, length: usize) -> Result<(), Error> {
        layer().last(tx, Serializable).await?;
        self.append(tx, name, byte, length).await
    }

    /// The last entry is read at snapshot, whatever isolation was requested.
    #[bug(last, "a dropped conflict range")]
    async fn last_at_snapshot(&self, tx: &Tx) -> Result<Option<Item>, Error> {
        self.last(tx, Snapshot).await
    }

    /// Appends as it should, but does not write the entry. Returns its value.
    async fn append_all_but_entry(
        &self,
        tx: &Tx,
        (name, byte, length): (Name, u8, usize),
    ) -> Result<Vec<u8>, Error> {
        self.append(&flawed(tx, Flaw::Unwritten, [entries().range()]), name, byte, length).await?;
        Ok(value(name, byte, length))
    }

    /// Appends an entry with this key, whose stamp is incomplete.
    async fn append_stamped(&self, tx: &Tx, key: Vec<u8>, entry: (Name, u8, usize)) -> Result<(), Error> {
        let value = self.append_all_but_entry(tx, entry).await?;
        tx.atomic_op(&key, &value, MutationType::SetVersionstampedKey);
        Ok(())
    }

    /// Appends an entry with a number in the place of a stamp, and a rank.
    async fn append_numbered(
        &self,
        tx: &Tx,
        (number, rank): (i64, i64),
        entry: (Name, u8, usize),
    ) -> Result<(), Error> {
        let value = self.append_all_but_entry(tx, entry).await?;
        let mut stamp = [0; 10];
        stamp[..8].copy_from_slice(&number.to_be_bytes());
        tx.set(&entries().pack(&(Versionstamp::complete(stamp, 0), rank)), &value);
        Ok(())
    }
}

fn entries() -> Subspace {
    space().subspace(&0)
}

/// The key of an entry with an incomplete stamp, and the offset of the stamp.
fn stamped(rank: i64) -> Vec<u8> {
    entries().pack_with_versionstamp(&(Versionstamp::incomplete(0), rank))
}

/// Waits for entries, with the mistake.
pub(super) async fn tail(
    mistake: Mistake,
    db: &Db,
    after: Option<Position>,
    limit: usize,
    patience: Duration,
) -> Result<Vec<Entry>, RunError<Error>> {
    let (env, log) = (db.env(), &layer());
    let mut left = env.sleep(patience);
    let watched = &match mistake {
        Mistake::WrongKey => entries().range().0,
        _ => space().pack(&1),
    };
    let mut was_woken = false;
    loop {
        let looked = db.run(|tx, _| async move {
            let entries = log.scan(&tx, after, limit, Snapshot).await?;
            let change = (limit > 0 && entries.is_empty()).then(|| tx.watch(watched));
            Ok::<_, Error>((entries, change))
        });
        let (entries, change) = looked.await?;
        let Some(mut change) = change else { return Ok(entries) };
        match mistake {
            Mistake::LostWakeUp => {
                change = db.run(|tx, _| async move { Ok::<_, Error>(tx.watch(watched)) }).await?;
            }
            Mistake::WatchesOnce if was_woken => change = pending().boxed(),
            Mistake::PatienceAgain => left = env.sleep(patience),
            _ => {}
        }
        match first_of(change, &mut left).await {
            Either::Left((Ok(()), _)) if mistake != Mistake::WakesForGood => was_woken = true,
            Either::Left((Err(e), _)) if !e.is_retryable() => {
                return Err(RunError { error: e.into(), maybe_committed: false, attempts: 1 });
            }
            Either::Left((Err(_), _)) if mistake == Mistake::DeafAfterError => {
                left.await;
                return Ok(Vec::new());
            }
            Either::Left((Err(_), _)) => env.sleep(Duration::from_millis(10)).await,
            Either::Right(_) if mistake == Mistake::NoLastLook => return Ok(Vec::new()),
            _ => return db.run(|tx, _| async move { log.scan(&tx, after, limit, Snapshot).await }).await,
        }
    }
}
