//! Sizes of keys, values and transactions, durations, and what was refused because of them.

use super::{
    entry,
    guidelines::{
        DURATION, Guideline, KEY, KEY_SIZE, LONG, TRANSACTION, TRANSACTION_SIZE, VALUE, VALUE_SIZE,
    },
    place::Names,
    traffic::Tried,
    units::{bytes, share, time},
};
use bytes::Bytes;
use shaketable_reports::{AdviceEntry, Severity, text::count};
use shaketable_sim::{
    client::commit_size,
    history::Reported,
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{Error, key_after};
use std::collections::BTreeMap;

/// The errors of limits, with the guideline that names the limit.
const REFUSALS: [(Error, &str, Guideline); 4] = [
    (Error::TRANSACTION_TOO_OLD, "duration", LONG),
    (Error::TRANSACTION_TOO_LARGE, "transaction size", TRANSACTION_SIZE),
    (Error::KEY_TOO_LARGE, "key size", KEY_SIZE),
    (Error::VALUE_TOO_LARGE, "value size", VALUE_SIZE),
];

/// The largest number of a kind, and where it was.
#[derive(Clone, Debug, Default, PartialEq)]
struct Largest {
    number: u64,
    kind: String,
    key: Bytes,
}

impl Largest {
    fn see(&mut self, number: u64, kind: &str, key: &Bytes) {
        if number > self.number {
            *self = Largest { number, kind: kind.to_owned(), key: key.clone() };
        }
    }
}

/// The sizes of what was written, and the durations of attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sizes {
    /// Written keys, and those of more than 32 bytes.
    keys: (u64, u64),
    key: Largest,
    /// Written values, and those of more than 10 kB.
    values: (u64, u64),
    value: Largest,
    transaction: Largest,
    duration: Largest,
    /// By kind and code of the error.
    refused: BTreeMap<(String, i32), u64>,
}

impl Sizes {
    /// Observes the attempts of a run.
    pub(super) fn observe(&mut self, tried: &[Tried<'_>]) {
        for one in tried {
            self.duration.see(one.time(), one.kind, &Bytes::new());
            if let Reported::Failed(error) = one.attempt.reported
                && REFUSALS.iter().any(|(refusal, ..)| *refusal == error)
            {
                *self.refused.entry((one.kind.to_owned(), error.code())).or_default() += 1;
            }
            let Some(mutations) = one.committed else { continue };
            self.see(one.kind, mutations);
            let writes: Vec<KeyRange> = match &one.attempt.write_ranges {
                Some(ranges) => ranges.clone(),
                None => mutations.iter().map(|mutation| super::hot::target(mutation).0).collect(),
            };
            let size = commit_size(mutations, &one.attempt.read_ranges, &writes);
            self.transaction.see(u64::try_from(size).unwrap_or(0), one.kind, &Bytes::new());
        }
    }

    fn see(&mut self, kind: &str, mutations: &[Mutation]) {
        for mutation in mutations {
            if let Mutation::Set(key, value) | Mutation::Atomic(key, value, _) = mutation {
                self.keys.0 += 1;
                self.keys.1 += u64::from(key.len() as u64 > KEY[0]);
                self.values.0 += 1;
                self.values.1 += u64::from(value.len() as u64 > VALUE[0]);
                self.key.see(key.len() as u64, kind, key);
                self.value.see(value.len() as u64, kind, key);
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Sizes) {
        self.keys.0 += other.keys.0;
        self.keys.1 += other.keys.1;
        self.values.0 += other.values.0;
        self.values.1 += other.values.1;
        for (mine, theirs) in [
            (&mut self.key, &other.key),
            (&mut self.value, &other.value),
            (&mut self.transaction, &other.transaction),
            (&mut self.duration, &other.duration),
        ] {
            mine.see(theirs.number, &theirs.kind, &theirs.key);
        }
        for (of, count) in &other.refused {
            *self.refused.entry(of.clone()).or_default() += count;
        }
    }

    /// What was refused because of a limit.
    pub(super) fn refused(&self) -> Vec<AdviceEntry> {
        let of_refusal = |((kind, code), n): (&(String, i32), &u64)| {
            let (error, topic, guideline) = REFUSALS.iter().find(|(error, ..)| error.code() == *code)?;
            let measured = format!(
                "{kind} was refused {} with {error}",
                if *n == 1 { "once".to_owned() } else { format!("{} times", count(*n)) }
            );
            Some(entry(topic, Severity::Over, Some(kind), measured, (*n as f64, "refusals"), *guideline))
        };
        self.refused.iter().filter_map(of_refusal).collect()
    }

    /// The largest sizes and the longest duration.
    pub(super) fn advise(&self, names: &Names) -> Vec<AdviceEntry> {
        let place = |key: &Bytes| names.range(&KeyRange::new(key.clone(), key_after(key)));
        let of = |largest: &Largest, topic: &str, advised: u64, guideline: Guideline, measured: String| {
            let severity = if largest.number > advised { Severity::Look } else { Severity::Fine };
            let kind = Some(largest.kind.as_str()).filter(|kind| !kind.is_empty());
            entry(topic, severity, kind, measured, (largest.number as f64, "bytes"), guideline)
        };
        let mut entries = Vec::new();
        if self.key.number > 0 {
            let measured = format!(
                "{} of written keys have more than {} bytes; the largest, {}, has {}",
                share(self.keys.1, self.keys.0),
                KEY[0],
                place(&self.key.key),
                bytes(self.key.number),
            );
            entries.push(of(&self.key, "key size", KEY[1], KEY_SIZE, measured));
            let value = format!(
                "{} of written values have more than {}; the largest, of {}, has {}",
                share(self.values.1, self.values.0),
                bytes(VALUE[0]),
                place(&self.value.key),
                bytes(self.value.number),
            );
            entries.push(of(&self.value, "value size", VALUE[0], VALUE_SIZE, value));
            let size = &self.transaction;
            let measured = format!("the largest transaction, of {}, has {}", size.kind, bytes(size.number));
            entries.push(of(size, "transaction size", TRANSACTION[0], TRANSACTION_SIZE, measured));
        }
        if self.duration.number > 0 {
            let longest = &self.duration;
            let measured =
                format!("the longest transaction, of {}, took {}", longest.kind, time(longest.number));
            // Half of the limit leaves little for a busy cluster.
            let severity = match longest.number {
                long if long > DURATION => Severity::Over,
                long if long > DURATION / 2 => Severity::Look,
                _ => Severity::Fine,
            };
            let seconds = (longest.number as f64 / 1e9, "s");
            entries.push(entry("duration", severity, Some(&longest.kind), measured, seconds, LONG));
        }
        entries
    }
}
