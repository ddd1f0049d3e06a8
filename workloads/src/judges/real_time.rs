//! Real-time order: a transaction that began after another was acknowledged sees it.

use super::{ClusterJudge, Evidence};
use shaketable_sim::{history::AttemptId, proto::Version, rt::Nanos};

/// The judge.
pub const JUDGE: ClusterJudge = ClusterJudge {
    name: "real-time",
    claim: "a transaction that began after another was acknowledged, or its unknown result reported, sees it",
    judge,
};

fn judge(evidence: &Evidence<'_>) -> Result<(), String> {
    let mut decided = evidence.truth.decided(evidence.history);
    let mut asked: Vec<(Nanos, Version, AttemptId)> = Vec::new();
    for (i, attempt) in evidence.history.attempts.iter().enumerate() {
        let (id, Some(attempt)) = (AttemptId(i as u32), attempt) else { continue };
        if let (true, Some(version)) = (attempt.fresh, attempt.read_version) {
            asked.push((attempt.asked, version, id));
        }
    }
    decided.sort();
    asked.sort();
    let mut decided = decided.into_iter().peekable();
    let mut latest: Option<(Version, AttemptId)> = None;
    for (at, read_version, id) in asked {
        while let Some((_, version, by)) = decided.next_if(|(when, ..)| *when < at) {
            latest = latest.max(Some((version, by)));
        }
        if let Some((version, by)) = latest
            && read_version < version
        {
            return Err(format!(
                "attempt {} asked for its read version at {:.6} s and got {read_version}, but attempt {} had \
                 been decided at version {version} before",
                id.0,
                at as f64 / 1e9,
                by.0
            ));
        }
    }
    Ok(())
}
