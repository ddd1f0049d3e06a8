//! Workloads over values, sequences and large objects.

pub mod array;
pub mod blob;
pub mod counter;
pub mod encoding;
pub mod list;
pub mod log;
pub mod upload;
pub mod vector;

#[cfg(not(test))]
use shaketable::entry::Entry;
use shaketable_workloads_shared::{self as shared, beside};

/// These workloads, in the order in which they are shown. Unit tests run none: their build would generate the
/// code of each once more.
#[cfg(not(test))]
pub fn entries() -> Vec<Box<dyn Entry>> {
    vec![
        array::entry(),
        list::entry(),
        vector::entry(),
        blob::entry(),
        upload::entry(),
        counter::entry(),
        log::entry(),
        encoding::entry(),
    ]
}
