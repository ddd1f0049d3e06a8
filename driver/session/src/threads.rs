//! The threads of a program, by the order in which they created their first transactions: what the reports of
//! a run tell apart.

use crate::quiescence::Caller;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The number of a thread: how many had created a transaction before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadNumber(pub u32);

/// The threads so far.
#[derive(Default)]
pub struct ThreadNumbers(Mutex<Vec<Caller>>);

impl ThreadNumbers {
    /// The number of this thread.
    pub fn this(&self) -> ThreadNumber {
        let (this, mut threads) = (Caller::this(), self.0.lock());
        // Most often it is one of the last.
        let known = threads.iter().rposition(|thread| *thread == this);
        let number = known.unwrap_or_else(|| {
            threads.push(this);
            threads.len() - 1
        });
        ThreadNumber(number as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_number() {
        let numbers = ThreadNumbers::default();
        assert_eq!(numbers.this(), ThreadNumber(0));
        let other = std::thread::scope(|scope| scope.spawn(|| numbers.this()).join());
        assert_eq!(other.expect("it does not panic"), ThreadNumber(1));
        assert_eq!(numbers.this(), ThreadNumber(0));
    }
}
