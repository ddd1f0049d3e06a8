//! Errors of counter operations.

layer_error! {
    /// Why an operation on a counter failed; nothing was changed.
    pub enum Error {
        /// The change would move the counter out of the given bounds.
        #[error("{value} changed by {by} is not in {least}..={most}")]
        OutOfBounds {
            /// The counter's value.
            value: i64,
            /// The change.
            by: i64,
            /// The lower bound.
            least: i64,
            /// The upper bound.
            most: i64,
        },
        /// The sum of the parts of a split counter does not fit in 64 bits.
        #[error("the counter adds up to {0}, which 64 bits do not hold")]
        Overflow(i128),
    }
}
