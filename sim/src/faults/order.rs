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

use super::{
    families::Family,
    strikes::{Death, FaultPlan, Request, Step},
};
use crate::{
    ids::{ClientId, NodeId},
    rt::{MILLISECOND, Nanos, SECOND},
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    task::{Context, Poll, Waker},
};

/// The longest time for which a request is held back, nanoseconds: shorter than a transaction can live.
pub const LONGEST_HOLD: Nanos = SECOND;
/// The time after which a client that died at a commit comes back, nanoseconds.
pub const COMEBACK: Nanos = 20 * MILLISECOND;

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
    pub(super) positions: BTreeMap<Step, usize>,
    pub(super) deaths: Vec<Death>,
    /// Whether requests are counted.
    pub(super) active: bool,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Whether each request of the order was answered, or will not be made.
    done: Vec<bool>,
    /// Requests that each operation has made.
    pub(super) counts: BTreeMap<(ClientId, u32, Request), u32>,
    pub(super) made: Vec<Step>,
    pub(super) overdue: u64,
    waiting: Vec<Waker>,
    /// Machines of clients that are to die, and by which family.
    pub(super) dying: Vec<(NodeId, Family)>,
    /// Machines of clients that leave at their next commit, and whether after it.
    pub(super) leaving: BTreeMap<NodeId, bool>,
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
    pub(super) fn finish(&self, is_done: impl Fn(&Step) -> bool) {
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
    pub(super) fn poll_turn(&self, position: usize, cx: &mut Context<'_>) -> Poll<()> {
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
    pub(super) fn poll_death(&self, cx: &mut Context<'_>) -> Poll<(NodeId, Family)> {
        let mut state = self.state.lock();
        if let Some(death) = state.dying.pop() {
            return Poll::Ready(death);
        }
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }
}
