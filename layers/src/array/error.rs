//! Why an operation on an array did not happen.

layer_error! {
    /// What an operation on an array can fail with; nothing was changed.
    pub enum Error {
        /// Indexes begin at 0: a negative one would sort before all others and be found by none.
        #[error("the index {0} is negative")]
        NegativeIndex(i64),
        /// An index has as many parts as the array has dimensions.
        #[error("an index of {given} parts into an array of {dimensions} dimensions")]
        WrongDimensions {
            /// How many parts were given.
            given: usize,
            /// How many dimensions the array has.
            dimensions: usize,
        },
    }
}
