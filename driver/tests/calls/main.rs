//! Calls of the C interface from Rust: one process, which has one network and one cluster.

mod futures;
mod fuzz;
mod process;
