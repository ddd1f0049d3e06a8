//! Why an operation on a multimap did not happen.

layer_error! {
    /// What an operation on a multimap can fail with; nothing was changed.
    pub enum Error {
        /// There are fewer copies of the value than are to be removed.
        #[error("{asked} copies are to be removed, {have} are there")]
        TooFew {
            /// How many are there.
            have: u64,
            /// How many were to be removed.
            asked: u32,
        },
    }
}
