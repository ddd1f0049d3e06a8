//! Performs a plan on a simulated cluster, in four acts: *setup*, *hurt* (clients work, faults
//! strike, audits look), *heal* (faults end; everything pending must finish) and *check*.

mod client;
mod outcome;
mod panics;
mod perform;

pub use client::Operation;
pub use outcome::{Counters, RunResult, Verdict};
pub use panics::print_panics;
pub use perform::run;
