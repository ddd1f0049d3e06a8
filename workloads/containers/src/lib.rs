//! Workloads over values, sequences and large objects.

pub mod array;
pub mod blob;
pub mod counter;
pub mod encoding;
pub mod list;
pub mod log;
pub mod upload;
pub mod vector;

use shaketable_workloads_shared::{self as shared, beside};
