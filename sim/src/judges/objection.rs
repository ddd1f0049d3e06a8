//! What a judge objects to, and its witness: what contradicts the claim.

use crate::ids::AttemptId;
use bytes::Bytes;
use std::collections::BTreeSet;

/// What contradicts a claim: the operations, the attempts at transactions and the keys that a judge saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Operations: the client's number, and the index in its list of operations.
    pub operations: Vec<(usize, usize)>,
    /// Attempts at transactions.
    pub attempts: Vec<AttemptId>,
    /// Keys.
    pub keys: Vec<Bytes>,
    /// What the judge expected, if it compares.
    pub expected: Option<String>,
    /// What it found instead.
    pub found: Option<String>,
}

impl Witness {
    /// The largest number of operations, of attempts and of keys that the witness of a finding names.
    pub const MOST: usize = 20;

    /// A witness of one operation.
    pub fn operation(client: usize, index: usize) -> Witness {
        Witness { operations: vec![(client, index)], ..Witness::default() }
    }

    /// The witness as a finding has it. Judges name what matters most first: the rest is left out, and so are
    /// duplicates, and what remains is ascending.
    pub fn settled(self) -> Witness {
        let text = |text: Option<String>| text.map(truncated);
        Witness {
            operations: first_ones(self.operations),
            attempts: first_ones(self.attempts),
            keys: first_ones(self.keys),
            expected: text(self.expected),
            found: text(self.found),
        }
    }
}

/// The first different ones, ascending.
fn first_ones<T: Ord>(named: Vec<T>) -> Vec<T> {
    let mut ones = BTreeSet::new();
    for one in named {
        if ones.len() < Witness::MOST {
            ones.insert(one);
        }
    }
    ones.into_iter().collect()
}

/// Which claim is contradicted, and how, as data. Runs that fail alike say the same, apart from values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The name of the claim where it is declared: an invariant's, an error code, the place of a panic; empty
    /// for the one claim of a judge.
    pub name: String,
    /// What is wrong, in words: without when, where, and the two sides of a comparison; empty where the name
    /// says it all.
    pub why: String,
}

impl Said {
    /// A claim whose name says it all.
    pub fn named(name: impl Into<String>) -> Said {
        Said { name: name.into(), why: String::new() }
    }
}

/// What a judge objects to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objection {
    /// Describes what contradicts the judge's claim.
    pub message: String,
    /// Which claim, as data.
    pub said: Said,
    /// The operations, attempts and keys that contradict it, those that matter most first.
    pub witness: Witness,
}

/// Truncates a message of more than 2,000 characters, with a note of how many are missing.
pub fn truncated(mut message: String) -> String {
    const LONGEST: usize = 2_000;
    if let Some((at, _)) = message.char_indices().nth(LONGEST) {
        let rest = message[at..].chars().count();
        message.truncate(at);
        message += &format!("… ({rest} characters more)");
    }
    message
}
