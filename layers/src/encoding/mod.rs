//! Keys in an order of your own: encodings that the tuple layer does not give, and a map that uses them.
//!
//! # Promise
//!
//! * Keys sort as their parts do, from the left: integers of a fixed number of bytes by value, text by code
//!   point or as a language has it ([`Collation`]), floats in their total order.
//! * What begins a key is a prefix: all counties of a state, all minutes of an hour are one range read.
//! * Different keys are different: no two lists of parts have one encoding, whatever bytes the parts
//!   contain, and a text that a collation does not tell from another is kept beside it.
//! * What is read back are the parts that were written.
//!
//! # What it does not do
//!
//! * It does not keep collation keys across versions of the collation's data: they are those of one release
//!   of `icu_collator`, which the workspace names exactly, and whose data it locks. Under another one, keys
//!   that were written earlier are [`Error::Foreign`] where they differ. The text is in the key, so that
//!   they can be written anew.
//! * It is no tuple: other programs need the columns to read the keys. Where the tuple layer's own order
//!   will do, use that.
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
//! An integer takes its column's bytes, text three more than it has, a collated one about twice that. Collations, and with
//! them the data of `icu_collator`, are behind the feature `collation`, which is on by default.
//!
//! ```
//! use shaketable_layers::encoding::{Collation, Column, Error, Ordered, Part, Tells};
//! use shaketable_layers::tx::{Isolation, Transaction};
//! use foundationdb_tuple::Subspace;
//!
//! async fn largest<T: Transaction>(tx: &T) -> Result<usize, Error> {
//!     let name = || Ok::<_, Error>(Column::Collated(Collation::new("en", Tells::Case)?));
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
pub use collation::{Collation, Tells};
pub use error::Error;
pub use keys::{Column, Part};
pub use ops::{Ordered, Row};
