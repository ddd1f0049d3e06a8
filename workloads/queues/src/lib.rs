//! Workloads over queues, exactly-once sessions, and jobs of many transactions.

pub mod bulk;
pub mod leased_queue;
pub mod priority_queue;
pub mod queue;
pub mod scheduling;
pub mod session;
pub mod staged_queue;

#[cfg(not(test))]
use shaketable::entry::Entry;
use shaketable_workloads_shared::{self as shared, beside};

/// These workloads, in the order in which they are shown. Unit tests run none: their build would generate the
/// code of each once more.
#[cfg(not(test))]
pub fn entries() -> Vec<Box<dyn Entry>> {
    vec![
        queue::entry(),
        scheduling::entry(),
        priority_queue::entry(),
        session::entry(),
        staged_queue::entry(),
        leased_queue::entry(),
        bulk::entry(),
    ]
}
