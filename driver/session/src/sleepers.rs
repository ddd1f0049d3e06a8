//! Threads of the program that wait for a virtual time.
//!
//! They are no tasks of the simulation: a thread that begins to wait and stops, at a moment that no seed
//! chooses, must change nothing in it. Virtual time does not advance beyond the first time that is waited
//! for.

use shaketable_sim::rt::Nanos;
use std::collections::BTreeMap;

/// The number of a wait, which is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SleepId(pub u64);

/// A thread that waits. Its drop wakes it: when its time has come, and when nothing else will.
pub type Sleeper = Box<dyn Send>;

/// The threads that wait, in the order in which they are to wake.
#[derive(Default)]
pub struct Sleepers {
    waiting: BTreeMap<(Nanos, SleepId), Sleeper>,
    until: BTreeMap<SleepId, Nanos>,
}

impl Sleepers {
    /// A thread waits.
    pub fn add(&mut self, id: SleepId, until: Nanos, sleeper: Sleeper) {
        self.until.insert(id, until);
        self.waiting.insert((until, id), sleeper);
    }

    /// A thread does not wait any more.
    pub fn remove(&mut self, id: SleepId) {
        if let Some(until) = self.until.remove(&id) {
            self.waiting.remove(&(until, id));
        }
    }

    /// The first time that is waited for.
    pub fn next(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((until, _), _)| *until)
    }

    /// Wakes the first thread; `false` if there is none.
    pub fn wake(&mut self) -> bool {
        let Some(((_, id), sleeper)) = self.waiting.pop_first() else { return false };
        self.until.remove(&id);
        drop(sleeper);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// Notes its number when it is woken.
    struct Noted(u64, Arc<Mutex<Vec<u64>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().push(self.0);
        }
    }

    #[test]
    fn they_wake_in_the_order_of_their_times_and_then_of_their_numbers() {
        let (woken, mut sleepers) = (Arc::<Mutex<Vec<u64>>>::default(), Sleepers::default());
        for (number, until) in [(1, 30), (2, 20), (3, 30), (4, 10), (5, 40)] {
            sleepers.add(SleepId(number), until, Box::new(Noted(number, woken.clone())));
        }
        assert_eq!(sleepers.next(), Some(10));
        sleepers.remove(SleepId(4));
        sleepers.remove(SleepId(4));
        assert_eq!((sleepers.next(), woken.lock().as_slice()), (Some(20), &[4][..]));
        while sleepers.next() != Some(40) {
            assert!(sleepers.wake());
        }
        assert_eq!(*woken.lock(), [4, 2, 1, 3]);
        drop(sleepers);
        assert_eq!(*woken.lock(), [4, 2, 1, 3, 5], "the end wakes all");
    }
}
