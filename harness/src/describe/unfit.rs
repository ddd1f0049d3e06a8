//! What a workload expected and what it found instead, beside the sentence in which it says so.

use shaketable_sim::proto::Version;
use std::cell::RefCell;

/// Why an answer or the final database does not fit the model of a workload, with both sides of the
/// comparison or the operation that does not fit.
///
/// A workload returns what does not fit as a sentence. [`told`](Unfit::told) makes that sentence, and keeps
/// the rest for the finding of the judge that receives it:
///
/// ```
/// use shaketable::Unfit;
///
/// fn compare(found: u32, expected: u32) -> Result<(), String> {
///     if found == expected {
///         return Ok(());
///     }
///     let message = format!("read {found} where the model has {expected}");
///     Err(Unfit::new(message, expected.to_string(), found.to_string()).told())
/// }
///
/// assert_eq!(compare(1, 2), Err("read 1 where the model has 2".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    message: String,
    /// What the model expects, and what was found instead.
    pub(crate) sides: Option<(String, String)>,
    /// The operation, if the sentence names it: its client, and its index.
    pub(crate) operation: Option<(usize, usize)>,
    /// What contradicts the answer.
    pub(crate) cause: Cause,
}

/// What contradicts an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// What the operation read, or should have read.
    Reads,
    /// What committed at a version: it had made the answer possible.
    Commit(Version),
    /// Nothing but its time.
    Time,
}

thread_local! {
    /// The last one that was told.
    static TOLD: RefCell<Option<Unfit>> = const { RefCell::new(None) };
}

impl Unfit {
    /// What does not fit, in a sentence, and the two sides of the comparison.
    pub fn new(message: String, expected: String, found: String) -> Unfit {
        Unfit { message, sides: Some((expected, found)), operation: None, cause: Cause::Reads }
    }

    /// An operation that does not fit: its client, its index in the client's list, and a sentence that names
    /// it.
    pub fn of_operation(client: usize, index: usize, message: String) -> Unfit {
        Unfit { message, sides: None, operation: Some((client, index)), cause: Cause::Reads }
    }

    pub(crate) fn because_of(self, cause: Cause) -> Unfit {
        Unfit { cause, ..self }
    }

    /// The sentence. The judge that receives it finds the rest.
    pub fn told(self) -> String {
        let message = self.message.clone();
        TOLD.set(Some(self));
        message
    }

    /// What belongs to this sentence, if it was the last one told on this thread.
    pub(crate) fn of(message: &str) -> Option<Unfit> {
        TOLD.take().filter(|unfit| unfit.message == message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_belongs_to_one_sentence() {
        let unfit = || Unfit::new("1 is not 2".to_owned(), "2".to_owned(), "1".to_owned());
        assert_eq!(Unfit::of(&unfit().told()), Some(unfit()));
        assert_eq!(Unfit::of("1 is not 2"), None, "it was taken");
        unfit().told();
        assert_eq!(Unfit::of("another sentence"), None);
    }
}
