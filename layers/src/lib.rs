//! FoundationDB layers written against an abstract transaction contract.
//!
//! [`shaketable_tx`] is the contract: two traits that cover the part of the FoundationDB client API that
//! layers need. The modules built on it are layers, generic over [`Transaction`](shaketable_tx::Transaction),
//! so that the same code runs on the simulated cluster and on a real one. A layer has no clock, random number
//! generator or runtime of its own; the backend provides these through [`Env`](shaketable_tx::Env).
//!
//! # Calls side by side
//!
//! Calls whose futures are joined in one transaction take turns, in the order in which they were first
//! polled, whichever layers they belong to: their effects and answers are those of calls one after the other.
//! Calls that only read run concurrently. A call that has begun must be polled to its end or dropped before a
//! later one goes on.
//!
//! # Dropping a future
//!
//! A function that takes a transaction acts only through that transaction. If its future is dropped, some of
//! its writes may remain in the transaction, which must then not be committed. A function that takes a
//! database or a [`Session`](shaketable_tx::once::Session) runs its own transactions, and its documentation
//! states what dropping its future means.

#![allow(
    clippy::manual_async_fn,
    reason = "a plain async fn that borrows into `Database::run` is not Send (rust-lang/rust#100013)"
)]

#[macro_use]
mod macros;

pub mod array;
pub mod blob;
pub mod bulk;
mod canonical;
pub mod counter;
pub mod directory;
pub mod document;
pub mod encoding;
pub mod entity;
pub mod graph;
pub mod hierarchy;
pub mod id;
pub mod index;
pub mod label;
pub mod leased_queue;
pub mod list;
pub mod log;
pub mod multimap;
pub mod priority_queue;
pub mod queue;
pub mod scheduling;
pub mod staged_queue;
pub mod table;
pub mod vector;

use shaketable_tx as tx;
use shaketable_tx::{limits, nesting, once, reachable, read, sometimes};
