//! Why an operation on ordered keys did not happen.

layer_error! {
    /// What an operation on ordered keys can fail with; nothing was changed.
    pub enum Error {
        /// A key has one part for each column, and what begins a key no more than that.
        #[error("{given} parts for {columns} columns")]
        WrongParts {
            /// How many parts were given.
            given: usize,
            /// How many columns there are.
            columns: usize,
        },
        /// A part is not of its column's type.
        #[error("{part} is nothing for a column of {column}")]
        WrongType {
            /// The part.
            part: String,
            /// What the column holds.
            column: String,
        },
        /// An integer does not fit into its column's bytes.
        #[error("{part} does not fit into {bytes} bytes")]
        OutOfRange {
            /// The integer.
            part: String,
            /// The column's width.
            bytes: u8,
        },
        /// Integers have one to eight bytes.
        #[error("an integer of {0} bytes")]
        Width(u8),
        /// This names no language.
        #[error("not a locale: {0}")]
        UnknownLocale(String),
    }
}
