//! Lets the threads of a program run one at a time between their calls, in an order that the seed chooses.
//!
//! A thread that makes a call, or that has waited for an answer, waits for its turn. The cluster's thread
//! gives the next turn when every thread of the process sleeps: those that wait for their turn, for an
//! answer, or for something that the cluster does not know. Requests without an answer are no occasion for
//! another thread, as long as the thread that has the turn makes them.
//!
//! The thread that asks for turns does not wait before the cluster's thread runs: it may be about to run it.
//!
//! A thread that waits for another one of the program and is woken by it runs beside it, until it makes a
//! request itself. What the two do meanwhile is not the seed's to choose, unless the library of the package
//! `shaketable-time` is preloaded: it lets such a thread wait for its turn.

use crate::quiescence::Caller;
#[cfg(not(target_os = "linux"))]
use crate::wall;
use parking_lot::Mutex;
#[cfg(target_os = "linux")]
use rustix::{
    io::Errno,
    thread::futex::{self, Timespec},
};
use shaketable_sim::seed::Stream;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

/// How long a thread waits for its turn. It may hold a lock for which the cluster's thread waits in a
/// callback of the program.
const LONGEST: Duration = Duration::from_secs(20);

/// When a thread that waits may have its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// As soon as the program rests.
    Next,
    /// After the next answer or the next advance of virtual time: it has asked for an answer that is not
    /// there, and would ask again at once.
    AfterStep,
}

/// The turns of a process's threads.
#[derive(Default)]
pub struct Turns {
    is_on: AtomicBool,
    /// Whether the cluster's thread gives them.
    is_given: AtomicBool,
    /// The thread that asked for them.
    first: AtomicU32,
    /// The thread that has the turn; 0 if none has.
    holder: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those that may be next.
    next: Vec<Arc<Gate>>,
    /// Those that may be next after a step.
    after_step: Vec<Arc<Gate>>,
    /// How many threads have a rank.
    ranks: u32,
    /// Whether a thread has run without its turn.
    is_overrun: bool,
}

/// Where a thread waits. Each has its own.
///
/// It is no condition: a timeout of the standard library or of `parking_lot` is one of virtual time if the
/// program sees that.
struct Gate {
    caller: Caller,
    /// Its place in the order in which threads began to call, and then in which they were started; 0 before
    /// it has one.
    rank: AtomicU32,
    /// One of the three below.
    state: AtomicU32,
}

/// The thread does not wait.
const RUNS: u32 = 0;
/// It waits.
const WAITS: u32 = 1;
/// It waited until it was given its turn, and runs soon.
const OPENED: u32 = 2;

/// Blocks while the word has a value, for [`LONGEST`]. Returns whether it was woken earlier, perhaps for
/// nothing.
#[cfg(target_os = "linux")]
fn block(word: &AtomicU32, value: u32) -> bool {
    let longest = Timespec::try_from(LONGEST).ok();
    futex::wait(word, futex::Flags::PRIVATE, value, longest.as_ref()) != Err(Errno::TIMEDOUT)
}

