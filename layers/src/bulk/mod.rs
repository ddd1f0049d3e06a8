//! Work beyond one transaction: long jobs in batches that fit, and new versions of a whole space that
//! readers switch to in one step.
//!
//! # Promise
//!
//! A [`Job`] does something with every row of a range.
//!
//! * How far it has come is written by the transaction that did the work. Whatever happens to commits and
//!   workers, no row is done twice and none is left out; who runs the job next goes on there. Several
//!   workers at once do no harm and no good: they conflict.
//! * A batch ends at a number of rows, of bytes or at a time, whichever comes first ([`Limits`]); a batch
//!   that fails all the same is tried again with half of it.
//! * A row is done as it is when the job comes to it: rows put behind the job are not done, rows put
//!   before it are. [`Job::has_passed`] tells a writer where its row is. One that does the job's work
//!   itself for rows that were passed keeps an index right while it is built, at every version.
//!
//! A [`Workspace`] holds one *current* build of a space, and others that are made or cleared beside it.
//!
//! * [`Workspace::publish`] makes a build the current one in one transaction: every reader sees the old
//!   one or the new one as a whole. It fails when another build was published since this one began.
//! * A build that was published or given up gets no more rows from a builder that [claims] it in each of
//!   its transactions.
//! * What is no longer needed is cleared in batches, by anybody, at any time.
//!
//! [claims]: Workspace::claim
//!
//! # What it does not do
//!
//! * The work of a job must have no effect but through its transaction, must not add rows to the range
//!   ahead of it, and must fit into a transaction for each row alone.
//! * A job is one worker's at a time; independent jobs over parts of a range are the way to more.
//! * A reader of a workspace over several transactions asks in each whether its build is still current
//!   ([`Workspace::pinned`]); nothing waits for it.
//! * A dead builder is not told from a slow one: who gives builds up says how long a live builder is silent
//!   at most ([`Workspace::discard_unchanged`]), and a builder claims its build more often than that.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | step of a job | progress, rows of the batch | progress, the work's own | other workers, writers of the rows, has_passed |
//! | has_passed | progress | – | steps |
//! | current, pinned | pointer | – | publish |
//! | claim | record | 1 atomic | publish, discard |
//! | begin | record, pointer, retirement | record | publish |
//! | publish | record, pointer | 4 keys | readers, builders of this build, other publishers |
//! | discard, discard_observed | record, claims | 3 keys | builders of this build |
//! | observe | records and claims of a page | – | – |
//! | clear_retired | 2 retirements, rows of the batch | 1 clear | who clears the last of the same build |
//!
//! ```
//! use shaketable_layers::{
//!     bulk::{Error, Job, Limits, Progress},
//!     tx::{Database, KeyValue, MutationType, RunError, Transaction},
//! };
//!
//! /// Counts words by their first byte. A worker that dies is simply run again.
//! async fn count_words<D: Database>(db: &D, job: &Job) -> Result<Progress, RunError<Error>> {
//!     let count = |tx: D::Transaction, word: KeyValue| async move {
//!         let first = word.value.first().copied().unwrap_or(0);
//!         tx.atomic_op(&[b'c', first], &1u64.to_le_bytes(), MutationType::Add);
//!         Ok(())
//!     };
//!     job.run(db, &Limits::default(), count).await
//! }
//! ```

mod error;
mod keys;
mod ops;
mod workspace;

pub use error::Error;
pub use keys::{BuildId, Progress};
pub use ops::{Job, Limits};
pub use workspace::{Cleared, Observed, Workspace};
