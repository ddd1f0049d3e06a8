//! Foreign bytes: a layer's operations on data that it did not write.
//!
//! Another program, an older release or a mistake may leave anything below a layer's keys. A layer must then
//! refuse with an error of its own or answer whatever it can. It must not panic, overflow the stack, run
//! endlessly, allocate memory for what is only claimed to exist, or pass what is stored on to FoundationDB
//! where that refuses it, as a key that is too long.
//!
//! ```text
//! fn foreign_bytes_are_refused() {
//!     Foreign::<MyWorkload>::new().assert();
//! }
//! ```
//!
//! Nothing has to be written for it: a calm run of the workload stores the rows, which are damaged, and its
//! operations are done on them. Answers are not judged, because no model knows what they should be.
//!
//! A case is drawn from its number: what is damaged and how, and the operations. The environment variable
//! `SHAKETABLE_SEEDS` overrides the cases of every such test, as it does the seeds of
//! [`Shake`](crate::Shake); the message of a failure ends with the command that repeats its case. Each case
//! runs on a thread of its own, whose name identifies the case in which a stack overflowed. A loop that uses
//! neither its database nor the clock cannot be interrupted: the name of its case is printed after a minute.

mod bytes;
mod case;
mod store;

use crate::{
    describe::workload::Workload,
    search::shake::{replay_line_now, seeds_from_environment},
};
use std::{fmt, marker::PhantomData, ops::Range};
use store::Store;

/// The number of cases that damage the same rows.
const CASES_PER_STORE: u64 = 50;

/// No further case is run after this many failed.
const MOST_WRONG: usize = 5;

/// How the global allocator of a test counts the bytes that a thread holds. This crate has no allocator: a
/// test whose allocator counts passes its functions on.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Called before each operation, on its thread. The text names the workload, the case and the operation,
    /// for an allocator that reports what it refuses.
    pub begin: fn(&str),
    /// The maximum number of bytes that this thread has held since the last `begin`, beyond those that it
    /// held then.
    pub most: fn() -> usize,
    /// The maximum number of bytes for an operation.
    pub limit: usize,
}

/// Operations of the workload `W` on foreign bytes.
///
/// An operation ends within 60 seconds of virtual time. One that waits for another client, which never comes
/// here, needs a time limit for that.
#[derive(Clone, Debug)]
pub struct Foreign<W> {
    cases: Range<u64>,
    memory: Option<Memory>,
    workload: PhantomData<fn() -> W>,
}

/// An operation that did not end as it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The workload.
    pub workload: &'static str,
    /// The number of the case.
    pub case: u64,
    /// The operation, and what is wrong.
    pub what: String,
    /// The damage: each key with its value.
    pub damage: Vec<String>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, case {}: {}", self.workload, self.case, self.what)?;
        self.damage.iter().try_for_each(|write| write!(f, "\n    {write}"))
    }
}

impl<W: Workload> Default for Foreign<W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Workload> Foreign<W> {
    /// The cases 0 to 299. Memory is not counted.
    pub fn new() -> Self {
        Foreign { cases: 0..300, memory: None, workload: PhantomData }
    }

    /// Sets the cases. Half of them replace elements of keys and values in turn, by all that may stand there.
    pub fn cases(mut self, cases: Range<u64>) -> Self {
        self.cases = cases;
        self
    }

    /// Limits the memory of each operation.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Runs the cases. Returns the operations that did not end as they must, those of the first few cases.
    #[track_caller]
    pub fn run(&self) -> Vec<Wrong> {
        let mut store: Option<Store> = None;
        let mut wrong = Vec::new();
        for case in seeds_from_environment().unwrap_or_else(|| self.cases.clone()) {
            let number = case / CASES_PER_STORE;
            let drawn = match store.take() {
                Some(store) if store.number == number => Ok(store),
                _ => Store::draw::<W>(number),
            };
            match drawn {
                Ok(drawn) => {
                    wrong.extend(case::run(&drawn, case, self.memory));
                    store = Some(drawn);
                }
                Err(what) => {
                    wrong.push(Wrong { workload: W::NAME, case, what, damage: Vec::new() });
                    break;
                }
            }
            if wrong.len() == MOST_WRONG {
                break;
            }
        }
        wrong
    }

    /// Runs the cases, and panics if an operation does not end as it must.
    #[track_caller]
    pub fn assert(&self) {
        if let Some(wrong) = described(&self.run()) {
            panic!("{wrong}");
        }
    }
}

/// What went wrong, one case after another, and the line that repeats the first one in the test of this
/// thread. `None` if nothing did.
pub fn described(wrong: &[Wrong]) -> Option<String> {
    let first = wrong.first()?;
    let all: String = wrong.iter().map(|wrong| format!("{wrong}\n")).collect();
    Some(all + &replay_line_now(first.case))
}
