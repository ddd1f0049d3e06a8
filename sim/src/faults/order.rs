//! Orders: requests of operations that are made one after another, and clients that die at a request.
//!
//! The read version and the commit of a transaction decide what it sees and when it takes effect. A plan with
//! an [order](super::FaultPlan::order) determines the order of these requests for some operations. A request
//! in the order is held back until each request before it has been answered, or will not be made because its
//! operation has ended. A plan with [deaths](super::FaultPlan::deaths) ends a client at one of its commits,
//! either before it is sent or after it was answered. So does a [departure](super::departure), for good.
//!
//! What FoundationDB promises: nothing about how long a request takes, or when a client sends it, so that
//! every order is possible. After the death of a client, its commit in flight may have happened; here it is
//! known whether it has. What bounds it: no request is held back for longer than [`LONGEST_HOLD`], so that an
//! operation that waits for another one finishes in any order; a client comes back after [`COMEBACK`]; both
//! end with the act.

use super::{Family, FaultPlan};
use crate::{
    ids::{ClientId, NodeId},
    rt::{MILLISECOND, Nanos, SECOND},
    trace::Kind,
    world::World,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// The longest time for which a request is held back, nanoseconds: shorter than a transaction can live.
pub const LONGEST_HOLD: Nanos = SECOND;
/// The time after which a client that died at a commit comes back, nanoseconds.
pub const COMEBACK: Nanos = 20 * MILLISECOND;

/// A request of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// For its read version.
    ReadVersion,
    /// To commit what it has written. A transaction without writes makes none.
    Commit,
}

/// One request of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Step {
    /// The client.
    pub client: ClientId,
    /// Its operation.
    pub operation: u32,
    /// The request.
    pub request: Request,
    /// How many such requests the operation made before.
    #[serde(default)]
    pub index: u32,
}

/// A client that dies at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Death {
    /// The request to commit.
    pub step: Step,
    /// Whether it was answered; otherwise it was not sent.
    pub after: bool,
}

/// Checks an order and deaths. The error is a sentence fragment.
pub(super) fn check(order: &[Step], deaths: &[Death]) -> Result<(), String> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("a request is in the order twice".to_owned());
    }
    match deaths.iter().any(|death| death.step.request != Request::Commit) {
        true => Err("a client dies at a request that is no commit".to_owned()),
        false => Ok(()),
    }
}

/// What an order does to the requests of a run, and the requests themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The requests, in the order in which they were about to be made. Empty if the plan has neither
    /// decisions nor an order nor deaths, and events were not kept.
    pub made: Vec<Step>,
    /// How many were not held back any longer although a request before them was missing.
    pub overdue: u64,
}

/// The order of a run.
pub(super) struct Order {
    positions: BTreeMap<Step, usize>,
    deaths: Vec<Death>,
    /// Whether requests are counted.
    active: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether each request of the order was answered, or will not be made.
    done: Vec<bool>,
    /// Requests that each operation has made.
    counts: BTreeMap<(ClientId, u32, Request), u32>,
    made: Vec<Step>,
    overdue: u64,
    waiting: Vec<Waker>,
    /// Machines of clients that are to die, and by which family.
    dying: Vec<(NodeId, Family)>,
    /// Machines of clients that leave at their next commit, and whether after it.
    leaving: BTreeMap<NodeId, bool>,
}

impl Order {
    pub(super) fn new(plan: &FaultPlan, is_recorded: bool) -> Order {
        let positions = plan.order.iter().enumerate().map(|(at, step)| (*step, at)).collect();
        let state = State { done: vec![false; plan.order.len()], ..State::default() };
        let is_decided = !plan.decisions.is_empty() || !plan.order.is_empty() || plan.kills_at_requests();
        Order {
            positions,
            deaths: plan.deaths.clone(),
            active: is_recorded || is_decided,
            state: Mutex::new(state),
        }
    }

    /// The requests so far.
    pub(super) fn requests(&self) -> Requests {
        let state = self.state.lock();
        Requests { made: state.made.clone(), overdue: state.overdue }
    }

    /// An operation has ended: it makes no further request.
    pub(super) fn end(&self, client: ClientId, operation: u32) {
        if !self.positions.is_empty() {
            self.finish(|step| step.client == client && step.operation == operation);
        }
    }

    /// Marks requests as done.
    fn finish(&self, is_done: impl Fn(&Step) -> bool) {
        let mut state = self.state.lock();
        for (step, at) in &self.positions {
            state.done[*at] |= is_done(step);
        }
        drop(state);
        self.wake();
    }

