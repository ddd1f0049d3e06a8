//! A short wait without the kernel.
//!
//! A program that blocks for an answer, and the cluster that then waits for its next call, wait for less time
//! than it takes to put a thread to sleep and to wake it. So a thread looks for a moment before it sleeps. On
//! a machine that has no processor for it meanwhile that is in vain, which shows at once: it is then tried
//! rarely.

use crate::wall;
use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

/// How long a thread looks.
const LONGEST: Duration = Duration::from_micros(50);

/// How often it looks between two looks at the clock.
const LOOKS: u32 = 16;

/// It looks at one of `1 << RAREST` waits at least.
const RAREST: u32 = 6;

/// Waits of one kind, of any number of threads.
#[derive(Default)]
pub struct Spin {
    waits: AtomicU32,
    /// How often it was in vain since it was not, at most [`RAREST`].
    vain: AtomicU32,
    /// Whether a thread looks now. Only one does: more would take processors from those that work.
    is_looking: AtomicBool,
}

impl Spin {
    /// None of the waits has happened.
    pub const fn new() -> Spin {
        Spin { waits: AtomicU32::new(0), vain: AtomicU32::new(0), is_looking: AtomicBool::new(false) }
    }

    /// Waits until `is_over`, but not long. Returns whether it is.
    pub fn until(&self, is_over: impl Fn() -> bool) -> bool {
        let (wait, vain) = (self.waits.fetch_add(1, Ordering::Relaxed), self.vain.load(Ordering::Relaxed));
        if is_over() {
            return true;
        }
        if !wait.is_multiple_of(1 << vain) || self.is_looking.swap(true, Ordering::Relaxed) {
            return false;
        }
        let is_over = look(is_over);
        self.is_looking.store(false, Ordering::Relaxed);
        let vain = if is_over { 0 } else { RAREST.min(vain + 1) };
        self.vain.store(vain, Ordering::Relaxed);
        is_over
    }
}

fn look(is_over: impl Fn() -> bool) -> bool {
    let start = wall::now();
    loop {
        for _ in 0..LOOKS {
            if is_over() {
                return true;
            }
            spin_loop();
        }
        if wall::now().saturating_sub(start) >= LONGEST {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn it_ends_when_it_is_over_and_is_rare_while_it_is_in_vain() {
        let spin = Spin::new();
        assert!(spin.until(|| true));
        let looks = AtomicU32::new(0);
        let never = || {
            looks.fetch_add(1, Ordering::Relaxed);
            false
        };
        let mut long = 0;
        for _ in 0..256 {
            looks.store(0, Ordering::Relaxed);
            assert!(!spin.until(never));
            long += u32::from(looks.load(Ordering::Relaxed) > 1);
        }
        assert!((7..12).contains(&long), "{long} of 256");
        let is_over = AtomicBool::new(false);
        let second = || is_over.swap(true, Ordering::Relaxed);
        let found = (0..64).any(|_| {
            is_over.store(false, Ordering::Relaxed);
            spin.until(second)
        });
        assert!(found && spin.vain.load(Ordering::Relaxed) == 0, "it is tried again");
    }

    #[test]
    fn one_thread_looks_at_a_time() {
        let (spin, looks) = (Spin::new(), AtomicU32::new(0));
        let never = || {
            looks.fetch_add(1, Ordering::Relaxed);
            false
        };
        let is_first = AtomicBool::new(true);
        // Another thread waits while this one looks.
        assert!(spin.until(|| !is_first.swap(false, Ordering::Relaxed) && !spin.until(never)));
        assert_eq!(looks.load(Ordering::Relaxed), 1, "it does not look");
        assert!(spin.until(|| true), "it is over");
    }
}
