//! Work that exceeds one transaction: long jobs in batches that fit, and new versions of a whole space that
//! readers switch to in one step.
//!
//! # Promise
//!
//! A [`Job`] processes every row of a range.
//!
//! * The transaction that does the work also records the progress. Regardless of failed commits and workers,
//!   no row is processed twice and none is left out; the next worker that runs the job continues from the
//!   recorded position. Several concurrent workers are harmless but useless: they conflict.
//! * A batch ends after a number of rows, of bytes or a time, whichever comes first ([`Limits`]); a batch
//!   that fails nevertheless is retried at half its size.
//! * A row is processed in the state that it has when the job reaches it: rows added in the part that the job
//!   has passed are not processed, rows added ahead of the job are. [`Job::has_passed`] reports on which side
//!   of the job a writer's row is. A writer that does the job's work itself for rows in the passed part keeps
//!   an index correct while it is built, at every version.
//!
//! A [`Workspace`] holds one *current* build of a space, and other builds that are in progress or being
//! cleared.
//!
//! * [`Workspace::publish`] makes a build the current one in one transaction: every reader sees either the
//!   old or the new build as a whole. It fails if another build was published since this one began.
//! * A build that was published or discarded receives no more rows from a builder that [claims] it in each of
//!   its transactions.
//! * Data that is no longer needed is cleared in batches, by any process, at any time.
//!
//! [claims]: Workspace::claim
//!
//! # What it does not do
//!
//! * The work of a job must have no effects outside its transaction, must not add rows to the range ahead of
//!   the job, and must fit into one transaction for each single row.
//! * A job has one worker at a time; to use more, split the range into independent jobs.
//! * A reader that uses a workspace in several transactions checks in each of them whether its build is still
//!   current ([`Workspace::pinned`]); publishing does not wait for readers.
//! * It cannot distinguish a dead builder from a slow one: the process that discards builds specifies how
//!   long a live builder is silent at most ([`Workspace::discard_unchanged`]), and a builder claims its build
//!   more often than that.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | step of a job | progress, rows of the batch | progress, the writes of the work | other workers, writers of the rows, has_passed |
//! | has_passed | progress | – | steps |
//! | current, pinned | pointer | – | publish |
//! | claim | record | 1 atomic | publish, discard |
//! | begin | record, pointer, retirement | record | publish |
//! | publish | record, pointer | 4 keys | readers, builders of this build, other publishers |
//! | discard, discard_observed | record, claims | 3 keys | builders of this build |
//! | observe | records and claims of a page | – | – |
//! | clear_retired | 2 retirements, rows of the batch | 1 clear | clearing the last rows of the same build |
//!
//! ```
//! use shaketable_layers::bulk::{Error, Job, Limits, Progress};
//! use shaketable_tx::{Database, KeyValue, MutationType, RunError, Transaction};
//!
//! /// Counts words by their first byte. If a worker dies, run another one.
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
