//! Functions that take many runs: sweeps over seeds, shrinking, when a failure became certain, exploration,
//! the check of determinism, and foreign bytes.

pub mod determinism;
pub mod entry;
pub mod explore;
pub mod foreign;
pub mod seeds;
pub mod shake;
pub mod shrink;
pub mod when;
