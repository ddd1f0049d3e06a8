//! Neighbours: no operation changes keys of other applications.
//!
//! One cluster has the keys of many layers. Where those of a layer begin and end is what its workload
//! [says](crate::describe::workload::Workload::subspaces): then every other key is somebody else's, and rows
//! of another application stand at the edges from the setup on, so that a range that is read too far finds
//! one. Of a layer whose workload does not say it, two keys are nobody's if it has a subspace: one before
//! all of them, and one behind. A range that begins with nothing, or ends at the end of the database, has
//! them. A layer that owns the whole database reads there: then it may.

use super::{
    Judgement,
    writes::{point, spans},
};
use crate::{
    describe::weakened::Span,
    judge::finding::{Objection, Witness},
};
use bytes::Bytes;
use shaketable_sim::{
    history::{Attempt, History},
    judges::SESSIONS,
    proto::{KeyRange, Mutation},
};
use shaketable_tx::{self as tx, Database, Db, Transaction, show, strinc};
use std::collections::BTreeSet;

/// The keys of neighbours: before and behind those of any layer with a subspace.
const NEIGHBOURS: [&[u8]; 2] = [b"\x00", b"\xfe\xff\xff\xff"];

/// What the rows of the other application have.
const VALUE: &[u8] = b"a row of another application";

/// The end of the user keys and the begin of the system keys.
const SYSTEM: &[u8] = b"\xff";

/// The keys that operations of a layer may change.
#[derive(Clone)]
pub(crate) struct Owned {
    subspaces: Vec<KeyRange>,
    /// The sessions of clients, and the system keys.
    others: [KeyRange; 2],
}

impl Owned {
    /// Those in these subspaces, of the sessions, and of the system; `None` if there are no subspaces.
    pub(crate) fn of(subspaces: Vec<Span>) -> Option<Owned> {
        let range = |(begin, end): Span| KeyRange::new(begin, end);
        let others =
            [KeyRange::new(SESSIONS, strinc(SESSIONS)?), KeyRange::new(SYSTEM, &b"\xff\xff\xff"[..])];
        let owned = Owned { subspaces: subspaces.into_iter().map(range).collect(), others };
        (!owned.subspaces.is_empty()).then_some(owned)
    }

    /// The range that has a key.
    fn with(&self, key: &[u8]) -> Option<&KeyRange> {
        self.subspaces.iter().chain(&self.others).find(|range| range.contains(key))
    }

    /// The first key of a range that is not the layer's.
    fn beyond(&self, range: &KeyRange) -> Option<Bytes> {
        let mut key = range.begin.clone();
        while let Some(own) = self.with(&key) {
            key = own.end.clone();
        }
        (key < range.end).then_some(key)
    }

    /// The keys at the edges: just before each subspace, and its end.
    fn edges(&self) -> BTreeSet<Bytes> {
        let edges = self.subspaces.iter().flat_map(|range| [before(&range.begin), Some(range.end.clone())]);
        edges
            .flatten()
            .filter(|key| !key.is_empty() && &key[..] < SYSTEM && self.with(key).is_none())
            .collect()
    }

    /// Writes the rows of the other application.
    pub(crate) async fn plant(&self, db: &Db) -> tx::Result<()> {
        let planted = db.run(|tx, _| async move {
            self.edges().iter().for_each(|key| tx.set(key, VALUE));
            Ok::<_, tx::Error>(())
        });
        planted.await.map_err(|e| e.error)
    }
}

/// A key just before another one.
fn before(key: &[u8]) -> Option<Bytes> {
    let (last, rest) = key.split_last()?;
    let tail = last.checked_sub(1).map_or_else(Vec::new, |last| vec![last, 0xff]);
    Some([rest, &tail].concat().into())
}

/// Claims that no operation changes a neighbour's key. `describe` names an operation: its client and index.
pub fn judge(
    subspaces: Vec<Span>,
    history: &History,
    describe: impl Fn((usize, usize)) -> String,
) -> Judgement {
    let owned = Owned::of(subspaces);
    let mut entries: Vec<_> = history.committed().collect();
    entries.sort_by_key(|entry| entry.version);
    for tx in entries.into_iter().flat_map(|entry| &entry.transactions) {
        let Some((id, by)) = tx.attempt.and_then(|id| Some((id, history.attempt(id)?))) else { continue };
        let Some(operation) = by.operation.map(|index| (usize::from(by.client.0), index as usize)) else {
            continue;
        };
        for mutation in &tx.mutations {
            let (what, range) = match mutation {
                Mutation::Set(key, _) | Mutation::Atomic(key, ..) => ("writes", point(key)),
                Mutation::ClearRange(range) => ("clears", range.clone()),
            };
            let foreign = match &owned {
                Some(owned) => owned.beyond(&range),
                None => unread(&range, history),
            };
            let Some(key) = foreign else { continue };
            let why = match owned {
                Some(_) => "it is in none of its subspaces",
                None => "no operation, audit or check reads it",
            };
            let message = format!(
                "{} {what} {}, and {} in it is not the layer's: {why}",
                describe(operation),
                show::range(&range.begin, &range.end),
                show::key(&key),
            );
            let witness = Witness {
                operations: vec![operation],
                attempts: vec![id],
                keys: vec![key],
                ..Witness::default()
            };
            return Err(Box::new(Objection { message, witness, ..Objection::default() }));
        }
    }
    Ok(())
}

