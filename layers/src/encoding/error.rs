//! Errors of operations on ordered keys.

layer_error! {
    /// Why an operation on ordered keys failed; nothing was changed.
    pub enum Error {
        /// A key must have one part for each column, and the prefix of a key at most that many.
        #[error("{given} parts for {columns} columns")]
        WrongParts {
            /// How many parts were given.
            given: usize,
            /// How many columns there are.
            columns: usize,
        },
        /// A part is not of its column's type.
        #[error("{part} does not match a column of {column}")]
        WrongType {
            /// The part.
            part: String,
            /// The type of the column.
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
        /// The name is not a valid locale.
        #[error("not a locale: {0}")]
        UnknownLocale(String),
    }
}
