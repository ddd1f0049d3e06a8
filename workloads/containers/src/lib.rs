//! Workloads over values, sequences and large objects: arrays, lists, vectors, counters, logs, blobs and
//! their uploads, and the encoding of values.

pub mod array;
pub mod blob;
pub mod counter;
pub mod encoding;
pub mod list;
pub mod log;
pub mod upload;
pub mod vector;

use shaketable_workloads_shared::{self as shared, beside};
