//! Why an operation on a staged queue did not happen.

layer_error! {
    /// What an operation on a staged queue can fail with; nothing was changed.
    pub enum Error {
        /// The read came to what this very transaction has appended, which has no key before the commit.
        #[error("items and requests cannot be read by the transaction that appended them")]
        OwnUnreadable,
    }
}
