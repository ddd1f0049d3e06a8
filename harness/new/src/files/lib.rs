//! A layer, and the workload that shakes it.

pub mod layer;
pub mod workload;
