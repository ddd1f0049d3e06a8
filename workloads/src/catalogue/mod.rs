//! The workloads of the `shaketable` command: one folder for each, and the list of them.

use shaketable::{
    entry::{Entry, entry},
    specimen::Mounted,
};

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

/// The entry with this name.
pub fn find(name: &str) -> Option<Box<dyn Entry>> {
    catalogue().into_iter().find(|e| e.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::config::ClusterBug;

    #[test]
    fn names_are_unique_and_every_folder_is_listed() {
        let listed: Vec<_> = catalogue().iter().map(|e| e.name()).collect();
        let mut unique = listed.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), listed.len());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalogue");
        let entries = std::fs::read_dir(folder).expect("the catalogue");
        for file in entries {
            let path = file.expect("a file of it").path();
            let name = path.file_name().and_then(|s| s.to_str()).expect("a name");
            if path.is_dir() && name != "record_shared" {
                assert!(listed.contains(&name), "{name} is not in the catalogue");
            }
        }
    }

    #[test]
    fn bugs_have_unique_names_within_their_workload() {
        for entry in catalogue() {
            let mut names: Vec<_> = entry.bugs().iter().map(|b| b.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), entry.bugs().len(), "{}", entry.name());
            for name in names {
                assert_eq!(
                    ClusterBug::named(name),
                    None,
                    "{name} of {} is a bug of the cluster",
                    entry.name()
                );
            }
        }
    }
}
