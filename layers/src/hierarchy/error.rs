//! Errors of operations on a nested value.

layer_error! {
    /// Why an operation on a nested value failed; nothing was changed. Locations are given as JSON Pointers.
    pub enum Error {
        /// The path continues with a member name at a value that is not an object.
        #[error("the value at {0:?} is not an object")]
        NotAnObject(String),
        /// The path continues with an index at a value that is not a list.
        #[error("the value at {0:?} is not a list")]
        NotAList(String),
        /// A list can grow only at its end.
        #[error("element {index} of the list at {at:?} would leave a gap: it has {length}")]
        Gap {
            /// The list.
            at: String,
            /// The requested element.
            index: u64,
            /// The number of elements of the list.
            length: u64,
        },
        /// Objects and lists are nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
        #[error("nested deeper than {limit}: \"{at}…\"", limit = super::MAX_DEPTH)]
        TooDeep {
            /// The beginning of the path.
            at: String,
        },
        /// A number that only serde_json's `arbitrary_precision` can hold.
        #[error("{0} is neither an integer of 64 bits nor a double")]
        Number(String),
        /// The text is not JSON; the message of serde_json.
        #[error("not JSON: {0}")]
        NotJson(String),
        /// The tuples do not form one value; the first that does not fit.
        #[error("not the tuples of one value: {0}")]
        NotAValue(String),
    }
}
