//! The `shaketable` command.

mod cli;

/// A run allocates many small messages: the system's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
