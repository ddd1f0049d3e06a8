//! How many bytes of a page its parts may have.

use crate::{run::RunReport, sweep::SweepReport};
use std::cell::Cell;

/// The bytes for the texts of judges and plans of all runs of a page, and how many such texts a run has.
const TEXTS: usize = 800_000;
const TEXTS_OF_A_RUN: usize = 8;

/// The bytes that are left for the histories of a page, and for how many of them.
pub struct Room {
    left: Cell<usize>,
    runs: Cell<usize>,
    /// The most characters of a text of a judge or of a plan's summary.
    pub characters: usize,
}

impl Room {
    /// The room of a page with the histories of some runs.
    pub fn new(size: usize, runs: usize) -> Room {
        Room { left: Cell::new(size), runs: Cell::new(runs), characters: 4_000 }
    }

    /// The room of the page of a sweep.
    pub fn for_sweep(size: usize, sweep: &SweepReport) -> Room {
        let large = sweep.failures().filter(|run| is_large(run)).count();
        Room { left: Cell::new(size), runs: Cell::new(large), ..Room::for_texts(sweep.failures().count()) }
    }

    /// The room of a page with so many runs, and with the history of none.
    pub fn for_texts(runs: usize) -> Room {
        let characters = (TEXTS / runs.max(1) / TEXTS_OF_A_RUN).clamp(200, 4_000);
        Room { characters, ..Room::new(0, 0) }
    }

    /// The bytes that the next run may have; what earlier runs did not use is shared among the others.
    pub fn of_next_run(&self, run: &RunReport) -> Share<'_> {
        let runs = self.runs.get();
        if !is_large(run) {
            return Share { room: self, left: Cell::new(0) };
        }
        self.runs.set(runs.saturating_sub(1));
        Share { room: self, left: Cell::new(self.left.get() / runs.max(1)) }
    }
}

/// Whether a report has parts that may be large.
fn is_large(run: &RunReport) -> bool {
    run.history.is_some() || run.shrunk.is_some() || run.plan.is_some()
}

/// The bytes that are left for one run.
pub struct Share<'a> {
    room: &'a Room,
    left: Cell<usize>,
}

impl Share<'_> {
    /// The bytes that are left.
    pub fn left(&self) -> usize {
        self.left.get()
    }

    /// Takes bytes, and says whether there were as many.
    pub fn take(&self, bytes: usize) -> bool {
        let Some(left) = self.left.get().checked_sub(bytes) else { return false };
        self.left.set(left);
        self.room.left.set(self.room.left.get().saturating_sub(bytes));
        true
    }
}

/// The first lines of a text that have at most so many bytes together.
pub fn cut_lines(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let within = text.as_bytes().get(..bytes).unwrap_or_default();
    let end = within.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_lines() {
        assert_eq!(cut_lines("one\ntwö\nthree", 9), "one\ntwö\n");
        assert_eq!(cut_lines("one\ntwö\nthree", 7), "one\n");
        assert_eq!(cut_lines("öööö", 3), "");
        assert_eq!(cut_lines("all\n", 4), "all\n");
    }

    #[test]
    fn what_a_share_does_not_use_is_left_for_the_others() {
        let room = Room::new(100, 2);
        let share = |size: usize| Share { room: &room, left: Cell::new(size) };
        let first = share(room.left.get() / 2);
        assert!(first.take(20) && !first.take(31) && first.take(30));
        assert_eq!((first.left(), room.left.get()), (0, 50));
    }
}
