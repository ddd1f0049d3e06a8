//! Workloads over indexes, tables, documents and directories.

pub mod directory;
pub mod document;
pub mod entity;
pub mod graph;
pub mod hierarchy;
pub mod index;
mod models;
pub mod multimap;
pub mod table;

#[cfg(not(test))]
use shaketable::entry::Entry;
use shaketable_workloads_shared::{self as shared, beside};

/// These workloads, in the order in which they are shown. Unit tests run none: their build would generate the
/// code of each once more.
#[cfg(not(test))]
pub fn entries() -> Vec<Box<dyn Entry>> {
    vec![
        index::entry(),
        graph::entry(),
        entity::entry(),
        multimap::entry(),
        table::entry(),
        directory::entry(),
        hierarchy::entry(),
        document::entry(),
    ]
}
