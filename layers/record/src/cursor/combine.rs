//! Cursors made of another one.

use super::{Continuation, Cursor, Next, Stop};
use crate::error::Error;
use futures::future::{BoxFuture, FutureExt};

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
pub struct Then<C, F> {
    pub(super) cursor: C,
    pub(super) change: F,
}

impl<C, F, R> Cursor for Then<C, F>
where
    C: Cursor,
    F: FnMut(C::Row) -> BoxFuture<'static, Result<Option<R>, Error>> + Send,
    R: Send,
{
    type Row = R;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<R>, Error>> {
        async move {
            loop {
                match self.cursor.next().await? {
                    Next::Row(row, after) => match (self.change)(row).await? {
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
