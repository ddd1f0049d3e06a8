//! The judges of the cluster while a run goes on: they judge what has become final, so that the history can
//! forget it.
//!
//! An entry of the logs is final once it is known to be on all of them: no recovery takes it back. An attempt
//! is, once it has ended and its commit can no longer land. If both are forgotten only some time after that,
//! the judges find in a run what they would have found in the whole history, except about attempts that end
//! later still: [`History::late`].

use super::{
    Evidence, Judge, Judgement, KnownCommit, Objection, Replica, Timeline, Truth, convergent, durable,
    real_time, serializable::Replay,
};
use crate::{
    history::{Attempt, History},
    ids::AttemptId,
    proto::Version,
    rt::Nanos,
};
use std::collections::BTreeMap;

/// What the judges remember of what was forgotten, and their first objections.
#[derive(Default)]
pub struct Ongoing {
    replay: Replay,
    /// Where the attempts committed that are kept, up to the version that was judged.
    places: BTreeMap<AttemptId, (Version, u16)>,
    /// The highest version that was known to be committed, and when everything that ended was forgotten.
    known: Option<(Nanos, KnownCommit)>,
    objections: BTreeMap<Judge, Box<Objection>>,
}

impl Ongoing {
    /// Judges what was logged at a time or before and is final, and forgets it, and attempts that ended
    /// `landing` earlier than that, after which none of their commits lands. `forgotten` is told each
    /// attempt, and whether it committed. Nobody reads at versions that are more than `window` behind.
    pub fn advance(
        &mut self,
        history: &mut History,
        (logged, landing): (Nanos, Nanos),
        window: Version,
        mut forgotten: impl FnMut(AttemptId, &Attempt, bool),
    ) {
        let until = final_at(history, logged);
        let truth = self.judge(history, until, &[]);
        let ended = logged.saturating_sub(landing);
        let decided = truth.decided(history).into_iter().filter(|(at, ..)| *at < ended);
        let known = decided.map(|(_, version, by)| KnownCommit { version, by: Some(by) });
        let known = known.chain(self.known.map(|(_, known)| known)).max();
        self.known = known.map(|known| (ended, known));
        for (id, attempt) in history.forget(until, ended) {
            forgotten(id, &attempt, truth.place(id).is_some());
        }
        let mut places = truth.into_places(AttemptId(history.first));
        places.retain(|_, (version, _)| *version <= until);
        self.places = places;
        self.replay.forget(until.saturating_sub(window));
    }

    /// Judges what is left at the end, and the replicas. Returns what contradicts the claims, and the truth
    /// of what is left.
    pub fn end(
        mut self,
        history: &History,
        replicas: &[Replica],
    ) -> (BTreeMap<Judge, Box<Objection>>, Truth) {
        let truth = self.judge(history, Version::MAX, replicas);
        let evidence = Evidence { history, truth: &truth, replicas };
        self.find(Judge::Durable, durable::is_kept(&evidence, &self.replay.state));
        self.find(Judge::Convergent, convergent::judge(&evidence));
        (self.objections, truth)
    }

    fn judge(&mut self, history: &History, until: Version, replicas: &[Replica]) -> Truth {
        let truth = Truth::after(history, std::mem::take(&mut self.places));
        let evidence = Evidence { history, truth: &truth, replicas };
        self.replay.advance(&evidence, until);
        let objection = self.replay.objection.clone();
        self.find(Judge::Serializable, objection.map_or(Ok(()), Err));
        let timeline = Timeline::of(history, &truth).after(self.known);
        self.find(Judge::RealTime, real_time::follows(&evidence, &timeline));
        self.find(Judge::Durable, durable::is_logged(&evidence, until));
        truth
    }

    fn find(&mut self, judge: Judge, judgement: Judgement) {
        if let Err(objection) = judgement {
            self.objections.entry(judge).or_insert(objection);
        }
    }
}

/// The last version that was logged at a time or before and is final.
pub fn final_at(history: &History, logged: Nanos) -> Version {
    let known = history.committed().map(|entry| entry.known_committed).max().unwrap_or(0);
    let is_logged = |version: &Version, at: &Nanos| *version <= known && *at <= logged;
    let final_ones = history.durable.iter().filter(|((_, version), at)| is_logged(version, at));
    final_ones.map(|((_, version), _)| *version).max().unwrap_or(0).max(history.judged)
}
