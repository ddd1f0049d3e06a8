//! The layer: mailboxes of jobs, and workers who wait for them.
//!
//! A job is posted to a mailbox, claimed by a worker and finished; each is one transaction. A claimed job
//! lies on the worker's desk until it is finished, so that a worker that dies finds it there when it comes
//! back. [`take_within`] is several transactions: it waits by a watch until there is a job, and claims it
//! exactly once.
//!
//! ```text
//! ("mailbox", "jobs", mailbox, versionstamp, job) = ""                  in the order of their posts
//! ("mailbox", "bell", mailbox)                    = the stamp of the last post, for watches
//! ("mailbox", "desk", worker)                     = the job that the worker has claimed
//! ```

use foundationdb_tuple::{Subspace, Versionstamp, pack, unpack};
use futures::future::{Either, select};
use shaketable_tx::{
    Database,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, Transaction,
    once::{Outcome, Packed, Session},
};
use std::time::Duration;

shaketable_tx::refusals! {
    /// Why an operation was refused.
    pub enum Refusal {
        NoJob = "there is no job on the worker's desk",
        Foreign = "a key or a value that this layer does not write",
    }
}

/// How long a worker waits after its watch has failed, before it looks again.
const PAUSE: Duration = Duration::from_millis(10);

/// Where everything is stored.
pub fn space() -> Subspace {
    Subspace::from("mailbox")
}

/// Where a mailbox's jobs are stored.
pub fn jobs(mailbox: u32) -> Subspace {
    space().subspace(&("jobs", mailbox))
}

/// What changes with every post to a mailbox.
pub fn bell(mailbox: u32) -> Vec<u8> {
    space().pack(&("bell", mailbox))
}

/// Where a worker's job is stored.
pub fn desk(worker: u32) -> Vec<u8> {
    space().pack(&("desk", worker))
}

/// Posts a job. Two posts do not conflict.
pub fn post<T: Transaction>(tx: &T, mailbox: u32, job: u64) {
    let key = jobs(mailbox).pack_with_versionstamp(&(Versionstamp::incomplete(0), job));
    tx.atomic_op(&key, b"", MutationType::SetVersionstampedKey);
    // Ten bytes to be replaced, from offset 0.
    tx.atomic_op(&bell(mailbox), &[0; 14], MutationType::SetVersionstampedValue);
}

/// The job on a worker's desk.
pub async fn on_desk<T: Transaction>(
    tx: &T,
    worker: u32,
    isolation: Isolation,
) -> Result<Option<u64>, Refusal> {
    let value = tx.get(&desk(worker), isolation).await?;
    value.map(|value| unpack(&value).map_err(|_| Refusal::Foreign)).transpose()
}

/// The first job of a mailbox, with its key.
pub async fn first<T: Transaction>(
    tx: &T,
    mailbox: u32,
    isolation: Isolation,
) -> Result<Option<(Vec<u8>, u64)>, Refusal> {
    let range = RangeOption::from(jobs(mailbox).range()).limit(1);
    let Some(row) = tx.get_range_all(range, isolation).await?.pop() else { return Ok(None) };
    let (_, job) = jobs(mailbox).unpack::<(Versionstamp, u64)>(&row.key).map_err(|_| Refusal::Foreign)?;
    Ok(Some((row.key.to_vec(), job)))
}

/// Moves the first job of a mailbox to the worker's desk. A worker that has one already keeps it.
pub async fn claim<T: Transaction>(
    tx: &T,
    mailbox: u32,
    worker: u32,
) -> Result<Option<Packed<u64>>, Refusal> {
    if let Some(job) = on_desk(tx, worker, Serializable).await? {
        return Ok(Some(Packed(job)));
    }
    let Some((key, job)) = first(tx, mailbox, Serializable).await? else { return Ok(None) };
    tx.clear(&key);
    tx.set(&desk(worker), &pack(&job));
    Ok(Some(Packed(job)))
}

/// Removes the job from the worker's desk.
pub async fn finish<T: Transaction>(tx: &T, worker: u32) -> Result<Packed<u64>, Refusal> {
    let job = on_desk(tx, worker, Serializable).await?.ok_or(Refusal::NoJob)?;
    tx.clear(&desk(worker));
    Ok(Packed(job))
}

/// Whether a worker of this mailbox has something to do.
pub async fn is_ready<T: Transaction>(tx: &T, mailbox: u32, worker: u32) -> Result<bool, Refusal> {
    Ok(on_desk(tx, worker, Snapshot).await?.is_some() || first(tx, mailbox, Snapshot).await?.is_some())
}

/// Claims a job, and waits for one if there is none: until `patience` has run out, and then looks once more.
///
/// Dropping the future: the claim has happened once or not at all, as [`Session::apply`] promises. If it has,
/// the job lies on the worker's desk, and the next take returns it.
pub fn take_within<D: Database>(
    session: &mut Session<D>,
    mailbox: u32,
    worker: u32,
    patience: Duration,
) -> impl Future<Output = Outcome<Option<Packed<u64>>, Refusal>> + Send {
    let db = session.database().clone();
    async move {
        let (mut patience, mut waits) = (db.env().sleep(patience), true);
        loop {
            let looked = db.run(|tx, _| async move {
                let is_ready = is_ready(&tx, mailbox, worker).await?;
                // In the transaction that has found nothing: any post after its read version wakes the watch.
                let posted = (waits && !is_ready).then(|| tx.watch(&bell(mailbox)));
                Ok::<_, Refusal>((is_ready, posted))
            });
            match looked.await {
                Ok((true, _)) => {
                    match session.apply(|tx| async move { claim(&tx, mailbox, worker).await }).await {
                        // Another worker was faster.
                        Outcome::Applied(None) => {}
                        claimed => return claimed,
                    }
                }
                Ok((false, None)) => return Outcome::Applied(None),
                Ok((false, Some(posted))) => match select(posted, &mut patience).await {
                    Either::Left((Ok(()), _)) => {}
                    Either::Left((Err(error), _)) if error.is_retryable() => db.env().sleep(PAUSE).await,
                    Either::Left((Err(error), _)) => return Outcome::Refused(error.into()),
                    Either::Right(_) => waits = false,
                },
                Err(failed) => return Outcome::Refused(failed.error),
            }
        }
    }
}
