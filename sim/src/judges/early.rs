//! The judge of serializability while a run goes on, so that the history of a long run need not keep all that
//! was read and written to its end.
//!
//! Unlike [`Ongoing`](super::Ongoing), this leaves the attempts and the log, which judges of layers read at
//! the end. No witness names what is missing: a run that fails must be performed again, with all of it.

use super::{Evidence, Judgement, Truth, serializable::Replay};
use crate::{
    history::{Attempt, History},
    proto::Version,
};

/// What was judged so far.
#[derive(Default)]
pub struct Early(Replay);

impl Early {
    /// Judges the attempts that read or committed at versions up to this one, which
    /// [is final](super::final_at). Those that `may_go` are left without calls. Nobody reads at versions that
    /// are more than `window` behind. Attempts that read at these versions and end later are not judged:
    /// [`History::late`].
    pub fn advance(
        &mut self,
        history: &mut History,
        until: Version,
        window: Version,
        may_go: impl Fn(&Attempt) -> bool,
    ) {
        let settled = until.saturating_sub(window);
        let truth = Truth::of(history);
        self.0.advance(&Evidence { history, truth: &truth, replicas: &[] }, until);
        self.0.forget(settled);
        history.forget_calls(until, |id, attempt| {
            let is_judged = match (truth.place(id), attempt.commit_sent) {
                (Some((version, _)), _) => version <= until,
                // Its commit may still land.
                (None, Some(_)) => attempt.read_version.is_some_and(|read| read <= settled),
                (None, None) => attempt.read_version.is_none_or(|read| read <= until),
            };
            is_judged && may_go(attempt)
        });
    }

    /// Judges what is left at the end.
    pub fn end(self, evidence: &Evidence<'_>) -> Judgement {
        self.0.end(evidence)
    }
}
