//! Cursors: rows one after another, with the position after each as bytes, and limits on the work of one
//! transaction.
//!
//! A [`Cursor`] gives a row with the [`Continuation`] after it, or says why it stopped. Continuing from a
//! continuation, in the same transaction or in a later one, gives the rows that come after that row.
//! [`CursorExt`] has what is built on any cursor: filters, limits on rows, lists, streams.

mod combine;
mod extension;
mod key_value;
mod limits;
mod position;
mod range;

pub use extension::{CursorExt, Page};
pub(crate) use key_value::{KeyValueCursor, Row, Scan};
pub use limits::{Limits, Spent};
pub use position::Positions;
pub use range::{Endpoint, TupleRange};

use crate::error::Error;
use bytes::Bytes;
use futures::future::BoxFuture;

/// A position between two rows of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// Before the first row.
    Start,
    /// After the row that these bytes describe.
    After(Bytes),
    /// After the last row: there are no more.
    End,
}

impl Continuation {
    /// The bytes to keep, `None` at the end; empty at the start.
    pub fn to_bytes(&self) -> Option<Bytes> {
        match self {
            Continuation::Start => Some(Bytes::new()),
            Continuation::After(position) => Some(position.clone()),
            Continuation::End => None,
        }
    }

    /// The continuation with these bytes.
    pub fn from_bytes(bytes: Bytes) -> Continuation {
        match bytes.is_empty() {
            true => Continuation::Start,
            false => Continuation::After(bytes),
        }
    }
}

/// Why a cursor gives no further row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There are no more rows.
    Exhausted,
    /// As many rows as the limit allows were returned.
    Rows,
    /// As many rows as the limit allows were read.
    Scanned,
    /// As many bytes as the limit allows were read.
    Bytes,
    /// The time is over.
    Time,
}

/// What a cursor gives next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<R> {
    /// A row, and the position after it.
    Row(R, Continuation),
    /// No further row in this transaction, and where to continue. After [`Stop::Exhausted`] it is
    /// [`Continuation::End`].
    Stopped(Stop, Continuation),
}

/// Rows one after another. Once it has stopped it must not be asked again.
pub trait Cursor: Send {
    /// What it gives.
    type Row: Send;

    /// The next row, or why there is none.
    ///
    /// Dropping the future: the cursor must not be used again; continue from the last continuation.
    fn next(&mut self) -> BoxFuture<'_, Result<Next<Self::Row>, Error>>;
}

/// A cursor of any type.
pub type BoxCursor<R> = Box<dyn Cursor<Row = R>>;

impl<R: Send> Cursor for BoxCursor<R> {
    type Row = R;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<R>, Error>> {
        (**self).next()
    }
}
