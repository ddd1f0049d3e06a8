//! Detects that the program is quiescent: every thread of the process except this one sleeps.
//!
//! A program that reacts to answers in callbacks, or in an event loop that callbacks wake, continues to run
//! while other calls are outstanding. Virtual time must not advance meanwhile, or the speed of the program's
//! threads would decide when its next calls arrive. The kernel knows when the program has nothing left to do:
//! a thread that a callback wakes is runnable before the callback returns. So if no thread is runnable, the
//! program waits for the cluster, for a clock or for another process.
//!
//! To ask for the state of a thread takes about a microsecond, and to wait until it sleeps takes as long as
//! it runs. Three rules keep that short:
//!
//! * Threads are asked in the order in which they were last found awake: the first answer is mostly enough
//!   while the program runs.
//! * A thread that was not scheduled since the last check, at which it slept, slept all the time. If that
//!   holds for all, or if there is only one, they are asked once; otherwise twice.
//! * Of more than [`FEW_THREADS`], those that have not run for a while are asked rarely ([`Survey`]).

use crate::wall;
use rustix::thread::{Pid, gettid, sched_yield};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    time::Duration,
};

/// Where Linux lists the threads of the process.
const THREADS: &str = "/proc/self/task";

/// How long the detector waits for quiescence. A program that takes longer may never become quiescent.
const LONGEST: Duration = Duration::from_secs(10);

/// How long the detector yields the processor between two checks: most programs react within that. After it,
/// each check is followed by a pause.
const YIELDING: Duration = Duration::from_micros(200);

/// The pause between two checks after that.
const PAUSE: Duration = Duration::from_micros(20);

/// How many threads a program may have to be asked at each check.
const FEW_THREADS: usize = 32;

/// The shortest time between two surveys, and between two checks of a program whose threads call at once.
const INTERVAL: Duration = Duration::from_millis(1);

/// How much longer than a survey the time between two is.
const SURVEY_SHARE: u32 = 20;

/// After how many surveys between which it has not run a thread is idle.
const IDLE_SURVEYS: u32 = 2;

/// Reads the states of the process's threads.
pub struct QuiescenceDetector {
    this: u32,
    longest: Duration,
    /// The folder of threads. Its link count is one for each thread, and two.
    folder: File,
    links: u64,
    /// Those that were found awake last come first. Idle ones come last.
    threads: Vec<Thread>,
    /// How many are not idle.
    active: usize,
    /// Whether all active threads slept at the last check.
    slept: bool,
    survey: Survey,
    /// When a check of a program whose threads call at once is due.
    due: Duration,
}

/// Which threads of a program with many are idle.
///
/// Only the next survey shows that an idle thread was woken, and surveys are so rare that the number of idle
/// threads does not matter. A thread that calls is never idle, unless many do: a program that calls from one
/// thread is as determined as one with few threads, if it hands its answers on through no idle thread.
#[derive(Default)]
struct Survey {
    due: Duration,
    callers: BTreeSet<Caller>,
}

/// A thread of the program that calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller(u32);

impl Caller {
    /// This thread.
    pub fn this() -> Caller {
        thread_local! {
            static NUMBER: Caller = Caller(number(gettid()));
        }
        NUMBER.with(|caller| *caller)
    }

    /// Its number, which is not 0.
    pub fn number(self) -> u32 {
        self.0
    }
}

fn number(thread: Pid) -> u32 {
    thread.as_raw_nonzero().get().unsigned_abs()
}

/// A thread, and the files in which the kernel describes it.
struct Thread {
    number: u32,
    state: File,
    switches: File,
    /// How often it had been scheduled when it was last seen asleep.
    turns: u64,
    /// The same at the last survey.
    surveyed: u64,
    /// The number of surveys since it ran.
    idle: u32,
}

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A thread runs.
    Awake,
    /// Each thread slept when it was asked, but one may have run between.
    Asleep,
    /// All threads slept at the same instant.
    Quiescent,
}

impl Thread {
    fn open(number: u32) -> Option<Thread> {
        let open = |name: &str| File::open(format!("{THREADS}/{number}/{name}")).ok();
        let (state, switches) = (open("stat")?, open("schedstat")?);
        Some(Thread { number, state, switches, turns: 0, surveyed: 0, idle: 0 })
    }

    /// Whether it sleeps or has ended.
    fn is_sleeping(&self) -> Option<bool> {
        Some(is_sleeping(read(&self.state, &mut [0; 128])?))
    }

    fn is_idle(&self) -> bool {
        self.idle >= IDLE_SURVEYS
    }

