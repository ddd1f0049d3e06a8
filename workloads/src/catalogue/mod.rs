//! The workloads of the `shaketable` command: one folder for each, and the list of them.

use shaketable::entry::Entry;
#[cfg(not(test))]
use shaketable::{entry::entry, specimen::Mounted};

pub mod api;
pub mod array;
pub mod blob;
pub mod bulk;
pub mod contract;
pub mod counter;
pub mod cycle;
pub mod directory;
pub mod document;
pub mod encoding;
pub mod entity;
pub mod graph;
pub mod hierarchy;
pub mod index;
pub mod leased_queue;
pub mod list;
pub mod log;
pub mod multimap;
pub mod priority_queue;
pub mod queue;
pub mod record;
pub mod record_build;
pub mod record_evolve;
pub mod record_feed;
pub mod record_query;
pub mod record_rank;
mod record_shared;
pub mod scheduling;
pub mod session;
mod shared;
pub mod staged_queue;
pub mod table;
pub mod upload;
pub mod vector;

/// Every workload, in the order of `shaketable list`.
#[cfg(not(test))]
pub fn catalogue() -> Vec<Box<dyn Entry>> {
    vec![
        entry::<cycle::Cycle>(),
        entry::<api::Api>(),
        entry::<contract::Contract>(),
        entry::<Mounted<queue::Queue>>(),
        entry::<Mounted<scheduling::Signups>>(),
        entry::<Mounted<index::Index>>(),
        entry::<Mounted<array::Array>>(),
        entry::<Mounted<list::List>>(),
        entry::<Mounted<vector::Vector>>(),
        entry::<Mounted<graph::Graph>>(),
        entry::<Mounted<entity::Entity>>(),
        entry::<Mounted<blob::Blob>>(),
        entry::<upload::Upload>(),
        entry::<Mounted<multimap::Multimap>>(),
        entry::<Mounted<table::Table>>(),
        entry::<Mounted<directory::Directory>>(),
        entry::<Mounted<hierarchy::Hierarchy>>(),
        entry::<Mounted<document::Document>>(),
        entry::<Mounted<priority_queue::Queue>>(),
        entry::<session::Sessions>(),
        entry::<staged_queue::Staged>(),
        entry::<leased_queue::Leased>(),
        entry::<bulk::Bulk>(),
        entry::<Mounted<counter::Counter>>(),
        entry::<Mounted<log::Log>>(),
        entry::<Mounted<encoding::Encoding>>(),
        entry::<Mounted<record::Records>>(),
        entry::<Mounted<record_rank::Ranks>>(),
        entry::<record_feed::Feeds>(),
        entry::<record_query::Queries>(),
        entry::<record_build::RecordBuild>(),
        entry::<record_evolve::RecordEvolve>(),
    ]
}

/// The workloads of the unit tests, which run none: their build would generate the code of every workload
/// once more.
#[cfg(test)]
pub fn catalogue() -> Vec<Box<dyn Entry>> {
    Vec::new()
}

/// The entry with this name.
pub fn find(name: &str) -> Option<Box<dyn Entry>> {
    catalogue().into_iter().find(|e| e.name() == name)
}
