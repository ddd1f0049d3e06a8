//! Errors of array operations.

layer_error! {
    /// Why an operation on an array failed; nothing was changed.
    pub enum Error {
        /// Indexes start at 0: a negative index would sort before all others, and reads would not find it.
        #[error("the index {0} is negative")]
        NegativeIndex(i64),
        /// The number of parts of an index differs from the number of dimensions.
        #[error("an index of {given} parts into an array of {dimensions} dimensions")]
        WrongDimensions {
            /// How many parts were given.
            given: usize,
            /// How many dimensions the array has.
            dimensions: usize,
        },
    }
}
