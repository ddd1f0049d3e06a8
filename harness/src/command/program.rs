//! The program of this process: its name, its workloads, and what it is built with.

use super::{Refusal, interrupt::Interrupt};
use crate::search::entry::Entry;
use shaketable_reports::Figure;
use shaketable_tx::real::Client;
use std::sync::OnceLock;

/// A program with the command: its name, its version and its workloads.
pub struct Program {
    /// The name in messages and in the help.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
    /// The commit from which it was built, for reports.
    pub commit: &'static str,
    /// The workloads, in the order of lists.
    pub workloads: fn() -> Vec<Box<dyn Entry>>,
    /// Receives the figures of `bench` for the workloads, and returns all figures of the benchmark.
    pub figures: fn(Vec<Figure>, &Interrupt) -> Result<Vec<Figure>, Refusal>,
    /// FoundationDB's client, for runs on real clusters.
    pub client: Option<&'static dyn Client>,
    /// The command line that shakes the workloads of a catalogue that this program leaves out, if it is a
    /// part of one.
    pub others: Option<&'static str>,
    /// Whether `bugs` without names also runs the planted bugs of the simulated cluster. A single workload
    /// rarely reaches all of them.
    pub tests_cluster: bool,
}

impl Program {
    /// Creates a program whose benchmark measures only its workloads. It has the client that this crate is
    /// built with.
    pub fn new(
        name: &'static str,
        version: &'static str,
        commit: &'static str,
        workloads: fn() -> Vec<Box<dyn Entry>>,
    ) -> Program {
        Program {
            name,
            version,
            commit,
            workloads,
            figures: |figures, _| Ok(figures),
            client: client(),
            others: None,
            tests_cluster: false,
        }
    }
}

/// FoundationDB's client, if this crate is built with it.
fn client() -> Option<&'static dyn Client> {
    #[cfg(feature = "fdb-client")]
    return Some(&shaketable_fdb::Client);
    #[cfg(not(feature = "fdb-client"))]
    None
}

pub(super) static PROGRAM: OnceLock<Program> = OnceLock::new();

/// The program of this process.
pub fn program() -> &'static Program {
    PROGRAM.get_or_init(|| Program::new("shaketable", env!("CARGO_PKG_VERSION"), "unknown", Vec::new))
}
