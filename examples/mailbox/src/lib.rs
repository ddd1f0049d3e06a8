//! A layer whose operations span several transactions and wait on watches, and the workload that shakes it.

pub mod layer;
mod planted;
pub mod workload;
