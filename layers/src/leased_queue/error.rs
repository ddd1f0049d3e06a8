//! Why an operation on a leased queue did not happen.

use super::Hold;

layer_error! {
    /// What an operation on a leased queue can fail with; nothing was changed.
    pub enum Error {
        /// The lease was lost: it ended and somebody took the item back, or its holder gave it up or
        /// acknowledged the item himself. Another worker may hold the item by now.
        #[error("the lease is not held any more: {0}")]
        Lost(Hold),
        /// The read came to items that this very transaction has enqueued, which have no key before the
        /// commit.
        #[error("items cannot be read by the transaction that enqueued them")]
        OwnUnreadable,
    }
}
