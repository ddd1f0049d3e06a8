//! Errors of multimap operations.

layer_error! {
    /// Why an operation on a multimap failed; nothing was changed.
    pub enum Error {
        /// There are fewer copies of the value than are to be removed.
        #[error("cannot remove {asked} copies: there are only {have}")]
        TooFew {
            /// The number of copies that exist.
            have: u64,
            /// The number of copies to remove.
            asked: u32,
        },
    }
}
