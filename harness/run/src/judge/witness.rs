//! The witnesses of broken invariants and of a final database that differs: what was read, and who wrote it.

use super::{
    Truth,
    writes::{LAST, Place, Writes, spans},
};
use crate::judge::finding::Witness;
use shaketable_sim::{
    history::History,
    ids::{AttemptId, ClientId},
    proto::{KeyRange, Version},
};

/// The witness of an invariant that a transaction broke: the keys that it wrote and the failing audit read,
/// and those who had last written what else that audit read.
pub(super) fn breaks(
    history: &History,
    truth: &Truth,
    place: Place,
    attempt: Option<AttemptId>,
    reads: &[KeyRange],
) -> Witness {
    let writes = Writes::of(history, truth);
    let mut witness = Witness { attempts: attempt.into_iter().collect(), ..Witness::default() };
    let written = attempt.map(|attempt| writes.by(attempt)).unwrap_or_default();
    let is_read = |key: &bytes::Bytes| reads.iter().any(|range| range.contains(key));
    witness.keys.extend(written.into_iter().filter(is_read));
    let others = writes.seen(reads, place).into_iter().map(|(_, by)| by);
    witness.attempts.extend(others);
    witness
}

/// The witness of what a client read, at one read version or at all of its own: the keys that operations had
/// written, and who wrote them last. What was written last comes first.
pub(crate) fn observed(history: &History, truth: &Truth, client: ClientId, at: Option<Version>) -> Witness {
    let (writes, mut witness) = (Writes::of(history, truth), Witness::default());
    let its = history.attempts.iter().flatten().filter(|attempt| attempt.client == client);
    for attempt in its {
        if let Some(version) = attempt.read_version.filter(|version| at.is_none_or(|at| at == *version)) {
            witness.add(writes.seen(&spans(attempt), (version, LAST)));
        }
    }
    witness
}
