//! Performs a plan in four acts ([`acts`]): *setup*, *hurt* (clients work, faults strike, audits read the
//! invariants), *heal* (faults end and every pending operation must finish) and *check*. The acts are the
//! same on a simulated cluster ([`simulated`]) and on a real one ([`real`](crate::run::real)).

mod acts;
mod audit;
mod client;
mod count;
mod ends;
mod host;
mod judging;
mod observation;
mod performed;
mod phase;
mod result;
mod run_history;
mod simulated;
mod supervise;
mod testbed;
mod watchdog;

pub(crate) use acts::perform;
pub(crate) use audit::{Audits, audit};
pub(crate) use client::{Client, Participants, run_client};
pub use ends::written;
pub(crate) use host::Host;
pub use observation::{Done, Ended, Observation, Observer, kind};
pub use performed::Performed;
pub use result::RunResult;
pub(crate) use run_history::with_witness;
pub use run_history::{Recorded, Words, of_entries};
pub use simulated::{observe, run, run_otherwise};
pub(crate) use supervise::supervised;
pub use testbed::AUDITOR;
pub(crate) use testbed::{Act, Job, SETTER, Testbed};
pub(crate) use watchdog::watched;
