//! Cursors one after another.

use super::{super::continuation, Found};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Next, Spent, Stop},
    error::Error,
};
use futures::future::{BoxFuture, FutureExt};

/// Opens the cursor with this number, at a position.
pub type Open = Box<dyn Fn(usize, Continuation) -> Result<BoxCursor<Found>, Error> + Send>;

/// The rows of several cursors, one after another. Each is opened when its first row is asked for.
pub struct InTurn {
    open: Open,
    /// How many there are.
    number: usize,
    current: usize,
    cursor: Option<BoxCursor<Found>>,
    /// The position in the current one.
    at: Continuation,
    spent: Spent,
}

impl InTurn {
    /// The rows of cursors 0 to `number`, beginning at `from`.
    pub fn new(open: Open, number: usize, from: &Continuation, spent: &Spent) -> Result<InTurn, Error> {
        let (current, positions) = continuation::split(from, 1)?;
        let at = positions.into_iter().next().unwrap_or(Continuation::Start);
        let current = if at == Continuation::End { number } else { current };
        Ok(InTurn { open, number, current, cursor: None, at, spent: spent.clone() })
    }

    /// The position of all.
    fn position(&self) -> Continuation {
        match (&self.at, self.current + 1 < self.number) {
            _ if self.current >= self.number => Continuation::End,
            (Continuation::End, true) => continuation::join(self.current + 1, &[Continuation::Start]),
            (Continuation::End, false) => Continuation::End,
            (at, _) => continuation::join(self.current, std::slice::from_ref(at)),
        }
    }

    async fn advance(&mut self) -> Result<Next<Found>, Error> {
        while self.current < self.number {
            let cursor = match &mut self.cursor {
                Some(cursor) => cursor,
                none => none.insert((self.open)(self.current, self.at.clone())?),
            };
            match cursor.next().await? {
                Next::Row(row, after) => {
                    self.at = after;
                    return Ok(Next::Row(row, self.position()));
                }
                Next::Stopped(Stop::Exhausted, _) => {
                    self.current += 1;
                    self.cursor = None;
                    self.at = Continuation::Start;
                    let reached = self.spent.reached().filter(|_| self.current < self.number);
                    if let Some(stop) = reached {
                        return Ok(Next::Stopped(stop, self.position()));
                    }
                }
                Next::Stopped(stop, at) => {
                    self.at = at;
                    return Ok(Next::Stopped(stop, self.position()));
                }
            }
        }
        Ok(Next::Stopped(Stop::Exhausted, Continuation::End))
    }
}

impl Cursor for InTurn {
    type Row = Found;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<Found>, Error>> {
        self.advance().boxed()
    }
}
