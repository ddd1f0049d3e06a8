//! Pulling from the logs: from which log, what has been received, and when to subscribe again.
//!
//! Any log of the current generation is suitable, since each holds all entries. A log streams until it dies;
//! its death, or lost messages, are detected as silence or as a gap.

use crate::{
    ids::{Endpoint, Generation},
    proto::{LogEntry, LogSystem, Version},
    rt::{MILLISECOND, Nanos},
};
use std::{collections::VecDeque, sync::Arc};

/// The time without an entry after which another log is used.
const SILENCE: Nanos = 500 * MILLISECOND;
/// How long a gap is tolerated after subscribing again, since messages already in flight arrive first.
const PATIENCE: Nanos = 20 * MILLISECOND;

/// The state of a storage server's pulling.
#[derive(Debug, Default)]
pub struct Pull {
    system: Arc<LogSystem>,
    log: usize,
    queue: VecDeque<(Nanos, Vec<Arc<LogEntry>>)>,
    received: Version,
    subscribed_at: Nanos,
    last_received: Nanos,
}

impl Pull {
    /// The initial state for server number `server`: servers are distributed over the logs.
    pub fn new(server: u16) -> Pull {
        Pull { log: usize::from(server), ..Pull::default() }
    }

    /// The current generation; 0 before the first is known.
    pub fn generation(&self) -> Generation {
        self.system.generation
    }

    /// The current generation's logs.
    pub fn logs(&self) -> &[Endpoint] {
        &self.system.logs
    }

    /// Switches to a new generation. Returns the last valid version of what was pulled so far, if not all of
    /// it is valid.
    pub fn change(&mut self, system: Arc<LogSystem>) -> Option<Version> {
        let old = std::mem::replace(&mut self.system, system).generation;
        self.queue.clear();
        self.received = 0;
        (old > 0).then(|| self.system.ends.range(old..).next().map(|(_, end)| *end)).flatten()
    }

    /// Selects the log to subscribe to at `now`, which differs from the previous one. Waiting entries are
    /// dropped, since they will be received again.
    pub fn next_log(&mut self, now: Nanos) -> Option<Endpoint> {
        (self.subscribed_at, self.last_received) = (now, now);
        self.queue.clear();
        self.log += 1;
        let logs = &self.system.logs;
        (!logs.is_empty()).then(|| logs[self.log % logs.len()])
    }

    /// Receives entries of a generation at `now`, which may be applied `lag` later.
    pub fn receive(
        &mut self,
        now: Nanos,
        generation: Generation,
        entries: Vec<Arc<LogEntry>>,
        lag: impl FnOnce() -> Nanos,
    ) {
        if generation != self.system.generation {
            return;
        }
        self.last_received = now;
        if let Some(last) = entries.last() {
            self.received = self.received.max(last.version);
            let due = self.queue.back().map_or(0, |(due, _)| *due).max(now + lag());
            self.queue.push_back((due, entries));
        }
    }

    /// The entries that may be applied at `now`.
    pub fn take(&mut self, now: Nanos) -> Option<Vec<Arc<LogEntry>>> {
        self.queue.pop_front_if(|(due, _)| *due <= now).map(|(_, entries)| entries)
    }

    /// The highest version received, applied or not.
    pub fn received(&self) -> Version {
        self.received
    }

    /// Whether a gap at `now` justifies subscribing again.
    pub fn should_resubscribe(&self, now: Nanos) -> bool {
        now >= self.subscribed_at + PATIENCE
    }

    /// Whether there has been silence for so long at `now` that another log should be used: there may be
    /// nothing to receive, if the network has not been disturbed since.
    pub fn is_silent(&self, now: Nanos, disturbed_until: Nanos) -> bool {
        disturbed_until >= self.last_received && now >= self.last_received + SILENCE
    }

    /// When there is something to do even if nothing is received.
    pub fn due(&self, disturbed_until: Nanos) -> Option<Nanos> {
        let silent = (disturbed_until >= self.last_received).then_some(self.last_received + SILENCE);
        [silent, self.queue.front().map(|(due, _)| *due)].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use std::collections::BTreeMap;

    fn system(generation: Generation, ends: &[(Generation, Version)]) -> Arc<LogSystem> {
        let log = |token| Endpoint { node: NodeId(1), token };
        Arc::new(LogSystem {
            generation,
            logs: vec![log(0), log(1)],
            ends: BTreeMap::from_iter(ends.to_vec()),
        })
    }

    fn entry(version: Version) -> Arc<LogEntry> {
        let (previous, known_committed) = (version - 1, 0);
        Arc::new(LogEntry { previous, version, known_committed, transactions: Vec::new() })
    }

    #[test]
    fn a_server_that_missed_generations_rolls_back_to_the_end_of_its_own() {
        let mut pull = Pull::new(0);
        assert_eq!(pull.change(system(2, &[(1, 50)])), None, "nothing was pulled before");
        assert_eq!(pull.change(system(5, &[(1, 50), (2, 70), (4, 90)])), Some(70));
    }

    #[test]
    fn entries_are_applied_when_due_in_order_and_other_generations_are_ignored() {
        let mut pull = Pull::new(0);
        pull.change(system(1, &[]));
        pull.receive(10, 2, vec![entry(1)], || 0);
        assert!(pull.take(100).is_none());
        pull.receive(10, 1, vec![entry(1)], || 30);
        pull.receive(20, 1, vec![entry(2)], || 0);
        assert_eq!((pull.due(0), pull.received()), (Some(40), 2));
        assert!(pull.take(39).is_none());
        assert_eq!(pull.take(40).map(|e| e[0].version), Some(1));
        assert_eq!(pull.take(40).map(|e| e[0].version), Some(2));
    }

    #[test]
    fn silence_after_a_disturbance_leads_to_another_log() {
        let mut pull = Pull::new(0);
        pull.change(system(1, &[]));
        let first = pull.next_log(0);
        assert!(!pull.is_silent(SILENCE - 1, 0) && pull.is_silent(SILENCE, 0));
        assert_eq!(pull.due(0), Some(SILENCE));
        pull.receive(5, 1, vec![entry(1)], || 0);
        assert_eq!(pull.take(5).map(|e| e[0].version), Some(1));
        assert!(!pull.is_silent(5 + SILENCE, 4) && pull.is_silent(5 + SILENCE, 5));
        assert_eq!((pull.due(4), pull.due(5)), (None, Some(5 + SILENCE)));
        assert!(!pull.should_resubscribe(PATIENCE - 1) && pull.should_resubscribe(PATIENCE));
        assert_ne!(pull.next_log(SILENCE), first);
    }
}
