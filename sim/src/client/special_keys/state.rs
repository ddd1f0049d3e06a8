//! What a transaction and its client know of special keys: what was written to them, and what identifies the
//! transaction.

use super::parts::special;
use crate::{
    client::keys::single_key,
    proto::KeyRange,
    rt::{Nanos, SECOND},
    system_keys::Uid,
};
use bytes::Bytes;
use shaketable_tx::KeyValue;
use std::{
    collections::BTreeMap,
    ops::Bound::{Included, Unbounded},
};

/// The special keys that a transaction has set or cleared: for each range, by its begin, its end and its
/// value.
#[derive(Clone, Debug, Default)]
pub struct Writes(BTreeMap<Bytes, (Bytes, Option<Bytes>)>);

impl Writes {
    /// Sets a key, or clears it.
    pub(super) fn set(&mut self, key: &[u8], value: Option<Bytes>) {
        let KeyRange { begin, end } = single_key(key);
        self.forget(&KeyRange { begin: begin.clone(), end: end.clone() });
        self.0.insert(begin, (end, value));
    }

    /// Clears a range.
    pub(super) fn clear(&mut self, range: &KeyRange) {
        self.forget(range);
        self.0.insert(range.begin.clone(), (range.end.clone(), None));
    }

    /// Undoes what was written in a range.
    pub(super) fn forget(&mut self, range: &KeyRange) {
        let touched: Vec<_> = self
            .0
            .range(..range.end.clone())
            .filter(|(_, (end, _))| *end > range.begin)
            .map(|(begin, (end, _))| (begin.clone(), end.clone()))
            .collect();
        for (begin, end) in touched {
            self.0.remove(&begin);
            // Only a cleared range can be wider than one key.
            if begin < range.begin {
                self.0.insert(begin, (range.begin.clone(), None));
            }
            if end > range.end {
                self.0.insert(range.end.clone(), (end, None));
            }
        }
    }

    /// What was written to a key: `None` if nothing was.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<&Bytes>> {
        let (_, (end, value)) = self.0.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        (*key < **end).then_some(value.as_ref())
    }

    /// Whether an option of management is set.
    pub(super) fn option(&self, name: &str) -> bool {
        self.get(&special(&format!("management/options/{name}"))).flatten().is_some()
    }

    /// What was written to the keys of a range, in order: cleared ranges, and keys with their values.
    pub(super) fn within(&self, range: &KeyRange) -> Vec<(KeyRange, Option<Bytes>)> {
        let written = self.0.range(range.begin.clone()..range.end.clone());
        written
            .map(|(begin, (end, value))| (KeyRange { begin: begin.clone(), end: end.clone() }, value.clone()))
            .collect()
    }

    /// `rows` of a range, changed by what was written to it.
    pub(super) fn over(&self, rows: Vec<KeyValue>, range: &KeyRange) -> Vec<KeyValue> {
        let kept = rows.into_iter().filter(|row| self.get(&row.key).is_none());
        let set = self.within(range).into_iter();
        let set = set.filter_map(|(range, value)| Some(KeyValue::new(range.begin, value?)));
        let mut rows: Vec<_> = kept.chain(set).collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}

/// What identifies a transaction in traces.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The number of its life among those of its client.
    pub(super) number: u64,
    pub(super) id: Option<Uid>,
    pub(super) token: Option<Token>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    None,
    Another,
}

impl Span {
    /// The span of the life with this number.
    pub fn new(number: u64) -> Span {
        Span { number, id: None, token: None }
    }
}

/// For how long a client answers from what it knows about the cluster's health
/// (`AGGREGATE_HEALTH_METRICS_MAX_STALENESS`, `DETAILED_HEALTH_METRICS_MAX_STALENESS`).
const STALENESS: Nanos = SECOND / 2;
const DETAILED_STALENESS: Nanos = 5 * SECOND;

/// When a client last learnt about the cluster's health, and about that of single servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct HealthCache {
    asked: Option<Nanos>,
    detailed: Option<Nanos>,
}

impl HealthCache {
    /// Asks, unless it has asked shortly before. Returns whether the servers are known.
    pub(super) fn ask(&mut self, now: Nanos, detailed: bool) -> bool {
        let is_older = |at: Option<Nanos>, most| at.is_none_or(|at| now - at > most);
        if is_older(self.asked, STALENESS) {
            self.asked = Some(now);
            if detailed && is_older(self.detailed, DETAILED_STALENESS) {
                self.detailed = Some(now);
            }
        }
        detailed && self.detailed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_writes_replace_earlier_ones_key_by_key() {
        let mut writes = Writes::default();
        writes.clear(&KeyRange::new("b", "e"));
        writes.set(b"c", Some("1".into()));
        writes.set(b"a", Some("2".into()));
        writes.set(b"a", None);
        writes.forget(&KeyRange::new("d", "d\0"));
        let seen = |key: &str| writes.get(key.as_bytes()).map(|value| value.cloned());
        assert_eq!(seen("a"), Some(None));
        assert_eq!(seen("b"), Some(None));
        assert_eq!(seen("c"), Some(Some("1".into())));
        assert_eq!(seen("d"), None);
        assert_eq!(seen("dd"), Some(None));
        assert_eq!(seen("e"), None);
        let rows = ["a", "c", "d", "dd", "e"].map(|key| KeyValue::new(key, "old"));
        let merged = writes.over(rows.to_vec(), &KeyRange::new("a", "z"));
        let merged: Vec<_> = merged.iter().map(|row| (&*row.key, &*row.value)).collect();
        assert_eq!(merged, [(&b"c"[..], &b"1"[..]), (b"d", b"old"), (b"e", b"old")]);
    }

    #[test]
    fn a_client_that_has_just_asked_for_the_whole_does_not_know_the_servers() {
        let mut health = HealthCache::default();
        assert!(!health.ask(0, false));
        assert!(!health.ask(STALENESS, true), "answered from what it knows");
        assert!(health.ask(2 * STALENESS, true));
        assert!(health.ask(2 * STALENESS + 1, true));
        assert!(!health.ask(2 * STALENESS + 1, false), "not asked for");
    }
}
