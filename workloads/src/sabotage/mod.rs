//! Layers with bugs planted in them: what a sweep of the `bugs` command must catch.

pub mod array;
pub mod blob;
pub mod bulk;
pub mod counter;
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
pub mod scheduling;
pub mod session;
pub mod staged_queue;
pub mod table;
pub mod upload;
pub mod vector;
