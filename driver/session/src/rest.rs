//! Waits until the program rests: until every thread of the process but this one sleeps.
//!
//! A program that reacts to answers in callbacks, or in an event loop that callbacks wake, goes on while other calls are
//! outstanding. Virtual time must not advance meanwhile, or the speed of its threads would decide when its next calls
//! arrive. The kernel knows when it has nothing left to do: a callback that wakes a thread has made it runnable when it
//! returns, so that a program none of whose threads is runnable waits for the cluster, for a clock or for another process.

use crate::wall;
use rustix::{
    event::{Timespec, poll},
    thread::{Pid, gettid, sched_yield},
};
use std::{collections::BTreeMap, fs, time::Duration};

/// Where Linux lists the threads of the process.
const THREADS: &str = "/proc/self/task";

/// How long a program may take until it rests. One that takes longer may be one that never does.
const LONGEST: Duration = Duration::from_secs(10);

/// How many looks are taken in a row before the processor is left to the program.
const LOOKS: u32 = 20;

/// The pause between two looks after that, nanoseconds.
const PAUSE: i64 = 100_000;

/// How often each thread has been on a processor, by its number.
type Switches = BTreeMap<u32, u64>;

/// Looks at the threads of the process.
pub struct Rest {
    this: Pid,
    longest: Duration,
}

impl Rest {
    /// Looks from this thread, which does not count; `None` if the system does not tell.
    pub fn new() -> Option<Rest> {
        fs::metadata(THREADS).ok()?;
        Some(Rest { this: gettid(), longest: LONGEST })
    }

    /// Waits until all other threads sleep, or until `is_over`. Returns whether they can be relied on to do so: not if
    /// they take too long.
    pub fn wait(&self, is_over: impl Fn() -> bool) -> bool {
        let (start, mut looks, mut before) = (wall::now(), 0, None);
        while !is_over() {
            let asleep = self.asleep();
            // Threads that slept at both looks, and were on no processor between them, slept at one instant together.
            if asleep.is_some() && asleep == before {
                return true;
            }
            if wall::now().saturating_sub(start) > self.longest {
                return false;
            }
            looks += 1;
            match asleep {
                Some(_) => {}
                None if looks < LOOKS => sched_yield(),
                None => pause(),
            }
            before = asleep;
        }
        true
    }

    /// How often each other thread has been on a processor, if all of them sleep.
    fn asleep(&self) -> Option<Switches> {
        let mut switches = Switches::new();
        for thread in fs::read_dir(THREADS).ok()? {
            let thread = thread.ok()?;
            let number: u32 = thread.file_name().to_str()?.parse().ok()?;
            if number != self.this.as_raw_nonzero().get().unsigned_abs() {
                switches.insert(number, sleeping(&fs::read_to_string(thread.path().join("status")).ok()?)?);
            }
        }
        Some(switches)
    }
}

/// How often a thread has been on a processor, if its status says that it sleeps or has ended.
fn sleeping(status: &str) -> Option<u64> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if !field("State:")?.starts_with(['S', 'Z', 'X']) {
        return None;
    }
    let count = |name: &str| field(name)?.parse::<u64>().ok();
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

/// Leaves the processor for a moment. Sleeping would be sleeping in virtual time.
fn pause() {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: PAUSE }));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_that_never_rests_is_given_up() {
        let is_over = AtomicBool::new(false);
        let here = Rest { longest: Duration::from_millis(50), ..Rest::new().expect("this is Linux") };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            assert!(!here.wait(|| false));
            assert!(here.wait(|| true), "what waits for the end of the program ends at once");
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_status_tells_whether_a_thread_sleeps() {
        let status = |state: &str| {
            format!(
                "Name:\tx\nState:\t{state}\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n"
            )
        };
        assert_eq!(sleeping(&status("S (sleeping)")), Some(7));
        for awake in ["R (running)", "D (disk sleep)", "T (stopped)"] {
            assert_eq!(sleeping(&status(awake)), None);
        }
        assert_eq!(sleeping("State:\tS (sleeping)\n"), None);
    }
}
