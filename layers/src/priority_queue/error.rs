//! Errors of priority queue operations.

use super::Place;

layer_error! {
    /// Why an operation on a priority queue failed; nothing was changed.
    pub enum Error {
        /// There is no item at this place: it has left the queue, or now has another priority.
        #[error("no item is at {0}")]
        Gone(Place),
        /// The count of this priority has reached its maximum.
        #[error("no count is left at priority {0}")]
        CountsExhausted(i64),
    }
}
