//! Checks a run by the simulator's own judges. An objection is a bug of the simulator, and never of the
//! program.
//!
//! When the history reaches a part of the memory that the settings allow, its final entries are judged and
//! then dropped, while the run continues.

use crate::{report::Tally, stale};
use shaketable_sim::{
    cluster::Cluster,
    faults,
    history::Attempt,
    ids::AttemptId,
    judges::{Ongoing, Replica},
    proto::Version,
    rt::{Nanos, SECOND},
    world::{Class, World},
};

/// How long a cluster without faults may take until its storage servers have caught up.
const LONGEST_SETTLE: Nanos = 60 * SECOND;

/// The state of the judges, and the tally of the attempts so far.
pub struct Verdict {
    judges: Ongoing,
    tally: Tally,
    /// The size of the history that is judged in one go, bytes: a part of what may be kept, because judging
    /// takes memory as well, and what is not final remains.
    part: usize,
    /// The size at which the history is judged next.
    next: usize,
}

impl Verdict {
    /// Nothing was judged yet. Of the history, `memory` bytes may be kept.
    pub fn new(memory: usize) -> Verdict {
        let part = memory / 4;
        Verdict { judges: Ongoing::default(), tally: Tally::default(), part, next: part }
    }

    /// Judges and forgets what has become final, if the history is large.
    pub fn keep_up(&mut self, world: &World) {
        if world.history.lock().size < self.next {
            return;
        }
        let landing = landing(world);
        self.forget(world, world.clock.now().saturating_sub(landing), landing);
        if world.history.lock().size > 2 * self.part {
            // Entries are dropped before it is certain that they are final: the report says how many.
            self.forget(world, world.clock.now(), 0);
        }
        self.next = self.part.max(world.history.lock().size + self.part / 2);
    }

    fn forget(&mut self, world: &World, logged: Nanos, landing: Nanos) {
        let tally = &mut self.tally;
        let forgotten = |id: AttemptId, attempt: &Attempt, committed| tally.add(id, attempt, committed);
        let window: Version = 2 * world.config.window;
        self.judges.advance(&mut world.history.lock(), (logged, landing), window, forgotten);
    }

    /// Ends the clients and the faults, lets the cluster settle, and asks every judge. Each sentence that is
    /// returned describes a violation of what FoundationDB promises.
    pub async fn end(self, world: &World, cluster: &Cluster) -> (Tally, Vec<String>) {
        world.machines(Class::Client).into_iter().for_each(|client| world.kill(client));
        world.faults.switch(false);
        faults::heal(world);
        if world.history.lock().commits_may_land() {
            world.clock.sleep(landing(world)).await;
        }
        match world.clock.timeout(LONGEST_SETTLE, cluster.settle()).await {
            Some(()) => self.judged(world, &cluster.final_state()),
            None => {
                let (tally, mut objections) = self.judged(world, &[]);
                objections.push("the storage servers do not catch up without faults".to_owned());
                (tally, objections)
            }
        }
    }

    fn judged(mut self, world: &World, replicas: &[Replica]) -> (Tally, Vec<String>) {
        let history = world.history.lock();
        let (objections, truth) = self.judges.end(&history, replicas);
        for (id, attempt) in history.numbered() {
            self.tally.add(id, attempt, truth.place(id).is_some());
        }
        self.tally.stale = stale::of(&history, &truth);
        let objections = objections.into_iter();
        let sentences = objections
            .map(|(judge, objection)| format!("it is not so that {}: {}", judge.claim(), objection.message));
        (self.tally, sentences.collect())
    }
}

/// How long after it was sent a commit may still be applied: until its read version has left the window, and
/// a second for the network.
fn landing(world: &World) -> Nanos {
    world.config.window as u64 * SECOND / world.config.versions_per_second.max(1) as u64 + SECOND
}
