//! The switch of mutants: small changes of a crate's source of which at most one is on.
//!
//! `shaketable-mutants` rewrites a crate so that each place that it changes asks [`on`]. A run of a workload
//! switches its mutant on for the thread that it has ([`switch`]); a test of another kind takes it from the
//! variable [`VARIABLE`]. In a crate that was not rewritten nobody asks.

use std::{
    cell::Cell,
    iter::Peekable,
    sync::{LazyLock, Mutex, PoisonError},
};

/// The variable of the environment with the mutant of a process.
pub const VARIABLE: &str = "SHAKETABLE_MUTANT";

/// No mutant: numbers begin at 1.
const NONE: u32 = 0;
/// In place of a mutant: none is on, and those that are asked for are recorded.
pub const RECORDED: u32 = u32::MAX;

static OF_PROCESS: LazyLock<u32> =
    LazyLock::new(|| std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(NONE));

thread_local! {
    static SWITCH: Cell<u32> = Cell::new(*OF_PROCESS);
}

/// A bit for each mutant that was asked for: a run may have a thread of its own.
static REACHED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Whether this mutant is on.
#[inline]
pub fn on(mutant: u32) -> bool {
    match SWITCH.get() {
        RECORDED => reached(mutant),
        switched => switched == mutant,
    }
}

#[cold]
fn reached(mutant: u32) -> bool {
    let mut bits = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = mutant as usize / 64;
    if bits.len() <= place {
        bits.resize(place + 1, 0);
    }
    bits[place] |= 1 << (mutant % 64);
    false
}

/// The mutants that were asked for since the last call, while a thread had [`RECORDED`] on.
pub fn recorded() -> Vec<u32> {
    let bits = std::mem::take(&mut *REACHED.lock().unwrap_or_else(PoisonError::into_inner));
    let is_set = |n: &u32| bits[*n as usize / 64] & (1 << (n % 64)) != 0;
    (0..bits.len() as u32 * 64).filter(is_set).collect()
}

/// A mutant is on in this thread until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Switched {
    before: u32,
}

impl Drop for Switched {
    fn drop(&mut self) {
        SWITCH.set(self.before);
    }
}

/// Switches a mutant on in this thread; `None` changes nothing.
pub fn switch(mutant: Option<u32>) -> Switched {
    let before = SWITCH.get();
    SWITCH.set(mutant.unwrap_or(before));
    Switched { before }
}

/// The items of a loop, without the first one if the mutant `first` is on, and without the last one if `last`
/// is.
pub fn ends<I: IntoIterator>(items: I, first: u32, last: u32) -> Ends<I::IntoIter> {
    let mut items = items.into_iter().peekable();
    // One that does not compile has the number 0.
    if first != NONE && on(first) {
        items.next();
    }
    Ends { items, ends_early: last != NONE && on(last) }
}

/// See [`ends`].
pub struct Ends<I: Iterator> {
    items: Peekable<I>,
    ends_early: bool,
}

impl<I: Iterator> Iterator for Ends<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        // Not asked for beyond what the loop takes: what is read ahead could wait, or end the loop's process.
        match self.ends_early {
            true => {
                let item = self.items.next()?;
                self.items.peek().is_some().then_some(item)
            }
            false => self.items.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mutant_is_on_in_a_thread_and_those_that_were_asked_for_are_told() {
        assert!(!on(3));
        {
            let _three = switch(Some(3));
            assert!(on(3) && !on(4));
            assert!(!std::thread::spawn(|| on(3)).join().unwrap());
        }
        assert!(!on(3));
        let recording = switch(Some(RECORDED));
        assert_eq!(ends([1, 2, 3], 70, 5).sum::<i32>(), 6);
        drop(recording);
        assert!(!on(9));
        assert_eq!(recorded(), [5, 70]);
        assert_eq!(recorded(), [0u32; 0]);
    }

    #[test]
    fn a_loop_loses_one_of_its_ends() {
        let under = |mutant| {
            let _on = switch(Some(mutant));
            ends([1, 2, 3], 7, 8).collect::<Vec<_>>()
        };
        assert_eq!((under(7), under(8), under(9)), (vec![2, 3], vec![1, 2], vec![1, 2, 3]));
    }
}
