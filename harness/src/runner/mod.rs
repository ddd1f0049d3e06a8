//! Performs a plan on a simulated cluster, in four acts: *setup*, *hurt* (clients work, faults
//! strike, audits look), *heal* (faults end; everything pending must finish) and *check*.

mod audit;
mod client;
mod outcome;
mod panics;
mod perform;
mod reckon;
mod stage;
mod watchdog;

pub(crate) use audit::{Audits, audit};
pub use client::Operation;
pub(crate) use client::{Job, Progress, live};
pub use outcome::{Counters, RunResult, Verdict};
pub use panics::print_panics;
pub(crate) use panics::words;
pub use perform::run;
pub(crate) use perform::{AUDITOR, CHECKER, SETTER};
#[cfg(feature = "fdb-client")]
pub(crate) use reckon::heard;
pub(crate) use reckon::{count, judge, something_may_land};
pub(crate) use stage::Stage;
