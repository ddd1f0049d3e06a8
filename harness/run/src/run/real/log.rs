//! The log in which the transactions of a run on a real cluster record that they committed, and the history
//! that is made of it and of what the clients recorded.

use super::prefixed::Space;
use parking_lot::Mutex;
use shaketable_sim::{
    atomic,
    history::{Attempt, Call, History, Reported},
    ids::{AttemptId, Generation},
    judges::Appends,
    proto::{LogEntry, LoggedTransaction, Mutation, Version},
    rt::Nanos,
};
use shaketable_tx::Env;
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The history recorded by all clients of a run, whose times count from its beginning.
#[derive(Default)]
pub(super) struct SharedHistory {
    pub(super) recorded: Mutex<History>,
    began: Duration,
}

impl SharedHistory {
    /// An empty history of a run that begins at this time of its clients' clocks.
    pub(super) fn from(began: Duration) -> SharedHistory {
        SharedHistory { began, ..SharedHistory::default() }
    }

    /// The time since the run began.
    pub(super) fn since_began(&self, env: &Env) -> Nanos {
        env.now().saturating_sub(self.began).as_nanos() as Nanos
    }

    /// A version that includes everything that was acknowledged: the highest one of an acknowledged commit,
    /// or of a transaction that only read. A retry may find that the commit with an unknown result before it
    /// took effect.
    pub(super) fn latest_commit(&self) -> Version {
        let version = |attempt: &Attempt| match attempt.reported {
            Reported::Committed { version, .. } => version,
            Reported::ReadOnly => attempt.read_version.unwrap_or(0),
            _ => 0,
        };
        self.recorded.lock().attempts.iter().flatten().map(version).max().unwrap_or(0)
    }

    /// Whether a commit may still take effect: see [`History::commits_may_land`].
    pub(super) fn commits_may_land(&self) -> bool {
        self.recorded.lock().commits_may_land()
    }

    /// The history. `log` shows what committed: it has the versionstamp and the attempt of each entry.
    pub(super) fn history(&self, log: &[([u8; 10], AttemptId)]) -> History {
        let mut seen = self.recorded.lock();
        // A real cluster may be slow at any time.
        let faulty = Some((0, Nanos::MAX));
        let attempts = std::mem::take(&mut seen.attempts);
        let met = std::mem::take(&mut seen.met);
        let mut history = History { attempts, met, faulty, ..History::default() };
        let mut versions: BTreeMap<Version, Vec<LoggedTransaction>> = BTreeMap::new();
        for (stamp, attempt) in log {
            let (version, batch_index) = place(stamp);
            let calls = history.attempts.get(attempt.0 as usize).and_then(Option::as_ref);
            let mutations = calls.map_or_else(Vec::new, sent);
            let mutations = mutations.iter().map(|mutation| atomic::stamped(mutation, stamp)).collect();
            let transaction = LoggedTransaction { attempt: Some(*attempt), batch_index, mutations };
            versions.entry(version).or_default().push(transaction);
        }
        let mut previous = 0;
        for (version, mut transactions) in versions {
            transactions.sort_by_key(|tx| tx.batch_index);
            let entry = LogEntry { previous, version, known_committed: version, transactions };
            history.logged.insert((Generation::default(), version), Arc::new(entry));
            previous = version;
        }
        history
    }
}

/// The writes of an attempt, as the client sends them.
fn sent(attempt: &Attempt) -> Vec<Mutation> {
    let mut appends = Appends::default();
    let mut sent: Vec<Mutation> = Vec::new();
    for (number, call) in attempt.calls.iter().enumerate() {
        let Call::Write(mutation) = call else { continue };
        let joins = attempt.own_writes.at(number).read;
        match joins.then(|| appends.write(sent.len(), mutation, attempt.read_version, |_| None)).flatten() {
            Some(joined) => sent[joined.begun] = joined.sent,
            None => sent.push(mutation.clone()),
        }
    }
    sent
}

/// The commit version and the batch index of a versionstamp.
pub(super) fn place(stamp: &[u8; 10]) -> (Version, u16) {
    let [a, b, c, d, e, f, g, h, i, j] = *stamp;
    (Version::from_be_bytes([a, b, c, d, e, f, g, h]), u16::from_be_bytes([i, j]))
}

/// The log in which a run's transactions record that they committed.
#[derive(Clone, Debug)]
pub(super) struct Log(Space);

impl Log {
    /// Creates a log in a space that is not used for anything else.
    pub(super) fn new(space: Space) -> Log {
        Log(space)
    }

    /// The keys of its entries.
    pub(super) fn space(&self) -> &Space {
        &self.0
    }

    /// The versionstamped key of an attempt's entry: the prefix, ten zero bytes for the versionstamp, the
    /// attempt's number as four bytes (big-endian), and the offset of the versionstamp.
    pub(super) fn key(&self, attempt: AttemptId) -> Vec<u8> {
        let prefix = self.0.prefix();
        let mut key = prefix.to_vec();
        key.extend_from_slice(&[0; 10]);
        key.extend_from_slice(&attempt.0.to_be_bytes());
        key.extend_from_slice(&(prefix.len() as u32).to_le_bytes());
        key
    }

    /// The versionstamp and the attempt of an entry; `None` if the key is not an entry of this log.
    pub(super) fn entry(&self, key: &[u8]) -> Option<([u8; 10], AttemptId)> {
        let (stamp, attempt) = key.strip_prefix(&self.0.prefix()[..])?.split_first_chunk()?;
        Some((*stamp, AttemptId(u32::from_be_bytes(attempt.try_into().ok()?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use shaketable_tx::MutationType;

    #[test]
    fn a_log_key_has_the_version_and_the_attempt_of_a_commit() {
        let log = Log::new(Space::new("run/log/").expect("a prefix"));
        let key = log.key(AttemptId(0x01020304));
        let stamped = atomic::stamped(
            &Mutation::Atomic(key.into(), Bytes::new(), MutationType::SetVersionstampedKey),
            &[0, 0, 0, 0, 0, 0, 0, 9, 0, 7],
        );
        let Mutation::Set(key, _) = stamped else { panic!("{stamped:?}") };
        let (stamp, attempt) = log.entry(&key).expect("an entry of the log");
        assert_eq!((place(&stamp), attempt), ((9, 7), AttemptId(0x01020304)));
        assert_eq!(log.entry(b"run/log/short"), None);
        assert_eq!(log.entry(b"other"), None);
    }
}
