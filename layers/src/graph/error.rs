//! Why an operation on a graph did not happen.

use crate::id::Id;

layer_error! {
    /// What an operation on a graph can fail with; nothing was changed.
    pub enum Error {
        /// Nobody is their own friend, nor their own follower.
        #[error("{0} cannot be connected with itself")]
        SelfEdge(Id),
    }
}
