//! The memory used by an operation: an allocator that counts what each thread holds.
#![allow(unsafe_code, reason = "a global allocator cannot be had otherwise; this one passes everything on")]

use shaketable::foreign::Memory;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    io::Write,
};

/// The limit of each thread: otherwise, a request for a terabyte would succeed, without using any page until
/// it is written.
const MOST: isize = 1 << 30;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// The bytes that this thread has allocated and not freed. Negative if it has freed memory of another
    /// thread.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// What this thread held at [`begin`].
    static START: Cell<isize> = const { Cell::new(0) };
    /// The maximum since then.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// The operation that this thread does, reported if an allocation fails.
    static NOW: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Counting;

/// Counts the bytes; returns false and reports if they exceed the limit.
fn grows(by: isize) -> bool {
    let held = HELD.get() + by;
    if by > 0 && held > MOST {
        // The process ends now: an error cannot be returned from here.
        let _ = NOW.try_with(|now| {
            let now = now.try_borrow();
            let name = now.as_deref().map_or("a thread", String::as_str);
            writeln!(std::io::stderr(), "{name}: {by} more bytes are asked for, of {held}")
        });
        return false;
    }
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
    true
}

// SAFETY: all work is done by the system's allocator; an allocator without free memory returns null.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match grows(layout.size() as isize) {
            true => unsafe { System.alloc(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match grows(layout.size() as isize) {
            true => unsafe { System.alloc_zeroed(layout) },
            false => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        grows(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match grows(size as isize - layout.size() as isize) {
            true => unsafe { System.realloc(pointer, layout, size) },
            false => std::ptr::null_mut(),
        }
    }
}

/// The limit of an operation. The stored data is at most a few hundred kilobytes; a scan of a vector returns
/// up to a million holes of 32 bytes each.
pub const MEMORY: Memory = Memory { begin, most, limit: 64 << 20 };

fn begin(operation: &str) {
    NOW.set(operation.to_owned());
    START.set(HELD.get());
    PEAK.set(HELD.get());
}

fn most() -> usize {
    usize::try_from(PEAK.get() - START.get()).unwrap_or(0)
}
