//! Conflict-free: operations that the layer promises not to conflict with each other cannot conflict.
//!
//! A conflict may be rare, or explained by a fault. This judge therefore compares the serializable reads of
//! the attempts of such operations with the writes of other clients' transactions, regardless of when they
//! happened.

use super::{Judgement, Truth};
use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    judge::finding::{Objection, Witness},
};
use bytes::Bytes;
use shaketable_sim::{
    history::History,
    ids::AttemptId,
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{key_after, show};
use std::collections::BTreeMap;

/// Judges the attempts of the operations that the workload calls conflict-free.
pub fn judge(workload: &AnyWorkload, plan: &[Vec<AnyValue>], history: &History, truth: &Truth) -> Judgement {
    let free: Vec<Vec<bool>> =
        plan.iter().map(|list| list.iter().map(|op| workload.is_conflict_free(op)).collect()).collect();
    if !free.iter().flatten().any(|free| *free) {
        return Ok(());
    }
    conflicts(&free, history, truth, &|client, operation| {
        format!("operation {operation} of client {client} ({:?})", plan[client][operation])
    })
}

/// Who wrote: the client, its operation, and the attempt.
type Writer = (usize, usize, AttemptId);

/// What was written: single keys, and ranges of several, each with the first attempt of each client.
#[derive(Default)]
struct Written {
    keys: BTreeMap<Bytes, Vec<Writer>>,
    ranges: BTreeMap<(Bytes, Bytes), Vec<Writer>>,
}

impl Written {
    fn add(&mut self, mutation: &Mutation, by: Writer) {
        let writers = match mutation {
            Mutation::Set(key, _) | Mutation::Atomic(key, ..) => self.keys.entry(key.clone()),
            Mutation::ClearRange(range) if range.end == key_after(&range.begin) => {
                self.keys.entry(range.begin.clone())
            }
            Mutation::ClearRange(KeyRange { begin, end }) => {
                let writers = self.ranges.entry((begin.clone(), end.clone())).or_default();
                return add(writers, by);
            }
        };
        add(writers.or_default(), by);
    }

    /// The first attempt of another client that wrote in a range, and what it wrote.
    fn met(&self, read: &KeyRange, client: usize) -> Option<(KeyRange, Writer)> {
        let keys = (read.begin < read.end).then(|| self.keys.range(read.begin.clone()..read.end.clone()));
        let keys = keys.into_iter().flatten().map(|(key, by)| (key, None, by));
        let ranges = self.ranges.range(..(read.end.clone(), Bytes::new()));
        let ranges = ranges.filter(|((_, end), _)| read.begin < *end);
        let ranges = ranges.map(|((begin, end), by)| (begin, Some(end), by));
        let others = keys.chain(ranges).flat_map(|(begin, end, by)| {
            by.iter().filter(|(other, ..)| *other != client).map(move |by| (begin, end, *by))
        });
        let (begin, end, by) = others.min_by_key(|(begin, _, (.., by))| (*by, *begin))?;
        Some((KeyRange::new(begin.clone(), end.cloned().unwrap_or_else(|| key_after(begin))), by))
    }
}

/// Adds a writer, unless an earlier attempt of its client is there.
fn add(writers: &mut Vec<Writer>, by: Writer) {
    match writers.iter_mut().find(|(client, ..)| *client == by.0) {
        Some(same) if by.2 < same.2 => *same = by,
        Some(_) => {}
        None => writers.push(by),
    }
}

/// Judges the operations that are marked in `free`, by client.
fn conflicts(
    free: &[Vec<bool>],
    history: &History,
    truth: &Truth,
    describe: &dyn Fn(usize, usize) -> String,
) -> Judgement {
    let promised = |client: usize, operation: Option<u32>| {
        let operation = operation? as usize;
        free.get(client)?.get(operation)?.then_some(operation)
    };
    let mut written = Written::default();
    for tx in truth.entries.iter().flat_map(|entry| &entry.transactions) {
        let Some((id, attempt)) = tx.attempt.and_then(|id| Some((id, history.attempt(id)?))) else {
            continue;
        };
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        tx.mutations.iter().for_each(|mutation| written.add(mutation, (client, operation, id)));
    }
    for (id, attempt) in history.numbered() {
        let client = attempt.client.0 as usize;
        let Some(operation) = promised(client, attempt.operation) else { continue };
        for read in &attempt.read_ranges {
            if let Some((range, (other, theirs, by))) = written.met(read, client) {
                let message = format!(
                    "{} reads {} serializably, and {} writes {}: they can conflict, and promise not to",
                    describe(client, operation),
                    show::range(&read.begin, &read.end),
                    describe(other, theirs),
                    show::key(&range.begin),
                );
                let witness = Witness {
                    operations: vec![(client, operation), (other, theirs)],
                    attempts: vec![id, by],
                    keys: common(read, &range),
                    ..Witness::default()
                };
                return Err(Box::new(Objection { message, witness, ..Objection::default() }));
            }
        }
    }
    Ok(())
}

/// What two ranges have in common: a key, or the two ends of a range.
fn common(one: &KeyRange, other: &KeyRange) -> Vec<Bytes> {
    let begin = one.begin.clone().max(other.begin.clone());
    let end = one.end.clone().min(other.end.clone());
    if end == key_after(&begin) { vec![begin] } else { vec![begin, end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_attempt_of_another_client_is_met_by_a_key_and_by_a_range() {
        let mut written = Written::default();
        let set = |key: &'static str| Mutation::Set(key.into(), "".into());
        let clear = |begin: &'static str, end: &'static str| Mutation::ClearRange(KeyRange::new(begin, end));
        let writes = [
            (set("k"), (0, 0, AttemptId(5))),
            (set("k"), (0, 1, AttemptId(3))),
            (set("k"), (1, 0, AttemptId(4))),
            (clear("c", "e"), (2, 0, AttemptId(2))),
            (clear("m", "m\0"), (2, 1, AttemptId(6))),
        ];
        writes.iter().for_each(|(mutation, by)| written.add(mutation, *by));
        let met = |begin: &'static str, end: &'static str, client| {
            let (range, (_, operation, by)) = written.met(&KeyRange::new(begin, end), client)?;
            Some((range, operation, by.0))
        };
        let key = |key: &'static str| KeyRange::new(key, key_after(key.as_bytes()));
        assert_eq!(met("k", "l", 9), Some((key("k"), 1, 3)));
        assert_eq!(met("k", "l", 0), Some((key("k"), 0, 4)));
        assert_eq!(met("d", "d\0", 0), Some((KeyRange::new("c", "e"), 0, 2)));
        assert_eq!(met("a", "z", 0), Some((KeyRange::new("c", "e"), 0, 2)));
        assert_eq!(met("m", "z", 0), Some((key("m"), 1, 6)));
        assert_eq!((met("d", "d\0", 2), met("e", "k", 0), met("a", "c", 0)), (None, None, None));
    }
}
