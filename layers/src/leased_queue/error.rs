//! Errors of leased queue operations.

use super::Hold;

layer_error! {
    /// Why an operation on a leased queue failed; nothing was changed.
    pub enum Error {
        /// The lease was lost: it ended and the item was given back, or its holder released or acknowledged
        /// the item. Another worker may hold the item now.
        #[error("the lease is not held any more: {0}")]
        Lost(Hold),
        /// The read reached items that this transaction has enqueued, which have no key before the commit.
        #[error("items cannot be read by the transaction that enqueued them")]
        OwnUnreadable,
    }
}
