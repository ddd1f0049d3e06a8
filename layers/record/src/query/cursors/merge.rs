//! Cursors that are ordered alike, merged: all rows, or those that all have.

use super::{super::continuation, Found};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Next, Stop},
    error::Error,
};
use futures::future::{BoxFuture, FutureExt, try_join_all};

/// Which rows are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Those that one of the cursors has: once.
    Any,
    /// Those that all cursors have.
    All,
}

/// The rows of cursors each of which is strictly ordered by [`Found::order`].
pub struct Merge {
    children: Vec<Child>,
    keep: Keep,
    reverse: bool,
}

struct Child {
    cursor: BoxCursor<Found>,
    /// Its next row, by its packed order, and the position after it.
    head: Option<(Vec<u8>, Found, Continuation)>,
    /// The position before its next row.
    at: Continuation,
    stopped: Option<Stop>,
}

impl Child {
    async fn fill(&mut self) -> Result<(), Error> {
        if self.head.is_none() && self.stopped.is_none() {
            match self.cursor.next().await? {
                Next::Row(row, after) => self.head = Some((row.order.pack(), row, after)),
                Next::Stopped(stop, at) => {
                    self.stopped = Some(stop);
                    self.at = at;
                }
            }
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.head.as_ref().map(|(key, ..)| &key[..])
    }

    /// Its next row, if it has this key.
    fn take(&mut self, key: &[u8]) -> Option<Found> {
        let (_, row, after) = self.head.take_if(|(own, ..)| own == key)?;
        self.at = after;
        Some(row)
    }
}

impl Merge {
    /// The rows of the cursors that `open` opens, each at its position, beginning at `from`.
    pub fn new(
        number: usize,
        keep: Keep,
        reverse: bool,
        from: &Continuation,
        open: impl Fn(usize, Continuation) -> Result<BoxCursor<Found>, Error>,
    ) -> Result<Merge, Error> {
        let (_, positions) = continuation::split(from, number)?;
        let child = |(i, at): (usize, Continuation)| {
            let cursor = open(i, at.clone())?;
            Ok(Child { cursor, head: None, at, stopped: None })
        };
        let children = positions.into_iter().enumerate().map(child).collect::<Result<_, Error>>()?;
        Ok(Merge { children, keep, reverse })
    }

    fn position(&self) -> Continuation {
        let positions: Vec<_> = self.children.iter().map(|child| child.at.clone()).collect();
        continuation::join(0, &positions)
    }

    async fn advance(&mut self) -> Result<Next<Found>, Error> {
        loop {
            try_join_all(self.children.iter_mut().map(Child::fill)).await?;
            let ended = |child: &Child| child.stopped == Some(Stop::Exhausted);
            let over = match self.keep {
                Keep::Any => self.children.iter().all(ended),
                Keep::All => self.children.iter().any(ended),
            };
            if over {
                return Ok(Next::Stopped(Stop::Exhausted, Continuation::End));
            }
            let limit = |child: &Child| child.stopped.filter(|stop| *stop != Stop::Exhausted);
            if let Some(stop) = self.children.iter().find_map(limit) {
                return Ok(Next::Stopped(stop, self.position()));
            }
            if let Some(row) = self.least() {
                return Ok(Next::Row(row, self.position()));
            }
        }
    }

    /// Takes the first of the next rows from all children that have it, and returns it if it is kept. One
    /// that was loaded is preferred.
    fn least(&mut self) -> Option<Found> {
        let keys = self.children.iter().filter_map(Child::key);
        let first = if self.reverse { keys.max() } else { keys.min() }?.to_vec();
        let mut taken: Vec<Found> = self.children.iter_mut().filter_map(|child| child.take(&first)).collect();
        if self.keep == Keep::All && taken.len() < self.children.len() {
            return None;
        }
        let loaded = taken.iter().position(|row| row.record.is_some()).unwrap_or(0);
        (loaded < taken.len()).then(|| taken.swap_remove(loaded))
    }
}

impl Cursor for Merge {
    type Row = Found;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<Found>, Error>> {
        self.advance().boxed()
    }
}
