//! What every cursor can do.

use super::{
    BoxCursor, Continuation, Cursor, Next, Spent, Stop,
    combine::{FilterMap, Skip, TakeRows, Then},
};
use crate::error::Error;
use futures::{Stream, future::BoxFuture};
use std::future::Future;

/// The rows of one call, and where the next one continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<R> {
    /// The rows.
    pub rows: Vec<R>,
    /// Why there are no more.
    pub stop: Stop,
    /// Where to continue; [`Continuation::End`] if there are no more rows at all.
    pub continuation: Continuation,
}

/// What every cursor can do.
pub trait CursorExt: Cursor + Sized + 'static {
    /// This cursor with rows changed.
    fn map<R: Send + 'static>(self, mut change: impl FnMut(Self::Row) -> R + Send + 'static) -> BoxCursor<R> {
        self.filter_map(move |row| Ok(Some(change(row))))
    }

    /// Only the rows for which `keep` returns true.
    fn filter(self, mut keep: impl FnMut(&Self::Row) -> bool + Send + 'static) -> BoxCursor<Self::Row>
    where
        Self::Row: 'static,
    {
        self.filter_map(move |row| Ok(keep(&row).then_some(row)))
    }

    /// This cursor with rows changed, without those that become `None`. It ends with the first error.
    fn filter_map<R: Send + 'static>(
        self,
        change: impl FnMut(Self::Row) -> Result<Option<R>, Error> + Send + 'static,
    ) -> BoxCursor<R> {
        Box::new(FilterMap { cursor: self, change })
    }

    /// As [`filter_map`](CursorExt::filter_map), with something else read for each row, for up to
    /// [`Limits::pipeline`](super::Limits::pipeline) rows at once: in their order, each after the rows before
    /// it were returned or refused.
    fn then<R: Send + 'static>(
        self,
        spent: &Spent,
        change: impl FnMut(Self::Row) -> BoxFuture<'static, Result<Option<R>, Error>> + Send + 'static,
    ) -> BoxCursor<R> {
        Box::new(Then::new(self, spent, change))
    }

    /// The first `rows` rows; it then stops with [`Stop::Rows`], also if there is no further row. `from` is
    /// where this cursor began: with 0 rows it is where the next call continues.
    fn take_rows(self, rows: usize, from: Continuation) -> BoxCursor<Self::Row> {
        Box::new(TakeRows { cursor: self, left: rows, at: from })
    }

    /// At most as many rows as [`Limits::rows`](super::Limits::rows) allows. `from` is where this cursor
    /// began.
    fn limited(self, spent: &Spent, from: Continuation) -> BoxCursor<Self::Row> {
        match spent.limits().rows {
            Some(rows) => self.take_rows(rows, from),
            None => Box::new(self),
        }
    }

    /// Without the first `rows` rows. Continuations do not know about them: a call that continues must not
    /// skip again, and one that stops before it has returned a row has skipped fewer rows.
    fn skip(self, rows: usize) -> BoxCursor<Self::Row> {
        Box::new(Skip { cursor: self, left: rows })
    }

    /// All rows until the cursor stops.
    ///
    /// Dropping the future: the rows are lost; begin again.
    fn to_list(mut self) -> impl Future<Output = Result<Page<Self::Row>, Error>> + Send {
        async move {
            let mut rows = Vec::new();
            loop {
                match self.next().await? {
                    Next::Row(row, _) => rows.push(row),
                    Next::Stopped(stop, continuation) => return Ok(Page { rows, stop, continuation }),
                }
            }
        }
    }

    /// A stream of the rows, each with the continuation after it. The last item is [`Next::Stopped`], or an
    /// error.
    fn into_stream(self) -> impl Stream<Item = Result<Next<Self::Row>, Error>> + Send {
        futures::stream::unfold(Some(self), |cursor| async move {
            let mut cursor = cursor?;
            let next = cursor.next().await;
            let more = matches!(next, Ok(Next::Row(..)));
            Some((next, more.then_some(cursor)))
        })
    }
}

impl<C: Cursor + 'static> CursorExt for C {}
