//! Errors of entity operations.

use super::Cardinality;
use crate::id::Id;

layer_error! {
    /// Why an operation on entities failed; nothing was changed.
    pub enum Error {
        /// The relationship was not declared: a deletion would not find its pairs.
        #[error("the relationship {0:?} is not declared")]
        UnknownRelationship(String),
        /// The pair would exceed the relationship's cardinality.
        #[error("{relationship:?} is {cardinality}: {entity} is related to {related} already")]
        Cardinality {
            /// The relationship.
            relationship: String,
            /// The relationship's cardinality.
            cardinality: Cardinality,
            /// The entity that can be related to only one other.
            entity: Id,
            /// The entity to which it is related.
            related: Id,
        },
    }
}
