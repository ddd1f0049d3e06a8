//! Functions that take many runs: sweeps over seeds, shrinking, exploration, and the check of determinism.

pub mod determinism;
pub mod entry;
pub mod explore;
pub mod seeds;
pub mod shake;
pub mod shrink;