/// The key of a neighbour in a range that nobody reads.
fn unread(range: &KeyRange, history: &History) -> Option<Bytes> {
    let key = NEIGHBOURS.into_iter().find(|key| range.contains(key))?;
    let is_read = history.attempts.iter().flatten().any(|attempt| reads(attempt, key));
    (!is_read).then(|| Bytes::from_static(key))
}

/// Whether the reads of an attempt show that a layer owns the whole database, which counts where a workload
/// does not say what is its own.
pub(crate) fn reads_any(attempt: &Attempt) -> bool {
    NEIGHBOURS.iter().any(|key| reads(attempt, key))
}

fn reads(attempt: &Attempt, key: &[u8]) -> bool {
    spans(attempt).iter().any(|span: &KeyRange| span.contains(key))
}

#[cfg(test)]
mod tests {
    use super::{super::story::Story, *};
    use shaketable_sim::history::Call;
    use shaketable_tx::Isolation;

    fn owned(spans: &[(&[u8], &[u8])]) -> Owned {
        let spans = spans.iter().map(|(begin, end)| (begin.to_vec(), end.to_vec()));
        Owned::of(spans.collect()).expect("subspaces")
    }

    #[test]
    fn what_begins_or_ends_too_far_is_beyond() {
        let owned = owned(&[(b"a/", b"a0"), (b"b\0", b"b\xff"), (b"b\xff", b"c")]);
        let beyond = |begin: &[u8], end: &[u8]| {
            let found = owned.beyond(&KeyRange::new(begin.to_vec(), end.to_vec()));
            found.map(|key| key.to_vec())
        };
        for (begin, end) in [
            (&b"a/"[..], &b"a0"[..]),
            (b"a/x", b"a/y"),
            (b"b\0", b"c"),
            (b"\xff/metadataVersion", b"\xff/metadataVersion\0"),
            (b"\x02sessions\0\x15\x01", b"\x02sessions\0\x15\x02"),
            (b"c", b"c"),
        ] {
            assert_eq!(beyond(begin, end), None, "{begin:?}");
        }
        assert_eq!(beyond(b"a/", b"a0\0").as_deref(), Some(&b"a0"[..]));
        assert_eq!(beyond(b"a/", b"b").as_deref(), Some(&b"a0"[..]));
        assert_eq!(beyond(b"a", b"a0").as_deref(), Some(&b"a"[..]));
        assert_eq!(beyond(b"b", b"c").as_deref(), Some(&b"b"[..]));
        assert_eq!(beyond(b"b\0", b"c\0").as_deref(), Some(&b"c"[..]));
    }

    #[test]
    fn one_read_of_a_neighbour_is_enough() {
        let [key, ..] = NEIGHBOURS;
        let get = |key: &'static [u8]| Call::Get {
            key: key.into(),
            isolation: Isolation::Snapshot,
            answer: Some(None),
        };
        let mut story = Story::default();
        story.attempt(1, vec![get(b"mine")]);
        let range = KeyRange::new(key, [key, b"\0"].concat());
        assert_eq!(unread(&range, &story.history).as_deref(), Some(key));
        story.attempt(2, vec![get(key)]);
        assert_eq!(unread(&range, &story.history), None);
    }

    #[test]
    fn rows_stand_at_the_edges() {
        let edges = owned(&[(b"a/", b"a0"), (b"b\0", b"b\xff"), (b"b\xff", b"c")]).edges();
        let edges: Vec<&[u8]> = edges.iter().map(|key| &key[..]).collect();
        assert_eq!(edges, [&b"a.\xff"[..], b"a0", b"b", b"c"]);
        // Nothing is before everything, and behind it.
        assert_eq!(owned(&[(b"", SYSTEM)]).edges(), BTreeSet::new());
    }
}
