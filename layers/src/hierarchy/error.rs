//! Why an operation on a nested value did not happen.

layer_error! {
    /// What an operation on a nested value can fail with; nothing was changed. Places are JSON Pointers.
    pub enum Error {
        /// The path goes through a member of something that has no members.
        #[error("what is at {0:?} is no object")]
        NotAnObject(String),
        /// The path goes through an element of something that has no elements.
        #[error("what is at {0:?} is no list")]
        NotAList(String),
        /// A list grows at its end only.
        #[error("element {index} of the list at {at:?} would leave a gap: it has {length}")]
        Gap {
            /// The list.
            at: String,
            /// The element that was named.
            index: u64,
            /// How many elements the list has.
            length: u64,
        },
        /// Objects and lists are nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
        #[error("nested deeper than {limit}: \"{at}…\"", limit = super::MAX_DEPTH)]
        TooDeep {
            /// How the path begins.
            at: String,
        },
        /// A number that only serde_json's `arbitrary_precision` can hold.
        #[error("{0} is neither an integer of 64 bits nor a double")]
        Number(String),
        /// A text is not JSON; what serde_json says of it.
        #[error("not JSON: {0}")]
        NotJson(String),
        /// Tuples that no value is taken apart into; this is the first that does not fit.
        #[error("not of one value: {0}")]
        NotAValue(String),
    }
}
