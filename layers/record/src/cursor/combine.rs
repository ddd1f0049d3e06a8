//! Cursors made of another one.

use super::{Continuation, Cursor, Next, Spent, Stop};
use crate::error::Error;
use futures::future::{BoxFuture, FutureExt, join_all};
use std::collections::VecDeque;

/// Changes, drops or refuses rows.
pub struct FilterMap<C, F> {
    pub(super) cursor: C,
    pub(super) change: F,
}

impl<C, F, R> Cursor for FilterMap<C, F>
where
    C: Cursor,
    F: FnMut(C::Row) -> Result<Option<R>, Error> + Send,
    R: Send,
{
    type Row = R;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<R>, Error>> {
        async move {
            loop {
                match self.cursor.next().await? {
                    Next::Row(row, after) => match (self.change)(row)? {
                        Some(row) => return Ok(Next::Row(row, after)),
                        None => continue,
                    },
                    Next::Stopped(stop, after) => return Ok(Next::Stopped(stop, after)),
                }
            }
        }
        .boxed()
    }
}

/// Changes, drops or refuses rows by what else is read for each.
///
/// It reads for several rows at once, and returns them one after another. Nothing is under way between two
/// rows: a read holds a turn of its transaction, for which whoever writes between two rows would wait for
/// ever.
pub struct Then<C: Cursor, F, R> {
    cursor: C,
    spent: Spent,
    change: F,
    /// The rows that were read, up to the first error, each with the position after it.
    ready: VecDeque<Result<(R, Continuation), Error>>,
    /// What came after the rows that were read, if it is no row.
    last: Option<Result<(Stop, Continuation), Error>>,
}

impl<C, F, R> Then<C, F, R>
where
    C: Cursor,
    F: FnMut(C::Row) -> BoxFuture<'static, Result<Option<R>, Error>> + Send,
    R: Send,
{
    pub(super) fn new(cursor: C, spent: &Spent, change: F) -> Then<C, F, R> {
        Then { cursor, spent: spent.clone(), change, ready: VecDeque::new(), last: None }
    }

    /// Reads for the next rows.
    async fn read(&mut self) {
        let (mut reads, mut places) = (Vec::new(), Vec::new());
        let most = self.spent.at_once();
        while reads.len() < most && self.last.is_none() {
            match self.cursor.next().await {
                Ok(Next::Row(row, after)) => {
                    reads.push((self.change)(row));
                    places.push(after);
                }
                Ok(Next::Stopped(stop, at)) => self.last = Some(Ok((stop, at))),
                Err(error) => self.last = Some(Err(error)),
            }
        }
        let found = join_all(reads).await.into_iter().zip(places);
        let row = |(read, after): (Result<Option<R>, Error>, _)| {
            read.map(|row| row.map(|row| (row, after))).transpose()
        };
        self.ready.extend(found.filter_map(row));
    }
}

impl<C, F, R> Cursor for Then<C, F, R>
where
    C: Cursor,
    F: FnMut(C::Row) -> BoxFuture<'static, Result<Option<R>, Error>> + Send,
    R: Send,
{
    type Row = R;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<R>, Error>> {
        async move {
            loop {
                if let Some(ready) = self.ready.pop_front() {
                    return ready.map(|(row, after)| Next::Row(row, after));
                }
                match self.last.take() {
                    Some(last) => return last.map(|(stop, at)| Next::Stopped(stop, at)),
                    None => self.read().await,
                }
            }
        }
        .boxed()
    }
}

/// The first rows.
pub struct TakeRows<C> {
    pub(super) cursor: C,
    pub(super) left: usize,
    /// The position after the last row.
    pub(super) at: Continuation,
}

impl<C: Cursor> Cursor for TakeRows<C> {
    type Row = C::Row;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<C::Row>, Error>> {
        async move {
            if self.left == 0 {
                return Ok(Next::Stopped(Stop::Rows, self.at.clone()));
            }
            let next = self.cursor.next().await?;
            if let Next::Row(_, after) = &next {
                self.left -= 1;
                self.at = after.clone();
            }
            Ok(next)
        }
        .boxed()
    }
}

/// All rows but the first ones.
pub struct Skip<C> {
    pub(super) cursor: C,
    pub(super) left: usize,
}

impl<C: Cursor> Cursor for Skip<C> {
    type Row = C::Row;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<C::Row>, Error>> {
        async move {
            loop {
                match self.cursor.next().await? {
                    Next::Row(..) if self.left > 0 => self.left -= 1,
                    next => return Ok(next),
                }
            }
        }
        .boxed()
    }
}
