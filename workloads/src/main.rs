//! The `shaketable` command.

use libmimalloc_sys::{
    mi_option_eager_commit_delay, mi_option_set_default, mi_option_t, mi_option_use_numa_nodes,
};
use mimalloc::MiMalloc;
use shaketable::allocations::Counting;

/// A run allocates many small messages: the system's allocator takes a tenth of its time.
#[global_allocator]
static ALLOCATOR: Counting<MiMalloc> = Counting(MiMalloc);

/// How long mimalloc holds freed memory before it gives it back, in milliseconds: `MIMALLOC_PURGE_DELAY`.
/// The crate has no name for this option; mimalloc lists it between these two.
const PURGE_DELAY: mi_option_t = mi_option_eager_commit_delay + 1;
const _: () = assert!(PURGE_DELAY + 1 == mi_option_use_numa_nodes);

/// Every run asks for what the run before it freed: giving it back costs a page fault for each page, a
/// twelfth of a sweep's time.
#[allow(unsafe_code, reason = "mimalloc's options are set through its C interface")]
fn keep_freed_memory() {
    // SAFETY: the option exists, a negative delay means never, and no other thread has started.
    unsafe { mi_option_set_default(PURGE_DELAY, -1) }
}

fn main() -> std::process::ExitCode {
    keep_freed_memory();
    shaketable_workloads::command::main(env!("SHAKETABLE_COMMIT"))
}
