//! Functions that are written against the crate `foundationdb`, and the workloads that shake them.

pub mod sale;
pub mod shop;
