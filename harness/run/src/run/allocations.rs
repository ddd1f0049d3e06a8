//! An allocator that counts: how often a run asks for memory.
#![allow(unsafe_code, reason = "a global allocator cannot be had otherwise; this one passes everything on")]

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

thread_local! {
    /// The requests for memory of this thread. Without a destructor, so that it can be used whenever memory
    /// can.
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

/// A global allocator that counts the requests for memory, and passes them on. `bench` then shows how many a
/// commit makes.
///
/// ```text
/// #[global_allocator]
/// static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);
/// ```
#[derive(Debug)]
pub struct Counting<A>(pub A);

/// The requests for memory that this thread has made so far; 0 in a program whose allocator does not count.
pub(crate) fn of_thread() -> u64 {
    REQUESTS.get()
}

// This and what calls it is inlined into the program: counting is one instruction, and no sweep was seen to
// take longer for it.
#[inline]
fn count() {
    REQUESTS.set(REQUESTS.get() + 1);
}

// SAFETY: all work is done by the other allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pool::{allocations, alone};
    use std::{alloc::System, hint::black_box};

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    #[test]
    fn each_request_is_counted_by_the_thread_that_makes_it() {
        let of = |work: &dyn Fn()| {
            let before = of_thread();
            work();
            of_thread() - before
        };
        assert_eq!(of(&|| {}), 0);
        assert_eq!(of(&|| drop(black_box(Box::new(1)))), 1);
        assert_eq!(of(&|| drop(black_box(vec![0u8; 100]))), 1);
        let grown = || {
            let mut list = Vec::with_capacity(1);
            (0..100).for_each(|n| list.push(black_box(n)));
            list.shrink_to_fit();
        };
        // Its capacities: 1, 4, 8, .. 128, 100.
        assert_eq!(of(&grown), 8);
    }

    #[test]
    fn requests_of_runs_are_those_of_the_thread_that_waits_for_them() {
        let of = |boxes: usize| {
            let before = allocations();
            alone(|| alone(|| (0..boxes).for_each(|n| drop(black_box(Box::new(n))))));
            allocations() - before
        };
        // A thread costs some as well.
        assert_eq!(of(1_000) - of(0), 1_000);
    }
}
