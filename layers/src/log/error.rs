//! Why an operation on a log did not happen.

layer_error! {
    /// What an operation on a log can fail with; nothing was changed.
    pub enum Error {
        /// The read came to entries that this very transaction has appended: they have no key before the
        /// commit.
        #[error("entries cannot be read by the transaction that appends them")]
        OwnEntriesUnreadable,
    }
}
