//! Real-time order: a transaction that began after another one was acknowledged sees it.

use super::{Evidence, Judgement, Timeline};
use super::{Objection, Witness};

/// Claims that a transaction that began after another one was acknowledged, or after its unknown result was
/// reported, sees it if it committed.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    follows(evidence, &Timeline::of(evidence.history, evidence.truth))
}

/// Claims it about the attempts that are kept.
pub fn follows(evidence: &Evidence<'_>, timeline: &Timeline) -> Judgement {
    for (id, attempt) in evidence.history.numbered() {
        if let (true, Some(read_version)) = (attempt.fresh, attempt.read_version)
            && let Some(decided) = timeline.known_before(attempt.version_requested)
            && read_version < decided.version
        {
            let message = format!(
                "attempt {} requested its read version at {:.6} s and received {read_version}, but attempt {} \
                 was known to have committed at version {} before",
                id.0,
                attempt.version_requested as f64 / 1e9,
                decided.by.map_or(0, |by| by.0),
                decided.version,
            );
            let witness = Witness {
                attempts: std::iter::once(id).chain(decided.by).collect(),
                expected: Some(format!("a read version of at least {}", decided.version)),
                found: Some(format!("read version {read_version}")),
                ..Witness::default()
            };
            return Err(Box::new(Objection { message, witness, ..Objection::default() }));
        }
    }
    Ok(())
}
