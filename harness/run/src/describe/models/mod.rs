//! Parts of sequential models, which define what operations do and return when they run one after another.
//!
//! A model does not depend on retries, clients or clusters. A workload replays its operations through a model
//! in commit order and compares the answers.

pub mod keyspace;
pub mod timeline;
