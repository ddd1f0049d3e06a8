//! Real-time order: a transaction that began after another one was acknowledged sees it.

use super::{Evidence, Timeline};

/// Claims that a transaction that began after another one was acknowledged, or after its unknown result was
/// reported, sees it if it committed.
pub fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
    let timeline = Timeline::of(evidence.history, evidence.truth);
    for (id, attempt) in evidence.history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        if let (true, Some(read_version)) = (attempt.fresh, attempt.read_version)
            && let Some(decided) = timeline.known_before(attempt.version_requested)
            && read_version < decided.version
        {
            return Err(format!(
                "attempt {id} requested its read version at {:.6} s and received {read_version}, but attempt {} \
                 was known to have committed at version {} before",
                attempt.version_requested as f64 / 1e9,
                decided.by.map_or(0, |by| by.0),
                decided.version,
            ));
        }
    }
    Ok(())
}
