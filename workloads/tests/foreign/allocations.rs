//! How much memory a call takes: an allocator that counts what each thread holds.
#![allow(unsafe_code, reason = "a global allocator cannot be had otherwise; this one passes everything on")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    io::Write,
};

/// Above this a thread gets nothing more: what asks for a terabyte would otherwise get it, and no page of it
/// until it is written.
const MOST: isize = 1 << 30;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// What this thread has taken and not given back. Less than nothing where it gave back another's.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The most of it since [`watch`].
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// What this thread does, to be said when it gets nothing more.
    static NOW: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Counting;

/// Counts, or says that it is too much.
fn grows(by: isize) -> bool {
    let held = HELD.get() + by;
    if by > 0 && held > MOST {
        // The process ends now: there is no error to return from here.
        let _ = NOW.try_with(|now| {
            let now = now.try_borrow();
            let name = now.as_deref().map_or("a call", String::as_str);
            writeln!(std::io::stderr(), "{name}: {by} more bytes are asked for, of {held}")
        });
        return false;
    }
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
    true
}

// SAFETY: the system's allocator does everything; null is what an allocator returns that has nothing left.
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

/// Says which function this thread, which has a case's name, calls now.
pub fn now(function: &str) {
    let thread = std::thread::current();
    NOW.set(format!("{}: {function}", thread.name().unwrap_or("a thread")));
}

/// What this thread said last that it does.
pub fn said() -> String {
    NOW.with_borrow(String::clone)
}

/// Begins to watch how much this thread takes. Returns what it holds.
pub fn watch() -> isize {
    PEAK.set(HELD.get());
    HELD.get()
}

/// The most that this thread held since [`watch`].
pub fn peak() -> isize {
    PEAK.get()
}
