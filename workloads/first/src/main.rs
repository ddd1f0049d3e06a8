//! The command with the first workloads of the catalogue. `cargo run` in the repository builds this one, so
//! that the first verdict does not wait for the others to be compiled: the Record Layer alone is a quarter of
//! them.

use shaketable::command::{Program, main as command};
use shaketable_workloads_containers as containers;
use shaketable_workloads_queues as queues;
use std::process::ExitCode;

fn main() -> ExitCode {
    command(Program {
        others: Some("cargo run --release -p shaketable-workloads -- run"),
        ..Program::new("shaketable-first", env!("CARGO_PKG_VERSION"), "unknown", || {
            [queues::entries(), containers::entries()].into_iter().flatten().collect()
        })
    })
}
