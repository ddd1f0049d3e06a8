//! Errors of log operations.

layer_error! {
    /// Why an operation on a log failed; nothing was changed.
    pub enum Error {
        /// The read reached entries that this transaction has appended: they have no key before the commit.
        #[error("entries cannot be read by the transaction that appends them")]
        OwnEntriesUnreadable,
    }
}
