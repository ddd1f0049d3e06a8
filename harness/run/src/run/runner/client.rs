//! A client of a run. It opens a session and does its operations one after another. It drops some of them
//! before they finish, and continues. A client that dies is restarted and continues with its next operation,
//! or it has left for good and does no further one.

use super::{Audits, Host};
use crate::{
    describe::erased::{AnySession, AnyValue, AnyWorkload},
    describe::sessions,
    describe::workload::{Operation, Outcome},
    judge::finding::{Finding, Kind, Witness},
    judge::panics,
    run::plan::Plan,
};
use futures::{
    FutureExt,
    future::{Either, select},
};
use parking_lot::Mutex;
use shaketable_reports::Scale;
use shaketable_sim::{
    faults::Cut,
    judges::Said,
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    trace,
};
use shaketable_tx::{
    Error,
    points::{self, Part},
};
use std::{any::Any, collections::BTreeSet, panic::AssertUnwindSafe, pin::pin, sync::Arc};

/// The state of a client that survives its death.
pub(crate) struct Progress {
    pub(crate) operations: Vec<Operation<AnyValue>>,
    pub(crate) findings: Vec<Finding>,
    /// The indices of the operations that did not end by themselves: they were dropped, their client died, or
    /// they panicked.
    pub(crate) ended: BTreeSet<usize>,
    /// Whether the client has finished, or has left for good.
    pub(crate) done: bool,
    pace: Stream,
}

/// A client: its planned operations and its progress.
pub(crate) struct Client {
    pub(crate) workload: AnyWorkload,
    pub(crate) number: usize,
    planned: Vec<AnyValue>,
    /// The mean pause before an operation, nanoseconds.
    pause: Nanos,
    /// How many of its operations fill the store: they have no pause before them.
    filling: usize,
    /// Who fills the store before this one begins.
    after: Option<Arc<Client>>,
    pub(crate) progress: Mutex<Progress>,
}

/// The clients and the auditor of a run.
pub(crate) struct Participants {
    pub(crate) workload: AnyWorkload,
    /// How long the run is.
    pub(crate) scale: Scale,
    /// How many consecutive clients are tasks of one process.
    pub(crate) tasks: usize,
    pub(crate) clients: Vec<Arc<Client>>,
    /// The results of the auditor so far.
    pub(crate) audits: Arc<Mutex<Audits>>,
}

impl Participants {
    /// The participants of a plan. None of them has started.
    pub(crate) fn of(plan: &Plan) -> Participants {
        let seed = plan.run_seed();
        let client = |number: usize, filling: usize, after: Option<Arc<Client>>| {
            let pace = seed.run_stream(&format!("pace-{number}"));
            let progress = Progress {
                operations: Vec::new(),
                findings: Vec::new(),
                ended: BTreeSet::new(),
                done: false,
                pace,
            };
            Arc::new(Client {
                workload: plan.configuration.clone(),
                number,
                planned: plan.operations[number].clone(),
                pause: plan.pause,
                filling,
                after,
                progress: Mutex::new(progress),
            })
        };
        let mut clients: Vec<Arc<Client>> = Vec::new();
        for number in 0..plan.operations.len() {
            let first = clients.first().filter(|first| first.filling > 0);
            let filling = if number == 0 { plan.filling } else { 0 };
            clients.push(client(number, filling, first.cloned()));
        }
        let (workload, scale) = (plan.configuration.clone(), plan.demands.scale);
        Participants { workload, scale, tasks: plan.tasks, clients, audits: Arc::default() }
    }

    /// Whether the store is filled, or will not be.
    pub(crate) fn are_filled(&self) -> bool {
        self.clients.first().is_none_or(|first| first.has_filled())
    }

    /// Whether every client has finished or left.
    pub(crate) fn are_done(&self) -> bool {
        self.clients.iter().all(|client| client.progress.lock().done)
    }

    /// The operations of each client so far.
    pub(crate) fn operations(&self) -> Vec<Vec<Operation<AnyValue>>> {
        self.clients.iter().map(|client| client.progress.lock().operations.clone()).collect()
    }

    /// The clients that have neither finished nor left.
    pub(crate) fn unfinished(&self) -> BTreeSet<usize> {
        let unfinished = self.clients.iter().filter(|client| !client.progress.lock().done);
        unfinished.map(|client| client.number).collect()
    }

    /// The operations that did not end by themselves: client and index.
    pub(crate) fn ended(&self) -> BTreeSet<(usize, usize)> {
        let of = |client: &Arc<Client>| {
            let number = client.number;
            client.progress.lock().ended.iter().map(|index| (number, *index)).collect::<Vec<_>>()
        };
        self.clients.iter().flat_map(of).collect()
    }

    /// The findings of the clients so far.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.clients.iter().flat_map(|client| client.progress.lock().findings.clone()).collect()
    }
}

impl Client {
    /// Whether its operations that fill the store have ended.
    fn has_filled(&self) -> bool {
        let progress = self.progress.lock();
        let ended = progress.operations.iter().filter(|operation| operation.outcome.is_some());
        progress.done || ended.take(self.filling).count() == self.filling
    }

    /// The client has left for good: the rest of its operations is not done.
    pub(crate) fn leave(&self, now: Nanos) {
        self.end_abandoned_operation(now);
        self.progress.lock().done = true;
    }

    /// Marks the operation that was in progress when the client died as having an unknown outcome.
    fn end_abandoned_operation(&self, now: Nanos) {
        let progress = &mut *self.progress.lock();
        if let Some(op) = progress.operations.last_mut()
            && op.outcome.is_none()
        {
            op.returned = now;
            op.outcome = Some(Outcome::Unknown(Error::OPERATION_CANCELLED));
            progress.ended.insert(progress.operations.len() - 1);
        }
    }
}

