//! The `shaketable` command.

/// A run allocates many small messages: the system's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    shaketable_workloads::command::main(env!("SHAKETABLE_COMMIT"))
}
