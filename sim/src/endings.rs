//! How the calls of a client end: with which errors, and which waits it gives up. Judges compare them with
//! the error that an operation reports.

use crate::rt::Nanos;
use shaketable_tx::{Error, Result};
use std::future::Future;

/// How a call ended for whoever made it, if not with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With an error.
    Error(Error),
    /// Its future was dropped after time had passed in which it had no answer.
    GivenUp,
}

/// What the calls of one operation ended with, beside answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// The errors, each once, in the order in which they were given.
    pub errors: Vec<Error>,
    /// Whether a wait was given up.
    pub gave_up: bool,
}

impl Met {
    /// Notes how a call ended.
    pub fn note(&mut self, ending: Ending) {
        match ending {
            Ending::Error(error) if !self.errors.contains(&error) => self.errors.push(error),
            Ending::Error(_) => {}
            Ending::GivenUp => self.gave_up = true,
        }
    }
}

/// A call that has no answer yet.
struct Unanswered<N: Fn() -> Nanos, E: Fn(Ending)> {
    since: Nanos,
    now: N,
    end: E,
    over: bool,
}

impl<N: Fn() -> Nanos, E: Fn(Ending)> Drop for Unanswered<N, E> {
    fn drop(&mut self) {
        // What is dropped in the instant in which it was first polled has not been waited for.
        if !self.over && (self.now)() > self.since {
            (self.end)(Ending::GivenUp);
        }
    }
}

/// The output of `call`, whose ending `end` notes if it is no answer. `now` must not panic.
pub async fn with_ending<T>(
    call: impl Future<Output = Result<T>>,
    now: impl Fn() -> Nanos,
    end: impl Fn(Ending),
) -> Result<T> {
    let mut unanswered = Unanswered { since: now(), now, end, over: false };
    let answer = call.await;
    unanswered.over = true;
    if let Err(error) = answer {
        (unanswered.end)(Ending::Error(error));
    }
    answer
}

/// Notes how an `on_error` of this error ended: the error that it gives back is not one that its caller was
/// told.
pub fn beside(error: Error, end: impl Fn(Ending)) -> impl Fn(Ending) {
    move |ending| {
        if ending != Ending::Error(error) {
            end(ending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::{
        cell::{Cell, RefCell},
        future::{pending, ready},
    };

    #[test]
    fn a_call_ends_with_its_error_or_is_given_up_if_somebody_waited() {
        let (time, met) = (Cell::new(0), RefCell::new(Met::default()));
        let (now, note) = (|| time.get(), |ending| met.borrow_mut().note(ending));
        assert_eq!(with_ending(ready(Ok(1)), now, note).now_or_never(), Some(Ok(1)));
        // Nobody polls the first, and nobody waits for the second.
        drop(with_ending(pending::<Result<()>>(), now, note));
        assert_eq!(with_ending(pending::<Result<()>>(), now, note).now_or_never(), None);
        assert_eq!(*met.borrow(), Met::default());
        for error in [Error::NOT_COMMITTED, Error::TRANSACTION_TOO_OLD, Error::NOT_COMMITTED] {
            assert_eq!(with_ending(ready(Err::<(), _>(error)), now, note).now_or_never(), Some(Err(error)));
        }
        let given = vec![Error::NOT_COMMITTED, Error::TRANSACTION_TOO_OLD];
        assert_eq!(*met.borrow(), Met { errors: given.clone(), gave_up: false });
        let mut waits = Box::pin(with_ending(pending::<Result<()>>(), now, note));
        assert_eq!((&mut waits).now_or_never(), None);
        time.set(1);
        drop(waits);
        assert_eq!(*met.borrow(), Met { errors: given, gave_up: true });
    }
}
