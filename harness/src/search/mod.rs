//! What takes many runs: seeds, shrinking, exploration, and the check that one seed gives one run.

pub mod determinism;
pub mod entry;
pub mod explore;
pub mod seeds;
pub mod shake;
pub mod shrink;
