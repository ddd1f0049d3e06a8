//! The workloads of the `shaketable` command: those that shake the cluster itself, and those of the crates
//! below `workloads`, which have a folder each there, so that a changed one compiles its own crate.

use shaketable::entry::Entry;

pub mod api;
pub mod contract;
pub mod cycle;

/// Every workload, in the order of `shaketable list`.
///
/// Unit tests run none: their build would generate the code of three once more.
pub fn catalogue() -> Vec<Box<dyn Entry>> {
    #[cfg(test)]
    return Vec::new();
    #[cfg(not(test))]
    [
        vec![cycle::entry(), api::entry(), contract::entry()],
        shaketable_workloads_queues::entries(),
        shaketable_workloads_containers::entries(),
        shaketable_workloads_tables::entries(),
        shaketable_workloads_records::entries(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The entry with this name.
pub fn find(name: &str) -> Option<Box<dyn Entry>> {
    catalogue().into_iter().find(|e| e.name() == name)
}
