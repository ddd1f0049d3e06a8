//! Parts of sequential models: what a workload's operations would do and answer one after another.
//!
//! A model knows nothing of transactions' retries, clients or clusters. A workload replays its
//! operations through one in commit order and compares the answers.

pub mod keyspace;
pub mod timeline;
