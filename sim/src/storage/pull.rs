//! Pulling from the logs: which log, what of it has come, and when to ask again.
//!
//! Any log of the current generation will do, since each holds everything. A log streams until it
//! dies; that it has died, or that messages were lost, shows as silence or as a gap.

use crate::{
    net::Endpoint,
    proto::{Generation, LogEntry, LogSystem, Version},
    rt::{MILLISECOND, Nanos},
};
use std::{collections::VecDeque, sync::Arc};

/// After how long without an entry another log is asked.
const SILENCE: Nanos = 500 * MILLISECOND;
/// How long a gap is put up with after having asked again: what was under way before comes first.
const PATIENCE: Nanos = 20 * MILLISECOND;

/// The pulling side of a storage server.
#[derive(Debug, Default)]
pub struct Pull {
    system: Arc<LogSystem>,
    log: usize,
    queue: VecDeque<(Nanos, Vec<Arc<LogEntry>>)>,
    received: Version,
    asked: Nanos,
    heard: Nanos,
}

impl Pull {
    /// The pulling side of server number `server`: servers spread over the logs.
    pub fn new(server: u16) -> Pull {
        Pull { log: usize::from(server), ..Pull::default() }
    }

    /// The current generation, 0 before the first is known.
    pub fn generation(&self) -> Generation {
        self.system.generation
    }

    /// The current generation's logs.
    pub fn logs(&self) -> &[Endpoint] {
        &self.system.logs
    }

    /// A new generation has begun. Answers the version that is the last to count of what was pulled
    /// until now, if that is not all of it.
    pub fn change(&mut self, system: Arc<LogSystem>) -> Option<Version> {
        let old = std::mem::replace(&mut self.system, system).generation;
        self.queue.clear();
        self.received = 0;
        (old > 0).then(|| self.system.ends.range(old..).next().map(|(_, end)| *end)).flatten()
    }

    /// Asks at `now`: the log to ask, which is another than the last time. What waits is dropped,
    /// since it comes again.
    pub fn ask(&mut self, now: Nanos) -> Option<Endpoint> {
        (self.asked, self.heard) = (now, now);
        self.queue.clear();
        self.log += 1;
        let logs = &self.system.logs;
        (!logs.is_empty()).then(|| logs[self.log % logs.len()])
    }

    /// Entries of a generation have come at `now` and may be applied `lag` later.
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
        self.heard = now;
        if let Some(last) = entries.last() {
            self.received = self.received.max(last.version);
            let due = self.queue.back().map_or(0, |(due, _)| *due).max(now + lag());
            self.queue.push_back((due, entries));
        }
    }

    /// Entries that may be applied at `now`.
    pub fn take(&mut self, now: Nanos) -> Option<Vec<Arc<LogEntry>>> {
        self.queue.pop_front_if(|(due, _)| *due <= now).map(|(_, entries)| entries)
    }

    /// The highest version seen, applied or not.
    pub fn received(&self) -> Version {
        self.received
    }

    /// Whether a gap is worth asking again at `now`.
    pub fn is_impatient(&self, now: Nanos) -> bool {
        now >= self.asked + PATIENCE
    }

    /// Whether it has been silent for so long at `now` that another log should be asked.
    pub fn is_silent(&self, now: Nanos) -> bool {
        now >= self.heard + SILENCE
    }

    /// When there will be something to do although nothing comes.
    pub fn due(&self) -> Nanos {
        let silent = self.heard + SILENCE;
        self.queue.front().map_or(silent, |(due, _)| silent.min(*due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NodeId;
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
    fn a_server_that_slept_through_generations_goes_back_to_where_its_own_ended() {
        let mut pull = Pull::new(0);
        assert_eq!(pull.change(system(2, &[(1, 50)])), None, "nothing was pulled before");
        assert_eq!(pull.change(system(5, &[(1, 50), (2, 70), (4, 90)])), Some(70));
    }

    #[test]
    fn entries_wait_for_their_time_in_order_and_others_generations_are_ignored() {
        let mut pull = Pull::new(0);
        pull.change(system(1, &[]));
        pull.receive(10, 2, vec![entry(1)], || 0);
        assert!(pull.take(100).is_none());
        pull.receive(10, 1, vec![entry(1)], || 30);
        pull.receive(20, 1, vec![entry(2)], || 0);
        assert_eq!((pull.due(), pull.received()), (40, 2));
        assert!(pull.take(39).is_none());
        assert_eq!(pull.take(40).map(|e| e[0].version), Some(1));
        assert_eq!(pull.take(40).map(|e| e[0].version), Some(2));
    }

    #[test]
    fn silence_leads_to_another_log() {
        let mut pull = Pull::new(0);
        pull.change(system(1, &[]));
        let first = pull.ask(0);
        assert!(!pull.is_silent(SILENCE - 1) && pull.is_silent(SILENCE));
        assert!(!pull.is_impatient(PATIENCE - 1) && pull.is_impatient(PATIENCE));
        assert_ne!(pull.ask(SILENCE), first);
    }
}
