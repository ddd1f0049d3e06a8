//! What the sequential models of several workloads share.

pub mod json;
pub mod labels;
