//! Entities with attributes, and relationships between them whose cardinalities are enforced.
//!
//! # Promise
//!
//! * An attribute holds the value that was set last. An empty value is a value.
//! * A relationship is a set of pairs of a primary entity and a foreign one. Adding a pair twice has the same
//!   effect as adding it once. Each pair can be found from both sides: the inverse index changes in the same
//!   transaction.
//! * A [`Cardinality`] holds under concurrency too: if an entity may be related to only one other, a second
//!   one is refused with [`Error::Cardinality`], which contains the existing one.
//! * [`delete_entity`](Entities::delete_entity) leaves no attributes, and no pairs on either side.
//! * Setting attributes, removing pairs, and adding pairs of many-to-many relationships require no read: such
//!   operations never conflict.
//! * Through [`Session::apply`](crate::once::Session::apply) operations take effect exactly once.
//! * A call that would read more than [`READ_LIMIT`](crate::limits::READ_LIMIT) bytes is refused;
//!   [`get_relationships_page`](Entities::get_relationships_page) and
//!   [`get_related_entities_page`](Entities::get_related_entities_page) read any number of pairs in pages.
//!
//! # What it does not do
//!
//! * It keeps no list of entities: an entity exists through the data stored about it, and writing data about
//!   a deleted entity creates it again.
//! * It does not find entities by the value of an attribute; use an index.
//! * Relationships are declared by the program, not stored; all clients must declare the same ones. A
//!   deletion searches only the declared ones.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | add attribute value, remove attribute | – | 1 | readers of the attribute |
//! | get attribute value, is related entity | 1 key | – | writers of it |
//! | get attributes, get related entities, get relationships, and their pages | 1 range | – | writers of the range |
//! | add relationship | 1 row for each side that is limited | 2 | pairs of the limited entity |
//! | remove relationship | – | 2 | readers of the pair |
//! | delete entity | 2 ranges for each relationship | these ranges, the attributes, 1 for each pair | its pairs |
//!
//! ```
//! use shaketable_layers::{entity::{Direction, Entities, Error}, id::Id};
//! use shaketable_tx::{Isolation, Transaction};
//! use std::collections::BTreeSet;
//!
//! async fn members<T: Transaction>(tx: &T, er: &Entities) -> Result<BTreeSet<Id>, Error> {
//!     // Declared with `Entities::new(subspace, [("belongs_to", Cardinality::ManyToMany)])`.
//!     let (smith, tennis) = ("smith".into(), "tennis".into());
//!     er.add_attribute_value(tx, &smith, "region", b"north").await?;
//!     er.add_relationship(tx, "belongs_to", &smith, &tennis).await?;
//!     er.get_related_entities(tx, "belongs_to", Direction::Inverse, &tennis, Isolation::Serializable).await
//! }
//! ```

mod error;
mod keys;
mod ops;

pub use error::Error;
pub use ops::{Cardinality, Direction, Entities};
