//! Errors of queue operations.

layer_error! {
    /// Why an operation on a queue failed; nothing was changed.
    pub enum Error {
        /// The read reached items that this transaction has enqueued in commit order: they have no key before
        /// the commit.
        #[error("items enqueued in commit order cannot be read by their own transaction")]
        OwnItemsUnreadable,
        /// Index order has reached the largest index.
        #[error("no index is left")]
        IndexesExhausted,
    }
}
