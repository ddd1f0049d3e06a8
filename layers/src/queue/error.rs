//! Why a queue operation did not happen.

layer_error! {
    /// What a queue operation can fail with; nothing was changed.
    pub enum Error {
        /// The read came to items that this very transaction has enqueued in commit order: they have no
        /// key before the commit.
        #[error("items enqueued in commit order cannot be read by their own transaction")]
        OwnItemsUnreadable,
        /// Index order has come to the largest index.
        #[error("no index is left")]
        IndexesExhausted,
    }
}
