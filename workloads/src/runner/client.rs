//! A client of a run: opens a session, does its operations one after the other, dies and comes
//! back with the next one.

use super::panics;
use crate::{
    judges::Finding,
    workload::{Outcome, Workload, perform},
};
use futures::FutureExt;
use parking_lot::Mutex;
use shaketable_layers::tx::Error;
use shaketable_sim::{
    client::SimDatabase,
    history::ClientId,
    net::{Endpoint, NodeId},
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    trace::Kind,
    world::World,
};
use std::{panic::AssertUnwindSafe, sync::Arc};

/// An operation as it went.
#[derive(Clone, Debug)]
pub struct Operation<A> {
    /// When it was called.
    pub called: Nanos,
    /// When it returned, or when its client died.
    pub returned: Nanos,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<Outcome<A>>,
}

/// What outlives a client's death: its list, how far it got, what it learned.
pub(super) struct Progress<W: Workload> {
    pub(super) operations: Vec<Operation<W::Answer>>,
    pub(super) findings: Vec<Finding>,
    pub(super) done: bool,
    rng: Stream,
}

impl<W: Workload> Progress<W> {
    pub(super) fn new(rng: Stream) -> Progress<W> {
        Progress { operations: Vec::new(), findings: Vec::new(), done: false, rng }
    }
}

/// What a client needs to know of its run.
pub(super) struct Job<W: Workload> {
    pub(super) workload: W,
    pub(super) client: usize,
    pub(super) operations: Vec<W::Op>,
    pub(super) pause: Nanos,
    pub(super) progress: Arc<Mutex<Progress<W>>>,
}

/// One life of a client.
pub(super) async fn live<W: Workload>(
    world: Arc<World>,
    node: NodeId,
    controller: Endpoint,
    job: Arc<Job<W>>,
) {
    let client = ClientId(job.client as u16);
    let db = SimDatabase::new(world.clone(), node, client, controller);
    bury(&world, &job);
    while !job.progress.lock().done {
        let Some(mut session) = open(&world, &db, &job).await else { return };
        loop {
            let index = job.progress.lock().operations.len();
            let Some(op) = job.operations.get(index) else {
                job.progress.lock().done = true;
                return;
            };
            if job.pause > 0 {
                let pause = job.progress.lock().rng.below(2 * job.pause);
                world.clock.sleep(pause).await;
            }
            let called = world.clock.now();
            world.event(node, Kind::Call, index as u64, 0);
            job.progress.lock().operations.push(Operation { called, returned: called, outcome: None });
            db.set_operation(Some(index as u32));
            let done = perform::<W, SimDatabase>(&job.workload, &mut session, op);
            let outcome = AssertUnwindSafe(done).catch_unwind().await;
            db.set_operation(None);
            let outcome = match outcome {
                Ok(Outcome::Unknown(error)) => {
                    let resolved = job.workload.resolve::<SimDatabase>(&mut session, op, error);
                    AssertUnwindSafe(resolved).catch_unwind().await
                }
                other => other,
            };
            let survived = outcome.is_ok();
            finish(&world, node, &job, outcome);
            if !survived {
                // What the session holds after a panic is anybody's guess: open another.
                break;
            }
        }
    }
}

/// An operation that was under way when its client died has an unknown outcome.
fn bury<W: Workload>(world: &World, job: &Job<W>) {
    let mut progress = job.progress.lock();
    if let Some(op) = progress.operations.last_mut()
        && op.outcome.is_none()
    {
        op.returned = world.clock.now();
        op.outcome = Some(Outcome::Unknown(Error::OPERATION_CANCELLED));
    }
}

async fn open<W: Workload>(world: &World, db: &SimDatabase, job: &Job<W>) -> Option<W::Session<SimDatabase>> {
    loop {
        let opened = AssertUnwindSafe(job.workload.open::<SimDatabase>(db, job.client)).catch_unwind().await;
        match opened {
            Ok(Ok(session)) => return Some(session),
            // A person whose client cannot start tries again a little later.
            Ok(Err(_)) => world.clock.sleep(10 * MILLISECOND).await,
            Err(panic) => {
                let mut progress = job.progress.lock();
                progress.findings.push(Finding::layer("panic", panics::words(&*panic)));
                progress.done = true;
                return None;
            }
        }
    }
}

fn finish<W: Workload>(
    world: &World,
    node: NodeId,
    job: &Job<W>,
    outcome: Result<Outcome<W::Answer>, Box<dyn std::any::Any + Send>>,
) {
    let mut progress = job.progress.lock();
    let index = progress.operations.len() - 1;
    let outcome = match outcome {
        Ok(Outcome::Violated(why)) => {
            let message =
                format!("operation {index} of client {} ({:?}): {why}", job.client, job.operations[index]);
            progress.findings.push(Finding::layer("answer", message.clone()));
            Outcome::Violated(message)
        }
        Ok(outcome) => outcome,
        Err(panic) => {
            let message = format!(
                "operation {index} of client {} ({:?}) panicked: {}",
                job.client,
                job.operations[index],
                panics::words(&*panic)
            );
            progress.findings.push(Finding::layer("panic", message));
            Outcome::Unknown(Error::OPERATION_CANCELLED)
        }
    };
    let answer = shaketable_sim::trace::hash_bytes(0, format!("{outcome:?}").as_bytes());
    let op = &mut progress.operations[index];
    op.returned = world.clock.now();
    op.outcome = Some(outcome);
    world.event(node, Kind::Return, index as u64, answer);
}
