//! Why an operation on entities did not happen.

use super::Cardinality;
use crate::id::Id;

layer_error! {
    /// What an operation on entities can fail with; nothing was changed.
    pub enum Error {
        /// The relationship was not declared: a deletion could not find it.
        #[error("the relationship {0:?} is not declared")]
        UnknownRelationship(String),
        /// One more would be one too many.
        #[error("{relationship:?} is {cardinality}: {entity} is related to {related} already")]
        Cardinality {
            /// The relationship.
            relationship: String,
            /// What it allows.
            cardinality: Cardinality,
            /// The entity that can be related to one other only.
            entity: Id,
            /// The one it is related to.
            related: Id,
        },
    }
}
