//! The `shaketable` command.

use mimalloc::MiMalloc;
use shaketable::allocations::Counting;

/// A run allocates many small messages: the system's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: Counting<MiMalloc> = Counting(MiMalloc);

fn main() -> std::process::ExitCode {
    shaketable_workloads::command::main(env!("SHAKETABLE_COMMIT"))
}
