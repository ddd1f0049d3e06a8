//! Keys in a custom order: fixed-length integers and collated text, which the tuple layer does not have, and
//! a map that uses them.
//!
//! # Promise
//!
//! * Keys sort as their parts do, from the left: integers of a fixed number of bytes by value, text by code
//!   point or in the order of a language ([`Collation`]), floats in their total order.
//! * The first parts of a key form a prefix: all counties of a state, or all minutes of an hour, are one
//!   range read.
//! * Different keys have different encodings: no two lists of parts have the same encoding, whatever bytes
//!   the parts contain, and texts that are equal in a collation are stored as two keys.
//! * Reads return the parts that were written.
//!
//! # What it does not do
//!
//! * It does not keep collation keys valid across versions of the collation data: they depend on one release
//!   of `icu_collator`, whose version the workspace specifies exactly and whose data it locks. With another
//!   release, keys that were written earlier are [`Error::Foreign`] where they differ. The key contains the
//!   text, so that the keys can be rewritten.
//! * It is not the tuple layer: other programs need to know the columns to read the keys. Use the tuple
//!   layer's own order where it is sufficient.
//! * An integer that does not fit into its column is refused, not widened.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | set, delete | – | 1 | readers of the key |
//! | get | 1 key | – | writers of the key |
//! | under, between, page | 1 range | – | writers in the range |
//!
//! An integer takes the width of its column, a text three bytes more than its length, and a collated text
//! about twice that. Collations, and with them the data of `icu_collator`, require the feature `collation`,
//! which is enabled by default.
//!
//! ```
//! use shaketable_layers::encoding::{Collation, Column, Distinguishes, Error, Ordered, Part};
//! use shaketable_tx::{Isolation, Transaction};
//! use foundationdb_tuple::Subspace;
//!
//! async fn largest<T: Transaction>(tx: &T) -> Result<usize, Error> {
//!     let name = || Ok::<_, Error>(Column::Collated(Collation::new("en", Distinguishes::Case)?));
//!     let populations = Ordered::new(Subspace::from("population"), vec![name()?, name()?])?;
//!     populations.set(tx, &["Texas".into(), "Harris".into()], b"4092459").await?;
//!     let texas = populations.under(tx, &["Texas".into()], Isolation::Serializable).await?;
//!     Ok(texas.len())
//! }
//! ```

#[cfg(feature = "collation")]
mod collation;
mod error;
mod keys;
mod ops;

#[cfg(feature = "collation")]
pub use collation::{Collation, Distinguishes};
pub use error::Error;
pub use keys::{Column, Part};
pub use ops::{Ordered, Row};
