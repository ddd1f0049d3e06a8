//! A client of a run: opens a session, does its operations one after the other, drops some of them under way
//! and goes on, dies and comes back with the next one.

use super::{panics, stage::Stage};
use crate::{
    judges::Finding,
    sessions,
    workload::{Outcome, Workload, perform},
};
use futures::{
    FutureExt,
    future::{Either, select},
};
use parking_lot::Mutex;
use shaketable_layers::{points, tx::Error};
use shaketable_sim::{
    faults::Cut,
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    trace::Kind,
};
use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

/// An operation as it went.
#[derive(Clone, Debug)]
pub struct Operation<A> {
    /// When it was called.
    pub called: Nanos,
    /// When it returned, or when its client dropped it or died.
    pub returned: Nanos,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<Outcome<A>>,
}

/// What outlives a client's death: its list, how far it got, what it learned.
pub(crate) struct Progress<W: Workload> {
    pub(crate) operations: Vec<Operation<W::Answer>>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) done: bool,
    rng: Stream,
}

impl<W: Workload> Progress<W> {
    pub(crate) fn new(rng: Stream) -> Progress<W> {
        Progress { operations: Vec::new(), findings: Vec::new(), done: false, rng }
    }
}

/// What a client needs to know of its run.
pub(crate) struct Job<W: Workload> {
    pub(crate) workload: W,
    pub(crate) client: usize,
    pub(crate) operations: Vec<W::Op>,
    pub(crate) pause: Nanos,
    pub(crate) progress: Arc<Mutex<Progress<W>>>,
}

/// One life of a client.
pub(crate) async fn live<W: Workload, S: Stage>(stage: S, job: Arc<Job<W>>) {
    bury(&stage, &job);
    while !job.progress.lock().done {
        let Some(mut session) = open(&stage, &job).await else { return };
        loop {
            let index = job.progress.lock().operations.len();
            let Some(op) = job.operations.get(index) else {
                job.progress.lock().done = true;
                return;
            };
            if job.pause > 0 {
                let pause = job.progress.lock().rng.below(2 * job.pause);
                stage.sleep(pause).await;
            }
            let called = stage.now();
            stage.event(Kind::Call, index as u64, 0);
            job.progress.lock().operations.push(Operation { called, returned: called, outcome: None });
            stage.set_operation(Some(index as u32));
            // On the heap: it is as large as all that the layer calls, and an unoptimized build copies it from
            // frame to frame of a test thread's small stack.
            let operation = Box::pin(perform::<W, S::Database>(&job.workload, &mut session, op));
            let done = points::in_operation(operation);
            let done = cut_short(&stage, AssertUnwindSafe(done).catch_unwind()).await;
            stage.set_operation(None);
            let Some(outcome) = done else {
                stage.was_cut();
                finish(&stage, &job, Ok(Outcome::Unknown(Error::OPERATION_CANCELLED)));
                continue;
            };
            let outcome = match outcome {
                Ok(Outcome::Unknown(error)) => {
                    let resolved = Box::pin(job.workload.resolve::<S::Database>(&mut session, op, error));
                    AssertUnwindSafe(resolved).catch_unwind().await
                }
                other => other,
            };
            let survived = outcome.is_ok();
            finish(&stage, &job, outcome);
            if !survived {
                // What the session holds after a panic is anybody's guess: open another.
                break;
            }
        }
    }
}

/// The operation's end; `None` when the stage wanted it to be dropped before.
async fn cut_short<T>(stage: &impl Stage, operation: impl Future<Output = T>) -> Option<T> {
    match stage.cut() {
        None => Some(operation.await),
        Some(Cut::Polls(most)) => sessions::polled(most, operation).await,
        Some(Cut::After(time)) => match select(pin!(operation), pin!(stage.sleep(time))).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        },
    }
}

/// An operation that was under way when its client died has an unknown outcome.
fn bury<W: Workload>(stage: &impl Stage, job: &Job<W>) {
    let mut progress = job.progress.lock();
    if let Some(op) = progress.operations.last_mut()
        && op.outcome.is_none()
    {
        op.returned = stage.now();
        op.outcome = Some(Outcome::Unknown(Error::OPERATION_CANCELLED));
    }
}

async fn open<W: Workload, S: Stage>(stage: &S, job: &Job<W>) -> Option<W::Session<S::Database>> {
    loop {
        let opened = job.workload.open(stage.database(), job.client);
        let opened = AssertUnwindSafe(opened).catch_unwind().await;
        match opened {
            Ok(Ok(session)) => return Some(session),
            // A person whose client cannot start tries again a little later.
            Ok(Err(_)) => stage.sleep(10 * MILLISECOND).await,
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
    stage: &impl Stage,
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
    op.returned = stage.now();
    op.outcome = Some(outcome);
    stage.event(Kind::Return, index as u64, answer);
}
