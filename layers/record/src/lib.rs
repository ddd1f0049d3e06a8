//! The Record Layer: records are protobuf messages, kept in FoundationDB with their indexes.
//!
//! A record store holds records of several types under their primary keys, and keeps indexes up to date in
//! the transaction that writes a record. Meta-data describes both; queries use the indexes. The design, and
//! where it states them the keys and bytes, are those of FoundationDB's Record Layer for Java.
//!
//! * [`metadata`]: record types, primary keys and indexes, from `.proto` text and its options; how they may
//!   change.
//! * [`expression`]: key expressions, from a record to the keys of an index.
//! * [`store`]: the record context and the record store: save, load, delete, scan.
//! * [`index`]: the maintainers of indexes by value, rank and version, and of aggregates; online builds;
//!   scrubbing.
//! * [`query`]: queries, their planner, and plans that can be explained and executed.
//! * [`cursor`]: rows with continuations and limits.
//!
//! Everything is generic over [`tx::Transaction`](shaketable_tx::Transaction): it runs on a simulated cluster
//! and on a real one, and composes with other layers in one transaction.
//! [`RecordStoreBuilder::run`](store::RecordStoreBuilder::run) applies a transaction exactly once. Indexes of
//! text are not part of it.

#![allow(
    clippy::manual_async_fn,
    reason = "a plain async fn that borrows into `Database::run` is not Send (rust-lang/rust#100013)"
)]

pub mod cursor;
pub mod error;
pub mod expression;
pub mod index;
pub mod metadata;
pub mod query;
pub mod store;
pub mod value;
pub mod version;

/// The messages of records are those of this crate.
pub use prost_reflect;

/// What an application names most.
pub mod prelude {
    pub use crate::{
        cursor::{Continuation, Cursor, CursorExt, Limits},
        error::Error,
        expression::{KeyExpression, concat, concatenate_fields, field},
        metadata::{Index, RecordMetaData, compile, index_types},
        query::{Query, RecordQuery},
        store::{RecordContext, RecordStore, StoredRecord},
        value::Tuple,
    };
    pub use foundationdb_tuple::Subspace;
    pub use prost_reflect::{DynamicMessage, ReflectMessage, Value};
    pub use shaketable_tx::once::Outcome;
}
