//! Workloads over queues, exactly-once sessions, and jobs of many transactions.

pub mod bulk;
pub mod leased_queue;
pub mod priority_queue;
pub mod queue;
pub mod scheduling;
pub mod session;
pub mod staged_queue;

use shaketable_workloads_shared::{self as shared, beside};
