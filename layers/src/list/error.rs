//! Why an operation on a linked list did not happen.

use crate::id::Id;

layer_error! {
    /// What an operation on a linked list can fail with; nothing was changed.
    pub enum Error {
        /// The node is not in the list, or not any more.
        #[error("there is no node {0}")]
        NoSuchNode(Id),
        /// A node of this id is in the list.
        #[error("there is a node {0} already")]
        NodeExists(Id),
        /// The node that follows is not the one that the caller expects.
        #[error("behind {node} comes {}, not {}", or_end(found), or_end(expected))]
        NextChanged {
            /// The node.
            node: Id,
            /// What should follow it.
            expected: Option<Id>,
            /// What does.
            found: Option<Id>,
        },
        /// The link to the next node is stored under this name.
        #[error("the attribute {0:?} is the link to the next node")]
        ReservedAttribute(String),
        /// A walk of more nodes does not end within the five seconds of a transaction.
        #[error("a walk of more than {0} nodes")]
        WalkTooLong(usize),
        /// A link leads to a node that does not exist: something else has written below the subspace.
        #[error("a link leads to {0}, which does not exist")]
        Dangling(Id),
        /// The links come back to this node: something else has written below the subspace.
        #[error("the links come back to {0}")]
        Cycle(Id),
    }
}

fn or_end(id: &Option<Id>) -> String {
    id.as_ref().map_or("the end".into(), Id::to_string)
}