    /// How often it was scheduled.
    fn turns(&self) -> Option<u64> {
        turns(read(&self.switches, &mut [0; 64])?)
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
            this: number(gettid()),
            longest: LONGEST,
            folder: File::open(THREADS).ok()?,
            links: 0,
            threads: Vec::new(),
            active: 0,
            slept: false,
            survey: Survey::default(),
            due: Duration::ZERO,
        };
        Thread::open(detector.this)?.turns()?;
        detector.find()?;
        Some(detector)
    }

    /// Waits until all other threads sleep, or until `is_over`. Returns `false` if that takes longer than
    /// [`LONGEST`]: the detector is then of no use for this program.
    ///
    /// If several threads call at once, they decide the order of calls in any case. Only a check now and then
    /// is needed, so that virtual time does not run away from a thread that computes.
    pub fn wait(&mut self, call_at_once: bool, is_over: impl Fn() -> bool) -> bool {
        if call_at_once && wall::now() < self.due {
            return true;
        }
        let done = self.wait_now(is_over);
        if call_at_once {
            self.due = wall::now() + INTERVAL;
        }
        done
    }

    fn wait_now(&mut self, is_over: impl Fn() -> bool) -> bool {
        let mut since = None;
        while !is_over() {
            match self.check() {
                Found::Quiescent => return true,
                Found::Asleep => continue,
                Found::Awake => {}
            }
            let now = wall::now();
            let waited = now.saturating_sub(*since.get_or_insert(now));
            if waited > self.longest {
                return false;
            }
            if waited < YIELDING { sched_yield() } else { wall::pause(PAUSE) }
        }
        true
    }

    /// Whether each of the other threads sleeps when it is asked.
    pub fn is_asleep(&mut self) -> bool {
        self.follow().is_some() && self.threads.iter().all(|thread| thread.is_sleeping() == Some(true))
    }

    /// A thread calls.
    pub fn see(&mut self, caller: Caller) {
        if self.survey.callers.insert(caller) {
            self.survey.due = Duration::ZERO;
        }
    }

    /// Asks the active threads.
    fn check(&mut self) -> Found {
        let found = self.ask().unwrap_or_else(|| {
            // A thread has ended. If another has begun, the link count is as it was.
            self.links = 0;
            Found::Awake
        });
        self.slept = found != Found::Awake;
        found
    }

    /// Asks the active threads; `None` if one of them is not there any more.
    fn ask(&mut self) -> Option<Found> {
        self.follow()?;
        if self.threads.len() > FEW_THREADS {
            self.survey()?;
        }
        let threads = &mut self.threads[..self.active];
        if let [thread] = threads {
            // Nothing but this thread can wake it.
            return Some(if thread.is_sleeping()? { Found::Quiescent } else { Found::Awake });
        }
        let mut found = if self.slept { Found::Quiescent } else { Found::Asleep };
        for at in 0..threads.len() {
            let thread = &mut threads[at];
            if !thread.is_sleeping()? {
                threads[..=at].rotate_right(1);
                return Some(Found::Awake);
            }
            let turns = thread.turns()?;
            if std::mem::replace(&mut thread.turns, turns) != turns {
                found = Found::Asleep;
            }
        }
        Some(found)
    }

    /// If a survey is due, finds out which threads have run since they were surveyed.
    fn survey(&mut self) -> Option<()> {
        let now = wall::now();
        if now < self.survey.due {
            return Some(());
        }
        let callers = &self.survey.callers;
        for thread in &mut self.threads {
            let turns = thread.turns()?;
            let has_run = std::mem::replace(&mut thread.surveyed, turns) != turns || !thread.is_sleeping()?;
            let is_caller = callers.len() <= FEW_THREADS && callers.contains(&Caller(thread.number));
            thread.idle = if has_run || is_caller { 0 } else { thread.idle + 1 };
        }
        self.threads.sort_by_key(Thread::is_idle);
        self.active = self.threads.partition_point(|thread| !thread.is_idle());
        self.slept = false;
        let end = wall::now();
        self.survey.due = end + INTERVAL.max(end.saturating_sub(now) * SURVEY_SHARE);
        Some(())
    }

    /// Lists the threads of the process again if there are more or fewer.
    fn follow(&mut self) -> Option<()> {
        match self.count()? == self.links {
            true => Some(()),
            false => self.find(),
        }
    }

    fn count(&self) -> Option<u64> {
        Some(self.folder.metadata().ok()?.nlink())
    }

    /// Lists the threads of the process.
    fn find(&mut self) -> Option<()> {
        let links = self.count()?;
        let mut known: BTreeMap<u32, Thread> =
            self.threads.drain(..).map(|thread| (thread.number, thread)).collect();
        for thread in fs::read_dir(THREADS).ok()? {
            let number: u32 = thread.ok()?.file_name().to_str()?.parse().ok()?;
            if number == self.this {
                continue;
            }
            // A thread id may be used again after its thread has ended, but open files still name the old
            // thread.
            let old = known.remove(&number).filter(|thread| thread.is_sleeping().is_some());
            self.threads.extend(old.or_else(|| Thread::open(number)));
        }
        (self.links, self.active, self.slept) = (links, self.threads.len(), false);
        self.survey.due = Duration::ZERO;
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
            assert!(!here.wait(false, || false));
            assert!(here.wait(false, || true), "what waits for the end of the program ends at once");
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
    fn a_program_whose_threads_call_at_once_is_checked_now_and_then() {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
            let mut here = QuiescenceDetector {
                longest: Duration::ZERO,
                ..QuiescenceDetector::new().expect("this is Linux")
            };
            assert!(!here.wait(true, || false), "the first check is due");
            here.due = wall::now() + INTERVAL * 1_000_000;
            assert!(here.wait(true, || false), "no check is due, although a thread runs");
            assert!(!here.wait(false, || false), "threads that call one at a time are always checked");
            is_over.store(true, Ordering::Relaxed);
        });
    }

    /// A detector of threads that a test describes.
    struct Described {
        folder: tempfile::TempDir,
        detector: QuiescenceDetector,
    }

    impl Described {
        fn new(threads: u32) -> Described {
            let folder = tempfile::tempdir().expect("a folder");
            let mut detector = QuiescenceDetector {
                folder: File::open(folder.path()).expect("it is there"),
                ..QuiescenceDetector::new().expect("this is Linux")
            };
            detector.links = detector.count().expect("a number");
            detector.threads.clear();
            let mut described = Described { folder, detector };
            for number in 0..threads {
                described.set(number, "S", 1);
                let open = |what: &str| File::open(described.path(number, what)).expect("it was written");
                let (state, switches) = (open("stat"), open("schedstat"));
                let thread = Thread { number, state, switches, turns: 0, surveyed: 0, idle: 0 };
                described.detector.threads.push(thread);
            }
            described.detector.active = described.detector.threads.len();
            described
        }

        fn path(&self, number: u32, what: &str) -> std::path::PathBuf {
            self.folder.path().join(format!("{what}{number}"))
        }

        fn set(&self, number: u32, state: &str, turns: u64) {
            for (what, text) in
                [("stat", format!("{number} (a) {state} 1")), ("schedstat", format!("1 2 {turns}\n"))]
            {
                fs::write(self.path(number, what), text).expect("it can be written");
            }
        }

        fn check(&mut self) -> Found {
            self.detector.check()
        }
    }

    #[test]
    fn threads_are_asked_twice_unless_none_has_run_since_the_last_check() {
        use Found::{Asleep, Awake, Quiescent};
        let mut two = Described::new(2);
        assert_eq!([two.check(), two.check(), two.check()], [Asleep, Quiescent, Quiescent]);
        two.set(1, "S", 2);
        assert_eq!([two.check(), two.check()], [Asleep, Quiescent], "one ran, and may have woken the other");
        two.set(1, "R", 3);
        assert_eq!(two.check(), Awake);
        assert_eq!(two.detector.threads[0].number, 1, "the one that runs is asked first");
        two.set(1, "S", 3);
        assert_eq!([two.check(), two.check()], [Asleep, Quiescent]);
        two.set(1, "R", 3);
        assert_eq!(two.check(), Awake);
        two.set(1, "S", 3);
        assert_eq!([two.check(), two.check()], [Asleep, Quiescent], "the check before was in vain");
        let mut one = Described::new(1);
        assert_eq!(one.check(), Quiescent, "nothing can wake it");
        one.set(0, "R", 1);
        assert_eq!(one.check(), Awake);
    }

    #[test]
    fn idle_threads_of_many_are_asked_rarely_and_those_that_call_always() {
        let most = FEW_THREADS as u32;
        let mut many = Described::new(most + 1);
        many.detector.see(Caller(most));
        assert_eq!(many.check(), Found::Asleep);
        for _ in 0..IDLE_SURVEYS {
            many.detector.survey.due = Duration::ZERO;
            many.check();
        }
        assert_eq!(many.detector.active, 1);
        many.set(3, "R", 2);
        many.detector.survey.due = wall::now() + INTERVAL * 1_000_000;
        assert_eq!(many.check(), Found::Quiescent);
        assert!(!many.detector.is_asleep(), "this is about all");
        many.detector.survey.due = Duration::ZERO;
        assert_eq!(many.check(), Found::Awake);
        many.set(3, "S", 2);
        many.set(most, "R", 1);
        assert_eq!(many.check(), Found::Awake, "it calls");
        let mut few = Described::new(most);
        for _ in 0..=IDLE_SURVEYS {
            few.detector.survey.due = Duration::ZERO;
            few.check();
        }
        assert_eq!(few.detector.active, FEW_THREADS, "few are asked always");
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
