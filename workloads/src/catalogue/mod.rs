//! The workloads of the `shaketable` command: the list of them, and those that shake the cluster itself. The
//! others have a folder each in the crates below `workloads`, so that a changed one compiles its own crate.

use shaketable::entry::Entry;

pub mod api;
pub mod contract;
pub mod cycle;

use shaketable_workloads_containers as containers;
use shaketable_workloads_queues as queues;
use shaketable_workloads_records as records;
use shaketable_workloads_tables as tables;

/// Names the workloads of the other crates here, and lists all, after those of this one.
macro_rules! workloads {
    ($($group:ident::$name:ident,)+) => {
        $(pub use $group::$name;)+

        /// Every workload, in the order of `shaketable list`.
        ///
        /// Unit tests run none: their build would generate the code of every workload once more.
        pub fn catalogue() -> Vec<Box<dyn Entry>> {
            #[cfg(test)]
            return Vec::new();
            #[cfg(not(test))]
            vec![cycle::entry(), api::entry(), contract::entry(), $($name::entry()),+]
        }
    };
}

workloads! {
    queues::queue,
    queues::scheduling,
    tables::index,
    containers::array,
    containers::list,
    containers::vector,
    tables::graph,
    tables::entity,
    containers::blob,
    containers::upload,
    tables::multimap,
    tables::table,
    tables::directory,
    tables::hierarchy,
    tables::document,
    queues::priority_queue,
    queues::session,
    queues::staged_queue,
    queues::leased_queue,
    queues::bulk,
    containers::counter,
    containers::log,
    containers::encoding,
    records::record,
    records::record_rank,
    records::record_feed,
    records::record_query,
    records::record_build,
    records::record_evolve,
}

/// The entry with this name.
pub fn find(name: &str) -> Option<Box<dyn Entry>> {
    catalogue().into_iter().find(|e| e.name() == name)
}
