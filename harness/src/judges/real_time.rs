//! Real-time order: a transaction that began after another was acknowledged sees it.

use super::{Evidence, Timeline};

/// Claims that a transaction that began after another was acknowledged, or its unknown result reported, sees it.
pub fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
    let timeline = Timeline::of(evidence.history, evidence.truth);
    for (id, attempt) in evidence.history.attempts.iter().enumerate() {
        let Some(attempt) = attempt else { continue };
        if let (true, Some(read_version)) = (attempt.fresh, attempt.read_version)
            && let Some(decided) = timeline.decided_before(attempt.version_requested)
            && read_version < decided.version
        {
            return Err(format!(
                "attempt {id} asked for its read version at {:.6} s and got {read_version}, but attempt {} had \
                 been decided at version {} before",
                attempt.version_requested as f64 / 1e9,
                decided.by.map_or(0, |by| by.0),
                decided.version,
            ));
        }
    }
    Ok(())
}
