//! The Record Layer: records are protobuf messages, kept in FoundationDB with their indexes.
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
