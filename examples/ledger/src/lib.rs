//! A layer of one's own, and two workloads that shake it.

pub mod guarded;
pub mod layer;
pub mod modelled;
