//! Why an operation on a priority queue did not happen.

use super::Place;

layer_error! {
    /// What an operation on a priority queue can fail with; nothing was changed.
    pub enum Error {
        /// Nothing is at this place: the item has left the queue, or has another priority by now.
        #[error("no item is at {0}")]
        Gone(Place),
        /// The counts of this priority have come to the largest one.
        #[error("no count is left at priority {0}")]
        CountsExhausted(i64),
    }
}
