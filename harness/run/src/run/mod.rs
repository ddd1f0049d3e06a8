//! One run: the plan that a seed draws, and how it is performed, on a simulated cluster or on a real one.

pub mod allocations;
pub mod calm;
pub mod plan;
pub mod pool;
pub mod real;
pub mod regressions;
pub mod runner;