/// Opens the sessions of clients that are tasks of one process, from its start or restart. Returns for each
/// of them what runs it until it has finished or dies.
pub(crate) async fn tasks<H: Host>(clients: Vec<(H, Arc<Client>)>) -> Vec<impl Future<Output = ()>> {
    let mut sessions: Vec<Option<AnySession>> = Vec::new();
    for (host, client) in &clients {
        client.end_abandoned_operation(host.now());
        let is_done = client.progress.lock().done;
        let other = sessions.iter_mut().flatten().next();
        let session = if is_done { None } else { open(host, client, other).await };
        sessions.push(session);
    }
    let tasks = clients.into_iter().zip(sessions);
    tasks.map(|((host, client), session)| run(host, client, session)).collect()
}

/// Runs a client on a host, from its start or restart until it has finished or dies.
pub(crate) async fn run_client<H: Host>(host: H, client: Arc<Client>) {
    client.end_abandoned_operation(host.now());
    run(host, client, None).await;
}

async fn run<H: Host>(host: H, client: Arc<Client>, mut opened: Option<AnySession>) {
    while client.after.as_ref().is_some_and(|first| !first.has_filled()) {
        host.sleep(10 * MILLISECOND).await;
    }
    while !client.progress.lock().done {
        let session = match opened.take() {
            Some(session) => Some(session),
            None => open(&host, &client, None).await,
        };
        let Some(mut session) = session else { return };
        loop {
            let index = client.progress.lock().operations.len();
            let Some(op) = client.planned.get(index) else {
                client.progress.lock().done = true;
                return;
            };
            if client.pause > 0 && index >= client.filling {
                let pause = client.progress.lock().pace.below(2 * client.pause);
                host.sleep(pause).await;
            }
            let called = host.now();
            host.event(trace::Kind::Call, index as u64, 0);
            client.progress.lock().operations.push(Operation { called, returned: called, outcome: None });
            host.set_operation(Some(index as u32));
            let operation = async {
                client.workload.prepare(&mut session).await;
                host.prepared();
                client.workload.perform(&mut session, op).await
            };
            let part = || Part { operation: Some((client.number, index)), moment: Some(host.now()) };
            let done = points::in_part(part, operation);
            let done = cut_short(&host, AssertUnwindSafe(done).catch_unwind()).await;
            host.set_operation(None);
            let Some(outcome) = done else {
                host.was_cut();
                client.progress.lock().ended.insert(index);
                end_operation(&host, &client, Ok(Outcome::Unknown(Error::OPERATION_CANCELLED)));
                continue;
            };
            let outcome = match outcome {
                Ok(Outcome::Unknown(error)) => {
                    let resolved = client.workload.resolve(&mut session, op, error);
                    points::in_part(part, AssertUnwindSafe(resolved).catch_unwind()).await
                }
                other => other,
            };
            let survived = outcome.is_ok();
            end_operation(&host, &client, outcome);
            if !survived {
                // A panic may leave the session in any state: open another one.
                break;
            }
        }
    }
}

/// Waits for an operation. Returns `None` if the host dropped it before it finished.
async fn cut_short<T>(host: &impl Host, operation: impl Future<Output = T>) -> Option<T> {
    match host.cut() {
        None => Some(operation.await),
        Some(Cut::Polls(most)) => sessions::polled(most, operation).await,
        Some(Cut::After(time)) => match select(pin!(operation), pin!(host.sleep(time))).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        },
    }
}

/// Opens the session of a client, beside that of another task of its process if there is one.
async fn open<H: Host>(host: &H, client: &Client, mut other: Option<&mut AnySession>) -> Option<AnySession> {
    loop {
        let opened = match &mut other {
            Some(other) => client.workload.open_beside(host.database(), client.number, other),
            None => client.workload.open(host.database(), client.number),
        };
        let part = || Part { operation: None, moment: Some(host.now()) };
        match points::in_part(part, AssertUnwindSafe(opened).catch_unwind()).await {
            Ok(Ok(session)) => return Some(session),
            Ok(Err(_)) => host.sleep(10 * MILLISECOND).await,
            Err(panic) => {
                let mut progress = client.progress.lock();
                let panicked = panics::caught(&*panic);
                progress.findings.push(Finding::panicked(Kind::Panic, "", &panicked).at(host.now()));
                progress.done = true;
                return None;
            }
        }
    }
}

fn end_operation(host: &impl Host, client: &Client, outcome: Result<Outcome<AnyValue>, Box<dyn Any + Send>>) {
    let mut progress = client.progress.lock();
    let index = progress.operations.len() - 1;
    let name = || format!("operation {index} of client {} ({:?})", client.number, client.planned[index]);
    let now = host.now();
    let witness = || Witness::operation(client.number, index);
    let outcome = match outcome {
        Ok(Outcome::Violated(why)) => {
            let message = format!("{}: {why}", name());
            let said = Said { name: String::new(), why };
            let finding = Finding::new(Kind::Answer, message.clone());
            progress.findings.push(finding.saying(said).with(witness()).at(now));
            Outcome::Violated(message)
        }
        Ok(outcome) => outcome,
        Err(panic) => {
            let during = format!("{} panicked: ", name());
            let finding = Finding::panicked(Kind::Panic, &during, &panics::caught(&*panic));
            progress.findings.push(finding.with(witness()).at(now));
            progress.ended.insert(index);
            Outcome::Unknown(Error::OPERATION_CANCELLED)
        }
    };
    let answer = trace::hash_bytes(0, format!("{outcome:?}").as_bytes());
    let op = &mut progress.operations[index];
    op.returned = now;
    op.outcome = Some(outcome);
    host.event(trace::Kind::Return, index as u64, answer);
}
