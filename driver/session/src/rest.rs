//! Waits until the program rests: until every thread of the process but this one sleeps.
//!
//! A program that reacts to answers in callbacks, or in an event loop that callbacks wake, goes on while
//! other calls are outstanding. Virtual time must not advance meanwhile, or the speed of its threads would
//! decide when its next calls arrive. The kernel knows when it has nothing left to do: a callback that wakes
//! a thread has made it runnable when it returns, so that a program none of whose threads is runnable waits
//! for the cluster, for a clock or for another process.

//!
//! A look costs a few microseconds for each thread. It is taken after each answer that is called back as long
//! as the program has few threads. A program with many is one whose threads decide the order of its calls in
//! any case: there it is taken once in a millisecond at most.

use crate::wall;
use rustix::{
    event::{Timespec, poll},
    thread::{Pid, gettid, sched_yield},
};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    time::Duration,
};

/// Where Linux lists the threads of the process.
const THREADS: &str = "/proc/self/task";

/// How long a program may take until it rests. One that takes longer may be one that never does.
const LONGEST: Duration = Duration::from_secs(10);

/// How many looks are taken in a row before the processor is left to the program.
const LOOKS: u32 = 20;

/// The pause between two looks after that, nanoseconds.
const PAUSE: i64 = 100_000;

/// How many threads a program may have to be looked at after each answer.
const FEW: usize = 32;

/// How often a program with more threads is looked at.
const RARELY: Duration = Duration::from_millis(1);

/// How often each thread has been on a processor, by its number.
type Switches = BTreeMap<u32, u64>;

/// Looks at the threads of the process.
pub struct Rest {
    this: Pid,
    longest: Duration,
    threads: BTreeMap<u32, Thread>,
    /// The links of the folder of threads: one for each, and two.
    links: u64,
    /// When many threads were looked at.
    last: Duration,
}

/// What the kernel says about a thread.
struct Thread {
    state: File,
    switches: File,
}

impl Thread {
    fn open(number: u32) -> Option<Thread> {
        let open = |name: &str| File::open(format!("{THREADS}/{number}/{name}")).ok();
        Some(Thread { state: open("stat")?, switches: open("schedstat")? })
    }

    /// How often it has been on a processor, if it sleeps or has ended.
    fn sleeping(&self) -> Option<u64> {
        let (mut state, mut switches) = ([0; 128], [0; 64]);
        is_sleeping(read(&self.state, &mut state)?)
            .then(|| read(&self.switches, &mut switches).and_then(turns))?
    }
}

/// The beginning of a file of the kernel.
fn read<'a>(file: &File, into: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(into, 0).ok()?;
    // The name of a thread may end within a letter.
    let text = into.get(..length)?;
    Some(
        std::str::from_utf8(text)
            .unwrap_or_else(|error| std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or("")),
    )
}

impl Rest {
    /// Looks from this thread, which does not count; `None` if the system does not tell.
    pub fn new() -> Option<Rest> {
        let mut rest = Rest {
            this: gettid(),
            longest: LONGEST,
            threads: BTreeMap::new(),
            links: 0,
            last: Duration::ZERO,
        };
        Thread::open(rest.this.as_raw_nonzero().get().unsigned_abs())?;
        rest.find()?;
        Some(rest)
    }

    /// Waits until all other threads sleep, or until `is_over`. Returns whether they can be relied on to do
    /// so: not if they take too long.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> bool {
        let (start, mut looks, mut before) = (wall::now(), 0, None);
        if self.threads.len() > FEW {
            if start.saturating_sub(self.last) < RARELY {
                return true;
            }
            self.last = start;
        }
        while !is_over() {
            let asleep = self.asleep();
            // Threads that slept at both looks, and were on no processor between them, slept at one instant
            // together.
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

    /// Whether all other threads are seen asleep.
    pub fn is_asleep(&mut self) -> bool {
        self.asleep().is_some()
    }

    /// How often each other thread has been on a processor, if all of them sleep.
    fn asleep(&mut self) -> Option<Switches> {
        if fs::metadata(THREADS).ok()?.nlink() != self.links {
            self.find()?;
        }
        let looked: Option<Switches> =
            self.threads.iter().map(|(number, thread)| Some((*number, thread.sleeping()?))).collect();
        if looked.is_none() {
            // One may have ended, and another begun.
            self.links = 0;
        }
        looked
    }

    /// Finds the threads that there are.
    fn find(&mut self) -> Option<()> {
        let links = fs::metadata(THREADS).ok()?.nlink();
        let this = self.this.as_raw_nonzero().get().unsigned_abs();
        let mut known = std::mem::take(&mut self.threads);
        for thread in fs::read_dir(THREADS).ok()? {
            let number: u32 = thread.ok()?.file_name().to_str()?.parse().ok()?;
            if number == this {
                continue;
            }
            // The number of a thread that has ended may be given again: its files are not.
            let old = known.remove(&number).filter(|thread| thread.sleeping().is_some());
            if let Some(thread) = old.or_else(|| Thread::open(number)) {
                self.threads.insert(number, thread);
            }
        }
        self.links = links;
        Some(())
    }
}

/// Whether a thread's `stat` says that it sleeps or has ended.
fn is_sleeping(stat: &str) -> bool {
    // The name stands in brackets, and may have brackets itself.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'Z', 'X']))
}

/// How often a thread has been on a processor, as its `schedstat` says.
fn turns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(2)?.parse().ok()
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
        let mut here = Rest { longest: Duration::from_millis(50), ..Rest::new().expect("this is Linux") };
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
    fn a_thread_that_begins_is_seen_and_one_that_has_ended_is_not() {
        let mut here = Rest::new().expect("this is Linux");
        for _ in 0..3 {
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
                assert!(!here.is_asleep(), "one thread runs");
                is_over.store(true, Ordering::Relaxed);
            });
        }
    }

    #[test]
    fn many_threads_are_not_looked_at_for_each_answer() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..=FEW {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                });
            }
            let mut here = Rest { longest: Duration::ZERO, ..Rest::new().expect("this is Linux") };
            here.last = wall::now() + RARELY * 1_000_000;
            assert!(here.wait(|| false), "it has looked, and has seen a thread that runs");
            here.last = Duration::ZERO;
            assert!(!here.wait(|| false), "a look is due");
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn the_kernel_tells_whether_a_thread_sleeps_and_how_often_it_ran() {
        assert!(is_sleeping("12 (a) S 1 2") && is_sleeping("12 (a (b) R) Z 1 2"));
        for awake in ["12 (a) R 1", "12 (S) D 1", "12 (a) T 1", ""] {
            assert!(!is_sleeping(awake));
        }
        assert_eq!((turns("60135 2459 7\n"), turns("")), (Some(7), None));
    }
}
