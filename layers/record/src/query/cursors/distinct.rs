//! Each record once.

use super::Found;
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Next},
    error::Error,
};
use futures::future::{BoxFuture, FutureExt};
use shaketable_tx::sometimes;
use std::collections::BTreeSet;

/// The rows of records that have not been given before. The position after a row is after all following rows
/// of records that have been given: who continues there knows nothing of them, and they would come again.
pub struct Distinct {
    inner: BoxCursor<Found>,
    /// The primary keys of the records that were given.
    seen: BTreeSet<Vec<u8>>,
    /// What comes next, if it is known.
    ahead: Option<Next<Found>>,
    /// The position before what comes next.
    at: Continuation,
}

impl Distinct {
    /// The rows of `inner`, which begins at `from`.
    pub fn new(inner: BoxCursor<Found>, from: Continuation) -> Distinct {
        Distinct { inner, seen: BTreeSet::new(), ahead: None, at: from }
    }

    /// The next row of a record that was not given.
    async fn unseen(&mut self) -> Result<Next<Found>, Error> {
        loop {
            match self.inner.next().await? {
                Next::Row(row, after) if self.seen.contains(&row.primary_key.pack()) => {
                    sometimes!(
                        row.record.is_none(),
                        "record query: a duplicate is dropped before its record is loaded"
                    );
                    self.at = after;
                }
                next => return Ok(next),
            }
        }
    }

    async fn advance(&mut self) -> Result<Next<Found>, Error> {
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.unseen().await?,
        };
        let (row, after) = match next {
            Next::Row(row, after) => (row, after),
            stopped => return Ok(stopped),
        };
        self.seen.insert(row.primary_key.pack());
        self.at = after;
        let ahead = self.unseen().await?;
        let after = match &ahead {
            Next::Row(..) => self.at.clone(),
            Next::Stopped(_, at) => at.clone(),
        };
        self.ahead = Some(ahead);
        Ok(Next::Row(row, after))
    }
}

impl Cursor for Distinct {
    type Row = Found;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<Found>, Error>> {
        self.advance().boxed()
    }
}
