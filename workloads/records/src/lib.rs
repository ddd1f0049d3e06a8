//! Workloads over the Record Layer: records, queries, ranks, feeds, index builds, evolution of meta-data.

pub mod record;
pub mod record_build;
pub mod record_evolve;
pub mod record_feed;
pub mod record_query;
pub mod record_rank;
mod record_shared;

#[cfg(not(test))]
use shaketable::entry::Entry;
use shaketable_workloads_shared::{self as shared, beside};

/// These workloads, in the order in which they are shown. Unit tests run none: their build would generate the
/// code of each once more.
#[cfg(not(test))]
pub fn entries() -> Vec<Box<dyn Entry>> {
    vec![
        record::entry(),
        record_rank::entry(),
        record_feed::entry(),
        record_query::entry(),
        record_build::entry(),
        record_evolve::entry(),
    ]
}
