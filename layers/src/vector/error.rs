//! Errors of vector operations.

layer_error! {
    /// Why an operation on a vector failed; nothing was changed.
    pub enum Error {
        /// Indexes and sizes start at 0: a negative index would sort before all others, and the size would
        /// not count it.
        #[error("the index or size {0} is negative")]
        Negative(i64),
        /// The element does not exist: the vector is shorter.
        #[error("the index {index} is out of range: the vector has {size} elements")]
        OutOfRange {
            /// The requested index.
            index: i64,
            /// The number of elements.
            size: i64,
        },
        /// The largest integer is not a valid index: the size would be one more.
        #[error("a vector has at most {} elements", i64::MAX)]
        Full,
        /// A scan returns every element, including holes, which take no space.
        #[error("a scan of {elements} elements, of which {limit} are allowed")]
        ScanTooLong {
            /// The number of elements that it would return.
            elements: i64,
            /// The maximum number.
            limit: i64,
        },
    }
}
