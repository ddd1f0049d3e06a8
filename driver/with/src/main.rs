//! The command for programs in any language, without a workload: `with`, `serve`, and what comes with them.
//!
//! The program `shaketable` of the package `shaketable-workloads` has these subcommands as well, and the
//! catalogue of workloads, which takes most of its build. `scripts/package` makes a tarball and packages for
//! Python and npm of this one, in which it is called `shaketable`.

use shaketable::command::{Program, main_for_programs};

fn main() -> std::process::ExitCode {
    main_for_programs(Program::new(
        "shaketable",
        env!("CARGO_PKG_VERSION"),
        option_env!("SHAKETABLE_COMMIT").unwrap_or("unknown"),
        Vec::new,
    ))
}
