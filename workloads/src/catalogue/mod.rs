//! The workloads of the `shaketable` command: the list of them, and those that shake the cluster itself. The
//! others have a folder each in the crates below `workloads`, so that a changed one compiles its own crate.

use shaketable::entry::Entry;

pub mod api;
pub mod contract;
pub mod cycle;

pub use shaketable_workloads_containers::{array, blob, counter, encoding, list, log, upload, vector};
pub use shaketable_workloads_queues::{
    bulk, leased_queue, priority_queue, queue, scheduling, session, staged_queue,
};
pub use shaketable_workloads_records::{
    record, record_build, record_evolve, record_feed, record_query, record_rank,
};
pub use shaketable_workloads_tables::{
    directory, document, entity, graph, hierarchy, index, multimap, table,
};

/// Every workload, in the order of `shaketable list`.
#[cfg(not(test))]
pub fn catalogue() -> Vec<Box<dyn Entry>> {
    vec![
        cycle::entry(),
        api::entry(),
        contract::entry(),
        queue::entry(),
        scheduling::entry(),
        index::entry(),
        array::entry(),
        list::entry(),
        vector::entry(),
        graph::entry(),
        entity::entry(),
        blob::entry(),
        upload::entry(),
        multimap::entry(),
        table::entry(),
        directory::entry(),
        hierarchy::entry(),
        document::entry(),
        priority_queue::entry(),
        session::entry(),
        staged_queue::entry(),
        leased_queue::entry(),
        bulk::entry(),
        counter::entry(),
        log::entry(),
        encoding::entry(),
        record::entry(),
        record_rank::entry(),
        record_feed::entry(),
        record_query::entry(),
        record_build::entry(),
        record_evolve::entry(),
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
