//! Errors of linked list operations.

use crate::id::Id;

layer_error! {
    /// Why an operation on a linked list failed; nothing was changed.
    pub enum Error {
        /// The node is not, or no longer, in the list.
        #[error("there is no node {0}")]
        NoSuchNode(Id),
        /// A node with this id is in the list already.
        #[error("there is a node {0} already")]
        NodeExists(Id),
        /// The next node is not the one that the caller expects.
        #[error("{node} is followed by {}, not by {}", or_end(found), or_end(expected))]
        NextChanged {
            /// The node.
            node: Id,
            /// The expected next node.
            expected: Option<Id>,
            /// The actual next node.
            found: Option<Id>,
        },
        /// This name is reserved for the link to the next node.
        #[error("the attribute {0:?} is the link to the next node")]
        ReservedAttribute(String),
        /// A longer walk would exceed the five-second limit of a transaction.
        #[error("a walk of more than {0} nodes")]
        WalkTooLong(usize),
        /// A link leads to a node that does not exist: the subspace contains data of another writer.
        #[error("a link leads to {0}, which does not exist")]
        Dangling(Id),
        /// The links lead back to this node: the subspace contains data of another writer.
        #[error("the links come back to {0}")]
        Cycle(Id),
    }
}

fn or_end(id: &Option<Id>) -> String {
    id.as_ref().map_or("the end".into(), Id::to_string)
}