#[cfg(target_os = "linux")]
fn unblock(word: &AtomicU32) {
    // Nobody may wait.
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

#[cfg(not(target_os = "linux"))]
fn block(word: &AtomicU32, value: u32) -> bool {
    let start = wall::now();
    while word.load(Ordering::SeqCst) == value && wall::now().saturating_sub(start) < LONGEST {
        wall::pause(Duration::from_millis(1));
    }
    word.load(Ordering::SeqCst) != value
}

#[cfg(not(target_os = "linux"))]
fn unblock(_: &AtomicU32) {}

thread_local! {
    static GATE: Arc<Gate> = Arc::new(Gate {
        caller: Caller::this(),
        rank: AtomicU32::new(0),
        state: AtomicU32::new(RUNS),
    });
}

impl Gate {
    /// Waits until it is opened, and returns whether it was.
    fn wait(&self) -> bool {
        while self.state.load(Ordering::SeqCst) == WAITS && block(&self.state, WAITS) {}
        self.state.swap(RUNS, Ordering::SeqCst) == OPENED
    }

    /// Opens it; `false` if the thread does not wait any more.
    fn open(&self) -> bool {
        let is_waiting =
            self.state.compare_exchange(WAITS, OPENED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_waiting {
            unblock(&self.state);
        }
        is_waiting
    }
}

impl Turns {
    /// From now on threads wait for their turns, except for this one.
    pub fn start(&self) {
        self.first.store(Caller::this().number(), Ordering::SeqCst);
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// From now on the cluster's thread gives turns, and every thread waits.
    pub fn begin(&self) {
        self.is_given.store(true, Ordering::SeqCst);
    }

    /// Whether threads wait for turns.
    pub fn are_taken(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    /// Whether the cluster's thread gives them.
    pub fn are_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    /// Whether this thread waits for turns.
    fn concerns(&self, caller: Caller) -> bool {
        self.is_given.load(Ordering::SeqCst) || self.first.load(Ordering::SeqCst) != caller.number()
    }

    /// No thread waits any more.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        self.is_on.store(false, Ordering::SeqCst);
        let State { next, after_step, .. } = &mut *state;
        for gate in next.drain(..).chain(after_step.drain(..)) {
            gate.open();
        }
    }

    /// Waits for this thread's turn. `announce` is called when it begins to wait.
    pub fn wait(&self, turn: Turn, announce: impl FnOnce()) {
        if !self.is_on.load(Ordering::SeqCst) {
            return;
        }
        // A thread whose variables are gone is about to end.
        let Ok(gate) = GATE.try_with(Arc::clone) else { return };
        {
            let mut state = self.state.lock();
            // They may have ended meanwhile.
            if !self.is_on.load(Ordering::SeqCst) || !self.concerns(gate.caller) {
                return;
            }
            gate.state.store(WAITS, Ordering::SeqCst);
            match turn {
                Turn::Next => state.next.push(gate.clone()),
                Turn::AfterStep => state.after_step.push(gate.clone()),
            }
        }
        announce();
        if !gate.wait() {
            self.state.lock().is_overrun = true;
        }
    }

    /// Waits for this thread's turn unless it has it.
    pub fn keep(&self, announce: impl FnOnce()) {
        if self.is_on.load(Ordering::SeqCst) && self.holder.load(Ordering::SeqCst) != Caller::this().number()
        {
            self.wait(Turn::Next, announce);
        }
    }

    /// Whether a thread could have the next turn.
    pub fn is_waited_for(&self) -> bool {
        !self.state.lock().next.is_empty()
    }

    /// Whether a thread waits for a step.
    pub fn is_asked_in_vain(&self) -> bool {
        !self.state.lock().after_step.is_empty()
    }

    /// Gives the next turn to a thread that waits; `false` if none does. Each thread of the process must
    /// sleep.
    pub fn give(&self, choice: &mut Stream) -> bool {
        let mut state = self.state.lock();
        let State { next, ranks, .. } = &mut *state;
        // Those that call for the first time: the kernel numbers threads in the order in which they begin.
        next.sort_by_key(|gate| gate.caller);
        for gate in next.iter().filter(|gate| gate.rank.load(Ordering::Relaxed) == 0) {
            *ranks += 1;
            gate.rank.store(*ranks, Ordering::Relaxed);
        }
        next.sort_by_key(|gate| gate.rank.load(Ordering::Relaxed));
        while !next.is_empty() {
            // Whether the first thread was early enough to go on without a turn must not change later draws.
            let at = if next.len() > 1 { choice.index(next.len()) } else { 0 };
            let gate = next.remove(at);
            self.holder.store(gate.caller.number(), Ordering::SeqCst);
            if gate.open() {
                return true;
            }
        }
        false
    }

    /// An answer was given, or virtual time has advanced.
    pub fn stepped(&self) {
        let mut state = self.state.lock();
        let State { next, after_step, .. } = &mut *state;
        next.append(after_step);
    }

    /// Whether a thread has run without its turn, because it was not given one for long.
    pub fn is_overrun(&self) -> bool {
        self.state.lock().is_overrun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::seed::Seed;
    use std::thread::{self, JoinHandle};

    /// The threads that have run, by their numbers.
    type Ran = Arc<Mutex<Vec<usize>>>;

    fn waiting(turns: &Arc<Turns>, ran: &Ran, number: usize, turn: Turn) -> JoinHandle<()> {
        let ((announced, is_announced), turns, ran) =
            (std::sync::mpsc::channel(), turns.clone(), ran.clone());
        let thread = thread::spawn(move || {
            turns.wait(turn, || announced.send(()).expect("it is waited for"));
            ran.lock().push(number);
        });
        is_announced.recv().expect("it waits");
        thread
    }

    fn order(seed: u64) -> Vec<usize> {
        let (turns, ran) = (Arc::new(Turns::default()), Ran::default());
        turns.start();
        let mut threads: Vec<_> =
            (0..6).map(|number| Some(waiting(&turns, &ran, number, Turn::Next))).collect();
        let mut choice = Seed(seed).stream("turns");
        for given in 1..=6 {
            assert!(turns.give(&mut choice));
            while ran.lock().len() < given {
                thread::yield_now();
            }
            assert_eq!(ran.lock().len(), given, "one runs at a time");
        }
        assert!(!turns.give(&mut choice) && !turns.is_waited_for());
        threads.iter_mut().filter_map(Option::take).for_each(|thread| thread.join().expect("it ends"));
        std::mem::take(&mut *ran.lock())
    }

    #[test]
    fn the_seed_chooses_the_order() {
        assert_eq!(order(1), order(1));
        let orders: std::collections::BTreeSet<_> = (0..10).map(order).collect();
        assert!(orders.len() > 5, "{orders:?}");
    }

    #[test]
    fn who_asks_in_vain_waits_for_a_step_and_nobody_after_the_end() {
        let (turns, ran) = (Arc::new(Turns::default()), Ran::default());
        let mut choice = Seed(1).stream("turns");
        turns.wait(Turn::Next, || panic!("they have not started"));
        turns.start();
        turns.wait(Turn::Next, || panic!("this thread may be about to run the cluster"));
        let polls = waiting(&turns, &ran, 0, Turn::AfterStep);
        assert!(!turns.give(&mut choice));
        turns.stepped();
        assert!(turns.give(&mut choice));
        polls.join().expect("it ends");
        let last = waiting(&turns, &ran, 1, Turn::Next);
        turns.stop();
        last.join().expect("it ends");
        turns.keep(|| panic!("they have ended"));
        assert!(!turns.is_overrun());
    }

    #[test]
    fn requests_of_the_thread_that_has_the_turn_do_not_wait() {
        let turns = Arc::new(Turns::default());
        turns.start();
        turns.begin();
        let (holds, announced) = (turns.clone(), std::sync::mpsc::channel());
        let thread = thread::spawn(move || {
            holds.wait(Turn::Next, || announced.0.send(()).expect("it is waited for"));
            holds.keep(|| panic!("it has the turn"));
        });
        announced.1.recv().expect("it waits");
        assert!(turns.give(&mut Seed(1).stream("turns")));
        thread.join().expect("it ends");
        let mut waits = false;
        turns.keep(|| {
            waits = true;
            turns.stop();
        });
        assert!(waits, "another thread does");
    }
}
