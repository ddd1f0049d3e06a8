//! A log: entries in the order in which their transactions committed.
//!
//! # Promise
//!
//! * Entries are in commit order, and those of one transaction in the order of the calls: who has read up
//!   to a position and reads on behind it misses nothing and sees nothing twice.
//! * Appends never conflict with each other, nor with readers that are no writers: an entry's key is the
//!   versionstamp of its transaction, which is known after the commit only.
//! * [`Log::scan`] begins behind a position, exclusively; within a transaction of several entries too.
//! * [`Log::tail`] waits until there is something behind a position. It reads and sets its watch in one
//!   transaction, so that an entry which comes in between wakes it. It returns nothing only when its
//!   patience has run out, and then has looked once more: an entry whose commit was acknowledged before is
//!   returned.
//! * What [`Log::append`] returns is no [`Position`] before the commit ([`Appended`]). In the transaction of
//!   a [`Session`](crate::once::Session) an append is applied exactly once, and its answer has the position,
//!   also after a retry.
//!
//! # What it does not do
//!
//! * A transaction cannot read what it has appended itself: a scan that comes to the log's end then is
//!   [`Error::OwnEntriesUnreadable`].
//! * Positions are those of one cluster. Entries that are copied to another one keep their order, but what
//!   is appended there may sort before them.
//! * Every append writes one key, the head that tails watch. It is written blindly and conflicts with
//!   nobody, but a log of very many appends a second wants to be several logs.
//! * It does not split values: one above 100,000 bytes is refused.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | append | read version | 2 versionstamped | serializable scans that came to the end |
//! | scan | 1 range | – | serializable: appends, if it comes to the end |
//! | last | 1 range of 1 | – | serializable: appends |
//! | trim | – | 1 range | serializable scans from before |
//! | tail | 1 range and 1 watch each time it wakes | – | – |
//!
//! ```
//! use shaketable_layers::{
//!     log::{Appended, Error, Log, Position},
//!     once::{Outcome, Session},
//!     tx::{Database, Isolation, Transaction},
//! };
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
//! Before the commit there is no position yet to trim up to:
//!
//! ```compile_fail,E0308
//! use shaketable_layers::{log::{Error, Log}, tx::Transaction};
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
