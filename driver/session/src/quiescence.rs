//! Detects that the program is quiescent: every thread of the process except this one sleeps.
//!
//! A program that reacts to answers in callbacks, or in an event loop that callbacks wake, continues to run
//! while other calls are outstanding. Virtual time must not advance meanwhile, or the speed of the program's
//! threads would decide when its next calls arrive. The kernel knows when the program has nothing left to do:
//! a thread that a callback wakes is runnable before the callback returns. So if no thread is runnable, the
//! program waits for the cluster, for a clock or for another process.
//!
//! A check reads the state of each thread, which costs a few microseconds per thread. A program with few
//! threads is checked after each answer that calls it back. In a program with many threads, the threads
//! decide the order of calls in any case: it is checked once in a millisecond at most.

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

/// How long the detector waits for quiescence. A program that takes longer may never become quiescent.
const LONGEST: Duration = Duration::from_secs(10);

/// How many checks only yield the processor; after these, each check is followed by a pause.
const YIELDING_CHECKS: u32 = 20;

/// The pause between two checks after that, nanoseconds.
const PAUSE: i64 = 100_000;

/// How many threads a program may have to be checked after each answer.
const FEW_THREADS: usize = 32;

/// The shortest time between two checks of a program with more threads.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// How often each thread was scheduled on a processor, by thread id.
type Switches = BTreeMap<u32, u64>;

/// Reads the states of the process's threads.
pub struct QuiescenceDetector {
    this: Pid,
    longest: Duration,
    threads: BTreeMap<u32, Thread>,
    /// The link count of the folder of threads: one for each thread, and two.
    links: u64,
    /// When a program with many threads was checked last.
    last: Duration,
}

/// The files in which the kernel describes a thread.
struct Thread {
    state: File,
    switches: File,
}

impl Thread {
    fn open(number: u32) -> Option<Thread> {
        let open = |name: &str| File::open(format!("{THREADS}/{number}/{name}")).ok();
        Some(Thread { state: open("stat")?, switches: open("schedstat")? })
    }

    /// How often it was scheduled, if it sleeps or has ended.
    fn sleeping(&self) -> Option<u64> {
        let (mut state, mut switches) = ([0; 128], [0; 64]);
        is_sleeping(read(&self.state, &mut state)?)
            .then(|| read(&self.switches, &mut switches).and_then(turns))?
    }
}

/// The beginning of a file of `/proc`, as far as it is UTF-8.
fn read<'a>(file: &File, into: &'a mut [u8]) -> Option<&'a str> {
    let length = file.read_at(into, 0).ok()?;
    // The kernel may cut the name of a thread within a character.
    let text = into.get(..length)?;
    Some(
        std::str::from_utf8(text)
            .unwrap_or_else(|error| std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or("")),
    )
}

impl QuiescenceDetector {
    /// A detector that ignores the current thread; `None` if the system does not show the states of threads.
    pub fn new() -> Option<QuiescenceDetector> {
        let mut detector = QuiescenceDetector {
            this: gettid(),
            longest: LONGEST,
            threads: BTreeMap::new(),
            links: 0,
            last: Duration::ZERO,
        };
        Thread::open(detector.this.as_raw_nonzero().get().unsigned_abs())?;
        detector.find()?;
        Some(detector)
    }

    /// Waits until all other threads sleep, or until `is_over`. Returns `false` if that takes longer than
    /// [`LONGEST`]: the detector is then of no use for this program.
    pub fn wait(&mut self, is_over: impl Fn() -> bool) -> bool {
        let (start, mut checks, mut before) = (wall::now(), 0, None);
        if self.threads.len() > FEW_THREADS {
            if start.saturating_sub(self.last) < CHECK_INTERVAL {
                return true;
            }
            self.last = start;
        }
        while !is_over() {
            let asleep = self.asleep();
            // A check reads the threads one after another. Threads that slept at both checks, and were not
            // scheduled between them, all slept at the same instant.
            if asleep.is_some() && asleep == before {
                return true;
            }
            if wall::now().saturating_sub(start) > self.longest {
                return false;
            }
            checks += 1;
            match asleep {
                Some(_) => {}
                None if checks < YIELDING_CHECKS => sched_yield(),
                None => pause(),
            }
            before = asleep;
        }
        true
    }

    /// Whether each of the other threads sleeps when it is checked.
    pub fn is_asleep(&mut self) -> bool {
        self.asleep().is_some()
    }

    /// How often each other thread was scheduled, if all of them sleep.
    fn asleep(&mut self) -> Option<Switches> {
        if fs::metadata(THREADS).ok()?.nlink() != self.links {
            self.find()?;
        }
        let states: Option<Switches> =
            self.threads.iter().map(|(number, thread)| Some((*number, thread.sleeping()?))).collect();
        if states.is_none() {
            // A thread may have ended and another begun, which leaves the link count as it was.
            self.links = 0;
        }
        states
    }

    /// Lists the threads of the process.
    fn find(&mut self) -> Option<()> {
        let links = fs::metadata(THREADS).ok()?.nlink();
        let this = self.this.as_raw_nonzero().get().unsigned_abs();
        let mut known = std::mem::take(&mut self.threads);
        for thread in fs::read_dir(THREADS).ok()? {
            let number: u32 = thread.ok()?.file_name().to_str()?.parse().ok()?;
            if number == this {
                continue;
            }
            // A thread id may be used again after its thread has ended, but open files still name the old
            // thread.
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
    // The name is in parentheses, and may contain parentheses itself.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'Z', 'X']))
}

/// How often a thread was scheduled, as its `schedstat` says.
fn turns(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// Sleeps for a moment of real time. The standard library would sleep in virtual time.
fn pause() {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: PAUSE }));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn waiting_for_a_thread_that_never_sleeps_is_given_up() {
        let is_over = AtomicBool::new(false);
        let mut here = QuiescenceDetector {
            longest: Duration::from_millis(50),
            ..QuiescenceDetector::new().expect("this is Linux")
        };
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
        let mut here = QuiescenceDetector::new().expect("this is Linux");
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
    fn many_threads_are_not_checked_for_each_answer() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..=FEW_THREADS {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                });
            }
            let mut here = QuiescenceDetector {
                longest: Duration::ZERO,
                ..QuiescenceDetector::new().expect("this is Linux")
            };
            here.last = wall::now() + CHECK_INTERVAL * 1_000_000;
            assert!(here.wait(|| false), "no check is due, although a thread runs");
            here.last = Duration::ZERO;
            assert!(!here.wait(|| false), "a check is due");
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
