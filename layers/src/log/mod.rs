//! A log: entries in the order in which their transactions committed, scanned from a stamp, and followed with
//! a watch.
//!
//! # Promise
//!
//! * Entries are in commit order, and those of one transaction in the order of the calls: a reader that has
//!   read up to a position and continues after it misses nothing and sees nothing twice.
//! * Appends never conflict with each other, nor with read-only readers: an entry's key contains the
//!   versionstamp of its transaction, which is known only after the commit.
//! * [`Log::scan`] starts after a position, exclusively; also between several entries of one transaction.
//! * [`Log::tail`] waits until there is an entry after a position. It reads and sets its watch in one
//!   transaction, so that an entry that is appended in between wakes it. It returns nothing only after its
//!   patience has run out and a final read has found nothing: an entry whose commit was acknowledged before
//!   that is returned.
//! * Before the commit, the result of [`Log::append`] is not a [`Position`] ([`Appended`]). In the
//!   transaction of a [`Session`](crate::once::Session) an append is applied exactly once, and its answer
//!   contains the position, also after a retry.
//!
//! # What it does not do
//!
//! * A transaction cannot read what it has appended itself: a scan that then reaches the end of the log fails
//!   with [`Error::OwnEntriesUnreadable`].
//! * Positions are valid in one cluster. Entries that are copied to another cluster keep their order, but
//!   entries appended there later may sort before them.
//! * Every append writes one key, the head that tails watch. The write is blind and conflicts with no other,
//!   but a log with very many appends per second should be split into several logs.
//! * It does not split values: a value above 100,000 bytes is refused.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | append | read version | 2 versionstamped | serializable scans that reached the end |
//! | scan | 1 range | – | serializable: appends, if it reaches the end |
//! | last | 1 range of 1 | – | serializable: appends |
//! | trim | – | 1 range | serializable scans from before |
//! | tail | 1 range and 1 watch each time it is woken | – | – |
//!
//! ```
//! use shaketable_layers::log::{Appended, Error, Log, Position};
//! use shaketable_tx::{Database, Isolation, Transaction, once::{Outcome, Session}};
//!
//! async fn note<D: Database>(session: &mut Session<D>, log: &Log) -> Outcome<Appended, Error> {
//!     session.apply(|tx| async move { log.append(&tx, b"what happened").await }).await
//! }
//!
//! async fn read_on<T: Transaction>(tx: &T, log: &Log, seen: Position) -> Result<Position, Error> {
//!     let new = log.scan(tx, Some(seen), 100, Isolation::Snapshot).await?;
//!     Ok(new.last().map_or(seen, |entry| entry.position))
//! }
//! ```
//!
//! Before the commit there is no position up to which the log could be trimmed:
//!
//! ```compile_fail,E0308
//! use shaketable_layers::log::{Error, Log};
//! use shaketable_tx::Transaction;
//!
//! async fn trim_all<T: Transaction>(tx: &T, log: &Log) -> Result<(), Error> {
//!     let appended = log.append(tx, b"the last entry").await?;
//!     log.trim(tx, appended).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use keys::{Appended, Position};
pub use ops::{Entry, Log};
