//! The cluster on which a run is performed: a simulated one ([`simulated`](super::simulated)) or a real one
//! ([`real`](crate::run::real)).

use super::{Participants, RunResult};
use crate::{
    describe::erased::AnyValue, describe::workload::Operation, judge::Replica, judge::panics::Panicked,
    run::plan::Plan,
};
use shaketable_sim::{history::History, ids::ClientId, judges::Early, proto::Version, rt::Nanos};
use shaketable_tx::{Db, Error};
use std::future::Future;

/// The acts of a run, with their numbers in the event stream.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    Setup = 1,
    Hurt = 2,
    Heal = 3,
    Check = 4,
}

/// The client number of the auditor. A workload has far fewer clients than this number.
#[doc(hidden)]
pub const AUDITOR: ClientId = ClientId(1_000);
/// The client number of the setup.
pub(crate) const SETTER: ClientId = ClientId(1_001);
/// The client number of the final check.
pub(crate) const CHECKER: ClientId = ClientId(1_002);

/// How the setup or the final check ended.
pub(crate) enum Job<T> {
    Done(T),
    Failed(Error),
    Panicked(Panicked),
    TooLong,
}

/// A cluster on which a run is performed. A method that returns [`Lost`](Testbed::Lost) ends the run.
pub(crate) trait Testbed {
    /// Why a run cannot be completed, for reasons other than the layer.
    type Lost;

    /// Time since the testbed was created.
    fn now(&self) -> Nanos;

    /// Begins an act. The first act, *setup*, begins when the testbed is created. *Heal* ends all faults.
    fn begin(&self, act: Act);

    /// Runs the setup or the final check as a client that no fault affects.
    fn undisturbed<T, F>(
        &self,
        client: ClientId,
        doing: &'static str,
        job: impl Fn(Db) -> F + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Job<T>, Self::Lost>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static;

    /// The version of the last commit so far.
    fn latest_commit(&self) -> Version;

    /// Starts the clients and the auditor.
    fn start(&self, participants: &Participants) -> Result<(), Self::Lost>;

    /// Waits until the first client has filled the store, but no longer than `duration`. Then faults begin.
    fn fill(
        &self,
        participants: &Participants,
        duration: Nanos,
    ) -> impl Future<Output = Result<(), Self::Lost>>;

    /// Waits until all clients are done, but no longer than `duration`.
    fn wait(
        &self,
        participants: &Participants,
        duration: Nanos,
    ) -> impl Future<Output = Result<(), Self::Lost>>;

    /// How long clients may take after faults have ended, nanoseconds.
    fn bound(&self) -> Nanos;

    /// Stops the auditor and the remaining clients, and waits until none of their commits can still take
    /// effect. `late` is true if some client is not done.
    fn quiesce(&self, late: bool) -> impl Future<Output = Result<(), Self::Lost>>;

    /// Waits until the cluster has settled, and returns the contents of its replicas. The inner error
    /// describes what does not settle.
    fn final_state(&self) -> impl Future<Output = Result<Result<Vec<Replica>, String>, Self::Lost>>;

    /// Reads the history. On a real cluster it is complete only after [`final_state`](Testbed::final_state).
    fn history<T>(&self, read: impl FnOnce(&History) -> T) -> T;

    /// What was judged before the history was complete.
    fn early(&self) -> Early {
        Early::default()
    }

    /// Shuts the testbed down, and adds the data that only the testbed has to the result.
    fn close(
        self,
        plan: &Plan,
        operations: &[Vec<Operation<AnyValue>>],
        replicas: &[Replica],
        result: RunResult,
    ) -> impl Future<Output = RunResult>;
}
