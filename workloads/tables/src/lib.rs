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

use shaketable_workloads_shared::{self as shared, beside};
