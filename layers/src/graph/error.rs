//! Errors of graph operations.

use crate::id::Id;

layer_error! {
    /// Why an operation on a graph failed; nothing was changed.
    pub enum Error {
        /// A user cannot be their own friend or follower.
        #[error("{0} cannot be connected with itself")]
        SelfEdge(Id),
    }
}
