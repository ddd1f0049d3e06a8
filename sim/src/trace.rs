//! The event stream of a run: always hashed, and kept if it is to be read or compared.
//!
//! Two runs of one seed must produce the same stream. An event consists of four numbers, so that hashing is
//! cheap; its [`Kind`] defines their meaning.

use crate::{ids::NodeId, rt::Nanos};
use parking_lot::Mutex;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The kind of an event; its text describes the event's two numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name),* }

        impl Kind {
            /// The event as text; `{a}` and `{b}` stand for its numbers.
            pub const fn text(self) -> &'static str {
                match self { $(Kind::$name => $text),* }
            }
        }
    };
}

kinds! {
    /// A message reached its inbox.
    Deliver = "message {b} from node {a}";
    /// A reply reached its caller.
    Reply = "reply from node {a}";
    /// A message or reply was lost; the caller detects it later.
    Lost = "message to node {a} lost";
    /// A request's promise was broken: its server died or refused it.
    Broken = "broken promise of node {a}";
    /// A machine was killed.
    Kill = "killed";
    /// A machine was (re)started.
    Start = "started, incarnation {a}";
    /// A machine was paused.
    Pause = "paused";
    /// A machine was resumed.
    Resume = "resumed";
    /// A fault family struck.
    Fault = "fault family {a} struck, detail {b}";
    /// A recovery began.
    RecoveryBegin = "recovery into generation {a} begins";
    /// A recovery ended.
    RecoveryEnd = "generation {a} accepts commits from version {b}";
    /// A commit proxy closed a batch.
    Batch = "batch of {b} transactions at version {a}";
    /// A transaction log made a version durable.
    Logged = "version {a} durable, {b} transactions";
    /// A storage server applied a version.
    Applied = "applied version {a}";
    /// A storage server rolled back.
    Rollback = "rolled back from version {b} to {a}";
    /// A shard moved.
    ShardMoved = "shard {a} now at team {b}";
    /// A client's operation was called.
    Call = "operation {a} called";
    /// A client's operation returned.
    Return = "operation {a} returned, answer {b:x}";
    /// A client began an attempt.
    Attempt = "attempt {a} of operation {b}";
    /// A read version arrived.
    ReadVersion = "attempt {a} reads at version {b}";
    /// A commit returned: the version, or the negated error code.
    Commit = "attempt {a} commit answered {b}";
    /// An act of the run began.
    Act = "act {a} begins";
    /// An audit was evaluated.
    Audit = "audit at version {a}, verdict {b}";
    /// A hash of the final keyspace.
    Keyspace = "final keyspace {a:x}, {b} keys";
    /// A program that runs on the client's machine called its client library: a digest of the call and its
    /// arguments.
    Library = "the program calls its client library: {a:x}";
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Virtual time.
    pub at: Nanos,
    /// The machine on which it happened.
    pub node: NodeId,
    /// Its kind.
    pub kind: Kind,
    /// First number.
    pub a: u64,
    /// Second number.
    pub b: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self
            .kind
            .text()
            .replace("{a:x}", &format!("{:016x}", self.a))
            .replace("{b:x}", &format!("{:016x}", self.b))
            .replace("{a}", &(self.a as i64).to_string())
            .replace("{b}", &(self.b as i64).to_string());
        write!(f, "{:>13.6} s  node {:<3} {text}", self.at as f64 / 1e9, self.node.0)
    }
}

/// The event stream of a run so far.
pub struct Trace(Mutex<Inner>);

struct Inner {
    hash: u64,
    count: u64,
    kept: Option<Vec<Event>>,
}

impl Trace {
    /// An empty stream; `keep` determines whether events are kept in addition to their hash.
    pub fn new(keep: bool) -> Trace {
        Trace(Mutex::new(Inner { hash: 0x9e37_79b9_7f4a_7c15, count: 0, kept: keep.then(Vec::new) }))
    }

    /// Appends an event.
    pub fn event(&self, at: Nanos, node: NodeId, kind: Kind, a: u64, b: u64) {
        let mut inner = self.0.lock();
        let head = (at << 16) ^ (u64::from(node.0) << 8) ^ kind as u64;
        inner.hash = mix(mix(inner.hash ^ head, 0xa076_1d64_78bd_642f) ^ a, 0xe703_7ed1_a0b4_28db ^ b);
        inner.count += 1;
        if let Some(kept) = &mut inner.kept {
            kept.push(Event { at, node, kind, a, b });
        }
    }

    /// The hash over all events so far, and their number.
    pub fn hash(&self) -> (u64, u64) {
        let inner = self.0.lock();
        (inner.hash, inner.count)
    }

    /// Returns and removes the kept events.
    pub fn take(&self) -> Vec<Event> {
        self.0.lock().kept.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// A 64-bit mix that depends on every bit of both arguments: the folded product.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x2d35_8dcc_aa6c_78a5) * u128::from(b ^ 0x8bb8_4b93_962e_acc9);
    (product as u64) ^ (product >> 64) as u64
}

/// A hash of bytes that is the same on every platform.
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed, bytes.len() as u64);
    let mut add = |word| hash = mix(hash ^ u64::from_le_bytes(word), 0x4b33_a62e_d433_d4a3);
    let (words, rest) = bytes.as_chunks();
    words.iter().for_each(|word| add(*word));
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        add(word);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_every_event_moves_the_hash() {
        let hash = |at, node, kind, a, b| {
            let t = Trace::new(false);
            t.event(at, NodeId(node), kind, a, b);
            t.hash()
        };
        let base = hash(1, 1, Kind::Deliver, 1, 1);
        for other in [
            hash(2, 1, Kind::Deliver, 1, 1),
            hash(1, 2, Kind::Deliver, 1, 1),
            hash(1, 1, Kind::Reply, 1, 1),
            hash(1, 1, Kind::Deliver, 2, 1),
            hash(1, 1, Kind::Deliver, 1, 2),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn an_event_reads_as_a_sentence() {
        let e = Event { at: 1_500_000, node: NodeId(3), kind: Kind::Batch, a: 77, b: 2 };
        assert_eq!(e.to_string(), "     0.001500 s  node 3   batch of 2 transactions at version 77");
    }
}