    /// Lets everything that waits check again whether it still has to.
    pub(super) fn wake(&self) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether it is the turn of the request at a position.
    fn poll_turn(&self, position: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.done[..position].iter().all(|done| *done) {
            return Poll::Ready(());
        }
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    /// The client on this machine leaves for good at its next commit.
    pub(super) fn leaves(&self, node: NodeId, after: bool) {
        self.state.lock().leaving.insert(node, after);
    }

    /// Whether the client on this machine is still to leave.
    pub(super) fn is_leaving(&self, node: NodeId) -> bool {
        self.state.lock().leaving.contains_key(&node)
    }

    /// A client on this machine that is still to leave does so now.
    pub(super) fn leaves_now(&self, node: NodeId) {
        let mut state = self.state.lock();
        if state.leaving.remove(&node).is_some() {
            state.dying.push((node, Family::Departure));
        }
        drop(state);
        self.wake();
    }

    /// The next machine that is to die.
    fn poll_death(&self, cx: &mut Context<'_>) -> Poll<(NodeId, Family)> {
        let mut state = self.state.lock();
        if let Some(death) = state.dying.pop() {
            return Poll::Ready(death);
        }
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }
}

/// A request of a client, from the moment at which it is about to be made until it was answered: until this
/// is dropped.
pub(crate) struct Turn {
    world: Arc<World>,
    node: NodeId,
    step: Step,
}

impl Turn {
    /// A request that is about to be made; `None` if nothing in the plan concerns requests.
    pub(crate) fn begin(
        world: &Arc<World>,
        (node, client): (NodeId, ClientId),
        operation: Option<u32>,
        request: Request,
    ) -> Option<Turn> {
        let faults = &world.faults;
        let operation = operation.filter(|_| faults.order.active && faults.are_on())?;
        let mut state = faults.order.state.lock();
        let count = state.counts.entry((client, operation, request)).or_default();
        let step = Step { client, operation, request, index: *count };
        *count += 1;
        state.made.push(step);
        Some(Turn { world: world.clone(), node, step })
    }

    /// Whether the plan has an order for it.
    pub(crate) fn is_ordered(&self) -> bool {
        self.world.faults.order.positions.contains_key(&self.step)
    }

    /// Completes when the request is to be sent: never if the client dies before.
    pub(crate) async fn come(&self) {
        let faults = &self.world.faults;
        if let Some(position) = faults.order.positions.get(&self.step) {
            let turn = std::future::poll_fn(|cx| match faults.are_on() && faults.other_rates().is_none() {
                true => faults.order.poll_turn(*position, cx),
                false => Poll::Ready(()),
            });
            if self.world.clock.timeout(LONGEST_HOLD, turn).await.is_none() {
                faults.order.state.lock().overdue += 1;
            }
        }
        self.die(false).await;
    }

    /// Completes when the client is to receive the answer that has arrived: never if it dies before.
    pub(crate) async fn answered(&self) {
        self.die(true).await;
    }

    /// Never completes if the client dies here.
    async fn die(&self, after: bool) {
        let faults = &self.world.faults;
        if !faults.are_on() {
            return;
        }
        let leaves = || {
            let is_commit = self.step.request == Request::Commit;
            is_commit && faults.order.state.lock().leaving.get(&self.node) == Some(&after)
        };
        let is_planned = faults.order.deaths.contains(&Death { step: self.step, after });
        if is_planned || leaves() {
            match is_planned {
                true => faults.order.state.lock().dying.push((self.node, Family::ClientDeath)),
                false => faults.order.leaves_now(self.node),
            }
            faults.order.wake();
            faults.order.end(self.step.client, self.step.operation);
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_ordered() {
            self.world.faults.order.finish(|step| *step == self.step);
        }
    }
}

/// Kills clients where the plan says so, and starts those again that do not leave for good.
pub(super) async fn drive(world: Arc<World>) {
    loop {
        let (node, family) = std::future::poll_fn(|cx| world.faults.order.poll_death(cx)).await;
        let leaves = family == Family::Departure;
        if world.faults.are_on() {
            if leaves {
                world.retire(node)
            } else {
                world.kill(node)
            }
            world.faults.count(family);
            world.event(NodeId(0), Kind::Fault, family as u64, 0);
        }
        if leaves {
            continue;
        }
        world.clock.sleep(COMEBACK).await;
        world.start(node);
    }
}
