//! Faults: events that affect machines, and events that FoundationDB's contract allows at any time.
//!
//! A seed draws a [`FaultPlan`]: plain data, which can be printed, saved, edited and reduced. It contains
//! timed [`Strike`]s for events that affect machines, and a rate for each family of events that the contract
//! allows. It can also contain [`Decision`]s, which are such events at one opportunity each, an order in
//! which requests are made, and clients that die at a commit ([`Step`], [`Death`]). Every family documents
//! what FoundationDB promises under it and what limits it; no family may destroy the last copy of data. While
//! [`Faults`] is off (setup, heal, check), no fault occurs.

mod catalogue;
mod client_death;
mod clock_skew;
mod clog;
mod contract;
mod decision;
mod departure;
pub mod draws;
mod driver;
mod dropped_operation;
mod families;
mod family;
mod kill;
mod lagging_storage;
mod latency;
mod locked;
mod loss;
mod move_shard;
mod order;
mod partition;
mod pause;
mod plan;
mod reboot;
mod short_lifetime;
mod slow_log_sync;
mod slow_storage;
mod state;
mod strikes;
mod swizzle;
mod turn;
mod victims;
mod window_edge;

pub use catalogue::catalogue;
pub use decision::{Decision, Occurrence};
pub use draws::Cut;
pub use driver::{begin, heal};
pub use families::Family;
pub use family::{Dosage, FaultFamily};
pub use order::{COMEBACK, LONGEST_HOLD, Requests};
pub use state::Faults;
pub use strikes::{Death, FaultPlan, Profile, Request, Step, Strike};
pub(crate) use turn::Turn;
pub use victims::Struck;
