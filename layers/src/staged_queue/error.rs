//! Errors of staged queue operations.

layer_error! {
    /// Why an operation on a staged queue failed; nothing was changed.
    pub enum Error {
        /// The read reached rows that this transaction has appended, which have no key before the commit.
        #[error("items and requests cannot be read by the transaction that appended them")]
        OwnUnreadable,
    }
}
