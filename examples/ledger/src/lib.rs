//! Layers of one's own, and the workloads that shake them.

pub mod guarded;
pub mod layer;
pub mod modelled;
pub mod vouchers;
