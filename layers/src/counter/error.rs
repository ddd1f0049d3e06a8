//! Why an operation on a counter did not happen.

layer_error! {
    /// What an operation on a counter can fail with; nothing was changed.
    pub enum Error {
        /// The change would take the counter out of the bounds it was given.
        #[error("{value} changed by {by} is not in {least}..={most}")]
        OutOfBounds {
            /// What the counter says.
            value: i64,
            /// The change.
            by: i64,
            /// The lower bound.
            least: i64,
            /// The upper bound.
            most: i64,
        },
        /// The parts of a split counter add up to more, or less, than 64 bits hold.
        #[error("the counter adds up to {0}, which 64 bits do not hold")]
        Overflow(i128),
    }
}
