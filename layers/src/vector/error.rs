//! Why an operation on a vector did not happen.

layer_error! {
    /// What an operation on a vector can fail with; nothing was changed.
    pub enum Error {
        /// Indexes and sizes begin at 0: a negative one would sort before all others and be counted by none.
        #[error("the index or size {0} is negative")]
        Negative(i64),
        /// There is no such element: the vector is shorter.
        #[error("the index {index} is out of range: the vector has {size} elements")]
        OutOfRange {
            /// The index asked for.
            index: i64,
            /// How many elements there are.
            size: i64,
        },
        /// The largest integer is no index: the size would be one more.
        #[error("a vector has at most {} elements", i64::MAX)]
        Full,
        /// A scan answers with every element, also those that cost nothing to store.
        #[error("a scan of {elements} elements, of which {limit} are allowed")]
        ScanTooLong {
            /// How many it would answer with.
            elements: i64,
            /// How many it may.
            limit: i64,
        },
    }
}
