//! What a run is performed on: a simulated cluster ([`simulated`](super::simulated)), or a real one
//! ([`real`](crate::real)).

use super::{Participants, RunResult};
use crate::{
    judges::Replica,
    plan::Plan,
    workload::{Operation, Workload},
};
use shaketable_layers::tx::{Database, Error};
use shaketable_sim::{
    history::{ClientId, History},
    proto::Version,
    rt::Nanos,
};
use std::future::Future;

/// The acts of a run, as the event stream numbers them.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    Setup = 1,
    Hurt = 2,
    Heal = 3,
    Check = 4,
}

/// The auditor's client number. Numbers from here on are far from those of a workload's clients.
pub(crate) const AUDITOR: ClientId = ClientId(1_000);
/// The number of the client that sets the workload up.
pub(crate) const SETTER: ClientId = ClientId(1_001);
/// The number of the client that does the final check.
pub(crate) const CHECKER: ClientId = ClientId(1_002);

/// How a job of the run itself ended.
pub(crate) enum Job<T> {
    Done(T),
    Failed(Error),
    /// With this message.
    Panicked(String),
    TooLong,
}

/// A cluster that a run is performed on. A method that returns [`Lost`](Testbed::Lost) ends the run.
pub(crate) trait Testbed<W: Workload> {
    /// The database of a client.
    type Database: Database;
    /// Why a run cannot be completed, although nothing is wrong with the layer.
    type Lost;

    /// Time since the testbed began.
    fn now(&self) -> Nanos;

    /// Begins an act after the setup, which begins with the testbed. *Heal* ends all faults.
    fn begin(&self, act: Act);

    /// Runs a job of the run itself, as a client that no fault strikes.
    fn undisturbed<T, F>(
        &self,
        client: ClientId,
        doing: &'static str,
        job: impl Fn(Self::Database) -> F + Send + Sync + 'static,
    ) -> impl Future<Output = Result<Job<T>, Self::Lost>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static;

    /// The version of the last commit so far.
    fn latest_commit(&self) -> Version;

    /// Starts the clients, the auditor, and the faults.
    fn start(&self, participants: &Participants<W>) -> Result<(), Self::Lost>;

    /// Waits until all clients are done, at most for `duration`.
    fn wait(
        &self,
        participants: &Participants<W>,
        duration: Nanos,
    ) -> impl Future<Output = Result<(), Self::Lost>>;

    /// How long clients may take after the last fault, nanoseconds.
    fn bound(&self) -> Nanos;

    /// Ends the auditor and what is left of the clients, and waits until none of their commits can still land.
    /// `late` says that some client is not done.
    fn quiesce(&self, late: bool) -> impl Future<Output = Result<(), Self::Lost>>;

    /// Waits until the cluster is at rest, and returns what it holds. The inner error says what does not come to rest.
    fn harvest(&self) -> impl Future<Output = Result<Result<Vec<Replica>, String>, Self::Lost>>;

    /// Reads the history. On a real cluster it is complete only after [`harvest`](Testbed::harvest).
    fn history<T>(&self, read: impl FnOnce(&History) -> T) -> T;

    /// Ends the testbed, and adds to the result what only the testbed counts and records.
    fn close(
        self,
        plan: &Plan<W>,
        operations: &[Vec<Operation<W::Answer>>],
        replicas: &[Replica],
        result: RunResult,
    ) -> impl Future<Output = RunResult>;
}
