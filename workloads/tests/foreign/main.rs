//! Every workload's operations on data that its layer did not write: see [`shaketable::foreign`]. The
//! allocator of this program counts, so that memory for what is only claimed to exist is found as well.
//!
//! `SHAKETABLE_SEEDS=17..18 cargo test -p shaketable-workloads --test foreign` repeats case 17 of all.

mod allocations;
mod answers;

use allocations::MEMORY;
use parking_lot::Mutex;
use shaketable::foreign::described;
use shaketable_workloads::catalogue::catalogue;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of cases of a workload.
const CASES: u64 = 100;

#[test]
fn operations_refuse_foreign_bytes() {
    let (catalogue, next, wrong) = (catalogue(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(entry) = catalogue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = entry.foreign(0..CASES, MEMORY);
                    wrong.lock().extend(found);
                }
            });
        }
    });
    if let Some(wrong) = described(&wrong.into_inner()) {
        panic!("{wrong}");
    }
}
